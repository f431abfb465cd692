// Warp-wide operations for tests/contract/warps.rs: shuffles, votes, barriers of a warp, and algorithms that use them.

__device__ __forceinline__ unsigned lane_id() { return threadIdx.x & 31; }

template <int Width>
__device__ __forceinline__ int* shuffle_all(int x, unsigned by, int* out)
{
    const unsigned all = 0xffffffffu;
    *out++ = __shfl_sync(all, x, by, Width);
    *out++ = __shfl_up_sync(all, x, by, Width);
    *out++ = __shfl_down_sync(all, x, by, Width);
    *out++ = __shfl_xor_sync(all, x, by, Width);
    return out;
}

// Four modes for the widths 32, 16, 8, 4, 2: out[thread * 20 + 4 * i + mode] for the i-th width. `by` may differ from
// lane to lane.
extern "C" __global__ void shuffles(const int* in, const unsigned* by, int* out)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    int x = in[t];
    unsigned b = by[t];
    out += t * 20;
    out = shuffle_all<32>(x, b, out);
    out = shuffle_all<16>(x, b, out);
    out = shuffle_all<8>(x, b, out);
    out = shuffle_all<4>(x, b, out);
    shuffle_all<2>(x, b, out);
}

// The second result of a shuffle, a predicate that is true if the source lane is in the segment, here of 8 lanes.
// out[thread * 2] is the result of a shuffle up by `by`, the next value that of a shuffle down, each negated if the
// predicate is false.
extern "C" __global__ void shuffle_inside(const int* in, const unsigned* by, int* out)
{
    unsigned t = threadIdx.x;
    int x = in[t], up, down;
    asm volatile("{\n\t.reg .pred p;\n\tshfl.sync.up.b32 %0|p, %1, %2, 0x1800, 0xffffffff;\n\t@!p neg.s32 %0, %0;\n\t}"
                 : "=r"(up) : "r"(x), "r"(by[t]));
    asm volatile("{\n\t.reg .pred p;\n\tshfl.sync.down.b32 %0|p, %1, %2, 0x181f, 0xffffffff;\n\t@!p neg.s32 %0, %0;\n\t}"
                 : "=r"(down) : "r"(x), "r"(by[t]));
    out[t * 2] = up;
    out[t * 2 + 1] = down;
}

// Shuffles of 64 bits and of floating-point numbers.
extern "C" __global__ void shuffle_wide(const long long* l, const double* d, const float* f, long long* lo, double* dout,
                                        float* fo)
{
    unsigned t = threadIdx.x;
    lo[t] = __shfl_xor_sync(0xffffffffu, l[t], 5);
    dout[t] = __shfl_down_sync(0xffffffffu, d[t], 3);
    fo[t] = __shfl_sync(0xffffffffu, f[t], 31 - (t & 31));
}

// Only the lanes of `mask` take part: each gets the value of the next member, and the last one the value of the first;
// the other lanes get -1. Then the members vote on in > 0: all, any and uni, and the ballot.
extern "C" __global__ void members(const int* in, unsigned mask, int* out)
{
    unsigned lane = threadIdx.x;
    int x = in[lane];
    out += lane * 5;
    for (int i = 0; i < 5; i++)
        out[i] = -1;
    if (mask >> lane & 1) {
        unsigned after = mask & ~((2u << lane) - 1);
        unsigned next = __ffs(after ? after : mask) - 1;
        out[0] = __shfl_sync(mask, x, next);
        out[1] = __all_sync(mask, x > 0);
        out[2] = __any_sync(mask, x > 0);
        out[3] = __uni_sync(mask, x > 0);
        out[4] = __ballot_sync(mask, x > 0);
    }
}

// Two sets of lanes, each in its own arm of a branch: odd lanes get the sum of their values, even lanes the maximum of
// theirs.
extern "C" __global__ void two_halves(const int* in, int* out)
{
    unsigned lane = threadIdx.x;
    int x = in[lane];
    if (lane & 1) {
        for (int s = 16; s > 1; s >>= 1)
            x += __shfl_xor_sync(0xaaaaaaaau, x, s);
    } else {
        for (int s = 16; s > 1; s >>= 1)
            x = max(x, __shfl_xor_sync(0x55555555u, x, s));
    }
    out[lane] = x;
}

// Reductions of a warp: out[warp * 4]: sum, minimum, maximum, exclusive or. Blocks of any number of whole warps.
extern "C" __global__ void reductions(const int* in, int* out)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = in[t], low = in[t], high = in[t], odd = in[t];
    for (int s = 16; s > 0; s >>= 1) {
        sum += __shfl_down_sync(0xffffffffu, sum, s);
        low = min(low, __shfl_xor_sync(0xffffffffu, low, s));
        high = max(high, __shfl_xor_sync(0xffffffffu, high, s));
        odd ^= __shfl_xor_sync(0xffffffffu, odd, s);
    }
    if (lane_id() == 0) {
        out += t / 32 * 4;
        out[0] = sum;
        out[1] = low;
        out[2] = high;
        out[3] = odd;
    }
}

// Inclusive prefix sums in a block of up to 1024 threads, a whole number of warps.
extern "C" __global__ void block_scan(const unsigned* in, unsigned* out)
{
    __shared__ unsigned totals[32];
    unsigned t = threadIdx.x, lane = lane_id(), warp = t / 32, warps = blockDim.x / 32;
    unsigned base = blockIdx.x * blockDim.x;
    unsigned x = in[base + t];
    for (unsigned s = 1; s < 32; s <<= 1) {
        unsigned y = __shfl_up_sync(0xffffffffu, x, s);
        if (lane >= s)
            x += y;
    }
    if (lane == 31)
        totals[warp] = x;
    __syncthreads();
    if (warp == 0) {
        unsigned y = lane < warps ? totals[lane] : 0;
        for (unsigned s = 1; s < 32; s <<= 1) {
            unsigned z = __shfl_up_sync(0xffffffffu, y, s);
            if (lane >= s)
                y += z;
        }
        totals[lane] = y;
    }
    __syncthreads();
    out[base + t] = x + (warp ? totals[warp - 1] : 0);
}

// Compacts nonzero elements; within a warp they keep their order. All warps add to the one counter in `count`.
extern "C" __global__ void compact(const unsigned* in, unsigned n, unsigned* out, unsigned* count)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = t < n ? in[t] : 0;
    unsigned mask = __ballot_sync(0xffffffffu, x != 0);
    unsigned lane = lane_id(), base = 0;
    if (lane == 0)
        base = atomicAdd(count, __popc(mask));
    base = __shfl_sync(0xffffffffu, base, 0);
    if (x)
        out[base + __popc(mask & ((1u << lane) - 1))] = x;
}

// Lanes of a warp exchange values through shared memory with barriers of the warp only. In each of four rounds, a lane
// takes the value of the next lane and adds the number of the round: out[t] = in of the fourth lane after t, plus 6.
extern "C" __global__ void sync_warp(const int* in, int* out)
{
    __shared__ volatile int place[128];
    unsigned t = threadIdx.x;
    int x = in[t];
    for (int i = 0; i < 4; i++) {
        place[t] = x;
        __syncwarp();
        x = place[(t & ~31u) | ((t + 1) & 31)] + i;
        __syncwarp();
    }
    out[t] = x;
}

// Checks that a lane is in its own active mask. out[lane]: 1.
extern "C" __global__ void active(unsigned* out)
{
    unsigned lane = threadIdx.x, seen = 0;
    for (unsigned i = 0; i <= lane; i++)
        seen = __activemask();
    out[lane] = seen >> lane & 1;
}

// The lanes of a warp leave one after another; the others continue to shuffle with the mask of the remaining lanes.
extern "C" __global__ void leaving(int* out)
{
    unsigned lane = threadIdx.x;
    int x = lane;
    for (unsigned i = 0; i < 31; i++) {
        unsigned rest = 0xffffffffu << i;
        if (lane < i)
            return;
        x = __shfl_sync(rest, x + 1, i + (lane + 1 - i) % (32 - i));
        out[lane] = x;
    }
}
