// Native kernels: CUDA C++ or a call of a vendor library as an alternative to a portable kernel with the same
// arguments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "lockstep/kernel/kernel.hpp"

namespace lockstep {

/// The product c = a b of the three matrices, or batches of matrices, that a kernel takes in this order, by cuBLAS
/// (loaded at run time): f32, f64, or a and b of 16 bits with c of 16 bits or f32; sums of 16-bit products in f32.
struct LibraryProduct {
  bool tf32 = false;  // f32 rounded to ten bits of mantissa before the product
};

/// CUDA form of a kernel. The source is compiled by NVRTC without headers; it holds
/// `extern "C" __global__ void <entry>(const __grid_constant__ Arguments a)`. The engine puts `struct
/// Arguments` before it, with all arguments of the portable kernel: b0, b1 … pointers of the buffers, b0_n0 …
/// shapes and b0_s0 … strides (slowest axis first), p0, p1 … scalars, extent_x … of the whole domain and
/// offset_x … of this launch (first point or first group).
struct NativeForm {
  NativeCuda cuda;
  /// Threads of a block; zeros: the group of the portable kernel.
  std::array<int32_t, 3> block{0, 0, 0};
  /// Points that a block covers along each axis (points kernels); zeros: one per thread.
  std::array<int32_t, 3> points{0, 0, 0};
  int64_t dynamic_shared_bytes = 0;
  /// Groups kernels: number of blocks per group, adjacent along x; the source makes them a cluster
  /// (`__cluster_dims__`, sm_90) of up to 16 blocks.
  int32_t cluster = 1;
  /// Compiled for the device's own architecture only (`sm_90a`), with instructions that later architectures may lack.
  bool own_architecture = false;
  /// Instead of a source. Launched over one point.
  std::optional<LibraryProduct> product = std::nullopt;
};

/// A kernel named `<portable>.native` (`.cublas`, `.cublas_tf32`) with the parameters and domain of the portable one,
/// for CUDA only. It does not replace the portable kernel: a case launches both and compares them.
Kernel native_kernel(const Kernel& portable, NativeForm form);
/// The native form, or null for a portable kernel.
const NativeForm* native_form(const Kernel& kernel);

}  // namespace lockstep
