// nvrtc: --generate-line-info
// PTX with line information: `.file` and `.loc` directives between the instructions.

__device__ __forceinline__ float blend(float a, float b, float t)
{
    return fmaf(t, b - a, a);
}

// out[i] = a[i] + t * (b[i] - a[i])
extern "C" __global__ void lines(const float* a, const float* b, float* out, float t, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = blend(a[i], b[i], t);
}
