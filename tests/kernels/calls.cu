// Calls of device functions. Every kernel with a parameter n writes out[i] for i < n.
#define INDEX                                            \
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;  \
    if (i >= n)                                          \
        return

__device__ __noinline__ float polynomial(float x, float a, float b)
{
    return fmaf(fmaf(a, x, b), x, 1.0f);
}

// out = (2x + 3)x + 1, with a call.
extern "C" __global__ void call_direct(const float* in, float* out, unsigned n)
{
    INDEX;
    out[i] = polynomial(in[i], 2.0f, 3.0f);
}

// Ackermann's function by recursion: lanes reach different depths.
__device__ __noinline__ unsigned ackermann(unsigned m, unsigned k)
{
    if (m == 0)
        return k + 1;
    if (k == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, k - 1));
}

// out = ackermann(in % 3, in % 5).
extern "C" __global__ void call_recursive(const unsigned* in, unsigned* out, unsigned n)
{
    INDEX;
    out[i] = ackermann(in[i] % 3, in[i] % 5);
}

__device__ __noinline__ int twice(int x) { return x * 2; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int negate(int x) { return -x; }
__device__ __noinline__ int collapse(int x) { return x > 0 ? twice(x) + square(x) : negate(x); }

typedef int (*Op)(int);
__device__ Op op_table[4] = { twice, square, negate, collapse };

// out = op_table[in & 3](in >> 2 as signed): a call through a pointer that differs between lanes.
extern "C" __global__ void call_indirect(const int* in, int* out, unsigned n)
{
    INDEX;
    out[i] = op_table[in[i] & 3](in[i] >> 2);
}

struct Pair {
    double sum;
    int count;
};

__device__ __noinline__ Pair add_up(const float* in, unsigned from, unsigned to)
{
    Pair p = { 0.0, 0 };
    for (unsigned j = from; j < to; ++j) {
        p.sum += in[j];
        ++p.count;
    }
    return p;
}

// out = the sum of in[0..=i] in double precision, times the count: a struct returned by value, and loops whose length
// differs between lanes.
extern "C" __global__ void call_struct(const float* in, double* out, unsigned n)
{
    INDEX;
    Pair p = add_up(in, 0, i + 1);
    out[i] = p.sum * p.count;
}

__device__ __noinline__ void minmax(const int* values, int count, int* low, int* high)
{
    *low = *high = values[0];
    for (int j = 1; j < count; ++j) {
        *low = min(*low, values[j]);
        *high = max(*high, values[j]);
    }
}

// Pointers to a thread's local memory passed to a function: out = high - low of eight values made from in.
extern "C" __global__ void call_pointers(const int* in, int* out, unsigned n)
{
    INDEX;
    int values[8], low, high;
    for (int j = 0; j < 8; ++j)
        values[j] = (in[i] * (j * 2654435761u)) >> (j + 3);
    minmax(values, 8, &low, &high);
    out[i] = high - low;
}

// A barrier inside a function that all threads of the block call: out[t] = in[t ^ 1]. One block with an even number of
// at most 256 threads.
__device__ __noinline__ unsigned exchange(unsigned* slots, unsigned x)
{
    slots[threadIdx.x] = x;
    __syncthreads();
    return slots[threadIdx.x ^ 1];
}

extern "C" __global__ void call_barrier(const unsigned* in, unsigned* out)
{
    __shared__ unsigned slots[256];
    out[threadIdx.x] = exchange(slots, in[threadIdx.x]);
}
