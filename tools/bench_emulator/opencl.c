/* The textbook reduction on an OpenCL device of the CPU, for tools/bench-emulator --opencl: prints one JSON
   object as bench.c does. Which device that is (PoCL's, mostly) is printed on standard error.

   usage: opencl reduce.cl REPEATS */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N      UINT64_C(16776605)
#define BLOCK  256u
#define GROUPS ((N + 2 * BLOCK - 1) / (2 * BLOCK))

static void check(cl_int status, const char *what)
{
    if (status != CL_SUCCESS) {
        fprintf(stderr, "opencl: %s: error %d\n", what, (int)status);
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    static char source[65536];
    static float sums[GROUPS];
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    char name[256] = "";
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: opencl reduce.cl REPEATS\n");
        return 2;
    }
    const size_t bytes = fread(source, 1, sizeof source - 1, file);
    const char *text = source;
    const unsigned repeats = (unsigned)strtoul(argv[2], NULL, 10);
    fclose(file);
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL), "clGetDeviceIDs");
    check(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL), "clGetDeviceInfo");
    fprintf(stderr, "opencl: %s\n", name);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    cl_program program = clCreateProgramWithSource(context, 1, &text, &bytes, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "reduce", &status);
    check(status, "clCreateKernel");
    float *ones = malloc(N * sizeof *ones);
    for (uint64_t i = 0; ones && i < N; i++) {
        ones[i] = 1;
    }
    cl_mem input = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, N * 4, ones, &status);
    check(status, "clCreateBuffer");
    cl_mem output = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof sums, NULL, &status);
    check(status, "clCreateBuffer");
    const cl_ulong n = N;
    const size_t global = GROUPS * BLOCK, local = BLOCK;
    check(clSetKernelArg(kernel, 0, sizeof input, &input), "clSetKernelArg");
    check(clSetKernelArg(kernel, 1, sizeof output, &output), "clSetKernelArg");
    check(clSetKernelArg(kernel, 2, sizeof n, &n), "clSetKernelArg");
    check(clSetKernelArg(kernel, 3, BLOCK * 4, NULL), "clSetKernelArg");
    printf("{\"name\": \"reduction, OpenCL\", \"set\": \"-\", \"threads\": 0, \"thread_instructions\": 0, "
           "\"seconds\": [");
    for (unsigned r = 0; r <= repeats; r++) { /* the first is to warm: it compiles */
        const double start = now();
        check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL),
              "clEnqueueNDRangeKernel");
        check(clFinish(queue), "clFinish");
        const double took = now() - start;
        check(clEnqueueReadBuffer(queue, output, CL_TRUE, 0, sizeof sums, sums, 0, NULL, NULL),
              "clEnqueueReadBuffer");
        double sum = 0;
        for (size_t i = 0; i < GROUPS; i++) {
            sum += (double)sums[i];
        }
        check(sum == (double)N ? CL_SUCCESS : -1, "the sum is wrong");
        if (r > 0) {
            printf("%s%.6f", r > 1 ? ", " : "", took);
        }
    }
    printf("]}\n");
    free(ones);
    return 0;
}
