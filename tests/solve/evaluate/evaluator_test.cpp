// The kernels of a problem against complex steps and plain sums, and one device against another.
#include "solve/evaluate/evaluator.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "problems.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/reference.hpp"

namespace lockstep::solve::test {
namespace {

/// J of all batches as a dense matrix (rows, tangent), fixed columns left out as zeros.
std::vector<std::vector<double>> dense_rows(const std::vector<HostBatch>& batches, int64_t tangent,
                                            bool energies) {
  std::vector<std::vector<double>> rows;
  for (const HostBatch& b : batches) {
    if (b.energy != energies) continue;
    int columns = 0;
    for (const int w : b.widths) columns += w;
    for (int64_t i = 0; i < b.instances; ++i)
      for (int r = 0; r < b.rows; ++r) {
        std::vector<double> row(static_cast<size_t>(tangent), 0.0);
        int column = 0;
        for (size_t s = 0; s < b.widths.size(); ++s)
          for (int c = 0; c < b.widths[s]; ++c, ++column) {
            const int64_t first = b.columns[size_t(i) * b.widths.size() + s];
            if (first >= 0) row[size_t(first + c)] += b.jacobian[size_t((i * b.rows + r) * columns + column)];
          }
        rows.push_back(std::move(row));
      }
  }
  return rows;
}

/// H of all energies, summed into a dense matrix.
std::vector<double> dense_hessian(const std::vector<HostBatch>& batches, int64_t tangent) {
  std::vector<double> h(size_t(tangent * tangent), 0.0);
  for (const HostBatch& b : batches) {
    if (!b.energy) continue;
    for (int64_t i = 0; i < b.instances; ++i) {
      std::vector<int64_t> at;
      for (size_t s = 0; s < b.widths.size(); ++s)
        for (int c = 0; c < b.widths[s]; ++c) {
          const int64_t first = b.columns[size_t(i) * b.widths.size() + s];
          at.push_back(first < 0 ? -1 : first + c);
        }
      for (size_t r = 0; r < at.size(); ++r)
        for (size_t c = 0; c < at.size(); ++c)
          if (at[r] >= 0 && at[c] >= 0)
            h[size_t(at[r] * tangent + at[c])] += b.jacobian[(size_t(i) * at.size() + r) * at.size() + c];
    }
  }
  return h;
}

TEST(Evaluator, CostAndGradientAgreeWithComplexSteps) {
  const Problem problem = mixed_problem(61, 3);
  const Device device = Device::open("cpu");
  const std::vector<double>& x = problem.state().values;
  const double cost = reference::cost<double>(problem, x);
  const std::vector<double> gradient = reference::gradient(problem, x);
  for (const Precision precision : {Precision::f64, Precision::mixed, Precision::f32}) {
    Evaluator evaluator(problem, device, precision);
    const bool narrow = precision == Precision::f32;
    EXPECT_NEAR(evaluator.cost(), cost, cost * (narrow ? 1e-5 : 1e-13));
    EXPECT_NEAR(evaluator.value_and_gradient(), cost, cost * (narrow ? 1e-5 : 1e-13));
    const double tolerance = narrow ? 1e-4 : precision == Precision::mixed ? 1e-6 : 1e-12;
    expect_near(download_numbers(device, evaluator.gradient()), gradient, tolerance, "gradient");
    EXPECT_NEAR(evaluator.linearize(), cost, cost * (narrow ? 1e-5 : 1e-13));
    expect_near(download_numbers(device, evaluator.gradient()), gradient, tolerance, "gradient of linearize");
  }
}

TEST(Evaluator, JacobianIsTheDerivativeOfTheResiduals) {
  const Problem problem = mixed_problem(23, 5);
  const Device device = Device::open("cpu");
  Evaluator evaluator(problem, device, Precision::f64);
  evaluator.linearize();
  const std::vector<HostBatch> batches = evaluator.host_batches();
  const std::vector<double>& x = problem.state().values;
  using C = std::complex<double>;
  const auto columns = reference::derivatives(
      problem, x, [&](std::span<const C> at) { return reference::residuals<C>(problem, at); });
  const std::vector<double> residuals = reference::residuals<double>(problem, x);
  const auto rows = dense_rows(batches, evaluator.tangent_size(), false);
  std::vector<double> corrected;
  for (const HostBatch& b : batches)
    if (!b.energy) corrected.insert(corrected.end(), b.residuals.begin(), b.residuals.end());
  size_t row = 0;
  reference::each_instance(problem, [&](const reference::Part& part) {
    if (part.expression->energy) return;
    const int count = part.expression->rows;
    const size_t first = part.first;
    double s = 0;
    for (int k = 0; k < count; ++k) s += residuals[first + size_t(k)] * residuals[first + size_t(k)];
    const double slope = part.rho(C(s, 1e-30)).imag() / 1e-30;
    for (int k = 0; k < count; ++k, ++row) {
      ASSERT_NEAR(corrected[row], std::sqrt(slope) * residuals[first + size_t(k)], 1e-13);
      for (size_t c = 0; c < columns.size(); ++c)
        ASSERT_NEAR(rows[row][c], std::sqrt(slope) * columns[c][first + size_t(k)], 1e-12) << row << " " << c;
    }
  });
  EXPECT_EQ(row, rows.size());
}

TEST(Evaluator, ProductAndDiagonalAreThoseOfTheJacobian) {
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::mixed}) {
    const Problem problem = mixed_problem(47, 9);
    const Device device = Device::open("cpu");
    Evaluator evaluator(problem, device, precision);
    evaluator.linearize();
    const auto batches = evaluator.host_batches();
    const int64_t n = evaluator.tangent_size();
    const auto rows = dense_rows(batches, n, false);
    std::vector<double> matrix = dense_hessian(batches, n);
    for (const auto& row : rows)
      for (int64_t a = 0; a < n; ++a)
        if (row[size_t(a)] != 0)
          for (int64_t b = 0; b < n; ++b) matrix[size_t(a * n + b)] += row[size_t(a)] * row[size_t(b)];
    std::vector<double> p = random_numbers(size_t(n), 17);
    const Problem::State& state = problem.state();
    for (const SetState& set : state.sets)  // tangent vectors are 0 at fixed blocks
      for (int64_t b = 0; b < set.count; ++b)
        if (state.fixed[size_t(set.first_block + b)])
          std::fill_n(p.begin() + set.first_tangent + b * set.tangent(), set.tangent(), 0.0);
    const Buffer vector = upload_numbers(device, evaluator.real(), p, {n}),
                 product = device.allocate(evaluator.real(), {n});
    evaluator.multiply(vector, product);
    std::vector<double> expected(size_t(n), 0.0), diagonal(size_t(n), 0.0);
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t b = 0; b < n; ++b) expected[size_t(a)] += matrix[size_t(a * n + b)] * p[size_t(b)];
      diagonal[size_t(a)] = matrix[size_t(a * n + a)];
    }
    const double tolerance = precision == Precision::f64 ? 1e-13 : 2e-6;
    expect_near(download_numbers(device, product), expected, tolerance, "product");
    expect_near(download_numbers(device, evaluator.diagonal()), diagonal, tolerance, "diagonal");
  }
}

TEST(Evaluator, EnergiesHaveTheirHessianMadeSemidefinite) {
  Problem problem;
  const auto set = problem.add_blocks("x", euclidean(2), std::vector<double>{0.3, -0.8, 0.9, 0.4});
  problem.add_terms(
      {"saddle",
       {2, 2},
       0,
       [](const TermArguments& a) {
         return std::vector<Value>{a.x(0, 0) * a.x(1, 1) + 2.0 * square(a.x(0, 1)) - square(a.x(1, 0))};
       },
       {},
       true},
      {set, set}, std::vector<int32_t>{0, 1}, {});
  // Eigenvalues of the Hessian: 1 and -1 (x0, y1), 4 (y0), -2 (x1).
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    Evaluator evaluator(problem, Device::open("cpu"), precision);
    EXPECT_NEAR(evaluator.linearize(), 0.3 * 0.4 + 2 * 0.64 - 0.81, 1e-6);
    const std::vector<double> h = dense_hessian(evaluator.host_batches(), 4);
    const std::vector<double> expected = {0.5, 0, 0, 0.5, 0, 4, 0, 0, 0, 0, 0, 0, 0.5, 0, 0, 0.5};
    expect_near(h, expected, precision == Precision::f64 ? 1e-14 : 1e-6, "projected Hessian");
  }
}

TEST(Evaluator, StepsFollowTheManifoldsAndLeaveFixedBlocks) {
  Problem problem = mixed_problem(31, 21);
  const Device device = Device::open("cpu");
  Evaluator evaluator(problem, device, Precision::f64);
  const std::vector<double> x = problem.state().values,
                            step = random_numbers(size_t(evaluator.tangent_size()), 2);
  const std::vector<double> moved = reference::plus<double>(problem, x, step);
  const double cost =
      evaluator.try_step(upload_numbers(device, Storage::f64, step, {evaluator.tangent_size()}));
  EXPECT_NEAR(cost, reference::cost<double>(problem, moved), 1e-10);
  expect_near(evaluator.state(), x, 0, "state before accept");
  evaluator.accept();
  expect_near(evaluator.state(), moved, 1e-14, "state after accept");
  EXPECT_NEAR(evaluator.cost(), cost, 1e-12);
  double squares = 0;
  for (const SetState& s : problem.state().sets)
    for (int64_t b = 0; b < s.count; ++b)
      for (int c = 0; c < s.ambient(); ++c)
        if (!problem.state().fixed[size_t(s.first_block + b)])
          squares += std::pow(moved[size_t(s.first_ambient + b * s.ambient() + c)], 2);
  EXPECT_NEAR(evaluator.state_norm(), std::sqrt(squares), 1e-12);
}

TEST(Evaluator, InterpreterGivesTheBitsOfTheCpu) {
  const Problem problem = mixed_problem(37, 13);
  const auto run = [&](const char* name, Precision precision) {
    const Device device = Device::open(name);
    Evaluator evaluator(problem, device, precision);
    std::vector<double> all{evaluator.linearize()};
    const int64_t n = evaluator.tangent_size();
    const Buffer p = upload_numbers(device, evaluator.real(), random_numbers(size_t(n), 4), {n}),
                 q = device.allocate(evaluator.real(), {n});
    for (const Buffer& b : {evaluator.gradient(), evaluator.diagonal()})
      for (const double v : download_numbers(device, b)) all.push_back(v);
    evaluator.multiply(p, q);
    for (const double v : download_numbers(device, q)) all.push_back(v);
    all.push_back(evaluator.try_step(p));
    return all;
  };
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::mixed})
    EXPECT_EQ(run("cpu", precision), run("interp", precision));
}

TEST(Evaluator, TheSameTopologiesCompileNothingAgain) {
  const Device device = Device::open("cpu");
  const auto run = [&](uint64_t seed) {
    const Problem problem = mixed_problem(29, seed);
    Evaluator evaluator(problem, device, Precision::f64);
    evaluator.linearize();
  };
  run(1);
  const DeviceCounters before = device.counters();
  run(2);
  const DeviceCounters after = device.counters();
  EXPECT_EQ(after.kernels_compiled + after.cache_hits, before.kernels_compiled + before.cache_hits);
}

}  // namespace
}  // namespace lockstep::solve::test
