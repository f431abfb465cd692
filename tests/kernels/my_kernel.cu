// The kernel of a typical first program: data[i] = data[i] * 2 + 1, with a 64-bit count.
extern "C" __global__ void my_kernel(float* data, size_t N)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        data[i] = data[i] * 2.0f + 1.0f;
}
