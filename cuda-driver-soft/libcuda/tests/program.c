/* A C program that includes cuda.h and makes the calls of a typical Driver API program. It does not depend on the
   software driver. Usage: program KERNELS.ptx; the file has the kernel
   vector_add(const float *a, const float *b, float *c, int n). */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *call, CUresult code, int line) {
    const char *name = NULL, *text = NULL;
    cuGetErrorName(code, &name);
    cuGetErrorString(code, &text);
    printf("line %d: %s: %s (%d): %s\n", line, call, name ? name : "?", (int)code, text ? text : "?");
    exit(1);
}

#define CHECK(call) \
    do { \
        CUresult code_ = (call); \
        if (code_ != CUDA_SUCCESS) fail(#call, code_, __LINE__); \
    } while (0)

#define EXPECT(call, number) \
    do { \
        CUresult code_ = (call); \
        if (code_ != (number)) fail(#call " should return " #number, code_, __LINE__); \
    } while (0)

enum { N = 50000, THREADS = 256 };

static float a[N], b[N], c[N];

/* Returns the number of the first wrong element, counted from 1, or 0 if all are right. */
static int wrong(void) {
    for (int i = 0; i < N; i++)
        if (c[i] != a[i] + b[i]) return i + 1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int version = 0, count = 0;
    CHECK(cuInit(0));
    CHECK(cuDriverGetVersion(&version));
    CHECK(cuDeviceGetCount(&count));
    if (count == 0) {
        printf("There is no device supporting CUDA.\n");
        return 1;
    }
    CUdevice device;
    char name[128];
    size_t bytes = 0;
    int major = 0, minor = 0;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDeviceTotalMem(&bytes, device));
    CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    CHECK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    printf("CUDA %d.%d, %s, compute capability %d.%d\n", version / 1000, version % 1000 / 10, name, major, minor);

    CUcontext context;
#if CUDA_VERSION >= 13000
    CHECK(cuCtxCreate(&context, NULL, 0, device));
#else
    CHECK(cuCtxCreate(&context, 0, device));
#endif

    /* cuCtxAttach adds 1 to the usage count of the current context, and cuCtxDetach subtracts 1. */
    CUcontext mine = NULL, current = NULL;
    CHECK(cuCtxAttach(&mine, 0));
    if (mine != context) return 1;
    CHECK(cuCtxDetach(mine));
    CHECK(cuCtxPopCurrent(&current));
    if (current != context) return 1;
    EXPECT(cuCtxAttach(&mine, 0), CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cuCtxPushCurrent(context));

    CUmodule module;
    CUfunction vector_add, none;
    CHECK(cuModuleLoad(&module, argv[1]));
    CHECK(cuModuleGetFunction(&vector_add, module, "vector_add"));
    EXPECT(cuModuleGetFunction(&none, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);

    for (int i = 0; i < N; i++) {
        a[i] = (float)i * 0.5f;
        b[i] = (float)(N - i);
    }
    CUdeviceptr da, db, dc;
    CHECK(cuMemAlloc(&da, sizeof a));
    CHECK(cuMemAlloc(&db, sizeof b));
    CHECK(cuMemAlloc(&dc, sizeof c));
    CHECK(cuMemcpyHtoD(da, a, sizeof a));
    CHECK(cuMemcpyHtoD(db, b, sizeof b));

    /* Passes the arguments as an array of pointers. */
    int n = N;
    unsigned blocks = (N + THREADS - 1) / THREADS;
    void *arguments[] = {&da, &db, &dc, &n};
    CHECK(cuLaunchKernel(vector_add, blocks, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL));
    CHECK(cuMemcpyDtoH(c, dc, sizeof c));
    if (wrong()) {
        printf("pointer array: element %d is %g\n", wrong() - 1, c[wrong() - 1]);
        return 1;
    }

    /* Passes the arguments in a buffer, each at the next multiple of its alignment. */
    CHECK(cuMemsetD8(dc, 0, sizeof c));
    char packed[64];
    size_t used = 0;
#define ADD(value) \
    do { \
        used = (used + __alignof(value) - 1) / __alignof(value) * __alignof(value); \
        memcpy(packed + used, &(value), sizeof(value)); \
        used += sizeof(value); \
    } while (0)
    ADD(da);
    ADD(db);
    ADD(dc);
    ADD(n);
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &used, CU_LAUNCH_PARAM_END,
    };
    CHECK(cuLaunchKernel(vector_add, blocks, 1, 1, THREADS, 1, 1, 0, NULL, NULL, extra));
    CHECK(cuMemcpyDtoH(c, dc, sizeof c));
    if (wrong()) {
        printf("buffer: element %d is %g\n", wrong() - 1, c[wrong() - 1]);
        return 1;
    }

    /* Functions that are requested by name have the same addresses as those that the linker found. */
    void *found = NULL;
#if CUDA_VERSION >= 12000
    CUdriverProcAddressQueryResult status;
    CHECK(cuGetProcAddress("cuLaunchKernel", &found, 4000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    if (found != (void *)&cuLaunchKernel) {
        printf("cuGetProcAddress returns another cuLaunchKernel\n");
        return 1;
    }
#endif

    CHECK(cuMemFree(da));
    CHECK(cuMemFree(db));
    CHECK(cuMemFree(dc));
    CHECK(cuModuleUnload(module));
    /* The last detach destroys the context. */
    CHECK(cuCtxDetach(context));
    EXPECT(cuCtxDetach(context), CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cuCtxGetCurrent(&current));
    if (current != NULL) return 1;
    printf("Result = PASS\n");
    return 0;
}
