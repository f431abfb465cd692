// The kernels of this crate.
// nvrtc: --generate-line-info
// axpy: y[i] += a * x[i]
extern "C" __global__ void axpy(float a, const float* x, float* y, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}

// sum: sums[block] = the sum of the block's part of x; a block has 256 threads
extern "C" __global__ void sum(const float* x, float* sums, unsigned n)
{
    __shared__ float shared[256];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x] = i < n ? x[i] : 0.0f;
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = shared[0];
}
