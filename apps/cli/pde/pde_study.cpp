// `lockstep pde study`: times of the loss over sizes, boundaries, kernels and orders.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/atomic_file.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/statistics.hpp"
#include "lockstep/error.hpp"
#include "lockstep/verify.hpp"
#include "pde/flow_by_hand.hpp"
#include "pde_options.hpp"
#include "session.hpp"
#include "verify/inputs.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct StudyCommand {
  std::string sizes, boundaries = "periodic;clamp;x=free_slip,y=dirichlet_face:1,z=no_slip",
                     kernels = "two-kernel,fused", orders = "2", csv;
  std::string gradients = "all", tiles, system = "transport";
  bool graph = false;
  int64_t iterations = 0, levels = 16;
};

struct Row {
  std::string size, boundary, kernel, tile, gradients;
  int order;
  std::vector<double> ms;
  double bytes = 0;
  std::string skipped;
  double mean() const {
    double sum = 0;
    for (double m : ms) sum += m;
    return ms.empty() ? 0 : sum / double(ms.size());
  }
};

/// One cube of cells with random fields, reused by all rows of its size.
pde::Inputs random_inputs(const Device& device, int64_t n, bool flow) {
  pde::Inputs in;
  const int64_t count = n * n * n;
  if (flow) {
    const auto p = cases::uniform<float>(count, 30);
    in.fields["p"][1] = device.upload(std::span<const float>(p), {n, n, n});
    in.parameters["nu"] = pde::kFlowViscosity;
  }
  for (size_t l = 0; l < 3; ++l) {
    const auto sigma = cases::uniform<float>(count, 10 + l), u = cases::uniform<float>(3 * count, 20 + l);
    if (!flow) in.fields["sigma"][l] = device.upload(std::span<const float>(sigma), {n, n, n});
    in.fields["u"][l] = device.upload(std::span<const float>(u), {3, n, n, n});
  }
  return in;
}

/// A tile of the fused path: "64x4x2" or with planes of a chunk, groups a multiprocessor and residual levels
/// of a trajectory, "64x4x2x64x2x3". A 0 leaves the choice to the device.
void parse_tile(const std::string& text, pde::LossOptions& o) {
  int* const parts[] = {&o.tile_x, &o.tile_y, &o.tile_rows, &o.chunk, &o.groups, &o.levels};
  std::vector<int64_t> numbers;
  try {
    numbers = parse_size(text);
  } catch (const InputError&) {}
  if (numbers.size() < 3 || numbers.size() > 6 || *std::max_element(numbers.begin(), numbers.end()) > 4096)
    throw InputError(fmt::format("tile '{}'", text), "--tiles",
                     "LANESxLANESxROWS[xPLANES[xGROUPS[xLEVELS]]]");
  for (size_t k = 0; k < numbers.size(); ++k) *parts[k] = int(numbers[k]);
}

/// With --graph, a run is the replay of a recording: what a training loop would do with a small grid.
void measure(const Device& device, const std::function<void()>& run, double bytes,
             const StudyCommand& options, Row& row) {
  constexpr int kReplays = 16;
  run();
  Graph recorded;
  if (options.graph)
    recorded = device.record([&] {
      for (int k = 0; k < kReplays; ++k) run();
    });
  const auto once = [&] {
    if (options.graph) return device.seconds([&] { device.replay(recorded); }) * 1e3 / kReplays;
    return device.seconds(run) * 1e3;
  };
  once();
  const double first = once();
  // A steady median: half a second of runs, 5 to 50 of them.
  const int64_t count = options.iterations > 0
                            ? options.iterations
                            : std::clamp<int64_t>(int64_t(500 / std::max(first, 1e-3)), 5, 50);
  for (int64_t k = 0; k < count; ++k) row.ms.push_back(once());
  row.bytes = bytes;
}
void measure(const Device& device, const pde::BoundLoss& bound, const StudyCommand& options, Row& row) {
  measure(device, [&] { bound.run(); }, bound.bytes(), options, row);
}

void measure_row(const Device& device, const pde::Loss& loss, const pde::Inputs& inputs,
                 const StudyCommand& options, Row& row) {
  try {
    pde::LossOptions o;
    o.gradients = parse_gradients(row.gradients);
    if (row.kernel == "trajectory") {
      pde::TrajectoryInputs all;
      for (const auto& [name, levels] : inputs.fields)
        for (int64_t n = 0; n < options.levels; ++n) {
          const Buffer& from = levels[size_t(n % 3)];
          all.fields[name].push_back(device.allocate(from.storage(), from.shape()));
          device.copy(from, all.fields[name].back());
        }
      if (!row.tile.empty()) parse_tile(row.tile, o);
      measure(device, loss.bind_trajectory(device, all, o), options, row);
      for (double& ms : row.ms) ms /= double(options.levels);
      row.bytes /= double(options.levels);
      return;
    }
    o.path = parse_path(row.kernel);
    if (!row.tile.empty()) parse_tile(row.tile, o);
    if (row.kernel == "by-hand") {
      const pde::FlowByHand flow = pde::bind_flow_by_hand(device, loss.mesh(), inputs, o);
      double bytes = 0;
      for (const Buffer& g : flow.gradients) bytes += 2 * double(g.bytes());
      measure(device, [&] { flow.run(); }, bytes, options, row);
      return;
    }
    measure(device, loss.bind(device, inputs, o), options, row);
  } catch (const UnsupportedError& e) { row.skipped = e.what(); }
}

bool tiled(const std::string& kernel) { return kernel != "two-kernel"; }

int run(const CommonOptions& common, const StudyCommand& options) {
  Session session(common);
  const Device device = session.open_device();
  std::string sizes = options.sizes;
  if (sizes.empty()) sizes = device.info().kind == DeviceKind::cuda ? "64,96,128,192,256" : "32,64,96,128";
  std::vector<int64_t> cubes;
  for (const std::string& s : split_list(sizes, "--sizes")) {
    const auto number = parse_number(s);
    if (!number || *number != std::floor(*number) || *number < 4 || *number > 1024)
      throw InputError(fmt::format("size '{}'", s), "--sizes", "cells along each axis, 4 to 1024");
    cubes.push_back(int64_t(*number));
  }
  std::vector<std::string> boundaries;
  for (size_t at = 0; at <= options.boundaries.size();) {
    const size_t end = std::min(options.boundaries.find(';', at), options.boundaries.size());
    boundaries.push_back(options.boundaries.substr(at, end - at));
    pde::Boundary::parse(boundaries.back());
    at = end + 1;
  }
  const bool flow = options.system == "flow";
  const std::vector<std::string> kernels = split_list(options.kernels, "--kernels");
  for (const std::string& k : kernels)
    if (k != "two-kernel" && k != "two-sweep" && k != "fused" && k != "trajectory" &&
        !(flow && k == "by-hand"))
      throw InputError(
          fmt::format("kernel '{}'", k), "--kernels",
          flow ? "two-kernel, two-sweep, fused, by-hand" : "two-kernel, two-sweep, fused, trajectory");
  const std::vector<std::string> wanted = split_list(options.gradients, "--gradients");
  for (const std::string& g : wanted)
    if (g != "all" && g != "t1" && g != "t1t2" && g != "none")
      throw InputError(fmt::format("gradients '{}'", g), "--gradients", "all, t1, t1t2, none");
  std::vector<std::string> tiles{""};
  if (!options.tiles.empty()) tiles = split_list(options.tiles, "--tiles");
  for (const std::string& t : tiles) {
    pde::LossOptions o;
    if (!t.empty()) parse_tile(t, o);
  }
  std::vector<int> orders;
  for (const std::string& o : split_list(options.orders, "--orders")) {
    if (o != "2" && o != "4" && o != "6" && o != "8")
      throw InputError(fmt::format("order '{}'", o), "--orders", "2, 4, 6, 8");
    orders.push_back(std::stoi(o));
  }
  const double copy = measure_copy_gbps(device);
  std::vector<Row> rows;
  size_t variants = 0;
  for (const std::string& k : kernels) variants += tiled(k) ? tiles.size() : 1;
  Progress progress("pde study",
                    int64_t(cubes.size() * boundaries.size() * variants * orders.size() * wanted.size()));
  for (int64_t n : cubes) {
    const int64_t need = n * n * n * 4 * (12 + 12 + 5);
    if (const int64_t free_bytes = device.memory().free_bytes; free_bytes > 0 && need > free_bytes) {
      logging::warning("{}^3 needs {} bytes, {} are free: left out", n, need, free_bytes);
      continue;
    }
    const pde::Inputs inputs = random_inputs(device, n, flow);
    for (const std::string& boundary : boundaries)
      for (int order : orders) {
        pde::Mesh mesh;
        mesh.cells = {n, n, n};
        mesh.spacing = {0.1, 0.1, 0.1};
        mesh.dt = 0.05;
        mesh.order = order;
        mesh.boundary = pde::Boundary::parse(boundary);
        const pde::Loss loss(flow ? pde::incompressible_flow(pde::kFlowDivergence) : pde::transport(3), mesh);
        for (const std::string& gradients : wanted)
          for (const std::string& kernel : kernels)
            for (const std::string& tile : tiled(kernel) ? tiles : std::vector<std::string>{""}) {
              rows.push_back(
                  {fmt::format("{0}x{0}x{0}", n), boundary, kernel, tile, gradients, order, {}, 0, {}});
              measure_row(device, loss, inputs, options, rows.back());
              progress.add();
            }
      }
  }
  std::string csv =
      "device,size,boundary,kernel,tile,order,gradients,mean_ms,median_ms,p95_ms,iterations,bytes,gbps,share_"
      "of_"
      "copy,speedup_over_two_kernel,skipped\n";
  ordered_json list = ordered_json::array();
  std::string text = fmt::format("copy {:.1f} GB/s on {}\n", copy, device.info().name);
  for (const Row& row : rows) {
    double two = 0;
    for (const Row& other : rows)
      if (other.kernel == "two-kernel" && other.size == row.size && other.boundary == row.boundary &&
          other.order == row.order && other.gradients == row.gradients)
        two = median(other.ms);
    const double middle = median(row.ms), gbps = middle > 0 ? row.bytes / middle * 1e-6 : 0,
                 speedup = middle > 0 && two > 0 ? two / middle : 0;
    csv +=
        fmt::format("{},{},\"{}\",{},{},{},{},{:.6g},{:.6g},{:.6g},{},{:.0f},{:.6g},{:.4g},{:.4g},\"{}\"\n",
                    device.info().name, row.size, row.boundary, row.kernel, row.tile, row.order,
                    row.gradients, row.mean(), middle, percentile(row.ms, 0.95), row.ms.size(), row.bytes,
                    gbps, gbps / copy, speedup, row.skipped);
    list.push_back({{"size", row.size},
                    {"boundary", row.boundary},
                    {"kernel", row.kernel},
                    {"tile", row.tile},
                    {"gradients", row.gradients},
                    {"order", row.order},
                    {"mean_ms", row.mean()},
                    {"median_ms", middle},
                    {"p95_ms", percentile(row.ms, 0.95)},
                    {"iterations", row.ms.size()},
                    {"bytes", row.bytes},
                    {"gbps", gbps},
                    {"share_of_copy", gbps / copy},
                    {"speedup_over_two_kernel", speedup},
                    {"skipped", row.skipped}});
    text +=
        row.skipped.empty()
            ? fmt::format(
                  "{:>12} {:<44} {:<10} {:<14} order {} {:<4}: {:9.4f} ms {:8.1f} GB/s {:5.1f} % of copy\n",
                  row.size, row.boundary, row.kernel, row.tile, row.order, row.gradients, middle, gbps,
                  100 * gbps / copy)
            : fmt::format("{:>12} {:<44} {:<10} {:<14} order {}: {}\n", row.size, row.boundary, row.kernel,
                          row.tile, row.order, row.skipped);
  }
  if (!options.csv.empty()) write_file(options.csv, csv);
  session.note_device(device.info().name, device.counters().peak_bytes);
  session.finish({{"copy_gbps", copy}, {"csv", options.csv}, {"results", list}}, text);
  return 0;
}

}  // namespace

void add_pde_study(CommandList& commands, CLI::App& pde) {
  Command& command = add_command(commands, pde, "study", "times over sizes, boundaries, kernels and orders");
  auto options = std::make_shared<StudyCommand>();
  CLI::App& app = *command.app;
  add_text(app, "--sizes", options->sizes, "cells along each axis (default by the device)", "N,N…");
  add_text(app, "--boundaries", options->boundaries, "boundary specifications between semicolons",
           "SPEC;SPEC…");
  add_text(app, "--kernels", options->kernels,
           "two-kernel,fused (default), two-sweep, trajectory (time of a level)", "K,K…");
  add_text(app, "--orders", options->orders, "default 2", "N,N…");
  add_text(app, "--gradients", options->gradients, "all (default), t1, t1t2, none", "G,G…");
  add_text(app, "--tiles", options->tiles,
           "tiles of the fused kernel and the two sweeps: lanes along x and y, rows of a lane, planes of a "
           "chunk, groups a "
           "multiprocessor "
           "(default by the device), residual levels a sweep of a trajectory takes",
           "XxYxROWS[xPLANES[xGROUPS[xLEVELS]]],…");
  add_choice(app, "--system", options->system,
             "transport (default), or flow: incompressible, where --kernels also takes by-hand",
             {"transport", "flow"});
  add_flag(app, "--graph", options->graph, "time the replay of a recording");
  add_integer(app, "--levels", options->levels, "levels of a trajectory (default 16)", "T", 3, 1000);
  add_integer(app, "--iterations", options->iterations, "runs of each row (default: half a second, 5 to 50)",
              "N", 1, 10000);
  add_file(app, "--csv", options->csv, "the table as CSV");
  add_common(command, "lockstep pde study --sizes 64,128 --csv study.csv");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
