// Tables of IEEE arithmetic: for input i, a kernel writes COUNT results to out[i * COUNT + k]; the comment before a
// kernel for f32 gives their k, also for f64. The order of four rounding modes is rn (to nearest even), rz (to zero),
// ru (up), rd (down).
#define INDEX                                            \
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;  \
    if (i >= n)                                          \
        return
#define FOUR(at, f, ...)            \
    r[(at) + 0] = f##_rn(__VA_ARGS__); \
    r[(at) + 1] = f##_rz(__VA_ARGS__); \
    r[(at) + 2] = f##_ru(__VA_ARGS__); \
    r[(at) + 3] = f##_rd(__VA_ARGS__);

// 0..3 a + b, 4..7 a - b, 8..11 a * b, 12..15 a / b
extern "C" __global__ void f32_binary(const float* a, const float* b, float* out, unsigned n)
{
    INDEX;
    float x = a[i], y = b[i];
    float* r = out + (size_t)i * 16;
    FOUR(0, __fadd, x, y)
    FOUR(4, __fsub, x, y)
    FOUR(8, __fmul, x, y)
    FOUR(12, __fdiv, x, y)
}

extern "C" __global__ void f64_binary(const double* a, const double* b, double* out, unsigned n)
{
    INDEX;
    double x = a[i], y = b[i];
    double* r = out + (size_t)i * 16;
    FOUR(0, __dadd, x, y)
    FOUR(4, __dsub, x, y)
    FOUR(8, __dmul, x, y)
    FOUR(12, __ddiv, x, y)
}

// 0..3 a * b + c with one rounding
extern "C" __global__ void f32_fma(const float* a, const float* b, const float* c, float* out, unsigned n)
{
    INDEX;
    float* r = out + (size_t)i * 4;
    FOUR(0, __fmaf, a[i], b[i], c[i])
}

extern "C" __global__ void f64_fma(const double* a, const double* b, const double* c, double* out, unsigned n)
{
    INDEX;
    double* r = out + (size_t)i * 4;
    FOUR(0, __fma, a[i], b[i], c[i])
}

// 0..3 square root
extern "C" __global__ void f32_sqrt(const float* a, float* out, unsigned n)
{
    INDEX;
    float* r = out + (size_t)i * 4;
    FOUR(0, __fsqrt, a[i])
}

extern "C" __global__ void f64_sqrt(const double* a, double* out, unsigned n)
{
    INDEX;
    double* r = out + (size_t)i * 4;
    FOUR(0, __dsqrt, a[i])
}

// 0..3 reciprocal
extern "C" __global__ void f32_rcp(const float* a, float* out, unsigned n)
{
    INDEX;
    float* r = out + (size_t)i * 4;
    FOUR(0, __frcp, a[i])
}

extern "C" __global__ void f64_rcp(const double* a, double* out, unsigned n)
{
    INDEX;
    double* r = out + (size_t)i * 4;
    FOUR(0, __drcp, a[i])
}

// Operations without rounding, and comparisons: 0 neg a, 1 abs a, 2 min, 3 max, 4 copysign(a, b), 5 a < b ? a : b,
// 6 the sum of these bits, as a number: 1 a == b, 2 a != b (true for NaN), 4 a < b, 8 a <= b, 16 a > b, 32 a >= b,
// 64 a is NaN, 128 !(a < b) (true for NaN)
extern "C" __global__ void f32_order(const float* a, const float* b, float* out, unsigned n)
{
    INDEX;
    float x = a[i], y = b[i];
    float* r = out + (size_t)i * 7;
    r[0] = -x;
    r[1] = fabsf(x);
    r[2] = fminf(x, y);
    r[3] = fmaxf(x, y);
    r[4] = copysignf(x, y);
    r[5] = x < y ? x : y;
    r[6] = (float)((x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (x > y) << 4 | (x >= y) << 5
                   | (x != x) << 6 | !(x < y) << 7);
}

extern "C" __global__ void f64_order(const double* a, const double* b, double* out, unsigned n)
{
    INDEX;
    double x = a[i], y = b[i];
    double* r = out + (size_t)i * 7;
    r[0] = -x;
    r[1] = fabs(x);
    r[2] = fmin(x, y);
    r[3] = fmax(x, y);
    r[4] = copysign(x, y);
    r[5] = x < y ? x : y;
    r[6] = (double)((x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (x > y) << 4 | (x >= y) << 5
                    | (x != x) << 6 | !(x < y) << 7);
}

// Flush-to-zero and saturating operations, in PTX: 0 add.ftz, 1 sub.ftz, 2 mul.ftz, 3 fma.rn.ftz (a * b + a),
// 4 div.rn.ftz, 5 sqrt.rn.ftz a, 6 add.sat, 7 mul.sat, 8 fma.rn.sat (a * b + a), 9 add.rz.ftz.sat, 10 min.ftz,
// 11 max.ftz, 12 abs.ftz a, 13 neg.ftz a
extern "C" __global__ void f32_flush(const float* a, const float* b, float* out, unsigned n)
{
    INDEX;
    float x = a[i], y = b[i], t;
    float* r = out + (size_t)i * 14;
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(t) : "f"(x), "f"(y)); r[0] = t;
    asm("sub.ftz.f32 %0, %1, %2;" : "=f"(t) : "f"(x), "f"(y)); r[1] = t;
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(t) : "f"(x), "f"(y)); r[2] = t;
    asm("fma.rn.ftz.f32 %0, %1, %2, %1;" : "=f"(t) : "f"(x), "f"(y)); r[3] = t;
    asm("div.rn.ftz.f32 %0, %1, %2;" : "=f"(t) : "f"(x), "f"(y)); r[4] = t;
    asm("sqrt.rn.ftz.f32 %0, %1;" : "=f"(t) : "f"(x)); r[5] = t;
    asm("add.sat.f32 %0, %1, %2;" : "=f"(t) : "f"(x), "f"(y)); r[6] = t;
    asm("mul.sat.f32 %0, %1, %2;" : "=f"(t) : "f"(x), "f"(y)); r[7] = t;
    asm("fma.rn.sat.f32 %0, %1, %2, %1;" : "=f"(t) : "f"(x), "f"(y)); r[8] = t;
    asm("add.rz.ftz.sat.f32 %0, %1, %2;" : "=f"(t) : "f"(x), "f"(y)); r[9] = t;
    asm("min.ftz.f32 %0, %1, %2;" : "=f"(t) : "f"(x), "f"(y)); r[10] = t;
    asm("max.ftz.f32 %0, %1, %2;" : "=f"(t) : "f"(x), "f"(y)); r[11] = t;
    asm("abs.ftz.f32 %0, %1;" : "=f"(t) : "f"(x)); r[12] = t;
    asm("neg.ftz.f32 %0, %1;" : "=f"(t) : "f"(x)); r[13] = t;
}
