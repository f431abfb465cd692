// c = a * b, row-major: a is m x k, b is k x n, c is m x n. Blocks of 16 x 16 threads; ragged edges are padded with
// zeros in shared memory. Each element is a chain of fma in ascending k, from +0.
constexpr int TILE = 16;

template <typename T>
__device__ __forceinline__ void tiled(const T* a, const T* b, T* c, int m, int n, int k)
{
    __shared__ T ta[TILE][TILE];
    __shared__ T tb[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;
    T acc = 0;
    for (int t = 0; t < (k + TILE - 1) / TILE; ++t) {
        int ka = t * TILE + tx;
        int kb = t * TILE + ty;
        ta[ty][tx] = row < m && ka < k ? a[row * k + ka] : T(0);
        tb[ty][tx] = kb < k && col < n ? b[kb * n + col] : T(0);
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            acc = fma(ta[ty][i], tb[i][tx], acc);
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = acc;
}

extern "C" __global__ void matmul_f32(const float* a, const float* b, float* c, int m, int n, int k)
{
    tiled<float>(a, b, c, m, n, k);
}

extern "C" __global__ void matmul_f64(const double* a, const double* b, double* c, int m, int n, int k)
{
    tiled<double>(a, b, c, m, n, k);
}
