// Host data on its way: chunks pass through pinned slots, so that the copy into a slot and the transfer of
// the others overlap.
#pragma once

#include <mutex>
#include <vector>

#include "device/cuda/core.hpp"

namespace lockstep::device::cuda {

/// Pinned memory for the copies of one stream at a time.
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
  /// For another stream, once the one before has finished.
  void renew();

 private:
  struct Slot {
    std::byte* memory = nullptr;
    int64_t capacity = 0;
    EventHandle done = nullptr;
    int64_t filled = 0;
    bool in_flight = false;  // `done` has been recorded
  };
  /// Makes a free slot ready for so many bytes, or for as many as a slot holds.
  void prepare(Slot& slot, int64_t bytes);
  void wait(Slot& slot);
  void close(Slot& slot, StreamHandle stream);

  const Core& core_;
  const int64_t slot_bytes_;
  std::vector<Slot> slots_;
  size_t current_ = 0;
  std::mutex mutex_;
};

/// Both directions of one stream.
struct Transfers {
  explicit Transfers(const Core& core)
      : uploads(core, 4, int64_t(4) << 20), downloads(core, 2, int64_t(8) << 20) {}
  Staging uploads, downloads;
};

}  // namespace lockstep::device::cuda
