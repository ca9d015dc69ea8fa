#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
__device__ unsigned map(const void*p, unsigned r){ unsigned a=(unsigned)__cvta_generic_to_shared(p), d; asm volatile("mapa.shared::cluster.u32 %0,%1,%2;":"=r"(d):"r"(a),"r"(r)); return d;}
extern "C" __global__ void k(float*g, int*h){
  __shared__ float t[256]; __shared__ alignas(16) char buf[4096]; __shared__ unsigned long long bar;
  unsigned tb=(unsigned)__cvta_generic_to_shared(&bar), sb=(unsigned)__cvta_generic_to_shared(buf);
  t[threadIdx.x]=g[threadIdx.x];
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"::"r"(tb));
  asm volatile("fence.mbarrier_init.release.cluster;");
  asm volatile("fence.proxy.async.shared::cta;");
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n barrier.cluster.wait.acquire.aligned;");
  unsigned m=map(&t[threadIdx.x],1), mb=map(&bar,1);
  asm volatile("st.shared::cluster.f32 [%0], %1;"::"r"(m),"f"(g[1]));
  float f; asm volatile("ld.shared::cluster.f32 %0,[%1];":"=f"(f):"r"(m)); g[2]=f;
  float4 v; asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3},[%4];":"=f"(v.x),"=f"(v.y),"=f"(v.z),"=f"(v.w):"r"(m)); g[3]=v.x+v.y+v.z+v.w;
  int o; asm volatile("atom.add.shared::cluster.u32 %0,[%1],%2;":"=r"(o):"r"(m),"r"(3)); h[4]=o;
  asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0],%1;"::"r"(m),"r"(3));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0],%1,[%2];"::"r"(m),"r"(7),"r"(mb));
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0],%1,[%2];"::"r"(m),"r"(7),"r"(mb));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%0];"::"r"(mb));
  asm volatile("mbarrier.arrive.shared::cluster.b64 _,[%0];"::"r"(mb));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0], 64;"::"r"(tb));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],64,[%2];"::"r"(sb),"l"(g),"r"(tb));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0],[%1],64,[%2],%3;"::"r"(sb),"l"(g),"r"(tb),"h"((short)3));
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0],[%1],64,[%2];"::"r"(m),"r"(sb),"r"(mb));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],64;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"::"l"(g),"r"(sb));
  asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p,[%0],%1; @!p bra L;}"::"r"(tb),"r"(0));
  asm volatile("fence.acq_rel.cluster;"); asm volatile("fence.acq_rel.cta;");asm volatile("fence.acq_rel.gpu;"); asm volatile("fence.sc.cluster;");asm volatile("fence.acq_rel.sys;");
  asm volatile("ld.acquire.cluster.shared::cluster.u32 %0,[%1];":"=r"(o):"r"(m)); h[5]=o;
  asm volatile("st.release.cluster.shared::cluster.u32 [%0],%1;"::"r"(m),"r"(o));
  asm volatile("ld.acquire.gpu.global.u32 %0,[%1];":"=r"(o):"l"(h)); h[6]=o;
  asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;");
  unsigned rr; asm volatile("getctarank.shared::cluster.u32 %0,%1;":"=r"(rr):"r"(m)); h[7]=rr;
#if __CUDA_ARCH__>=1000
  asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0],[%1];"::"r"(sb),"r"(tb));
#endif
  *cg::this_cluster().map_shared_rank(&t[3], 2)=1.f;
  atomicAdd(cg::this_cluster().map_shared_rank((int*)&t[3], 2),1);
  asm volatile("griddepcontrol.wait;");asm volatile("griddepcontrol.launch_dependents;");
}
