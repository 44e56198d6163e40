// Host data on its way: chunks pass through pinned slots, so that the copy into a slot and the transfer of
// the others overlap.
#pragma once

#include <mutex>
#include <vector>

#include "device/cuda/core.hpp"

namespace lockstep::device::cuda {

class Staging {
 public:
  /// Slots are allocated when first used: small ones as long as small data passes, since pinning memory takes
  /// the driver about half a millisecond per MiB.
  Staging(const Core& core, int slots, int64_t slot_bytes);
  ~Staging();

  /// Returns when `data` has been read; the device copy may still run on `stream`.
  void upload(StreamHandle stream, Address to, const void* data, int64_t bytes);
  /// Returns when `data` is complete.
  void download(StreamHandle stream, Address from, void* data, int64_t bytes);
  /// To be called once a stream that is about to go has finished.
  void forget(StreamHandle stream);

 private:
  struct Slot {
    std::byte* memory = nullptr;
    int64_t capacity = 0;
    EventHandle done = nullptr;
    StreamHandle stream = nullptr;  // whose copies use it now
    int64_t filled = 0;
    bool in_flight = false;  // `done` has been recorded
  };
  /// Makes a free slot ready for so many bytes, or for as many as a slot holds.
  void prepare(Slot& slot, int64_t bytes);
  void wait(Slot& slot);
  void close(Slot& slot);

  const Core& core_;
  const int64_t slot_bytes_;
  std::vector<Slot> slots_;
  size_t current_ = 0;
  std::mutex mutex_;
};

}  // namespace lockstep::device::cuda
