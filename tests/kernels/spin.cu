// A kernel of adjustable duration: `rounds` dependent steps of a 64-bit linear congruential generator from `seed`; the
// last state goes to *out. One thread.
extern "C" __global__ void spin(unsigned long long* out, unsigned long long seed, unsigned long long rounds)
{
    unsigned long long x = seed;
    for (unsigned long long j = 0; j < rounds; ++j)
        x = x * 6364136223846793005ull + 1442695040888963407ull;
    *out = x;
}

// This kernel declares a limit of 128 threads per block; a launch with more returns CUDA_ERROR_INVALID_VALUE.
extern "C" __global__ void __launch_bounds__(128) bounded(unsigned* out)
{
    out[threadIdx.x] = threadIdx.x;
}
