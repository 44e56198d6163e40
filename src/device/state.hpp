// The common layer's state of one open device.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "device/backend.hpp"
#include "device/pool.hpp"

namespace lockstep::device {

struct DeviceState : std::enable_shared_from_this<DeviceState> {
  std::shared_ptr<Backend> backend;
  DeviceOptions options;
  DeviceInfo info;  // with the limits in force
  MemoryPool pool;

  std::atomic<int64_t> launches{0}, bytes_to_device{0}, bytes_from_device{0}, kernels_compiled{0},
      cache_hits{0};
  std::atomic<bool> lost{false};
  std::vector<std::shared_ptr<Memory>>* recording = nullptr;  // memory that a graph under record touches

  std::shared_mutex modules_mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Module>> modules;  // kernel id * 2 + wide index
  std::map<std::pair<uint64_t, std::vector<int>>, std::shared_ptr<Module>> windowed;  // with bound windows

  /// A compilation under way: other threads that want the module wait for its end.
  struct Compilation {
    bool done = false;
    std::shared_ptr<Module> module;
    std::exception_ptr error;
  };
  std::map<std::pair<uint64_t, std::vector<int>>, std::shared_ptr<Compilation>> under_way;
  std::condition_variable_any compiled;
  struct Compiled {
    KernelReport report;
    std::shared_ptr<Module> module;
  };
  std::vector<Compiled> reports;  // guarded by modules_mutex

  std::shared_ptr<Module> module(const Kernel& kernel, Type index, const std::vector<int>& windows);
  std::shared_ptr<Module> compile(const Kernel& kernel, Type index, const std::vector<int>& windows);
  void check_alive() const {
    if (lost) throw DeviceError(DeviceFault::device_lost, info.name + " was lost");
  }
};

}  // namespace lockstep::device
