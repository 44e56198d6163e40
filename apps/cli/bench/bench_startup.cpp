// `lockstep bench startup`: a process of its own per back end and cache state, so that nothing is warm by
// accident.
#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "core/environment/environment.hpp"
#include "core/files/atomic_file.hpp"
#include "core/numbers/statistics.hpp"
#include "core/reports/trace.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "session.hpp"
#include "subprocess.hpp"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
constexpr const char* kProbe = "LOCKSTEP_STARTUP_PROBE";
constexpr int kRounds = 5;

class TemporaryCache {
 public:
  TemporaryCache() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-startup-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      throw InputError("no temporary folder", pattern, "a folder that can be written");
    path_ = pattern;
  }
  ~TemporaryCache() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryCache(const TemporaryCache&) = delete;
  TemporaryCache& operator=(const TemporaryCache&) = delete;
  const fs::path& path() const { return path_; }
  void clear() const {
    for (const auto& entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
  }

 private:
  fs::path path_;
};

// The child's part: opens the device and waits for the first kernel's result.
int probe(const CommonOptions& common) {
  const double start_us = Trace::now_us();
  Session session(common);
  const Device device = session.open_device();
  const double open_us = Trace::now_us();
  const Kernel first = kernel("startup.first", [](At<1> at, Grid<f32, 1> x, Out<f32, 1> y, Param<f32> a) {
    y[at] = sqrt(fma(a, x[at], 1.0f)) / (x[at] + 2.0f);
  });
  const std::vector<float> x(4096, 1.0f);
  const Buffer in = device.upload(x), out = device.allocate<f32>({4096});
  device.launch(first, Shape{4096}, in, out, 3.0f);
  const std::vector<float> y = device.download<float>(out);
  if (y.front() != y.back())
    throw InternalError("the first kernel is wrong", device.info().name, "equal elements");
  const double done_us = Trace::now_us();
  print_result(ordered_json{{"device", device.info().name},
                            {"open_seconds", (open_us - start_us) * 1e-6},
                            {"kernel_seconds", (done_us - open_us) * 1e-6}}
                   .dump());
  return 0;
}

struct Times {
  std::vector<double> process, kernel;
  void add(const ProgramResult& result) {
    process.push_back(result.seconds);
    kernel.push_back(nlohmann::json::parse(result.output).at("kernel_seconds").get<double>());
  }
};

}  // namespace

int run_bench_startup(const CommonOptions& common, const std::string& out, const std::string& csv) {
  if (environment::text(kProbe)) return probe(common);
  Session session(common);
  std::vector<std::string> names;
  if (common.device == "auto") {
    for (const DeviceStatus& status : Device::list()) {
      if (status.available) names.push_back(status.info.name);
    }
  } else {
    names.push_back(session.open_device().info().name);
  }
  const TemporaryCache cache;
  ordered_json rows = ordered_json::array();
  std::string table = "device,cold_seconds,warm_seconds,cold_kernel_seconds,warm_kernel_seconds\n";
  std::string text = fmt::format(
      "{:<12} {:>12} {:>12} {:>14} {:>14}   (ms; first kernel alone, and from the start of the process)\n",
      "device", "cold kernel", "warm kernel", "cold process", "warm process");
  for (const std::string& name : names) {
    std::vector<std::string> words = own_command();
    words.insert(words.end(), {"bench", "startup", "--device", name, "--numerics", common.numerics});
    const std::vector<std::pair<std::string, std::string>> environment = {
        {kProbe, "1"}, {"LOCKSTEP_CACHE_DIR", cache.path().string()}};
    Times cold, warm;
    for (int round = 0; round < kRounds; ++round) {
      cache.clear();
      for (Times* times : {&cold, &warm}) {
        const ProgramResult result = run_program(words, environment);
        if (result.exit_code != 0)
          throw DeviceUnavailable(
              UnsupportedError(name + " did not start", "bench startup", "a device that works"));
        times->add(result);
      }
    }
    rows.push_back({{"device", name},
                    {"cold_seconds", median(cold.process)},
                    {"warm_seconds", median(warm.process)},
                    {"cold_kernel_seconds", median(cold.kernel)},
                    {"warm_kernel_seconds", median(warm.kernel)}});
    table += fmt::format("{},{},{},{},{}\n", name, median(cold.process), median(warm.process),
                         median(cold.kernel), median(warm.kernel));
    text += fmt::format("{:<12} {:>12.2f} {:>12.2f} {:>14.1f} {:>14.1f}\n", name, median(cold.kernel) * 1e3,
                        median(warm.kernel) * 1e3, median(cold.process) * 1e3, median(warm.process) * 1e3);
  }
  const std::string document = ordered_json{{"startup", rows}, {"rounds", kRounds}}.dump(2);
  if (!out.empty()) write_file(out, std::string_view(document));
  if (!csv.empty()) write_file(csv, std::string_view(table));
  if (common.json) {
    print_result(document);
  } else {
    print_result(text);
  }
  return 0;
}

}  // namespace lockstep::cli
