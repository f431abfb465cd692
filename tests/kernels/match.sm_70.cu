// Kernels that need compute_70: lanes compare their values with `match`, or wait for other lanes of their warp.

// Six values of each member, from out[lane * 6]: the mask of `match.any` for 32 bits and for 64 bits, then the mask and
// the predicate of `match.all` for 32 bits, then both for 64 bits. The other lanes get 0xdead.
extern "C" __global__ void matches(const unsigned* in, const unsigned long long* wide, unsigned mask, unsigned* out)
{
    unsigned lane = threadIdx.x;
    out += lane * 6;
    for (int i = 0; i < 6; i++)
        out[i] = 0xdeadu;
    if (mask >> lane & 1) {
        int same;
        out[0] = __match_any_sync(mask, in[lane]);
        out[1] = __match_any_sync(mask, wide[lane]);
        out[2] = __match_all_sync(mask, in[lane], &same);
        out[3] = same;
        out[4] = __match_all_sync(mask, wide[lane], &same);
        out[5] = same;
    }
}

// A histogram: the first of the lanes with the same bin adds their number to it.
extern "C" __global__ void matched_histogram(const unsigned* in, unsigned* bins, unsigned count)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned bin = in[t] % count;
    unsigned peers = __match_any_sync(0xffffffffu, bin);
    if ((threadIdx.x & 31) == __ffs(peers) - 1)
        atomicAdd(bins + bin, __popc(peers));
}

// Divergent lanes that must make progress independently: one arm waits for a value that the other writes.
extern "C" __global__ void waiting_lanes(volatile unsigned* flag, unsigned* out)
{
    unsigned lane = threadIdx.x;
    if (lane < 16) {
        while (*flag < 16)
            __nanosleep(50);
        out[lane] = *flag;
    } else {
        atomicAdd((unsigned*)flag, 1);
        out[lane] = lane;
    }
}
