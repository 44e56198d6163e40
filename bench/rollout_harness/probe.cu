#include <cstdio>
#include <cstdint>
#include <cuda_runtime.h>
#define FN __device__ __forceinline__
__global__ void recip(unsigned long long* bad) {
  unsigned long long b0 = 0, b1 = 0, b2 = 0, b3 = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < (1u << 23); i += gridDim.x * blockDim.x) {
    float d = __uint_as_float(0x3f800000u + i), r, want = __frcp_rn(d);
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
    float r1 = __fmaf_rn(r, __fmaf_rn(-d, r, 1.0f), r), r2 = __fmaf_rn(r1, __fmaf_rn(-d, r1, 1.0f), r1);
    b0 += r != want, b1 += r1 != want, b2 += r2 != want;
    float r2b = __fmaf_rn(r, __fmaf_rn(-d, r1, 1.0f), r1); b3 += r2b != want;
  }
  atomicAdd(bad, b0), atomicAdd(bad + 1, b1), atomicAdd(bad + 2, b2), atomicAdd(bad + 3, b3);
}
__global__ void lat(long long* out, float* sink, float seed) {
  float v = seed + threadIdx.x; int k = threadIdx.x; long long t0, t1;
#define T(i, stmt) t0 = clock64(); _Pragma("unroll 16") for (int n = 0; n < 512; n++) { stmt; } t1 = clock64(); if (threadIdx.x == 0) out[i] = t1 - t0;
  T(0, v = rintf(v))
  T(1, v = __fadd_rn(v, seed))
  T(2, asm volatile("rcp.approx.ftz.f32 %0,%0;" : "+f"(v)))
  T(3, k = __reduce_max_sync(~0u, k) + 1)
  T(4, v = __uint_as_float(__float_as_uint(v) << 1))
  T(5, asm volatile("max.NaN.f32 %0,%0,%1;" : "+f"(v) : "f"(seed)))
  T(6, v = __shfl_xor_sync(~0u, v, 4) + seed)
  T(7, asm volatile("ex2.approx.ftz.f32 %0,%0;" : "+f"(v)))
  sink[threadIdx.x] = v + k;
}
FN uint32_t s2u(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
FN uint32_t mapa(uint32_t a, uint32_t r) { uint32_t o; asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(o) : "r"(a), "r"(r)); return o; }
FN void expect(uint32_t b, uint32_t n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;" ::"r"(b), "r"(n) : "memory"); }
FN void wait(uint32_t b, uint32_t ph) { asm volatile("{\n.reg .pred p;\nL1_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p,[%0],%1;\n@!p bra L1_%=;\n}" ::"r"(b), "r"(ph) : "memory"); }
// All-gather of H words in a cluster of 16; SENDERS warps send, each to 16 / SENDERS blocks. MODE 0: b32, contiguous rows, 1: v4, 2: v2.
template <int H, int SENDERS, int MODE, int IDLE>
__global__ void __cluster_dims__(16, 1, 1) __launch_bounds__(32 * (SENDERS + IDLE), 1) gather(long long* out, uint32_t* sink) {
  constexpr int R = H / 16, N = 1000;
  __shared__ __align__(128) uint32_t buf[2][H];
  __shared__ uint64_t bars[2];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  uint32_t rank; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) { for (int k = 0; k < 2; ++k) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(s2u(&bars[k]))); asm volatile("fence.mbarrier_init.release.cluster;"); for (int k = 0; k < 2; ++k) expect(s2u(&bars[k]), H * 4); }
  __syncthreads();
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  uint32_t v = rank * 100 + lane;
  long long t0 = clock64(), sent = 0, waited = 0;
  for (int n = 0; n < N; ++n) {
    const int b = n & 1;
    const uint32_t at = s2u(buf[b]), bar = s2u(&bars[b]);
    long long s0 = clock64();
    if (warp < SENDERS) {
      if (MODE == 0) {
        constexpr int D = R >= 32 ? 1 : 32 / R, O = R > 32 ? R / 32 : 1;
#pragma unroll
        for (int o = 0; o < O; ++o)
#pragma unroll
          for (int i = 0; i < 16 / SENDERS / D; ++i) {
            const uint32_t to = warp * (16 / SENDERS) + i * D + (R >= 32 ? 0 : lane / R);
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(mapa(at + 4 * (rank * R + (R >= 32 ? lane + 32 * o : lane % R)), to)), "r"(v), "r"(mapa(bar, to)) : "memory");
          }
      } else if (MODE == 1) {
        constexpr int Q = R / 4, D = 32 / Q;  // lanes of a target, targets at once
        constexpr int I = 16 / SENDERS / D > 0 ? 16 / SENDERS / D : 1;
#pragma unroll
        for (int i = 0; i < I; ++i) {
          const uint32_t to = warp * (16 / SENDERS) + i * D + lane / Q;
          if (lane / Q < 16 / SENDERS)
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %1, %1, %1}, [%2];" ::"r"(mapa(at + 4 * (rank * R + lane % Q * 4), to)), "r"(v), "r"(mapa(bar, to)) : "memory");
        }
      } else {
        constexpr int Q = R / 2, D = 32 / Q;
        constexpr int I = 16 / SENDERS / D > 0 ? 16 / SENDERS / D : 1;
#pragma unroll
        for (int i = 0; i < I; ++i) {
          const uint32_t to = warp * (16 / SENDERS) + i * D + lane / Q;
          if (lane / Q < 16 / SENDERS)
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %1}, [%2];" ::"r"(mapa(at + 4 * (rank * R + lane % Q * 2), to)), "r"(v), "r"(mapa(bar, to)) : "memory");
        }
      }
    }
    long long s1 = clock64();
    wait(bar, (n >> 1) & 1);
    long long s2 = clock64();
    sent += s1 - s0, waited += s2 - s1;
    if (threadIdx.x == 0) expect(bar, H * 4);
    v = (buf[b][lane] & 0xffff) + 1;
  }
  long long t1 = clock64();
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = (t1 - t0) / N, out[1] = sent / N, out[2] = waited / N;
  if (v == 77) *sink = v;
}
long long *out; uint32_t* sink;
template <class K> void run(const char* name, K k, int threads) {
  cudaFuncSetAttribute(k, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  long long h[3];
  for (int r = 0; r < 2; ++r) { k<<<80, threads>>>(out, sink); cudaDeviceSynchronize(); }
  cudaMemcpy(h, out, 24, cudaMemcpyDeviceToHost);
  printf("%-36s %lld clk a round (sent in %lld, waited %lld) %s\n", name, h[0], h[1], h[2], cudaGetErrorString(cudaGetLastError()));
}
int main() {
  cudaMalloc(&out, 1024); cudaMalloc(&sink, 4096); cudaMemset(out, 0, 1024);
  unsigned long long h[4]; recip<<<264, 256>>>((unsigned long long*)out); cudaMemcpy(h, out, 32, cudaMemcpyDeviceToHost);
  printf("reciprocals of [1,2) not rounded correctly: approx %llu, one step %llu, two %llu, two with the first r %llu\n", h[0], h[1], h[2], h[3]);
  for (int r = 0; r < 2; ++r) lat<<<1, 32>>>(out, (float*)sink, 1.1f);
  long long l[8]; cudaMemcpy(l, out, 64, cudaMemcpyDeviceToHost);
  const char* n[] = {"rint", "fadd", "rcp.ftz", "redux.max+1", "shl", "max.NaN", "shfl+fadd", "ex2"};
  for (int k = 0; k < 8; ++k) printf("%s %.1f  ", n[k], l[k] / 512.0); printf("\n");
  run("256 b32 4 warps", gather<256, 4, 0, 0>, 128); run("256 v4 4 warps", gather<256, 4, 1, 0>, 128); run("256 v2 4 warps", gather<256, 4, 2, 0>, 128); run("256 v4 2 warps", gather<256, 2, 1, 2>, 128); run("256 b32 2 warps", gather<256, 2, 0, 2>, 128);
  run("512 b32 8 warps", gather<512, 8, 0, 0>, 256); run("512 b32 4 warps", gather<512, 4, 0, 4>, 256); run("512 v4 4 warps", gather<512, 4, 1, 4>, 256); run("512 v2 4 warps", gather<512, 4, 2, 4>, 256); run("512 v4 2 warps", gather<512, 2, 1, 6>, 256); run("512 v4 1 warp", gather<512, 1, 1, 7>, 256); run("512 b32 2 warps", gather<512, 2, 0, 2>, 128);
  run("1024 b32 4 warps", gather<1024, 4, 0, 4>, 256); run("1024 v4 4 warps", gather<1024, 4, 1, 4>, 256); run("1024 v2 4 warps", gather<1024, 4, 2, 4>, 256); run("1024 v4 8 warps", gather<1024, 8, 1, 0>, 256);
}
