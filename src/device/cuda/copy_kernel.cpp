#include "device/cuda/copy_kernel.hpp"

#include "core/reports/log.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device::cuda {

namespace {

/// Below it both take what a launch takes.
constexpr int64_t kLeastBytes = int64_t(1) << 20;
constexpr int kBlock = 256;

// One access a thread: two, four or eight were slower on an H200.
constexpr const char* kSource = R"(
extern "C" __global__ void __launch_bounds__(256) lockstep_copy(const uint4* from, uint4* to, long long bytes) {
  const long long at = (long long)blockIdx.x * 256 + threadIdx.x, whole = bytes >> 4;
  if (at < whole) to[at] = from[at];
  if (at < (bytes & 15)) ((char*)(to + whole))[at] = ((const char*)(from + whole))[at];
}
)";

struct CopyArguments {
  Address from, to;
  int64_t bytes;
};

}  // namespace

void CopyKernel::make() {
  clike::CudaSource source;
  source.text = kSource;
  source.entry = "lockstep_copy";
  source.block = source.covered = {kBlock, 1, 1};
  try {
    module_ = std::make_unique<CudaModule>(core_, source, Numerics::exact);
  } catch (const DeviceError& error) {
    if (error.fault() == DeviceFault::device_lost) throw;
    logging::warning("cuda:{}: copies by the driver: {}", core_->number(), error.what());
  }
}

bool CopyKernel::copy(const CudaMemory& from, int64_t from_offset, const CudaMemory& to, int64_t to_offset,
                      int64_t bytes, StreamHandle stream) {
  const Address first = from.address + Address(from_offset), target = to.address + Address(to_offset);
  const bool apart = first + Address(bytes) <= target || target + Address(bytes) <= first;
  if (bytes < kLeastBytes || first % 16 != 0 || target % 16 != 0 || !apart || from.foreign() || to.foreign())
    return false;
  std::call_once(first_, [&] { make(); });
  if (!module_) return false;
  const CopyArguments arguments{first, target, bytes};
  module_->launch(std::as_bytes(std::span(&arguments, 1)), unsigned((bytes / 16 + kBlock - 1) / kBlock),
                  stream);
  return true;
}

}  // namespace lockstep::device::cuda
