// Atomic operations on 16-bit values, which need compute_70. Values of f16 are bit patterns, so that no header is
// needed.

// Adds small integers as f16, which is exact in any order: to sum[0] with `atom`, to sum[1] with `red`.
extern "C" __global__ void add_f16(const unsigned short* in, unsigned short* sum)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("{\n\t.reg .b16 old;\n\tatom.add.noftz.f16 old, [%0], %1;\n\t}" : : "l"(sum), "h"(in[t]) : "memory");
    asm volatile("red.add.noftz.f16 [%0], %1;" : : "l"(sum + 1), "h"(in[t]) : "memory");
}

// Adds pairs of f16.
extern "C" __global__ void add_f16x2(const unsigned* in, unsigned* sum)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("{\n\t.reg .b32 old;\n\tatom.add.noftz.f16x2 old, [%0], %1;\n\t}" : : "l"(sum), "r"(in[t]) : "memory");
}

// The minimum of 16-bit numbers, by compare and swap next to a neighbour that must not change.
extern "C" __global__ void min_u16(const unsigned short* in, unsigned short* least)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned short seen = *(volatile unsigned short*)least, held;
    do {
        held = seen;
        if (held <= in[t])
            break;
        seen = atomicCAS(least, held, in[t]);
    } while (seen != held);
}
