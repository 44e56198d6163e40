// One run of a command: log level, telemetry, trace, the context, the summary and the result on stdout.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/reports/summary.hpp"
#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "options.hpp"

namespace lockstep::cli {

/// A device that was asked for by name cannot be opened: exit code 3.
class DeviceUnavailable : public Error {
 public:
  explicit DeviceUnavailable(const UnsupportedError& reason) : Error(reason) {}
};

class Session {
 public:
  /// Applies --quiet, --telemetry and --trace.
  explicit Session(const CommonOptions& options);

  /// Opened when first asked for. Throws InputError for an unknown name, DeviceUnavailable for one that does
  /// not work.
  Context& context();
  /// A device of the same options without stages; empty name = --device.
  Device open_device(const std::string& name = {});
  Numerics numerics() const;
  const CommonOptions& options() const { return options_; }
  bool json() const { return options_.json; }

  /// Work on the host that the summary lists beside the context's stages.
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

  const CommonOptions options_;
  const std::string date_;  // of the start, universal time
  std::string driver_;      // of the device that was opened last
  RunSummary summary_;
  std::unique_ptr<Context> context_;
};

/// Told in each document of --json from now on.
void set_request(Request request);

/// For commands with few streams, before a device opens: the CUDA driver makes one hardware queue for kernels
/// and one for copies, which takes it half the time. What the user's environment says stays.
void expect_few_streams();

/// Writes text to stdout and checks that it arrived. Throws InputError otherwise.
void print_result(const std::string& text);

}  // namespace lockstep::cli
