// Kernels like those of real programs, for timing and for results. Unless a kernel's comment says otherwise, its blocks
// may have any size, and threads past the end of the data do nothing.

// Five-point stencil on a grid of w x h floats; the border is copied.
extern "C" __global__ void stencil(const float* in, float* out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    int i = y * w + x;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1)
        out[i] = in[i];
    else
        out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
}

// out = the transpose of in, w x h words, through a tile of shared memory. Blocks of 16 x 16 threads; w and h are
// multiples of 16.
extern "C" __global__ void transpose(const unsigned* in, unsigned* out, int w, int h)
{
    __shared__ unsigned tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * w + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    out[y * h + x] = tile[threadIdx.x][threadIdx.y];
}

// The same with blocks of 32 x 8 threads that move 32 x 32 words each; w and h are multiples of 32.
extern "C" __global__ void transpose_rows(const unsigned* in, unsigned* out, int w, int h)
{
    __shared__ unsigned tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}

struct __align__(16) four {
    float x, y, z, w;
};

// Doubles n groups of four floats in a grid-stride loop.
extern "C" __global__ void scale_four(const four* in, four* out, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        four v = in[i];
        v.x *= 2;
        v.y *= 2;
        v.z *= 2;
        v.w *= 2;
        out[i] = v;
    }
}

// The mean of 3 x 3 bytes of an image of w x h; outside of it the nearest pixel inside counts.
extern "C" __global__ void blur(const unsigned char* in, unsigned char* out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    unsigned sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            sum += in[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];
    out[y * w + x] = (unsigned char)(sum / 9);
}

// The grey values of n pixels of red, green, blue and a fourth byte that is ignored.
extern "C" __global__ void grey(const uchar4* in, unsigned char* out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uchar4 c = in[i];
    out[i] = (unsigned char)((77 * c.x + 150 * c.y + 29 * c.z) >> 8);
}

// counts[v] += the occurrences of v in n bytes, counted in shared memory first. Blocks of 256 threads.
extern "C" __global__ void histogram(const unsigned char* in, unsigned* counts, unsigned n)
{
    __shared__ unsigned part[256];
    part[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&part[in[i]], 1u);
    __syncthreads();
    if (part[threadIdx.x] != 0)
        atomicAdd(&counts[threadIdx.x], part[threadIdx.x]);
}

// out[i] = the sum of in from the first element of its block to i, with shuffles in a warp, then one value per warp
// through shared memory. Blocks of whole warps, with one element per thread.
extern "C" __global__ void scan(const unsigned* in, unsigned* out)
{
    __shared__ unsigned sums[32];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned v = in[i];
    for (unsigned d = 1; d < 32; d <<= 1) {
        unsigned other = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d)
            v += other;
    }
    if (lane == 31)
        sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        unsigned s = lane < blockDim.x / 32 ? sums[lane] : 0;
        for (unsigned d = 1; d < 32; d <<= 1) {
            unsigned other = __shfl_up_sync(0xffffffffu, s, d);
            if (lane >= d)
                s += other;
        }
        sums[lane] = s;
    }
    __syncthreads();
    out[i] = warp == 0 ? v : v + sums[warp - 1];
}

// Reduces the values of all threads of a block with op; every thread returns the result.
template <typename Op>
__device__ __forceinline__ float of_block(float v, float* shared, Op op)
{
    for (int d = 16; d > 0; d >>= 1)
        v = op(v, __shfl_xor_sync(0xffffffffu, v, d));
    if ((threadIdx.x & 31) == 0)
        shared[threadIdx.x >> 5] = v;
    __syncthreads();
    v = shared[0];
    for (unsigned i = 1; i < blockDim.x / 32; ++i)
        v = op(v, shared[i]);
    __syncthreads();
    return v;
}

// The softmax of each row of `columns` floats, one block per row. Blocks of whole warps.
extern "C" __global__ void softmax(const float* in, float* out, int columns)
{
    __shared__ float shared[32];
    const float* row = in + (size_t)blockIdx.x * columns;
    float most = -3.0e38f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        most = fmaxf(most, row[i]);
    most = of_block(most, shared, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += __expf(row[i] - most);
    sum = of_block(sum, shared, [](float a, float b) { return a + b; });
    float scale = 1.0f / sum;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[(size_t)blockIdx.x * columns + i] = __expf(row[i] - most) * scale;
}

// The gravitation of n bodies: x, y, z and the mass in, acceleration out. Tiles of 128 bodies in shared memory; blocks
// of 128 threads, n a multiple of that.
extern "C" __global__ void bodies(const four* in, four* out, int n)
{
    __shared__ four tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    four me = in[i];
    float ax = 0, ay = 0, az = 0;
    for (int t = 0; t < n; t += 128) {
        tile[threadIdx.x] = in[t + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; ++j) {
            four b = tile[j];
            float dx = b.x - me.x, dy = b.y - me.y, dz = b.z - me.z;
            float d = dx * dx + dy * dy + dz * dz + 0.01f;
            float r = rsqrtf(d);
            float s = b.w * r * r * r;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        __syncthreads();
    }
    four a = {ax, ay, az, 0};
    out[i] = a;
}

// Pseudo-random numbers and a hash of them, all integers: each thread loops `rounds` times.
extern "C" __global__ void hash(unsigned* out, unsigned rounds)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned s = i * 747796405u + 2891336453u, h = 2166136261u;
    for (unsigned r = 0; r < rounds; ++r) {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        h = (h ^ (s & 0xffu)) * 16777619u;
        h = (h << 7 | h >> 25) + (s >> 8);
    }
    out[i] = h;
}
