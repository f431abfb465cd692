// Asynchronous copies into shared memory (`cp.async`), and barriers in shared memory (`mbarrier`); both need
// compute_80. They are inline PTX, so that no header is needed.

__device__ __forceinline__ unsigned shared_address(const void* p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

// Each thread copies 16, 8 and 4 bytes: the first two in one group, the last in another. out[t * 7 + i] are the words
// that the previous thread copied. One block of at most 128 threads.
extern "C" __global__ void copy_groups(const unsigned* in, unsigned* out)
{
    __shared__ __align__(16) unsigned sixteen[128 * 4];
    __shared__ __align__(16) unsigned eight[128 * 2];
    __shared__ unsigned four[128];
    unsigned t = threadIdx.x, n = blockDim.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(shared_address(sixteen + t * 4)), "l"(in + t * 4));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" : : "r"(shared_address(eight + t * 2)), "l"(in + n * 4 + t * 2));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.ca.shared.global [%0], [%1+4], 4;" : : "r"(shared_address(four + t)), "l"(in + n * 6 + t - 1));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" : : : "memory");
    __syncthreads();
    unsigned from = (t + n - 1) % n;
    for (unsigned i = 0; i < 4; i++)
        out[t * 7 + i] = sixteen[from * 4 + i];
    for (unsigned i = 0; i < 2; i++)
        out[t * 7 + 4 + i] = eight[from * 2 + i];
    asm volatile("cp.async.wait_all;" : : : "memory");
    __syncthreads();
    out[t * 7 + 6] = four[from];
}

// Copies with a shorter or empty source; the remaining bytes are zero. out[t * 8]: 16 bytes, of which bytes[t] are
// read; then 16 bytes that are read unless t is odd.
extern "C" __global__ void copy_parts(const unsigned* in, const unsigned* bytes, unsigned* out)
{
    __shared__ __align__(16) unsigned place[64 * 4];
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 4; i++)
        place[t * 4 + i] = ~0u;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
                 : : "r"(shared_address(place + t * 4)), "l"(in + t * 4), "r"(bytes[t]));
    asm volatile("cp.async.wait_all;" : : : "memory");
    for (unsigned i = 0; i < 4; i++)
        out[t * 8 + i] = place[t * 4 + i];
    // The predicate is true for odd t: their source, which is not valid, is ignored.
    const unsigned* from = t & 1 ? 0 : in + t * 4;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %2, 0;\n\tcp.async.cg.shared.global [%0], [%1], 16, p;\n\t}"
                 : : "r"(shared_address(place + t * 4)), "l"(from), "r"(t & 1));
    asm volatile("cp.async.wait_all;" : : : "memory");
    for (unsigned i = 0; i < 4; i++)
        out[t * 8 + 4 + i] = place[t * 4 + i];
}

// Threads exchange values, with an `mbarrier` between writing and reading. They wait for its phase by its state in even
// rounds, and by its parity in odd rounds.
extern "C" __global__ void barrier_rounds(const unsigned* in, unsigned* out, unsigned rounds)
{
    __shared__ unsigned long long barrier;
    __shared__ unsigned place[2][256];
    unsigned t = threadIdx.x, n = blockDim.x, at = shared_address(&barrier);
    if (t == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(at), "r"(n));
    __syncthreads();
    unsigned x = in[t];
    for (unsigned r = 0; r < rounds; r++) {
        place[r & 1][t] = x;
        unsigned long long state;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
        unsigned done = 0;
        while (!done) {
            if (r & 1)
                asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                             : "=r"(done) : "r"(at), "r"(r & 1) : "memory");
            else
                asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                             : "=r"(done) : "r"(at), "l"(state) : "memory");
        }
        x = place[r & 1][(t + 1) % n] + r;
    }
    out[t] = x;
    __syncthreads();
    if (t == 0)
        asm volatile("mbarrier.inval.shared.b64 [%0];" : : "r"(at));
}

// The lanes of the first warp arrive at `full` when their asynchronous copies are done; those of the second warp read
// the copies and arrive at `empty`. Blocks of 64: out[t] is a hash of the copies for the second warp, 0 for the first.
extern "C" __global__ void barrier_copies(const unsigned* in, unsigned* out, unsigned rounds)
{
    __shared__ unsigned long long full, empty;
    __shared__ __align__(16) unsigned buffer[32 * 4];
    unsigned t = threadIdx.x;
    unsigned full_at = shared_address(&full), empty_at = shared_address(&empty);
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" : : "r"(full_at));
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" : : "r"(empty_at));
    }
    __syncthreads();
    unsigned sum = 0;
    for (unsigned r = 0; r < rounds; r++) {
        unsigned wait_at = t < 32 ? empty_at : full_at, parity = t < 32 ? (r & 1) ^ 1 : r & 1, done = 0;
        while (!done)
            asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                         : "=r"(done) : "r"(wait_at), "r"(parity) : "memory");
        if (t < 32) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         : : "r"(shared_address(buffer + t * 4)), "l"(in + (r * 32 + t) * 4) : "memory");
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(full_at) : "memory");
        } else {
            for (unsigned i = 0; i < 4; i++)
                sum = sum * 31 + buffer[(t - 32) * 4 + i];
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" : : "r"(empty_at) : "memory");
        }
    }
    out[t] = sum;
}

// out[0..5]: the pending counts before each of four arrivals, of which the second counts twice and the third drops out
// of later phases, and before the first arrival of the next phase. One thread.
extern "C" __global__ void barrier_counts(unsigned* out)
{
    __shared__ unsigned long long barrier;
    unsigned at = shared_address(&barrier);
    unsigned long long a, b, c, d;
    asm volatile("mbarrier.init.shared.b64 [%0], 5;" : : "r"(at));
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(a) : "r"(at));
    asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 2;" : "=l"(b) : "r"(at));
    asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(c) : "r"(at));
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(d) : "r"(at));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[0]) : "l"(a));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[1]) : "l"(b));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[2]) : "l"(c));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[3]) : "l"(d));
    // The phase is complete; the next one expects four arrivals.
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(a) : "r"(at));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[4]) : "l"(a));
}
