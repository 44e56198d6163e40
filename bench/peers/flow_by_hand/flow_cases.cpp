// Cases of incompressible flow: the system of the Value graph compared with the hand-written sweep.
#include <memory>

#include "flow_by_hand.hpp"
#include "lockstep/error.hpp"
#include "lockstep/verify.hpp"
#include "pde/fused/fused.hpp"
#include "verify/inputs.hpp"

namespace lockstep::pde {

namespace {

Mesh flow_mesh(const std::string& size) {
  const Shape shape = parse_shape(size, 3);
  Mesh mesh;
  mesh.cells = {shape[2], shape[1], shape[0]};
  mesh.spacing = {0.1, 0.11, 0.12};
  mesh.dt = 0.05;
  return mesh;
}

Inputs flow_inputs(const Device& device, const Mesh& mesh, uint64_t seed) {
  const int64_t nx = mesh.cells[0], ny = mesh.cells[1], nz = mesh.cells[2];
  Inputs in;
  for (size_t l = 0; l < 3; ++l) {
    const auto u = cases::uniform<float>(3 * mesh.count(), seed * 100 + l);
    in.fields["u"][l] = device.upload(std::span<const float>(u), {3, nz, ny, nx});
  }
  const auto p = cases::uniform<float>(mesh.count(), seed * 100 + 3);
  in.fields["p"][1] = device.upload(std::span<const float>(p), {nz, ny, nx});
  in.parameters["nu"] = kFlowViscosity;
  return in;
}

Case flow_case(const std::string& name, std::vector<std::string> small, bool by_hand) {
  Case c;
  c.name = name;
  c.dtype = "f32";
  c.small = std::move(small);
  c.bench = {"64x64x64", "128x128x128", "256x256x256"};
  c.needs_f64 = by_hand;
  c.webgpu = Bound::relative(1e-6);
  c.make = [by_hand](const std::string& size, uint64_t seed) {
    const Mesh mesh = flow_mesh(size);
    CaseProblem p;
    p.bytes = 80.0 * double(mesh.count());
    p.flops = 260.0 * double(mesh.count());
    p.bind = [=](const Device& device) {
      const Inputs in = flow_inputs(device, mesh, seed);
      if (by_hand) {
        const FlowByHand flow = bind_flow_by_hand(device, mesh, in);
        return CaseRun{[=] { flow.run(); },
                       [=] {
                         std::vector<Array> all;
                         for (const Buffer& g : flow.gradients) all.push_back(device.download(g));
                         return all;
                       }};
      }
      const auto loss = std::make_shared<Loss>(incompressible_flow(kFlowDivergence), mesh);
      const BoundLoss bound = loss->bind(device, in);
      return CaseRun{[bound, loss] { bound.run(); },
                     [=] {
                       std::vector<Array> all;
                       for (int level : {-1, 0, 1})
                         all.push_back(device.download(bound.gradient("u", level)));
                       all.push_back(device.download(bound.gradient("p", 0)));
                       return all;
                     }};
    };
    return p;
  };
  c.kernels = [by_hand]() -> std::vector<Kernel> {
    if (by_hand) return {flow_by_hand({16, 8, 1, 8, 4, 1})};
    const auto d = std::make_shared<const Discretisation>(incompressible_flow(kFlowDivergence).plan(),
                                                          flow_mesh("64x64x64"));
    return {residual_kernel(d, {}, ResidualKind::cotangent),
            adjoint_kernel(d, {}, {{0, -1}, {0, 0}, {0, 1}, {1, 0}})};
  };
  return c;
}

}  // namespace

void add_flow_cases(CaseRegistry& registry) {
  registry.add(flow_case("pde.navier_stokes.graph", {"6x8x16", "9x8x32"}, false));
  registry.add(flow_case("pde.navier_stokes.by_hand", {"6x8x16", "10x16x32"}, true));
}

}  // namespace lockstep::pde
