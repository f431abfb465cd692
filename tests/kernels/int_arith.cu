// Tables of integer arithmetic: for input pair i, a kernel writes COUNT results to out[i * COUNT + k]; comments give
// their k. Shifts are in PTX, which, unlike C++, defines amounts that exceed the width (they are clamped).
typedef unsigned short u16;
typedef short s16;
typedef unsigned u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define INDEX                                       \
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;  \
    if (i >= n)                                     \
        return

template <typename T> __device__ T lo(T a, T b) { return a * b; }

__device__ u32 hi(u32 a, u32 b) { return __umulhi(a, b); }
__device__ s32 hi(s32 a, s32 b) { return __mulhi(a, b); }
__device__ u64 hi(u64 a, u64 b) { return __umul64hi(a, b); }
__device__ s64 hi(s64 a, s64 b) { return __mul64hi(a, b); }

__device__ u32 shl(u32 a, u32 b) { u32 r; asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ s32 shl(s32 a, u32 b) { s32 r; asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ u64 shl(u64 a, u32 b) { u64 r; asm("shl.b64 %0, %1, %2;" : "=l"(r) : "l"(a), "r"(b)); return r; }
__device__ s64 shl(s64 a, u32 b) { s64 r; asm("shl.b64 %0, %1, %2;" : "=l"(r) : "l"(a), "r"(b)); return r; }
__device__ u32 shr(u32 a, u32 b) { u32 r; asm("shr.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ s32 shr(s32 a, u32 b) { s32 r; asm("shr.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ u64 shr(u64 a, u32 b) { u64 r; asm("shr.u64 %0, %1, %2;" : "=l"(r) : "l"(a), "r"(b)); return r; }
__device__ s64 shr(s64 a, u32 b) { s64 r; asm("shr.s64 %0, %1, %2;" : "=l"(r) : "l"(a), "r"(b)); return r; }

__device__ u32 magnitude(u32 a) { return a; }
__device__ s32 magnitude(s32 a) { return a < 0 ? -a : a; }
__device__ u64 magnitude(u64 a) { return a; }
__device__ s64 magnitude(s64 a) { return a < 0 ? -a : a; }

// 0 add, 1 sub, 2 mul.lo, 3 mul.hi, 4 mad.lo (a * b + a), 5 and, 6 or, 7 xor, 8 not a, 9 neg a, 10 a << b,
// 11 a >> b (arithmetic where signed), 12 min, 13 max, 14 abs a (a itself where unsigned),
// 15 bits of comparison: 1 eq, 2 ne, 4 lt, 8 le, 16 gt, 32 ge
template <typename T>
__device__ __forceinline__ void ops(const T* a, const T* b, T* out, u32 n)
{
    INDEX;
    T x = a[i], y = b[i];
    T* r = out + (size_t)i * 16;
    r[0] = x + y;
    r[1] = x - y;
    r[2] = lo(x, y);
    r[3] = hi(x, y);
    r[4] = x * y + x;
    r[5] = x & y;
    r[6] = x | y;
    r[7] = x ^ y;
    r[8] = ~x;
    r[9] = T(0) - x;
    r[10] = shl(x, (u32)y);
    r[11] = shr(x, (u32)y);
    r[12] = min(x, y);
    r[13] = max(x, y);
    r[14] = magnitude(x);
    r[15] = T((x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (x > y) << 4 | (x >= y) << 5);
}

extern "C" __global__ void int_ops_u32(const u32* a, const u32* b, u32* out, u32 n) { ops(a, b, out, n); }
extern "C" __global__ void int_ops_s32(const s32* a, const s32* b, s32* out, u32 n) { ops(a, b, out, n); }
extern "C" __global__ void int_ops_u64(const u64* a, const u64* b, u64* out, u32 n) { ops(a, b, out, n); }
extern "C" __global__ void int_ops_s64(const s64* a, const s64* b, s64* out, u32 n) { ops(a, b, out, n); }

// 0 quotient, 1 remainder. For a zero divisor, and for the smallest number divided by -1, the result depends on the
// hardware.
template <typename T>
__device__ __forceinline__ void divide(const T* a, const T* b, T* out, u32 n)
{
    INDEX;
    out[(size_t)i * 2] = a[i] / b[i];
    out[(size_t)i * 2 + 1] = a[i] % b[i];
}

extern "C" __global__ void int_div_u32(const u32* a, const u32* b, u32* out, u32 n) { divide(a, b, out, n); }
extern "C" __global__ void int_div_s32(const s32* a, const s32* b, s32* out, u32 n) { divide(a, b, out, n); }
extern "C" __global__ void int_div_u64(const u64* a, const u64* b, u64* out, u32 n) { divide(a, b, out, n); }
extern "C" __global__ void int_div_s64(const s64* a, const s64* b, s64* out, u32 n) { divide(a, b, out, n); }

// Sixteen-bit operands, in PTX: 0 add, 1 sub, 2 mul.lo, 3 mul.hi, 4 div (b | 1), 5 rem (b | 1), 6 min, 7 max, 8 shl,
// 9 shr
#define SIXTEEN(name, T, t)                                                                              \
    extern "C" __global__ void name(const T* a, const T* b, T* out, u32 n)                               \
    {                                                                                                    \
        INDEX;                                                                                           \
        T x = a[i], y = b[i], d = y | 1, r[10];                                                          \
        u32 s = (u16)y;                                                                                  \
        asm("add." t " %0, %1, %2;" : "=h"(r[0]) : "h"(x), "h"(y));                                      \
        asm("sub." t " %0, %1, %2;" : "=h"(r[1]) : "h"(x), "h"(y));                                      \
        asm("mul.lo." t " %0, %1, %2;" : "=h"(r[2]) : "h"(x), "h"(y));                                   \
        asm("mul.hi." t " %0, %1, %2;" : "=h"(r[3]) : "h"(x), "h"(y));                                   \
        asm("div." t " %0, %1, %2;" : "=h"(r[4]) : "h"(x), "h"(d));                                      \
        asm("rem." t " %0, %1, %2;" : "=h"(r[5]) : "h"(x), "h"(d));                                      \
        asm("min." t " %0, %1, %2;" : "=h"(r[6]) : "h"(x), "h"(y));                                      \
        asm("max." t " %0, %1, %2;" : "=h"(r[7]) : "h"(x), "h"(y));                                      \
        asm("shl.b16 %0, %1, %2;" : "=h"(r[8]) : "h"(x), "r"(s));                                        \
        asm("shr." t " %0, %1, %2;" : "=h"(r[9]) : "h"(x), "r"(s));                                      \
        for (int k = 0; k < 10; ++k)                                                                     \
            out[(size_t)i * 10 + k] = r[k];                                                              \
    }

SIXTEEN(int_ops_u16, u16, "u16")
SIXTEEN(int_ops_s16, s16, "s16")

// Operations whose result is wider than their operands, or that use only part of them: 0 mul.wide.u32, 1 mul.wide.s32,
// 2 mad.wide.u32 (+ a), 3 mad.wide.s32 (+ a), 4 mul.wide.u16 (low halves), 5 mul.wide.s16 (low halves), 6 mul24.lo.u32,
// 7 mul24.lo.s32, 8 mul24.hi.u32, 9 mul24.hi.s32, 10 mad24.lo.u32 (+ a), 11 add.sat.s32, 12 sub.sat.s32,
// 13 mad.hi.s32 (+ a), 14 mad.hi.u32 (+ a), 15 cnot.b32 a
extern "C" __global__ void int_wide(const u32* a, const u32* b, u64* out, u32 n)
{
    INDEX;
    u32 x = a[i], y = b[i], t;
    u64 w;
    u64* r = out + (size_t)i * 16;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(w) : "r"(x), "r"(y)); r[0] = w;
    asm("mul.wide.s32 %0, %1, %2;" : "=l"(w) : "r"(x), "r"(y)); r[1] = w;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(w) : "r"(x), "r"(y), "l"((u64)x)); r[2] = w;
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(w) : "r"(x), "r"(y), "l"((u64)x)); r[3] = w;
    asm("mul.wide.u16 %0, %1, %2;" : "=r"(t) : "h"((u16)x), "h"((u16)y)); r[4] = t;
    asm("mul.wide.s16 %0, %1, %2;" : "=r"(t) : "h"((u16)x), "h"((u16)y)); r[5] = t;
    asm("mul24.lo.u32 %0, %1, %2;" : "=r"(t) : "r"(x), "r"(y)); r[6] = t;
    asm("mul24.lo.s32 %0, %1, %2;" : "=r"(t) : "r"(x), "r"(y)); r[7] = t;
    asm("mul24.hi.u32 %0, %1, %2;" : "=r"(t) : "r"(x), "r"(y)); r[8] = t;
    asm("mul24.hi.s32 %0, %1, %2;" : "=r"(t) : "r"(x), "r"(y)); r[9] = t;
    asm("mad24.lo.u32 %0, %1, %2, %3;" : "=r"(t) : "r"(x), "r"(y), "r"(x)); r[10] = t;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(t) : "r"(x), "r"(y)); r[11] = t;
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(t) : "r"(x), "r"(y)); r[12] = t;
    asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(t) : "r"(x), "r"(y), "r"(x)); r[13] = t;
    asm("mad.hi.u32 %0, %1, %2, %3;" : "=r"(t) : "r"(x), "r"(y), "r"(x)); r[14] = t;
    asm("cnot.b32 %0, %1;" : "=r"(t) : "r"(x)); r[15] = t;
}
