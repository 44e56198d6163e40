#include "lockstep/context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <list>

#include "core/platform/threads.hpp"
#include "core/reports/log.hpp"
#include "core/reports/trace.hpp"
#include "device/stages/stage_scope.hpp"

namespace lockstep {

namespace {
DeviceOptions device_options(const ContextOptions& options) {
  DeviceOptions out;
  out.numerics = options.numerics;
  out.threads = options.threads;
  out.lower_limits = options.lower_limits;
  return out;
}
}  // namespace

struct Context::State {
  ContextOptions options;
  std::string opened;         // name of the device, to open it again after a loss
  mutable Mutex mutex;        // guards what follows
  std::list<Device> devices;  // the last one is in use; those before it were lost, their handles stay valid
  Device cpu;
  std::vector<StageRecord> stages;

  StageRecord& record(std::string_view stage) {
    for (StageRecord& r : stages)
      if (r.stage == stage) return r;
    stages.push_back({std::string(stage), "", 0, 0, 0, 0, 0, 0});
    return stages.back();
  }
};

Context::Context(ContextOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  if (!state_->options.on_fallback)
    state_->options.on_fallback = [](const std::string& line) { logging::line(line); };
  state_->devices.push_back(Device::open(state_->options.device, device_options(state_->options)));
  state_->opened = state_->devices.back().info().name;
}
Context::~Context() = default;

const Device& Context::device() const {
  std::lock_guard lock(state_->mutex);
  return state_->devices.back();
}
Numerics Context::numerics() const { return state_->options.numerics; }

const Device& Context::cpu() const {
  std::lock_guard lock(state_->mutex);
  if (state_->devices.back().info().kind == DeviceKind::cpu) return state_->devices.back();
  if (!state_->cpu.valid()) {
    DeviceOptions options = device_options(state_->options);
    options.lower_limits = {};
    try {
      state_->cpu = Device::open("cpu", options);
    } catch (const UnsupportedError&) {
      state_->cpu = Device::open("interp", options);  // a build without the just-in-time compiler
    }
  }
  return state_->cpu;
}

void Context::run_recorded(std::string_view name, const Device& device,
                           const std::function<void(const Device&)>& work) {
  const TimedScope trace{std::string(name), "stage", {{"device", device.info().name}}};
  device::StageScope scope(name);
  const auto start = std::chrono::steady_clock::now();
  const auto note = [&](bool finished) {
    std::lock_guard lock(state_->mutex);
    StageRecord& record = state_->record(name);
    if (finished) {
      record.device = device.info().name;
      ++record.runs;
    }
    record.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    record.bytes_to_device += scope.bytes_to_device;
    record.bytes_from_device += scope.bytes_from_device;
    record.launches += scope.launches;
  };
  try {
    work(device);
    scope.synchronize();
  } catch (...) {
    note(false);
    throw;
  }
  note(true);
}

void Context::run_stage_on_cpu(std::string_view name, const std::function<void(const Device&)>& work) {
  run_recorded(name, cpu(), work);
}

void Context::run_stage(std::string_view name, const std::function<void(const Device&)>& work) {
  const Device device = this->device();
  const bool can_fall_back = state_->options.fallback && device.info().kind != DeviceKind::cpu &&
                             device.info().kind != DeviceKind::interp;
  std::string reason;
  try {
    run_recorded(name, device, work);
    return;
  } catch (DeviceError& error) {
    if (!can_fall_back) {
      if (state_->options.fallback && error.hint().empty())
        error.with_hint(
            fmt::format("{} has nothing to fall back to; a smaller problem may pass", device.info().name));
      throw;
    }
    reason = error.what();
    if (error.fault() == DeviceFault::device_lost) {
      std::lock_guard lock(state_->mutex);
      // The first of several threads to see the loss opens it again.
      if (state_->devices.back().same_as(device)) {
        try {
          state_->devices.push_back(Device::open(state_->opened, device_options(state_->options)));
        } catch (const Error&) {  // gone for good: later stages fall back too, each with its line
          reason +=
              fmt::format("; {} cannot be opened again in this process, start the program again to use it",
                          state_->opened);
        }
      }
    }
  } catch (const UnsupportedError& error) {
    if (!can_fall_back) throw DeviceError(DeviceFault::compile, error.what());
    reason = error.what();
  }
  {
    std::lock_guard lock(state_->mutex);
    ++state_->record(name).fallbacks;
  }
  state_->options.on_fallback(logging::fallback_line(name, reason));
  run_recorded(name, cpu(), work);
}

std::vector<StageRecord> Context::stages() const {
  std::lock_guard lock(state_->mutex);
  return state_->stages;
}

std::map<std::string, int64_t> Context::fallbacks() const {
  std::lock_guard lock(state_->mutex);
  std::map<std::string, int64_t> counts;
  for (const StageRecord& r : state_->stages)
    if (r.fallbacks) counts[r.stage] = r.fallbacks;
  return counts;
}

int64_t Context::peak_device_bytes() const {
  std::lock_guard lock(state_->mutex);
  int64_t peak = 0;
  for (const Device& device : state_->devices) peak = std::max(peak, device.counters().peak_bytes);
  return peak;
}

}  // namespace lockstep
