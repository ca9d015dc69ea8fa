/* "Error Log Management": the last hundred messages about calls that failed, and callbacks that hear of them.
   A failing call gives two messages: why, in the stand-in's own words, and what it returns, as a real driver
   says it. These calls work before cuInit. */
#include "emu/api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MESSAGES      100u /* times the longest is the 25,600 bytes that the manual speaks of */
#define LONGEST_BYTES 256u
#define MAX_CALLBACKS 16u

struct message {
    char text[LONGEST_BYTES - 64]; /* the rest is the line's beginning */
    struct timespec when;
    unsigned long thread;
};

/* Guarded by the API's lock. */
static struct {
    struct message ring[MESSAGES];
    unsigned next; /* messages so far: an iterator */
    struct callback {
        CUlogsCallback function; /* NULL: free */
        void *data;
    } callbacks[MAX_CALLBACKS];
} logs;

void api_log_add(const char *text)
{
    struct message *message = &logs.ring[logs.next++ % MESSAGES];
    snprintf(message->text, sizeof message->text, "%s", text);
    clock_gettime(CLOCK_REALTIME, &message->when);
    message->thread = (unsigned long)pthread_self();
    struct api_thread *thread = api_thread();
    thread->untold++;
}

/* Calls the callbacks for what this thread's call has added. The lock is given up meanwhile, and not held on
   return. */
void api_log_tell_and_unlock(void)
{
    struct api_thread *thread = api_thread();
    unsigned untold = thread->untold;
    struct callback callbacks[MAX_CALLBACKS];
    char texts[4][sizeof logs.ring[0].text];
    unsigned n = 0;
    thread->untold = 0;
    memcpy(callbacks, logs.callbacks, sizeof callbacks);
    /* The call has just added them: they are the last of the thread's. */
    for (unsigned back = 1; back <= MESSAGES && back <= logs.next && n < untold && n < API_COUNT_OF(texts);
         back++) {
        const struct message *message = &logs.ring[(logs.next - back) % MESSAGES];
        if (message->thread == (unsigned long)pthread_self())
            memcpy(texts[n++], message->text, sizeof texts[0]);
    }
    api_unlock();
    while (n-- > 0)
        for (unsigned i = 0; i < MAX_CALLBACKS; i++)
            if (callbacks[i].function != NULL)
                callbacks[i].function(callbacks[i].data, CU_LOG_LEVEL_ERROR, texts[n], strlen(texts[n]));
}

/* ---- calls ---- */

static void enter(const char *call)
{
    api_thread()->call = call;
    api_lock();
}

CUresult CUDAAPI cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData,
                                        CUlogsCallbackHandle *callback_out)
{
    enter(__func__);
    API_REQUIRE(callbackFunc != NULL);
    for (unsigned i = 0; i < MAX_CALLBACKS; i++)
        if (logs.callbacks[i].function == NULL) {
            logs.callbacks[i] = (struct callback){callbackFunc, userData};
            if (callback_out != NULL)
                *callback_out = (CUlogsCallbackHandle)(void *)&logs.callbacks[i];
            return api_leave();
        }
    return api_fail(CUDA_ERROR_INVALID_VALUE, "%u callbacks are registered already", MAX_CALLBACKS);
}

CUresult CUDAAPI cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
    enter(__func__);
    for (unsigned i = 0; i < MAX_CALLBACKS; i++)
        if ((void *)callback == (void *)&logs.callbacks[i] && logs.callbacks[i].function != NULL) {
            logs.callbacks[i] = (struct callback){0};
            return api_leave();
        }
    return api_fail(CUDA_ERROR_INVALID_VALUE, "not a registered callback");
}

/* Flags are not looked at, on the H200, here and below. */
CUresult CUDAAPI cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
    (void)flags;
    enter(__func__);
    API_REQUIRE(iterator_out != NULL);
    *iterator_out = logs.next;
    return api_leave();
}

/* The first message that is still there, at or after the iterator. */
static unsigned first_of(const CUlogIterator *iterator)
{
    const unsigned oldest = logs.next > MESSAGES ? logs.next - MESSAGES : 0;
    return iterator == NULL || *iterator < oldest ? oldest : *iterator < logs.next ? *iterator : logs.next;
}

/* One line, without the NUL counted. */
static size_t print(char *line, size_t bytes, unsigned index)
{
    const struct message *message = &logs.ring[index % MESSAGES];
    struct tm parts;
    localtime_r(&message->when.tv_sec, &parts);
    const int length =
        snprintf(line, bytes, "[%02d:%02d:%02d.%03d][%lu][CUDA][E] %s\n", parts.tm_hour, parts.tm_min,
                 parts.tm_sec, (int)(message->when.tv_nsec / 1000000), message->thread, message->text);
    return length > 0 ? (size_t)length : 0;
}

static const char truncated[] = "[older messages are lost]\n";

static bool is_truncated(const CUlogIterator *iterator)
{
    return logs.next > MESSAGES && (iterator == NULL || *iterator < logs.next - MESSAGES);
}

CUresult CUDAAPI cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
    char line[LONGEST_BYTES + 64];
    (void)flags;
    enter(__func__);
    API_REQUIRE(pathToFile != NULL);
    FILE *file = fopen(pathToFile, "we");
    if (file == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "cannot write %s", pathToFile);
    if (is_truncated(iterator))
        fputs(truncated, file);
    for (unsigned i = first_of(iterator); i < logs.next; i++) {
        print(line, sizeof line, i);
        fputs(line, file);
    }
    if (fclose(file) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "cannot write %s", pathToFile);
    if (iterator != NULL)
        *iterator = logs.next;
    return api_leave();
}

CUresult CUDAAPI cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
    char line[LONGEST_BYTES + 64];
    (void)flags;
    enter(__func__);
    API_REQUIRE(buffer != NULL && size != NULL);
    const size_t room = *size;
    unsigned first = first_of(iterator);
    bool cut = is_truncated(iterator);
    size_t needed = 0, done = 0;
    *size = 0;
    for (unsigned i = first; i < logs.next; i++)
        needed += print(line, sizeof line, i);
    if (first == logs.next) {
        if (room > 0)
            buffer[0] = '\0';
        return api_leave();
    }
    /* What does not fit is left out at the beginning, which then says so. */
    while (first < logs.next && needed + (cut ? sizeof truncated - 1 : 0) + 1 > room) {
        needed -= print(line, sizeof line, first++);
        cut = true;
    }
    if (first == logs.next)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes hold no message", room);
    if (cut) {
        memcpy(buffer, truncated, sizeof truncated - 1);
        done = sizeof truncated - 1;
    }
    for (unsigned i = first; i < logs.next; i++) {
        const size_t length = print(line, sizeof line, i);
        memcpy(buffer + done, line, length);
        done += length;
    }
    buffer[done] = '\0';
    *size = done;
    if (iterator != NULL)
        *iterator = logs.next;
    return api_leave();
}
