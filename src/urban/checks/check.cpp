// `urban check`: the inputs of a run, doubted and measured without computing.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "core/reports/summary.hpp"
#include "device/capabilities.hpp"
#include "device/variants/variants.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/series/arrays.hpp"
#include "urban/series/outputs/writer.hpp"
#include "urban/series/tiles.hpp"
#include "urban/sky/patches.hpp"

namespace lockstep::urban {
namespace {

constexpr double kStart = 0.3;  // s, of the program, its files and its kernels

void predict(Context& context, const SeriesOptions& options, const SeriesInputs& inputs, Findings& findings) {
  SeriesOptions planned = options;
  // PET's tables take time and no memory to speak of; its grid is as any other.
  std::erase(planned.outputs, SeriesOutput::pet);
  if (planned.outputs.size() < options.outputs.size()) planned.outputs.push_back(SeriesOutput::lup);
  const Walls none;
  const SeriesTiles tiles(inputs, none, planned.outputs);
  TileJob job = tiles.job();
  const int64_t rows = band_rows(options, inputs.grid, free_host_bytes(options.tiles));
  job.host_bytes = writer_bytes(options, inputs.grid, rows);
  const TilePlan plan = plan_tiles(context, inputs.city, job, options.tiles, 0);
  const Device device = context.device();
  const double pixels = static_cast<double>(inputs.city.pixels());
  const double threads = capabilities_of(device).host_memory
                             ? static_cast<double>(std::max<int64_t>(1, device.info().multiprocessors))
                             : 1;
  // Seconds a pixel, roughly: of a step, of a patch of the sky; of one thread of a CPU and of a whole GPU.
  const std::vector<double> cost = variants::measured("urban.check.pixel", device.info(), 2);
  const double patches = inputs.sky ? 0 : patch_count(options.patches);
  const double seconds =
      kStart + pixels * (static_cast<double>(inputs.steps.size()) * cost[0] + patches * cost[1]) / threads;
  findings.ok("time", seconds, "s",
              fmt::format("roughly, on {}, without pictures: {} steps of {:.3g} million pixels",
                          device.info().name, inputs.steps.size(), pixels / 1e6));
  findings.ok(
      "memory", static_cast<double>(plan.host_bytes) / 0x1p20, "MiB",
      fmt::format("of the host; on the device {}; {} {} of {} pixels a side", human_bytes(plan.device_bytes),
                  plan.tiles.size(), plan.tiles.size() == 1 ? "tile" : "tiles", plan.side));
}

}  // namespace

std::vector<InputCheck> check(Context& context, const SeriesOptions& options) {
  auto [inputs, whole] = check_series_inputs(options);
  if (whole) inputs.findings.part("memory", [&] { predict(context, options, inputs, inputs.findings); });
  return inputs.findings.rows();
}

nlohmann::ordered_json document_of(const std::vector<InputCheck>& checks) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const InputCheck& c : checks)
    rows.push_back({{"check", c.check},
                    {"value", c.value && std::isfinite(*c.value) ? nlohmann::ordered_json(*c.value)
                                                                 : nlohmann::ordered_json()},
                    {"unit", c.unit},
                    {"verdict", name(c.verdict)},
                    {"text", c.text}});
  return {{"checks", rows}};
}
std::string to_json(const std::vector<InputCheck>& checks) { return json_text(document_of(checks)); }

}  // namespace lockstep::urban
