// Atomic operations that need compute_60: doubles, and other scopes.
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

// cells[0]: one per thread, at system scope; cells[1 + block]: one per thread of the block, at block scope.
extern "C" __global__ void scopes(unsigned* cells, unsigned long long* wide)
{
    atomicAdd_system(cells, 1u);
    atomicAdd_block(cells + 1 + blockIdx.x, 1u);
    atomicMax_system(wide, (unsigned long long)blockIdx.x << 40 | threadIdx.x);
    atomicOr_block(wide + 1 + blockIdx.x, 1ull << threadIdx.x % 64);
}
