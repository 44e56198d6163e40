// Compiled kernels: printed, compiled by NVRTC or taken from the disk cache, loaded; and how their arguments are packed.
#pragma once

#include <memory>
#include <string>

#include "compile/clike/cuda.hpp"
#include "device/cuda/core.hpp"

namespace lockstep::device::cuda {

class CudaModule final : public Module {
 public:
  /// Throws DeviceError(compile).
  CudaModule(std::shared_ptr<Core> core, const clike::CudaSource& source, Numerics numerics);
  ~CudaModule() override;

  /// Puts the arguments into `to`, which has room for kMaxArgumentBytes.
  void pack(const Dispatch& dispatch, std::byte* to) const;

  FunctionHandle function = nullptr;
  uint32_t dynamic_shared_bytes = 0;

 private:
  std::shared_ptr<Core> core_;
  ModuleHandle module_ = nullptr;
  clike::ArgumentLayout arguments_;
};

inline constexpr int kMaxArgumentBytes = 4096;

/// Prints a traced function, or wraps a native kernel's source with the struct of its arguments.
clike::CudaSource source_of(const ir::Function& traced, const CompileOptions& options, int arch);

}  // namespace lockstep::device::cuda
