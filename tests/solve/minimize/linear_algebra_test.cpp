// Sparse and dense factorisations against Eigen, normal equations against products written out.
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <Eigen/Dense>
#include <cmath>
#include <random>

#include "lockstep/error.hpp"
#include "solve/linear/cholesky/dense_kernels.hpp"
#include "solve/linear/cholesky/sparse_cholesky.hpp"
#include "solve/linear/normal_equations.hpp"

namespace lockstep::solve {
namespace {

Eigen::MatrixXd random_definite(int n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Eigen::MatrixXd a(n, n);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) a(i, j) = uniform(random);
  return a * a.transpose() + 0.1 * Eigen::MatrixXd::Identity(n, n);
}

TEST(DenseFactor, IsEigensForEverySize) {
  for (const int n : {1, 2, 7, 8, 9, 47, 48, 49, 100, 211}) {
    const Eigen::MatrixXd a = random_definite(n, unsigned(n));
    Eigen::MatrixXd l = a;
    ASSERT_EQ(partial_cholesky(l.data(), n, n, n > 100), n);
    l.triangularView<Eigen::StrictlyUpper>().setZero();
    EXPECT_LT((l * l.transpose() - a).norm(), 1e-12 * a.norm()) << n;
    Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(n, 1, 2), x = b;
    forward_substitute(l.data(), n, n, x.data());
    backward_substitute(l.data(), n, n, x.data());
    EXPECT_LT((a * x - b).norm(), 1e-8 * b.norm()) << n;
  }
}

TEST(DenseFactor, LeavesTheSchurComplement) {
  for (const auto& [n, pivots] : {std::pair(10, 3), {75, 50}, {120, 60}, {300, 96}}) {
    const Eigen::MatrixXd a = random_definite(n, 5);
    Eigen::MatrixXd l = a;
    ASSERT_EQ(partial_cholesky(l.data(), n, pivots, true), pivots);
    const int rest = n - pivots;
    const Eigen::MatrixXd expected =
        a.bottomRightCorner(rest, rest) -
        a.bottomLeftCorner(rest, pivots) *
            a.topLeftCorner(pivots, pivots).ldlt().solve(a.topRightCorner(pivots, rest));
    const Eigen::MatrixXd got = l.bottomRightCorner(rest, rest).triangularView<Eigen::Lower>();
    const Eigen::MatrixXd lower = expected.triangularView<Eigen::Lower>();
    EXPECT_LT((got - lower).norm(), 1e-8 * a.norm()) << n;
  }
}

TEST(DenseFactor, OfTwoPartsHasTheBitsOfOneMatrix) {
  for (const auto& [n, pivots] : {std::pair(10, 3), {75, 50}, {120, 60}, {300, 99}, {31, 31}}) {
    const Eigen::MatrixXd a = random_definite(n, 9);
    const int rest = n - pivots;
    Eigen::MatrixXd whole = a, panel = a.leftCols(pivots), trailing = a.bottomRightCorner(rest, rest);
    ASSERT_EQ(partial_cholesky(whole.data(), n, pivots, false), pivots);
    ASSERT_EQ(partial_cholesky(panel.data(), n, pivots, trailing.data(), rest, n > 200), pivots);
    for (int j = 0; j < n; ++j)
      for (int i = j; i < n; ++i)
        ASSERT_EQ(j < pivots ? panel(i, j) : trailing(i - pivots, j - pivots), whole(i, j)) << i << " " << j;
  }
}

TEST(DenseFactor, GramIsTheProduct) {
  for (const auto& [m, n] : {std::pair(1, 1), {50, 7}, {33, 8}, {200, 29}}) {
    const Eigen::MatrixXd a = Eigen::MatrixXd::Random(m, n);
    Eigen::MatrixXd got(n, n);
    gram(a.data(), m, n, got.data());
    const Eigen::MatrixXd lower = got.triangularView<Eigen::Lower>(),
                          expected = (a.transpose() * a).triangularView<Eigen::Lower>();
    EXPECT_LT((lower - expected).norm(), 1e-13 * m) << n;
  }
}

TEST(DenseFactor, StopsAtAPivotThatIsNotPositive) {
  Eigen::MatrixXd a = random_definite(60, 2);
  a(55, 55) = -1;
  EXPECT_EQ(partial_cholesky(a.data(), 60, 60, false), 55);
  Eigen::MatrixXd b = random_definite(5, 2);
  b(0, 0) = NAN;
  EXPECT_EQ(partial_cholesky(b.data(), 5, 5, false), 0);
}

TEST(DenseFactor, EveryVectorWidthGivesTheSameBits) {
  // Strips of a panel through each implementation that this machine runs.
  const int64_t width = 13;
  std::vector<double> l(size_t(width * width)), strip(size_t(8 * width)), c(64, 1);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(0.5, 2);
  for (double& v : l) v = uniform(random);
  for (double& v : strip) v = uniform(random);
  const Eigen::MatrixXd a = random_definite(29, 8);
  const auto run = [&](const dense::Kernels& kernels) {
    std::vector<double> out = strip, product = c;
    kernels.solve_strips(l.data(), width, width, out.data(), 1);
    kernels.subtract_product(strip.data(), out.data(), width, product.data(), 8, 8, 8);
    kernels.subtract_product(strip.data(), out.data(), width, product.data(), 8, 5, 3);
    kernels.add_products(strip.data(), 8, l.data(), width, 5, 7, 6, product.data(), 9);
    kernels.subtract_products(l.data(), width, strip.data(), 8, 3, 9, 4, product.data() + 1, 9);
    for (const int64_t h : {3, 6})
      kernels.add_products(strip.data(), 8, l.data(), width, 4, h, 5, &product[2], 9);
    out.insert(out.end(), product.begin(), product.end());
    std::vector<double> triangle(a.data(), a.data() + a.size()), x(29, 0.7);
    EXPECT_EQ(kernels.factor_block(triangle.data(), 29, 29), 29);
    kernels.forward_substitute(triangle.data(), 29, 23, x.data());
    kernels.backward_substitute(triangle.data(), 29, 22, x.data());
    out.insert(out.end(), triangle.begin(), triangle.end());
    out.insert(out.end(), x.begin(), x.end());
    return out;
  };
  const std::vector<double> expected = run(dense::kBaseline);
#ifdef LOCKSTEP_X86_KERNELS
  if (__builtin_cpu_supports("avx2")) { EXPECT_EQ(run(dense::kAvx2), expected); }
  if (__builtin_cpu_supports("avx512f")) { EXPECT_EQ(run(dense::kAvx512), expected); }
#endif
  for (const double v : expected) EXPECT_TRUE(std::isfinite(v));
}

/// A grid of blocks of different widths, each joined to its neighbours and a few far ones.
struct RandomMatrix {
  BlockPattern pattern;
  std::vector<double> values;
  Eigen::MatrixXd dense;

  RandomMatrix(int side, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const int n = side * side;
    pattern.first = {0};
    for (int b = 0; b < n; ++b) pattern.first.push_back(pattern.first.back() + 1 + int(random() % 4));
    dense = Eigen::MatrixXd::Zero(pattern.unknowns(), pattern.unknowns());
    for (int b = 0; b < n; ++b)
      for (int other = b; other < n; ++other) {
        const bool near = other == b || other == b + side || (other == b + 1 && other % side != 0);
        if (!near && random() % 200 != 0) continue;
        pattern.rows.push_back(other), pattern.columns.push_back(b);
        for (int64_t j = 0; j < pattern.width(b); ++j)
          for (int64_t i = 0; i < pattern.width(other); ++i) {
            double v = uniform(random);
            if (b == other)
              v = i == j ? 40 + v : i > j ? v : dense(pattern.first[b] + j, pattern.first[b] + i);
            if (b == other && i < j) v = dense(pattern.first[size_t(b)] + i, pattern.first[size_t(b)] + j);
            dense(pattern.first[size_t(other)] + i, pattern.first[size_t(b)] + j) = v;
            dense(pattern.first[size_t(b)] + j, pattern.first[size_t(other)] + i) = v;
          }
      }
    for (size_t e = 0; e < pattern.rows.size(); ++e)
      for (int64_t j = 0; j < pattern.width(pattern.columns[e]); ++j)
        for (int64_t i = 0; i < pattern.width(pattern.rows[e]); ++i)
          values.push_back(dense(pattern.first[size_t(pattern.rows[e])] + i,
                                 pattern.first[size_t(pattern.columns[e])] + j));
  }
};

TEST(SparseCholesky, SolvesWhatEigenSolves) {
  for (const int side : {1, 2, 5, 9, 16}) {
    const RandomMatrix m(side, unsigned(side));
    SparseCholesky cholesky(m.pattern);
    const std::vector<double> added(size_t(m.pattern.unknowns()), 0.5);
    ASSERT_TRUE(cholesky.factorise(m.values, added));
    Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(m.pattern.unknowns(), -1, 2), x = b;
    cholesky.solve(std::span<double>(x.data(), size_t(x.size())));
    Eigen::MatrixXd damped = m.dense;
    damped.diagonal().array() += 0.5;
    EXPECT_LT((damped * x - b).norm(), 1e-11 * b.norm()) << side;
    EXPECT_GT(cholesky.least_pivot(), 0.1);
    EXPECT_GE(cholesky.factor_elements(), m.pattern.unknowns());
  }
}

TEST(SparseCholesky, GivesTheSameBitsForEveryNumberOfThreads) {
  const RandomMatrix m(28, 77);  // its root takes more operations than one task
  const std::vector<double> added(size_t(m.pattern.unknowns()), 0);
  std::vector<double> first, entries;
  for (const size_t threads : {1, 2, 5}) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    SparseCholesky cholesky(m.pattern);
    ASSERT_TRUE(cholesky.factorise(m.values, added));
    std::vector<double> x(size_t(m.pattern.unknowns()), 1);
    cholesky.solve(x);
    const std::vector<double> inverse = cholesky.inverse_entries();
    if (first.empty()) first = x, entries = inverse;
    EXPECT_EQ(x, first);
    EXPECT_EQ(inverse, entries);
    EXPECT_GT(cholesky.flops(), 2e7);
  }
  // The entries compared with columns of the inverse.
  SparseCholesky cholesky(m.pattern);
  ASSERT_TRUE(cholesky.factorise(m.values, added));
  const std::vector<int64_t> offsets = m.pattern.offsets();
  for (size_t e = 0; e < m.pattern.rows.size(); e += 97) {
    std::vector<double> x(size_t(m.pattern.unknowns()), 0);
    x[size_t(m.pattern.first[size_t(m.pattern.columns[e])])] = 1;
    cholesky.solve(x);
    EXPECT_NEAR(entries[size_t(offsets[e])], x[size_t(m.pattern.first[size_t(m.pattern.rows[e])])], 1e-12);
  }
}

TEST(SparseCholesky, RefusesWhatIsNotPositiveDefinite) {
  RandomMatrix m(6, 1);
  SparseCholesky cholesky(m.pattern);
  std::vector<double> added(size_t(m.pattern.unknowns()), 0);
  ASSERT_TRUE(cholesky.factorise(m.values, added));
  added[17] = -1000;
  EXPECT_FALSE(cholesky.factorise(m.values, added));
  added[17] = NAN;
  EXPECT_FALSE(cholesky.factorise(m.values, added));
  added[17] = 0;
  EXPECT_TRUE(cholesky.factorise(m.values, added));
}

TEST(SparseCholesky, LongChainsDoNotRecurse) {
  BlockPattern chain;
  chain.first = {0};
  std::vector<double> values;
  const int n = 200'000;
  for (int b = 0; b < n; ++b) {
    chain.first.push_back(b + 1);
    chain.rows.push_back(b), chain.columns.push_back(b), values.push_back(2);
    if (b + 1 < n) chain.rows.push_back(b + 1), chain.columns.push_back(b), values.push_back(-1);
  }
  SparseCholesky cholesky(chain);
  ASSERT_TRUE(cholesky.factorise(values, std::vector<double>(size_t(n), 0)));
  std::vector<double> x(size_t(n), 0);
  x[0] = 1;
  cholesky.solve(x);  // the Green's function of the second difference, condition 4e10
  for (int k = 0; k < n; k += 1000) ASSERT_NEAR(x[size_t(k)], double(n - k) / (n + 1), 1e-7);
}

HostBatch random_batch(int rows, std::vector<int> widths, std::vector<int64_t> columns, unsigned seed) {
  HostBatch batch;
  batch.rows = rows, batch.widths = std::move(widths), batch.columns = std::move(columns);
  batch.instances = int64_t(batch.columns.size() / batch.widths.size());
  int stride = 0;
  for (const int w : batch.widths) stride += w;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  batch.jacobian.resize(size_t(batch.instances * rows * stride));
  batch.residuals.resize(size_t(batch.instances * rows));
  for (double& v : batch.jacobian) v = uniform(random);
  for (double& v : batch.residuals) v = uniform(random);
  return batch;
}

TEST(NormalEquations, AreTheProductWrittenOut) {
  // Tangent coordinates 0-2, 3-5, 6-7, 8-10; the block at 3 is fixed in the second batch's slots (-1), a
  // block meets itself, and two batches share places.
  const std::vector<HostBatch> batches{
      random_batch(2, {3, 3}, {0, 3, 3, 8, 0, 8, 8, 8, 3, 0}, 1),
      random_batch(1, {2, 3}, {6, 0, 6, -1, 6, 8}, 2),
  };
  const NormalEquations equations(batches);
  EXPECT_EQ(equations.columns(), (std::vector<int64_t>{0, 3, 6, 8}));
  ASSERT_EQ(equations.unknowns(), 11);
  Eigen::MatrixXd expected = Eigen::MatrixXd::Zero(11, 11);
  for (const HostBatch& batch : batches) {
    const int stride = batch.widths[0] + batch.widths[1];
    for (int64_t i = 0; i < batch.instances; ++i)
      for (int r = 0; r < batch.rows; ++r) {
        Eigen::VectorXd row = Eigen::VectorXd::Zero(11);
        int at = 0;
        for (int s = 0; s < 2; at += batch.widths[size_t(s)], ++s) {
          const int64_t column = batch.columns[size_t(i * 2 + s)];
          if (column < 0) continue;
          for (int k = 0; k < batch.widths[size_t(s)]; ++k)
            row[column + k] += batch.jacobian[size_t((i * batch.rows + r) * stride + at + k)];
        }
        expected += row * row.transpose();
      }
  }
  std::vector<double> values;
  equations.assemble(batches, values);
  const std::vector<double> diagonal = equations.diagonal(values);
  for (int k = 0; k < 11; ++k) EXPECT_NEAR(diagonal[size_t(k)], expected(k, k), 1e-13);
  const BlockPattern& pattern = equations.pattern();
  size_t at = 0;
  for (size_t e = 0; e < pattern.rows.size(); ++e)
    for (int64_t j = 0; j < pattern.width(pattern.columns[e]); ++j)
      for (int64_t i = 0; i < pattern.width(pattern.rows[e]); ++i)
        EXPECT_NEAR(values[at++],
                    expected(pattern.first[size_t(pattern.rows[e])] + i,
                             pattern.first[size_t(pattern.columns[e])] + j),
                    1e-13);
  EXPECT_EQ(at, values.size());
  std::vector<double> tangent(13, 5), unknowns(11);
  for (int k = 0; k < 11; ++k) unknowns[size_t(k)] = k;
  equations.scatter(unknowns, tangent);
  EXPECT_EQ(tangent[12], 0);
  EXPECT_EQ(equations.gather(tangent), unknowns);
}

}  // namespace
}  // namespace lockstep::solve
