// What all objects of one open CUDA device share: the context, its streams, its memory pool and staging
// memory.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "device/cuda/driver.hpp"

namespace lockstep::device::cuda {

/// Pinned host memory in slots, through which host data passes so that copies overlap and never wait for
/// pageable memory.
class Staging;

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
  void enter() const;
  /// As enter(), for destructors: false where nothing can be done any more.
  bool try_enter() const noexcept;
  /// Throws DeviceError: allocation, compile, launch or device_lost as the result says, else `otherwise`.
  void check(Result result, DeviceFault otherwise, const char* doing) const {
    if (result != kSuccess) fail(result, otherwise, doing);
  }
  [[noreturn]] void fail(Result result, DeviceFault otherwise, const char* doing) const;
  bool lost() const { return lost_.load(std::memory_order_relaxed); }

  /// The default queue's stream; between begin_record and end_record the one that records.
  StreamHandle default_stream() const { return default_.load(std::memory_order_relaxed); }
  StreamHandle main_stream() const { return main_; }
  StreamHandle recording_stream() const { return recording_; }
  void set_default_stream(StreamHandle stream) { default_.store(stream, std::memory_order_relaxed); }

  StreamHandle new_stream();
  void remove_stream(StreamHandle stream) noexcept;
  /// The main stream and those of all queues.
  std::vector<StreamHandle> streams() const;

  /// Memory that every stream may use from now on.
  Address allocate(int64_t bytes);
  /// Returns memory once the work that all streams have been given so far is done.
  void release(Address address) noexcept;
  MemoryInfo memory() const;

  Staging& uploads() { return *uploads_; }
  Staging& downloads() { return *downloads_; }

 private:
  const Driver& driver_;
  int number_ = 0, arch_ = 0, multiprocessors_ = 1;
  DeviceNumber device_ = 0;
  ContextHandle context_ = nullptr;
  StreamHandle main_ = nullptr, recording_ = nullptr, memory_ = nullptr;
  std::atomic<StreamHandle> default_{nullptr};
  PoolHandle pool_ = nullptr;           // null: plain allocations
  EventHandle memory_event_ = nullptr;  // orders the memory stream and the others; guarded by mutex_
  mutable std::mutex mutex_;
  std::vector<StreamHandle> queues_;
  std::unique_ptr<Staging> uploads_, downloads_;
  mutable std::atomic<bool> lost_{false};
};

class CudaMemory final : public Memory {
 public:
  CudaMemory(std::shared_ptr<Core> core, int64_t size);
  ~CudaMemory() override;
  Address address = 0;

 private:
  std::shared_ptr<Core> core_;
};

class CudaQueue final : public Queue {
 public:
  explicit CudaQueue(std::shared_ptr<Core> core) : core_(std::move(core)), stream(core_->new_stream()) {}
  ~CudaQueue() override { core_->remove_stream(stream); }

 private:
  std::shared_ptr<Core> core_;

 public:
  const StreamHandle stream;
};

class CudaEvent final : public Event {
 public:
  CudaEvent(std::shared_ptr<Core> core, StreamHandle stream);
  ~CudaEvent() override;
  EventHandle handle = nullptr;

 private:
  std::shared_ptr<Core> core_;
};

inline StreamHandle stream_of(const Core& core, const Queue* queue) {
  return queue ? static_cast<const CudaQueue*>(queue)->stream : core.default_stream();
}

}  // namespace lockstep::device::cuda
