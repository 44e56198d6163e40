// Large copies on the device: the driver's, one after the other in a stream or a graph, move two thirds of what a kernel
// of 16-byte accesses moves.
#pragma once

#include <memory>
#include <mutex>

#include "device/cuda/module.hpp"

namespace lockstep::device::cuda {

class CopyKernel {
 public:
  explicit CopyKernel(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  /// False where the driver's copy is as fast, or the only one that is right: small, not aligned or overlapping ranges,
  /// memory of others (another device's, the host's), and where the kernel cannot be made, which is logged.
  bool copy(const CudaMemory& from, int64_t from_offset, const CudaMemory& to, int64_t to_offset,
            int64_t bytes, StreamHandle stream);

 private:
  void make();

  std::shared_ptr<Core> core_;
  std::once_flag first_;
  std::unique_ptr<CudaModule> module_;
};

}  // namespace lockstep::device::cuda
