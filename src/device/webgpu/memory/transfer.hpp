// Bytes between host and device, and from place to place on the device.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "device/webgpu/core.hpp"

namespace lockstep::device::webgpu {

class Transfer {
 public:
  explicit Transfer(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~Transfer();

  /// Whole words.
  void upload(WebgpuMemory& to, int64_t offset, const void* data, int64_t bytes);
  void download(const WebgpuMemory& from, int64_t offset, void* data, int64_t bytes);

 private:
  static constexpr int64_t kStagingBytes = 8 << 20;
  struct Slot {
    WGPUBuffer buffer = nullptr;
    int64_t size = 0;
    WGPUSubmissionIndex submission = 0;
    char* to = nullptr;  // where its bytes go
    int64_t skip = 0, bytes = 0;
  };
  void collect(Slot& slot);

  std::shared_ptr<Core> core_;
  std::array<Slot, 3> slots_;
};

/// The pipelines behind copies and clears whose offsets or sizes are no multiple of 4, one lane a word; and behind large
/// copies, which drivers move at a fraction of the memory's rate, four words a lane.
class ByteKernels {
 public:
  explicit ByteKernels(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~ByteKernels();

  /// One dispatch: destination bytes [first, first + bytes) of `to`; from `from` at `from_offset`, or zeros
  /// without `from`.
  struct Step {
    const Pipeline* pipeline;
    WGPUBindGroup group;
    std::vector<uint32_t> arguments;
    std::array<uint32_t, 3> groups;
  };
  Step make(const BufferRange* from, uint32_t from_offset, const BufferRange& to, uint32_t first,
            uint32_t bytes);
  /// The ranges begin at the first quad.
  Step make_quads(const BufferRange& from, const BufferRange& to, uint32_t quads);

 private:
  std::shared_ptr<Core> core_;
  std::optional<Pipeline> copy_, clear_, quads_;
};

}  // namespace lockstep::device::webgpu
