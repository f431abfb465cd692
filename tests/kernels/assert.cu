// A failed assertion in a kernel: `CUDA_ERROR_ASSERT`, and a message with its place on the standard error stream.

// The function that CUDA C++'s `assert` calls.
extern "C" __device__ void __assertfail(const char* message, const char* file, unsigned line, const char* function,
                                        size_t char_size);

// Asserts that in[i] < limit, then copies in[i] to out[i].
extern "C" __global__ void assert_below(const unsigned* in, unsigned limit, unsigned* out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (in[i] >= limit)
        __assertfail("in[i] < limit", "assert.cu", 14, "assert_below", 1);
    out[i] = in[i];
}
