// nvrtc: --generate-line-info
// Pairs of right and wrong kernels for the checker `race`; check_memory.cu describes their parameters and comments.

// <<<1, 64>>>
extern "C" __global__ void neighbour_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[(threadIdx.x + 1) % 64];
}

// <<<1, 64>>>
extern "C" __global__ void neighbour_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[(threadIdx.x + 1) % 64]; // FINDS
}

// <<<2, 64>>>
extern "C" __global__ void reused_tile_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    unsigned sum = 0;
    for (unsigned step = 0; step < 4; step++) {
        tile[threadIdx.x] = in[step * 64 + threadIdx.x];
        __syncthreads();
        sum += tile[63 - threadIdx.x];
        __syncthreads();
    }
    out[blockIdx.x * 64 + threadIdx.x] = sum;
}

// <<<2, 64>>>
extern "C" __global__ void reused_tile_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    unsigned sum = 0;
#pragma unroll 1
    for (unsigned step = 0; step < 4; step++) {
        tile[threadIdx.x] = in[step * 64 + threadIdx.x]; // FINDS
        __syncthreads();
        sum += tile[63 - threadIdx.x]; // FINDS
    }
    out[blockIdx.x * 64 + threadIdx.x] = sum;
}

// <<<1, 32>>>
extern "C" __global__ void warp_reduce_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned part[64];
    unsigned t = threadIdx.x;
    part[t] = in[t];
    part[t + 32] = in[t + 32];
    __syncwarp();
    for (unsigned step = 32; step > 0; step /= 2) {
        unsigned other = part[t + step];
        __syncwarp();
        part[t] += other;
        __syncwarp();
    }
    if (t == 0)
        out[0] = part[0];
}

// <<<1, 32>>>
extern "C" __global__ void warp_reduce_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned part[64];
    unsigned t = threadIdx.x;
    part[t] = in[t];
    part[t + 32] = in[t + 32];
    __syncwarp();
#pragma unroll 1
    for (unsigned step = 32; step > 0; step /= 2) {
        unsigned other = part[t + step]; // FINDS
        part[t] += other; // FINDS
    }
    if (t == 0)
        out[0] = part[0];
}

// Shuffles order the lanes of a warp, too.
// <<<1, 32>>>
extern "C" __global__ void shuffle_order_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned part[32];
    unsigned t = threadIdx.x;
    part[t] = in[t];
    unsigned sum = in[t];
    for (unsigned step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    out[t] = part[31 - t] + sum;
}

// <<<1, 32>>>
extern "C" __global__ void shuffle_order_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned part[32];
    unsigned t = threadIdx.x;
    unsigned sum = in[t];
    for (unsigned step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    part[t] = in[t];
    out[t] = part[31 - t] + sum; // FINDS
}

// <<<4, 64>>>
extern "C" __global__ void sum_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    atomicAdd(&zero[0], in[threadIdx.x]);
}

// <<<4, 64>>>
extern "C" __global__ void sum_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    zero[0] += in[threadIdx.x]; // FINDS
}

// The last block adds up the values that all blocks wrote.
// <<<8, 64>>>
extern "C" __global__ void last_block_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ bool last;
    unsigned t = threadIdx.x;
    out[blockIdx.x * 64 + t] = in[t] * blockIdx.x;
    __threadfence();
    __syncthreads();
    if (t == 0)
        last = atomicAdd(&zero[0], 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        unsigned sum = 0;
        for (unsigned block = 0; block < gridDim.x; block++)
            sum += out[block * 64 + t];
        zero[64 + t] = sum;
    }
}

// <<<8, 64>>>
extern "C" __global__ void last_block_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ bool last;
    unsigned t = threadIdx.x;
    out[blockIdx.x * 64 + t] = in[t] * blockIdx.x;
    __syncthreads();
    if (t == 0)
        last = atomicAdd(&zero[0], 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        unsigned sum = 0;
#pragma unroll 1
        for (unsigned block = 0; block < gridDim.x; block++)
            sum += out[block * 64 + t]; // FINDS
        zero[64 + t] = sum;
    }
}

// <<<4, 64>>>
extern "C" __global__ void spin_lock_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&zero[0], 0, 1) != 0) {
        }
        __threadfence();
        zero[64] += in[threadIdx.x];
        __threadfence();
        atomicExch(&zero[0], 0);
    }
}

// <<<4, 64>>>
extern "C" __global__ void spin_lock_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&zero[0], 0, 1) != 0) {
        }
        zero[64] += in[threadIdx.x]; // FINDS
        atomicExch(&zero[0], 0);
    }
}

// Release, acquire and relaxed accesses as `cuda::atomic_ref` compiles them.
__device__ void store_release(unsigned* to, unsigned value)
{
    asm volatile("st.release.gpu.u32 [%0], %1;" : : "l"(to), "r"(value) : "memory");
}

__device__ unsigned load_acquire(const unsigned* from)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__device__ unsigned load_relaxed(const unsigned* from)
{
    unsigned value;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__device__ void store_relaxed(unsigned* to, unsigned value)
{
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(to), "r"(value) : "memory");
}

// <<<2, 32>>>
extern "C" __global__ void message_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        out[0] = in[7];
        store_release(&zero[0], 1);
    } else {
        while (load_acquire(&zero[0]) == 0) {
        }
        out[1] = out[0];
    }
}

// <<<2, 32>>>
extern "C" __global__ void message_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        out[0] = in[7];
        store_relaxed(&zero[0], 1);
    } else {
        while (load_relaxed(&zero[0]) == 0) {
        }
        out[1] = out[0]; // FINDS
    }
}

// All threads store the same value, which is harmless; different values are not.
// <<<2, 64>>>
extern "C" __global__ void one_address_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (in[threadIdx.x] > 3)
        zero[0] = 1;
}

// <<<2, 64>>>
extern "C" __global__ void one_address_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    if (in[threadIdx.x] > 3)
        zero[0] = in[threadIdx.x]; // FINDS
}

// <<<4, 64>>>
extern "C" __global__ void halo_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    out[i] = zero[i] + zero[i + 1];
}

// <<<4, 64>>>
extern "C" __global__ void halo_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    zero[i] = zero[i + 1] + in[i]; // FINDS
}

// Warps 0 and 1 exchange values at barrier 1, warps 2 and 3 at barrier 2.
// <<<1, 128>>>
extern "C" __global__ void named_barrier_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[128];
    unsigned t = threadIdx.x;
    tile[t] = in[t];
    if (t < 64)
        asm volatile("bar.sync 1, 64;" : : : "memory");
    else
        asm volatile("bar.sync 2, 64;" : : : "memory");
    out[t] = tile[t ^ 32];
}

// <<<1, 128>>>
extern "C" __global__ void named_barrier_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[128];
    unsigned t = threadIdx.x;
    tile[t] = in[t];
    if (t < 64)
        asm volatile("bar.sync 1, 64;" : : : "memory");
    else
        asm volatile("bar.sync 2, 64;" : : : "memory");
    out[t] = tile[t ^ 64]; // FINDS
}

// A barrier of the grid, like that of cooperative groups, that can be used once.
__device__ void wait_for_grid(unsigned* arrived)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned*)arrived < gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
}

// <<<4, 64>>>
extern "C" __global__ void grid_barrier_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned t = threadIdx.x;
    out[blockIdx.x * 64 + t] = in[t];
    wait_for_grid(&zero[0]);
    zero[64 + blockIdx.x * 64 + t] = out[(gridDim.x - 1 - blockIdx.x) * 64 + t];
}

// <<<4, 64>>>
extern "C" __global__ void grid_barrier_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned t = threadIdx.x;
    out[blockIdx.x * 64 + t] = in[t];
    __syncthreads();
    zero[64 + blockIdx.x * 64 + t] = out[(gridDim.x - 1 - blockIdx.x) * 64 + t]; // FINDS
}

// Threads may write neighbouring bytes of a word, but not read and write the whole word.
// <<<1, 64>>>
extern "C" __global__ void bytes_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    ((unsigned char*)zero)[threadIdx.x] = in[threadIdx.x] == 3;
}

// <<<1, 64>>>
extern "C" __global__ void bytes_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    zero[threadIdx.x / 4] |= (in[threadIdx.x] + 1) << threadIdx.x % 4 * 8; // FINDS
}

// A lane publishes with a flag the values that all lanes of its warp wrote before a fence and a `__syncwarp`.
// <<<1, 64>>>
extern "C" __global__ void flag_of_a_lane_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ volatile unsigned flag;
    __shared__ unsigned tile[32];
    unsigned t = threadIdx.x;
    if (t == 0)
        flag = 0;
    __syncthreads();
    if (t < 32) {
        tile[t] = in[t];
        __threadfence_block();
        __syncwarp();
        if (t == 7)
            flag = 1;
    } else {
        while (flag == 0) {
        }
        out[t] = tile[63 - t];
    }
}

// <<<1, 64>>>
extern "C" __global__ void flag_of_a_lane_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ volatile unsigned flag;
    __shared__ unsigned tile[32];
    unsigned t = threadIdx.x;
    if (t == 0)
        flag = 0;
    __syncthreads();
    if (t < 32) {
        tile[t] = in[t];
        __syncwarp();
        if (t == 7)
            flag = 1;
    } else {
        while (flag == 0) {
        }
        out[t] = tile[63 - t]; // FINDS
    }
}

// Atomic operations whose scope is the block are atomic for its threads only.
// <<<2, 32>>>
extern "C" __global__ void scope_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    atomicAdd(&zero[0], in[threadIdx.x]);
    atomicAdd_block(&zero[1 + blockIdx.x], in[threadIdx.x]);
}

// <<<2, 32>>>
extern "C" __global__ void scope_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    atomicAdd_block(&zero[0], in[threadIdx.x]); // FINDS
}
