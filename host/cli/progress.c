/* Progress on standard error: a line that overwrites itself on a terminal; with --progress S whole lines, at
   most one in S seconds, for a log that is read later. Without either a command is silent until it has
   something to say. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/process.h"
#include "base/str.h"
#include "cli/cli.h"

#define MOST_SECONDS 3600
#define NS_PER_S     1000000000u

clab_status clab_cli_progress_start(struct clab_cli *cli, const struct clab_option *options,
                                    struct clab_error *error)
{
    const struct clab_option *every = clab_option_get(options, "--progress");
    struct clab_progress *progress = &cli->progress;
    long long seconds = 0;
    if (every->set && clab_option_number(every, 0, MOST_SECONDS, &seconds, error) != CLAB_OK)
        return CLAB_USAGE;
    progress->is_log = every->set;
    progress->every_ns = (uint64_t)seconds * NS_PER_S;
    progress->start_ns = progress->told_ns = clab_now_ns();
    return CLAB_OK;
}

/* Bytes of the first `columns` characters. */
static int cut(const char *text, size_t columns)
{
    size_t at = 0;
    for (size_t shown = 0; text[at] != '\0'; at++)
        if (((unsigned char)text[at] & 0xc0) != 0x80 && ++shown > columns)
            break;
    return (int)at;
}

/* Cut to the terminal: of a line that wraps only the last piece could be taken back. */
static void show(struct clab_cli *cli)
{
    struct clab_progress *progress = &cli->progress;
    struct winsize size = {0};
    const size_t columns =
        ioctl(fileno(cli->err), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : SIZE_MAX;
    fprintf(cli->err, "\r\033[K%.*s", cut(progress->text, columns), progress->text);
    fflush(cli->err);
    progress->is_shown = true;
}

static void tell(struct clab_cli *cli)
{
    struct clab_progress *progress = &cli->progress;
    const uint64_t now_ns = clab_now_ns();
    if (progress->text[0] == '\0' || now_ns - progress->told_ns < progress->every_ns)
        return;
    progress->told_ns = now_ns;
    fprintf(cli->err, "clusterlab: %s, after %llu s\n", progress->text,
            (unsigned long long)((now_ns - progress->start_ns) / NS_PER_S));
    fflush(cli->err);
}

void clab_cli_progress(void *context, const char *stage, const char *what, size_t done, size_t count)
{
    struct clab_cli *cli = context;
    if (count == 0 || !(cli->progress.is_log || cli->err_is_terminal))
        return;
    snprintf(cli->progress.text, sizeof cli->progress.text, "%s %zu/%zu%s%s", stage, done, count,
             what[0] != '\0' ? " " : "", what);
    if (cli->progress.is_log)
        tell(cli);
    else
        show(cli);
}

void clab_cli_progress_wait(void *context)
{
    struct clab_cli *cli = context;
    if (cli->progress.is_log && cli->progress.every_ns != 0)
        tell(cli);
}

void clab_cli_progress_erase(struct clab_cli *cli)
{
    if (cli->progress.is_shown)
        fputs("\r\033[K", cli->err);
    cli->progress.is_shown = false;
    cli->progress.text[0] = '\0';
}

void clab_cli_restore_signals(const struct clab_cli *cli)
{
    sigaction(SIGPIPE, &cli->pipe_before, NULL);
    sigaction(SIGXFSZ, &cli->size_before, NULL);
}

void clab_cli_say(struct clab_cli *cli, const struct clab_error *error)
{
    char *text = clab_error_format(error);
    clab_cli_progress_erase(cli);
    fprintf(cli->err, "clusterlab: %s\n", text != NULL ? text : error->message);
    free(text);
}
