// One result per block, by a tree in shared memory: thread t combines elements t and t + s, for s = half of the block's
// threads, a quarter, and so on down to 1. Blocks of 256 threads; of any power of two for `reduce_dynamic`.
template <typename T, typename Op>
__device__ __forceinline__ void reduce(const T* in, T* out, unsigned n, T neutral, Op op)
{
    __shared__ T part[256];
    unsigned t = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? in[i] : neutral;
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s)
            part[t] = op(part[t], part[t + s]);
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

struct Sum {
    template <typename T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct Max {
    template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

extern "C" __global__ void reduce_sum_f32(const float* in, float* out, unsigned n)
{
    reduce(in, out, n, 0.0f, Sum());
}

extern "C" __global__ void reduce_sum_u64(const unsigned long long* in, unsigned long long* out, unsigned n)
{
    reduce(in, out, n, 0ull, Sum());
}

extern "C" __global__ void reduce_max_s32(const int* in, int* out, unsigned n)
{
    reduce(in, out, n, (int)0x80000000, Max());
}

// Like `reduce_sum_f32`, in dynamic shared memory of blockDim.x floats.
extern "C" __global__ void reduce_dynamic(const float* in, float* out, unsigned n)
{
    extern __shared__ float part[];
    unsigned t = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s)
            part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}
