// A run: the chosen device, its CPU fallback, stages, counters and what the summary shows.
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
  bool fallback = true;  // false: a device failure is thrown
  std::function<void(Limits&)> lower_limits;
  /// Receives `[GPU] <stage> failed: <reason>. CPU fallback.`; default: one line on stderr.
  std::function<void(const std::string& line)> on_fallback;
};

/// The unit of fallback is the stage ("urban.svf"): one that fails on the device starts again from its inputs
/// on the CPU. Safe for several threads; a stage counts, and at its end waits for, what its own thread gave to the
/// device and to its streams.
class Context {
 public:
  explicit Context(ContextOptions options = {});
  ~Context();

  /// The requested device; after a loss the one that was opened in its place. The handle stays valid as long as
  /// the context.
  const Device& device() const;
  /// The CPU, opened when first needed.
  const Device& cpu() const;

  /// Runs `work` on the device as stage `name`. Where it throws DeviceError: reports, counts, runs it again
  /// on the CPU; with fallback off, or where the device is the CPU already, the error passes on. `work` takes
  /// nothing half-done over.
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
  /// The same on the CPU from the outset, for work that goes on where an earlier stage fell back.
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

/// Makes the nth operation of a kind inside a stage fail:
/// `<stage>:<allocation|compile|launch|device_lost>[:<nth>]`, as the environment's LOCKSTEP_FAULT says; for
/// tests. Empty clears. Throws InputError for another form.
void set_fault(std::string_view text);

}  // namespace lockstep
