/* Virtual memory management and memory of other processes: reservations, mappings and aliases, access,
   descriptors, cuIpc*. The second process is this program again, with an argument. */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api_test.h"

#define STEP ((size_t)2 << 20)

static const CUmemAllocationProp prop = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};
static const CUmemAccessDesc read_write = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                           .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static const CUmemAccessDesc read_only = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                          .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};

/* Adds 1 to the word at its parameter. */
static const char add_one[] = HEADER ".visible .entry add_one(.param .u64 p)\n{\n"
                                     ".reg .b64 %a;\n.reg .b32 %v;\n"
                                     "ld.param.u64 %a, [p];\nld.global.u32 %v, [%a];\nadd.u32 %v, %v, 1;\n"
                                     "st.global.u32 [%a], %v;\nret;\n}\n";

static CUresult run(const char *ptx, const char *name, CUdeviceptr address)
{
    void *params[] = {&address};
    CUfunction function = load(ptx, name);
    CUresult result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    return result == CUDA_SUCCESS ? cuCtxSynchronize() : result;
}

static void test_map(void **state)
{
    (void)state;
    size_t step = 0, before, during, after, total;
    CUdeviceptr base = 0;
    CUmemGenericAllocationHandle one, two;
    OK(cuMemGetAllocationGranularity(&step, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    assert_int_equal(step, STEP);
    OK(cuMemGetInfo(&before, &total));
    OK(cuMemAddressReserve(&base, 4 * STEP, 0, 0, 0));
    assert_int_equal(base % STEP, 0);
    OK(cuMemCreate(&one, STEP, &prop, 0));
    OK(cuMemCreate(&two, 2 * STEP, &prop, 0));
    OK(cuMemGetInfo(&during, &total));
    assert_true(before - during >= 3 * STEP);
    OK(cuMemMap(base, STEP, 0, one, 0));
    OK(cuMemMap(base + STEP, 2 * STEP, 0, two, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(base, 0, 1)); /* no access yet */
    OK(cuMemSetAccess(base, 3 * STEP, &read_write, 1));
    OK(cuMemsetD32(base, 7, 3 * STEP / 4)); /* across both */
    OK(run(add_one, "add_one", base + STEP - 4));
    uint32_t words[2] = {0, 0};
    OK(cuMemcpyDtoH(words, base + STEP - 4, 8));
    assert_int_equal(words[0], 8);
    assert_int_equal(words[1], 7);
    /* The same memory at a second address. */
    CUdeviceptr alias;
    OK(cuMemAddressReserve(&alias, STEP, 0, 0, 0));
    OK(cuMemMap(alias, STEP, 0, one, 0));
    OK(cuMemSetAccess(alias, STEP, &read_write, 1));
    OK(run(add_one, "add_one", alias + STEP - 4));
    OK(cuMemcpyDtoH(words, base + STEP - 4, 8));
    assert_int_equal(words[0], 9);
    /* The handle may go before the mapping, and comes back through it. */
    CUmemGenericAllocationHandle again;
    CUmemAllocationProp back;
    OK(cuMemRelease(one));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemRelease(one));
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(alias + 8)));
    OK(cuMemGetAllocationPropertiesFromHandle(&back, again));
    assert_int_equal(back.requestedHandleTypes, prop.requestedHandleTypes);
    OK(cuMemRelease(again));
    OK(cuMemRelease(two));
    unsigned long long flags = 9;
    OK(cuMemGetAccess(&flags, &read_write.location, alias));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemUnmap(alias, STEP));
    OK(cuMemcpyDtoH(words, base, 4)); /* the other mapping is still there */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(words, alias, 4));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(base, 2 * STEP)); /* half of the second mapping */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, 4 * STEP));
    OK(cuMemUnmap(base, 3 * STEP));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, STEP));
    OK(cuMemAddressFree(base, 4 * STEP));
    OK(cuMemAddressFree(alias, STEP));
    OK(cuMemGetInfo(&after, &total));
    assert_int_equal(before, after);
}

/* A range that grows in place, as resizable arrays are written. */
static void test_grow(void **state)
{
    (void)state;
    CUdeviceptr base, next, elsewhere;
    OK(cuMemAddressReserve(&base, 2 * STEP, 0, 0, 0));
    OK(cuMemAddressFree(base, 2 * STEP));
    OK(cuMemAddressReserve(&elsewhere, STEP, 0, base, 0));
    assert_int_equal(elsewhere, base); /* a free place is granted */
    OK(cuMemAddressReserve(&next, STEP, 0, base + STEP, 0));
    assert_int_equal(next, base + STEP);
    OK(cuMemAddressFree(next, STEP));
    OK(cuMemAddressReserve(&next, STEP, 0, base, 0)); /* taken: anywhere else */
    assert_true(next != base);
    OK(cuMemAddressFree(next, STEP));
    OK(cuMemAddressFree(elsewhere, STEP));
    OK(cuMemAddressReserve(&base, (size_t)160 << 30, (size_t)1 << 30, 0, 0)); /* more than the memory */
    assert_int_equal(base % ((size_t)1 << 30), 0);
    OK(cuMemAddressFree(base, (size_t)160 << 30));
}

static void test_refused(void **state)
{
    (void)state;
    CUdeviceptr base;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp wrong = prop;
    int fd;
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&base, STEP - 1, 0, 0, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&base, STEP, 3, 0, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(NULL, STEP, 0, 0, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 4096, &prop, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, STEP, &prop, 1));
    wrong.location.id = 1;
    WANT(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&handle, STEP, &wrong, 0));
    wrong.location.id = 0;
    wrong.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    OK(cuMemCreate(&handle, STEP, &wrong, 0));
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemAddressReserve(&base, 2 * STEP, 0, 0, 0));
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(base, 2 * STEP, 0, handle, 0)); /* longer than the memory */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemMap(base - STEP, STEP, 0, handle, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(base, STEP, &read_write, 1)); /* nothing mapped */
    OK(cuMemMap(base, STEP, 0, handle, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemMap(base, STEP, 0, handle, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(base));
    OK(cuMemUnmap(base, STEP));
    OK(cuMemUnmap(base, STEP)); /* nothing is mapped there: no error, on the H200 */
    OK(cuMemAddressFree(base, 2 * STEP));
    OK(cuMemRelease(handle));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)0,
                                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemMap(base, STEP, 0, 0x1234560, 0));
}

/* A kernel may read through a read-only mapping and not write; unmapped addresses fault. */
static void faults(const CUmemAccessDesc *access)
{
    CUdeviceptr base;
    CUmemGenericAllocationHandle handle;
    OK(cuMemAddressReserve(&base, 2 * STEP, 0, 0, 0));
    OK(cuMemCreate(&handle, STEP, &prop, 0));
    OK(cuMemMap(base, STEP, 0, handle, 0));
    OK(cuMemSetAccess(base, STEP, &read_write, 1));
    OK(cuMemsetD8(base, 0, STEP));
    if (access != NULL)
        OK(cuMemSetAccess(base, STEP, access, 1));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, run(add_one, "add_one", access != NULL ? base : base + STEP));
    OK(cuDevicePrimaryCtxReset(0)); /* the context is lost, the mapping is not */
    OK(cuMemUnmap(base, STEP));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(base, 2 * STEP));
}

static void test_read_only(void **state)
{
    (void)state;
    faults(&read_only);
}

static void test_unmapped(void **state)
{
    (void)state;
    faults(NULL);
}

/* ---- a second process ---- */

static const char *self;

struct message {
    CUipcMemHandle handle;
    CUdeviceptr own; /* of the sender */
};

static void send_with_fd(int socket, const struct message *message, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof *message};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    assert_int_equal(sendmsg(socket, &header, 0), sizeof *message);
}

static int receive_with_fd(int socket, struct message *message)
{
    int fd = -1;
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(socket, &header, 0) == sizeof *message && CMSG_FIRSTHDR(&header) != NULL)
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
    return fd;
}

/* What the second process does; its status says what went wrong. */
#define STEP_OK(number, call)       \
    do {                            \
        if ((call) != CUDA_SUCCESS) \
            return number;          \
    } while (0)
static int other(int socket)
{
    struct message message;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr shared, same, mapped;
    CUmemGenericAllocationHandle handle;
    uint32_t word = 0;
    int fd = receive_with_fd(socket, &message);
    if (fd < 0)
        return 1;
    STEP_OK(2, cuInit(0));
    STEP_OK(3, cuDevicePrimaryCtxRetain(&context, 0));
    STEP_OK(4, cuCtxSetCurrent(context));
    STEP_OK(5, cuIpcOpenMemHandle(&shared, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    STEP_OK(6, cuIpcOpenMemHandle(&same, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    if (same != shared)
        return 7;
    STEP_OK(8, cuMemcpyDtoH(&word, shared + 996, 4));
    if (word != 41)
        return 9;
    STEP_OK(10, cuModuleLoadData(&module, add_one));
    STEP_OK(11, cuModuleGetFunction(&function, module, "add_one"));
    CUdeviceptr address = shared + 996;
    void *params[] = {&address};
    STEP_OK(12, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    STEP_OK(13, cuCtxSynchronize());
    if (cuMemFree(shared) == CUDA_SUCCESS || cuMemcpyDtoH(&word, shared + 1000, 4) == CUDA_SUCCESS)
        return 14; /* not ours to free; beyond the allocation */
    STEP_OK(15, cuIpcCloseMemHandle(shared));
    STEP_OK(16, cuMemcpyDtoH(&word, shared + 996, 4)); /* opened twice */
    STEP_OK(17, cuIpcCloseMemHandle(shared));
    if (cuMemcpyDtoH(&word, shared + 996, 4) == CUDA_SUCCESS || cuIpcCloseMemHandle(shared) == CUDA_SUCCESS)
        return 18;
    /* The descriptor of cuMemExportToShareableHandle. */
    STEP_OK(19, cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    STEP_OK(20, cuMemAddressReserve(&mapped, STEP, 0, 0, 0));
    STEP_OK(21, cuMemMap(mapped, STEP, 0, handle, 0));
    STEP_OK(22, cuMemSetAccess(mapped, STEP, &read_write, 1));
    STEP_OK(23, cuMemcpyDtoH(&word, mapped + 4, 4));
    if (word != 43)
        return 24;
    STEP_OK(25, cuMemsetD32(mapped + 4, 44, 1));
    return 0; /* without cleaning up */
}

static void test_processes(void **state)
{
    (void)state;
    int sockets[2], status, fd;
    struct message message;
    uint32_t word = 0;
    CUdeviceptr mapped;
    CUmemGenericAllocationHandle handle;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    OK(cuMemAlloc(&message.own, 1000));
    OK(cuMemsetD32(message.own, 41, 250));
    OK(cuIpcGetMemHandle(&message.handle, message.own + 8)); /* of the whole allocation */
    OK(cuMemCreate(&handle, STEP, &prop, 0));
    OK(cuMemAddressReserve(&mapped, STEP, 0, 0, 0));
    OK(cuMemMap(mapped, STEP, 0, handle, 0));
    OK(cuMemSetAccess(mapped, STEP, &read_write, 1));
    OK(cuMemsetD32(mapped, 43, 2));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    const pid_t child = fork();
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", sockets[1]);
        execl(self, self, number, (char *)NULL);
        _exit(100);
    }
    send_with_fd(sockets[0], &message, fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    OK(cuMemcpyDtoH(&word, message.own + 996, 4));
    assert_int_equal(word, 42); /* what the other process's kernel wrote */
    OK(cuMemcpyDtoH(&word, mapped + 4, 4));
    assert_int_equal(word, 44);
    /* Here the handle is this process's own; freed memory is shared no more. */
    CUdeviceptr opened;
    WANT(CUDA_ERROR_INVALID_CONTEXT,
         cuIpcOpenMemHandle(&opened, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    WANT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(&opened, message.handle, 0));
    OK(cuMemFree(message.own));
    WANT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&message.handle, message.own));
    WANT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&message.handle, mapped));
    memset(&message.handle, 0, sizeof message.handle);
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuIpcOpenMemHandle(&opened, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuMemUnmap(mapped, STEP));
    OK(cuMemAddressFree(mapped, STEP));
    OK(cuMemRelease(handle));
    close(fd);
    close(sockets[0]);
    close(sockets[1]);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1)
        return other(atoi(argv[1]));
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_map),       IN_CONTEXT(test_grow),     IN_CONTEXT(test_refused),
        IN_CONTEXT(test_read_only), IN_CONTEXT(test_unmapped), IN_CONTEXT(test_processes),
    };
    return RUN_ALONE(tests);
}
