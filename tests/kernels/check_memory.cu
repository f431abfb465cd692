// nvrtc: --generate-line-info
// Pairs of right and wrong kernels for the checker `memory`; see cuda-driver-soft/tests/driver/checks.rs.
//
// All kernels of these pairs take three buffers of 4096 words: `in` holds in[i] = i, `out` was never written, and
// `zero` is zero. The comment before a kernel gives its number of blocks and of threads per block. In a wrong kernel,
// the line at which the checker finds the error ends with FINDS; if several lines do, it may be any of them.

// <<<2, 64>>>
extern "C" __global__ void bounds_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x + 4096 - 100;
    if (i < 4096)
        out[i] = in[i];
}

// <<<2, 64>>>
extern "C" __global__ void bounds_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x + 4096 - 100;
    out[i] = i; // FINDS
}

// <<<1, 32>>>
extern "C" __global__ void aligned_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    const uint2* pairs = (const uint2*)(in + 2);
    out[threadIdx.x] = pairs[threadIdx.x].y;
}

// <<<1, 32>>>
extern "C" __global__ void aligned_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    const uint2* pairs = (const uint2*)(in + 1);
    uint2 pair = pairs[threadIdx.x]; // FINDS
    out[threadIdx.x] = pair.x + pair.y;
}

// <<<1, 64>>>
extern "C" __global__ void shared_bounds_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned part[64];
    part[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = part[63 - threadIdx.x];
}

// <<<1, 64>>>
extern "C" __global__ void shared_bounds_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned part[64];
    part[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = part[64 + in[threadIdx.x]]; // FINDS
}

// <<<1, 32>>>
extern "C" __global__ void local_bounds_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned list[8];
    for (unsigned i = 0; i < 8; i++)
        list[i] = in[i];
    out[threadIdx.x] = list[in[threadIdx.x] % 8];
}

// <<<1, 32>>>
extern "C" __global__ void local_bounds_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned list[8];
    for (unsigned i = 0; i < 8; i++)
        list[i] = in[i];
    out[threadIdx.x] = list[in[threadIdx.x]]; // FINDS
}

// <<<1, 32>>>
extern "C" __global__ void null_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    ((const unsigned* volatile*)zero)[0] = in;
    const unsigned* from = ((const unsigned* volatile*)zero)[0];
    out[threadIdx.x] = from[threadIdx.x];
}

// <<<1, 32>>>
extern "C" __global__ void null_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    const unsigned* from = ((const unsigned* volatile*)zero)[0];
    out[threadIdx.x] = from[threadIdx.x]; // FINDS
}

// <<<1, 32>>>
extern "C" __global__ void freed_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned* own = (unsigned*)malloc(16);
    own[0] = in[threadIdx.x];
    out[threadIdx.x] = own[0];
    free(own);
}

// <<<1, 32>>>
extern "C" __global__ void freed_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned* own = (unsigned*)malloc(16);
    own[0] = in[threadIdx.x];
    free(own);
    out[threadIdx.x] = *(volatile unsigned*)own; // FINDS
}
