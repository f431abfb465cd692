// Variables of a module for cuModuleGetGlobal, their initialisers, and kernels that read and write them.
struct Record {
    unsigned char tag;
    double value;
    int* link;
};

__constant__ float coefficients[16];                                     // 64 bytes, filled by the host
__constant__ unsigned primes[8] = { 2, 3, 5, 7, 11, 13, 17, 19 };
__device__ int table[6] = { -1, 2, -3, 4, -5, 6 };
__device__ unsigned long long zeroed[3];
__device__ double pi = 3.141592653589793;
__device__ unsigned char message[] = "hello, device";                    // 14 bytes with the NUL
__device__ int* inside_table = &table[2];                                // an address as initialiser
__device__ Record record = { 7, 2.5, &table[5] };
__device__ unsigned counter = 0;

// out[i] = in[i] * coefficients[i % 16] + primes[i % 8]
extern "C" __global__ void use_constants(const float* in, float* out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = fmaf(in[i], coefficients[i & 15], (float)primes[i & 7]);
}

// Writes the value of each variable to 8 bytes: table 0..5, zeroed 6..8, pi 9 (bits), message 10..23, *inside_table 24,
// record 25 tag, 26 value (bits), 27 *link.
extern "C" __global__ void read_globals(long long* out)
{
    unsigned k = 0;
    for (int j = 0; j < 6; ++j)
        out[k++] = table[j];
    for (int j = 0; j < 3; ++j)
        out[k++] = (long long)zeroed[j];
    out[k++] = __double_as_longlong(pi);
    for (int j = 0; j < 14; ++j)
        out[k++] = message[j];
    out[k++] = *inside_table;
    out[k++] = record.tag;
    out[k++] = __double_as_longlong(record.value);
    out[k++] = *record.link;
}

// One thread adds step to counter and reverses table.
extern "C" __global__ void write_globals(unsigned step)
{
    counter += step;
    for (int j = 0; j < 3; ++j) {
        int t = table[j];
        table[j] = table[5 - j];
        table[5 - j] = t;
    }
}
