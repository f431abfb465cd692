// Atomic operations whose final values do not depend on the order of the threads, except in `old_values`.

// Seven operations, on cell[0..7).
template <typename T> __device__ void apply(T* cell, T x, unsigned k)
{
    atomicAdd(cell + 0, x);
    atomicAdd(cell + 1, (T)0 - x);
    atomicMin(cell + 2, x);
    atomicMax(cell + 3, x);
    atomicAnd(cell + 4, (T)~((T)1 << k));
    atomicOr(cell + 5, (T)((T)1 << k));
    atomicXor(cell + 6, x);
}

// Each thread applies the operations to cells[0..7) in global memory, and to the block's copy of cells[8..16) in shared
// memory, which is then written to cells[16 + block * 8..].
template <typename T> __device__ void apply_all(const T* in, unsigned n, T* cells)
{
    __shared__ T own[8];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < 8)
        own[t] = cells[8 + t];
    __syncthreads();
    if (i < n) {
        apply(cells, in[i], i % 29);
        apply(own, in[i], i % 29);
    }
    __syncthreads();
    if (t < 8)
        cells[16 + blockIdx.x * 8 + t] = own[t];
}

extern "C" __global__ void atomics_u32(const unsigned* in, unsigned n, unsigned* cells) { apply_all(in, n, cells); }
extern "C" __global__ void atomics_s32(const int* in, unsigned n, int* cells) { apply_all(in, n, cells); }
extern "C" __global__ void atomics_u64(const unsigned long long* in, unsigned n, unsigned long long* cells)
{
    apply_all(in, n, cells);
}

// cells[0] and cells[1]: the signed 64-bit minimum and maximum, first of each block in shared memory.
extern "C" __global__ void atomics_s64(const long long* in, unsigned n, long long* cells)
{
    __shared__ long long low, high;
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t == 0) {
        low = 0x7fffffffffffffff;
        high = -low - 1;
    }
    __syncthreads();
    if (i < n) {
        atomicMin(&low, in[i]);
        atomicMax(&high, in[i]);
    }
    __syncthreads();
    if (t == 0) {
        atomicMin(cells, low);
        atomicMax(cells + 1, high);
    }
}

// Stores the old values that the operations return. Each thread adds 1 to `cells[0]`, increments `cells[1]` up to 99
// with wrap-around, decrements `cells[2]` from 6 with wrap-around, exchanges `cells[3]` for its own number, and tries
// to be the first to claim `cells[4]`.
extern "C" __global__ void old_values(unsigned* cells, unsigned* added, unsigned* up, unsigned* down, unsigned* changed,
                                      unsigned* first)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    added[t] = atomicAdd(cells, 1u);
    up[t] = atomicInc(cells + 1, 99u);
    down[t] = atomicDec(cells + 2, 6u);
    changed[t] = atomicExch(cells + 3, t);
    first[t] = atomicCAS(cells + 4, ~0u, t);
}

// Sums of numbers whose sum is exact in any order: sum[0] through shared memory, sum[1] directly.
extern "C" __global__ void add_f32(const float* in, float* sum)
{
    __shared__ float part;
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        part = 0;
    __syncthreads();
    atomicAdd(&part, in[t]);
    atomicAdd(sum + 1, in[t]);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(sum, part);
}

// The maximum of doubles, by compare and swap.
extern "C" __global__ void max_f64(const double* in, unsigned n, unsigned long long* best)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n)
        return;
    unsigned long long seen = *best, held;
    do {
        held = seen;
        if (__longlong_as_double((long long)held) >= in[t])
            break;
        seen = atomicCAS(best, held, (unsigned long long)__double_as_longlong(in[t]));
    } while (seen != held);
}

// 256 bins, counted per block in shared memory first.
extern "C" __global__ void histogram(const unsigned char* in, unsigned n, unsigned* bins)
{
    __shared__ unsigned own[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        own[i] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(own + in[i], 1u);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(bins + i, own[i]);
}

// Through generic pointers: even threads add to shared memory, odd threads to global memory.
extern "C" __global__ void add_generic(unsigned* cell, unsigned* out)
{
    __shared__ unsigned own;
    unsigned t = threadIdx.x;
    if (t == 0)
        own = 0;
    __syncthreads();
    unsigned* where = t & 1 ? cell : &own;
    atomicAdd(where, t);
    __syncthreads();
    if (t == 0)
        *out = own;
}
