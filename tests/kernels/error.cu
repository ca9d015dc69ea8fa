// error: does not compile; line 5, column 14 is where.
extern "C" __global__ void error(unsigned *out, unsigned long long n)
{
    if (threadIdx.x < n)
        out[0] = undeclared;
}
