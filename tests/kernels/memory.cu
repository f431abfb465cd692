// Accesses to global, local and shared memory, also through generic pointers, and in every width.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned long long u64;
#define INDEX                                            \
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;  \
    if (i >= n)                                          \
        return

// Copies of one element per thread: every width of a load, as one value or as a vector.
extern "C" __global__ void copy_u8(const u8* in, u8* out, unsigned n) { INDEX; out[i] = in[i]; }
extern "C" __global__ void copy_u16(const u16* in, u16* out, unsigned n) { INDEX; out[i] = in[i]; }
extern "C" __global__ void copy_u32(const unsigned* in, unsigned* out, unsigned n) { INDEX; out[i] = in[i]; }
extern "C" __global__ void copy_u64(const u64* in, u64* out, unsigned n) { INDEX; out[i] = in[i]; }
extern "C" __global__ void copy_v2(const float2* in, float2* out, unsigned n) { INDEX; out[i] = in[i]; }
extern "C" __global__ void copy_v4(const float4* in, float4* out, unsigned n) { INDEX; out[i] = in[i]; }
extern "C" __global__ void copy_f64x2(const double2* in, double2* out, unsigned n) { INDEX; out[i] = in[i]; }
extern "C" __global__ void copy_u8x4(const uchar4* in, uchar4* out, unsigned n) { INDEX; out[i] = in[i]; }
extern "C" __global__ void copy_s16x2(const short2* in, short2* out, unsigned n) { INDEX; out[i] = in[i]; }

// out[i] = in[index[i]], and out[index[i]] = in[i]: each lane has an address of its own.
extern "C" __global__ void gather(const unsigned* in, const unsigned* index, unsigned* out, unsigned n)
{
    INDEX;
    out[i] = in[index[i]];
}

extern "C" __global__ void scatter(const unsigned* in, const unsigned* index, unsigned* out, unsigned n)
{
    INDEX;
    out[index[i]] = in[i];
}

// A local array read and written at indices known only at run time: a histogram of the 16 nibbles of in[i], each
// counted at its value and at its value + i (modulo 16); out[i] = sum of count[j] * (j + 1)^2.
extern "C" __global__ void local_array(const u64* in, unsigned* out, unsigned n)
{
    INDEX;
    unsigned count[16];
    for (int j = 0; j < 16; ++j)
        count[j] = 0;
    u64 x = in[i];
    for (int j = 0; j < 16; ++j) {
        unsigned nibble = (unsigned)(x >> (4 * j)) & 15;
        count[nibble] += 1;
        count[(nibble + i) & 15] += 1;
    }
    unsigned r = 0;
#pragma unroll 1 // if unrolled, the compiler combines the loads differently from run to run
    for (int j = 0; j < 16; ++j)
        r += count[j] * (j + 1) * (j + 1);
    out[i] = r;
}

// Dynamic shared memory divided into two arrays of different types: blockDim.x doubles, then blockDim.x bytes. out[t] =
// the next thread's double + the previous thread's byte. One block.
extern "C" __global__ void shared_dynamic(const double* in, const u8* bytes, double* out)
{
    extern __shared__ double pool[];
    u8* tail = (u8*)(pool + blockDim.x);
    unsigned t = threadIdx.x, m = blockDim.x;
    pool[t] = in[t];
    tail[t] = bytes[t];
    __syncthreads();
    out[t] = pool[(t + 1) % m] + tail[(t + m - 1) % m];
}

// Transposes 32 x 32 words of in through a tile of 32 x 33 words in shared memory. One block of 32 x 8.
extern "C" __global__ void shared_transpose(const unsigned* in, unsigned* out)
{
    __shared__ unsigned tile[32][33];
    for (unsigned r = threadIdx.y; r < 32; r += 8)
        tile[r][threadIdx.x] = in[r * 32 + threadIdx.x];
    __syncthreads();
    for (unsigned r = threadIdx.y; r < 32; r += 8)
        out[r * 32 + threadIdx.x] = tile[threadIdx.x][r];
}

// One pointer, three spaces: depending on in[t] % 3 it points to global, shared or local memory. One block of at most
// 256 threads.
__device__ __noinline__ unsigned through(volatile unsigned* p, unsigned x)
{
    *p = *p + x;
    return *p;
}

extern "C" __global__ void generic_pointer(unsigned* in, unsigned* out)
{
    __shared__ unsigned s[256];
    unsigned t = threadIdx.x;
    unsigned l = 1000;
    unsigned which = in[t] % 3;
    s[t] = 2000 + t;
    unsigned* p = which == 0 ? &in[t] : which == 1 ? &s[t] : &l;
    out[t] = through(p, 7);
}

// 40 KiB of static shared memory, which one block of 256 writes and reads back: out[t] = in[t] * 40.
extern "C" __global__ void shared_large(const unsigned* in, unsigned* out)
{
    __shared__ unsigned s[10240];
    unsigned t = threadIdx.x;
    for (unsigned j = 0; j < 40; ++j)
        s[j * 256 + (t + j) % 256] = in[t];
    __syncthreads();
    unsigned r = 0;
    for (unsigned j = 0; j < 40; ++j)
        r += s[j * 256 + (t + j) % 256];
    out[t] = r;
}
