// Planes and lines as unknowns, and the table of factors: recovered truths, other worlds, half turns, rows of data.
#include <Eigen/Geometry>
#include <cmath>
#include <set>

#include "core/refusal.hpp"
#include "factor_checks.hpp"
#include "lockstep/solve/factors.hpp"

namespace lockstep::solve::test {
namespace {

using Eigen::Vector3d, Eigen::VectorXd, Eigen::MatrixXd, Eigen::Quaterniond, Eigen::Isometry3d;
using lockstep::test::refusal;
using Row = std::vector<double>;

Context& interp_of_landmarks() {
  static Context context({.device = "interp"});
  return context;
}
Row row_of(const Isometry3d& x) {
  const Quaterniond q(x.rotation());
  return {x.translation()[0], x.translation()[1], x.translation()[2], q.w(), q.x(), q.y(), q.z()};
}
Isometry3d world_turned() {
  Isometry3d x = Isometry3d::Identity();
  x.linear() = Quaterniond(0.5, -0.5, 0.1, 0.7).normalized().toRotationMatrix();
  x.translation() << 2, -3, 1;
  return x;
}

// A plane is the same points in every world; its distance from a pose is what the pose sees.
TEST(LandmarkFactors, PlanesSeenFromPoses) {
  const Row pose = poses3(1, 5);
  const Vector3d n = Vector3d(0.3, -0.5, 0.8).normalized(), z = Vector3d(-0.2, 0.4, 1).normalized();
  const double d = 1.7;
  Row w;
  const MatrixXd weight = weights(3, w);
  VectorXd before;
  for (const Isometry3d& world : {Isometry3d(Isometry3d::Identity()), world_turned()}) {
    const Isometry3d x = world * isometry3(pose.data());
    const Vector3d there = world.linear() * n;
    const double distance = d + there.dot(world.translation());
    Problem problem;
    const BlockSet poses = problem.add_blocks("poses", se3(), row_of(x));
    const BlockSet planes =
        problem.add_blocks("planes", plane_landmark(), Row{there[0], there[1], there[2], distance});
    const Row data = plane_data(Row{3 * z[0], 3 * z[1], 3 * z[2]}, 3 * 0.4, w);
    problem.add_terms(se3_plane(), {poses, planes}, std::vector<int32_t>{0, 0}, data);
    for (const DerivativeFault& fault : check_derivatives(problem, {.spread = 0.01}))
      ADD_FAILURE() << fault.text();
    const Row found = evaluate(problem, interp_of_landmarks()).residuals;
    const VectorXd e = weight.inverse() * Eigen::Map<const VectorXd>(found.data(), 3);
    const Vector3d seen = x.linear().transpose() * there;
    EXPECT_NEAR(e.head(2).norm(), std::acos(seen.dot(z)), 1e-12);  // the angle between the normals
    EXPECT_NEAR(e[2], distance - there.dot(x.translation()) - 0.4, 1e-12);
    if (before.size()) { EXPECT_LT((e - before).norm(), 1e-12); }
    before = e;
  }
}

// A plane seen from behind is half a turn off, and a minimisation turns it.
TEST(LandmarkFactors, APlaneSeenFromBehindTurns) {
  Problem problem;
  const BlockSet poses = problem.add_blocks("poses", se3(), Row{0, 0, 0, 1, 0, 0, 0});
  const BlockSet planes = problem.add_blocks("planes", plane_landmark(), Row{0, 0, -1, 2});
  problem.add_terms(se3_plane(), {poses, planes}, std::vector<int32_t>{0, 0},
                    plane_data(Row{0, 0, 1}, 2, w_from_standard_deviations(Row{0.1, 0.1, 0.1})));
  problem.fix(poses, 0);
  EXPECT_NEAR(evaluate(problem, interp_of_landmarks()).cost, 0.5 * std::pow(M_PI / 0.1, 2), 1e-6);
  EXPECT_LT(minimize(problem, interp_of_landmarks()).final_cost, 1e-15);
  EXPECT_NEAR(problem.values(planes)[2], 1, 1e-9);
}

// Points of bodies on unknown planes and lines, from a start that is off: the truth is found.
TEST(LandmarkFactors, PointsFindTheirPlanesAndLines) {
  const Row pose = poses3(3, 9);
  const Quaterniond turn = Quaterniond(0.7, 0.2, -0.4, 0.5).normalized();
  const Vector3d n = Vector3d(0.3, -0.5, 0.8).normalized();
  Problem problem;
  const BlockSet poses = problem.add_blocks("poses", se3(), pose);
  const BlockSet planes = problem.add_blocks(
      "planes", plane_landmark(),
      Row{Vector3d(0.4, -0.4, 0.8).normalized()[0], Vector3d(0.4, -0.4, 0.8).normalized()[1],
          Vector3d(0.4, -0.4, 0.8).normalized()[2], 1});
  const Quaterniond off = Quaterniond(0.72, 0.25, -0.38, 0.45).normalized();
  const BlockSet lines =
      problem.add_blocks("lines", line_landmark(3), Row{off.w(), off.x(), off.y(), off.z(), 1.5});
  Row on_plane, on_line;
  std::vector<int32_t> which;
  for (int k = 0; k < 12; ++k) {
    const Isometry3d x = isometry3(&pose[size_t(k % 3) * 7]);
    const Vector3d across = n.unitOrthogonal(), up = n.cross(across);
    const Vector3d p = x.inverse() * Vector3d(1.3 * n + std::sin(k) * across + std::cos(2.1 * k) * up);
    const Vector3d l = x.inverse() * (turn * Vector3d(1.8, 0, 0.4 * k - 2));
    for (const double v : landmark_point_data(Row{p[0], p[1], p[2]}, 0.1)) on_plane.push_back(v);
    for (const double v : line_point_data(Row{l[0], l[1], l[2]}, w_from_standard_deviations(Row{0.1, 0.2})))
      on_line.push_back(v);
    which.push_back(k % 3), which.push_back(0);
  }
  problem.add_terms(se3_point_on_plane(), {poses, planes}, which, on_plane);
  problem.add_terms(se3_point_on_line(), {poses, lines}, which, on_line);
  for (int k = 0; k < 3; ++k) problem.fix(poses, k);
  for (const DerivativeFault& fault : check_derivatives(problem, {.spread = 0.01}))
    ADD_FAILURE() << fault.text();
  EXPECT_LT(minimize(problem, interp_of_landmarks()).final_cost, 1e-15);
  const auto plane = problem.values(planes);
  EXPECT_NEAR(Vector3d(plane[0], plane[1], plane[2]).dot(n), 1, 1e-12);
  EXPECT_NEAR(plane[3], 1.3, 1e-8);
  const auto line = problem.values(lines);
  const Quaterniond found(line[0], line[1], line[2], line[3]);
  EXPECT_NEAR(std::abs((found * Vector3d::UnitZ()).dot(turn * Vector3d::UnitZ())), 1, 1e-12);
  EXPECT_LT((found * Vector3d(line[4], 0, 0) - turn * Vector3d(1.8, 0, 0)).norm(), 1e-7);
}

TEST(LandmarkFactors, PointsFindTheirLineInThePlane) {
  Problem problem;
  const BlockSet poses = problem.add_blocks("poses", se2(), Row{0.3, -0.7, 0.6, 1.4, 0.5, -2.1});
  const BlockSet lines = problem.add_blocks("lines", line_landmark(2), Row{3.0, 0.5});
  Row data;
  std::vector<int32_t> which;
  const double angle = -3.1, distance = 0.8;  // across the cut of the angle
  for (int k = 0; k < 8; ++k) {
    const Eigen::Isometry2d x = isometry2(&problem.values(poses)[size_t(k % 2) * 3]);
    const Eigen::Vector2d n(std::cos(angle), std::sin(angle)),
        p = x.inverse() * (distance * n + k * Eigen::Vector2d(-n[1], n[0]));
    for (const double v : landmark_point_data(Row{p[0], p[1]}, 0.1)) data.push_back(v);
    which.push_back(k % 2), which.push_back(0);
  }
  problem.add_terms(se2_point_on_line(), {poses, lines}, which, data);
  problem.fix(poses, 0), problem.fix(poses, 1);
  EXPECT_LT(minimize(problem, interp_of_landmarks()).final_cost, 1e-15);
  EXPECT_NEAR(problem.values(lines)[0], angle, 1e-9);
  EXPECT_NEAR(problem.values(lines)[1], distance, 1e-9);
}

// Every factor of the table takes the rows that its maker makes, has other names than the rest, and weights that scale it.
TEST(FactorTable, RowsAreThoseOfTheirFactors) {
  std::set<std::string> names;
  for (const Factor& f : factors()) {
    SCOPED_TRACE(std::string(f.name));
    EXPECT_TRUE(names.emplace(f.name).second);
    EXPECT_EQ(&factor_named(f.name), &f);
    Row z(size_t(f.measured), 0.25);
    if (f.measured == 7) z = {0.1, 0.2, 0.3, 1, 0, 0, 0};
    const auto made = [&](double deviation) {
      Row w;
      if (f.errors) w = w_from_standard_deviations(Row(size_t(f.errors), deviation));
      return f.row(z, w);
    };
    const TermType type = f.make({});
    EXPECT_EQ(made(0.5).size(), size_t(type.data));
    if (f.errors == 0) continue;
    const auto residuals = [&](double deviation) {
      Problem problem;
      std::vector<BlockSet> sets;
      std::vector<int32_t> indices(type.slots.size(), 0);
      for (size_t s = 0; s < type.slots.size(); ++s) {
        Row x = random_numbers(size_t(type.slots[s]), 40 + s);
        if (x.size() == 7) x = poses3(1, 50 + s);
        if (x.size() == 3 && f.name.starts_with("se3")) x[2] += 4;
        sets.push_back(problem.add_blocks("block", euclidean(int(x.size())), x));
      }
      problem.add_terms(type, sets, indices, made(deviation));
      return evaluate(problem, interp_of_landmarks()).residuals;
    };
    const Row once = residuals(0.5), twice = residuals(0.25);
    for (size_t k = 0; k < once.size(); ++k)
      EXPECT_NEAR(twice[k], 2 * once[k], 1e-12 * (1 + std::abs(twice[k])));
  }
  EXPECT_NE(refusal([] { factor_named("se4"); }).find("factor 'se4'"), std::string::npos);
  EXPECT_NE(refusal([] { (void)plane_data(Row{0, 0, 0}, 1, Row(6, 1.0)); }).find("without length"),
            std::string::npos);
  EXPECT_NE(refusal([] { (void)landmark_point_data(Row{0, 0, 0}, -1); }).find("deviation -1"),
            std::string::npos);
  EXPECT_NE(refusal([] { (void)line_point_data(Row{0, 0}, Row(3, 1.0)); }).find("p of 2 numbers"),
            std::string::npos);
  EXPECT_NE(refusal([] { (void)line_landmark(4); }).find("dimension 4"), std::string::npos);
}

// A Jacobian that is right where terms are added and wrong elsewhere.
TEST(HostTermDerivatives, AreCheckedWhereTheProblemStands) {
  HostTerm term{.name = "square", .slots = {2}, .residuals = 2};
  term.residual = [](const HostInstance& at, std::span<double> r) {
    r[0] = at.blocks[0][0] * at.blocks[0][0], r[1] = at.blocks[0][0] * at.blocks[0][1];
  };
  term.jacobian = [](const HostInstance& at, std::span<double> j) {
    j[0] = 2 * at.blocks[0][0], j[1] = 0, j[2] = at.blocks[0][1];
    j[3] = at.blocks[0][1] > 5 ? 1 : at.blocks[0][0];
  };
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(2), Row{3, 4, 3, 2});
  problem.add_terms(term, {x}, std::vector<int32_t>{0, 1});
  EXPECT_TRUE(check_derivatives(problem).empty());
  problem.value(x, 1)[1] = 6;
  const std::vector<DerivativeFault> faults = check_derivatives(problem);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].name, "square");
  EXPECT_EQ(faults[0].instance, 1);
  EXPECT_EQ(faults[0].row, 1);
  EXPECT_EQ(faults[0].coordinate, 1);
  EXPECT_EQ(faults[0].derivative, 1);
  EXPECT_NEAR(faults[0].difference, 3, 0.2);
}

}  // namespace
}  // namespace lockstep::solve::test
