// Steps of the flow solver for `lockstep tune`.
#include "flow/les/fused.hpp"
#include "lockstep/flow.hpp"
#include "lockstep/flow/memory.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep {

namespace {

std::pair<flow::Model, flow::Stepping> tuned_steps(int64_t n, std::string_view variant) {
  flow::Model model;
  model.grid.nx = model.grid.ny = n;
  model.viscosity = 1e-4;
  model.closure = flow::Closure::smagorinsky;
  flow::Stepping stepping;
  stepping.dt = 1e-5;
  stepping.variant = variant;
  return {model, stepping};
}

Storage tuned_precision(const Device& device) {
  return device.info().limits.f64 ? Storage::f64 : Storage::f32;
}

}  // namespace

void add_flow_variants(std::vector<variants::Subject>& subjects) {
  variants::Subject s;
  s.computation = &flow::step_computation();
  s.host = {"points", {32, 64, 128, 256}};
  s.gpu = {"points", {64, 128, 256, 512, 1024}};
  s.small = {16, 32};
  s.position = [](const Device&, int64_t n) { return double(n * n); };
  s.bind = [](const Device& device, int64_t n, std::string_view variant) {
    const auto [model, stepping] = tuned_steps(n, variant);
    const auto solver = std::make_shared<flow::Solver>(device, model, stepping, tuned_precision(device));
    solver->set_vorticity(flow::initial_field(model.grid, flow::Initial::vortices));
    return CaseRun{[solver] { solver->advance(4); },
                   [solver] { return std::vector<Array>{solver->spectrum()}; }};
  };
  s.memory = [](const Device& device, int64_t n, std::string_view variant) {
    const auto [model, stepping] = tuned_steps(n, variant);
    return variants::VariantMemory{
        0, flow::memory_bytes(model, stepping, tuned_precision(device), 1, device.info())};
  };
  subjects.push_back(std::move(s));
}

}  // namespace lockstep
