/* "Coredump Attributes Control": settings that are kept and given back. No core dump is written: a faulting
   kernel is reported instead. Which attributes a context has, sizes and defaults: as an H200 answers
   (tests/api/data/h200_resources.txt). */
#include "emu/api.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 1024

struct settings {
    int numbers[CU_COREDUMP_MAX];
    char file[NAME_BYTES], pipe[NAME_BYTES];
};
/* Guarded by the API's lock. Contexts have no settings of their own here. */
static struct settings settings = {
    .numbers = {[CU_COREDUMP_TRIGGER_HOST] = 1},
    .pipe = "corepipe.cuda.%h.%p",
};

static char *text_of(CUcoredumpSettings attribute)
{
    return attribute == CU_COREDUMP_FILE   ? settings.file
           : attribute == CU_COREDUMP_PIPE ? settings.pipe
                                           : NULL;
}

/* Booleans are one byte, as the manual says; the flags are an int. */
static size_t bytes_of(CUcoredumpSettings attribute)
{
    return attribute == CU_COREDUMP_GENERATION_FLAGS ? sizeof(int) : sizeof(bool);
}

/* The trigger and its pipe are the process's. */
static bool is_known(bool context_form, CUcoredumpSettings attribute)
{
    return (unsigned)attribute >= 1 && (unsigned)attribute < CU_COREDUMP_MAX &&
           !(context_form && (attribute == CU_COREDUMP_ENABLE_USER_TRIGGER || attribute == CU_COREDUMP_PIPE));
}

static CUresult get(const char *call, bool context_form, CUcoredumpSettings attribute, void *value,
                    size_t *size)
{
    struct api_context *context;
    CUresult result = context_form ? api_enter_context(call, &context) : api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(is_known(context_form, attribute) && size != NULL);
    const char *text = text_of(attribute);
    const size_t needed = text != NULL ? NAME_BYTES : bytes_of(attribute);
    if (value == NULL) { /* how many bytes it takes */
        *size = needed;
        return api_leave();
    }
    API_REQUIRE(text != NULL ? *size >= strlen(text) + 1 : *size == needed);
    if (text != NULL) {
        memcpy(value, text, strlen(text) + 1);
    } else if (attribute == CU_COREDUMP_GENERATION_FLAGS) {
        memcpy(value, &settings.numbers[attribute], sizeof(int));
    } else {
        const bool on = settings.numbers[attribute] != 0;
        memcpy(value, &on, sizeof on);
    }
    return api_leave();
}

static CUresult set(const char *call, bool context_form, CUcoredumpSettings attribute, const void *value,
                    size_t *size)
{
    struct api_context *context;
    CUresult result = context_form ? api_enter_context(call, &context) : api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(is_known(context_form, attribute) && value != NULL && size != NULL);
    char *text = text_of(attribute);
    if (attribute == CU_COREDUMP_PIPE)
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "the pipe is named before cuInit, by CUDA_COREDUMP_PIPE");
    if (text != NULL) {
        API_REQUIRE(*size < NAME_BYTES);
        snprintf(text, NAME_BYTES, "%.*s", (int)*size, (const char *)value);
        return api_leave();
    }
    API_REQUIRE(*size == bytes_of(attribute));
    if (attribute == CU_COREDUMP_GENERATION_FLAGS)
        memcpy(&settings.numbers[attribute], value, sizeof(int));
    else
        settings.numbers[attribute] = *(const unsigned char *)value != 0;
    if (attribute == CU_COREDUMP_ENABLE_ON_EXCEPTION && settings.numbers[attribute])
        emu_log_once("no core dumps are written here: faults are reported instead");
    return api_leave();
}

CUresult CUDAAPI cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return get(__func__, true, attrib, value, size);
}

CUresult CUDAAPI cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return get(__func__, false, attrib, value, size);
}

CUresult CUDAAPI cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return set(__func__, true, attrib, value, size);
}

CUresult CUDAAPI cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return set(__func__, false, attrib, value, size);
}
