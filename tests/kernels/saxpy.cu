// y[i] = fma(a, x[i], y[i]) in a grid-stride loop: any grid covers any n.
extern "C" __global__ void saxpy(float a, const float* x, float* y, size_t n)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = fmaf(a, x[i], y[i]);
}

// The same in double precision.
extern "C" __global__ void daxpy(double a, const double* x, double* y, size_t n)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = fma(a, x[i], y[i]);
}
