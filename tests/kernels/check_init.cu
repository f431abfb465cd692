// nvrtc: --generate-line-info
// Pairs of right and wrong kernels for the checker `init`; check_memory.cu describes their parameters and comments.

// <<<2, 64>>>
extern "C" __global__ void global_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + zero[i];
}

// <<<2, 64>>>
extern "C" __global__ void global_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] += in[i]; // FINDS
}

// <<<1, 64>>>
extern "C" __global__ void half_written_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned t = threadIdx.x;
    out[2 * t] = in[t];
    out[2 * t + 1] = in[t] + 1;
    zero[t] = out[2 * t + 1];
}

// <<<1, 64>>>
extern "C" __global__ void half_written_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned t = threadIdx.x;
    out[2 * t] = in[t];
    zero[t] = out[2 * t + 1]; // FINDS
}

// <<<1, 64>>>
extern "C" __global__ void shared_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[65];
    tile[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 0)
        tile[64] = 0;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x + 1];
}

// <<<1, 64>>>
extern "C" __global__ void shared_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned tile[65];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x + 1]; // FINDS
}

// <<<4, 64>>>
extern "C" __global__ void shared_counter_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned count;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    if (in[threadIdx.x] & 1)
        atomicAdd(&count, 1);
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = count;
}

// <<<4, 64>>>
extern "C" __global__ void shared_counter_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ unsigned count;
    if (in[threadIdx.x] & 1)
        atomicAdd(&count, 1); // FINDS
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = count;
}

// <<<1, 32>>>
extern "C" __global__ void local_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned list[16];
    for (unsigned i = 0; i < 16; i++)
        list[in[i]] = i;
    out[threadIdx.x] = list[in[threadIdx.x] % 16];
}

// <<<1, 32>>>
extern "C" __global__ void local_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned list[16];
    for (unsigned i = 0; i < 15; i++)
        list[in[i]] = i;
    out[threadIdx.x] = list[in[threadIdx.x] % 16]; // FINDS
}

// <<<1, 32>>>
extern "C" __global__ void heap_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned* own = (unsigned*)malloc(16);
    own[in[1]] = threadIdx.x;
    out[threadIdx.x] = own[in[1]];
    free(own);
}

// <<<1, 32>>>
extern "C" __global__ void heap_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    unsigned* own = (unsigned*)malloc(16);
    own[in[1]] = threadIdx.x;
    out[threadIdx.x] = own[in[2]]; // FINDS
    free(own);
}

// <<<2, 64>>>
extern "C" __global__ void accumulate_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    atomicAdd(&zero[threadIdx.x], in[threadIdx.x]);
}

// <<<2, 64>>>
extern "C" __global__ void accumulate_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    atomicAdd(&out[threadIdx.x], in[threadIdx.x]); // FINDS
}

struct Padded {
    char tag;
    unsigned value;
};

// The bytes between the members of a struct are never written; copies of the struct may read them all the same.
// <<<1, 64>>>
extern "C" __global__ void padding_right(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ Padded all[64];
    all[threadIdx.x].tag = (char)threadIdx.x;
    all[threadIdx.x].value = in[threadIdx.x];
    __syncthreads();
    Padded other = all[63 - threadIdx.x];
    out[threadIdx.x] = other.value + other.tag;
}

// <<<1, 64>>>
extern "C" __global__ void padding_wrong(const unsigned* in, unsigned* out, unsigned* zero)
{
    __shared__ Padded all[64];
    all[threadIdx.x].tag = (char)threadIdx.x;
    __syncthreads();
    Padded other = all[63 - threadIdx.x]; // FINDS
    out[threadIdx.x] = other.value + other.tag;
}
