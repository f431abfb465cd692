// `redux`, which needs compute_80. Eight values of each member, from out[lane * 8]: the sum, the signed minimum and
// maximum, the unsigned minimum and maximum, and the bitwise and, or and exclusive or. The other lanes get 0xdead.
extern "C" __global__ void reduce_members(const int* in, unsigned mask, unsigned* out)
{
    unsigned lane = threadIdx.x;
    int x = in[lane];
    out += lane * 8;
    for (int i = 0; i < 8; i++)
        out[i] = 0xdeadu;
    if (mask >> lane & 1) {
        out[0] = __reduce_add_sync(mask, x);
        out[1] = __reduce_min_sync(mask, x);
        out[2] = __reduce_max_sync(mask, x);
        out[3] = __reduce_min_sync(mask, (unsigned)x);
        out[4] = __reduce_max_sync(mask, (unsigned)x);
        out[5] = __reduce_and_sync(mask, (unsigned)x);
        out[6] = __reduce_or_sync(mask, (unsigned)x);
        out[7] = __reduce_xor_sync(mask, (unsigned)x);
    }
}
