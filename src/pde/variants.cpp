// Losses and trajectories for `lockstep tune`.
#include "pde/fused/fused.hpp"
#include "pde/fused/levels.hpp"
#include "verify/inputs.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep {

namespace {

using variants::Subject;

constexpr int64_t kTunedLevels = 6;

pde::Mesh tuned_mesh(int64_t n, int order) {
  pde::Mesh mesh;
  mesh.cells = {n, n, n};
  mesh.spacing = {0.1, 0.1, 0.1};
  mesh.dt = 0.05;
  mesh.order = order;
  return mesh;
}

/// Levels of sigma and u.
std::map<std::string, std::vector<Buffer>> tuned_fields(const Device& device, int64_t n, int64_t levels) {
  std::map<std::string, std::vector<Buffer>> fields;
  for (int64_t l = 0; l < levels; ++l) {
    fields["sigma"].push_back(
        device.upload(Array::of(cases::uniform<float>(n * n * n, uint64_t(l + 1)), {n, n, n})));
    fields["u"].push_back(
        device.upload(Array::of(cases::uniform<float>(3 * n * n * n, uint64_t(l + 51)), {3, n, n, n})));
  }
  return fields;
}

double cells_of(const Device&, int64_t n) { return double(n * n * n); }

std::vector<Array> gradients_of(const Device& device, const pde::BoundLoss& bound, int first, int last) {
  std::vector<Array> all;
  for (int level = first; level <= last; ++level)
    for (const char* field : {"sigma", "u"}) all.push_back(device.download(bound.gradient(field, level)));
  return all;
}

Subject loss_subject(const char* of, int order, bool gradients) {
  Subject s;
  s.computation = &pde::loss_computation();
  s.of = of;
  s.host = {"cells", {24, 32, 48, 64}};
  s.gpu = {"cells", {48, 64, 72, 80, 96, 128, 160}};
  s.small = {12, 16};
  s.tolerance = gradients ? 0 : 1e-12;  // of the loss's sum alone
  s.position = cells_of;
  s.bind = [=](const Device& device, int64_t n, std::string_view variant) {
    const auto loss = std::make_shared<pde::Loss>(pde::transport(3, {}), tuned_mesh(n, order));
    pde::Inputs in;
    for (const auto& [name, levels] : tuned_fields(device, n, 3))
      in.fields[name] = {levels[0], levels[1], levels[2]};
    pde::LossOptions options;
    options.path = variant == "fused"       ? pde::Path::fused
                   : variant == "two-sweep" ? pde::Path::two_sweep
                                            : pde::Path::two_kernel;
    if (!gradients) options.gradients = pde::Gradients::none;
    const pde::BoundLoss bound = loss->bind(device, in, options);
    return CaseRun{[bound, loss] { bound.run(); },
                   [=] {
                     if (gradients) return gradients_of(device, bound, -1, 1);
                     return std::vector<Array>{Array::of(std::vector<double>{bound.loss()})};
                   }};
  };
  return s;
}

Subject trajectory_subject() {
  Subject s;
  s.computation = &pde::trajectory_computation();
  s.of = "f32";
  s.host = {"cells", {24, 32, 48}};
  s.gpu = {"cells", {48, 64, 72, 80, 96, 128}};
  s.small = {12};
  s.position = cells_of;
  s.bind = [](const Device& device, int64_t n, std::string_view variant) {
    const auto loss = std::make_shared<pde::Loss>(pde::transport(3, {}), tuned_mesh(n, 2));
    pde::TrajectoryInputs in;
    in.fields = tuned_fields(device, n, kTunedLevels);
    pde::LossOptions options;
    options.path = variant == "sweeps" ? pde::Path::fused : pde::Path::two_kernel;
    const pde::BoundLoss bound = loss->bind_trajectory(device, in, options);
    return CaseRun{[bound, loss] { bound.run(); },
                   [=] { return gradients_of(device, bound, 0, int(kTunedLevels) - 1); }};
  };
  return s;
}

}  // namespace

void add_pde_variants(std::vector<Subject>& subjects) {
  subjects.push_back(loss_subject("orders 2 and 4", 2, true));
  subjects.push_back(loss_subject("orders 6 and 8", 6, true));
  subjects.push_back(loss_subject("orders 2 and 4, no gradients", 2, false));
  subjects.push_back(loss_subject("orders 6 and 8, no gradients", 6, false));
  subjects.push_back(trajectory_subject());
}

}  // namespace lockstep
