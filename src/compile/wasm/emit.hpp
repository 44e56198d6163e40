// A lowered kernel as a WebAssembly module.
#pragma once

#include "compile/wasm/module.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile::wasm {

struct KernelModule {
  Bytes bytes;  // imports core.memory and core.fma; exports "kernel", a simd::KernelFunction
  int64_t scratch_bytes = 0;
};

/// `lowered` is what compile::lower gives for Target::cpu, without calls. Throws DeviceError(compile) where a limit of
/// WebAssembly engines is passed.
KernelModule emit(const ir::Function& lowered);

}  // namespace lockstep::compile::wasm
