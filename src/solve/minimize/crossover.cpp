#include "solve/minimize/crossover.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/numbers/statistics.hpp"
#include "solve/case_problems.hpp"
#include "solve/evaluate/evaluator.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

/// Seconds of one value and gradient with its answer on the host: the median of enough runs.
double time_gradient(const Problem& problem, const Device& device) {
  using Clock = std::chrono::steady_clock;
  Evaluator evaluator(problem, device, device.info().limits.f64 ? Precision::f64 : Precision::f32);
  const auto& values = problem.state().values;
  evaluator.set_state(values);
  for (int warm = 0; warm < 3; ++warm) evaluator.value_and_gradient();
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 5 || (times.size() < 200 && Clock::now() - begin < std::chrono::milliseconds(100))) {
    const auto start = Clock::now();
    evaluator.value_and_gradient();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return median(std::move(times));
}

}  // namespace

int64_t crossover(const std::vector<CrossoverPoint>& points) {
  int64_t from = std::numeric_limits<int64_t>::max();
  for (auto p = points.rbegin(); p != points.rend() && p->device_seconds < p->cpu_seconds; ++p)
    from = p->residuals;
  return from;
}

std::vector<CrossoverPoint> measure_crossover(const Device& device, const Device& cpu, int largest,
                                              const std::function<void(const CrossoverPoint&)>& progress) {
  std::vector<CrossoverPoint> points;
  for (int level = 0; level <= largest; ++level) {
    const Problem problem = mesh_problem(level, false, 1);
    CrossoverPoint point;
    point.vertices = 10 * (int64_t(1) << (2 * level)) + 2;
    point.residuals = problem.residual_count();
    point.cpu_seconds = time_gradient(problem, cpu);
    point.device_seconds = time_gradient(problem, device);
    points.push_back(point);
    if (progress) progress(point);
  }
  return points;
}

const variants::Computation& placement_computation() {
  static const variants::Computation computation(
      {.name = "solve.placement", .variants = {"cpu", "device"}, .axes = {"residuals"}});
  return computation;
}

variants::TableRow placement_row(const DeviceInfo& device, int64_t residuals) {
  variants::TableRow row{
      std::string(placement_computation().name()), std::string(model_of(device)), {}, "residuals", {}, {}};
  row.steps.push_back({0, {"cpu"}});
  if (residuals < std::numeric_limits<int64_t>::max()) row.steps.push_back({double(residuals), {"device"}});
  return row;
}

bool prefers_cpu(const Problem& problem, const Device& device, const Options& options) {
  if (options.backend == Placement::cpu) return true;
  if (options.backend == Placement::gpu || capabilities_of(device).host_memory) return false;
  const int64_t residuals = problem.residual_count();
  if (options.threshold >= 0) return residuals < options.threshold;
  const variants::Axis axis{"residuals", double(residuals)};
  return variants::choose(placement_computation(), device, {{}, {&axis, 1}}).variant == 0;
}

}  // namespace lockstep::solve
