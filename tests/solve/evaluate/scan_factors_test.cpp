// Residuals of scans, directions and poses by logarithm away from zero, with weights that are no unit, against Eigen's
// transformations; errors of half a turn; rows of data.
#include <cmath>

#include "core/refusal.hpp"
#include "factor_checks.hpp"
#include "lockstep/solve/factors.hpp"

namespace lockstep::solve::test {
namespace {

using Eigen::Vector2d, Eigen::Vector3d, Eigen::Matrix3d, Eigen::MatrixXd, Eigen::VectorXd;
using lockstep::test::refusal;
using Row = std::vector<double>;

Row row(const Eigen::VectorXd& v) { return {v.data(), v.data() + v.size()}; }

/// A problem of one instance whose slots are all the blocks of one set.
Problem of_poses(const TermType& type, const Manifold& manifold, const Row& poses, const Row& data) {
  Problem problem;
  const BlockSet set = problem.add_blocks("poses", manifold, poses);
  std::vector<int32_t> indices;
  for (size_t k = 0; k < type.slots.size(); ++k) indices.push_back(int32_t(k));
  problem.add_terms(type, std::vector<BlockSet>(type.slots.size(), set), indices, data);
  return problem;
}

TEST(ScanFactors, PointsMatchPointsAndPlanesInSpace) {
  const Row two = poses3(2, 21), one(two.begin(), two.begin() + 7);
  const Eigen::Isometry3d a = isometry3(&two[0]), b = isometry3(&two[7]);
  const Vector3d p(0.4, -1.3, 2.2), q(0.9, 0.2, -0.6), n(0.3, -0.5, 0.8);
  Row w;
  const MatrixXd weight = weights(3, w);
  const Row points = point_to_point_data(row(p), row(q), w);
  const Row plane = point_to_plane_data(row(p), row(q), row(7 * n), 0.2);
  const Vector3d off = a * p - q, between = a.inverse() * (b * p) - q;
  expect_residuals(of_poses(se3_point_to_point(), se3(), one, points), weight * off);
  expect_residuals(of_poses(se3_point_to_point_between(), se3(), two, points), weight * between);
  expect_residuals(of_poses(se3_point_to_plane(), se3(), one, plane),
                   VectorXd::Constant(1, n.normalized().dot(off) / 0.2));
  expect_residuals(of_poses(se3_point_to_plane_between(), se3(), two, plane),
                   VectorXd::Constant(1, n.normalized().dot(between) / 0.2));
}

TEST(ScanFactors, PointsMatchPointsAndLinesInThePlane) {
  const Row two{0.3, -0.7, 0.6, 1.4, 0.5, -2.1}, one(two.begin(), two.begin() + 3);
  const Eigen::Isometry2d a = isometry2(&two[0]), b = isometry2(&two[3]);
  const Vector2d p(0.4, -1.3), q(0.9, 0.2), n(0.3, -0.5);
  Row w;
  const MatrixXd weight = weights(2, w);
  const Row points = point_to_point_data(row(p), row(q), w);
  const Row line = point_to_plane_data(row(p), row(q), row(n), 0.2);
  const Vector2d off = a * p - q, between = a.inverse() * (b * p) - q;
  expect_residuals(of_poses(se2_point_to_point(), se2(), one, points), weight * off);
  expect_residuals(of_poses(se2_point_to_point_between(), se2(), two, points), weight * between);
  expect_residuals(of_poses(se2_point_to_line(), se2(), one, line),
                   VectorXd::Constant(1, n.normalized().dot(off) / 0.2));
  expect_residuals(of_poses(se2_point_to_line_between(), se2(), two, line),
                   VectorXd::Constant(1, n.normalized().dot(between) / 0.2));
}

/// The exponential of the twist (x, y, angle) as a matrix, by its series.
Matrix3d plane_exponential(const Vector3d& v) {
  Matrix3d twist = Matrix3d::Zero();
  twist << 0, -v[2], v[0], v[2], 0, v[1], 0, 0, 0;
  Matrix3d sum = Matrix3d::Identity(), power = sum;
  for (int k = 1; k < 60; ++k) power = power * twist / k, sum += power;
  return sum;
}

// Z^-1 A^-1 B = exp(v) by construction, so that the residual is W v.
TEST(ScanFactors, PosesOfThePlaneByLogarithmAreTheWhitenedTwist) {
  for (const double angle : {0.0, 1e-9, 1e-4, 0.0011, 0.7, -2.0, 3.1}) {
    const Vector3d v(0.8, -0.4, angle);
    const Row a{0.3, -0.7, 2.6}, z{0.2, 0.9, -0.8};
    const Eigen::Isometry2d az = isometry2(a.data()) * isometry2(z.data());
    const Matrix3d b = az.matrix() * plane_exponential(v);
    const Row at{b(0, 2), b(1, 2), std::atan2(b(1, 0), b(0, 0))};
    Row w, both = a;
    const MatrixXd weight = weights(3, w);
    both.insert(both.end(), at.begin(), at.end());
    expect_residuals(of_poses(se2_between_log(), se2(), both, se2_between_data(z, w)), weight * v);
    const Row there{az.translation()[0], az.translation()[1], a[2] + z[2]};
    expect_residuals(of_poses(se2_pose_prior_log(), se2(), at, se2_between_data(there, w)), weight * v);
  }
}

TEST(ScanFactors, DirectionsAreAnglesAlongGreatCircles) {
  const Row pose = poses3(1, 8);
  const Vector3d point(0.6, -0.4, 5.2), seen = (isometry3(pose.data()).inverse() * point).normalized();
  const Vector3d across = seen.cross(Vector3d(0.3, 0.5, -0.2)).normalized();
  ContextOptions interp;
  interp.device = "interp";
  Context context(interp);
  for (const double angle : {0.0, 1e-7, 9e-4, 0.0011, 0.4, 1.5, 1.6, 3.0}) {
    const Vector3d z = std::cos(angle) * seen + std::sin(angle) * across;
    Problem problem;
    const BlockSet poses = problem.add_blocks("pose", se3(), pose),
                   points = problem.add_blocks("point", euclidean(3), row(point));
    problem.add_terms(se3_bearing_to(), {poses, points}, std::vector<int32_t>{0, 0},
                      bearing_data(row(3 * z), 0.2));
    const Evaluation e = evaluate(problem, context);
    ASSERT_EQ(e.residuals.size(), 2u);
    // The tangent vector at z that leads to the direction: its length is the angle, and it is in their plane.
    EXPECT_NEAR(std::hypot(e.residuals[0], e.residuals[1]), angle / 0.2, 1e-12) << angle;
    for (const DerivativeFault& fault : check_derivatives(problem, {.spread = 0.001}))
      ADD_FAILURE() << angle << " " << fault.text();
  }
}

/// Errors of exactly half a turn are minimised: nothing is flat or undefined there.
TEST(ScanFactors, HalfATurnIsMinimised) {
  ContextOptions cpu;
  cpu.device = "cpu";
  Context context(cpu);
  const Row w3 = w_from_standard_deviations(Row(3, 0.1));
  Problem plane = of_poses(se2_pose_prior_log(), se2(), {1, 2, M_PI}, se2_between_data(Row{0, 0, 0}, w3));
  Problem opposite;
  const BlockSet pose = opposite.add_blocks("pose", se3(), Row{0, 0, 0, 1, 0, 0, 0}),
                 point = opposite.add_blocks("point", euclidean(3), Row{0, 0, -4});
  opposite.fix(point, 0);
  opposite.add_terms(se3_bearing_to(), {pose, point}, std::vector<int32_t>{0, 0},
                     bearing_data(Row{0, 0, 1}, 0.1));
  for (Problem* problem : {&plane, &opposite}) {
    const double before = evaluate(*problem, context).cost;
    EXPECT_TRUE(std::isfinite(before));
    const Summary summary = minimize(*problem, context);
    EXPECT_TRUE(converged(summary.termination)) << summary.message;
    EXPECT_LT(summary.final_cost, 1e-12 * before);
  }
}

TEST(ScanFactors, RowsOfDataAreChecked) {
  EXPECT_EQ(range_data(2, 0.5), (Row{2, 0.5}));
  EXPECT_EQ(bearing_data(0.3, 0.5), (Row{0.3, 0.5}));
  EXPECT_EQ(bearing_data(Row{0, 3, 4}, 0.5), (Row{0, 0.6, 0.8, 0.5}));
  EXPECT_EQ(point_data(Row{1, 2}, Row{3, 4, 5}), (Row{1, 2, 3, 4, 5}));
  EXPECT_EQ(projection_data(300, 200, 0.5), (Row{300, 200, 0.5}));
  const auto says = [](auto f, const char* what) {
    EXPECT_NE(refusal(f).find(what), std::string::npos) << refusal(f);
  };
  const Row p{1, 2, 3}, w(6, 1);
  says([] { range_data(NAN, 1); }, "z with nan");
  says([] { range_data(1, 0); }, "standard deviation 0");
  says([] { bearing_data(1, -1); }, "standard deviation -1");
  says([&] { bearing_data(Row{0, 0, 0}, 1); }, "direction without length");
  says([&] { bearing_data(Row{1, 0}, 1); }, "direction of 2 numbers");
  says([&] { point_data(p, Row{1, 2, 3}); }, "W of 3 numbers");
  says([&] { point_data(Row{1}, w); }, "z of 1 numbers");
  says([&] { point_to_point_data(p, Row{1, 2}, w); }, "q of 2 numbers");
  says([&] { point_to_plane_data(p, p, Row{0, 0, 0}, 1); }, "normal without length");
  says([&] { point_to_plane_data(p, p, p, INFINITY); }, "standard deviation inf");
  says([&] { projection_data(1, INFINITY, 1); }, "pixel with inf");
}

}  // namespace
}  // namespace lockstep::solve::test
