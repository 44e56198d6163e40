// Times of the loss over sizes, boundaries, kernels and orders.
#include "lockstep/pde/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.hpp"
#include "core/numbers/statistics.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "device/capabilities.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde/commands.hpp"
#include "lockstep/pde/documents.hpp"
#include "lockstep/verify.hpp"
#include "verify/inputs.hpp"

namespace lockstep::pde {
namespace {

constexpr double kFlowViscosity = 0.05, kFlowDivergence = 0.5;

/// One cube of cells with random fields, reused by all rows of its size.
Inputs random_inputs(const Device& device, int64_t n, bool flow) {
  Inputs in;
  const int64_t count = n * n * n;
  if (flow) {
    const auto p = cases::uniform<float>(count, 30);
    in.fields["p"][1] = device.upload(std::span<const float>(p), {n, n, n});
    in.parameters["nu"] = kFlowViscosity;
  }
  for (size_t l = 0; l < 3; ++l) {
    const auto sigma = cases::uniform<float>(count, 10 + l), u = cases::uniform<float>(3 * count, 20 + l);
    if (!flow) in.fields["sigma"][l] = device.upload(std::span<const float>(sigma), {n, n, n});
    in.fields["u"][l] = device.upload(std::span<const float>(u), {3, n, n, n});
  }
  return in;
}

Gradients gradients_of(const std::string& name) {
  if (name == "none") return Gradients::none;
  return name == "t1" ? Gradients::t1 : name == "t1t2" ? Gradients::t1t2 : Gradients::all;
}

/// A tile of the fused path: "64x4x2" or with planes of a chunk, groups a multiprocessor and residual levels
/// of a trajectory, "64x4x2x64x2x3". A 0 leaves the choice to the device.
void parse_tile(const std::string& text, LossOptions& o) {
  int* const parts[] = {&o.tile_x, &o.tile_y, &o.tile_rows, &o.chunk, &o.groups, &o.levels};
  std::vector<int64_t> numbers;
  try {
    numbers = parse_size(text);
  } catch (const InputError&) {}
  if (numbers.size() < 3 || numbers.size() > 6 || *std::max_element(numbers.begin(), numbers.end()) > 4096)
    throw schema_of<StudyOptions>().error({OptionError::Kind::invalid, "tiles",
                                           fmt::format("tile '{}'", text),
                                           "LANESxLANESxROWS[xPLANES[xGROUPS[xLEVELS]]]", ""});
  for (size_t k = 0; k < numbers.size(); ++k) *parts[k] = int(numbers[k]);
}

/// With --graph, a run is the replay of a recording: what a training loop would do with a small grid.
void measure(const Device& device, const std::function<void()>& run, double bytes,
             const StudyOptions& options, StudyRow& row) {
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
void measure(const Device& device, const BoundLoss& bound, const StudyOptions& options, StudyRow& row) {
  measure(device, [&] { bound.run(); }, bound.bytes(), options, row);
}

void measure_row(const Device& device, const Loss& loss, const Inputs& inputs, const StudyOptions& options,
                 StudyRow& row) {
  try {
    LossOptions o;
    o.gradients = gradients_of(row.gradients);
    if (row.kernel == "trajectory") {
      TrajectoryInputs all;
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
    o.path = row.kernel == "fused"       ? Path::fused
             : row.kernel == "two-sweep" ? Path::two_sweep
                                         : Path::two_kernel;
    if (!row.tile.empty()) parse_tile(row.tile, o);
    measure(device, loss.bind(device, inputs, o), options, row);
  } catch (const UnsupportedError& e) { row.skipped = e.what(); }
}

bool tiled(const std::string& kernel) { return kernel != "two-kernel"; }

void check(const StudyOptions& options) {
  schema_of<StudyOptions>().check(&options);
  for (const std::string& boundary : options.boundaries) BoundaryConditions::parse(boundary);
  for (const std::string& t : options.tiles) {
    LossOptions o;
    if (!t.empty()) parse_tile(t, o);
  }
}

Mesh cube(int64_t n, int order, const std::string& boundary) {
  Mesh mesh;
  mesh.cells = {n, n, n};
  mesh.spacing = {0.1, 0.1, 0.1};
  mesh.dt = 0.05;
  mesh.order = order;
  mesh.boundary = BoundaryConditions::parse(boundary);
  return mesh;
}

void summarise(StudyResult& result) {
  for (StudyRow& row : result.rows) {
    double two = 0;
    for (const StudyRow& other : result.rows)
      if (other.kernel == "two-kernel" && other.size == row.size && other.boundary == row.boundary &&
          other.order == row.order && other.gradients == row.gradients)
        two = median(other.ms);
    for (double ms : row.ms) row.mean_ms += ms / double(row.ms.size());
    row.median_ms = median(row.ms);
    row.p95_ms = percentile(row.ms, 0.95);
    row.gbps = row.median_ms > 0 ? row.bytes / row.median_ms * 1e-6 : 0;
    row.share_of_copy = row.gbps / result.copy_gbps;
    row.speedup_over_two_kernel = row.median_ms > 0 && two > 0 ? two / row.median_ms : 0;
  }
}

std::string table(const StudyResult& result) {
  std::string csv =
      "device,size,boundary,kernel,tile,order,gradients,mean_ms,median_ms,p95_ms,iterations,bytes,gbps,"
      "share_of_copy,speedup_over_two_kernel,skipped\n";
  for (const StudyRow& row : result.rows)
    csv +=
        fmt::format("{},{},\"{}\",{},{},{},{},{:.6g},{:.6g},{:.6g},{},{:.0f},{:.6g},{:.4g},{:.4g},\"{}\"\n",
                    result.device, row.size, row.boundary, row.kernel, row.tile, row.order, row.gradients,
                    row.mean_ms, row.median_ms, row.p95_ms, row.ms.size(), row.bytes, row.gbps,
                    row.share_of_copy, row.speedup_over_two_kernel, row.skipped);
  return csv;
}

}  // namespace

StudyResult run_study(const Device& device, const StudyOptions& options,
                      const std::function<void(int64_t done, int64_t rows)>& progress) {
  check(options);
  std::vector<int64_t> sizes = options.sizes;
  if (sizes.empty())
    sizes = capabilities_of(device).warp_lanes > 0 ? std::vector<int64_t>{64, 96, 128, 192, 256}
                                                   : std::vector<int64_t>{32, 64, 96, 128};
  size_t variants = 0;
  for (const std::string& k : options.kernels) variants += tiled(k) ? options.tiles.size() : 1;
  const auto total = int64_t(sizes.size() * options.boundaries.size() * variants * options.orders.size() *
                             options.gradients.size());
  StudyResult result;
  result.device = device.info().name;
  result.flow = options.flow;
  result.csv = options.csv;
  result.copy_gbps = measure_copy_gbps(device);
  for (int64_t n : sizes) {
    const int64_t need = n * n * n * 4 * (12 + 12 + 5);
    if (const int64_t free_bytes = device.memory().free_bytes; free_bytes > 0 && need > free_bytes) {
      logging::warning("{}^3 needs {} bytes, {} are free: skipped", n, need, free_bytes);
      continue;
    }
    const Inputs inputs = random_inputs(device, n, options.flow);
    for (const std::string& boundary : options.boundaries)
      for (int order : options.orders) {
        const Loss loss(options.flow ? incompressible_flow(kFlowDivergence) : transport(3),
                        cube(n, order, boundary));
        for (const std::string& gradients : options.gradients)
          for (const std::string& kernel : options.kernels)
            for (const std::string& tile : tiled(kernel) ? options.tiles : std::vector<std::string>{""}) {
              StudyRow& row = result.rows.emplace_back();
              row.size = fmt::format("{0}x{0}x{0}", n);
              row.boundary = boundary, row.kernel = kernel, row.tile = tile, row.gradients = gradients;
              row.order = order;
              measure_row(device, loss, inputs, options, row);
              if (progress) progress(int64_t(result.rows.size()), total);
            }
      }
  }
  summarise(result);
  if (!options.csv.empty()) write_file(options.csv, table(result));
  return result;
}

nlohmann::ordered_json document_of(const StudyResult& result) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const StudyRow& row : result.rows)
    rows.push_back({{"size", row.size},
                    {"boundary", row.boundary},
                    {"kernel", row.kernel},
                    {"tile", row.tile},
                    {"gradients", row.gradients},
                    {"order", row.order},
                    {"mean_ms", row.mean_ms},
                    {"median_ms", row.median_ms},
                    {"p95_ms", row.p95_ms},
                    {"iterations", row.ms.size()},
                    {"bytes", row.bytes},
                    {"gbps", row.gbps},
                    {"share_of_copy", row.share_of_copy},
                    {"speedup_over_two_kernel", row.speedup_over_two_kernel},
                    {"skipped", row.skipped}});
  return nlohmann::ordered_json{{"system", result.flow ? "flow" : "transport"},
                                {"copy_gbps", result.copy_gbps},
                                {"csv", result.csv.string()},
                                {"results", rows}};
}
std::string to_json(const StudyResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::pde
