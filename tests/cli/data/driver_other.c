/* Another libcuda.so.1: each call returns RESULT. */
int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return flags == 0 ? RESULT : -1;
}
