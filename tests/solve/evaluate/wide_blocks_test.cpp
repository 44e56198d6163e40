// Blocks of many numbers, whose kernels do not grow with the square of the width.
#include <gtest/gtest.h>

#include <cmath>

#include "problems.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/reference.hpp"

namespace lockstep::solve::test {
namespace {

/// exp(data . x) - datum, which uses every number of its block, and a pull of each number to 0, whose
/// Jacobian has no stored number. Block 0 has many instances, block 1 is fixed, block 2 has few.
Problem wide_problem(int width, const RobustLoss& loss = {}) {
  Problem problem;
  const auto set =
      problem.add_blocks("wide", euclidean(width), random_numbers(size_t(width) * 3, 7, -0.3, 0.3));
  std::vector<int32_t> blocks(90, 0);
  blocks.insert(blocks.end(), {1, 2, 2, 2, 1, 2});
  problem.add_terms({"wide",
                     {width},
                     width + 1,
                     [width](const TermArguments& a) {
                       Value s = a.x(0, 0) * a.data(0);
                       for (int k = 1; k < width; ++k) s = s + a.x(0, k) * a.data(k);
                       return std::vector<Value>{exp(s) - a.data(width), 0.5 * s};
                     },
                     loss},
                    {set}, blocks, random_numbers(blocks.size() * size_t(width + 1), 11, -0.5, 0.5));
  problem.add_terms({"pull",
                     {width},
                     0,
                     [width](const TermArguments& a) {
                       std::vector<Value> residuals;
                       for (int k = 0; k < width; ++k) residuals.push_back(0.25 * a.x(0, k));
                       return residuals;
                     }},
                    {set}, std::vector<int32_t>{0, 2}, {});
  problem.fix(set, 1);
  return problem;
}

class WideBlocks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Widths, WideBlocks, ::testing::Values(12, 13, 20, 60));

TEST_P(WideBlocks, AgreeWithComplexSteps) {
  for (const Precision precision : {Precision::f64, Precision::mixed, Precision::f32}) {
    SCOPED_TRACE(name(precision));
    const Problem problem = wide_problem(GetParam(), {RobustLoss::Kind::cauchy, 0.8});
    const std::vector<double>& x = problem.state().values;
    const Device device = Device::open("cpu");
    Evaluator evaluator(problem, device, precision);
    const int64_t n = evaluator.tangent_size();
    std::vector<double> p = random_numbers(size_t(n), 17);
    std::fill_n(p.begin() + GetParam(), GetParam(), 0.0);  // the fixed block
    const reference::Linearized expected = reference::linearize(problem, x, p);
    const double tolerance = precision == Precision::f64 ? 1e-12 : 2e-5;
    EXPECT_NEAR(evaluator.linearize(), expected.cost, tolerance * expected.cost);
    expect_near(download_numbers(device, evaluator.gradient()), expected.gradient, tolerance, "gradient");
    expect_near(download_numbers(device, evaluator.diagonal()), expected.diagonal, tolerance, "diagonal");
    const Buffer vector = upload_numbers(device, evaluator.real(), p, {n}),
                 product = device.allocate(evaluator.real(), {n});
    evaluator.multiply(vector, product);
    expect_near(download_numbers(device, product), expected.product, tolerance, "product");
    const std::vector<double> moved = reference::plus<double>(problem, x, p);
    EXPECT_NEAR(evaluator.try_step(vector) / reference::cost<double>(problem, moved), 1, tolerance);
    evaluator.accept();
    expect_near(evaluator.state(), moved, tolerance, "state");
  }
}

TEST_P(WideBlocks, HaveTheSameBitsOnTheInterpreter) {
  const Problem problem = wide_problem(GetParam());
  const auto run = [&](const char* name) {
    const Device device = Device::open(name);
    Evaluator evaluator(problem, device, Precision::f64);
    std::vector<double> all{evaluator.linearize()};
    const Buffer p = upload_numbers(device, Storage::f64, random_numbers(size_t(evaluator.tangent_size()), 4),
                                    {evaluator.tangent_size()});
    for (const Buffer& b : {evaluator.gradient(), evaluator.diagonal()})
      for (const double v : download_numbers(device, b)) all.push_back(v);
    all.push_back(evaluator.try_step(p));
    return all;
  };
  EXPECT_EQ(run("cpu"), run("interp"));
}

TEST_P(WideBlocks, AreMinimisedByEveryLinearSolver) {
  const int width = GetParam();
  const std::vector<double> truth = random_numbers(size_t(width), 5);
  std::vector<double> data = random_numbers(size_t(3 * width) * size_t(width), 6);
  std::vector<double> rows;
  for (int i = 0; i < 3 * width; ++i) {
    double s = 0;
    for (int k = 0; k < width; ++k) {
      rows.push_back(data[size_t(i * width + k)] / std::sqrt(width));
      s += rows.back() * truth[size_t(k)];
    }
    rows.push_back(std::exp(s));
  }
  for (const Linear linear : {Linear::automatic, Linear::dense_cholesky, Linear::cholesky, Linear::pcg}) {
    SCOPED_TRACE(name(linear));
    Problem problem;
    const auto set = problem.add_blocks("wide", euclidean(width), std::vector<double>(size_t(width), 0.0));
    problem.add_terms({"wide",
                       {width},
                       width + 1,
                       [width](const TermArguments& a) {
                         Value s = a.x(0, 0) * a.data(0);
                         for (int k = 1; k < width; ++k) s = s + a.x(0, k) * a.data(k);
                         return std::vector<Value>{exp(s) - a.data(width)};
                       }},
                      {set}, std::vector<int32_t>(size_t(3 * width), 0), rows);
    ContextOptions on_cpu;
    on_cpu.device = "cpu";
    Context context(on_cpu);
    Options options;
    options.linear = linear;
    options.function_tolerance = 1e-15, options.gradient_tolerance = 1e-12;
    const Summary summary = minimize(problem, context, options);
    EXPECT_LT(summary.final_cost, 1e-16) << name(summary.termination);
    const std::span<const double> found = problem.values(set);
    expect_near({found.begin(), found.end()}, truth, 1e-7, "minimiser");
  }
}

// A polynomial of degree 13 in monomials over [0, 1]: J has condition 10^9 after scaling, so J^T J has no digit left.
// Normal equations serve large Jacobians of good condition only.
TEST(WideBlocks, OfPoorConditionGoByQr) {
  constexpr int kWidth = 14, kRows = 6000;
  std::vector<double> truth, rows;
  for (int k = 0; k < kWidth; ++k) truth.push_back(k % 2 ? -1.5 : 1);
  for (int i = 0; i < kRows; ++i) {
    double power = 1, sum = 0;
    for (int k = 0; k < kWidth; ++k, power *= double(i) / kRows)
      rows.push_back(power), sum += truth[size_t(k)] * power;
    rows.push_back(sum);
  }
  Problem problem;
  const auto set = problem.add_blocks("coefficients", euclidean(kWidth), std::vector<double>(kWidth, 0.0));
  problem.add_terms({"polynomial",
                     {kWidth},
                     kWidth + 1,
                     [](const TermArguments& a) {
                       Value s = a.x(0, 0) * a.data(0);
                       for (int k = 1; k < kWidth; ++k) s = s + a.x(0, k) * a.data(k);
                       return std::vector<Value>{s - a.data(kWidth)};
                     }},
                    {set}, std::vector<int32_t>(kRows, 0), rows);
  Context context(ContextOptions{.device = "cpu"});
  Options options;
  options.linear = Linear::dense_qr, options.method = Method::gn;
  const Summary summary = minimize(problem, context, options);
  EXPECT_LT(summary.final_cost, 1e-20) << name(summary.termination);
  const std::span<const double> found = problem.values(set);
  expect_near({found.begin(), found.end()}, truth, 1e-4, "coefficients");
}

TEST(WideEnergies, HaveADiagonalOfTheirHessian) {
  constexpr int kWidth = 20;
  Problem problem;
  const std::vector<double> start = random_numbers(2 * kWidth, 3, 0.5, 1);
  const auto set = problem.add_blocks("wide", euclidean(kWidth), start);
  problem.add_terms({"bowl",
                     {kWidth},
                     0,
                     [](const TermArguments& a) {
                       Value s = square(a.x(0, 0));
                       for (int k = 1; k < kWidth; ++k) s = s + double(k) * square(a.x(0, k));
                       return std::vector<Value>{s + 0.5 * square(a.x(0, 0) + a.x(0, 1))};
                     },
                     {},
                     true},
                    {set}, std::vector<int32_t>{0, 1}, {});
  const Device device = Device::open("cpu");
  Evaluator evaluator(problem, device, Precision::f64);
  evaluator.linearize();
  std::vector<double> expected, product, p = random_numbers(2 * kWidth, 9);
  for (int b = 0; b < 2; ++b)
    for (int k = 0; k < kWidth; ++k) {
      expected.push_back(2 * std::max(k, 1) + (k < 2 ? 1 : 0));
      const size_t at = size_t(b * kWidth + k);
      product.push_back(expected.back() * p[at] + (k == 0 ? p[at + 1] : k == 1 ? p[at - 1] : 0));
    }
  expect_near(download_numbers(device, evaluator.diagonal()), expected, 1e-13, "diagonal");
  const Buffer vector = upload_numbers(device, Storage::f64, p, {2 * kWidth}),
               result = device.allocate(Storage::f64, {2 * kWidth});
  evaluator.multiply(vector, result);
  expect_near(download_numbers(device, result), product, 1e-13, "product");
}

}  // namespace
}  // namespace lockstep::solve::test
