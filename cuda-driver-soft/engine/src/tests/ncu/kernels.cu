// Kernels for comparing the counters with Nsight Compute. Each is launched once, in this order.
#include "common.h" // CHECK, floats and ints; not in this repository

// 1. A row of 4-byte loads and stores per warp: 4 sectors a request.
extern "C" __global__ void copy_row(float *to, const float *from) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i];
}

// 2. Each thread loads from a cache line of its own: 32 sectors a request.
extern "C" __global__ void copy_stride(float *to, const float *from) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i * 32];
}

// 3. Rows that begin 4 bytes after the beginning of a sector: 5 sectors a request.
extern "C" __global__ void copy_offset(float *to, const float *from) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i + 1];
}

// 4. 16 bytes per thread: 16 sectors; then all threads load the same 16 bytes, then the same 8 bytes.
extern "C" __global__ void wide(float4 *to, const float4 *from, float2 *to2, const float2 *from2) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = from[i];
    float4 b = from[blockIdx.x];
    float2 c = from2[blockIdx.x * 3];
    to[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    to2[i] = c;
}

// 5. Shared memory: column of a tile without padding (32 words in one bank), and a row.
extern "C" __global__ void transpose(float *to, const float *from) {
    __shared__ float tile[32][32];
    unsigned x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = from[y * 32 + x];
    __syncthreads();
    to[y * 32 + x] = tile[x][y];
}

// 6. Shared memory: 8 and 16 bytes per thread, stride of two words, one word for all threads.
extern "C" __global__ void shared_wide(float *to) {
    __shared__ __align__(16) float s[1024];
    unsigned i = threadIdx.x;
    for (unsigned k = i; k < 1024; k += 32) s[k] = k;
    __syncwarp();
    volatile float2 *two = (volatile float2 *)s;
    float a = two[i].x + two[i].y;
    float4 b = ((float4 *)s)[i];
    float c = ((volatile float *)s)[2 * i];
    float d = ((volatile float *)s)[to == nullptr ? i : 5];
    float e = two[2 * i].x + two[2 * i].y;
    to[i] = a + b.x + b.y + b.z + b.w + c + d + e;
}

// 7. A branch that half of the lanes take, and a loop whose length depends on the lane.
extern "C" __global__ void branches(int *to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    volatile int *at = to;
    int sum = 0;
    if (i & 1) { at[i] = 5; sum += at[i]; } else { at[i] = 7; sum -= at[i]; }
    for (unsigned k = 0; k < (i & 3); k++) { sum += at[i]; }
    to[i] = sum;
}

// 8. Atomic operations: one address for all threads, 8 addresses, one address per thread; then one with a result.
extern "C" __global__ void atomics(int *to, int *counts) {
    unsigned i = threadIdx.x;
    atomicMax(&counts[0], (int)(i * 7 % 32));
    atomicXor(&counts[i % 8], (int)i);
    atomicXor(&counts[64 + i], (int)i);
    to[i] = atomicExch(&counts[128 + i / 2], (int)i);
}

// 9. Atomic operations on shared memory, and barriers with different work before them.
extern "C" __global__ void histogram(int *to, const int *from) {
    __shared__ int bins[32];
    unsigned i = threadIdx.x;
    if (i < 32) bins[i] = 0;
    __syncthreads();
    atomicAdd(&bins[from[i] & 31], 1);
    __syncthreads();
    if (i < 32) to[i] = bins[i];
}

// 10. A reduction: shuffles, partial warps, predicated code.
extern "C" __global__ void reduce(float *to, const float *from, int n) {
    __shared__ float part[8];
    unsigned i = threadIdx.x;
    float sum = i < n ? from[i] : 0.0f;
    for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(0xffffffff, sum, k);
    if (i % 32 == 0) part[i / 32] = sum;
    __syncthreads();
    if (i == 0) {
        float all = 0;
        for (int k = 0; k < 8; k++) all += part[k];
        *to = all;
    }
}

// 11. Local memory: an array with an index that the compiler does not know.
extern "C" __global__ void local_array(int *to, const int *from) {
    unsigned i = threadIdx.x;
    int a[16];
    for (int k = 0; k < 16; k++) a[k] = from[k] + i;
    int sum = 0;
    for (int k = 0; k < 4; k++) sum += a[from[16 + k] & 15];
    to[i] = sum;
}

// 12. Matrix product with tiles: 2 blocks in each direction.
extern "C" __global__ void matmul(float *c, const float *a, const float *b, int n) {
    __shared__ float as[16][16], bs[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        as[threadIdx.y][threadIdx.x] = a[y * n + t + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + x];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}

int main() {
    float *a = floats(1 << 20), *b = floats(1 << 20), *c = floats(1 << 20);
    int *d = ints(1 << 20), *e = ints(1 << 20);
    copy_row<<<4, 256>>>(a, b);
    copy_stride<<<4, 256>>>(a, b);
    copy_offset<<<4, 256>>>(a, b);
    wide<<<2, 64>>>((float4 *)a, (const float4 *)b, (float2 *)c, (const float2 *)b);
    transpose<<<1, dim3(32, 32)>>>(a, b);
    shared_wide<<<1, 32>>>(a);
    branches<<<2, 64>>>(d);
    atomics<<<1, 32>>>(d, e);
    int values[256];
    for (int i = 0; i < 256; i++) values[i] = i * 5 % 32 / 4;
    CHECK(cudaMemcpy(d, values, sizeof(values), cudaMemcpyHostToDevice));
    histogram<<<1, 256>>>(e, d);
    reduce<<<1, 256>>>(a, b, 200);
    local_array<<<1, 64>>>(e, d);
    matmul<<<dim3(2, 2), dim3(16, 16)>>>(a, b, c, 32);
    CHECK(cudaDeviceSynchronize());
    printf("Result = PASS\n");
}
