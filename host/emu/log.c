/* The log of the stand-in driver (log.h). Notes are remembered by a hash of their text in a fixed table: a
   note whose slot is taken by another is written again, which is harmless. Leaves out: levels, files, time
   stamps. */
#include "emu/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum log_mode { LOG_NOTES, LOG_NONE, LOG_CALLS };

static enum log_mode mode(void)
{
    const char *text = getenv("CLUSTERLAB_EMU_LOG");
    if (text == NULL || text[0] == '\0')
        return LOG_NOTES;
    return strcmp(text, "none") == 0 ? LOG_NONE : LOG_CALLS;
}

/* One write per line, so that lines of several threads and processes do not mix. */
static void write_line(const char *text)
{
    fprintf(stderr, "clusterlab stand-in driver: %s\n", text);
}

static void write_text_once(const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t seen[1024];
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *c = text; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    pthread_mutex_lock(&lock);
    uint64_t *slot = &seen[hash % (sizeof seen / sizeof seen[0])];
    bool fresh = *slot != hash;
    *slot = hash;
    pthread_mutex_unlock(&lock);
    if (fresh)
        write_line(text);
}

static void write_once(const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    write_text_once(text);
}

void emu_log_once(const char *format, ...)
{
    if (mode() == LOG_NONE)
        return;
    va_list args;
    va_start(args, format);
    write_once(format, args);
    va_end(args);
}

static atomic_bool host_is_there;

void emu_log_host(void)
{
    atomic_store(&host_is_there, true);
}

void emu_log_refused(const char *format, ...)
{
    if (mode() == LOG_NONE || (mode() == LOG_NOTES && atomic_load(&host_is_there)))
        return;
    va_list args;
    va_start(args, format);
    write_once(format, args);
    va_end(args);
}

void emu_log_fault(const struct clab_error *error)
{
    if (mode() == LOG_NONE || (mode() == LOG_NOTES && atomic_load(&host_is_there)))
        return;
    char *text = clab_error_format(error);
    write_text_once(text != NULL ? text : error->message);
    free(text);
}

bool emu_log_calls(void)
{
    return mode() == LOG_CALLS;
}

void emu_log_call(const char *call, int code, const char *name, const char *reason)
{
    if (mode() != LOG_CALLS)
        return;
    char text[1400];
    snprintf(text, sizeof text, "%s returns %d %s%s%s", call, code, name, reason[0] != '\0' ? ": " : "",
             reason);
    write_line(text);
}
