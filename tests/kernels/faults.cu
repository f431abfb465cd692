// Kernels that can fault, which leaves a sticky error in the process. The cause of the fault is an argument, so that
// the compiler cannot see the fault.

// Reads *p. Tests pass a null pointer or another address without memory.
extern "C" __global__ void fault_read(const unsigned* p, unsigned* out)
{
    *out = *p;
}

// Writes *p.
extern "C" __global__ void fault_write(unsigned* p, unsigned value)
{
    *p = value;
}

// Only thread `which` reads p[offset]; the others read p[0].
extern "C" __global__ void fault_one_thread(const unsigned* p, unsigned which, unsigned long long offset, unsigned* out)
{
    out[threadIdx.x] = p[threadIdx.x == which ? offset : 0];
}

// Reads word `index` of a shared array of 32 words.
extern "C" __global__ void fault_shared(unsigned index, unsigned* out)
{
    __shared__ volatile unsigned s[32];
    s[threadIdx.x & 31] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[index];
}

// Reads 4 bytes at p + offset, where p is aligned: misaligned unless offset is a multiple of 4.
extern "C" __global__ void fault_misaligned(const unsigned char* p, unsigned offset, unsigned* out)
{
    *out = *(const unsigned*)(p + offset);
}

// Traps if value is not zero.
extern "C" __global__ void fault_trap(unsigned value, unsigned* out)
{
    if (value != 0)
        __trap();
    *out = 1;
}
