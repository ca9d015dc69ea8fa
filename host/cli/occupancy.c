/* Occupancy of a kernel, asked of a device worker. A real device gets the kernel itself. The stand-in driver
   takes PTX only and estimates registers: where the assembler has counted them, it is asked about a probe
   that needs as many. */
#include "cli/occupancy.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/temporary.h"
#include "compile/target.h"
#include "lab/device.h"
#include "lab/wire.h"

#define PROBE_ENTRY     "clab_occupancy_probe"
#define DEFAULT_BLOCK   256
#define PROBE_BASE      2 /* registers of the pointer */
#define LARGEST_CLUSTER 16
#define ANSWER_LIMIT_MS 30000

void clab_occupancy_probe(int registers, int smem_bytes, struct clab_str *out)
{
    const int n = registers > PROBE_BASE ? registers - PROBE_BASE : 1;
    clab_str_addf(out,
                  ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry " PROBE_ENTRY
                  "(.param .u64 p)\n{\n.reg .u64 a;\n.reg .u32 r<%d>;\n",
                  n);
    if (smem_bytes > 0)
        clab_str_addf(out, ".shared .align 16 .b8 pool[%d];\n", smem_bytes);
    clab_str_add(out, "ld.param.u64 a, [p];\n");
    for (int i = 0; i < n; i++)
        clab_str_addf(out, "ld.volatile.global.u32 r%d, [a+%d];\n", i, 4 * i);
    for (int i = 0; i < n; i++)
        clab_str_addf(out, "st.volatile.global.u32 [a+%d], r%d;\n", 4 * i, i);
    if (smem_bytes > 0)
        clab_str_add(out, "st.volatile.shared.u32 [pool], r0;\n");
    clab_str_add(out, "ret;\n}\n");
}

/* The file that the device is given, and the entry in it. */
static clab_status write_image(const struct clab_subject *subject, bool emulated, char *path, size_t bytes,
                               const char **out_entry, struct clab_error *error)
{
    const struct clab_resources *r = &subject->resources;
    struct clab_str probe = {0};
    const char *data = subject->ptx;
    size_t data_bytes = subject->ptx_bytes;
    *out_entry = subject->lowered;
    if (emulated && r->registers != CLAB_UNKNOWN) {
        clab_occupancy_probe(r->registers, r->static_smem_bytes, &probe);
        data = probe.text;
        data_bytes = probe.bytes;
        *out_entry = PROBE_ENTRY;
    } else if (!emulated && subject->cubin.kind == CLAB_IMAGE_CUBIN) {
        data = subject->cubin.data;
        data_bytes = subject->cubin.bytes;
    }
    clab_status status = CLAB_OK;
    if (probe.failed || data == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the occupancy query");
    else if (clab_temporary_file("occupancy", path, bytes) != 0)
        status = clab_error_set(error, CLAB_OUTPUT, "cannot make a temporary file in %s: %s",
                                clab_temporary_root(), strerror(errno));
    else if (clab_file_write_atomic(path, data, data_bytes) != 0)
        status = clab_error_set(error, CLAB_OUTPUT, "cannot write %s: %s", path, strerror(errno));
    clab_str_free(&probe);
    return status;
}

static unsigned block_of(const struct clab_subject *subject, const struct clab_occupancy_request *request)
{
    const struct clab_resources *r = &subject->resources;
    if (request->block_threads > 0)
        return request->block_threads;
    if (r->block[0] > 0)
        return r->block[0] * r->block[1] * r->block[2];
    return r->max_threads > 0 && r->max_threads < DEFAULT_BLOCK ? (unsigned)r->max_threads : DEFAULT_BLOCK;
}

static clab_status ask(struct clab_cli *cli, const char *device, const struct clab_subject *subject,
                       const struct clab_occupancy_request *request, json_t **out, struct clab_error *error)
{
    struct clab_session session;
    char path[4096] = "";
    const char *entry;
    json_t *answer = NULL;
    clab_status status = clab_session_open(&session, device, NULL, cli->interrupted, error);
    if (status != CLAB_OK)
        return status;
    const bool emulated = clab_json_bool(session.facts, "emulated", false);
    const unsigned block = block_of(subject, request);
    status = write_image(subject, emulated, path, sizeof path, &entry, error);
    if (status == CLAB_OK)
        status = clab_session_ask(&session,
                                  json_pack("{s:s,s:i,s:s,s:s,s:s}", "op", "load", "key", 1, "path", path,
                                            "source", subject->file, "entry", entry),
                                  ANSWER_LIMIT_MS, NULL, NULL, &answer, error);
    json_decref(answer);
    answer = NULL;
    if (path[0] != '\0')
        (void)unlink(path);
    if (status == CLAB_OK)
        status = clab_session_ask(&session,
                                  json_pack("{s:s,s:i,s:I,s:I,s:i,s:b}", "op", "clusters", "key", 1, "block",
                                            (json_int_t)block, "smem_bytes",
                                            (json_int_t)request->dynamic_smem_bytes, "sizes", LARGEST_CLUSTER,
                                            "opt_in", 1),
                                  ANSWER_LIMIT_MS, NULL, NULL, &answer, error);
    if (status == CLAB_OK) {
        json_t *active = json_array();
        for (size_t i = 0; i < LARGEST_CLUSTER; i++) {
            json_t *value = json_array_get(json_object_get(answer, "active"), i);
            json_array_append_new(active, json_is_integer(value) ? json_incref(value) : json_null());
        }
        const bool modelled = subject->resources.registers == CLAB_UNKNOWN;
        const int registers = modelled ? subject->resources.registers_model : subject->resources.registers;
        json_t *ctas = json_object_get(answer, "ctas_per_sm");
        *out = json_pack("{s:s,s:s,s:b,s:I,s:I,s:o,s:b,s:o,s:o,s:I}", "device", device, "name",
                         clab_json_text(session.facts, "name", ""), "emulated", (int)emulated, "block",
                         (json_int_t)block, "dynamic_smem_bytes", (json_int_t)request->dynamic_smem_bytes,
                         "registers", registers != CLAB_UNKNOWN ? json_integer(registers) : json_null(),
                         "registers_modelled", (int)modelled, "ctas_per_sm",
                         ctas != NULL ? json_incref(ctas) : json_null(), "active_clusters", active, "largest",
                         (json_int_t)clab_json_int(answer, "potential", 0));
    }
    json_decref(answer);
    clab_session_close(&session);
    return status;
}

clab_status clab_occupancy_ask(struct clab_cli *cli, const struct clab_subject *subject,
                               const struct clab_occupancy_request *request, json_t *all,
                               struct clab_error *out_missing, struct clab_error *error)
{
    const struct clab_target *target = clab_target_find(subject->arch);
    char own[32];
    snprintf(own, sizeof own, "emu:sm_%d", target != NULL ? target->number : 0);
    const char *const own_list[] = {own};
    const bool given = request->device_count > 0;
    const char *const *devices = given ? request->devices : own_list;
    const size_t count = given ? request->device_count : target != NULL && target->has_clusters ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        json_t *one = NULL;
        struct clab_error why = {0};
        clab_status status = ask(cli, devices[i], subject, request, &one, &why);
        if (status == CLAB_INTERRUPTED || status == CLAB_OUTPUT || status == CLAB_NO_MEMORY) {
            clab_error_copy(error, &why);
            clab_error_clear(&why);
            return status;
        }
        if (status != CLAB_OK)
            one = json_pack("{s:s,s:s}", "device", devices[i], "error", why.message);
        if (status == CLAB_NO_DEVICE && given && out_missing->status == CLAB_OK) {
            clab_error_copy(out_missing, &why);
            clab_error_context(out_missing, "--device %s", devices[i]);
        }
        clab_error_clear(&why);
        json_array_append_new(all, one);
    }
    return CLAB_OK;
}

void clab_occupancy_text(const json_t *all, struct clab_str *out)
{
    if (json_array_size(all) > 0)
        clab_str_add(out, "\noccupancy\n");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i), *active = json_object_get(one, "active_clusters");
        if (json_object_get(one, "error") != NULL) {
            clab_str_addf(out, "  %s: %s\n", clab_json_text(one, "device", ""),
                          clab_json_text(one, "error", ""));
            continue;
        }
        clab_str_addf(
            out,
            "  %s  %s\n    blocks of %lld threads, %lld bytes of dynamic shared memory%s: %lld CTAs per SM\n",
            clab_json_text(one, "device", ""), clab_json_text(one, "name", ""),
            (long long)clab_json_int(one, "block", 0), (long long)clab_json_int(one, "dynamic_smem_bytes", 0),
            clab_json_bool(one, "registers_modelled", false) ? ", registers estimated" : "",
            (long long)clab_json_int(one, "ctas_per_sm", 0));
        clab_str_add(out, "    clusters active at once, by size ");
        for (size_t size = 1; size <= json_array_size(active); size++) {
            const json_t *value = json_array_get(active, size - 1);
            if ((size & (size - 1)) != 0) /* powers of two; all of them are in the JSON */
                continue;
            clab_str_addf(out, "%s%zu: ", size > 1 ? ", " : "", size);
            if (json_is_integer(value))
                clab_str_addf(out, "%lld", (long long)json_integer_value(value));
            else
                clab_str_add(out, "none");
        }
        clab_str_addf(out, "; largest possible: %lld\n", (long long)clab_json_int(one, "largest", 0));
    }
}
