// Conjugate gradients and the implicit Schur complement against a dense factorisation of the same system.
#include <gtest/gtest.h>

#include <cmath>

#include "problems.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/linear/linear_solver.hpp"

namespace lockstep::solve::test {
namespace {

/// Cameras (position and a scale, then `more` numbers that bend the image) that see points; every point in
/// `views` of them.
Problem views_problem(int cameras, int points, int views, uint64_t seed, int more = 0) {
  Problem problem;
  const auto eyes = problem.add_blocks("eyes", euclidean(4 + more),
                                       random_numbers(size_t(cameras) * size_t(4 + more), seed, 0.5, 1.5));
  const auto seen =
      problem.add_blocks("points", euclidean(3), random_numbers(size_t(points) * 3, seed + 1, 4, 6));
  std::vector<int32_t> pairs;
  for (int k = 0; k < points; ++k)
    for (int v = 0; v < views; ++v) pairs.insert(pairs.end(), {(k * 7 + v) % cameras, k});
  problem.add_terms({"view",
                     {4 + more, 3},
                     2,
                     [more](const TermArguments& a) {
                       const Value z = a.x(1, 2) + a.x(0, 2);
                       std::vector<Value> view{a.x(0, 3) * (a.x(1, 0) - a.x(0, 0)) / z - a.data(0),
                                               a.x(0, 3) * (a.x(1, 1) - a.x(0, 1)) / z - a.data(1)};
                       for (int k = 0; k < more; ++k)
                         view[size_t(k % 2)] += 0.1 * a.x(0, 4 + k) * sin((k + 1.0) * a.x(1, k % 3));
                       return view;
                     },
                     {RobustLoss::Kind::huber, 1}},
                    {eyes, seen}, pairs, random_numbers(pairs.size(), seed + 2));
  std::vector<int32_t> all;
  for (int k = 0; k < cameras; ++k) all.push_back(k);
  problem.add_terms({"prior",
                     {4 + more},
                     0,
                     [more](const TermArguments& a) {
                       std::vector<Value> from_1{0.1 * (a.x(0, 0) - 1), 0.2 * (a.x(0, 3) - 1)};
                       for (int k = 0; k < more; ++k) from_1.push_back(0.3 * a.x(0, 4 + k));
                       return from_1;
                     }},
                    {eyes}, all, {});
  problem.fix(seen, 2);
  problem.fix(eyes, 1);
  return problem;
}

/// The step by a dense Cholesky factorisation in f64; fixed and held coordinates stay 0.
std::vector<double> dense_step(Evaluator& evaluator, double lambda, const DampingRange& damping = {},
                               const std::vector<uint8_t>& held = {}) {
  const size_t n = size_t(evaluator.tangent_size());
  std::vector<double> a(n * n, 0.0), g(n, 0.0);
  for (const HostBatch& b : evaluator.host_batches())
    for (int64_t i = 0; i < b.instances; ++i) {
      std::vector<int64_t> at;
      for (size_t s = 0; s < b.widths.size(); ++s)
        for (int c = 0; c < b.widths[s]; ++c) {
          const int64_t first = b.columns[size_t(i) * b.widths.size() + s];
          at.push_back(first < 0 ? -1 : first + c);
        }
      for (int r = 0; r < b.rows; ++r)
        for (size_t c = 0; c < at.size(); ++c) {
          if (at[c] < 0) continue;
          const double* row = &b.jacobian[(size_t(i) * size_t(b.rows) + size_t(r)) * at.size()];
          g[size_t(at[c])] += row[c] * b.residuals[size_t(i) * size_t(b.rows) + size_t(r)];
          for (size_t d = 0; d < at.size(); ++d)
            if (at[d] >= 0) a[size_t(at[c]) * n + size_t(at[d])] += row[c] * row[d];
        }
    }
  for (size_t k = 0; k < n; ++k) {
    const double d = a[k * n + k];
    a[k * n + k] = d == 0 ? 1 : d + lambda * damping(d);
    if (held.empty() || !held[k]) continue;
    for (size_t c = 0; c < n; ++c) a[k * n + c] = a[c * n + k] = 0;
    a[k * n + k] = 1, g[k] = 0;
  }
  for (size_t c = 0; c < n; ++c) {
    for (size_t k = 0; k < c; ++k) a[c * n + c] -= a[c * n + k] * a[c * n + k];
    a[c * n + c] = std::sqrt(a[c * n + c]);
    for (size_t r = c + 1; r < n; ++r) {
      for (size_t k = 0; k < c; ++k) a[r * n + c] -= a[r * n + k] * a[c * n + k];
      a[r * n + c] /= a[c * n + c];
    }
  }
  std::vector<double> x(n);
  for (size_t r = 0; r < n; ++r) {
    x[r] = -g[r];
    for (size_t k = 0; k < r; ++k) x[r] -= a[r * n + k] * x[k];
    x[r] /= a[r * n + r];
  }
  for (size_t r = n; r-- > 0;) {
    for (size_t k = r + 1; k < n; ++k) x[r] -= a[k * n + r] * x[k];
    x[r] /= a[r * n + r];
  }
  return x;
}

using Make = std::unique_ptr<LinearSolver> (*)(int);
std::unique_ptr<LinearSolver> make_direct(int) { return make_device_cholesky(); }
constexpr Make kSolvers[] = {make_pcg_solver, make_schur_solver, make_direct};

double relative_error(const std::vector<double>& got, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    difference += (got[k] - expected[k]) * (got[k] - expected[k]);
    size += expected[k] * expected[k];
  }
  return std::sqrt(difference / size);
}

/// Extra numbers of a camera: 0 and 10, beyond which blocks are preconditioned number by number.
class Solvers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Cameras, Solvers, ::testing::Values(0, 10));

TEST_P(Solvers, AgreeWithADenseFactorisation) {
  const Problem problem = views_problem(11, 83, 4, 5, GetParam());
  const Device device = Device::open("cpu");
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::mixed}) {
    Evaluator evaluator(problem, device, precision);
    evaluator.linearize();
    const Buffer step = device.allocate(evaluator.real(), {evaluator.tangent_size()});
    for (const Make make : kSolvers) {
      const auto solver = make(2000);
      solver->prepare(evaluator);
      for (const double lambda : {1e-2, 1.0}) {
        const bool wide = precision == Precision::f64;
        const LinearResult result = solver->solve(evaluator, lambda, wide ? 1e-13 : 1e-6, step);
        EXPECT_TRUE(result.ok) << result.message;
        EXPECT_EQ(result.iterations == 1, make == make_direct);
        EXPECT_LT(relative_error(download_numbers(device, step), dense_step(evaluator, lambda)),
                  wide ? 1e-10 : 2e-3)
            << "lambda " << lambda;
      }
    }
  }
}

TEST(Linear, HeldCoordinatesTakeNoPartAndTheIdentityDamps) {
  const Problem problem = views_problem(11, 83, 4, 5);
  const Device device = Device::open("cpu");
  Evaluator evaluator(problem, device, Precision::f64);
  const Buffer step = device.allocate(evaluator.real(), {evaluator.tangent_size()});
  for (const DampingRange& damping : {DampingRange(), DampingRange{1, 1}}) {
    for (const Make make : kSolvers) {
      const auto solver = make(3000);
      solver->set_damping(damping);
      // Held coordinates change between linearisations, as they do at bounds.
      for (const size_t every : {3, 5, 1000}) {
        std::vector<uint8_t> held(size_t(evaluator.tangent_size()), 0);
        for (size_t k = 1; k < held.size(); k += every) held[k] = 1;
        evaluator.linearize();
        solver->hold(held);
        solver->prepare(evaluator);
        for (const double lambda : {1e-2, 1.0}) {
          const LinearResult result = solver->solve(evaluator, lambda, 1e-13, step);
          EXPECT_TRUE(result.ok) << result.message;
          const std::vector<double> got = download_numbers(device, step);
          EXPECT_LT(relative_error(got, dense_step(evaluator, lambda, damping, held)), 1e-10)
              << "lambda " << lambda << ", every " << every;
          for (size_t k = 0; k < held.size(); ++k)
            if (held[k]) { EXPECT_EQ(got[k], 0) << k; }
        }
      }
    }
  }
}

TEST(Linear, KernelsThatAreCompiledAheadAreThoseOfTheFirstStep) {
  const Problem problem = views_problem(11, 83, 4, 5);
  for (const Make make : kSolvers) {
    const Device device = Device::open("cpu");
    Evaluator evaluator(problem, device, Precision::f64, {0, kUseLinearize | kUseProduct | kUseDiagonal});
    const auto solver = make(100);
    solver->compile_ahead(evaluator);
    evaluator.linearize();
    evaluator.wait_for_kernels();
    const size_t ahead = device.kernels().size();
    EXPECT_GE(ahead, 15u);
    const Buffer step = device.allocate(evaluator.real(), {evaluator.tangent_size()});
    solver->prepare(evaluator);
    solver->solve(evaluator, 1e-2, 1e-3, step);
    const std::vector<KernelReport> all = device.kernels();
    for (size_t k = ahead; k < all.size(); ++k) ADD_FAILURE() << all[k].name;
  }
}

TEST(Linear, DeviceAndHostFactoriseTheSameMatrix) {
  // Poses, directions, angles, fixed blocks, losses and an energy.
  const Problem problem = mixed_problem(40, 3);
  const Device device = Device::open("cpu");
  Evaluator evaluator(problem, device, Precision::f64);
  evaluator.linearize();
  const auto step = [&](std::unique_ptr<LinearSolver> solver) {
    const Buffer out = device.allocate(evaluator.real(), {evaluator.tangent_size()});
    solver->prepare(evaluator);
    const LinearResult result = solver->solve(evaluator, 1e-3, 0, out);
    EXPECT_TRUE(result.ok) << result.message;
    return download_numbers(device, out);
  };
  EXPECT_LT(relative_error(step(make_device_cholesky()), step(make_host_solver(Linear::cholesky))), 1e-10);
}

TEST(Linear, DeviceCholeskySaysWhatIsNotPositiveDefinite) {
  Problem problem;  // two numbers of which only the sum is measured
  const auto x = problem.add_blocks("x", euclidean(2), std::vector<double>{1, 2});
  problem.add_terms(
      {"sum", {2}, 0, [](const TermArguments& a) { return std::vector{a.x(0, 0) + a.x(0, 1)}; }}, {x},
      std::vector<int32_t>{0}, {});
  const Device device = Device::open("cpu");
  Evaluator evaluator(problem, device, Precision::f64);
  evaluator.linearize();
  const Buffer step = device.allocate(evaluator.real(), {evaluator.tangent_size()});
  const auto solver = make_device_cholesky();
  solver->prepare(evaluator);
  const LinearResult singular = solver->solve(evaluator, 0, 0, step);
  EXPECT_FALSE(singular.ok);
  EXPECT_EQ(singular.message, "J^T J is not positive definite (front 0, column 1)");
  EXPECT_TRUE(solver->solve(evaluator, 1e-3, 0, step).ok);
}

TEST(Linear, SchurNeedsFewerIterations) {
  const Problem problem = views_problem(20, 400, 5, 8);
  const Device device = Device::open("cpu");
  Evaluator evaluator(problem, device, Precision::f64);
  evaluator.linearize();
  const Buffer step = device.allocate(evaluator.real(), {evaluator.tangent_size()});
  const auto iterations = [&](std::unique_ptr<LinearSolver> solver) {
    solver->prepare(evaluator);
    return solver->solve(evaluator, 1e-3, 1e-8, step).iterations;
  };
  EXPECT_LT(iterations(make_schur_solver(5000)), iterations(make_pcg_solver(5000)));
}

TEST(Linear, DevicesTakeTheSameIterationsToTheSameBits) {
  const Problem problem = views_problem(7, 41, 3, 2);
  const auto run = [&](const char* name, Make make) {
    const Device device = Device::open(name);
    Evaluator evaluator(problem, device, Precision::f32);
    evaluator.linearize();
    const Buffer step = device.allocate(evaluator.real(), {evaluator.tangent_size()});
    const auto solver = make(40);
    solver->prepare(evaluator);
    const LinearResult result = solver->solve(evaluator, 1e-2, 1e-3, step);
    std::vector<double> all = download_numbers(device, step);
    all.push_back(result.iterations);
    return all;
  };
  for (const Make make : kSolvers) EXPECT_EQ(run("cpu", make), run("interp", make));
}

TEST(Linear, IterationsAreBoundedAndAZeroGradientNeedsNone) {
  const Problem problem = views_problem(7, 41, 3, 2);
  const Device device = Device::open("cpu");
  Evaluator evaluator(problem, device, Precision::f64);
  evaluator.linearize();
  const Buffer step = device.allocate(evaluator.real(), {evaluator.tangent_size()});
  const auto solver = make_pcg_solver(3);
  solver->prepare(evaluator);
  EXPECT_EQ(solver->solve(evaluator, 1e-3, 1e-14, step).iterations, 3);
  device.clear(evaluator.gradient());
  const LinearResult none = solver->solve(evaluator, 1e-3, 1e-14, step);
  EXPECT_EQ(none.iterations, 0);
  EXPECT_TRUE(none.ok);
  for (const double v : download_numbers(device, step)) EXPECT_EQ(v, 0);
}

TEST(Linear, SchurRefusesProblemsWithoutASetToEliminate) {
  Problem problem;
  const auto set = problem.add_blocks("x", euclidean(3), random_numbers(9, 1));
  problem.add_terms(spring_type(), {set, set}, std::vector<int32_t>{0, 1, 1, 2}, std::vector<double>{1, 1});
  Evaluator evaluator(problem, Device::open("cpu"), Precision::f64);
  evaluator.linearize();
  EXPECT_THROW(make_schur_solver(10)->prepare(evaluator), InputError);
}

}  // namespace
}  // namespace lockstep::solve::test
