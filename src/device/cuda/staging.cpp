#include "device/cuda/staging.hpp"

#include <algorithm>
#include <cstring>

#include "core/platform/parallel.hpp"

namespace lockstep::device::cuda {

namespace {

/// One core copies slower than the bus.
void copy_host(std::byte* to, const std::byte* from, int64_t bytes) {
  constexpr int64_t kPiece = int64_t(512) << 10;
  if (bytes < 2 * kPiece) {
    std::memcpy(to, from, size_t(bytes));
    return;
  }
  static const auto& threads = *new platform::ThreadArena;  // transfers may outlast static objects
  threads.for_parts((bytes + kPiece - 1) / kPiece, [&](int64_t first, int64_t last) {
    first *= kPiece;
    std::memcpy(to + first, from + first, size_t(std::min(bytes, last * kPiece) - first));
  });
}

constexpr int64_t kSmallSlot = int64_t(128) << 10;

}  // namespace

Staging::Staging(const Core& core, int slots, int64_t slot_bytes)
    : core_(core), slot_bytes_(slot_bytes), slots_(size_t(slots)) {}

Staging::~Staging() {
  for (Slot& slot : slots_) {
    if (slot.memory) core_.driver().host_free(slot.memory);
    if (slot.done) core_.driver().event_destroy(slot.done);
  }
}

void Staging::prepare(Slot& slot, int64_t bytes) {
  const Driver& d = core_.driver();
  if (slot.capacity < std::min(bytes, slot_bytes_)) {
    const int64_t capacity = bytes > kSmallSlot ? slot_bytes_ : kSmallSlot;
    void* memory = nullptr;
    core_.check(d.host_allocate(&memory, size_t(capacity), 0), DeviceFault::allocation,
                "allocating pinned memory");
    if (slot.memory) d.host_free(slot.memory);
    slot.memory = static_cast<std::byte*>(memory);
    slot.capacity = capacity;
  }
  if (!slot.done)
    core_.check(d.event_create(&slot.done, kEventDisableTiming), DeviceFault::launch, "making an event");
}

void Staging::wait(Slot& slot) {
  if (slot.in_flight)
    core_.check(core_.driver().event_synchronize(slot.done), DeviceFault::device_lost, "copying");
  slot.in_flight = false;
  slot.filled = 0;
}

void Staging::close(Slot& slot, StreamHandle stream) {
  core_.check(core_.driver().event_record(slot.done, stream), DeviceFault::device_lost, "copying");
  slot.in_flight = true;
}

void Staging::renew() {
  for (Slot& slot : slots_) {
    slot.filled = 0;
    slot.in_flight = false;
  }
}

void Staging::upload(StreamHandle stream, Address to, const void* data, int64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    Slot* slot = &slots_[current_];
    const bool open = slot->filled > 0 && !slot->in_flight;
    if (!open || slot->filled == slot->capacity) {
      if (open) close(*slot, stream);
      current_ = (current_ + 1) % slots_.size();
      slot = &slots_[current_];
      wait(*slot);
      prepare(*slot, bytes);
    }
    const int64_t n = std::min(bytes, slot->capacity - slot->filled);
    std::byte* place = slot->memory + slot->filled;
    copy_host(place, from, n);
    core_.check(core_.driver().copy_to_device(to, place, size_t(n), stream), DeviceFault::device_lost,
                "copying to the device");
    slot->filled = std::min(slot->capacity, (slot->filled + n + 255) / 256 * 256);
    to += Address(n);
    from += n;
    bytes -= n;
  }
}

void Staging::download(StreamHandle stream, Address from, void* data, int64_t bytes) {
  std::lock_guard lock(mutex_);
  auto* to = static_cast<std::byte*>(data);
  int64_t asked = 0, taken = 0;
  size_t ask = 0, take = 0;
  while (taken < bytes) {
    while (asked < bytes && ask - take < slots_.size()) {
      Slot& slot = slots_[ask % slots_.size()];
      prepare(slot, bytes - asked);
      slot.filled = std::min(slot.capacity, bytes - asked);
      core_.check(
          core_.driver().copy_to_host(slot.memory, from + Address(asked), size_t(slot.filled), stream),
          DeviceFault::device_lost, "copying from the device");
      close(slot, stream);
      asked += slot.filled;
      ++ask;
    }
    Slot& slot = slots_[take % slots_.size()];
    const int64_t n = slot.filled;
    wait(slot);
    copy_host(to + taken, slot.memory, n);
    taken += n;
    ++take;
  }
}

}  // namespace lockstep::device::cuda
