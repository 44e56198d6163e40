// One run of a command: log level, telemetry, trace, the context, the summary and the result on stdout.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/reports/summary.hpp"
#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "lockstep/parallel.hpp"
#include "options.hpp"
#include "rank_traces.hpp"

namespace lockstep::cli {

/// A device that was requested by name cannot be opened: exit code 3.
class DeviceUnavailable : public Error {
 public:
  explicit DeviceUnavailable(const UnsupportedError& reason) : Error(reason) {}
};

class Session {
 public:
  /// Applies --quiet, --telemetry and --trace.
  explicit Session(const CommonOptions& options);

  /// Opened when first requested. Throws InputError for an unknown name, DeviceUnavailable for one that does
  /// not work.
  Context& context();
  /// Calls `work` on each rank: of the launcher, or of this process by --ranks and --device cuda:all.
  void each_rank(const std::function<void(const parallel::Group&)>& work);
  /// The same with a device each. The context of rank 0 is the session's.
  void over_ranks(const std::function<void(Context&, const parallel::Group&)>& work);
  /// Either of both, with what `work` gives on rank 0; nothing in the other processes of a launcher.
  template <class Work>
  auto on_lead(Work work) {
    const auto keep = [](auto& result, const parallel::Group& group, auto own) {
      if (group.leads()) result = std::move(own);
    };
    if constexpr (std::is_invocable_v<Work&, const parallel::Group&>) {
      std::optional<std::invoke_result_t<Work&, const parallel::Group&>> result;
      each_rank([&](const parallel::Group& group) { keep(result, group, work(group)); });
      return result;
    } else {
      std::optional<std::invoke_result_t<Work&, Context&, const parallel::Group&>> result;
      over_ranks(
          [&](Context& context, const parallel::Group& group) { keep(result, group, work(context, group)); });
      return result;
    }
  }
  /// A device of the same options without stages; empty name = --device.
  Device open_device(const std::string& name = {});
  Numerics numerics() const;
  const CommonOptions& options() const { return options_; }
  bool json() const { return options_.json; }

  /// Work on the host that the summary lists in addition to the context's stages.
  template <class F>
  auto host_stage(const std::string& stage, F work) {
    const StageTimer timer(*this, stage);
    return work();
  }
  /// For commands without a context.
  void note(const StageRecord& record) { summary_.add(record); }
  void note_device(const std::string& device, int64_t peak_bytes);

  /// On stdout `text`, or with --json `result` and the summary's members; on stderr the summary. Closes
  /// telemetry and trace.
  void finish(nlohmann::ordered_json result, const std::string& text);

 private:
  class StageTimer {
   public:
    StageTimer(Session& session, std::string stage);
    ~StageTimer();

   private:
    Session& session_;
    const std::string stage_;
    const double start_us_;
  };
  void collect();
  std::unique_ptr<Context> open_context(const std::string& device, int threads) const;

  const CommonOptions options_;
  const std::string date_;  // of the start, universal time
  std::string driver_;      // of the device that was opened last
  RunSummary summary_;
  std::unique_ptr<RankTrace> rank_trace_;  // of a process other than rank 0
  std::vector<std::string> traces_;        // of the launcher's other processes, by rank
  std::unique_ptr<Context> context_;
};

/// The request is included in each document of --json from now on.
void set_request(Request request);

/// For commands with few streams, before a device opens: the CUDA driver makes one hardware queue for kernels
/// and one for copies, which takes it half the time. What the user's environment says stays.
void expect_few_streams();

/// Writes text to stdout and checks that it arrived. Throws InputError otherwise.
void print_result(const std::string& text);

}  // namespace lockstep::cli
