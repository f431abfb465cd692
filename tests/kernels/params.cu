// Kernel parameters of many types and layouts. The kernels write the values that they received.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned long long u64;
typedef long long s64;

// out[k] is the k-th value, sign- or zero-extended; floats as their bits.
extern "C" __global__ void param_scalars(u64* out, signed char a, u8 b, short c, u16 d, int e, unsigned f, s64 g, u64 h,
                                         float x, double y, bool z, u8 last)
{
    out[0] = (u64)(s64)a;
    out[1] = b;
    out[2] = (u64)(s64)c;
    out[3] = d;
    out[4] = (u64)(s64)e;
    out[5] = f;
    out[6] = (u64)g;
    out[7] = h;
    out[8] = __float_as_uint(x);
    out[9] = (u64)__double_as_longlong(y);
    out[10] = z ? 1 : 0;
    out[11] = last;
}

// The built-in vector types, with a byte before each so that alignment matters. out has the bytes and components in
// order, each extended or as its bits as in `param_scalars`.
extern "C" __global__ void param_vectors(u64* out, u8 p0, float4 a, u8 p1, double2 b, u8 p2, int3 c, u8 p3, short2 d,
                                         u8 p4, uchar4 e, u8 p5, ulonglong2 f, u8 p6, float2 g, u8 p7, char3 h, u8 p8)
{
    unsigned k = 0;
    out[k++] = p0;
    out[k++] = __float_as_uint(a.x);
    out[k++] = __float_as_uint(a.y);
    out[k++] = __float_as_uint(a.z);
    out[k++] = __float_as_uint(a.w);
    out[k++] = p1;
    out[k++] = (u64)__double_as_longlong(b.x);
    out[k++] = (u64)__double_as_longlong(b.y);
    out[k++] = p2;
    out[k++] = (u64)(s64)c.x;
    out[k++] = (u64)(s64)c.y;
    out[k++] = (u64)(s64)c.z;
    out[k++] = p3;
    out[k++] = (u64)(s64)d.x;
    out[k++] = (u64)(s64)d.y;
    out[k++] = p4;
    out[k++] = e.x;
    out[k++] = e.y;
    out[k++] = e.z;
    out[k++] = e.w;
    out[k++] = p5;
    out[k++] = f.x;
    out[k++] = f.y;
    out[k++] = p6;
    out[k++] = __float_as_uint(g.x);
    out[k++] = __float_as_uint(g.y);
    out[k++] = p7;
    out[k++] = (u64)(s64)h.x;
    out[k++] = (u64)(s64)h.y;
    out[k++] = (u64)(s64)h.z;
    out[k++] = p8;
}

// A struct of mixed members by value: 40 bytes, 8-byte aligned, with padding after `tag`, `half` and `tail`.
struct Mixed {
    u8 tag;
    double weight;
    u16 half;
    float scale;
    u64 count;
    u8 tail[3];
};

extern "C" __global__ void param_struct(u64* out, u8 before, Mixed m, u8 after)
{
    out[0] = before;
    out[1] = m.tag;
    out[2] = (u64)__double_as_longlong(m.weight);
    out[3] = m.half;
    out[4] = __float_as_uint(m.scale);
    out[5] = m.count;
    out[6] = m.tail[0];
    out[7] = m.tail[1];
    out[8] = m.tail[2];
    out[9] = after;
    out[10] = sizeof(Mixed);
}

// A struct of 1,000 words by value, read at an index known only at launch: out[t] = words[(t * step) % 1000].
struct Big {
    unsigned words[1000];
};

extern "C" __global__ void param_big(unsigned* out, Big big, unsigned step)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = big.words[(t * step) % 1000];
}

// Forty parameters after the pointer, 320 bytes with padding: ten times (u8, u64, float, double). out[k] is the k-th,
// as its bits.
#define GROUP(k) u8 a##k, u64 b##k, float c##k, double d##k
#define STORE(k)                                    \
    out[4 * k + 0] = a##k;                          \
    out[4 * k + 1] = b##k;                          \
    out[4 * k + 2] = __float_as_uint(c##k);         \
    out[4 * k + 3] = (u64)__double_as_longlong(d##k);

extern "C" __global__ void param_many(u64* out, GROUP(0), GROUP(1), GROUP(2), GROUP(3), GROUP(4), GROUP(5), GROUP(6),
                                      GROUP(7), GROUP(8), GROUP(9))
{
    STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7) STORE(8) STORE(9)
}

// No parameters: the kernel writes its result to a global variable.
__device__ unsigned param_none_ran = 0;

extern "C" __global__ void param_none()
{
    if (threadIdx.x == 0)
        param_none_ran = 0x600d600d;
}

// 64-bit arithmetic on 64-bit parameters: out[i] = base + i * stride, with both far above 32 bits.
extern "C" __global__ void param_wide(u64* out, u64 base, u64 stride, u64 n)
{
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = base + i * stride;
}
