/* "Error Handling": cuGetErrorName and cuGetErrorString. Both may be called before cuInit. The names come
   from the enum CUresult; the texts are what an H200's driver 580.159.04 answered (tests/api/data). */
#include "emu/api.h"

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, text) {code, #code, text},
#include "emu/api_error.def"
#undef ERROR
};

const char *api_error_name(CUresult result)
{
    for (size_t i = 0; i < API_COUNT_OF(errors); i++)
        if (errors[i].code == result)
            return errors[i].name;
    return NULL;
}

const char *api_error_string(CUresult result)
{
    for (size_t i = 0; i < API_COUNT_OF(errors); i++)
        if (errors[i].code == result)
            return errors[i].text;
    return NULL;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **pStr)
{
    if (pStr == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = api_error_name(error);
    return *pStr != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **pStr)
{
    if (pStr == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = api_error_string(error);
    return *pStr != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
