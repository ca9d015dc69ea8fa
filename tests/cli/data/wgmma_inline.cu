// A warpgroup product as inline PTX: for sm_90a only. Nothing runs it.
extern "C" __global__ void wgmma_inline()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
