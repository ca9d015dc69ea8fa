/* clusterlab devices: what each device is, and which clusters it holds, as its own occupancy query answers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/temporary.h"
#include "cli/cli.h"
#include "lab/device.h"
#include "lab/wire.h"
#include "report/record.h"

/* A kernel that does nothing, for the occupancy query; dynamic shared memory makes it one CTA an SM. */
static const char probe_ptx[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 pool[];\n"
    ".visible .entry clab_probe()\n{\nret;\n}\n";
#define ALL_DEVICES_LIMIT 16

static clab_status ask_clusters(struct clab_session *session, bool opt_in, json_t **out_answer,
                                struct clab_error *error)
{
    char path[4096];
    if (clab_temporary_file("probe", path, sizeof path) != 0)
        return clab_error_set(error, CLAB_OUTPUT, "cannot make a temporary file in %s: %s",
                              clab_temporary_root(), strerror(errno));
    clab_status status = CLAB_OK;
    json_t *answer = NULL;
    if (clab_file_write_atomic(path, probe_ptx, sizeof probe_ptx - 1) != 0)
        status = clab_error_set(error, CLAB_OUTPUT, "cannot write %s: %s", path, strerror(errno));
    if (status == CLAB_OK)
        status = clab_session_ask(session,
                                  json_pack("{s:s,s:i,s:s,s:s,s:s}", "op", "load", "key", (int)opt_in, "path",
                                            path, "source", "the occupancy probe", "entry", "clab_probe"),
                                  30000, NULL, NULL, &answer, error);
    json_decref(answer);
    unlink(path);
    if (status != CLAB_OK)
        return status;
    int64_t shared = clab_json_int(session->facts, "shared_per_block_optin_bytes", 0);
    return clab_session_ask(session,
                            json_pack("{s:s,s:i,s:i,s:I,s:i,s:b}", "op", "clusters", "key", (int)opt_in,
                                      "block", 32, "smem_bytes", (json_int_t)shared, "sizes", 16, "opt_in",
                                      (int)opt_in),
                            30000, NULL, NULL, out_answer, error);
}

static void print_active(FILE *file, const char *title, const json_t *answer)
{
    const json_t *active = json_object_get(answer, "active");
    fprintf(file, "  active clusters, %-9s", title);
    for (size_t i = 0; i < json_array_size(active); i++) {
        const json_t *value = json_array_get(active, i);
        if (json_is_integer(value))
            fprintf(file, " %lld", (long long)json_integer_value(value));
        else
            fputs(" -", file);
    }
    fprintf(file, "   (largest: %lld)\n", (long long)clab_json_int(answer, "potential", 0));
}

static void print_device(FILE *file, const json_t *facts, const json_t *portable, const json_t *opted)
{
    fprintf(file, "%s  %s%s\n", clab_json_text(facts, "id", ""), clab_json_text(facts, "name", ""),
            clab_json_bool(facts, "emulated", false) ? "  (emulated)" : "");
    fprintf(file, "  compute capability %s, %lld SMs, %lld MHz, L2 %lld KiB, memory %lld MiB\n",
            clab_json_text(facts, "cc", ""), (long long)clab_json_int(facts, "sms", 0),
            (long long)clab_json_int(facts, "clock_khz", 0) / 1000,
            (long long)clab_json_int(facts, "l2_bytes", 0) / 1024,
            (long long)clab_json_int(facts, "memory_bytes", 0) / (1024 * 1024));
    fprintf(file, "  shared memory %lld KiB an SM, %lld KiB a CTA with opt-in; driver %s, %s\n",
            (long long)clab_json_int(facts, "shared_per_sm_bytes", 0) / 1024,
            (long long)clab_json_int(facts, "shared_per_block_optin_bytes", 0) / 1024,
            clab_json_text(facts, "driver", ""), clab_json_text(facts, "driver_path", ""));
    fputs("  of 1 to 16 CTAs, one CTA an SM:\n", file);
    print_active(file, "portable", portable);
    print_active(file, "opted in", opted);
    const json_t *groups = json_object_get(facts, "sm_groups");
    for (size_t i = 0; i < json_array_size(groups); i++)
        fprintf(file, i == 0 ? "  SM groups  %lld" : " %lld",
                (long long)json_integer_value(json_array_get(groups, i)));
    if (json_array_size(groups) != 0)
        fputc('\n', file);
}

static clab_status one_device(struct clab_cli *cli, const char *id, bool json,
                              struct clab_record_writer *writer, struct clab_error *error)
{
    struct clab_session session;
    json_t *portable = NULL, *opted = NULL;
    clab_status status = clab_session_open(&session, id, NULL, cli->interrupted, error);
    if (status != CLAB_OK)
        return status;
    if (clab_json_int(session.facts, "cluster_launch", 0) != 0) {
        status = ask_clusters(&session, false, &portable, error);
        if (status == CLAB_OK)
            status = ask_clusters(&session, true, &opted, error);
    }
    if (status == CLAB_OK && json) {
        json_t *record = json_pack("{s:O,s:O?,s:O?}", "device", session.facts, "clusters_portable", portable,
                                   "clusters_opted_in", opted);
        clab_record_write(writer, "device", NULL, record);
        json_decref(record);
    } else if (status == CLAB_OK) {
        print_device(cli->out, session.facts, portable, opted);
    }
    json_decref(portable);
    json_decref(opted);
    clab_session_close(&session);
    return status;
}

int clab_cmd_devices(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {
        {.name = "--json", .kind = CLAB_OPTION_FLAG}, {.name = "--device", .kind = CLAB_OPTION_LIST}, {0}};
    size_t n;
    struct clab_record_writer writer = {0};
    clab_status status = clab_options_parse(o, argc, argv, NULL, 0, &n, error);
    if (status == CLAB_OK)
        status = clab_records_open(&writer, o[0].set ? "-" : NULL, error);
    if (status != CLAB_OK)
        return clab_status_exit(status);
    int exit_status = 0;
    bool any = false;
    if (o[1].count != 0) {
        for (size_t i = 0; i < o[1].count && status == CLAB_OK; i++)
            status = clab_cli_device_check(o[1].list[i], error);
        for (size_t i = 0; i < o[1].count && status == CLAB_OK; i++)
            status = one_device(cli, o[1].list[i], o[0].set, &writer, error);
        exit_status = clab_status_exit(status);
        any = true;
    } else {
        for (int i = 0; i < ALL_DEVICES_LIMIT && !*cli->interrupted; i++) {
            char id[32];
            struct clab_error why = {0};
            snprintf(id, sizeof id, "cuda:%d", i);
            status = one_device(cli, id, o[0].set, &writer, &why);
            if (status != CLAB_OK && i == 0)
                fprintf(cli->err, "clusterlab: no GPU here: %s\n", why.message);
            clab_error_clear(&why);
            if (status != CLAB_OK)
                break;
            any = true;
        }
        char id[32];
        for (size_t i = 0; clab_device_emulated(i, id, sizeof id) && !*cli->interrupted; i++) {
            status = one_device(cli, id, o[0].set, &writer, error);
            if (status != CLAB_OK)
                break;
            any = true;
        }
        exit_status = clab_status_exit(status);
    }
    if (clab_records_close(&writer, error->status == CLAB_OK ? error : NULL) != CLAB_OK)
        exit_status = clab_exit_worse(exit_status, clab_status_exit(CLAB_OUTPUT));
    return any ? exit_status : clab_exit_worse(exit_status, 3);
}
