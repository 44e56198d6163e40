// Evaluations of least-squares problems for `lockstep tune`.
#include "solve/case_problems.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/minimize/choose.hpp"
#include "solve/minimize/crossover.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep {

namespace {

using variants::Subject;

CaseRun tuned_linearisation(const Device& device, int level, const solve::EvaluatorOptions& options) {
  const auto problem = std::make_shared<const solve::Problem>(solve::mesh_problem(level, false, 1));
  const auto precision = device.info().limits.f64 ? solve::Precision::f64 : solve::Precision::f32;
  const auto evaluator = std::make_shared<solve::Evaluator>(*problem, device, precision, options);
  evaluator->set_state(problem->state().values);
  return {[=] { evaluator->linearize(); },
          [=] {
            return std::vector<Array>{device.download(evaluator->gradient()),
                                      Array::of(std::vector<double>{evaluator->cost()})};
          }};
}

/// Sizes are subdivisions of an icosphere with 30 edges.
int64_t edges_of(int64_t level) { return int64_t(30) << (2 * level); }

Subject assembly_subject() {
  Subject s;
  s.computation = &solve::assembly_computation();
  s.host = s.gpu = {"instances", {1, 2, 3, 4, 5}};
  s.small = {1, 2};
  s.tolerance = 1e-13;
  s.no_memory = "tables of a problem's topology, which are made first";
  s.position = [](const Device&, int64_t level) { return double(edges_of(level)); };
  s.bind = [](const Device& device, int64_t level, std::string_view variant) {
    return tuned_linearisation(device, int(level), {.uses = solve::kUseLinearize, .assembly = variant});
  };
  return s;
}

Subject sums_subject() {
  Subject s;
  s.computation = &solve::sums_computation();
  s.host = {"numbers", {0, 1, 2, 3, 4}};
  s.small = {1, 2};
  s.no_memory = "tables of a problem's topology, which are made first";
  s.position = [](const Device&, int64_t level) {
    return double(6 * edges_of(level));
  };  // 2 and 4 slots an edge
  s.bind = [](const Device& device, int64_t level, std::string_view variant) {
    return tuned_linearisation(device, int(level),
                               {.uses = solve::kUseLinearize | solve::kUseProduct | solve::kUseHost,
                                .assembly = "plain",
                                .sums = variant});
  };
  return s;
}

/// Value and gradient on the CPU and on the device; what a device without memory of its own is compared with is itself.
Subject placement_subject() {
  Subject s;
  s.computation = &solve::placement_computation();
  s.host.none = "no device with its own memory to compare with the CPU";
  s.gpu = {"residuals", {0, 1, 2, 3, 4, 5, 6}};
  s.small = {1};
  s.no_memory = "tables of a problem's topology, which are made first";
  s.position = [](const Device&, int64_t level) {
    return double(solve::mesh_problem(int(level), false, 1).residual_count());
  };
  s.bind = [](const Device& device, int64_t level, std::string_view variant) {
    const Device where = variant == "cpu" ? Device::open("cpu") : device;
    const auto precision = where.info().limits.f64 ? solve::Precision::f64 : solve::Precision::f32;
    const auto problem = std::make_shared<const solve::Problem>(solve::mesh_problem(int(level), false, 1));
    const auto evaluator = std::make_shared<solve::Evaluator>(*problem, where, precision);
    evaluator->set_state(problem->state().values);
    return CaseRun{[=] { evaluator->value_and_gradient(); },
                   [=] { return std::vector<Array>{where.download(evaluator->gradient())}; }};
  };
  return s;
}

/// Solvers whose answers differ in rounding: a run has the bits that the shipped table gives it on every device.
Subject solver_subject(const variants::Computation& computation) {
  Subject s;
  s.computation = &computation;
  s.host.none = s.gpu.none = "its variants are different solvers: only the shipped table chooses";
  return s;
}

}  // namespace

void add_solve_variants(std::vector<Subject>& subjects) {
  subjects.push_back(assembly_subject());
  subjects.push_back(sums_subject());
  subjects.push_back(placement_subject());
  subjects.push_back(solver_subject(solve::eliminated_computation()));
  subjects.push_back(solver_subject(solve::factor_computation()));
}

}  // namespace lockstep
