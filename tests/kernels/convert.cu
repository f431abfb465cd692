// Tables of conversions: for input i, a kernel writes COUNT results to out[i * COUNT + k]; the comment before a kernel
// gives their k. The order of four rounding modes is rn (to nearest even), rz (to zero), ru (up), rd (down).
typedef unsigned long long u64;
typedef long long s64;
#define INDEX                                            \
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;  \
    if (i >= n)                                          \
        return
#define FOUR(at, f, x)         \
    r[(at) + 0] = f##_rn(x);   \
    r[(at) + 1] = f##_rz(x);   \
    r[(at) + 2] = f##_ru(x);   \
    r[(at) + 3] = f##_rd(x);

// 0..3 to s32 (sign-extended), 4..7 to u32, 8..11 to s64, 12..15 to u64
extern "C" __global__ void f32_to_int(const float* a, s64* out, unsigned n)
{
    INDEX;
    float x = a[i];
    s64* r = out + (size_t)i * 16;
    FOUR(0, __float2int, x)
    FOUR(4, __float2uint, x)
    FOUR(8, __float2ll, x)
    FOUR(12, __float2ull, x)
}

// As for f32_to_int.
extern "C" __global__ void f64_to_int(const double* a, s64* out, unsigned n)
{
    INDEX;
    double x = a[i];
    s64* r = out + (size_t)i * 16;
    FOUR(0, __double2int, x)
    FOUR(4, __double2uint, x)
    FOUR(8, __double2ll, x)
    FOUR(12, __double2ull, x)
}

// 0..3 from s32 (the low half of a), 4..7 from u32 (the low half), 8..11 from s64, 12..15 from u64
extern "C" __global__ void int_to_f32(const s64* a, float* out, unsigned n)
{
    INDEX;
    s64 x = a[i];
    float* r = out + (size_t)i * 16;
    FOUR(0, __int2float, (int)x)
    FOUR(4, __uint2float, (unsigned)x)
    FOUR(8, __ll2float, x)
    FOUR(12, __ull2float, (u64)x)
}

// 0 from s32, 1 from u32 (both exact), 2..5 from s64, 6..9 from u64
extern "C" __global__ void int_to_f64(const s64* a, double* out, unsigned n)
{
    INDEX;
    s64 x = a[i];
    double* r = out + (size_t)i * 10;
    r[0] = __int2double_rn((int)x);
    r[1] = __uint2double_rn((unsigned)x);
    FOUR(2, __ll2double, x)
    FOUR(6, __ull2double, (u64)x)
}

// 0..3 the f32 of a double
extern "C" __global__ void f64_to_f32(const double* a, float* out, unsigned n)
{
    INDEX;
    float* r = out + (size_t)i * 4;
    FOUR(0, __double2float, a[i])
}

// The double of an f32, exact.
extern "C" __global__ void f32_to_f64(const float* a, double* out, unsigned n)
{
    INDEX;
    out[i] = (double)a[i];
}

// To a whole number as a float: 0 to nearest even, 1 to zero, 2 up, 3 down; 4 clamped to [0, 1], NaN to 0
extern "C" __global__ void f32_round(const float* a, float* out, unsigned n)
{
    INDEX;
    float x = a[i];
    float* r = out + (size_t)i * 5;
    r[0] = rintf(x);
    r[1] = truncf(x);
    r[2] = ceilf(x);
    r[3] = floorf(x);
    r[4] = __saturatef(x);
}

// 0 to nearest even, 1 to zero, 2 up, 3 down
extern "C" __global__ void f64_round(const double* a, double* out, unsigned n)
{
    INDEX;
    double x = a[i];
    double* r = out + (size_t)i * 4;
    r[0] = rint(x);
    r[1] = trunc(x);
    r[2] = ceil(x);
    r[3] = floor(x);
}

// Integer to integer, all from a, widened to 64 bits: 0 s8, 1 u8, 2 s16, 3 u16, 4 s32, 5 u32,
// saturating in PTX: 6 s8 from s32, 7 u8 from s32, 8 s16 from s32, 9 u16 from s32, 10 s32 from s64, 11 u32 from s64
extern "C" __global__ void int_to_int(const s64* a, s64* out, unsigned n)
{
    INDEX;
    s64 x = a[i];
    int w = (int)x, t;
    s64* r = out + (size_t)i * 12;
    r[0] = (signed char)x;
    r[1] = (unsigned char)x;
    r[2] = (short)x;
    r[3] = (unsigned short)x;
    r[4] = (int)x;
    r[5] = (unsigned)x;
    asm("cvt.sat.s8.s32 %0, %1;" : "=r"(t) : "r"(w)); r[6] = t;
    asm("cvt.sat.u8.s32 %0, %1;" : "=r"(t) : "r"(w)); r[7] = (unsigned)t;
    asm("cvt.sat.s16.s32 %0, %1;" : "=r"(t) : "r"(w)); r[8] = t;
    asm("cvt.sat.u16.s32 %0, %1;" : "=r"(t) : "r"(w)); r[9] = (unsigned)t;
    asm("cvt.sat.s32.s64 %0, %1;" : "=r"(t) : "l"(x)); r[10] = t;
    asm("cvt.sat.u32.s64 %0, %1;" : "=r"(t) : "l"(x)); r[11] = (unsigned)t;
}

// Bits moved between types unchanged: 0 the low half's bits, moved as a float and back; 1 all bits, as a double
extern "C" __global__ void bits(const u64* a, u64* out, unsigned n)
{
    INDEX;
    out[(size_t)i * 2] = __float_as_uint(__uint_as_float((unsigned)a[i]));
    out[(size_t)i * 2 + 1] = (u64)__double_as_longlong(__longlong_as_double((s64)a[i]));
}
