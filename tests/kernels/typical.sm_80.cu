// A matrix product of 16-bit floats as programs write it for tensor cores; needs compute_80. Inline PTX, so that no
// header is needed: 16-bit numbers are bit patterns.

// c = a * b: a is m x k, b is k x n, both row-major f16; c is m x n of f32. A block of two warps computes 32 x 16 of c,
// with tiles of 32 x 16 of a and 16 x 16 of b in shared memory; m is a multiple of 32, n and k of 16.
extern "C" __global__ void gemm_half(const unsigned short* a, const unsigned short* b, float* c, int m, int n, int k)
{
    __shared__ __align__(16) unsigned short ta[32][24];
    __shared__ __align__(16) unsigned short tb[16][24];
    int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    int row = blockIdx.y * 32, column = blockIdx.x * 16;
    float z[2][4] = {};
    for (int t = 0; t < k; t += 16) {
        // Each thread copies eight numbers at once.
        *(uint4*)&ta[thread / 2][thread % 2 * 8] = *(const uint4*)&a[(row + thread / 2) * k + t + thread % 2 * 8];
        if (warp == 0)
            *(uint4*)&tb[thread / 2][thread % 2 * 8] = *(const uint4*)&b[(t + thread / 2) * n + column + thread % 2 * 8];
        __syncthreads();
        unsigned x[4], y[4];
        unsigned at = (unsigned)__cvta_generic_to_shared(&ta[warp * 16 + lane % 16][lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(at));
        at = (unsigned)__cvta_generic_to_shared(&tb[lane % 16][lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
                     : "r"(at));
        for (int j = 0; j < 2; ++j)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                         "{%0,%1,%2,%3};"
                         : "+f"(z[j][0]), "+f"(z[j][1]), "+f"(z[j][2]), "+f"(z[j][3])
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[2 * j]), "r"(y[2 * j + 1]));
        __syncthreads();
    }
    for (int j = 0; j < 2; ++j)
        for (int r = 0; r < 4; ++r)
            c[(row + warp * 16 + lane / 4 + r / 2 * 8) * n + column + j * 8 + lane % 4 * 2 + r % 2] = z[j][r];
}
