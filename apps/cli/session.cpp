#include "session.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "core/platform/parallel.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "core/reports/progress.hpp"
#include "core/reports/quiet_thread.hpp"
#include "core/reports/telemetry.hpp"
#include "core/reports/trace.hpp"
#include "lockstep/check.hpp"
#include "record/record.hpp"
#include "subprocess.hpp"
#include "version.hpp"

namespace lockstep::cli {

namespace {
Request& current_request() {
  static Request request;
  return request;
}
nlohmann::ordered_json to_json(const std::vector<std::pair<std::string, std::string>>& values) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

/// Findings of the checked launches of this run.
void add_checks(nlohmann::ordered_json& result) {
  nlohmann::ordered_json& list = result["checks"];
  if (!list.is_array()) list = nlohmann::ordered_json::array();
  for (const CheckFinding& f : check_findings())
    list.push_back({{"kind", f.kind},
                    {"kernel", f.kernel},
                    {"place", f.place},
                    {"launched", f.launched},
                    {"text", f.text},
                    {"launches", f.launches}});
  nlohmann::ordered_json others = nlohmann::ordered_json::array();
  for (const UncheckedLaunches& u : unchecked_launches())
    others.push_back({{"what", u.what}, {"why", u.why}, {"launches", u.count}});
  result["checked"] = {{"every", checked_every()}, {"launches", checked_launches()}, {"not_checked", others}};
}

/// Stages of a rank as rank 0 receives them.
parallel::Bytes bytes_of_stages(const std::vector<StageRecord>& stages) {
  nlohmann::json list = nlohmann::json::array();
  for (const StageRecord& s : stages)
    list.push_back({s.stage, s.device, s.seconds, s.bytes_to_device, s.bytes_from_device, s.launches,
                    s.fallbacks, s.runs});
  return parallel::bytes_of(list.dump());
}
std::vector<StageRecord> stages_of(const parallel::Bytes& bytes) {
  std::vector<StageRecord> stages;
  for (const nlohmann::json& s : nlohmann::json::parse(parallel::text_of(bytes)))
    stages.push_back({s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]});
  return stages;
}

/// Files of a process other than the first one of a launcher are left to that.
CommonOptions of_this_rank(CommonOptions options) {
  if (parallel::launch_of_environment().rank == 0) return options;
  options.telemetry.clear();
  options.trace.clear();
  options.quiet = true;
  return options;
}

}  // namespace

void set_request(Request request) { current_request() = std::move(request); }

void expect_few_streams() {
  if (!runs_alone())
    return;  // a host may have work of its own on the GPU, and threads that read its environment
  for (const char* name : {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_MAX_COPY_CONNECTIONS"})
    ::setenv(name, "1", 0);
}

void print_result(const std::string& text) {
  std::string out = logging::printable(text);
  if (!out.empty() && out.back() != '\n') out += '\n';
  if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size() || std::fflush(stdout) != 0) {
    throw InputError("the result cannot be written", "stdout", "an open stdout with room");
  }
}

Session::Session(const CommonOptions& options)
    : options_(of_this_rank(options)),
      date_(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))) {
  if (options_.quiet) logging::set_level(logging::Level::warning);
  Progress::enable(!options_.quiet);
  if (options.check > 0) check_launches(options.check);
  if (!options_.telemetry.empty()) Telemetry::global().open(options_.telemetry);
  if (!options_.trace.empty())
    Trace::global().open(options_.trace);
  else if (!options.trace.empty())
    rank_trace_ = std::make_unique<RankTrace>();
  summary_.set_numerics(options.numerics);
}

Numerics Session::numerics() const { return options_.numerics == "fast" ? Numerics::fast : Numerics::exact; }

std::unique_ptr<Context> Session::open_context(const std::string& device, int threads) const {
  ContextOptions options;
  options.device = device;
  options.numerics = numerics();
  options.threads = threads;
  options.fallback = !options_.no_fallback;
  options.on_fallback = [](const std::string& line) { logging::line_of_any_thread(line); };
  try {
    return std::make_unique<Context>(std::move(options));
  } catch (const UnsupportedError& e) { throw DeviceUnavailable(e); }
}

Context& Session::context() {
  if (!context_) context_ = open_context(options_.device, static_cast<int>(options_.threads));
  return *context_;
}

void Session::each_rank(const std::function<void(const parallel::Group&)>& work) {
  const parallel::GroupOptions limits{options_.wait_limit_s};
  const parallel::Group launched = parallel::launched(limits);
  int ranks = static_cast<int>(options_.ranks);
  if (launched.size() > 1 && ranks > 0)
    throw InputError(fmt::format("{} ranks in each of {} processes", ranks, launched.size()), "--ranks",
                     "only the processes of the launcher");
  if (ranks == 0) ranks = parallel::asks_all(options_.device) ? std::max(parallel::cuda_devices(), 1) : 1;
  const auto run = [&](const parallel::Group& group) {
    const logging::QuietThread quiet(!group.leads());
    const double shift_us = launched.size() > 1 ? clock_shift_us(group) : 0;
    work(group);
    if (launched.size() == 1) return;
    const std::string own = rank_trace_ ? shifted_trace(rank_trace_->take(), shift_us) : "";
    for (const parallel::Bytes& bytes : group.gather(parallel::bytes_of(own)))
      traces_.emplace_back(parallel::text_of(bytes));
  };
  if (launched.size() > 1) return run(launched);
  parallel::run_ranks(ranks, limits, run);
}

void Session::over_ranks(const std::function<void(Context&, const parallel::Group&)>& work) {
  each_rank([&](const parallel::Group& group) {
    const std::string device = parallel::device_of_rank(group, options_.device, options_.share_devices);
    int threads = static_cast<int>(options_.threads);
    if (threads == 0 && group.local_size() > 1)
      threads = std::max(1, platform::available_threads() / group.local_size());
    std::unique_ptr<Context> context = open_context(device, threads);
    work(*context, group);
    const std::vector<parallel::Bytes> stages = group.gather(bytes_of_stages(context->stages()));
    for (size_t rank = 1; rank < stages.size(); ++rank)
      for (const StageRecord& record : stages_of(stages[rank])) summary_.add(record);
    if (group.leads()) context_ = std::move(context);
  });
}

Device Session::open_device(const std::string& name) {
  DeviceOptions options;
  options.numerics = numerics();
  options.threads = static_cast<int>(options_.threads);
  try {
    Device device = Device::open(name.empty() ? options_.device : name, options);
    driver_ = device.info().description;
    return device;
  } catch (const UnsupportedError& e) { throw DeviceUnavailable(e); }
}

void Session::note_device(const std::string& device, int64_t peak_bytes) {
  summary_.set_device(device);
  summary_.peak_device_bytes(std::max<int64_t>(peak_bytes, 0));
}

Session::StageTimer::StageTimer(Session& session, std::string stage)
    : session_(session), stage_(std::move(stage)), start_us_(Trace::now_us()) {}

Session::StageTimer::~StageTimer() {
  const double duration_us = Trace::now_us() - start_us_;
  session_.summary_.add({stage_, "host", duration_us * 1e-6, 0, 0, 0, 0});
  try {
    Trace::global().span(stage_, "host", start_us_, duration_us);
  } catch (const std::exception& e) { logging::error("the trace is incomplete: {}", e.what()); }
}

void Session::collect() {
  if (context_) {
    note_device(context_->device().info().name, context_->peak_device_bytes());
    for (const StageRecord& record : context_->stages()) summary_.add(record);
  }
  int64_t fallback_count = 0;
  for (const StageRecord& record : summary_.stages()) {
    fallback_count += record.fallbacks;
    const bool gpu = record.device.starts_with("cuda") || record.device.starts_with("webgpu");
    Telemetry::global().record(record, {{"gpu_fallback_count", record.fallbacks},
                                        {"gpu_stage_time_ms", gpu ? record.seconds * 1e3 : 0.0}});
  }
  Telemetry::global().event("run", {{"seconds", summary_.seconds()},
                                    {"numerics", options_.numerics},
                                    {"fallbacks", fallback_count},
                                    {"peak_device_bytes", summary_.peak_device_bytes()}});
}

void Session::finish(nlohmann::ordered_json result, const std::string& text) {
  collect();
  nlohmann::ordered_json summary = {{"driver", context_ ? context_->device().info().description : driver_},
                                    {"started", date_}};
  summary_.add_to(summary);
  note_summary(std::move(summary));
  Telemetry::global().close();
  Trace::global().close();
  if (!options_.trace.empty() && !traces_.empty()) join_traces(options_.trace, traces_);
  if (options_.json) {
    result["version"] = kVersion;
    result["date"] = date_;
    const Request& request = current_request();
    result["command"] = request.command;
    result["inputs"] = to_json(request.inputs);
    result["options"] = to_json(request.options);
    summary_.add_to(result);
    if (checked_every() > 0) add_checks(result);
    print_result(json_text(result, 2));
  } else if (!text.empty()) {
    print_result(text);
  }
  if (!options_.quiet) logging::line(summary_.table());
  if (checked_every() > 0 && !options_.quiet)
    logging::line(
        fmt::format("check: {} launches checked, {} findings", checked_launches(), check_findings().size()));
}

}  // namespace lockstep::cli
