// Threads that wait for one another: barriers of parts of a block, flags, fences, locks.

// The threads of a block vote on in > 0. out[t * 3]: the number of threads that agree, 1 if all do, 1 if any does.
extern "C" __global__ void barrier_votes(const int* in, int* out)
{
    unsigned t = threadIdx.x;
    int x = in[t];
    out[t * 3] = __syncthreads_count(x > 0);
    out[t * 3 + 1] = __syncthreads_and(x > 0) != 0;
    out[t * 3 + 2] = __syncthreads_or(x > 0) != 0;
}

// The first warp fills one of two buffers while the other warps read the other one. At each named barrier, one side
// waits and the other only arrives. Blocks of 128 threads; out[round * 96 + reader].
extern "C" __global__ void producer_consumer(const unsigned* in, unsigned* out, unsigned rounds)
{
    __shared__ unsigned buffer[2][96];
    unsigned t = threadIdx.x;
    for (unsigned r = 0; r < rounds; r++) {
        unsigned b = r & 1;
        if (t < 32) {
            // Barrier 1 + b: buffer b is empty; barrier 3 + b: it is full.
            if (r >= 2)
                asm volatile("bar.sync %0, 128;" : : "r"(1 + b) : "memory");
            for (unsigned i = t; i < 96; i += 32)
                buffer[b][i] = in[i] * (r + 1);
            asm volatile("bar.arrive %0, 128;" : : "r"(3 + b) : "memory");
        } else {
            asm volatile("bar.sync %0, 128;" : : "r"(3 + b) : "memory");
            out[r * 96 + t - 32] = buffer[b][t - 32] ^ r;
            if (r + 2 < rounds)
                asm volatile("bar.arrive %0, 128;" : : "r"(1 + b) : "memory");
        }
    }
}

// Each half of a block of 128 threads waits at a barrier of its own, one half more often than the other.
extern "C" __global__ void halves(const unsigned* in, unsigned* out)
{
    __shared__ unsigned place[128];
    unsigned t = threadIdx.x;
    unsigned x = in[t];
    if (t < 64) {
        for (int i = 0; i < 3; i++) {
            place[t] = x;
            asm volatile("bar.sync 1, 64;" : : : "memory");
            x += place[63 - t];
            asm volatile("bar.sync 1, 64;" : : : "memory");
        }
    } else {
        for (int i = 0; i < 5; i++) {
            place[t] = x;
            asm volatile("bar.sync 2, 64;" : : : "memory");
            x ^= place[191 - t] + i;
            asm volatile("bar.sync 2, 64;" : : : "memory");
        }
    }
    __syncthreads();
    place[t] = x;
    __syncthreads();
    out[t] = place[127 - t];
}

__device__ unsigned blocks_done;

// The sum of all elements: each block writes its own sum, and the last block to finish adds them in order.
extern "C" __global__ void last_block(const unsigned* in, unsigned n, volatile unsigned* parts, unsigned* sum)
{
    __shared__ unsigned own;
    __shared__ bool last;
    unsigned t = threadIdx.x;
    if (t == 0)
        own = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own, in[i]);
    __syncthreads();
    if (t == 0) {
        parts[blockIdx.x] = own;
        __threadfence();
        last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        unsigned all = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            all += parts[b];
        *sum = all;
    }
}

// Two warps of a block pass a number back and forth through shared memory, `rounds` times.
extern "C" __global__ void warps_talk(unsigned rounds, unsigned* out)
{
    __shared__ volatile unsigned flag, value;
    unsigned t = threadIdx.x, warp = t / 32;
    if (t == 0) {
        flag = 0;
        value = 1;
    }
    __syncthreads();
    if ((t & 31) == 0) {
        for (unsigned r = 0; r < rounds; r++) {
            while (flag != 2 * r + warp) {
            }
            value = value * 3 + warp;
            __threadfence_block();
            flag = 2 * r + warp + 1;
        }
    }
    __syncthreads();
    out[t] = value;
}

// Blocks pass numbers on: each waits for the next block, and the last block begins. All blocks must be resident at
// once.
extern "C" __global__ void blocks_talk(volatile unsigned* flags, volatile unsigned* values)
{
    if (threadIdx.x == 0) {
        unsigned b = blockIdx.x, got = 7;
        if (b + 1 < gridDim.x) {
            while (flags[b + 1] == 0) {
            }
            __threadfence();
            got = values[b + 1];
        }
        values[b] = got * 5 + b;
        __threadfence();
        flags[b] = 1;
    }
}

// A lock that the threads take one at a time, around a sum that is not atomic.
extern "C" __global__ void spin_lock(unsigned* lock, volatile unsigned* sum, const unsigned* in)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0u, 1u) == 0) {
            __threadfence();
            sum[0] = sum[0] + in[t];
            sum[1] = sum[1] + 1;
            __threadfence();
            atomicExch(lock, 0u);
            done = true;
        }
    }
}

// One thread of each block at a time, in the order of their tickets.
extern "C" __global__ void tickets(unsigned* next, volatile unsigned* serving, volatile unsigned* log)
{
    if (threadIdx.x == 0) {
        unsigned mine = atomicAdd(next, 1u);
        while (*serving != mine) {
        }
        log[mine] = blockIdx.x;
        __threadfence();
        *serving = mine + 1;
    }
}

// A barrier of the whole grid between `rounds` steps, each of which reads the previous results of other blocks. All
// blocks must be resident at once.
extern "C" __global__ void grid_steps(volatile unsigned* a, volatile unsigned* b, unsigned rounds, unsigned* arrived)
{
    unsigned n = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned r = 0; r < rounds; r++) {
        volatile unsigned* from = r & 1 ? b : a;
        volatile unsigned* to = r & 1 ? a : b;
        to[t] = from[(t + blockDim.x) % n] * 3 + from[n - 1 - t] + r;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd(arrived, 1u);
            while (*(volatile unsigned*)arrived < gridDim.x * (r + 1)) {
            }
            __threadfence();
        }
        __syncthreads();
    }
}
