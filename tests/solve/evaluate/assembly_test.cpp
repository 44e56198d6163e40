// Batches that are assembled in groups against the plain path and against complex steps.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "problems.hpp"
#include "solve/case_problems.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/reference.hpp"

namespace lockstep::solve::test {
namespace {

/// Everything an evaluator gives, as numbers.
std::vector<double> everything(const Problem& problem, const char* name, Precision precision,
                               std::string_view assembly = {}) {
  const Device device = Device::open(name);
  Evaluator e(problem, device, precision, {.assembly = assembly});
  std::vector<double> all{e.value_and_gradient(), e.cost()};
  const auto append = [&](const Buffer& b) {
    for (const double v : download_numbers(device, b)) all.push_back(v);
  };
  append(e.gradient());
  all.push_back(e.linearize());
  append(e.gradient());
  append(e.diagonal());
  const int64_t n = e.tangent_size();
  std::vector<double> direction = random_numbers(size_t(n), 4);
  for (const SetState& s : problem.state().sets)
    for (int64_t b = 0; b < s.count; ++b)
      if (problem.state().fixed[size_t(s.first_block + b)])
        std::fill_n(direction.begin() + s.first_tangent + b * s.tangent(), s.tangent(), 0.0);
  const Buffer p = upload_numbers(device, e.real(), direction, {n}), q = device.allocate(e.real(), {n});
  e.multiply(p, q);
  append(q);
  all.push_back(e.try_step(p));
  return all;
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    difference += (a[k] - b[k]) * (a[k] - b[k]);
    size += b[k] * b[k];
  }
  EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(size));
}

/// A mesh with springs and dihedrals, a second set that the first does not touch, and fixed vertices.
Problem fixed_mesh() {
  Problem problem = mesh_problem(3, false, 5);
  for (const int64_t b : {0, 7, 100, 641}) problem.fix(BlockSet{0}, b);
  const BlockSet more = problem.add_blocks("more", so2(), random_numbers(3, 1));
  problem.add_terms({"angle",
                     {1, 3},
                     0,
                     [](const TermArguments& a) { return std::vector<Value>{sin(a.x(0)) * a.x(1, 2)}; }},
                    {more, BlockSet{0}}, std::vector<int32_t>{0, 3, 1, 4, 2, 5}, {});
  return problem;
}

TEST(Assembly, GivesWhatThePlainPathGives) {
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::mixed}) {
    for (const bool fixed : {false, true}) {
      const Problem problem = fixed ? fixed_mesh() : mesh_problem(3, true, 2);
      const std::vector<double> grouped = everything(problem, "cpu", precision);
      const std::vector<double> plain = everything(problem, "cpu", precision, "plain");
      expect_close(grouped, plain, precision == Precision::f64 ? 1e-14 : 1e-6);
      EXPECT_EQ(grouped, everything(problem, "interp", precision)) << "interpreter";
    }
  }
}

TEST(Assembly, AgreesWithComplexSteps) {
  const Problem problem = fixed_mesh();
  const Device device = Device::open("cpu");
  Evaluator e(problem, device, Precision::f64);
  ASSERT_TRUE(e.internals().batches[0].assembly);
  ASSERT_TRUE(e.internals().batches[1].assembly);
  ASSERT_FALSE(e.internals().batches[2].assembly);
  const double cost = e.linearize();
  const std::vector<double> none(size_t(e.tangent_size()), 0.0);
  const reference::Linearized r = reference::linearize(problem, problem.state().values, none);
  EXPECT_NEAR(cost, r.cost, 1e-13 * r.cost);
  expect_close(download_numbers(device, e.gradient()), r.gradient, 1e-13);
  expect_close(download_numbers(device, e.diagonal()), r.diagonal, 1e-13);
}

TEST(Assembly, JacobiansAreThereWhenAskedFor) {
  const Problem problem = fixed_mesh();
  const Device device = Device::open("cpu");
  Evaluator e(problem, device, Precision::f64);
  e.linearize();
  std::vector<double> gradient(size_t(e.tangent_size()), 0.0);
  for (const HostBatch& b : e.host_batches())
    for (int64_t i = 0; i < b.instances; ++i) {
      int columns = 0, column = 0;
      for (const int w : b.widths) columns += w;
      for (size_t s = 0; s < b.widths.size(); ++s)
        for (int c = 0; c < b.widths[s]; ++c, ++column) {
          const int64_t first = b.columns[size_t(i) * b.widths.size() + s];
          if (first < 0) continue;
          for (int r = 0; r < b.rows; ++r)
            gradient[size_t(first + c)] +=
                b.jacobian[size_t((i * b.rows + r) * columns + column)] * b.residuals[size_t(i * b.rows + r)];
        }
    }
  expect_close(gradient, download_numbers(device, e.gradient()), 1e-13);
}

TEST(Assembly, PlansHoldEveryInstanceOnceAndFillTheirGroups) {
  const Problem problem = mesh_problem(4, true, 1);
  const Batch& batch = problem.state().batches[0];
  const int64_t n = batch.instances;
  std::vector<int32_t> blocks(size_t(4 * n));
  for (int64_t i = 0; i < n; ++i)
    for (int s = 0; s < 4; ++s) blocks[size_t(s * n + i)] = batch.segments[0].blocks[size_t(4 * i + s)];
  const std::vector<uint8_t> fixed(2562, 0);
  const auto plan = plan_assembly(blocks, 4, n, {0, 1, 2, 3}, {1, 1, 1, 1}, fixed);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->covers_all);
  std::set<int64_t> seen;
  for (const int64_t i : plan->order)
    if (i >= 0) { EXPECT_TRUE(seen.insert(i).second); }
  EXPECT_EQ(int64_t(seen.size()), n);
  EXPECT_LE(plan->group_count(), n / AssemblyPlan::kLanes + 1);
  EXPECT_LT(double(plan->block.size()), 2.2 * 2562);  // blocks are in few groups
  int64_t entries = 0;
  for (const uint32_t word : plan->words)
    for (const uint32_t entry : {word & 0xffff, word >> 16}) entries += entry != 4 * AssemblyPlan::kLanes;
  EXPECT_EQ(entries, 4 * n);
}

TEST(Assembly, GraphsWithoutLocalityTakeThePlainPath) {
  const int blocks = 5000, n = 4000;
  Problem problem;
  const auto x = problem.add_blocks("x", euclidean(3), random_numbers(size_t(blocks) * 3, 1));
  problem.add_terms(dihedral_term(), {x, x, x, x}, random_tuples(n, 4, blocks, 2), {});
  const Device device = Device::open("cpu");
  Evaluator e(problem, device, Precision::f64);
  EXPECT_FALSE(e.internals().batches[0].assembly);
}

TEST(Assembly, OneBlockInEveryInstanceIsSummedToo) {
  const int n = 3000;
  Problem problem;
  const auto x = problem.add_blocks("x", euclidean(2), std::vector<double>{0.4, 0.7});
  std::vector<double> data = random_numbers(size_t(n) * 2, 3, 0.5, 2);
  problem.add_terms({"curve",
                     {2},
                     2,
                     [](const TermArguments& a) {
                       return std::vector<Value>{a.x(0, 0) * exp(a.x(0, 1) * a.data(0)) - a.data(1)};
                     }},
                    {x}, std::vector<int32_t>(size_t(n), 0), data);
  const Device device = Device::open("cpu");
  Evaluator e(problem, device, Precision::f64);
  EXPECT_TRUE(e.internals().batches[0].assembly);
  const double cost = e.linearize();
  const reference::Linearized r =
      reference::linearize(problem, problem.state().values, std::vector<double>(2, 0.0));
  EXPECT_NEAR(cost, r.cost, 1e-13 * r.cost);
  expect_close(download_numbers(device, e.gradient()), r.gradient, 1e-13);
  expect_close(download_numbers(device, e.diagonal()), r.diagonal, 1e-13);
}

}  // namespace
}  // namespace lockstep::solve::test
