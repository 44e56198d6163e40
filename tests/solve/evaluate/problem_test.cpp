// Building problems: sharing of topologies, constants of instances, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "allocations.hpp"
#include "autodiff/topology.hpp"
#include "core/refusal.hpp"
#include "problems.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/reference.hpp"

namespace lockstep::solve::test {
namespace {

using lockstep::test::refusal;

using autodiff::Tape;

/// Every device of this machine that gives f64 results.
std::vector<Device> exact_devices() {
  std::vector<Device> devices{Device::open("cpu"), Device::open("interp")};
  for (const DeviceStatus& status : Device::list())
    if (status.available && status.info.kind == DeviceKind::cuda)
      devices.push_back(Device::open(status.info.name));
  return devices;
}

/// Costs of the instances, in the order of the batches.
std::vector<double> instance_costs(const Problem& problem, const Device& device) {
  Evaluator evaluator(problem, device, Precision::f64);
  evaluator.cost();
  return download_numbers(device, evaluator.internals().costs);
}

void expect_gradient(const Problem& problem) {
  const std::vector<double> exact = reference::gradient(problem, problem.state().values);
  for (const Device& device : exact_devices()) {
    Evaluator evaluator(problem, device, Precision::f64);
    evaluator.value_and_gradient();
    const std::vector<double> got = download_numbers(device, evaluator.gradient());
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_NEAR(got[k], exact[k], 1e-12 * std::max(1.0, std::abs(exact[k])))
          << device.info().name << " " << k;
  }
}

TEST(ExpressionKey, ExpressionsThatCollidedElsewhereStayApart) {
  Problem problem;
  const auto x = problem.add_blocks("x", euclidean(1), std::vector<double>{0.7, 1.9, 0.4, 2.5});
  std::vector<Value> v;
  for (int k = 0; k < 4; ++k) v.push_back(problem.variable(x, k));
  const std::vector<Value> residuals = {abs(cos(v[0])), square(log(v[1])), abs(sin(v[2])), square(abs(v[3]))};
  problem.add_residuals(residuals);
  EXPECT_EQ(problem.batch_count(), 4);
  const std::vector<double> costs = instance_costs(problem, Device::open("cpu"));
  EXPECT_NEAR(costs[0], 0.5 * std::pow(std::cos(0.7), 2), 1e-15);
  EXPECT_NEAR(costs[1], 0.5 * std::pow(std::log(1.9), 4), 1e-15);
  EXPECT_NEAR(costs[2], 0.5 * std::pow(std::sin(0.4), 2), 1e-15);
  EXPECT_NEAR(costs[3], 0.5 * std::pow(2.5, 4), 1e-13);
  expect_gradient(problem);
}

TEST(ExpressionKey, EveryInstanceKeepsItsOwnConstants) {
  Problem problem;
  const auto x = problem.add_blocks("x", euclidean(2), random_numbers(20, 4, 0.5, 1.5));
  std::vector<Value> residuals;
  for (int k = 0; k < 10; ++k)
    residuals.push_back(exp(problem.variable(x, k, 0) * (0.1 + 0.07 * k)) -
                        problem.variable(x, k, 1) * (3.3 + k) - 4.5);
  problem.add_residuals(residuals);
  EXPECT_EQ(problem.batch_count(), 1);
  const auto values = problem.values(x);
  const std::vector<double> costs = instance_costs(problem, Device::open("cpu"));
  for (int k = 0; k < 10; ++k) {
    const double r =
        std::exp(values[size_t(2 * k)] * (0.1 + 0.07 * k)) - values[size_t(2 * k + 1)] * (3.3 + k) - 4.5;
    EXPECT_NEAR(costs[size_t(k)], 0.5 * r * r, 1e-12);
  }
  expect_gradient(problem);
}

TEST(ExpressionKey, TermTypesOfOneTopologyShareABatch) {
  Problem problem;
  const auto x = problem.add_blocks("x", euclidean(3), random_numbers(30, 4));
  const auto make = [](double stiffness) {
    return TermType{"spring", {3, 3}, 1, [stiffness](const TermArguments& a) {
                      return std::vector{stiffness * (norm(a.vec3(0) - a.vec3(1)) - a.data(0))};
                    }};
  };
  problem.add_terms(make(3), {x, x}, std::vector<int32_t>{0, 1, 1, 2}, std::vector<double>{0.5, 0.6});
  problem.add_terms(make(7), {x, x}, std::vector<int32_t>{3, 4}, std::vector<double>{0.7});
  EXPECT_EQ(problem.batch_count(), 1);
  const auto v = problem.values(x);
  const std::vector<double> costs = instance_costs(problem, Device::open("cpu"));
  const auto expected = [&](int a, int b, double stiffness, double length) {
    const double d =
        std::hypot(v[size_t(3 * a)] - v[size_t(3 * b)], v[size_t(3 * a + 1)] - v[size_t(3 * b + 1)],
                   v[size_t(3 * a + 2)] - v[size_t(3 * b + 2)]);
    return 0.5 * std::pow(stiffness * (d - length), 2);
  };
  EXPECT_NEAR(costs[0], expected(0, 1, 3, 0.5), 1e-13);
  EXPECT_NEAR(costs[1], expected(1, 2, 3, 0.6), 1e-13);
  EXPECT_NEAR(costs[2], expected(3, 4, 7, 0.7), 1e-13);
}

TEST(ExpressionKey, DoesNotDependOnTheOrderOfBlocks) {
  Problem problem;
  const auto x = problem.add_blocks("x", euclidean(3), random_numbers(60, 4));
  std::vector<Value> residuals;
  for (const auto& tuple : {std::array{0, 1, 2}, {2, 1, 0}, {19, 3, 11}, {5, 19, 1}, {7, 2, 9}}) {
    const auto point = [&](int k) {
      autodiff::Vec3 v;
      for (int c = 0; c < 3; ++c) v[c] = problem.variable(x, tuple[size_t(k)], c);
      return v;
    };
    const auto a = point(0), b = point(1), c = point(2);
    residuals.push_back(norm(a - b) * dot(b, c) + norm(cross(a - b, c - b)) * a[1]);
  }
  problem.add_residuals(residuals);
  EXPECT_EQ(problem.batch_count(), 1);
  expect_gradient(problem);
}

TEST(ExpressionKey, DoesNotDependOnValuesOrOnWhatIsFixed) {
  const auto count = [](double first, bool fixed) {
    Problem problem;
    const auto x = problem.add_blocks("x", euclidean(1), std::vector<double>{first, 2, -3, 4});
    std::vector<Value> residuals;
    for (int k = 0; k < 4; ++k) {
      const Value v = problem.variable(x, k);
      residuals.push_back(select(v > 0, v * v, sin(v)) + select(v > 1.5, v, 0.25 * v));
    }
    problem.add_residuals(residuals);
    if (fixed) problem.fix(x, 2);
    expect_gradient(problem);
    const Device device = Device::open("cpu");
    Evaluator evaluator(problem, device, Precision::f64);
    evaluator.value_and_gradient();
    return std::pair(problem.batch_count(), evaluator.internals().batches[0].term->key());
  };
  EXPECT_EQ(count(1, false).first, 1);
  EXPECT_EQ(count(1, false), count(-1, true));
}

TEST(ExpressionKey, SumsComparisonsSelectAndNormalizeHaveTheirDerivatives) {
  Problem problem;
  const auto x = problem.add_blocks("x", euclidean(3), random_numbers(30, 8, 0.3, 1));
  const TermType type{
      "many", {3, 3}, 2, [](const TermArguments& a) {
        const auto n = normalize(a.vec3(0)), m = safe_normalize(a.vec3(1));
        const Value total = autodiff::sum({a.x(0, 0), square(a.x(1, 1)), n[1] * m[2], a.data(0)});
        const Value mean = autodiff::mean(std::vector<Value>{n[0], m[1], a.x(1, 2)});
        return std::vector<Value>{total * mean, number(a.x(0, 0) < a.x(1, 0)) * a.x(0, 1) + max(n[2], m[0]),
                                  select(a.x(0, 2) >= a.data(1), sqrt(a.x(0, 2)), a.x(0, 2) * a.x(1, 2)),
                                  angle_between(a.vec3(0), a.vec3(1)),
                                  clamp(a.x(0, 0), 0.4, 0.8) + abs(n[0] - m[0])};
      }};
  problem.add_terms(type, {x, x}, random_tuples(9, 2, 10, 3), random_numbers(18, 9, 0.3, 1));
  expect_gradient(problem);
}

/// n residuals one by one, of five shapes; returns the bytes allocated until they are terms of the problem.
uint64_t add_loose_residuals(Problem& problem, int n) {
  const auto x = problem.add_blocks("x", euclidean(3), random_numbers(size_t(n) * 3, 12, 0.5, 1.5));
  const auto tuples = random_tuples(n, 2, n, 4);
  const uint64_t before = allocated_bytes();
  std::vector<Value> residuals;
  for (int k = 0; k < n; ++k) {
    autodiff::Vec3 a, b;
    for (int c = 0; c < 3; ++c) {
      a[c] = problem.variable(x, tuples[size_t(2 * k)], c);
      b[c] = problem.variable(x, tuples[size_t(2 * k + 1)], c);
    }
    switch (k % 5) {
      case 0: residuals.push_back(norm(a - b) - 0.1 * (k + 1)); break;
      case 1: residuals.push_back(dot(a, b) - 0.3 - k); break;
      case 2: residuals.push_back(cross(a, b)[2] * 0.7); break;
      case 3: residuals.push_back(exp(-(a[0] * b[1])) + 1.7); break;
      default: residuals.push_back(a[0] * a[1] - sin(b[2] * 0.3)); break;
    }
  }
  problem.add_residuals(residuals);
  return allocated_bytes() - before;
}

TEST(ExpressionKey, LooseResidualsAreGroupedHoweverMany) {
  Problem problem;
  const int n = 20000;
  add_loose_residuals(problem, n);
  EXPECT_EQ(problem.batch_count(), 5);
  EXPECT_EQ(problem.residual_count(), n);
  Evaluator evaluator(problem, Device::open("cpu"), Precision::f64);
  EXPECT_NEAR(evaluator.cost() / reference::cost<double>(problem, problem.state().values), 1, 1e-13);
}

// The work of a residual does not grow with the number of those before it: neither its memory, nor the nodes of
// the graph that are looked at, which are those that the residual reaches.
TEST(ExpressionKey, LooseResidualsTakeTheSameWorkHoweverMany) {
  double first = 0;
  for (const int n : {5'000, 100'000}) {
    Problem problem;
    const uint64_t visited = autodiff::topology_visits();
    const double bytes = double(add_loose_residuals(problem, n)) / n;
    EXPECT_EQ(problem.batch_count(), 5);
    EXPECT_LT(double(autodiff::topology_visits() - visited) / n, 200) << n;
    EXPECT_LT(bytes, 5'000) << n;
    if (first == 0) first = bytes;
    EXPECT_LT(bytes, 1.5 * first) << n;
    RecordProperty("bytes_of_" + std::to_string(n), std::to_string(bytes));
  }
}

TEST(Manifold, PlusAtZeroIsTheBlockAndTheSetStaysItself) {
  struct Row {
    Manifold manifold;
    std::vector<double> x;
    size_t first, size;  // numbers whose norm is 1
  };
  const double h = std::sqrt(0.5);
  for (const Row& row : {Row{so3(), {h, 0, -h, 0}, 0, 4}, Row{se3(), {1, 2, 3, 0.5, 0.5, -0.5, 0.5}, 3, 4},
                         Row{sphere2(), {0.6, 0, -0.8}, 0, 3},
                         Row{product(sphere2(), euclidean(2)), {0, 0.8, 0.6, 3, 4}, 0, 3}}) {
    const auto traced = trace_manifold(row.manifold, "test");
    const auto plus = [&](double scale) {
      std::vector<double> at = row.x;
      for (const double d : random_numbers(size_t(row.manifold.tangent), 3)) at.push_back(scale * d);
      return autodiff::evaluate<double>(traced->plus, at);
    };
    EXPECT_EQ(plus(0), row.x) << row.manifold.name;
    for (const double scale : {1e-5, 1.0, 3.0}) {
      const std::vector<double> moved = plus(scale);
      double squares = 0, distance = 0;
      for (size_t k = 0; k < row.size; ++k) squares += moved[row.first + k] * moved[row.first + k];
      for (size_t k = 0; k < moved.size(); ++k) distance = std::max(distance, std::abs(moved[k] - row.x[k]));
      EXPECT_NEAR(squares, 1, 1e-14) << row.manifold.name << " " << scale;
      EXPECT_GT(distance, 0.1 * std::min(scale, 1.0)) << row.manifold.name << " " << scale;
    }
  }
}

// Half and quarter turns about the axes, by hand: quaternions of half the angle; a pose moves in its own frame.
TEST(Manifold, PlusIsTheClosedFormAtAQuarterTurn) {
  const double h = std::sqrt(0.5), quarter = std::acos(0.0);
  const auto plus = [](const Manifold& manifold, std::vector<double> at, std::vector<double> step) {
    at.insert(at.end(), step.begin(), step.end());
    return autodiff::evaluate<double>(trace_manifold(manifold, "test")->plus, at);
  };
  const auto near = [](const std::vector<double>& got, const std::vector<double>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], expected[k], 1e-15) << k;
  };
  near(plus(so3(), {1, 0, 0, 0}, {0, 0, quarter}), {h, 0, 0, h});
  near(plus(so3(), {1, 0, 0, 0}, {2 * quarter, 0, 0}), {0, 1, 0, 0});
  // From a quarter turn about z, another about x: z first, then the own x.
  near(plus(so3(), {h, 0, 0, h}, {quarter, 0, 0}), {0.5, 0.5, 0.5, 0.5});
  near(plus(se3(), {1, 2, 3, 1, 0, 0, 0}, {0, 0, 0, 0, quarter, 0}), {1, 2, 3, h, 0, h, 0});
  near(plus(se3(), {1, 2, 3, h, 0, 0, h}, {4, 0, 0, 0, 0, 0}), {1, 6, 3, h, 0, 0, h});
}

TEST(Manifold, BlocksWhoseUnitVectorsHaveAnotherLengthAreRefused) {
  const auto refusal = [](const Manifold& manifold, const std::vector<double>& values) -> std::string {
    Problem problem;
    try {
      problem.add_blocks("turns", manifold, values);
    } catch (const InputError& e) { return e.what(); }
    return "nothing was refused";
  };
  const std::string text = refusal(so3(), {1, 0, 0, 0, 2, 0, 0, 0});
  for (const char* part : {"turns", "block 1", "so3", "length 2"})
    EXPECT_NE(text.find(part), std::string::npos) << part << ": " << text;
  EXPECT_NE(refusal(se3(), {1, 2, 3, 0, 0, 0, 0}).find("block 0"), std::string::npos);
  EXPECT_NE(refusal(sphere2(), {0, 1.001, 0}).find("sphere2"), std::string::npos);
  EXPECT_NE(refusal(subset(so3(), {1}), {1, 1, 0, 0}).find("block 0"), std::string::npos);
  EXPECT_NE(refusal(product(euclidean(2), so3()), {1, 0, 1, 1, 0, 0}).find("components 2 to 5"),
            std::string::npos);
  EXPECT_EQ(refusal(so3(), {1 + 5e-6, 0, 0, 0}), "nothing was refused");

  Problem problem;
  const auto set = problem.add_blocks("turns", so3(), std::vector<double>{1, 0, 0, 0});
  problem.add_terms({"turn", {4}, 0, [](const TermArguments& a) { return std::vector{a.x(0, 1)}; }}, {set},
                    std::vector<int32_t>{0}, {});
  problem.values(set)[0] = 3;
  EXPECT_THROW(Evaluator(problem, Device::open("cpu"), Precision::f64), InputError);
}

TEST(Manifold, AnglesStayInOneTurnAndSubsetsHoldCoordinates) {
  const auto angle = trace_manifold(so2(), "test");
  EXPECT_NEAR(autodiff::evaluate<double>(angle->plus, std::vector<double>{3.0, 1.0})[0], 4 - 2 * M_PI, 1e-15);
  EXPECT_NEAR(autodiff::evaluate<double>(angle->plus, std::vector<double>{-3.0, -1.0})[0], 2 * M_PI - 4,
              1e-15);
  const auto held = trace_manifold(subset(euclidean(3), {1}), "test");
  EXPECT_EQ(autodiff::evaluate<double>(held->plus, std::vector<double>{1, 2, 3, 10, 20}),
            (std::vector<double>{11, 2, 23}));
  EXPECT_THROW(subset(so3(), {3}), InputError);
  EXPECT_THROW(subset(so3(), {0, 0}), InputError);
  EXPECT_THROW(subset(so3(), {0, 1, 2}), InputError);
  EXPECT_THROW(euclidean(0), InputError);
}

TEST(RobustLoss, ValuesAndSlopes) {
  struct Row {
    const char* text;
    double s, value, slope;
  };
  for (const Row& r :
       {Row{"huber:2", 3, 3, 1}, Row{"huber:2", 16, 12, 0.5}, Row{"cauchy:2", 4, 4 * std::log(2.0), 0.5},
        Row{"tukey:2", 2, 4.0 / 3 * (1 - 0.125), 0.25}, Row{"tukey:2", 5, 4.0 / 3, 0},
        Row{"geman_mcclure:2", 4, 2, 0.25}, Row{"arctan:2", 2, 2 * std::atan(1.0), 0.5},
        Row{"none", 7, 7, 1}}) {
    const RobustLoss loss = parse_robust_loss(r.text);
    EXPECT_NEAR(reference::loss<double>(loss.kind, r.s, loss.scale), r.value, 1e-15) << r.text;
    using C = std::complex<double>;
    EXPECT_NEAR(reference::loss<C>(loss.kind, C(r.s, 1e-30), loss.scale).imag() / 1e-30, r.slope, 1e-15)
        << r.text;
    EXPECT_NEAR(reference::loss<double>(loss.kind, 0, loss.scale), 0, 0) << r.text;
  }
  for (const std::string kind : {"huber", "cauchy", "tukey", "geman_mcclure", "arctan", "soft_l1"}) {
    const std::string text = refusal([&] { parse_robust_loss(kind); });
    EXPECT_NE(text.find("'" + kind + "' without a scale"), std::string::npos) << text;
    EXPECT_NE(text.find(kind + ":1.5"), std::string::npos) << text;
  }
  for (const char* bad : {"", "hubert", "huber:", "huber:0", "huber:-1", "huber:nan", "huber:1x", "none:1"})
    EXPECT_THROW(parse_robust_loss(bad), InputError) << bad;
}

// Handles belong to the problem that gave them, also after it was moved.
TEST(Problem, HandlesOfAnotherProblemAreRefused) {
  Problem p, q;
  const TermType spring = spring_type();
  const std::vector<double> one{1};
  const std::vector<int32_t> edge{0, 1};
  const BlockSet ours = p.add_blocks("ours", euclidean(3), random_numbers(6, 1));
  const BlockSet theirs = q.add_blocks("theirs", euclidean(3), random_numbers(6, 2));
  const TermSet terms = p.add_terms(spring, {ours, ours}, edge, one);
  q.add_terms(spring, {theirs, theirs}, edge, one);
  const std::string blocks = "block set 0 of another problem", term = "term set 0 of another problem";
  EXPECT_NE(refusal([&] { q.remove(terms); }).find(term + " [solve remove]"), std::string::npos);
  EXPECT_NE(refusal([&] { q.enable(terms, false); }).find(term), std::string::npos);
  EXPECT_NE(refusal([&] { q.weigh(terms, 2); }).find(term), std::string::npos);
  EXPECT_NE(refusal([&] { q.set_data(terms, one); }).find(term), std::string::npos);
  EXPECT_NE(refusal([&] { q.instance_count(terms); }).find(term), std::string::npos);
  EXPECT_NE(
      refusal([&] { q.add_terms(spring, {theirs, ours}, edge, one); }).find(blocks + " [solve term spring]"),
      std::string::npos);
  EXPECT_NE(refusal([&] { q.values(ours); }).find(blocks), std::string::npos);
  EXPECT_NE(refusal([&] { q.fix(ours, 0); }).find(blocks), std::string::npos);
  EXPECT_NE(refusal([&] { q.fix_coordinates(ours, 0, {}); }).find(blocks), std::string::npos);
  EXPECT_NE(refusal([&] { q.append_blocks(ours, random_numbers(3, 1)); }).find(blocks), std::string::npos);
  EXPECT_NE(refusal([&] { q.variable(ours, 0); }).find(blocks), std::string::npos);
  EXPECT_EQ(q.residual_count(), 1);
  EXPECT_EQ(p.residual_count(), 1);
  Problem moved = std::move(p);
  EXPECT_EQ(moved.values(ours).size(), 6u);
  moved.remove(terms);
  EXPECT_EQ(moved.residual_count(), 0);
}

TEST(Problem, ResidualsNameTheSlotComponentOrDatumThatIsMissing) {
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(3), random_numbers(6, 1));
  const auto error = [&](const std::function<Value(const TermArguments&)>& residual) {
    return refusal([&] {
      problem.add_terms({"mine", {3, 3}, 1, [&](const TermArguments& a) { return std::vector{residual(a)}; }},
                        {x, x}, std::vector<int32_t>{0, 1}, std::vector<double>{1});
    });
  };
  EXPECT_EQ(error([](const TermArguments& a) { return a.x(2, 0); }),
            "slot 2, which the instance does not have [solve residual of mine]: expected slots 0 to 1");
  EXPECT_EQ(error([](const TermArguments& a) { return a.x(1, 3); }),
            "component 3 of slot 1, which the instance does not have [solve residual of mine]: expected "
            "components 0 to 2");
  EXPECT_EQ(error([](const TermArguments& a) { return a.data(1); }),
            "datum 1, which the instance does not have [solve residual of mine]: expected data 0 to 0");
  EXPECT_EQ(error([](const TermArguments& a) { return a.vec3(0, 1)[0]; }),
            "component 3 of slot 0, which the instance does not have [solve residual of mine]: expected "
            "components 0 to 2");
  const auto without_data = refusal([&] {
    problem.add_terms({"bare", {3}, 0, [](const TermArguments& a) { return std::vector{a.data(0)}; }}, {x},
                      std::vector<int32_t>{0}, {});
  });
  EXPECT_NE(without_data.find("expected no data"), std::string::npos) << without_data;
}

TEST(Problem, ErrorsNameTheTermTheInstanceAndTheSlot) {
  Problem problem;
  const auto x = problem.add_blocks("points", euclidean(3), random_numbers(12, 1));
  const auto y = problem.add_blocks("angles", so2(), random_numbers(4, 1));
  const TermType spring = spring_type();
  const std::vector<double> one{1};
  const auto has = [](const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << text << " lacks " << part;
  };
  has(refusal([&] {
        problem.add_terms(spring, {x, x}, std::vector<int32_t>{0, 1, 2, 4}, std::vector<double>{1, 1});
      }),
      {"spring", "block 4 of points", "slot 1", "instance 1"});
  has(refusal([&] { problem.add_terms(spring, {x, y}, std::vector<int32_t>{0, 1}, one); }),
      {"spring", "angles", "slot 1"});
  has(refusal([&] { problem.add_terms(spring, {x}, std::vector<int32_t>{0, 1}, one); }),
      {"spring", "1 block sets"});
  has(refusal([&] { problem.add_terms(spring, {x, x}, std::vector<int32_t>{0, 1, 2}, one); }), {"3 indices"});
  has(refusal([&] { problem.add_terms(spring, {x, x}, std::vector<int32_t>{0, 1}, {}); }), {"0 data for 1"});
  has(refusal([&] {
        problem.add_terms(spring, {x, x}, std::vector<int32_t>{0, 1, 1, 2}, std::vector<double>{1, INFINITY});
      }),
      {"datum 0 of instance 1", "inf"});
  has(refusal([&] {
        problem.add_terms(
            {"none", {3}, 0, [](const TermArguments& a) { return std::vector{a.graph().constant(1)}; }}, {x},
            std::vector<int32_t>{0}, {});
      }),
      {"none", "depend on no block"});
  has(refusal([&] {
        problem.add_terms({"far", {3}, 0, [](const TermArguments& a) { return std::vector{a.x(0, 3)}; }}, {x},
                          std::vector<int32_t>{0}, {});
      }),
      {"far", "does not have"});
  has(refusal([&] { problem.add_terms(spring, {x, BlockSet{7}}, std::vector<int32_t>{0, 1}, one); }),
      {"block set 7"});
  has(refusal([&] { problem.add_blocks("bad", euclidean(2), std::vector<double>{1, 2, 3}); }),
      {"bad", "3 values"});
  has(refusal([&] { problem.add_blocks("bad", euclidean(2), std::vector<double>{1, 2, NAN, 4}); }),
      {"component 0 of block 1", "nan"});
  has(refusal([&] { problem.fix(x, 4); }), {"block 4 of points"});
  has(refusal([&] { problem.bound(y, 0, 0, 1, 2 + 2 * std::numbers::pi); }), {"angles", "an angle"});
  has(refusal([] {
        Problem turning;
        turning.bound(turning.add_blocks("turns", so3(), std::vector<double>{1, 0, 0, 0}), 0, 0, 0, 1);
      }),
      {"turns", "Euclidean"});
  has(refusal([&] { problem.bound(x, 0, 0, 2, 1); }), {"bounds 2 and 1"});
  has(refusal([&] { problem.variable(x, 0, 3); }), {"component 3 of points"});
  Tape other;
  has(refusal([&] { problem.add_residuals(std::vector<Value>{other.variable("z")}); }),
      {"residual 0", "graph"});
  has(refusal([&] { problem.add_residuals(std::vector<Value>{problem.graph().variable("z")}); }),
      {"residual 0", "leaf z"});
  has(refusal([&] { problem.add_residuals(std::vector<Value>{problem.graph().constant(2)}); }),
      {"residual 0", "no variable"});
  EXPECT_EQ(problem.batch_count(), 0);
  has(refusal([&] { Evaluator(problem, Device::open("cpu"), Precision::f64); }), {"without residuals"});
  has(refusal([] { Evaluator(Problem(), Device::open("cpu"), Precision::f64); }), {"without blocks"});
}

TEST(Problem, CountsItsParts) {
  Problem problem = mixed_problem(31, 1);
  EXPECT_EQ(problem.batch_count(), 6);
  EXPECT_EQ(problem.residual_count(), 31 * 3 + 31 + 14 * 6 + 31 * 2 + 5 * 2 + 31);
  EXPECT_EQ(problem.variable_count(), 30 * 3 + 8 * 6 + 5 * 2 + 4);
  EXPECT_EQ(problem.block_count(BlockSet{1}), 9);
  EXPECT_TRUE(problem.fixed(BlockSet{0}, 1));
  problem.fix(BlockSet{0}, 1, false);
  EXPECT_FALSE(problem.fixed(BlockSet{0}, 1));
}

}  // namespace
}  // namespace lockstep::solve::test
