/* Events of two processes: who waits for whom, and what is left of a process that has ended. The second
   process is forked before the driver is looked at. Memory pools of two processes: probe_resources.c,
   test_virtual.c for memory. */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api_test.h"

static int channel; /* to the other process */

static void give(const void *data, size_t bytes)
{
    if (write(channel, data, bytes) != (ssize_t)bytes)
        _exit(3);
}

static void take(void *data, size_t bytes)
{
    if (read(channel, data, bytes) != (ssize_t)bytes)
        _exit(4);
}

static void tell(char what)
{
    give(&what, 1);
}

static void hear(char what)
{
    char got = 0;
    take(&got, 1);
    if (got != what)
        _exit(5);
}

/* The second process: each step that fails ends it with the step's number. */
#define STEP(number, condition) \
    do {                        \
        if (!(condition))       \
            _exit(number);      \
    } while (0)

static void second(void)
{
    CUipcEventHandle handle;
    CUcontext context;
    CUevent event;
    CUstream stream, stuck;
    CUdeviceptr mine, word;
    uint32_t value = 0;
    alarm(60);
    take(&handle, sizeof handle);
    STEP(10, cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
                 cuCtxSetCurrent(context) == CUDA_SUCCESS);
    STEP(11, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
                 cuStreamCreate(&stuck, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    STEP(12, cuMemAlloc(&mine, 4) == CUDA_SUCCESS && cuMemAlloc(&word, 4) == CUDA_SUCCESS);
    STEP(13, cuMemsetD32(mine, 0, 1) == CUDA_SUCCESS && cuMemsetD32(word, 0, 1) == CUDA_SUCCESS);
    STEP(14, cuIpcOpenEventHandle(&event, handle) == CUDA_SUCCESS);
    STEP(15, cuEventQuery(event) == CUDA_ERROR_NOT_READY);
    STEP(16, cuStreamWaitEvent(stream, event, 0) == CUDA_SUCCESS);
    STEP(17, cuMemsetD32Async(mine, 5, 1, stream) == CUDA_SUCCESS);
    STEP(18, cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    STEP(19, cuMemcpyDtoH(&value, mine, 4) == CUDA_SUCCESS && value == 0);
    tell('w'); /* waiting */
    STEP(20, cuStreamSynchronize(stream) == CUDA_SUCCESS);
    STEP(21, cuMemcpyDtoH(&value, mine, 4) == CUDA_SUCCESS && value == 5);
    STEP(22, cuEventQuery(event) == CUDA_SUCCESS);
    /* a record that will never be reached */
    STEP(23, cuStreamWaitValue32(stuck, word, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
    STEP(24, cuEventRecord(event, stuck) == CUDA_SUCCESS);
    tell('r');
    hear('d');
    _exit(0);
}

static void test_events(void **state)
{
    const pid_t child = *(pid_t *)*state;
    CUipcEventHandle handle;
    CUcontext context;
    CUevent event, plain;
    CUstream stream;
    CUdeviceptr word;
    int status = 0;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, plain));
    WANT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuEventRecord(event, stream));
    OK(cuIpcGetEventHandle(&handle, event));
    give(&handle, sizeof handle);
    hear('w');
    OK(cuMemsetD32(word, 1, 1));
    OK(cuEventSynchronize(event));
    hear('r');
    WANT(CUDA_ERROR_NOT_READY, cuEventQuery(event)); /* the other process's record is the last now */
    tell('d');
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(cuEventSynchronize(event)); /* it has ended: nobody gets there any more */
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuStreamSynchronize(stream));
    OK(cuEventDestroy(event));
    OK(cuDevicePrimaryCtxReset(0));
}

int main(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 1;
    pid_t child = fork();
    channel = ends[child == 0];
    close(ends[child != 0]);
    if (child == 0)
        second();
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_events, &child)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
