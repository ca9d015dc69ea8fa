/* .target and .version on every emulated device (data/targets.txt): each device in a child of its own. */
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api_test.h"

#define MAX_COLUMNS 16

static CUresult try_load(const char *version, const char *target)
{
    char text[256];
    CUmodule module = NULL;
    snprintf(text, sizeof text, ".version %s\n.target %s\n.address_size 64\n.visible .entry e() { ret; }\n",
             version, target);
    CUresult result = cuModuleLoadData(&module, text);
    if (result == CUDA_SUCCESS)
        OK(cuModuleUnload(module));
    return result;
}

/* One column of the table, in a process that has that device. */
static int check_device(const char *arch, int column)
{
    void *context;
    char line[256], target[32], cells[MAX_COLUMNS][8];
    int bad = 0, rows = 0;
    setenv("CLUSTERLAB_EMU_ARCH", arch, 1);
    with_context(&context);
    FILE *file = fopen("data/targets.txt", "r");
    if (file == NULL)
        return 1;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#' || strncmp(line, "target", 6) == 0)
            continue;
        if (sscanf(line, "%31s %7s %7s %7s %7s %7s %7s", target, cells[0], cells[1], cells[2], cells[3],
                   cells[4], cells[5]) != 7)
            return 1;
        CUresult wanted = cells[column][0] == '+' ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
        CUresult got = try_load("9.0", target);
        if (got != wanted) {
            print_error("%s on %s: wanted %d, got %d\n", target, arch, (int)wanted, (int)got);
            bad = 1;
        }
        rows++;
    }
    fclose(file);
    return bad || rows < 10;
}

static void in_child(int (*body)(const char *, int), const char *arch, int column)
{
    pid_t child = fork();
    if (child == 0)
        exit(body(arch, column));
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_targets(void **state)
{
    (void)state;
    static const char *const devices[] = {"sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};
    for (int i = 0; i < 6; i++)
        in_child(check_device, devices[i], i);
}

/* `driver`: CLUSTERLAB_EMU_DRIVER. Without it any version is taken whose instructions are known. */
static int check_versions(const char *driver, int ignored)
{
    void *context;
    (void)ignored;
    if (driver[0] != '\0')
        setenv("CLUSTERLAB_EMU_DRIVER", driver, 1);
    with_context(&context);
    bool strict = strcmp(driver, "13.0") == 0, old = strcmp(driver, "12.4") == 0;
    WANT(old ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_SUCCESS, try_load("8.5", "sm_90"));
    WANT(CUDA_SUCCESS, try_load("8.4", "sm_90"));
    WANT(old ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_SUCCESS, try_load("9.0", "sm_90"));
    WANT(old || strict ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_SUCCESS, try_load("9.1", "sm_90"));
    WANT(old || strict ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_SUCCESS, try_load("9.2", "sm_90"));
    return 0;
}

static void test_versions(void **state)
{
    (void)state;
    in_child(check_versions, "", 0);
    in_child(check_versions, "13.0", 0);
    in_child(check_versions, "12.4", 0);
}

/* What each device takes under the 13.0 driver and without it: .version and .target apart (H200, driver
   580.159.04, 2026-11-30: as ptxas, and a module without functions with any .version), and targets that do
   not exist. */
static int check_acceptance(const char *arch, int strict)
{
    void *context;
    setenv("CLUSTERLAB_EMU_ARCH", arch, 1);
    if (strict)
        setenv("CLUSTERLAB_EMU_DRIVER", "13.0", 1);
    with_context(&context);
    WANT(CUDA_ERROR_INVALID_PTX, try_load("7.0", arch));
    WANT(CUDA_ERROR_INVALID_PTX, try_load("1.4", "sm_10, map_f64_to_f32")); /* .address_size is newer */
    OK(try_load("2.3", "sm_20"));
    OK(try_load("8.8", "sm_90"));
    WANT(strict ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_SUCCESS, try_load("9.3", "sm_90"));
    WANT(CUDA_ERROR_INVALID_PTX, try_load("9.0", "sm_77"));
    WANT(CUDA_ERROR_INVALID_PTX, try_load("9.0", "sm_80a"));
    WANT(CUDA_ERROR_INVALID_PTX, try_load("9.0", "sm_130"));
    OK(try_load("9.0", "compute_90")); /* sm_90 by another name: H200 */
    WANT(CUDA_ERROR_INVALID_PTX, try_load("9.0", "compute_99"));
    OK(try_load("9.0", "compute_80"));
    return 0;
}

static void test_acceptance(void **state)
{
    (void)state;
    static const char *const devices[] = {"sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};
    for (int i = 0; i < 12; i++)
        in_child(check_acceptance, devices[i / 2], i % 2);
}

/* No device counts clusters as active that it would refuse to launch, up to the sizes that exist anywhere. */
static int check_clusters(const char *arch, int most)
{
    void *context;
    setenv("CLUSTERLAB_EMU_ARCH", arch, 1);
    with_context(&context);
    CUfunction e = load(HEADER ".visible .entry e() { ret; }", "e");
    OK(cuFuncSetAttribute(e, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    for (unsigned size = 1; size <= 16; size++) {
        int count = -1;
        CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                     .value.clusterDim = {size, 1, 1}};
        CUlaunchConfig config = {.gridDimX = size,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 32,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .attrs = &cluster,
                                 .numAttrs = 1};
        OK(cuOccupancyMaxActiveClusters(&count, e, &config));
        CUresult launched = cuLaunchKernelEx(&config, e, NULL, NULL);
        WANT(size <= (unsigned)most ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE, launched);
        assert_int_equal(count > 0, launched == CUDA_SUCCESS);
    }
    OK(cuCtxSynchronize());
    return 0;
}

static void test_clusters(void **state)
{
    (void)state;
    in_child(check_clusters, "sm_90", 16);
    in_child(check_clusters, "sm_100", 16);
    in_child(check_clusters, "sm_110", 8);
    in_child(check_clusters, "sm_121", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_acceptance),
        cmocka_unit_test(test_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
