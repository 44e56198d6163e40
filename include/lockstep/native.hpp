// Native kernels: CUDA C++ or a call of a vendor library as an alternative to a portable kernel with the same
// arguments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "lockstep/kernel/kernel.hpp"

namespace lockstep {

/// The product c = a b by cuBLAS, which is loaded at run time. The kernel has three parameters in the order a, b, c:
/// matrices or batches of matrices in f32 or f64, or a and b of 16 bits with c of 16 bits or f32. Sums of 16-bit
/// products are computed in f32.
struct LibraryProduct {
  bool tf32 = false;  // round f32 to ten bits of mantissa before the product
};

/// CUDA form of a kernel. NVRTC compiles the source without headers. The source defines
/// `extern "C" __global__ void <entry>(const __grid_constant__ Arguments a)`. The engine prepends `struct Arguments`,
/// which has the arguments of the portable kernel as members: b0, b1 … (pointers of the buffers), b0_n0 … (shapes) and
/// b0_s0 … (strides in elements), both with the slowest axis first, p0, p1 … (scalars), extent_x … (the whole domain)
/// and offset_x … (first point or group of this launch).
struct NativeForm {
  NativeCuda cuda;
  /// Threads of a block; zeros: the group of the portable kernel.
  std::array<int32_t, 3> block{0, 0, 0};
  /// Points kernels: number of points that a block computes along each axis; zeros: one per thread.
  std::array<int32_t, 3> points{0, 0, 0};
  int64_t dynamic_shared_bytes = 0;
  /// Groups kernels: number of blocks per group, up to 16, adjacent along x. The source declares them as a cluster
  /// (`__cluster_dims__`, sm_90).
  int32_t cluster = 1;
  /// Compiled for the device's own architecture only (`sm_90a`), with instructions that later architectures may lack.
  bool own_architecture = false;
  /// A library call instead of a source. It is launched over one point.
  std::optional<LibraryProduct> product = std::nullopt;
};

/// A kernel named `<portable>.native` (`.cublas`, `.cublas_tf32`) with the parameters and domain of the portable one,
/// for CUDA only. It does not replace the portable kernel: a case launches both and compares them.
Kernel native_kernel(const Kernel& portable, NativeForm form);
/// The native form, or null for a portable kernel.
const NativeForm* native_form(const Kernel& kernel);

}  // namespace lockstep
