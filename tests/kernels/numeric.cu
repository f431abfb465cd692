// Kernels of numerical programs, for timing: every operation has a defined order, so that results can be compared with
// those of a CPU bit by bit.

// The convolution of a w x h image with 5 x 5 weights; the last four columns and rows of the result are not written.
// Blocks of any shape.
extern "C" __global__ void convolution(const float* in, const float* weights, float* out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w - 4 || y >= h - 4)
        return;
    float sum = 0;
    for (int dy = 0; dy < 5; ++dy)
        for (int dx = 0; dx < 5; ++dx)
            sum = fmaf(in[(y + dy) * w + x + dx], weights[5 * dy + dx], sum);
    out[y * w + x] = sum;
}

struct __align__(8) complex {
    float re, im;
};

// One step of a Fourier transform of n complex numbers (Stockham's, which needs no reordering): combines pairs of
// transforms of `half` numbers. One thread for each result pair; n is a power of two, roots[k] the k-th n-th root of 1.
extern "C" __global__ void fft_step(const complex* in, const complex* roots, complex* out, unsigned n, unsigned half)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 2)
        return;
    unsigned k = i & (half - 1);
    complex a = in[i], b = in[i + n / 2], r = roots[k * (n / 2 / half)];
    float re = fmaf(b.re, r.re, -(b.im * r.im));
    float im = fmaf(b.re, r.im, b.im * r.re);
    unsigned to = 2 * i - k;
    complex sum = {a.re + re, a.im + im}, difference = {a.re - re, a.im - im};
    out[to] = sum;
    out[to + half] = difference;
}

// Sorts groups of 256 numbers, each by a block of 256 threads (bitonic sort).
extern "C" __global__ void sort(const unsigned* in, unsigned* out)
{
    __shared__ unsigned part[256];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (unsigned size = 2; size <= 256; size *= 2)
        for (unsigned distance = size / 2; distance > 0; distance /= 2) {
            unsigned other = t ^ distance;
            if (other > t) {
                unsigned a = part[t], b = part[other];
                bool ascending = (t & size) == 0;
                if ((a > b) == ascending) {
                    part[t] = b;
                    part[other] = a;
                }
            }
            __syncthreads();
        }
    out[blockIdx.x * 256 + t] = part[t];
}

// The products of pairs of numbers of 256 bits, with carries. Word j of number i is at [j * n + i].
extern "C" __global__ void big_product(const unsigned* a, const unsigned* b, unsigned* out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x[8], r[16];
    for (int j = 0; j < 8; ++j)
        x[j] = a[j * n + i];
    for (int j = 0; j < 16; ++j)
        r[j] = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        unsigned y = b[k * n + i];
        asm volatile("mad.lo.cc.u32 %0, %1, %2, %0;" : "+r"(r[k]) : "r"(x[0]), "r"(y));
#pragma unroll
        for (int j = 1; j < 8; ++j)
            asm volatile("madc.lo.cc.u32 %0, %1, %2, %0;" : "+r"(r[k + j]) : "r"(x[j]), "r"(y));
        asm volatile("addc.u32 %0, %0, 0;" : "+r"(r[k + 8]));
        asm volatile("mad.hi.cc.u32 %0, %1, %2, %0;" : "+r"(r[k + 1]) : "r"(x[0]), "r"(y));
#pragma unroll
        for (int j = 1; j < 7; ++j)
            asm volatile("madc.hi.cc.u32 %0, %1, %2, %0;" : "+r"(r[k + 1 + j]) : "r"(x[j]), "r"(y));
        asm volatile("madc.hi.u32 %0, %1, %2, %0;" : "+r"(r[k + 8]) : "r"(x[7]), "r"(y));
    }
    for (int j = 0; j < 16; ++j)
        out[j * n + i] = r[j];
}
