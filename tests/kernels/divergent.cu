// Control flow that splits a warp. Every kernel with a parameter n writes out[i] for i < n; its threads past n return
// early.
#define INDEX                                            \
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;  \
    if (i >= n)                                          \
        return

// The number of steps from x to 1 in the 3x + 1 sequence (0 for 0), at most 10,000.
extern "C" __global__ void collatz(const unsigned* in, unsigned* out, unsigned n)
{
    INDEX;
    unsigned long long x = in[i];
    unsigned steps = 0;
    while (x > 1 && steps < 10000) {
        if (x & 1)
            x = 3 * x + 1;
        else
            x >>= 1;
        ++steps;
    }
    out[i] = steps;
}

// Ifs nested three deep, with a loop in the innermost whose trip count differs between lanes.
extern "C" __global__ void nested(const int* in, int* out, unsigned n)
{
    INDEX;
    int x = in[i], r = 0;
    if (x & 1) {
        r += 1;
        if (x & 2) {
            r += 10;
            if (x & 4) {
                for (int j = 0; j < (x & 15); ++j)
                    r += x ^ j;
            } else {
                r -= x;
            }
        } else if (x & 8) {
            r ^= 0x55;
        }
        r *= 3;
    } else {
        while (r < (x & 31))
            r += 3;
    }
    out[i] = r;
}

// A dense switch, with fall-through from 3 into 4 and a default.
extern "C" __global__ void switched(const unsigned* in, unsigned* out, unsigned n)
{
    INDEX;
    unsigned x = in[i], r = x;
    switch (x % 11) {
    case 0: r = x * 7; break;
    case 1: r = x / 3; break;
    case 2: r = x ^ 0xa5a5a5a5u; break;
    case 3: r = x + 1000; // falls through
    case 4: r -= 77; break;
    case 5: r = ~x; break;
    case 6: for (unsigned j = 0; j < x % 5; ++j) r = r * 31 + j; break;
    case 7: out[i] = 12345; return;
    case 8: r = x << (x & 7); break;
    default: r = 9; break;
    }
    out[i] = r;
}

// Break, continue and return inside nested loops, at times that depend on the lane's input.
extern "C" __global__ void loops(const unsigned* in, unsigned* out, unsigned n)
{
    INDEX;
    unsigned x = in[i], r = 0;
    for (unsigned a = 0; a < 20; ++a) {
        if (((x >> (a & 15)) & 1) == 0)
            continue;
        for (unsigned b = a;; ++b) {
            r += a * b;
            if (b > x % 23)
                break;
            if (r > 5000) {
                out[i] = r | 0x80000000u;
                return;
            }
        }
        if (r % 13 == 5)
            break;
    }
    out[i] = r;
}

// The greatest common divisor, by a loop of remainders whose length differs between lanes.
extern "C" __global__ void gcd(const unsigned* a, const unsigned* b, unsigned* out, unsigned n)
{
    INDEX;
    unsigned x = a[i], y = b[i];
    while (y != 0) {
        unsigned r = x % y;
        x = y;
        y = r;
    }
    out[i] = x;
}

// Divergence before a barrier: odd threads fill a slot after a loop of their own length, even threads immediately;
// then every thread reads its mirror slot. One block of at most 256 threads; no thread returns early.
extern "C" __global__ void mirror(const unsigned* in, unsigned* out)
{
    __shared__ unsigned slot[256];
    unsigned t = threadIdx.x;
    unsigned x = in[t];
    if (t & 1) {
        unsigned r = 1;
        for (unsigned j = 0; j < t; ++j)
            r = r * 5 + x;
        slot[t] = r;
    } else {
        slot[t] = x;
    }
    __syncthreads();
    out[t] = slot[blockDim.x - 1 - t];
}
