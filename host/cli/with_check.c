/* with-emulator --check. The stand-in driver of each process of the program appends what it finds to a file,
   which is read when the program has ended. */
#include "cli/with_check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/str.h"
#include "base/temporary.h"
#include "check/hazard.h"
#include "cli/check.h"
#include "lab/hazards.h"
#include "lab/wire.h"
#include "report/hazards.h"

/* The command line again, for the line that replays a hazard. */
static char *again_of(const struct clab_with_check *options, char **argv)
{
    struct clab_str text = {0};
    clab_str_add(&text, "clusterlab with-emulator --check");
    if (options->arch != NULL)
        clab_str_addf(&text, " --arch %s", options->arch);
    if (options->seed != NULL)
        clab_str_addf(&text, " --seed %s", options->seed);
    clab_str_add(&text, " --");
    for (size_t i = 0; argv[i] != NULL; i++)
        clab_check_word(argv[i], &text);
    return clab_str_take(&text);
}

/* What the program did: entries of all launches, merged; *out_launches: how many were checked. NULL when the
   log cannot be read. */
static json_t *log_read(const char *path, size_t *out_launches)
{
    FILE *file = fopen(path, "rb");
    struct clab_check_log *entry = malloc(sizeof *entry);
    json_t *all = json_array();
    *out_launches = 0;
    while (file != NULL && entry != NULL && fread(entry, sizeof *entry, 1, file) == 1) {
        if (entry->magic != CLAB_CHECK_LOG_MAGIC || entry->hazard_bytes != sizeof entry->hazard)
            break;
        if (entry->is_launch) {
            ++*out_launches;
            continue;
        }
        json_t *one = clab_hazards_to_json(&entry->hazard, 1);
        clab_hazards_merge(all, one, true);
        json_decref(one);
    }
    if (file != NULL)
        fclose(file);
    free(entry);
    return all;
}

static void add_sum(struct clab_str *out, size_t count, const char *one, const char *many)
{
    if (count != 0)
        clab_str_addf(out, ", %zu %s", count, count == 1 ? one : many);
}

/* Prints the report; the number of hazards, milder kinds and suppressed ones left out. */
static size_t report(struct clab_cli *cli, const char *path, const char *again, json_t *suppressions)
{
    size_t launches, hazards = 0, milder = 0, suppressed = 0;
    json_t *all = log_read(path, &launches), *sorted = clab_hazards_sorted(all);
    const char *plain = getenv("NO_COLOR");
    const bool colour = (plain == NULL || plain[0] == '\0') && isatty(fileno(cli->err)) == 1;
    struct clab_str out = {0};
    for (size_t i = 0; i < json_array_size(sorted); i++) {
        const json_t *hazard = json_array_get(sorted, i);
        if (clab_suppression_find(suppressions, hazard, clab_json_text(hazard, "kernel", "")) != NULL) {
            suppressed++;
            continue;
        }
        size_t *sum = strcmp(clab_json_text(hazard, "severity", ""), "mild") == 0 ? &milder : &hazards;
        ++*sum;
        char kernel[256];
        clab_demangle(clab_json_text(hazard, "kernel", ""), kernel, sizeof kernel);
        clab_hazard_print(hazard, kernel, again, 0, colour, &out);
    }
    clab_str_addf(&out, "clusterlab: %zu launch%s checked", launches, launches == 1 ? "" : "es");
    if (hazards + milder == 0 && launches != 0)
        clab_str_add(&out, ", no hazard");
    add_sum(&out, hazards, "hazard", "hazards");
    add_sum(&out, milder, "of a milder kind", "of milder kinds");
    add_sum(&out, suppressed, "suppressed", "suppressed");
    clab_str_add(&out, "\n");
    fputs(out.text != NULL ? out.text : "", cli->err);
    clab_str_free(&out);
    json_decref(sorted);
    json_decref(all);
    return hazards;
}

/* Waits for the program. Signals from the terminal go to both: the program decides what becomes of them. One
   that asks this process alone to end (kill, a CI's limit) is passed on once. */
static int wait_for(pid_t pid, const volatile sig_atomic_t *interrupted)
{
    int status = 0;
    bool is_told = false;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGQUIT, &ignore, NULL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        if (*interrupted && !is_told)
            kill(pid, SIGTERM);
        is_told = *interrupted != 0;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int clab_with_check_run(struct clab_cli *cli, const struct clab_with_check *options, char **argv,
                        struct clab_error *error)
{
    char path[4096];
    json_t *suppressions = NULL;
    if (options->suppress != NULL &&
        clab_suppressions_read(options->suppress, &suppressions, error) != CLAB_OK)
        return clab_status_exit(CLAB_USAGE);
    if (clab_temporary_file("check", path, sizeof path) != 0) {
        json_decref(suppressions);
        return clab_status_exit(clab_error_set(error, CLAB_OUTPUT, "cannot make a temporary file in %s: %s",
                                               clab_temporary_root(), strerror(errno)));
    }
    setenv("CLUSTERLAB_EMU_CHECK", path, 1);
    if (options->seed != NULL)
        setenv("CLUSTERLAB_EMU_SEED", options->seed, 1);
    fflush(cli->err);
    /* The child tells through this pipe, which exec closes, why it could not become the program. */
    int told[2] = {-1, -1}, code = 0, result;
    const pid_t pid = pipe2(told, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0) {
        clab_cli_restore_signals(cli);
        execvp(argv[0], argv);
        code = errno;
        (void)!write(told[1], &code, sizeof code);
        _exit(127);
    }
    if (pid < 0) {
        result = clab_status_exit(clab_error_set(error, CLAB_INTERNAL, "cannot fork: %s", strerror(errno)));
    } else {
        close(told[1]);
        const bool ran = read(told[0], &code, sizeof code) != (ssize_t)sizeof code;
        result = wait_for(pid, cli->interrupted);
        if (ran) {
            char *again = again_of(options, argv);
            const size_t hazards = report(cli, path, again, suppressions);
            free(again);
            result = result == 0 && options->fails && hazards != 0 ? clab_status_exit(CLAB_HAZARD) : result;
        } else {
            clab_error_set(error, CLAB_USAGE, "cannot run %s: %s", argv[0], strerror(code));
            result = code == ENOENT ? 127 : 126;
        }
        close(told[0]);
    }
    unlink(path);
    json_decref(suppressions);
    return result;
}
