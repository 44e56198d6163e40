// `lockstep bench solve.crossover`: from how many residuals on a device overtakes the CPU.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "core/files/atomic_file.hpp"
#include "core/reports/log.hpp"
#include "core/reports/progress.hpp"
#include "io/pictures/plot.hpp"
#include "lockstep/error.hpp"
#include "session.hpp"
#include "solve/minimize/crossover.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;
constexpr int kLargest = 8;  // 655,362 vertices

void plot(const std::string& file, const std::vector<solve::CrossoverPoint>& points,
          const std::string& device) {
  io::PlotSeries cpu{"cpu", {}, {}}, other{device, {}, {}};
  for (const solve::CrossoverPoint& p : points) {
    for (io::PlotSeries* series : {&cpu, &other}) series->x.push_back(double(p.vertices));
    cpu.y.push_back(p.cpu_seconds * 1e3);
    other.y.push_back(p.device_seconds * 1e3);
  }
  io::PlotOptions options;
  options.title = "Value and gradient of springs and dihedrals";
  options.x_label = "vertices";
  options.y_label = "ms";
  options.log_x = options.log_y = true;
  const io::PlotSeries both[] = {cpu, other};
  io::write_drawing(file, io::draw_plot(both, options));
}

}  // namespace

int run_bench_crossover(const CommonOptions& common, const std::string& out, const std::string& csv,
                        const std::string& picture) {
  Session session(common);
  const Device device = session.open_device();
  const Device cpu = Device::open("cpu", {.threads = common.threads ? int(common.threads) : 0});
  Progress progress("bench solve.crossover", kLargest + 1, "sizes");
  const std::vector<solve::CrossoverPoint> points =
      solve::measure_crossover(device, cpu, kLargest, [&](const solve::CrossoverPoint&) { progress.add(); });
  const int64_t threshold = solve::crossover(points);
  const bool never = threshold == std::numeric_limits<int64_t>::max();
  const bool is_cpu = device.info().kind == DeviceKind::cpu;
  ordered_json rows = ordered_json::array();
  std::string table = "vertices,residuals,cpu_ms,device_ms\n";
  std::string text = fmt::format("{:>10} {:>10} {:>12} {:>12}\n", "vertices", "residuals", "cpu ms",
                                 device.info().name + " ms");
  for (const solve::CrossoverPoint& p : points) {
    rows.push_back({{"vertices", p.vertices},
                    {"residuals", p.residuals},
                    {"cpu_ms", p.cpu_seconds * 1e3},
                    {"device_ms", p.device_seconds * 1e3}});
    table +=
        fmt::format("{},{},{},{}\n", p.vertices, p.residuals, p.cpu_seconds * 1e3, p.device_seconds * 1e3);
    text += fmt::format("{:>10} {:>10} {:>12.4f} {:>12.4f}\n", p.vertices, p.residuals, p.cpu_seconds * 1e3,
                        p.device_seconds * 1e3);
  }
  ordered_json document = {{"device", device.info().name},
                           {"description", device.info().description},
                           {"crossover", rows},
                           {"threshold", never || is_cpu ? ordered_json() : ordered_json(threshold)}};
  if (is_cpu)
    text += "there is no other device to choose: specify one with --device\n";
  else if (never)
    text += fmt::format("the CPU is faster at every size; {} is not selected automatically\n",
                        device.info().name);
  else
    text += fmt::format("{} is chosen from {} residuals on\n", device.info().name, threshold);
  if (const auto file = variants::user_file(); !file.empty() && !is_cpu) {
    variants::Table variants = variants::read_table(file);
    variants.put(solve::placement_row(device.info(), threshold));
    variants::write_table(file, variants);
    document["file"] = file.string();
    text += fmt::format("written to {}\n", file.string());
  }
  if (!out.empty()) write_file(out, std::string_view(document.dump(2)));
  if (!csv.empty()) write_file(csv, std::string_view(table));
  if (!picture.empty()) plot(picture, points, device.info().name);
  session.finish(std::move(document), text);
  return 0;
}

}  // namespace lockstep::cli
