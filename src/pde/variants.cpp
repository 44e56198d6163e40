// Losses, trajectories and their tiles for `lockstep tune`.
#include "pde/fused/fused.hpp"
#include "pde/fused/levels.hpp"
#include "pde/halves/two_sweeps.hpp"
#include "pde/kernels/two_kernels.hpp"
#include "verify/inputs.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep {

namespace {

using variants::Subject;

constexpr int64_t kTunedLevels = 6, kSweptLevels = 12;

/// Grids of a subject by its size n: cubes, or n × n rows of 128 cells.
struct TunedGrid {
  int order = 2;
  const char* boundary = "periodic";
  bool rows_of_128 = false;

  int64_t width(int64_t n) const { return rows_of_128 ? 128 : n; }
  int64_t cells(int64_t n) const { return width(n) * n * n; }
  pde::Mesh mesh(int64_t n) const {
    pde::Mesh mesh;
    mesh.cells = {width(n), n, n};
    mesh.spacing = {0.1, 0.1, 0.1};
    mesh.dt = 0.05;
    mesh.boundary = pde::BoundaryConditions::parse(boundary);
    mesh.order = order;
    return mesh;
  }
};

/// Levels of sigma and u.
std::map<std::string, std::vector<Buffer>> tuned_fields(const Device& device, const TunedGrid& grid,
                                                        int64_t n, int64_t levels) {
  const int64_t cells = grid.cells(n), width = grid.width(n);
  std::map<std::string, std::vector<Buffer>> fields;
  for (int64_t l = 0; l < levels; ++l) {
    fields["sigma"].push_back(
        device.upload(Array::of(cases::uniform<float>(cells, uint64_t(l + 1)), {n, n, width})));
    fields["u"].push_back(
        device.upload(Array::of(cases::uniform<float>(3 * cells, uint64_t(l + 51)), {3, n, n, width})));
  }
  return fields;
}

std::vector<Array> gradients_of(const Device& device, const pde::BoundLoss& bound, int first, int last) {
  std::vector<Array> all;
  for (int level = first; level <= last; ++level)
    for (const char* field : {"sigma", "u"}) all.push_back(device.download(bound.gradient(field, level)));
  return all;
}

CaseRun tuned_loss(const Device& device, const TunedGrid& grid, int64_t n, const pde::LossOptions& options) {
  const auto loss = std::make_shared<pde::Loss>(pde::transport(3, {}), grid.mesh(n));
  pde::Inputs in;
  for (const auto& [name, levels] : tuned_fields(device, grid, n, 3))
    in.fields[name] = {levels[0], levels[1], levels[2]};
  const pde::BoundLoss bound = loss->bind(device, in, options);
  const bool gradients = options.gradients == pde::Gradients::all;
  return {[bound, loss] { bound.run(); },
          [=] {
            if (gradients) return gradients_of(device, bound, -1, 1);
            return std::vector<Array>{Array::of(std::vector<double>{bound.loss()})};
          }};
}

/// Memory of a loss by the path that its options name, with all gradients or none.
variants::VariantMemory loss_memory(const Device& device, const TunedGrid& grid, int64_t n,
                                    const pde::LossOptions& options) {
  const pde::Discretisation d(pde::transport(3, {}).plan(), grid.mesh(n));
  const std::vector<pde::FieldLevel> outputs = pde::wanted_outputs(*d.plan, options);
  const int64_t arrays = outputs.empty() ? 1 : 2;  // fields, and gradients of the same shapes
  return {arrays * 3 * 4 * 4 * grid.cells(n),
          pde::path_scratch(options.path, d, device, {}, outputs, 1, options)};
}

variants::VariantMemory trajectory_memory(const Device& device, const TunedGrid& grid, int64_t n,
                                          int64_t levels, const pde::LossOptions& options) {
  const auto d = std::make_shared<const pde::Discretisation>(pde::transport(3, {}).plan(), grid.mesh(n));
  const pde::LevelsProblem problem{d, {}, {0, 1}, levels, 1};
  const auto made = [](const std::string&, const auto& make) { return make(); };
  return {2 * levels * 4 * 4 * grid.cells(n),
          options.path == pde::Path::fused
              ? pde::sweeps_scratch(problem, device, pde::plan_sweeps(problem, device, options, made))
              : pde::slabs_scratch(problem, device, options)};
}

CaseRun tuned_trajectory(const Device& device, const TunedGrid& grid, int64_t n, int64_t levels,
                         const pde::LossOptions& options) {
  const auto loss = std::make_shared<pde::Loss>(pde::transport(3, {}), grid.mesh(n));
  pde::TrajectoryInputs in;
  in.fields = tuned_fields(device, grid, n, levels);
  const pde::BoundLoss bound = loss->bind_trajectory(device, in, options);
  return {[bound, loss] { bound.run(); }, [=] { return gradients_of(device, bound, 0, int(levels) - 1); }};
}

Subject grid_subject(const variants::Computation& computation, const char* of, const TunedGrid& grid,
                     std::vector<int64_t> host, std::vector<int64_t> gpu, std::vector<int64_t> small) {
  Subject s;
  s.computation = &computation;
  s.of = of;
  s.host = {"cells", std::move(host)};
  s.gpu = {"cells", std::move(gpu)};
  s.small = std::move(small);
  s.position = [grid](const Device&, int64_t n) { return double(grid.cells(n)); };
  return s;
}

using OptionsOf = std::function<pde::LossOptions(std::string_view variant)>;

void take_losses(Subject& s, const TunedGrid& grid, const OptionsOf& options_of) {
  s.bind = [=](const Device& device, int64_t n, std::string_view variant) {
    return tuned_loss(device, grid, n, options_of(variant));
  };
  s.memory = [=](const Device& device, int64_t n, std::string_view variant) {
    return loss_memory(device, grid, n, options_of(variant));
  };
}

void take_trajectories(Subject& s, const TunedGrid& grid, int64_t levels, const OptionsOf& options_of) {
  s.bind = [=](const Device& device, int64_t n, std::string_view variant) {
    return tuned_trajectory(device, grid, n, levels, options_of(variant));
  };
  s.memory = [=](const Device& device, int64_t n, std::string_view variant) {
    return trajectory_memory(device, grid, n, levels, options_of(variant));
  };
}

Subject loss_subject(const char* of, int order, bool gradients) {
  const TunedGrid grid{order};
  Subject s = grid_subject(pde::loss_computation(), of, grid, {24, 32, 48, 64},
                           {48, 64, 72, 80, 96, 128, 160}, {12, 16});
  s.tolerance = gradients ? 0 : 1e-12;  // of the loss's sum alone
  take_losses(s, grid, [=](std::string_view variant) {
    pde::LossOptions options;
    options.path = variant == "fused"       ? pde::Path::fused
                   : variant == "two-sweep" ? pde::Path::two_sweep
                                            : pde::Path::two_kernel;
    if (!gradients) options.gradients = pde::Gradients::none;
    return options;
  });
  return s;
}

Subject trajectory_subject() {
  const TunedGrid grid;
  Subject s =
      grid_subject(pde::trajectory_computation(), "f32", grid, {24, 32, 48}, {48, 64, 72, 80, 96, 128}, {12});
  take_trajectories(s, grid, kTunedLevels, [](std::string_view variant) {
    pde::LossOptions options;
    options.path = variant == "sweeps" ? pde::Path::fused : pde::Path::two_kernel;
    return options;
  });
  return s;
}

/// Tiles of a path of losses. Cubes have no rows of 128.
Subject tile_subject(const variants::Computation& computation, const char* of, pde::Path path,
                     const TunedGrid& grid, bool gradients) {
  const bool wide = grid.rows_of_128;
  Subject s = grid_subject(computation, of, grid,
                           wide ? std::vector<int64_t>{16, 48} : std::vector<int64_t>{24, 48, 80},
                           wide ? std::vector<int64_t>{32, 48, 64, 80, 104, 144, 208, 240}
                                : std::vector<int64_t>{48, 64, 80, 96, 112, 144, 160, 176, 208, 224},
                           {wide             ? 8
                            : grid.order > 2 ? 12
                                             : 10});
  s.tolerance = gradients ? 0 : 1e-12;  // of the loss's sum alone
  take_losses(s, grid, [=](std::string_view variant) {
    pde::LossOptions options;
    options.path = path;
    options.tile = variant;
    if (!gradients) options.gradients = pde::Gradients::none;
    return options;
  });
  return s;
}

Subject sweep_subject(const char* of, const char* boundary) {
  const TunedGrid grid{.boundary = boundary};
  Subject s = grid_subject(pde::sweep_computation(), of, grid, {24, 48},
                           {48, 64, 80, 96, 128, 144, 160, 176, 192}, {10});
  take_trajectories(s, grid, kSweptLevels, [](std::string_view variant) {
    pde::LossOptions options;
    options.path = pde::Path::fused;
    options.tile = variant;
    return options;
  });
  return s;
}

}  // namespace

void add_pde_variants(std::vector<Subject>& subjects) {
  subjects.push_back(loss_subject("orders 2 and 4", 2, true));
  subjects.push_back(loss_subject("orders 6 and 8", 6, true));
  subjects.push_back(loss_subject("orders 2 and 4, no gradients", 2, false));
  subjects.push_back(loss_subject("orders 6 and 8, no gradients", 6, false));
  subjects.push_back(trajectory_subject());
  const auto fused = [&](const char* of, const TunedGrid& grid, bool gradients = true) {
    subjects.push_back(tile_subject(pde::tile_computation(), of, pde::Path::fused, grid, gradients));
  };
  fused("orders 4 to 8", {.order = 4});
  fused("edges", {.boundary = "y=clamp"});
  fused("edges, rows of 128", {.boundary = "y=clamp", .rows_of_128 = true});
  fused("few gradients", {}, false);
  fused("gradients", {});
  fused("gradients, rows of 128", {.rows_of_128 = true});
  subjects.push_back(
      tile_subject(pde::half_tile_computation(), "", pde::Path::two_sweep, {.order = 6}, true));
  subjects.push_back(sweep_subject("periodic", "periodic"));
  subjects.push_back(sweep_subject("edges", "y=clamp"));
}

}  // namespace lockstep
