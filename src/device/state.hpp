// The common layer's state of one open device.
#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <unordered_map>

#include "core/platform/threads.hpp"
#include "device/backend.hpp"
#include "device/launch/graph_numbers.hpp"
#include "device/pool.hpp"
#include "device/stages/stage_scope.hpp"

namespace lockstep::device {

/// Unread reports of a launch of a kernel with check or print_if.
struct PendingReports {
  Kernel kernel;
  std::shared_ptr<Memory> words;
};

/// A recording that one thread makes; what other threads launch meanwhile runs at once.
struct Recording {
  const DeviceState* device;
  std::shared_ptr<Queue> queue;                  // takes the commands
  std::vector<std::shared_ptr<Memory>>& memory;  // that the commands touch
  std::vector<PendingReports> reports;           // to be read after each replay
  std::shared_ptr<GraphNumbers> numbers;
};

/// Whether this thread records, on any device.
bool recording_now();

/// Of Kernel::function.
struct KernelForm {
  Type index = Type::i32;
  bool long_axes = false;
};

struct DeviceState : std::enable_shared_from_this<DeviceState> {
  std::shared_ptr<Backend> backend;
  DeviceOptions options;
  DeviceInfo info;  // with the limits in force
  MemoryPool pool;

  std::atomic<int64_t> launches{0}, bytes_to_device{0}, bytes_from_device{0}, kernels_compiled{0},
      cache_hits{0};
  std::atomic<bool> lost{false};

  SharedMutex modules_mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Module>> modules;                      // by kernel and form
  std::map<std::pair<uint64_t, std::vector<int>>, std::shared_ptr<Module>> windowed;  // with bound windows

  /// A compilation under way: other threads that want the module wait for its end.
  struct Compilation {
    bool done = false;
    std::shared_ptr<Module> module;
    std::exception_ptr error;
  };
  std::map<std::pair<uint64_t, std::vector<int>>, std::shared_ptr<Compilation>> under_way;
  ConditionVariable compiled;
  struct Compiled {
    KernelReport report;
    std::shared_ptr<Module> module;
  };
  std::vector<Compiled> reports;  // guarded by modules_mutex

  Support supports(const ir::Function& function, const NativeForm* native) const;
  std::shared_ptr<Module> module(const Kernel& kernel, KernelForm form, const std::vector<int>& windows);
  std::shared_ptr<Module> compile(const Kernel& kernel, KernelForm form, const std::vector<int>& windows);

  /// Graphs whose kernels report; guarded by modules_mutex.
  std::map<const RecordedGraph*, std::pair<std::weak_ptr<RecordedGraph>, std::vector<PendingReports>>>
      reporting_graphs;
  std::atomic<bool> graphs_report{false};
  void keep_reports(const std::shared_ptr<RecordedGraph>& graph, std::vector<PendingReports> reports);
  /// Waits for `queue`, prints what was to be printed and throws InputError for the first check that failed.
  void show_reports(const PendingReports& reports, Queue* queue);
  void show_reports_of(const RecordedGraph& graph, Queue* queue);

  /// This thread's recording on this device, or null.
  Recording* recording() const;
  /// Throws InputError where this thread records.
  void refuse_recorded(std::string_view operation) const;
  /// The queue that a launch, copy or clear of this thread goes to: the recording's, the stream's, that of Device::on, or
  /// null for the default one. Throws InputError for a stream of another device and for one inside a recording.
  Queue* queue_for(const Stream& stream, std::string_view operation);
  /// The same unasked, for events.
  static Queue* queue_of(const Stream& stream) { return stream.queue_.get(); }
  void count_launch();
  void count_copy(int64_t to_device, int64_t from_device);

  void check_alive() const {
    if (lost) throw DeviceError(DeviceFault::device_lost, info.name + " was lost");
  }
};

}  // namespace lockstep::device
