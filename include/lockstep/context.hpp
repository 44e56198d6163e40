// A run: the selected device, its CPU fallback, stages, counters and the data of the summary.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/stage.hpp"

namespace lockstep {

struct ContextOptions {
  std::string device = "auto";
  Numerics numerics = Numerics::exact;
  int threads = 0;
  bool fallback = true;  // false: a device failure throws DeviceError
  std::function<void(Limits&)> lower_limits;
  /// Receives `[GPU] <stage> failed: <reason>. CPU fallback.`; default: one line on stderr.
  std::function<void(const std::string& line)> on_fallback;
};

/// The unit of fallback is the stage, such as "urban.svf": a stage that fails on the device restarts from its inputs on
/// the CPU. A stage counts the work that its own thread submitted to the device and its streams, and waits for it at
/// the end. Thread-safe.
class Context {
 public:
  explicit Context(ContextOptions options = {});
  ~Context();

  /// The requested device, or the one that replaced it after it was lost. The handle is valid as long as the context.
  const Device& device() const;
  /// The CPU, opened when first used.
  const Device& cpu() const;

  /// Runs `work` on the device as stage `name`. If it throws DeviceError, the failure is reported and counted, and
  /// `work` runs again on the CPU. With fallback disabled, or if the device is the CPU, the error is rethrown. `work`
  /// must not depend on partial results.
  template <class F>
  auto stage(std::string_view name, F work) -> decltype(work(std::declval<const Device&>())) {
    using R = decltype(work(std::declval<const Device&>()));
    if constexpr (std::is_void_v<R>) {
      run_stage(name, [&](const Device& device) { work(device); });
    } else {
      std::optional<R> result;
      run_stage(name, [&](const Device& device) { result.emplace(work(device)); });
      return std::move(*result);
    }
  }
  void run_stage(std::string_view name, const std::function<void(const Device&)>& work);
  /// The same on the CPU, for work that continues a stage that fell back.
  void run_stage_on_cpu(std::string_view name, const std::function<void(const Device&)>& work);

  /// In order of first use.
  std::vector<StageRecord> stages() const;
  /// Stages that fell back, with their counts.
  std::map<std::string, int64_t> fallbacks() const;
  int64_t peak_device_bytes() const;
  Numerics numerics() const;

 private:
  void run_recorded(std::string_view name, const Device& device,
                    const std::function<void(const Device&)>& work);
  struct State;
  std::unique_ptr<State> state_;
};

/// For tests: makes the nth operation of a kind inside a stage fail,
/// `<stage>:<allocation|compile|launch|device_lost>[:<nth>]`, as in the environment variable LOCKSTEP_FAULT. An empty
/// text disables it. Throws InputError for other forms.
void set_fault(std::string_view text);

}  // namespace lockstep
