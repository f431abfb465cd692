// nvrtc: --generate-line-info
// Pairs of right and wrong kernels for the checker `sync`; check_memory.cu describes their parameters and comments.

// <<<1, 64>>>
extern "C" __global__ void divergent_barrier_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned value = 0;
    if (in[threadIdx.x] % 2 == 0)
        value = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = value;
}

// <<<1, 64>>>
extern "C" __global__ void divergent_barrier_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned value = 0;
    if (in[threadIdx.x] % 2 == 0) {
        value = in[threadIdx.x];
        __syncthreads(); // FINDS
    }
    out[threadIdx.x] = value;
}

// <<<1, 128>>>
extern "C" __global__ void part_of_block_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 64)
        out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

// <<<1, 128>>>
extern "C" __global__ void part_of_block_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 64) {
        __syncthreads(); // FINDS
        out[threadIdx.x] = tile[threadIdx.x ^ 1];
    }
}

// <<<1, 64>>>
extern "C" __global__ void early_return_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    bool inside = in[threadIdx.x] < 50;
    tile[threadIdx.x] = inside ? in[threadIdx.x] : 0;
    __syncthreads();
    if (inside)
        out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

// <<<1, 64>>>
extern "C" __global__ void early_return_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    if (in[threadIdx.x] >= 50)
        return;
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads(); // FINDS
    out[threadIdx.x] = tile[threadIdx.x & 31];
}

// <<<1, 32>>>
extern "C" __global__ void own_mask_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (in[threadIdx.x] < 16)
        __syncwarp(0x0000ffff);
    else
        __syncwarp(0xffff0000);
    out[threadIdx.x] = 1;
}

// <<<1, 32>>>
extern "C" __global__ void own_mask_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (in[threadIdx.x] < 16)
        __syncwarp(0x000000ff); // FINDS
    else
        __syncwarp(0xffff0000);
    out[threadIdx.x] = 1;
}

// <<<1, 32>>>
extern "C" __global__ void exited_lanes_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (in[threadIdx.x] >= 16)
        return;
    out[threadIdx.x] = __shfl_xor_sync(0x0000ffff, in[threadIdx.x], 1);
}

// <<<1, 32>>>
extern "C" __global__ void exited_lanes_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (in[threadIdx.x] >= 16)
        return;
    out[threadIdx.x] = __shfl_xor_sync(0xffffffff, in[threadIdx.x], 1); // FINDS
}

// <<<1, 32>>>
extern "C" __global__ void other_mask_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned value = in[threadIdx.x];
    if (value < 16)
        out[threadIdx.x] = __ballot_sync(0x0000ffff, value & 1);
    else
        out[threadIdx.x] = __ballot_sync(0xffff0000, value & 2);
}

// <<<1, 32>>>
extern "C" __global__ void other_mask_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned value = in[threadIdx.x];
    if (value < 16)
        out[threadIdx.x] = __ballot_sync(0x0000ffff, value & 1);
    else
        out[threadIdx.x] = __ballot_sync(0xffffffff, value & 2); // FINDS
}

// <<<1, 96>>>
extern "C" __global__ void thread_count_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (threadIdx.x < 64)
        asm volatile("bar.sync 1, 64;" : : : "memory");
    out[threadIdx.x] = in[threadIdx.x];
}

// <<<1, 96>>>
extern "C" __global__ void thread_count_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (threadIdx.x < 64)
        asm volatile("bar.sync 1, 96;" : : : "memory"); // FINDS
    out[threadIdx.x] = in[threadIdx.x];
}
