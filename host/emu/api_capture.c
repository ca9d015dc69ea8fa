/* Placeholder: replaced below. */
#include "emu/api.h"

CUresult api_capture_add(struct api_stream *stream, struct api_work *work)
{
    (void)stream;
    api_work_fini(work);
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult api_capture_join(struct api_stream *stream, struct api_event *event)
{
    (void)stream;
    (void)event;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult api_capture_record(struct api_stream *stream, struct api_event *event)
{
    (void)stream;
    (void)event;
    return CUDA_ERROR_NOT_SUPPORTED;
}
void api_capture_invalidate(struct api_capture *capture)
{
    (void)capture;
}
void api_capture_drop(struct api_stream *stream)
{
    (void)stream;
}
CUresult api_capture_forbids(struct api_context *context)
{
    (void)context;
    return CUDA_SUCCESS;
}
CUresult api_exec_run(struct api_context *context, struct api_exec *exec, struct clab_error *error)
{
    (void)context;
    (void)exec;
    (void)error;
    return CUDA_SUCCESS;
}
void api_exec_release(struct api_exec *exec)
{
    (void)exec;
}
void api_exec_hold(struct api_exec *exec)
{
    (void)exec;
}
