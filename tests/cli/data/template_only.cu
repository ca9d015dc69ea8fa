// template_only: no kernel until an instance is named; (out, n), out[i] = N.
namespace ns {
template <int N> __global__ void k(unsigned *out, unsigned long long n)
{
    unsigned long long i = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
    if (i < n)
        out[i] = N;
}
} // namespace ns
