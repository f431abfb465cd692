// Special registers of a thread, for three-dimensional grids and blocks. 16 words per thread, in order of the linear
// indices of block and thread: 0..2 tid, 3..5 ntid, 6..8 ctaid, 9..11 nctaid, 12 laneid, 13 WARP_SZ, 14 the thread's
// linear index % 32 (to compare with 12), 15 the constant 0x5eed.
extern "C" __global__ void registers(unsigned* out)
{
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned* r = out + ((size_t)block * (blockDim.x * blockDim.y * blockDim.z) + thread) * 16;
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    r[0] = threadIdx.x;
    r[1] = threadIdx.y;
    r[2] = threadIdx.z;
    r[3] = blockDim.x;
    r[4] = blockDim.y;
    r[5] = blockDim.z;
    r[6] = blockIdx.x;
    r[7] = blockIdx.y;
    r[8] = blockIdx.z;
    r[9] = gridDim.x;
    r[10] = gridDim.y;
    r[11] = gridDim.z;
    r[12] = lane;
    r[13] = warpSize;
    r[14] = thread % 32;
    r[15] = 0x5eed;
}
