// L-BFGS by products: its directions are those of the two loops, its iterations one graph and one read.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "lockstep/error.hpp"
#include "optimize/lbfgs/memory.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/minimize/methods/evaluator_objective.hpp"
#include "solve/minimize/problems.hpp"

namespace lockstep::solve {
namespace {

using optimize::LbfgsLayout;
using test::Instance;
using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  long double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += (long double)a[k] * b[k];
  return double(sum);
}
double norm(const Vector& a) { return std::sqrt(dot(a, a)); }

/// The two loops on vectors, as textbooks have them.
struct TwoLoops {
  size_t history;
  Vector diagonal;  // empty: none
  std::deque<std::pair<Vector, Vector>> pairs;

  Vector scaled(Vector v) const {
    for (size_t k = 0; k < diagonal.size(); ++k) v[k] /= std::clamp(diagonal[k], 1e-6, 1e32);
    return v;
  }
  void add(const Vector& s, const Vector& y) {
    if (pairs.size() == history) pairs.pop_front();
    if (dot(s, y) > 0) pairs.emplace_back(s, y);
  }
  Vector direction(const Vector& gradient) const {
    Vector q = gradient, alpha;
    const auto move = [&](double a, const Vector& v) {
      for (size_t k = 0; k < q.size(); ++k) q[k] += a * v[k];
    };
    for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
      const auto& [s, y] = *pair;
      alpha.push_back(dot(s, q) / dot(s, y));
      move(-alpha.back(), y);
    }
    q = scaled(q);
    double first = diagonal.empty() ? std::min(1.0, 1 / norm(gradient)) : 1;
    if (!pairs.empty()) {
      const auto& [s, y] = pairs.back();
      first = dot(s, y) / dot(y, scaled(y));
    }
    for (double& v : q) v *= first;
    for (const auto& [s, y] : pairs) {
      move(alpha.back() - dot(y, q) / dot(s, y), s);
      alpha.pop_back();
    }
    for (double& v : q) v = -v;
    return q;
  }
};

void expect_near(const Vector& got, const Vector& expected, double relative) {
  ASSERT_EQ(got.size(), expected.size());
  Vector apart = got;
  for (size_t k = 0; k < got.size(); ++k) apart[k] -= expected[k];
  EXPECT_LE(norm(apart), relative * norm(expected));
}

void expect_directions_of_two_loops(const std::string& device_name, int history, bool scaled,
                                    Precision precision, double tolerance) {
  SCOPED_TRACE(testing::Message() << device_name << " history " << history << " scaled " << scaled << " "
                                  << name(precision));
  const Device device = Device::open(device_name);
  Instance net = test::net(7);
  Evaluator evaluator(net.problem, device, precision);
  EvaluatorObjective objective(evaluator);
  optimize::LbfgsMemory memory(objective, history, scaled);
  TwoLoops loops{size_t(history), {}, {}};
  if (scaled) {
    evaluator.linearize();
    device.copy(evaluator.diagonal(), memory.diagonal());
    loops.diagonal = download_numbers(device, memory.diagonal());
  }
  double cost = evaluator.value_and_gradient();
  memory.begin();
  const double start = cost;
  int taken = 0;
  for (int k = 0; k < 18; ++k) {
    const Vector gradient = download_numbers(device, evaluator.gradient());
    const Vector expected = loops.direction(gradient);
    optimize::LbfgsTrial trial = memory.advance();
    expect_near(download_numbers(device, memory.step()), expected, tolerance);
    EXPECT_EQ(trial.pairs, int(loops.pairs.size()));
    EXPECT_NEAR(trial.start_slope, dot(gradient, expected), 1e-3 * std::abs(dot(gradient, expected)));
    EXPECT_LT(trial.start_slope, 0);
    if (k % 4 == 3 || !(trial.value < cost)) {
      trial = memory.trial(0.25);
      const Vector step = download_numbers(device, memory.step());
      for (size_t c = 0; c < step.size(); ++c)
        EXPECT_NEAR(step[c], 0.25 * expected[c], tolerance * norm(expected));
    }
    const Vector step = download_numbers(device, memory.step()),
                 next = download_numbers(device, evaluator.gradient());
    EXPECT_NEAR(trial.slope, dot(next, step), 1e-12 * norm(next) * norm(step) + 1e-300);
    EXPECT_NEAR(trial.step_norm, norm(step), 1e-12 * norm(step));
    double largest = 0;
    for (const double g : next) largest = std::max(largest, std::abs(g));
    EXPECT_EQ(trial.gradient_max, largest);
    if (!(trial.value < cost)) break;
    cost = trial.value;
    memory.accept();
    EXPECT_NEAR(trial.point_norm, evaluator.state_norm(), 1e-6 * trial.point_norm);
    Vector change = next;
    for (size_t c = 0; c < change.size(); ++c) {
      change[c] -= gradient[c];
      if (precision == Precision::f32) change[c] = double(float(change[c]));
    }
    loops.add(step, change);
    ++taken;
  }
  EXPECT_GE(taken, 6);
  EXPECT_LT(cost, start);
}

TEST(Lbfgs, DirectionsAreThoseOfTheTwoLoops) {
  for (const int history : {1, 2, 3, 4, 5, 10, 13, 40})
    for (const bool scaled : {false, true}) {
      expect_directions_of_two_loops("cpu", history, scaled, Precision::f64, 1e-8);
      expect_directions_of_two_loops("cpu", history, scaled, Precision::f32, 1e-5);
    }
  for (const int history : {2, 10})
    for (const bool scaled : {false, true})
      for (const Precision precision : {Precision::f64, Precision::f32})
        expect_directions_of_two_loops("interp", history, scaled, precision,
                                       precision == Precision::f64 ? 1e-8 : 1e-5);
}

TEST(Lbfgs, EveryHistoryReachesTheMinimum) {
  Context context(ContextOptions{.device = "cpu"});
  for (const int history : {1, 2, 3, 4, 7, 28, 100}) {
    SCOPED_TRACE(history);
    Instance valley = test::rosenbrock();
    Options options;
    options.method = Method::lbfgs;
    options.lbfgs_history = history;
    options.function_tolerance = 0;
    options.max_iterations = 200;
    EXPECT_LT(minimize(valley.problem, context, options).final_cost, 1e-18);
  }
  Instance valley = test::rosenbrock();
  Options options;
  options.method = Method::lbfgs;
  options.lbfgs_history = LbfgsLayout::kMostHistory + 1;
  EXPECT_THROW(minimize(valley.problem, context, options), InputError);
}

TEST(Lbfgs, AnIterationIsOneGraphAndOneRead) {
  Context context(ContextOptions{.device = "cpu"});
  for (const Precision precision : {Precision::f64, Precision::mixed})
    for (const int history : {3, 10}) {
      Instance net = test::net(9);
      Options options;
      options.method = Method::lbfgs;
      options.precision = precision;
      options.lbfgs_history = history;
      options.max_iterations = 20;
      LbfgsLayout layout;
      layout.history = history;
      layout.real = precision == Precision::f64 ? Storage::f64 : Storage::f32;
      int64_t launches = 0, bytes = 0;
      int single = 0;
      bool searched = false;
      options.callback = [&](const Iteration& row) {
        const DeviceCounters now = context.device().counters();
        if (row.iteration > 2) {  // the first records
          EXPECT_EQ(now.bytes_from_device - bytes, row.linear_iterations * layout.numbers() * 8);
          if (row.linear_iterations == 1) {
            // The step before becomes the point, with its products where it was not the first trial; the
            // graph.
            EXPECT_EQ(now.launches - launches, searched ? 4 : 2) << row.iteration;
            ++single;
          }
        }
        searched = row.linear_iterations > 1;
        launches = now.launches, bytes = now.bytes_from_device;
        return true;
      };
      minimize(net.problem, context, options);
      EXPECT_GT(single, 5);
    }
}

TEST(Lbfgs, TheInterpreterTakesTheSameSteps) {
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::mixed}) {
    std::vector<double> costs[2];
    for (int k = 0; k < 2; ++k) {
      Context context(ContextOptions{.device = k ? "interp" : "cpu"});
      Instance net = test::net(5);
      Options options;
      options.method = Method::lbfgs;
      options.precision = precision;
      options.max_iterations = 15;
      for (const Iteration& row : minimize(net.problem, context, options).trace) costs[k].push_back(row.cost);
    }
    EXPECT_GT(costs[0].size(), 5u);
    EXPECT_EQ(costs[0], costs[1]) << name(precision);
  }
}

}  // namespace
}  // namespace lockstep::solve
