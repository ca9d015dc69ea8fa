/* Which device a command uses when none is named, and the emulator's options. */
#include <string.h>

#include "cli/cli.h"
#include "lab/device.h"
#include "lab/wire.h"

#define DEFAULT_EMULATED "emu:sm_90"

clab_status clab_cli_device_check(const char *device, struct clab_error *error)
{
    clab_status status = clab_device_check(device, error);
    if (status != CLAB_OK)
        clab_error_context(error, "--device");
    return status;
}

static clab_status open_any(struct clab_cli *cli, const char *device, json_t *options,
                            struct clab_session *session, struct clab_error *error)
{
    if (device != NULL) {
        clab_status known = clab_cli_device_check(device, error);
        return known == CLAB_OK ? clab_session_open(session, device, options, cli->interrupted, error)
                                : known;
    }
    struct clab_error why = {0};
    clab_status status = clab_session_open(session, "cuda:0", NULL, cli->interrupted, &why);
    if (status == CLAB_INTERRUPTED) {
        clab_error_copy(error, &why);
        clab_error_clear(&why);
        return status;
    }
    if (status == CLAB_OK && clab_json_int(session->facts, "cc_major", 0) >= 9)
        return CLAB_OK;
    if (status == CLAB_OK) {
        fprintf(cli->err,
                "clusterlab: %s has compute capability %s and no clusters; using %s instead: checked and "
                "counted, not "
                "timed\n",
                clab_json_text(session->facts, "name", "cuda:0"), clab_json_text(session->facts, "cc", "?"),
                DEFAULT_EMULATED);
        clab_session_close(session);
    } else {
        fprintf(cli->err,
                "clusterlab: no GPU here (%s); using %s: results are checked and counted, not timed\n",
                why.message, DEFAULT_EMULATED);
    }
    clab_error_clear(&why);
    return clab_session_open(session, DEFAULT_EMULATED, options, cli->interrupted, error);
}

clab_status clab_cli_open(struct clab_cli *cli, const char *device, json_t *options,
                          struct clab_session *session, struct clab_error *error)
{
    clab_status status = open_any(cli, device, options, session, error);
    session->on_wait = clab_cli_progress_wait;
    session->wait_context = cli;
    return status;
}

json_t *clab_cli_emulator_options(const struct clab_option *options)
{
    static const char prefix[] = "--emu-";
    json_t *object = NULL;
    for (const struct clab_option *o = options; o->name != NULL; o++) {
        if (!o->set || strncmp(o->name, prefix, sizeof prefix - 1) != 0)
            continue;
        char name[64];
        snprintf(name, sizeof name, "%s", o->name + sizeof prefix - 1);
        for (char *p = name; *p != '\0'; p++)
            if (*p == '-')
                *p = '_';
        if (object == NULL)
            object = json_object();
        json_object_set_new(object, name, json_string(o->text));
    }
    return object;
}
