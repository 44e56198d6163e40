// A problem lists its content; Jacobians in place of derived ones.
#include "lockstep/solve/content.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "lockstep/solve/given_jacobian.hpp"
#include "lockstep/solve/marginalize.hpp"
#include "problems.hpp"

namespace lockstep::solve::test {
namespace {

Context& shared_cpu() {
  static Context context(ContextOptions{.device = "cpu", .threads = 2});
  return context;
}

/// Slot 1 and datum 0 are not used.
TermType sparse_type() {
  return {"sparse",
          {2, 1, 2},
          3,
          [](const TermArguments& a) {
            return std::vector<Value>{a.x(2, 0) * a.data(2) - a.x(0, 1), a.x(0, 0) - a.data(1)};
          },
          {RobustLoss::Kind::huber, 0.25}};
}

TEST(Content, OfSetsInstancesAndBlocks) {
  Problem problem;
  const BlockSet points = problem.add_blocks("points", euclidean(2), std::vector<double>{0, 1, 2, 3, 4, 5});
  const BlockSet scale = problem.add_blocks("scale", euclidean(1), std::vector<double>{1});
  const BlockSet pose = problem.add_blocks("pose", se3(), std::vector<double>{0, 0, 0, 1, 0, 0, 0});
  const TermSet terms =
      problem.add_terms(sparse_type(), {points, scale, points}, std::vector<int32_t>{0, 0, 1, 2, 0, 1},
                        std::vector<double>{7, 8, 9, 10, 11, 12});
  problem.add_residuals(std::vector<Value>{problem.variable(pose, 0, 1) * problem.variable(scale, 0)});
  const auto sets = block_sets(problem);
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_EQ(sets[2].name, "pose");
  EXPECT_EQ(sets[2].manifold, "se3");
  EXPECT_EQ(sets[2].set.id, pose.id);
  EXPECT_EQ(sets[2].numbers, 7);
  EXPECT_EQ(sets[2].coordinates, 6);
  EXPECT_EQ(sets[0].blocks, 3);
  auto all = term_sets(problem);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "sparse");
  EXPECT_EQ(all[0].residuals, 2);
  EXPECT_EQ(all[0].data, 3);
  EXPECT_EQ(all[0].instances, 2);
  EXPECT_EQ(all[0].enabled, 2);
  EXPECT_EQ(all[0].loss, "huber:0.25");
  EXPECT_EQ(all[1].name, "loose");
  EXPECT_EQ(all[1].loss, "none");
  EXPECT_FALSE(all[1].weighted);

  problem.weigh(terms, std::vector<double>{2, 3});
  problem.enable(terms, 1, false);
  problem.fix(points, 2), problem.fix_coordinates(pose, 0, std::vector<int>{1, 5});
  problem.bound(points, 1, 1, -4, INFINITY);
  all = term_sets(problem);
  EXPECT_EQ(all[0].enabled, 1);
  EXPECT_TRUE(all[0].weighted);
  EXPECT_EQ(all[0].loss, "huber:0.25");
  const InstanceContent one = instance_content(problem, terms, 1);
  ASSERT_EQ(one.blocks.size(), 2u);
  EXPECT_EQ(one.blocks[0].slot, 0);
  EXPECT_EQ(one.blocks[0].block, 2);
  EXPECT_EQ(one.blocks[0].set.id, points.id);
  EXPECT_EQ(one.blocks[1].slot, 2);
  EXPECT_EQ(one.blocks[1].block, 1);
  EXPECT_EQ(one.data, (std::vector<std::pair<int, double>>{{1, 11}, {2, 12}}));
  EXPECT_EQ(one.weight, 3);
  EXPECT_FALSE(one.enabled);
  EXPECT_EQ(instances_of(problem, points, 1).size(), 2u);
  EXPECT_EQ(instances_of(problem, points, 0).size(), 1u);
  EXPECT_EQ(instances_of(problem, scale, 0).size(), 1u);  // the residual; sparse has it in no expression
  EXPECT_EQ(instances_of(problem, pose, 0)[0].first.id, all[1].terms.id);
  EXPECT_TRUE(block_content(problem, points, 2).fixed);
  EXPECT_FALSE(block_content(problem, points, 1).fixed);
  EXPECT_EQ(block_content(problem, pose, 0).held, (std::vector<int>{1, 5}));
  EXPECT_EQ(block_content(problem, points, 1).lower, (std::vector<double>{-INFINITY, -4}));
  EXPECT_EQ(block_content(problem, points, 1).upper, (std::vector<double>{INFINITY, INFINITY}));

  EXPECT_THROW(instance_content(problem, terms, 2), InputError);
  EXPECT_THROW(instances_of(problem, points, 3), InputError);
  EXPECT_THROW(block_content(problem, {7}, 0), InputError);
  problem.fix_coordinates(pose, 0, {});
  problem.enable(terms), problem.fix(points, 2, false), problem.bound(points, 1, 1, -INFINITY, INFINITY);
  const LinearPrior prior = marginalize(problem, shared_cpu(), points, std::vector<int64_t>{1});
  EXPECT_EQ(term_sets(problem).back().terms.id, prior.terms.id);
  EXPECT_TRUE(term_sets(problem).back().host);
  EXPECT_THROW(instance_content(problem, terms, 0), InputError);
  EXPECT_EQ(instance_content(problem, prior.terms, 0).blocks.size(), 2u);
  EXPECT_THROW(block_content(problem, points, 1), InputError);
}

/// A point turned by q, and its derivatives by hand.
TermType turned_point(const RobustLoss& loss = {}) {
  return {"turned",
          {4, 3},
          3,
          [](const TermArguments& a) {
            const autodiff::Vec3 there = rotate(a.quaternion(0), a.vec3(1));
            return std::vector<Value>{there[0] - a.data(0), there[1] - a.data(1), there[2] - a.data(2)};
          },
          loss};
}
std::vector<Value> turned_jacobian(const TermArguments& a) {
  std::vector<Value> out;
  for (int r = 0; r < 3; ++r) {
    const Value w = a.x(0, 0), x = a.x(0, 1), y = a.x(0, 2), z = a.x(0, 3);
    const autodiff::Vec3 u{{x, y, z}}, p = a.vec3(1);
    // p + 2 w (u x p) + 2 u x (u x p), by row.
    const autodiff::Vec3 up = cross(u, p);
    out.push_back(2.0 * up[r]);
    const Value up_dot = dot(u, p);
    for (int c = 0; c < 3; ++c) {
      // d/du of 2 w (u x p): the c-th unit vector crossed with p; of 2 (u (u.p) - p (u.u)).
      autodiff::Vec3 unit{
          {a.graph().constant(c == 0), a.graph().constant(c == 1), a.graph().constant(c == 2)}};
      out.push_back(2.0 * w * cross(unit, p)[r] + 2.0 * (unit[r] * up_dot + u[r] * p[c] - 2.0 * p[r] * u[c]));
    }
    for (int c = 0; c < 3; ++c) {
      autodiff::Vec3 unit{
          {a.graph().constant(c == 0), a.graph().constant(c == 1), a.graph().constant(c == 2)}};
      out.push_back(unit[r] + 2.0 * w * cross(u, unit)[r] + 2.0 * (u[r] * u[c] - unit[r] * dot(u, u)));
    }
  }
  return out;
}

TEST(GivenJacobians, StandInForDerivedOnes) {
  std::vector<double> turns = random_numbers(4 * 4, 3), points = random_numbers(5 * 3, 4);
  normalize_rows(turns, 4, 0, 4);
  const std::vector<int32_t> pairs = {0, 0, 1, 1, 2, 2, 3, 3, 0, 4, 1, 0, 2, 1, 3, 2};
  const std::vector<double> seen = random_numbers(8 * 3, 5);
  const auto evaluated = [&](bool given) {
    Problem problem;
    const BlockSet q = problem.add_blocks("q", so3(), turns),
                   p = problem.add_blocks("p", euclidean(3), points);
    const TermType type = turned_point({RobustLoss::Kind::cauchy, 0.5});
    if (given)
      add_terms_with_jacobian(problem, type, turned_jacobian, {q, p}, pairs, seen);
    else
      problem.add_terms(type, {q, p}, pairs, seen);
    return evaluate(problem, shared_cpu());
  };
  const Evaluation expected = evaluated(false), got = evaluated(true);
  EXPECT_EQ(got.residuals, expected.residuals);
  EXPECT_EQ(got.cost, expected.cost);
  ASSERT_EQ(got.jacobian.values.size(), expected.jacobian.values.size());
  for (size_t k = 0; k < got.jacobian.values.size(); ++k)
    EXPECT_NEAR(got.jacobian.values[k], expected.jacobian.values[k], 1e-13);
}

TEST(GivenJacobians, MakeStepsMinimisable) {
  // A quantised reading: the residual has no slope of its own, the given one is that of the line behind it.
  TermType type{"steps", {1}, 1, [](const TermArguments& a) {
                  return std::vector<Value>{floor(a.x(0) * 64.0) / 64.0 - a.data(0)};
                }};
  const auto slope = [](const TermArguments& a) { return std::vector<Value>{a.graph().constant(1)}; };
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{3});
  problem.add_terms(with_jacobian(type, slope), {x}, std::vector<int32_t>{0}, std::vector<double>{0.5});
  EXPECT_LT(minimize(problem, shared_cpu()).final_cost, 1e-20);
}

TEST(GivenJacobians, ThatAreWrongAreNamed) {
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(2), std::vector<double>{1, 2, 3, 4});
  const TermType type{
      "product", {2}, 0, [](const TermArguments& a) { return std::vector<Value>{a.x(0, 0) * a.x(0, 1)}; }};
  const auto add = [&](const GivenJacobian& jacobian, const TermType& of) {
    add_terms_with_jacobian(problem, of, jacobian, {x}, std::vector<int32_t>{0, 1}, {});
  };
  const auto message = [&](const GivenJacobian& jacobian, const TermType& of) -> std::string {
    try {
      add(jacobian, of);
    } catch (const InputError& error) { return error.what(); }
    return "";
  };
  const auto swapped = [](const TermArguments& a) { return std::vector<Value>{a.x(0, 0), a.x(0, 1)}; };
  EXPECT_NE(message(swapped, type)
                .find("instance 0 of product: the derivative of residual 0 to coordinate 0 of block x 0"),
            std::string::npos)
      << message(swapped, type);
  const auto three = [](const TermArguments& a) {
    return std::vector<Value>{a.x(0, 0), a.x(0, 1), a.x(0, 1)};
  };
  EXPECT_NE(message(three, type).find("a Jacobian of 3 numbers"), std::string::npos);
  EXPECT_NE(message({}, type).find("no Jacobian"), std::string::npos);
  TermType energy = type;
  energy.energy = true;
  EXPECT_NE(message(swapped, energy).find("energy"), std::string::npos);
  EXPECT_EQ(problem.residual_count(), 0);
  EXPECT_TRUE(term_sets(problem).empty());
  add([](const TermArguments& a) { return std::vector<Value>{a.x(0, 1), a.x(0, 0)}; }, type);
  EXPECT_EQ(problem.residual_count(), 2);
}

}  // namespace
}  // namespace lockstep::solve::test
