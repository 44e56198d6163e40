// Kernels as machine code of this processor, through the disk cache.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "compile/native/abi.hpp"
#include "lockstep/device.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile::simd {

struct NativeKernel {
  virtual ~NativeKernel() = default;
  /// The access outside of its array that a launch ended with, from Frame::fault.
  virtual std::string fault_text(const Frame&) const { return {}; }
  KernelFunction function = nullptr;
  int64_t scratch_bytes = 0;  // per thread, aligned to kScratchAlignment
  bool from_cache = false;
};

/// Why this build or machine cannot compile kernels; empty where it can.
std::string native_unavailable();
/// "znver4": the processor for which code is made.
std::string native_processor();
/// 32-bit lanes of the vectors that kernels are made of.
int native_lanes();
/// Hash of the sources that this generator was built from.
std::string_view generator_hash();
/// Cache key of a lowered function's object: other arithmetic, generators and processors have others.
std::string object_key(const ir::Function& lowered, std::string_view generator, std::string_view processor);
/// Lowers, compiles or fetches from the cache, loads. Objects of another `generator` are not taken. Throws
/// DeviceError(compile).
std::shared_ptr<NativeKernel> compile_native(const ir::Function& traced, Numerics numerics,
                                             std::string_view generator = generator_hash());

/// Where threads run kernels only, as in a page: runs a compiled kernel over boxes on all of them. Each has `scratch_each`
/// bytes of `scratch`.
void run_on_workers(KernelFunction function, const Frame& frame, std::span<const Box> boxes,
                    std::byte* scratch, int64_t scratch_each);

}  // namespace lockstep::compile::simd
