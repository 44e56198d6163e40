// The acceptance gates of a run hour by hour, on the user's own city or on the sample.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "device/capabilities.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/series/physics_gates.hpp"
#include "urban/series/whole_series.hpp"

namespace lockstep::urban {
namespace {

constexpr size_t kGateSteps = 4;
constexpr double kScalingLimit = 1.25;
constexpr int64_t kFewGroups = 8;
/// Rounds of one worker and of several in turn, the best of each counts; large cities take fewer.
constexpr int kScalingRounds = 4;
constexpr double kScalingSeconds = 4;

int64_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  int64_t count = 0;
  for (size_t k = 0; k < a.size(); ++k)
    count += std::memcmp(&a[k], &b[k], sizeof(float)) != 0 && !(std::isnan(a[k]) && std::isnan(b[k]));
  return count;
}

GridDifference difference_of(const std::vector<float>& a, const std::vector<float>& b) {
  GridDifference found;
  double sum = 0;
  size_t both = 0, alike = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const bool finite = std::isfinite(a[k]);
    alike += finite == std::isfinite(b[k]);
    if (!finite || !std::isfinite(b[k])) continue;
    const double d = std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k]));
    sum += d;
    found.max_abs_diff = std::max(found.max_abs_diff, d);
    ++both;
  }
  if (both > 0) found.mean_abs_diff = sum / static_cast<double>(both);
  if (!a.empty())
    found.finite_equal_percent = 100 * static_cast<double>(alike) / static_cast<double>(a.size());
  return found;
}

/// A few steps spread over those with sun, so that the gates end soon on large cities.
void keep_some_steps(SeriesInputs& inputs) {
  std::vector<size_t> sunny;
  for (size_t k = 0; k < inputs.steps.size(); ++k)
    if (inputs.steps[k].forcing.day()) sunny.push_back(k);
  if (sunny.empty()) sunny.push_back(0);
  std::vector<WeatherStep> steps;
  std::vector<io::WeatherRow> rows;
  const size_t count = std::min(kGateSteps, sunny.size());
  for (size_t k = 0; k < count; ++k) {
    const size_t at = sunny[k * sunny.size() / count];
    steps.push_back(inputs.steps[at]);
    rows.push_back(inputs.weather.rows[at]);
  }
  inputs.steps = steps;
  inputs.warm_up.clear();
  inputs.weather.rows = rows;
}

ContextOptions like(Context& context, const std::string& device) {
  ContextOptions options;
  options.device = device;
  options.numerics = context.numerics();
  options.fallback = false;
  return options;
}

/// One computation in several ways, each held against the first.
class GateRun {
 public:
  GateRun(Context& context, const SeriesOptions& options)
      : context_(context), options_(options), inputs_(read_series_inputs(options)) {
    keep_some_steps(inputs_);
    walls_ = walls_of_series(context, inputs_, options.walls);
    whole_ = options.tiles;
    whole_.on_progress = {};
    whole_.side = 0;
    whole_.workers = 1;
    base_ = computed(context, whole_);
  }

  void parity() {
    Context cpu(like(context_, "cpu"));
    const ComputedSeries on_cpu = computed(cpu, whole_);
    if (capabilities_of(context_.device()).ieee && context_.numerics() != Numerics::fast)
      return add_equal("parity with the CPU", on_cpu, device());
    const GridDifference difference = difference_of(base_.values, on_cpu.values);
    add("parity with the CPU", difference.max_abs_diff, 0.1, "largest difference", device());
    gates.back().difference = difference;
  }

  void tiles() {
    const int64_t longer = std::max(inputs_.city.rows, inputs_.city.cols);
    TileOptions tiled = options_.tiles;
    tiled.on_progress = {};
    tiled.side =
        options_.tiles.side > 0 ? options_.tiles.side : std::max<int64_t>(32, (longer / 3 + 15) / 16 * 16);
    tiled.workers = 1;
    const ComputedSeries one_worker = computed(context_, tiled);
    add_equal("tiled = untiled", one_worker,
              fmt::format("{} tiles of {}", one_worker.plan.tiles.size(), tiled.side));
    dispatches();
    tiled.workers = options_.tiles.workers > 1 ? options_.tiles.workers : 2;
    workers(tiled, one_worker.seconds);
  }

  std::vector<Gate> gates;

 private:
  std::string device() const { return context_.device().info().name; }
  ComputedSeries computed(Context& on, const TileOptions& tiles) const {
    return compute_series(on, inputs_, walls_, options_.outputs, tiles);
  }
  void add(const std::string& gate, double value, double limit, const char* unit, const std::string& note) {
    gates.push_back({gate, value, limit, value <= limit, unit, note, {}});
  }
  void add_equal(const std::string& gate, const ComputedSeries& other, const std::string& note) {
    add(gate, static_cast<double>(differing(base_.values, other.values)), 0, "differing values", note);
    gates.back().difference = difference_of(base_.values, other.values);
  }

  void dispatches() {
    ContextOptions limited = like(context_, device());
    limited.lower_limits = [](Limits& limits) {
      for (int64_t& groups : limits.groups) groups = std::min<int64_t>(groups, kFewGroups);
    };
    Context small(limited);
    add_equal("more groups than a dispatch holds", computed(small, whole_),
              fmt::format("at most {} groups an axis", kFewGroups));
  }

  void workers(TileOptions tiled, double one) {
    const int in_flight = tiled.workers;
    const ComputedSeries together = computed(context_, tiled);
    const std::string note = fmt::format("{} workers", in_flight);
    add("tiles in flight", together.in_flight, in_flight, "tiles", note);
    add_equal("tiles in flight change nothing", together, note);
    double several = together.seconds, spent = several + one;
    for (int round = 1; round < kScalingRounds && spent < kScalingSeconds; ++round)
      for (const bool alone : {true, false}) {
        tiled.workers = alone ? 1 : in_flight;
        const double seconds = computed(context_, tiled).seconds;
        spent += seconds;
        (alone ? one : several) = std::min(alone ? one : several, seconds);
      }
    add("worker scaling", several / one, kScalingLimit, "of the time of one worker",
        fmt::format("{:.4f} s and {:.4f} s", several, one));
  }

  Context& context_;
  const SeriesOptions& options_;
  SeriesInputs inputs_;
  Walls walls_;
  TileOptions whole_;
  ComputedSeries base_;
};

}  // namespace

std::vector<Gate> run_gates(Context& context, const SeriesOptions& given) {
  const ScratchFolder scratch;
  // Tiles of a small city are too little work for a large GPU to share.
  const Shape sample = capabilities_of(context.device()).warp_lanes > 0 ? Shape{512, 528} : Shape{160, 176};
  SeriesOptions options =
      given.city.dsm.empty() ? sample_series(given, scratch.path, {9, 12, 15, 18}, sample) : given;
  if (options.folder.empty()) options.folder = scratch.path / "out";
  options.pictures = options.video = false;
  GateRun run(context, options);
  run.parity();
  run.tiles();
  for (Gate& gate : physics_gates(context)) run.gates.push_back(std::move(gate));
  return std::move(run.gates);
}

nlohmann::ordered_json document_of(const std::vector<Gate>& gates) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Gate& g : gates) {
    rows.push_back({{"gate", g.gate},
                    {"value", g.value},
                    {"limit", g.limit},
                    {"pass", g.pass},
                    {"unit", g.unit},
                    {"note", g.note}});
    if (!g.difference) continue;
    rows.back()["mean_abs_diff"] = g.difference->mean_abs_diff;
    rows.back()["max_abs_diff"] = g.difference->max_abs_diff;
    rows.back()["finite_equal_percent"] = g.difference->finite_equal_percent;
  }
  return {{"gates", rows}};
}
std::string to_json(const std::vector<Gate>& gates) { return json_text(document_of(gates)); }

}  // namespace lockstep::urban
