// Matrix products D = A * B + C of one warp (`mma`, `wmma`), and `ldmatrix`; they need compute_80. Inline PTX, so that
// no header is needed: 16-bit numbers are bit patterns. A is m x k, B is k x n, C and D are m x n, all row-major in
// memory unless the kernel's comment says otherwise.

__device__ __forceinline__ unsigned pair(unsigned short low, unsigned short high) { return low | (unsigned)high << 16; }

// m16n8k16 of f16 or bf16, accumulated in f32.
#define MMA_HALF(name, types)                                                                                          \
    extern "C" __global__ void name(const unsigned short* a, const unsigned short* b, const float* c, float* d)        \
    {                                                                                                                  \
        unsigned g = threadIdx.x / 4, t = threadIdx.x % 4, x[4], y[2];                                                 \
        float z[4];                                                                                                    \
        for (unsigned r = 0; r < 4; r++) {                                                                             \
            const unsigned short* p = a + (g + r % 2 * 8) * 16 + t * 2 + r / 2 * 8;                                    \
            x[r] = pair(p[0], p[1]);                                                                                   \
            z[r] = c[(g + r / 2 * 8) * 8 + t * 2 + r % 2];                                                             \
        }                                                                                                              \
        for (unsigned r = 0; r < 2; r++)                                                                               \
            y[r] = pair(b[(t * 2 + r * 8) * 8 + g], b[(t * 2 + r * 8 + 1) * 8 + g]);                                   \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." types ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "     \
                     "{%0,%1,%2,%3};"                                                                                  \
                     : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3])                                                  \
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));                              \
        for (unsigned r = 0; r < 4; r++)                                                                               \
            d[(g + r / 2 * 8) * 8 + t * 2 + r % 2] = z[r];                                                             \
    }
MMA_HALF(mma_f16, "f16.f16")
MMA_HALF(mma_bf16, "bf16.bf16")

// m16n8k8 of f16, accumulated in f16.
extern "C" __global__ void mma_f16_f16(const unsigned short* a, const unsigned short* b, const unsigned short* c,
                                       unsigned short* d)
{
    unsigned g = threadIdx.x / 4, t = threadIdx.x % 4, x[2], y, z[2];
    for (unsigned r = 0; r < 2; r++) {
        const unsigned short* p = a + (g + r * 8) * 8 + t * 2;
        x[r] = pair(p[0], p[1]);
        p = c + (g + r * 8) * 8 + t * 2;
        z[r] = pair(p[0], p[1]);
    }
    y = pair(b[t * 2 * 8 + g], b[(t * 2 + 1) * 8 + g]);
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                 : "+r"(z[0]), "+r"(z[1]) : "r"(x[0]), "r"(x[1]), "r"(y));
    for (unsigned r = 0; r < 2; r++) {
        d[(g + r * 8) * 8 + t * 2] = (unsigned short)z[r];
        d[(g + r * 8) * 8 + t * 2 + 1] = (unsigned short)(z[r] >> 16);
    }
}

// m16n8k8 of tf32, accumulated in f32.
extern "C" __global__ void mma_tf32(const unsigned* a, const unsigned* b, const float* c, float* d)
{
    unsigned g = threadIdx.x / 4, t = threadIdx.x % 4, x[4], y[2];
    float z[4];
    for (unsigned r = 0; r < 4; r++) {
        x[r] = a[(g + r % 2 * 8) * 8 + t + r / 2 * 4];
        z[r] = c[(g + r / 2 * 8) * 8 + t * 2 + r % 2];
    }
    for (unsigned r = 0; r < 2; r++)
        y[r] = b[(t + r * 4) * 8 + g];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    for (unsigned r = 0; r < 4; r++)
        d[(g + r / 2 * 8) * 8 + t * 2 + r % 2] = z[r];
}

// m16n8k32 of signed bytes (A) and unsigned bytes (B), without saturation in d[0..128), with it in d[128..256).
extern "C" __global__ void mma_s8(const unsigned char* a, const unsigned char* b, const int* c, int* d)
{
    unsigned g = threadIdx.x / 4, t = threadIdx.x % 4, x[4] = {0, 0, 0, 0}, y[2] = {0, 0};
    int z[4], w[4];
    for (unsigned r = 0; r < 4; r++) {
        for (unsigned e = 0; e < 4; e++)
            x[r] |= (unsigned)a[(g + r % 2 * 8) * 32 + t * 4 + e + r / 2 * 16] << 8 * e;
        z[r] = w[r] = c[(g + r / 2 * 8) * 8 + t * 2 + r % 2];
    }
    for (unsigned r = 0; r < 2; r++)
        for (unsigned e = 0; e < 4; e++)
            y[r] |= (unsigned)b[(t * 4 + e + r * 16) * 8 + g] << 8 * e;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(z[0]), "+r"(z[1]), "+r"(z[2]), "+r"(z[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    for (unsigned r = 0; r < 4; r++) {
        d[(g + r / 2 * 8) * 8 + t * 2 + r % 2] = z[r];
        d[128 + (g + r / 2 * 8) * 8 + t * 2 + r % 2] = w[r];
    }
}

// m8n8k4 of f64.
extern "C" __global__ void mma_f64(const double* a, const double* b, const double* c, double* d)
{
    unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
    double z0 = c[g * 8 + t * 2], z1 = c[g * 8 + t * 2 + 1];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(z0), "+d"(z1) : "d"(a[g * 4 + t]), "d"(b[t * 8 + g]));
    d[g * 8 + t * 2] = z0;
    d[g * 8 + t * 2 + 1] = z1;
}

// Loads four 8 x 8 matrices, one below the other in `in`: out[lane * 4 + matrix], then the same transposed, then only
// the first two at out[256 + lane * 2 + matrix].
extern "C" __global__ void load_matrix(const unsigned short* in, unsigned* out)
{
    __shared__ __align__(16) unsigned short place[32 * 8];
    unsigned lane = threadIdx.x, x[4];
    for (unsigned i = 0; i < 8; i++)
        place[lane * 8 + i] = in[lane * 8 + i];
    __syncwarp();
    unsigned at = (unsigned)__cvta_generic_to_shared(place + lane * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
    for (unsigned i = 0; i < 4; i++)
        out[lane * 4 + i] = x[i];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
    for (unsigned i = 0; i < 4; i++)
        out[128 + lane * 4 + i] = x[i];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(x[0]), "=r"(x[1]) : "r"(at) : "memory");
    out[256 + lane * 2] = x[0];
    out[256 + lane * 2 + 1] = x[1];
}

// wmma m16n16k16 of f16, accumulated in f32. `a` is row-major with a row stride of `stride` elements, `b` column-major,
// `c` and `d` row-major; 2 * d follows at d[256] in column-major order, stored through shared memory.
extern "C" __global__ void wmma_f16(const unsigned short* a, const unsigned short* b, const float* c, float* d,
                                    unsigned stride)
{
    __shared__ __align__(32) float place[256];
    unsigned x[8], y[8];
    float z[8];
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]), "=r"(x[4]), "=r"(x[5]), "=r"(x[6]), "=r"(x[7])
                 : "l"(__cvta_generic_to_global(a)), "r"(stride) : "memory");
    asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
                 : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3]), "=r"(y[4]), "=r"(y[5]), "=r"(y[6]), "=r"(y[7])
                 : "l"(b) : "memory");
    asm volatile("wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], 16;"
                 : "=f"(z[0]), "=f"(z[1]), "=f"(z[2]), "=f"(z[3]), "=f"(z[4]), "=f"(z[5]), "=f"(z[6]), "=f"(z[7])
                 : "l"(__cvta_generic_to_global(c)) : "memory");
    asm volatile("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11,%12,%13,%14,%15}, "
                 "{%16,%17,%18,%19,%20,%21,%22,%23}, {%0,%1,%2,%3,%4,%5,%6,%7};"
                 : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3]), "+f"(z[4]), "+f"(z[5]), "+f"(z[6]), "+f"(z[7])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]), "r"(y[0]),
                   "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8};"
                 : : "l"(__cvta_generic_to_global(d)), "f"(z[0]), "f"(z[1]), "f"(z[2]), "f"(z[3]), "f"(z[4]), "f"(z[5]),
                     "f"(z[6]), "f"(z[7]) : "memory");
    // The elements of a fragment may be changed individually.
    for (unsigned i = 0; i < 8; i++)
        z[i] *= 2;
    asm volatile("wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, 16;"
                 : : "r"((unsigned)__cvta_generic_to_shared(place)), "f"(z[0]), "f"(z[1]), "f"(z[2]), "f"(z[3]), "f"(z[4]),
                     "f"(z[5]), "f"(z[6]), "f"(z[7]) : "memory");
    __syncwarp();
    for (unsigned i = threadIdx.x; i < 256; i += 32)
        d[256 + i] = place[i];
}

// wmma m8n32k16 of signed bytes, with C = 0: a, b and d row-major.
extern "C" __global__ void wmma_s8(const signed char* a, const signed char* b, int* d)
{
    unsigned x, y[4];
    int z[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    asm volatile("wmma.load.a.sync.aligned.row.m8n32k16.s8 {%0}, [%1], 16;" : "=r"(x) : "l"(a) : "memory");
    asm volatile("wmma.load.b.sync.aligned.row.m8n32k16.s8 {%0,%1,%2,%3}, [%4], 32;"
                 : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3]) : "l"(b) : "memory");
    asm volatile("wmma.mma.sync.aligned.row.row.m8n32k16.s32.s8.s8.s32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8}, {%9,%10,%11,%12}, "
                 "{%0,%1,%2,%3,%4,%5,%6,%7};"
                 : "+r"(z[0]), "+r"(z[1]), "+r"(z[2]), "+r"(z[3]), "+r"(z[4]), "+r"(z[5]), "+r"(z[6]), "+r"(z[7])
                 : "r"(x), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]));
    asm volatile("wmma.store.d.sync.aligned.row.m8n32k16.s32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, 32;"
                 : : "l"(d), "r"(z[0]), "r"(z[1]), "r"(z[2]), "r"(z[3]), "r"(z[4]), "r"(z[5]), "r"(z[6]), "r"(z[7]) : "memory");
}
