/* clusterlab with-emulator: another program on the stand-in driver. Replaces this process, so that the
   program's status, signals and terminal are its own; with --check it stays, to report when the program ends.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/with_check.h"
#include "compile/toolkit.h"
#include "driver/driver.h"
#include "lab/device.h"
#include "base/str.h"

static void prepend(const char *name, const char *value, char separator)
{
    const char *old = getenv(name);
    struct clab_str text = {0};
    clab_str_addf(&text, "%s", value);
    if (old != NULL && old[0] != '\0')
        clab_str_addf(&text, "%c%s", separator, old);
    if (text.text != NULL)
        setenv(name, text.text, 1);
    clab_str_free(&text);
}

/* Adds a library to LD_PRELOAD, which also splits at blanks: with one, the name alone, which LD_LIBRARY_PATH
   then resolves. */
static void preload(const char *path)
{
    prepend("LD_PRELOAD", strpbrk(path, " \t\n") == NULL ? path : strrchr(path, '/') + 1, ':');
}

/* The driver and the linker of host/emu/jitlink (in place of nvJitLink, whose cubins would be of no use),
   also for libraries whose own DT_RPATH comes before LD_LIBRARY_PATH (ld.so(8)): host/emu/preload loads them.
   A driver that CLUSTERLAB_EMU_LIBRARY names may be without it, and is then preloaded itself. */
static void preload_all(const char *driver, const char *folder)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/libclusterlab-preload.so", folder);
    preload(access(path, R_OK) == 0 ? path : driver);
}

/* Says where nvJitLink itself is, which its stand-in needs for LTO IR. */
static void find_linker(const char *folder)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/libnvJitLink.so.13", folder);
    if (access(path, R_OK) != 0)
        return;
    struct clab_toolkit *toolkit = calloc(1, sizeof *toolkit);
    if (toolkit != NULL && getenv("CLUSTERLAB_NVJITLINK") == NULL) {
        const char *environment = getenv("VIRTUAL_ENV");
        glob_t found = {0};
        clab_toolkit_find(toolkit);
        if (toolkit->parts[CLAB_PART_NVJITLINK].found) {
            setenv("CLUSTERLAB_NVJITLINK", toolkit->parts[CLAB_PART_NVJITLINK].path, 1);
        } else if (environment != NULL) { /* as the wheels bring it */
            snprintf(path, sizeof path, "%.4000s/lib/python3*/site-packages/nvidia/*/lib/libnvJitLink.so.1?",
                     environment);
            if (glob(path, 0, NULL, &found) == 0 && found.gl_pathc > 0)
                setenv("CLUSTERLAB_NVJITLINK", found.gl_pathv[found.gl_pathc - 1], 1);
            globfree(&found);
        }
    }
    free(toolkit);
}

/* The value of `name VALUE` or `name=VALUE` at argv[*inout_i], which goes on to the last word taken; NULL
   when it is another option. */
static const char *value_of(const char *name, int argc, char **argv, int *inout_i)
{
    const size_t bytes = strlen(name);
    if (strcmp(argv[*inout_i], name) == 0 && *inout_i + 1 < argc)
        return argv[++*inout_i];
    return strncmp(argv[*inout_i], name, bytes) == 0 && argv[*inout_i][bytes] == '='
               ? argv[*inout_i] + bytes + 1
               : NULL;
}

static int usage(struct clab_error *error)
{
    clab_error_remedy(error, "clusterlab with-emulator [--arch sm_100] [--check] -- PROGRAM ARGUMENTS");
    return clab_status_exit(CLAB_USAGE);
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text) && strlen(text) < 20;
}

int clab_cmd_with_emulator(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    const char *arch = NULL;
    struct clab_with_check check = {0};
    bool checks = false;
    char path[4096];
    int i = 1;
    for (; i < argc; i++) {
        const struct {
            const char *name, **value;
        } options[] = {{"--arch", &arch}, {"--seed", &check.seed}, {"--suppress", &check.suppress}};
        const char *value = NULL;
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (argv[i][0] != '-')
            break;
        checks |= strncmp(argv[i], "--check", 7) == 0;
        if (strcmp(argv[i], "--check") == 0)
            continue;
        if (strcmp(argv[i], "--check-fails") == 0) {
            check.fails = true;
            continue;
        }
        for (size_t k = 0; value == NULL && k < sizeof options / sizeof *options; k++) {
            value = value_of(options[k].name, argc, argv, &i);
            if (value != NULL && *options[k].value != NULL)
                return clab_status_exit(
                    clab_error_set(error, CLAB_USAGE, "%s was given twice", options[k].name));
            if (value != NULL)
                *options[k].value = value;
        }
        if (value == NULL) {
            clab_error_set(error, CLAB_USAGE, "unknown option %s", argv[i]);
            return usage(error);
        }
    }
    if (i >= argc) {
        clab_error_set(error, CLAB_USAGE, "with-emulator needs a program to run");
        return usage(error);
    }
    if (!checks && (check.seed != NULL || check.suppress != NULL)) {
        clab_error_set(error, CLAB_USAGE, "--seed and --suppress are for --check");
        return usage(error);
    }
    if (check.seed != NULL && !is_number(check.seed))
        return clab_status_exit(clab_error_set(error, CLAB_USAGE, "--seed %s: wanted a number", check.seed));
    clab_status status = arch != NULL ? clab_device_arch_check(arch, error) : CLAB_OK;
    if (status != CLAB_OK) {
        clab_error_context(error, "--arch");
        return clab_status_exit(status);
    }
    status = clab_driver_emulator_path(path, sizeof path, error);
    if (status != CLAB_OK)
        return clab_status_exit(status);
    if (strpbrk(path, ":;") != NULL)
        return clab_status_exit(clab_error_set(
            error, CLAB_NO_DEVICE, "LD_LIBRARY_PATH cannot hold the path %s: it has a ':' or ';'", path));
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    preload_all(path, folder);
    prepend("LD_LIBRARY_PATH", folder, ':');
    find_linker(folder);
    if (arch != NULL)
        setenv("CLUSTERLAB_EMU_ARCH", arch, 1);
    if (checks)
        return clab_with_check_run(cli, &check, argv + i, error);
    execvp(argv[i], argv + i);
    const int code = errno;
    clab_error_set(error, CLAB_USAGE, "cannot run %s: %s", argv[i], strerror(code));
    return code == ENOENT ? 127 : 126; /* as a shell answers */
}
