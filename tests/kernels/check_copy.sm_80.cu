// nvrtc: --generate-line-info
// Pairs of right and wrong kernels with copies of `cp.async`, for the checker `race`; check_memory.cu describes their
// parameters and comments.

__device__ unsigned in_shared(const void* address)
{
    unsigned result;
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(result) : "l"(address));
    return result;
}

__device__ void copy(unsigned* to, const unsigned* from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(in_shared(to)), "l"(from) : "memory");
}

__device__ void prepare(unsigned long long* barrier)
{
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(in_shared(barrier)), "r"(blockDim.x) : "memory");
    __syncthreads();
}

__device__ void arrive(unsigned long long* barrier)
{
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" : : "r"(in_shared(barrier)) : "memory");
}

__device__ void wait(unsigned long long* barrier)
{
    unsigned over;
    do {
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(over)
                     : "r"(in_shared(barrier))
                     : "memory");
    } while (!over);
}

// The copies of each thread arrive at the barrier.
// <<<1, 64>>>
extern "C" __global__ void copies_arrive_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    __shared__ unsigned long long barrier;
    unsigned t = threadIdx.x;
    prepare(&barrier);
    copy(&tile[t], &in[t]);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(in_shared(&barrier)) : "memory");
    wait(&barrier);
    out[t] = tile[63 - t];
}

// The arrival of a thread does not wait for its copies.
// <<<1, 64>>>
extern "C" __global__ void copies_arrive_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    __shared__ unsigned long long barrier;
    unsigned t = threadIdx.x;
    prepare(&barrier);
    copy(&tile[t], &in[t]);
    arrive(&barrier);
    wait(&barrier);
    out[t] = tile[63 - t]; // FINDS
}

// <<<1, 64>>>
extern "C" __global__ void copies_and_thread_arrive_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    __shared__ unsigned long long barrier;
    unsigned t = threadIdx.x;
    prepare(&barrier);
    copy(&tile[t], &in[t]);
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" : : "r"(in_shared(&barrier)) : "memory");
    arrive(&barrier);
    wait(&barrier);
    out[t] = tile[63 - t];
}

// <<<1, 64>>>
extern "C" __global__ void copies_and_thread_arrive_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[64];
    __shared__ unsigned long long barrier;
    unsigned t = threadIdx.x;
    prepare(&barrier);
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" : : "r"(in_shared(&barrier)) : "memory");
    copy(&tile[t], &in[t]);
    arrive(&barrier);
    wait(&barrier);
    out[t] = tile[63 - t]; // FINDS
}
