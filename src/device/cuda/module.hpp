// Compiled kernels: printed, compiled by NVRTC or taken from the disk cache, loaded; and how their arguments
// are packed.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "compile/clike/cuda/cuda.hpp"
#include "device/cuda/core.hpp"

namespace lockstep::device::cuda {

/// Run by a dispatch: a kernel or a library.
class Launchable : public Module {
 public:
  virtual void launch(const Dispatch& dispatch, StreamHandle stream) const = 0;
};

class CudaModule final : public Launchable {
 public:
  /// Throws DeviceError(compile).
  CudaModule(std::shared_ptr<Core> core, const clike::CudaSource& source, Numerics numerics);
  ~CudaModule() override;

  void launch(const Dispatch& dispatch, StreamHandle stream) const override;
  /// So many blocks with arguments as the kernel declares them.
  void launch(std::span<const std::byte> arguments, unsigned blocks, StreamHandle stream) const;
  /// The launch that `stream` captured last.
  VariableNode captured(const Dispatch& dispatch, StreamHandle stream) const;
  void describe(KernelReport& report) const override;

 private:
  /// Puts the arguments into `to`, which has room for kMaxArgumentBytes.
  void pack(const Dispatch& dispatch, std::byte* to) const;
  KernelNode node_of(const Dispatch& dispatch) const;
  void launch(const KernelNode& node, const void* arguments, size_t bytes, StreamHandle stream) const;

  std::shared_ptr<Core> core_;
  ModuleHandle module_ = nullptr;
  FunctionHandle function_ = nullptr, fine_function_ = nullptr;
  std::array<int32_t, 3> block_;
  clike::PointsPlan points_;
  uint32_t dynamic_shared_bytes_;
  int32_t cluster_;
  clike::ArgumentLayout arguments_;
};

inline constexpr int kMaxArgumentBytes = 4096;

/// Prints a traced function, or wraps a native kernel's source with the struct of its arguments.
clike::CudaSource source_of(const ir::Function& traced, const CompileOptions& options, int arch);

}  // namespace lockstep::device::cuda
