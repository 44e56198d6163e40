// A launch that also runs on the interpreter (lockstep/check.hpp).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <source_location>
#include <string>
#include <vector>

#include "device/state.hpp"

namespace lockstep::device {

/// Every n-th launch of all devices; 0: none.
extern std::atomic<int64_t> check_everywhere;
inline bool checks_on(const Backend& backend) {
  return (check_everywhere.load(std::memory_order_relaxed) |
          backend.check_every.load(std::memory_order_relaxed)) != 0;
}
/// Reads LOCKSTEP_CHECK, once. Throws InputError for what is not a number of launches.
void read_check_variable();

/// Fills memory with a pattern by which later checks know what nothing has written.
void mark_unwritten(Backend& backend, Memory& memory, int64_t bytes);
/// Counts a replay whose launches cannot be checked.
void note_unchecked_graph(const Backend& backend, bool recorded_before);

/// For tests: changes what a device is said to have written before it is compared; null ends it.
void disturb_checked_results(std::function<void(uint8_t*)> disturb);

class CheckedLaunch {
 public:
  CheckedLaunch(DeviceState& device, Kernel kernel, KernelForm form, std::span<const Binding> buffers,
                std::span<const uint64_t> scalars, const std::array<int64_t, 3>& extent,
                const std::source_location& line);

  /// Replays read the scalars there.
  void follow(std::shared_ptr<GraphNumbers> numbers, size_t launch) {
    numbers_ = std::move(numbers);
    launch_ = launch;
  }
  /// Whether this launch's turn to be checked has come, and it can be.
  bool due() const;
  /// Runs it on the interpreter. False where the device must not run it; its results are then in place.
  bool before();
  /// Compares what the device made of it.
  void after(Queue* queue);

 private:
  /// The part of one memory that the launch's buffers span.
  struct Part {
    int64_t begin = 0, end = 0;  // bytes
    std::shared_ptr<Memory> copy;
  };

  const ir::Function& function() const { return kernel_.function(form_.index, form_.long_axes); }
  std::string launched() const;
  void copy_inputs();
  bool has_results(size_t buffer) const;
  bool comparable() const;
  void interpret();
  void put_results();
  void compare_buffer(size_t buffer, const std::vector<uint8_t>& got, const Part& part) const;

  DeviceState& device_;
  const Kernel kernel_;
  const KernelForm form_;
  const std::vector<Binding> buffers_;
  std::vector<uint64_t> scalars_;
  const std::array<int64_t, 3> extent_;
  const std::source_location line_;
  std::shared_ptr<GraphNumbers> numbers_;
  size_t launch_ = 0;
  std::map<Memory*, Part> parts_;
  bool faulty_ = false;
};

}  // namespace lockstep::device
