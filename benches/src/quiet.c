/* A driver that does nothing: its functions only write their results and return success. The benchmarks measure
   the layers above it. */

typedef unsigned int u32;

u32 cuInit(u32 flags) { (void)flags; return 0; }
u32 cuDriverGetVersion(int *version) { *version = 13000; return 0; }
u32 cuCtxGetCurrent(void **context) { *context = 0; return 0; }
u32 cuMemAlloc_v2(unsigned long long *address, unsigned long size) { *address = size; return 0; }
u32 cuStreamSynchronize(void *stream) { (void)stream; return 0; }
u32 cuLaunchKernel(void *function, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, void *stream,
                   void **params, void **extra) {
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
    (void)shared, (void)stream, (void)params, (void)extra;
    return 0;
}
