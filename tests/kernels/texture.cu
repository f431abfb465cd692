// Writes an affine map of a texture to a surface: the pixel with centre (x, y) is the texture's sample at the
// coordinates (u . p, v . p), where p = (x, y, 1).
extern "C" __global__ void affine(cudaTextureObject_t picture, cudaSurfaceObject_t out, unsigned width,
                                  unsigned height, float3 u, float3 v)
{
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    // The centre of the pixel.
    float x = column + 0.5f, y = row + 0.5f;
    float4 color = tex2D<float4>(picture, u.x * x + u.y * y + u.z, v.x * x + v.y * y + v.z);
    uchar4 pixel = make_uchar4(color.x * 255.0f + 0.5f, color.y * 255.0f + 0.5f, color.z * 255.0f + 0.5f,
                               color.w * 255.0f + 0.5f);
    surf2Dwrite(pixel, out, column * sizeof(uchar4), row);
}
