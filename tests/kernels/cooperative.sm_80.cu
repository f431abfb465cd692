// Kernels that use the parts of cooperative groups that the driver provides: a word in global memory in which the
// blocks of a grid count their arrivals, and reserved shared memory in which the warps of a block mark theirs.

// Returns the address of the word in which blocks count their arrivals, or null if the launch is not cooperative. Two
// special registers hold the address of a structure: its size, then the word.
__device__ static unsigned* arrivals()
{
    unsigned high, low;
    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    unsigned long long address = (unsigned long long)high << 32 | low;
    return address ? (unsigned*)address + 1 : 0;
}

// Waits until all blocks have arrived: the last arrival flips the highest bit.
__device__ static void wait_for_the_grid()
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned* word = arrivals();
        unsigned add = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1, before;
        asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(add) : "memory");
        unsigned now;
        do {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
        } while (((now ^ before) & 0x80000000u) == 0);
    }
    __syncthreads();
}

// Steps that each read results of other blocks from the previous step; the last result is in `a` if `rounds` is even,
// else in `b`.
extern "C" __global__ void grid_rounds(unsigned* a, unsigned* b, unsigned rounds)
{
    unsigned n = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned r = 0; r < rounds; r++) {
        volatile unsigned* from = r & 1 ? b : a;
        volatile unsigned* to = r & 1 ? a : b;
        to[t] = from[(t + blockDim.x) % n] * 3 + from[n - 1 - t] + r;
        wait_for_the_grid();
    }
}

// out[0]: 1 in a cooperative launch, else 0.
extern "C" __global__ void is_cooperative(unsigned* out)
{
    out[0] = arrivals() != 0;
}

// Warps of a block wait for one another with bits of a word in reserved shared memory, which is zero at the start of a
// block and must be zero at its end. In each round every thread writes to `out` a sum of the two values that the
// thread 33 places before it stored.
extern "C" __global__ void reserved_shared(unsigned* out)
{
    __shared__ unsigned place[256];
    extern __shared__ unsigned dynamic[];
    unsigned t = threadIdx.x, warps = blockDim.x / 32, start;
    asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(start));
    unsigned all = (1u << warps) - 1;
    for (unsigned round = 0; round < 3; round++) {
        place[t] = t * 7 + round;
        dynamic[t] = t + blockIdx.x;
        __syncwarp();
        if (t % 32 == 0) {
            unsigned before, bit = 1u << t / 32;
            asm volatile("atom.or.acq_rel.cta.shared.b32 %0, [%1], %2;" : "=r"(before) : "r"(start), "r"(bit) : "memory");
            if ((before | bit) == all) {
                asm volatile("red.and.relaxed.cta.shared.b32 [%0], %1;" : : "r"(start), "r"(~all) : "memory");
            } else {
                unsigned now;
                do {
                    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(now) : "r"(start) : "memory");
                } while (now & bit);
            }
        }
        __syncwarp();
        unsigned from = (t + blockDim.x - 33) % blockDim.x;
        out[(blockIdx.x * 3 + round) * blockDim.x + t] = place[from] + dynamic[from] * 1000;
        __syncthreads();
    }
}
