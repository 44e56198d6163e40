// Small problems added up on the host have the bits of the kernels' sums.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/primitives.hpp"
#include "primitives/sums/host_reduce.hpp"
#include "problems.hpp"
#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve::test {
namespace {

TEST(HostReductions, HaveTheBitsOfTheKernels) {
  const Device device = Device::open("cpu");
  for (const int n : {1, 2, 3, 6, 31, 255, 256, 257, 1000, 1024, 1025, 2047, 2049, 5000, 8192}) {
    const std::vector<double> x = random_numbers(size_t(n), uint64_t(n), -1e3, 1e3),
                              y = random_numbers(size_t(n), uint64_t(n) + 1);
    const Buffer dx = device.upload(x), dy = device.upload(y);
    EXPECT_EQ(primitives::host_dot(x, y), primitives::dot<f64>(device, dx, dy)) << n;
    EXPECT_EQ(primitives::host_norm(x), primitives::norm<f64>(device, dx)) << n;
    const Buffer sum = device.allocate<double>({1});
    primitives::ChunkedSum(device, Storage::f64, n).launch(dx, sum);
    EXPECT_EQ(primitives::host_chunked_sum(x), device.download<double>(sum)[0]) << n;
  }
}

/// Points between which springs stretch, seen from few directions (blocks of hundreds of entries), and poses.
Problem random_problem(uint64_t seed) {
  Problem problem;
  const int points = int(20 + seed * 97 % 500);
  const auto positions = problem.add_blocks("points", euclidean(3), random_numbers(size_t(points) * 3, seed));
  std::vector<double> pose_numbers = random_numbers(9 * 7, seed + 1);
  normalize_rows(pose_numbers, 7, 3, 4);
  const auto poses = problem.add_blocks("poses", se3(), pose_numbers);
  std::vector<double> direction_numbers = random_numbers(3 * 3, seed + 2);
  normalize_rows(direction_numbers, 3, 0, 3);
  const auto directions = problem.add_blocks("directions", sphere2(), direction_numbers);
  const auto edges = random_tuples(points * 2, 2, points, seed + 4);
  problem.add_terms(spring_type(), {positions, positions}, edges,
                    random_numbers(edges.size() / 2, seed + 5, 0.1, 1));
  const auto pairs = random_tuples(14, 2, 9, seed + 8);
  std::vector<double> measured = random_numbers(14 * 7, seed + 9);
  normalize_rows(measured, 7, 3, 4);
  problem.add_terms(pose_type({RobustLoss::Kind::cauchy, 0.7}), {poses, poses}, pairs, measured);
  std::vector<int32_t> seen;
  for (int k = 0; k < points; ++k) seen.insert(seen.end(), {k, k % 5 == 4 ? int(seed % 3) : 0});
  problem.add_terms({"plane",
                     {3, 3},
                     1,
                     [](const TermArguments& a) {
                       return std::vector<Value>{dot(a.vec3(0), a.vec3(1)) - a.data(0),
                                                 0.25 * sin(3.0 * dot(a.vec3(0), a.vec3(1))),
                                                 a.x(1, 2) * 2.0};
                     },
                     {RobustLoss::Kind::geman_mcclure, 2}},
                    {positions, directions}, seen, random_numbers(size_t(points), seed + 10));
  for (int k = 0; k < 9; ++k)
    if (k % 3 == int(seed % 3) || k > 6) problem.fix(poses, k);
  problem.fix(directions, 1), problem.fix(directions, 2);
  if (seed % 2) problem.fix(positions, 3);
  return problem;
}

struct Numbers {
  bool host = false;
  double cost = 0, trial = 0, norm = 0;
  std::vector<double> gradient, diagonal, product, jacobian, residuals, moved;
};
Numbers numbers_of(const Problem& problem, const Device& device, unsigned more, std::string_view sums) {
  Evaluator evaluator(
      problem, device, Precision::f64,
      {.uses = kUseLinearize | kUseProduct | kUseHost | more, .assembly = "plain", .sums = sums});
  Numbers out;
  out.host = evaluator.internals().host != nullptr;
  evaluator.linearize();
  const size_t n = size_t(evaluator.tangent_size());
  const Buffer step = device.allocate(Storage::f64, {int64_t(n)}),
               q = device.allocate(Storage::f64, {int64_t(n)});
  std::vector<double> numbers = random_numbers(n, 77, -0.1, 0.1);
  const std::vector<double> free = download_numbers(device, evaluator.gradient());
  for (size_t k = 0; k < n; ++k)
    if (free[k] == 0) numbers[k] = 0;  // of fixed blocks
  device.write(step, numbers.data(), step.bytes());
  evaluator.try_step(step);
  evaluator.accept();
  out.cost = evaluator.linearize();  // a second time, from another state
  out.gradient = download_numbers(device, evaluator.gradient());
  if (more & kUseDiagonal) out.diagonal = download_numbers(device, evaluator.diagonal());
  out.norm = evaluator.state_norm();
  for (const HostBatch& b : evaluator.host_batches()) {
    out.jacobian.insert(out.jacobian.end(), b.jacobian.begin(), b.jacobian.end());
    out.residuals.insert(out.residuals.end(), b.residuals.begin(), b.residuals.end());
  }
  evaluator.multiply(step, q);
  out.product = download_numbers(device, q);
  out.trial = evaluator.try_step(step);
  out.moved = evaluator.state();
  return out;
}

TEST(HostSums, HaveTheBitsOfTheKernels) {
  const Device device = Device::open("cpu");
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Problem problem = random_problem(seed);
    const unsigned more = seed % 2 ? unsigned(kUseDiagonal) : 0u;
    const Numbers host = numbers_of(problem, device, more, ""),
                  kernels = numbers_of(problem, device, more, "device");
    EXPECT_TRUE(host.host) << seed;
    EXPECT_FALSE(kernels.host);
    EXPECT_EQ(host.cost, kernels.cost) << seed;
    EXPECT_EQ(host.trial, kernels.trial) << seed;
    EXPECT_EQ(host.norm, kernels.norm) << seed;
    EXPECT_EQ(host.gradient, kernels.gradient) << seed;
    EXPECT_EQ(host.diagonal, kernels.diagonal) << seed;
    EXPECT_EQ(host.product, kernels.product) << seed;
    EXPECT_TRUE(host.jacobian == kernels.jacobian) << seed;
    EXPECT_TRUE(host.residuals == kernels.residuals) << seed;
    EXPECT_EQ(host.moved, kernels.moved) << seed;
  }
}

TEST(HostSums, MinimisationsAreThoseOfTheKernels) {
  for (const Method method : {Method::lm, Method::dogleg, Method::gn}) {
    const auto trace = [&](const char* device) {  // the interpreter has no sums on the host
      Context context({.device = device});
      Problem problem = random_problem(1);
      Options options;
      options.method = method;
      options.max_iterations = 8;
      std::vector<double> out;
      for (const Iteration& row : minimize(problem, context, options).trace)
        out.insert(out.end(), {row.cost, row.gradient_max, row.step_norm, row.gain, row.damping});
      const auto& values = problem.state().values;
      out.insert(out.end(), values.begin(), values.end());
      return out;
    };
    EXPECT_EQ(trace("cpu"), trace("interp")) << name(method);
  }
}

}  // namespace
}  // namespace lockstep::solve::test
