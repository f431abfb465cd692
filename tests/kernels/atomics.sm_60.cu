// Atomic operations that need compute_60: on doubles, and at system and block scope.

// Sums of numbers whose sum is exact in any order: sum[0] through shared memory, sum[1] directly.
extern "C" __global__ void add_f64(const double* in, double* sum)
{
    __shared__ double part;
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

// cells[0] counts all threads, at system scope, and cells[1 + block] the threads of the block, at block scope. wide[0]
// is the maximum of block << 40 | thread, at system scope. wide[1 + block] has bit thread % 64 of each thread of the
// block, set at block scope.
extern "C" __global__ void scopes(unsigned* cells, unsigned long long* wide)
{
    atomicAdd_system(cells, 1u);
    atomicAdd_block(cells + 1 + blockIdx.x, 1u);
    atomicMax_system(wide, (unsigned long long)blockIdx.x << 40 | threadIdx.x);
    atomicOr_block(wide + 1 + blockIdx.x, 1ull << threadIdx.x % 64);
}
