#include "device/cuda/core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "device/cuda/staging.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device::cuda {

namespace {

/// Devices whose primary context an error has made unusable: the next opening resets it.
class LostDevices {
 public:
  void add(int number) {
    std::lock_guard lock(mutex_);
    lost_.insert(number);
  }
  bool contains(int number) {
    std::lock_guard lock(mutex_);
    return lost_.contains(number);
  }
  void remove(int number) {
    std::lock_guard lock(mutex_);
    lost_.erase(number);
  }

 private:
  std::mutex mutex_;
  std::set<int> lost_;
};
LostDevices& lost_devices() {
  static LostDevices devices;
  return devices;
}

/// Errors after which the context answers nothing else.
bool is_fatal(Result r) {
  switch (r) {
    case kDeinitialized:
    case 46:
    case 201:
    case 214:
    case 220:
    case 226:
    case 700:
    case 702:
    case 709:
    case 710:
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
    case 721:
    case 999: return true;
    default: return false;
  }
}

DeviceFault fault_of(Result r, DeviceFault otherwise) {
  switch (r) {
    case kOutOfMemory: return DeviceFault::allocation;
    case 200:
    case 209:
    case 218:
    case 221:
    case 222:
    case 223:
    case 300:
    case 301:
    case 500: return DeviceFault::compile;
    case 701:
    case 720:
    case 912: return DeviceFault::launch;
    default: return otherwise;
  }
}

constexpr int64_t kSmall = int64_t(64) << 10, kSmallKept = int64_t(4) << 20;
/// Bytes that are allocated: small sizes share few classes.
int64_t allocated_size(int64_t bytes) {
  return bytes > kSmall ? bytes : std::max<int64_t>(256, int64_t(std::bit_ceil(uint64_t(bytes))));
}

const Driver& driver_or_throw() {
  std::string reason;
  const Driver* driver = Driver::find(&reason);
  if (!driver) throw UnsupportedError(reason, "cuda", "an NVIDIA GPU and its driver");
  return *driver;
}

}  // namespace

Core::Core(int number) : driver_(driver_or_throw()), number_(number) {
  int count = 0;
  driver_.device_count(&count);
  if (number < 0 || number >= count)
    throw UnsupportedError(fmt::format("device cuda:{}", number), "--device",
                           fmt::format("cuda:0 to cuda:{}", count - 1));
  check(driver_.device_get(&device_, number), DeviceFault::launch, "opening the device");
  // Some drivers give no new context to a process after a fault: then only a new process can use the device
  // again.
  const bool was_lost = lost_devices().contains(number);
  if (was_lost) driver_.primary_reset(device_);
  const Result retained = driver_.primary_retain(&context_, device_);
  if (was_lost && retained != kSuccess)
    throw DeviceError(DeviceFault::device_lost,
                      fmt::format("cuda:{} was lost earlier in this process and its driver gives no new "
                                  "context ({}); start the program again",
                                  number_, driver_.describe(retained)));
  lost_devices().remove(number);
  check(retained, DeviceFault::launch, "making a context");
  const Entered here(driver_, context_, number_ == 0);
  if (!here) throw DeviceError(DeviceFault::launch, fmt::format("cuda:{}, making a context", number_));
  int major = 0, minor = 0, pools = 0;
  driver_.device_attribute(&major, kCapabilityMajor, device_);
  driver_.device_attribute(&minor, kCapabilityMinor, device_);
  driver_.device_attribute(&multiprocessors_, kMultiprocessors, device_);
  driver_.device_attribute(&pools, kMemoryPools, device_);
  arch_ = 10 * major + minor;
  for (StreamHandle* stream : {&main_, &memory_})
    check(driver_.stream_create(stream, kStreamNonBlocking), DeviceFault::launch, "making a stream");
  check(driver_.event_create(&memory_event_, kEventDisableTiming), DeviceFault::launch, "making an event");
  if (pools) {
    PoolProperties properties;
    properties.location.id = device_;
    check(driver_.pool_create(&pool_, &properties), DeviceFault::allocation, "making a memory pool");
    uint64_t keep = UINT64_MAX;  // freed memory stays for the next allocation; trimmed when memory runs out
    driver_.pool_set(pool_, kPoolReleaseThreshold, &keep);
    // A pool's first allocation takes the driver some 6 ms: here, not in the first kernel's time.
    Address first = 0;
    if (driver_.allocate_from_pool(&first, 1, pool_, memory_) == kSuccess) driver_.free_async(first, memory_);
  }
  main_transfers_ = std::make_unique<Transfers>(*this);
}

Core::~Core() {
  if (lost()) return;  // the context is gone, or goes with the next opening
  const Entered here = try_enter();
  if (!here) return;
  for (StreamHandle stream : {main_, memory_}) driver_.stream_synchronize(stream);
  main_transfers_.reset();
  free_transfers_.clear();
  free_small();
  if (pool_) driver_.pool_destroy(pool_);
  driver_.event_destroy(memory_event_);
  for (StreamHandle stream : {main_, memory_}) driver_.stream_destroy(stream);
  driver_.primary_release(device_);
}

Entered Core::enter() const {
  Entered entered = try_enter();
  if (!entered) throw DeviceError(DeviceFault::device_lost, fmt::format("cuda:{} was lost", number_));
  return entered;
}

Entered Core::try_enter() const noexcept {
  return lost() ? Entered() : Entered(driver_, context_, number_ == 0);
}

void Core::fail(Result result, DeviceFault otherwise, const char* doing) const {
  const bool fatal = is_fatal(result);
  if (fatal && !lost_.exchange(true)) lost_devices().add(number_);
  throw DeviceError(fatal ? DeviceFault::device_lost : fault_of(result, otherwise),
                    fmt::format("cuda:{}, {}: {}", number_, doing, driver_.describe(result)));
}

// ── streams
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────

OwnedStream::OwnedStream(const Core& core) : core_(core) {
  const Entered here = core_.enter();
  core_.check(core_.driver().stream_create(&handle, kStreamNonBlocking), DeviceFault::launch,
              "making a stream");
}
OwnedStream::~OwnedStream() {
  if (const Entered here = core_.try_enter()) core_.driver().stream_destroy(handle);
}

std::shared_ptr<OwnedStream> Core::new_stream() {
  const Entered here = enter();
  auto stream = std::make_shared<OwnedStream>(*this);
  std::lock_guard lock(mutex_);
  // Existing buffers may be in memory that was just freed.
  free_small();
  check(driver_.event_record(memory_event_, memory_), DeviceFault::launch, "making a stream");
  check(driver_.stream_wait(stream->handle, memory_event_, 0), DeviceFault::launch, "making a stream");
  queues_.push_back(stream);
  return stream;
}

void Core::remove_stream(const std::shared_ptr<OwnedStream>& stream) noexcept {
  if (const Entered here = try_enter())
    driver_.stream_synchronize(stream->handle);  // so that release() need not know it any more
  std::lock_guard lock(mutex_);
  std::erase(queues_, stream);
}

void Core::synchronize_all() const {
  const Entered here = enter();
  synchronize(main_);
  std::vector<std::shared_ptr<OwnedStream>> queues;  // they stay while this thread waits for them
  {
    std::lock_guard lock(mutex_);
    queues = queues_;
  }
  for (const auto& queue : queues) synchronize(queue->handle);
}

std::unique_ptr<Transfers> Core::take_transfers() {
  std::lock_guard lock(mutex_);
  if (free_transfers_.empty()) return std::make_unique<Transfers>(*this);
  std::unique_ptr<Transfers> transfers = std::move(free_transfers_.back());
  free_transfers_.pop_back();
  return transfers;
}

void Core::leave_transfers(std::unique_ptr<Transfers> transfers) noexcept {
  transfers->uploads.renew();
  transfers->downloads.renew();
  std::lock_guard lock(mutex_);
  free_transfers_.push_back(std::move(transfers));
}

CudaQueue::CudaQueue(std::shared_ptr<Core> core) : core_(std::move(core)), stream_(core_->new_stream()) {}
CudaQueue::CudaQueue(std::shared_ptr<Core> core, std::shared_ptr<OwnedStream> stream)
    : core_(std::move(core)), stream_(std::move(stream)) {}
CudaQueue::~CudaQueue() {
  core_->remove_stream(stream_);
  if (transfers_) core_->leave_transfers(std::move(transfers_));
}
Transfers& CudaQueue::transfers() {
  std::call_once(first_transfer_, [&] { transfers_ = core_->take_transfers(); });
  return *transfers_;
}

std::shared_ptr<CudaQueue> CudaQueue::capturing(std::shared_ptr<Core> core) {
  const Entered here = core->enter();
  auto stream = std::make_shared<OwnedStream>(*core);
  core->check(core->driver().begin_capture(stream->handle, kCaptureRelaxed), DeviceFault::launch,
              "recording");
  return std::shared_ptr<CudaQueue>(new CudaQueue(std::move(core), std::move(stream)));
}

// ── memory: allocated and freed on a stream of its own, ordered with the others by events
// ──────────────────────────

Address Core::allocate(int64_t bytes) {
  const Entered here = enter();
  const int64_t size = allocated_size(bytes);
  Address address = 0;
  std::lock_guard lock(mutex_);
  if (const auto kept = small_.find(size); kept != small_.end() && !kept->second.empty()) {
    address = kept->second.back();
    kept->second.pop_back();
    small_bytes_ -= size;
    return address;
  }
  const auto attempt = [&] {
    return pool_ ? driver_.allocate_from_pool(&address, size_t(size), pool_, memory_)
                 : driver_.allocate(&address, size_t(size));
  };
  Result result = attempt();
  if (result == kOutOfMemory &&
      pool_) {  // memory may wait for work to end, or be in the pool in pieces that are too small
    free_small();
    driver_.stream_synchronize(memory_);
    driver_.pool_trim(pool_, 0);
    result = attempt();
  }
  if (result == kOutOfMemory) {
    size_t free = 0, total = 0;
    driver_.memory_info(&free, &total);
    throw DeviceError(
        DeviceFault::allocation,
        fmt::format("cuda:{}: {} bytes of device memory requested, {} free", number_, bytes, free));
  }
  check(result, DeviceFault::allocation, "allocating");
  if (pool_) {
    check(driver_.event_record(memory_event_, memory_), DeviceFault::allocation, "allocating");
    check(driver_.stream_wait(main_, memory_event_, 0), DeviceFault::allocation, "allocating");
    for (const auto& queue : queues_)
      check(driver_.stream_wait(queue->handle, memory_event_, 0), DeviceFault::allocation, "allocating");
  }
  return address;
}

void Core::release(Address address, int64_t bytes) noexcept {
  const Entered here = address ? try_enter() : Entered();
  if (!here) return;
  const int64_t size = allocated_size(bytes);
  std::lock_guard lock(mutex_);
  if (pool_ && queues_.empty() && bytes <= kSmall && small_bytes_ + size <= kSmallKept) {
    small_[size].push_back(address);
    small_bytes_ += size;
  } else {
    free_in_order(address);
  }
}

void Core::free_in_order(Address address) noexcept {
  const auto wait_for = [&](StreamHandle stream) {
    driver_.event_record(memory_event_, stream);
    driver_.stream_wait(memory_, memory_event_, 0);
  };
  if (pool_) {
    wait_for(main_);
    for (const auto& queue : queues_) wait_for(queue->handle);
    driver_.free_async(address, memory_);
  } else {
    driver_.free(address);  // waits by itself
  }
}

void Core::free_small() noexcept {
  for (const auto& [size, addresses] : small_)
    for (const Address address : addresses) free_in_order(address);
  small_.clear();
  small_bytes_ = 0;
}

void Core::begin_after(StreamHandle foreign) {
  const Entered here = enter();
  std::lock_guard lock(mutex_);
  check(driver_.event_record(memory_event_, foreign), DeviceFault::launch, "following a stream");
  check(driver_.stream_wait(main_, memory_event_, 0), DeviceFault::launch, "following a stream");
  for (const auto& queue : queues_)
    check(driver_.stream_wait(queue->handle, memory_event_, 0), DeviceFault::launch, "following a stream");
}

void Core::begin_after(StreamHandle first, StreamHandle then) {
  if (first == then) return;
  const Entered here = enter();
  std::lock_guard lock(mutex_);
  check(driver_.event_record(memory_event_, first), DeviceFault::launch, "following a stream");
  check(driver_.stream_wait(then, memory_event_, 0), DeviceFault::launch, "following a stream");
}

void Core::end_before(StreamHandle foreign) {
  const Entered here = enter();
  std::lock_guard lock(mutex_);
  const auto precede = [&](StreamHandle own) {
    check(driver_.event_record(memory_event_, own), DeviceFault::launch, "preceding a stream");
    check(driver_.stream_wait(foreign, memory_event_, 0), DeviceFault::launch, "preceding a stream");
  };
  precede(main_);
  for (const auto& queue : queues_) precede(queue->handle);
}

MemoryInfo Core::memory() const {
  const Entered here = enter();
  size_t free = 0, total = 0;
  check(driver_.memory_info(&free, &total), DeviceFault::launch, "asking for free memory");
  if (pool_) {  // what the pool holds back can be allocated again
    uint64_t reserved = 0, used = 0;
    driver_.pool_get(pool_, kPoolReservedCurrent, &reserved);
    driver_.pool_get(pool_, kPoolUsedCurrent, &used);
    free += size_t(reserved - std::min(used, reserved));
  }
  return {int64_t(total), int64_t(free)};
}

CudaMemory::CudaMemory(std::shared_ptr<Core> core, int64_t size) : core_(std::move(core)) {
  bytes = size;
  address = core_->allocate(size);
}
CudaMemory::CudaMemory(std::shared_ptr<Core> core, const Foreign& foreign, int64_t size)
    : core_(std::move(core)), owner_(foreign.owner), stream_(foreign.stream), foreign_(true) {
  bytes = size;
  address = foreign.address;
  if (stream_ && *stream_ != kOrderedByUser) core_->begin_after(stream_handle(*stream_));
}
CudaMemory::~CudaMemory() {
  if (!foreign_) {
    core_->release(address, bytes);
  } else if (stream_ == kOrderedByUser) {
    // Ordered already.
  } else if (const Entered here = core_->try_enter()) {
    // The owner may give the memory to others: after our work, by its stream's order or by waiting.
    try {
      if (stream_)
        core_->end_before(stream_handle(*stream_));
      else
        core_->synchronize_all();
    } catch (const DeviceError&) {}  // the device is lost, and its memory with it
  }
}

CudaEvent::CudaEvent(std::shared_ptr<Core> core, StreamHandle stream) : core_(std::move(core)) {
  const Entered here = core_->enter();
  core_->check(core_->driver().event_create(&handle, kEventDefault), DeviceFault::launch, "making an event");
  core_->check(core_->driver().event_record(handle, stream), DeviceFault::launch, "recording an event");
}
CudaEvent::~CudaEvent() {
  if (const Entered here = core_->try_enter(); here && handle) core_->driver().event_destroy(handle);
}

}  // namespace lockstep::device::cuda
