// Shared by all objects of one open CUDA device: the context, its streams, its memory pool and staging
// memory.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "device/cuda/entered.hpp"
#include "device/cuda/graph_node.hpp"
#include "device/cuda/libraries/driver.hpp"

namespace lockstep::device::cuda {

/// Pinned host memory through which a stream's host data passes, so that copies overlap and never wait for
/// pageable memory.
struct Transfers;

class Core;

/// A stream of the driver's; gone with its last user.
class OwnedStream {
 public:
  explicit OwnedStream(const Core& core);
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  StreamHandle handle = nullptr;

 private:
  const Core& core_;
};

class Core : public std::enable_shared_from_this<Core> {
 public:
  /// Throws UnsupportedError (no such device) or DeviceError.
  explicit Core(int number);
  ~Core();
  Core(const Core&) = delete;

  const Driver& driver() const { return driver_; }
  int number() const { return number_; }
  int arch() const { return arch_; }
  int multiprocessors() const { return multiprocessors_; }
  DeviceNumber device() const { return device_; }

  /// Makes the context current in this thread. Throws DeviceError(device_lost) once the device is lost.
  [[nodiscard]] Entered enter() const;
  /// As enter(), for destructors: false where nothing can be done any more.
  [[nodiscard]] Entered try_enter() const noexcept;
  /// Throws DeviceError: allocation, compile, launch or device_lost as the result says, else `otherwise`.
  void check(Result result, DeviceFault otherwise, const char* doing) const {
    if (result != kSuccess) fail(result, otherwise, doing);
  }
  [[noreturn]] void fail(Result result, DeviceFault otherwise, const char* doing) const;
  bool lost() const { return lost_.load(std::memory_order_relaxed); }

  /// The default queue's stream.
  StreamHandle main_stream() const { return main_; }
  /// A stream that allocations and releases are ordered with.
  std::shared_ptr<OwnedStream> new_stream();
  /// Waits for a stream that is about to go and forgets it.
  void remove_stream(const std::shared_ptr<OwnedStream>& stream) noexcept;
  /// Waits for the main stream and for those of all queues. Throws DeviceError.
  void synchronize_all() const;
  void synchronize(StreamHandle stream) const {
    check(driver_.stream_synchronize(stream), DeviceFault::device_lost, "waiting for the device");
  }

  /// Memory that every stream may use from now on.
  Address allocate(int64_t bytes);
  /// The streams' work from now on begins after what `foreign` was given so far, and the other way round.
  void begin_after(StreamHandle foreign);
  /// The work of `then` from now on begins after what `first` was given so far.
  void begin_after(StreamHandle first, StreamHandle then);
  void end_before(StreamHandle foreign);
  /// Returns memory once the work that all streams have been given so far is done; `bytes` as they were requested.
  void release(Address address, int64_t bytes) noexcept;
  MemoryInfo memory() const;

  /// The main stream's.
  Transfers& main_transfers() { return *main_transfers_; }
  /// Transfers that a stream left, or new ones: pinning memory takes long.
  std::unique_ptr<Transfers> take_transfers();
  /// From a stream that has finished.
  void leave_transfers(std::unique_ptr<Transfers> transfers) noexcept;

 private:
  /// Both under mutex_.
  void free_in_order(Address address) noexcept;
  void free_small() noexcept;

  const Driver& driver_;
  int number_ = 0, arch_ = 0, multiprocessors_ = 1;
  DeviceNumber device_ = 0;
  ContextHandle context_ = nullptr;
  StreamHandle main_ = nullptr, memory_ = nullptr;
  PoolHandle pool_ = nullptr;           // null: plain allocations
  EventHandle memory_event_ = nullptr;  // orders the memory stream and the others; guarded by mutex_
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<OwnedStream>> queues_;
  /// Small memory by its size, freed while there was no stream but the main one: it goes round in that stream's order,
  /// without the driver and without events, which cost more than a small kernel. Empty where other streams are.
  std::map<int64_t, std::vector<Address>> small_;
  int64_t small_bytes_ = 0;
  std::unique_ptr<Transfers> main_transfers_;
  std::vector<std::unique_ptr<Transfers>> free_transfers_;
  mutable std::atomic<bool> lost_{false};
};

class CudaMemory final : public Memory {
 public:
  CudaMemory(std::shared_ptr<Core> core, int64_t size);
  CudaMemory(std::shared_ptr<Core> core, const Foreign& foreign, int64_t size);
  ~CudaMemory() override;
  /// Memory of others.
  bool foreign() const { return foreign_; }

 private:
  std::shared_ptr<Core> core_;
  std::shared_ptr<const void> owner_;
  std::optional<NativeStream> stream_;  // the owner's
  bool foreign_ = false;
};

class CudaQueue final : public Queue {
 public:
  explicit CudaQueue(std::shared_ptr<Core> core);
  /// One that captures a graph. Allocations are not ordered with it: a capture admits no waiting for the work of
  /// other streams.
  static std::shared_ptr<CudaQueue> capturing(std::shared_ptr<Core> core);
  ~CudaQueue() override;
  StreamHandle stream() const { return stream_->handle; }
  Transfers& transfers();
  std::vector<VariableNode> variables;  // that a capture took
  std::shared_ptr<Memory> workspace;    // of libraries' calls on this stream; null until the first one

 private:
  CudaQueue(std::shared_ptr<Core> core, std::shared_ptr<OwnedStream> stream);
  std::shared_ptr<Core> core_;
  std::shared_ptr<OwnedStream> stream_;
  std::once_flag first_transfer_;
  std::unique_ptr<Transfers> transfers_;
};

class CudaEvent final : public Event {
 public:
  CudaEvent(std::shared_ptr<Core> core, StreamHandle stream);
  ~CudaEvent() override;
  EventHandle handle = nullptr;

 private:
  std::shared_ptr<Core> core_;
};

inline StreamHandle stream_handle(NativeStream stream) {
  return reinterpret_cast<StreamHandle>(uintptr_t(stream));
}
inline StreamHandle stream_of(const Core& core, const Queue* queue) {
  return queue ? static_cast<const CudaQueue*>(queue)->stream() : core.main_stream();
}

}  // namespace lockstep::device::cuda
