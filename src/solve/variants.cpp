// Evaluations of least-squares problems for `lockstep tune`.
#include "solve/case_problems.hpp"
#include "solve/evaluate/evaluator_state.hpp"
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

}  // namespace

void add_solve_variants(std::vector<Subject>& subjects) {
  subjects.push_back(assembly_subject());
  subjects.push_back(sums_subject());
}

}  // namespace lockstep
