/* A driver that does nothing, and callers of it in C: what there is to compare with. */

typedef unsigned int u32;

u32 cuInit(u32 flags) { (void)flags; return 0; }
u32 cuDriverGetVersion(int *version) { *version = 13000; return 0; }
u32 cuCtxGetCurrent(void **context) { *context = 0; return 0; }
u32 cuMemAlloc_v2(unsigned long long *address, unsigned long size) { *address = size; return 0; }
u32 cuLaunchKernel(void *function, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, void *stream,
                   void **params, void **extra) {
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
    (void)shared, (void)stream, (void)params, (void)extra;
    return 0;
}

/* Calls go through pointers that are kept in variables, as in a program that used dlsym; `volatile` keeps the compiler from
   reading them once for all calls. */
static u32 (*volatile version_pointer)(int *) = cuDriverGetVersion;
static u32 (*volatile alloc_pointer)(unsigned long long *, unsigned long) = cuMemAlloc_v2;
static u32 (*volatile launch_pointer)(void *, u32, u32, u32, u32, u32, u32, u32, void *, void **, void **) = cuLaunchKernel;

u32 bench_version(unsigned long rounds) {
    u32 sum = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        int version;
        sum += version_pointer(&version);
        __asm__ volatile("" : : "r"(version) : "memory");
    }
    return sum;
}

u32 bench_alloc(unsigned long rounds) {
    u32 sum = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        unsigned long long address;
        sum += alloc_pointer(&address, i);
        __asm__ volatile("" : : "r"(address) : "memory");
    }
    return sum;
}

u32 bench_launch_once(unsigned long rounds) {
    u32 sum = 0;
    unsigned long long a = 1, b = 2, c = 3;
    u32 n = 4;
    void *params[] = {&a, &b, &c, &n};
    for (unsigned long i = 0; i < rounds; i++)
        sum += launch_pointer((void *)1, 196, 1, 1, 256, 1, 1, 0, (void *)2, params, 0);
    return sum;
}

u32 bench_launch_each(unsigned long rounds) {
    u32 sum = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        unsigned long long a = i, b = 2, c = 3;
        u32 n = 4;
        void *params[] = {&a, &b, &c, &n};
        sum += launch_pointer((void *)1, 196, 1, 1, 256, 1, 1, 0, (void *)2, params, 0);
    }
    return sum;
}
