// The open device: its queue, its errors, and the batch of commands that is not submitted yet.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/platform/threads.hpp"
#include "device/backend.hpp"
#include "device/webgpu/native.hpp"

namespace lockstep::device::webgpu {

/// Errors that the device reported. Filled by callbacks, which never throw; read by Core::check.
struct ErrorSink {
  Mutex mutex;
  bool lost = false, failed = false;
  WGPUErrorType type = WGPUErrorType_NoError;
  std::string message;
};

/// A pipeline with its layouts, shared by all dispatches of one shader.
struct Pipeline {
  WGPUComputePipeline handle = nullptr;
  WGPUBindGroupLayout layout = nullptr;  // of group 0, owned by Core
  bool has_arguments = false;            // group 1 is the argument block
};

/// A part of a WebGPU buffer as one binding.
struct BufferRange {
  WGPUBuffer buffer;
  uint64_t offset, size;
  friend bool operator==(const BufferRange&, const BufferRange&) = default;
};

inline constexpr uint64_t kArgumentBytes = 2048;  // most that one dispatch's argument block may take
inline constexpr uint64_t kBatchArguments = 256 << 10;
inline constexpr int kBatchDispatches = 256;
inline constexpr int kMaxInFlight = 16;  // submissions that may wait for the device

class Core {
 public:
  Core(const Native& native, const Adapter& adapter);
  ~Core();
  Core(const Core&) = delete;

  const Native& n;
  const Adapter adapter;
  WGPUDevice device = nullptr;
  WGPUQueue queue = nullptr;
  double seconds_per_tick = 0;  // of timestamps; 0 = none
  /// Guards everything here; public calls of the back end take it.
  RecursiveMutex mutex;

  // ── errors
  // ────────────────────────────────────────────────────────────────────────────────────────────────────────
  /// Throws DeviceError where the device reported something since the last call.
  void check(DeviceFault fault, std::string_view doing);
  /// Throws DeviceError(device_lost) without touching a lost device, whose calls may end the process.
  void check_alive();
  bool lost();

  // ── commands
  // ──────────────────────────────────────────────────────────────────────────────────────────────────────
  WGPUCommandEncoder encoder();  // no pass open
  /// Adds a dispatch. `arguments` are copied; `group` may be null where the pipeline binds no buffer.
  void encode(const Pipeline& pipeline, WGPUBindGroup group, const std::vector<uint32_t>& arguments,
              const std::array<uint32_t, 3>& groups);
  /// The same with an argument block in a buffer of its own.
  void encode_at(const Pipeline& pipeline, WGPUBindGroup group, WGPUBindGroup arguments,
                 uint32_t argument_offset, const std::array<uint32_t, 3>& groups);
  void copy(WGPUBuffer from, uint64_t from_offset, WGPUBuffer to, uint64_t to_offset, uint64_t bytes);
  void clear(WGPUBuffer buffer, uint64_t offset, uint64_t bytes);
  void write(WGPUBuffer buffer, uint64_t offset, const void* data, uint64_t bytes);
  /// Submits what is encoded; `uploads` also where only writes wait.
  void flush(bool uploads = false);
  /// Number of the last submission.
  WGPUSubmissionIndex last() const { return last_; }
  void wait(WGPUSubmissionIndex index);
  /// Maps a staging buffer that `submission` filled and shows its bytes.
  void read_mapped(WGPUBuffer staging, uint64_t bytes, WGPUSubmissionIndex submission,
                   const std::function<void(const char*)>& use);
  /// Where shaders count their open loops; null where the driver ends none early.
  WGPUBuffer loop_flag() const { return loop_flag_; }
  /// Throws DeviceError(launch) where one did since the last call.
  void check_loops();
  void mark_loops() { loops_ran_ = true; }
  /// Submits and waits for everything.
  void finish();

  // ── objects
  // ───────────────────────────────────────────────────────────────────────────────────────────────────────
  WGPUBuffer make_buffer(uint64_t bytes, WGPUBufferUsage usage, DeviceFault fault);
  /// Compiles WGSL. Bindings 0, 1, … of group 0 are storage buffers, writable as specified.
  Pipeline make_pipeline(const std::string& wgsl, const std::string& label, const std::vector<bool>& writable,
                         bool has_arguments);
  WGPUBindGroup bind_group(WGPUBindGroupLayout layout, const std::vector<BufferRange>& ranges);
  WGPUBindGroup argument_group(WGPUBuffer buffer);
  /// Before a buffer is destroyed: its bind groups go, and what uses it is submitted.
  void forget(WGPUBuffer buffer);
  uint64_t argument_stride() const { return argument_stride_; }

 private:
  void begin_pass();
  void end_pass();
  WGPUBindGroupLayout layout(const std::vector<bool>& writable);

  ErrorSink sink_;
  WGPUCommandEncoder encoder_ = nullptr;
  WGPUComputePassEncoder pass_ = nullptr;
  std::vector<uint32_t> batch_arguments_;
  int batch_dispatches_ = 0;
  uint64_t waiting_upload_ = 0;
  WGPUSubmissionIndex last_ = 0;
  std::deque<WGPUSubmissionIndex> in_flight_;
  uint64_t argument_stride_ = 256;
  WGPUBuffer argument_buffer_ = nullptr;
  WGPUBuffer loop_flag_ = nullptr, loop_flag_staging_ = nullptr;
  bool loops_ran_ = false;  // since check_loops
  WGPUBindGroupLayout argument_layout_ = nullptr;
  WGPUBindGroup argument_group_ = nullptr;

  struct CachedGroup {
    WGPUBindGroupLayout layout;
    std::vector<BufferRange> ranges;
    WGPUBindGroup group;
  };
  std::unordered_multimap<uint64_t, CachedGroup> groups_;
  std::vector<std::pair<std::vector<bool>, WGPUBindGroupLayout>> layouts_;
};

/// Memory of a buffer. Above the device's largest buffer it consists of several.
class WebgpuMemory final : public Memory {
 public:
  WebgpuMemory(std::shared_ptr<Core> core, int64_t bytes, int64_t chunk_bytes);
  ~WebgpuMemory() override;

  /// Calls `visit(buffer, offset in it, offset from the range's begin, bytes)` for the parts of a range.
  template <class Visit>
  void for_each_part(int64_t offset, int64_t bytes_wanted, Visit visit) const {
    for (int64_t done = 0; done < bytes_wanted;) {
      const int64_t at = offset + done, inside = at % chunk_bytes_;
      const int64_t part = std::min(bytes_wanted - done, chunk_bytes_ - inside);
      visit(chunks_[size_t(at / chunk_bytes_)], inside, done, part);
      done += part;
    }
  }
  /// The buffer that holds a range, which is in one chunk (padding to whole words included).
  BufferRange range(int64_t offset, int64_t bytes_wanted) const;
  int64_t chunk_bytes() const { return chunk_bytes_; }
  int64_t padded_bytes() const { return (bytes + 3) & ~int64_t(3); }

 private:
  std::shared_ptr<Core> core_;
  int64_t chunk_bytes_;
  std::vector<WGPUBuffer> chunks_;
};

}  // namespace lockstep::device::webgpu
