// The Schur complement by threads: steps of a bundle large enough to be distributed, against the sparse factorisation.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "solve/linear/host_solver.hpp"

namespace lockstep::solve {

// Solvers are given their batches here: what they would ask an evaluator for is not called, and its kernels are not linked.
std::vector<HostBatch> Evaluator::host_batches(bool /*numbers*/) const {
  throw std::logic_error("no evaluator");
}
const Buffer& Evaluator::gradient() const { throw std::logic_error("no evaluator"); }
const Device& Evaluator::device() const { throw std::logic_error("no evaluator"); }

namespace {

struct Opened : HostSolver {
  using HostSolver::linearised;
  using HostSolver::step;
  using HostSolver::structured;
};

/// Cameras of 9 unknowns, each point of 3 seen by four of them.
HostBatch bundle(int64_t cameras, int64_t points) {
  HostBatch batch;
  batch.rows = 2;
  batch.widths = {9, 3};
  std::mt19937 random(11);
  for (int64_t p = 0; p < points; ++p)
    for (int64_t k = 0; k < 4; ++k) {
      batch.columns.push_back(9 * ((p * 7 + k * 5) % cameras));
      batch.columns.push_back(9 * cameras + 3 * p);
    }
  batch.instances = 4 * points;
  std::uniform_real_distribution<double> uniform(-1, 1);
  batch.jacobian.resize(size_t(batch.instances * 2 * 12));
  batch.residuals.resize(size_t(batch.instances * 2));
  for (double& v : batch.jacobian) v = uniform(random);
  return batch;
}

TEST(SchurThreads, GiveTheStepOfTheSparseFactorisation) {
  const int64_t cameras = 30, points = 600;
  const std::vector<HostBatch> batches{bundle(cameras, points)};
  std::vector<double> gradient(size_t(9 * cameras + 3 * points));
  for (size_t k = 0; k < gradient.size(); ++k) gradient[k] = std::sin(double(k));
  const auto step_of = [&](Linear kind) {
    const std::unique_ptr<HostSolver> solver = make_holding_solver(kind);
    std::vector<double> step(gradient.size());
    (solver.get()->*&Opened::structured)(batches);
    for (int again = 0; again < 2; ++again) {
      (solver.get()->*&Opened::linearised)(batches);
      EXPECT_TRUE((solver.get()->*&Opened::step)(0.01, gradient, step).ok);
    }
    return step;
  };
  const std::vector<double> eliminated = step_of(Linear::dense_schur), whole = step_of(Linear::cholesky);
  for (size_t k = 0; k < whole.size(); ++k) ASSERT_NEAR(eliminated[k], whole[k], 1e-9) << k;
}

}  // namespace
}  // namespace lockstep::solve
