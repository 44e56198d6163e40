// A lowered kernel as a WebAssembly module.
#pragma once

#include "compile/native/abi.hpp"
#include "compile/wasm/module.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile::wasm {

/// Abilities of the engine that runs a module.
struct Engine {
  bool fuses = false;   // has relaxed SIMD, whose madd rounds once
  bool shared = false;  // the core's memory is shared with workers
};

inline constexpr uint32_t kNoBuffer = 0xffffffffu;

/// An access that a kernel checks.
struct CheckedAccess {
  uint32_t buffer;          // kNoBuffer: a shared or local array
  int64_t size;             // bytes of a buffer's element, elements of another array
  std::string array, line;  // "buffer out"; of the author: "life.js:23", or empty
};

struct KernelModule {
  Bytes bytes;  // imports core.memory and core.fma; exports "kernel", a simd::KernelFunction
  int64_t scratch_bytes = 0;
  std::vector<CheckedAccess> accesses;  // by the numbers of Frame::fault, from 1 on
};

/// `lowered` is what compile::lower gives for Target::cpu, without calls. Throws DeviceError(compile) where a limit of
/// WebAssembly engines is passed.
KernelModule emit(const ir::Function& lowered, const Engine& engine = {});
/// The access outside of its array that a launch of the kernel noted in `frame`.
std::string fault_text(std::string_view kernel, const std::vector<CheckedAccess>& accesses,
                       const simd::Frame& frame);

}  // namespace lockstep::compile::wasm
