// `match`, which needs compute_70: out[lane * 6] for the members: any of 32 bits, any of 64 bits, all of 32 bits (mask,
// then predicate), all of 64 bits (likewise).
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

// A histogram: lanes with the same bin add to it together.
extern "C" __global__ void matched_histogram(const unsigned* in, unsigned* bins, unsigned count)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned bin = in[t] % count;
    unsigned peers = __match_any_sync(0xffffffffu, bin);
    if ((threadIdx.x & 31) == __ffs(peers) - 1)
        atomicAdd(bins + bin, __popc(peers));
}

// Divergent lanes that do not reconverge: one arm waits for a value that the other writes. Needs independent thread
// scheduling.
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
