// named: one template and one extern "C" kernel, for FILE:ENTRY in both spellings; one contract: (out, n), out[i] = N.
namespace ns {
template <int N> __global__ void k(unsigned *out, unsigned long long n)
{
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = N;
}
} // namespace ns

extern "C" __global__ void named(unsigned *out, unsigned long long n)
{
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 4;
}
