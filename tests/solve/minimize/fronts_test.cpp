// The factorisation by fronts on devices: against the host's sparse Cholesky and a dense one, on matrices whose
// elimination trees are of every kind; failing pivots; whole minimisations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "solve/evaluate/evaluator_state.hpp"
#include "solve/linear/cholesky/sparse_cholesky.hpp"
#include "solve/linear/fronts/front_cases.hpp"
#include "solve/linear/fronts/front_cholesky.hpp"
#include "solve/linear/host_solver.hpp"
#include "solve/minimize/problems.hpp"

namespace lockstep::solve {
namespace {

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

struct Solved {
  std::vector<double> x;
  FrontCholesky::Outcome outcome;
};
Solved solve_on(const Device& device, Storage real, const BlockMatrix& matrix) {
  FrontCholesky cholesky(device, real, matrix.pattern);
  const auto fill = [&](const std::vector<double>& from, const Buffer& to) { to_device(device, from, to); };
  fill(matrix.values, cholesky.values());
  fill(matrix.added, cholesky.added());
  fill(matrix.right, cholesky.x());
  cholesky.run();
  return {to_host(device, cholesky.x()), cholesky.outcome()};
}
Solved solve_on(const char* device, const BlockMatrix& matrix) {
  return solve_on(Device::open(device), Storage::f64, matrix);
}
std::vector<double> on_host(const BlockMatrix& matrix, double& least) {
  SparseCholesky cholesky(matrix.pattern);
  EXPECT_TRUE(cholesky.factorise(matrix.values, matrix.added));
  least = cholesky.least_pivot();
  std::vector<double> x = matrix.right;
  cholesky.solve(x);
  return x;
}
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0, size = 0;
  for (size_t k = 0; k < a.size(); ++k)
    most = std::max(most, std::abs(a[k] - b[k])), size = std::max(size, std::abs(b[k]));
  return most / size;
}

std::vector<int> widths(int32_t blocks) {
  std::vector<int> out;
  for (int32_t k = 0; k < blocks; ++k) out.push_back(1 + (k * 5) % 4);
  return out;
}
Pairs chain(int32_t blocks) {
  Pairs pairs;
  for (int32_t k = 1; k < blocks; ++k) pairs.emplace_back(k, k - 1);
  return pairs;
}
/// The last `heads` blocks meet all others.
Pairs arrow(int32_t blocks, int32_t heads) {
  Pairs pairs;
  for (int32_t a = blocks - heads; a < blocks; ++a)
    for (int32_t b = 0; b < a; ++b) pairs.emplace_back(a, b);
  return pairs;
}
Pairs scattered(int32_t blocks, int32_t count, uint32_t state) {
  Pairs pairs;
  const auto next = [&] { return int32_t((state = state * 1664525u + 1013904223u) >> 8) % blocks; };
  for (int32_t k = 0; k < count; ++k) {
    const int32_t a = next(), b = next();
    if (a != b) pairs.emplace_back(std::max(a, b), std::min(a, b));
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}
Pairs full(int32_t blocks) { return arrow(blocks, blocks); }
/// Two grids, a chain and blocks without neighbours.
Pairs islands() {
  Pairs pairs = grid_pairs(4, 5);
  for (const auto& [a, b] : grid_pairs(3, 6)) pairs.emplace_back(a + 20, b + 20);
  for (const auto& [a, b] : chain(7)) pairs.emplace_back(a + 38, b + 38);
  return pairs;
}

struct Pattern {
  const char* name;
  int32_t blocks;
  Pairs pairs;
};
std::vector<Pattern> patterns() {
  return {{"single", 1, {}},
          {"diagonal", 9, {}},
          {"chain", 60, chain(60)},
          {"arrow", 50, arrow(50, 2)},
          {"full", 45, full(45)},
          {"grid", 12 * 13, grid_pairs(12, 13)},
          {"islands", 50, islands()},
          {"scattered", 120, scattered(120, 260, 7)},
          {"dense", 60, scattered(60, 900, 3)}};
}

TEST(Fronts, SolvesWhatTheHostAndADenseFactorisationSolve) {
  for (const Pattern& p : patterns()) {
    const BlockMatrix matrix = random_matrix(widths(p.blocks), p.pairs, 11);
    const Solved solved = solve_on("cpu", matrix);
    double least = 0;
    const std::vector<double> host = on_host(matrix, least), dense = dense_solution(matrix);
    EXPECT_TRUE(solved.outcome.ok()) << p.name;
    EXPECT_LT(distance(solved.x, dense), 1e-13) << p.name;
    EXPECT_LT(distance(solved.x, host), 1e-13) << p.name;
    EXPECT_NEAR(solved.outcome.least_pivot, least, 1e-12) << p.name;
    const Solved narrow = solve_on(Device::open("cpu"), Storage::f32, matrix);
    EXPECT_LT(distance(narrow.x, dense), 1e-5) << p.name;
  }
}

TEST(Fronts, InterpreterHasTheSameBits) {
  for (const Pattern& p : patterns()) {
    if (p.blocks > 60) continue;
    const BlockMatrix matrix = random_matrix(widths(p.blocks), p.pairs, 5);
    EXPECT_EQ(solve_on("cpu", matrix).x, solve_on("interp", matrix).x) << p.name;
  }
}

TEST(Fronts, SolvesAgainWithOtherValues) {
  BlockMatrix matrix = random_matrix(widths(30), grid_pairs(5, 6), 2);
  const Device device = Device::open("cpu");
  FrontCholesky cholesky(device, Storage::f64, matrix.pattern);
  for (int round = 0; round < 3; ++round) {
    for (double& v : matrix.added) v += 0.25 * round;
    to_device(device, matrix.values, cholesky.values());
    to_device(device, matrix.added, cholesky.added());
    to_device(device, matrix.right, cholesky.x());
    cholesky.run();
    EXPECT_LT(distance(to_host(device, cholesky.x()), dense_solution(matrix)), 1e-13);
    EXPECT_EQ(to_host(device, cholesky.x()), solve_on("cpu", matrix).x);
  }
}

TEST(Fronts, NamesThePivotThatFails) {
  // The pivots of a diagonal matrix are its elements, regardless of the order of elimination.
  for (const double wrong : {-2.0, 0.0, double(NAN), double(INFINITY)}) {
    BlockMatrix matrix = random_matrix(widths(12), {}, 3);
    const size_t block = 7, entry = block;  // the entries are the diagonal blocks
    matrix.values[size_t(matrix.pattern.offsets()[entry])] = wrong;
    matrix.added[size_t(matrix.pattern.first[block])] = 0;
    const FrontCholesky::Outcome outcome = solve_on("cpu", matrix).outcome;
    EXPECT_FALSE(outcome.ok()) << wrong;
    EXPECT_EQ(outcome.column, 0) << wrong;
    EXPECT_GE(outcome.front, 0) << wrong;
    SparseCholesky host(matrix.pattern);
    EXPECT_FALSE(host.factorise(matrix.values, matrix.added)) << wrong;
  }
  // Indefinite though its diagonal is positive.
  BlockMatrix grid = random_matrix(widths(156), grid_pairs(12, 13), 4);
  for (size_t e = 0; e + 156 < grid.pattern.rows.size(); ++e)
    grid.values[size_t(grid.pattern.offsets()[e])] *= e == 40 ? 40 : 1;
  SparseCholesky host(grid.pattern);
  EXPECT_FALSE(host.factorise(grid.values, grid.added));
  EXPECT_FALSE(solve_on("cpu", grid).outcome.ok());
}

TEST(Fronts, LargeBlocksOfPivots) {
  // 150 pivots in one front of 200 rows: panels, the updates next to them and the Schur complement.
  const BlockMatrix matrix = random_matrix(std::vector<int>(40, 5), full(40), 8);
  const Solved solved = solve_on("cpu", matrix);
  EXPECT_LT(distance(solved.x, dense_solution(matrix)), 1e-13);
}

Summary minimised(Linear linear) {
  test::Instance net = test::net(8);
  Context context({.device = "cpu"});
  Options options;
  options.linear = linear;
  return minimize(net.problem, context, options);
}

TEST(Fronts, MinimisesAsTheHostDoes) {
  const Summary host = minimised(Linear::cholesky), device = minimised(Linear::device_cholesky);
  EXPECT_NEAR(device.final_cost, host.final_cost, 1e-12 * host.final_cost);
  EXPECT_EQ(device.trace.size(), host.trace.size());
  EXPECT_EQ(device.linear_used, Linear::device_cholesky);
}

}  // namespace
}  // namespace lockstep::solve
