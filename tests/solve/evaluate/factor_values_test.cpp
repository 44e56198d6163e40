// Ready-made residuals away from zero: against Eigen's transformations and formulas written out, with weights that are no
// unit, and derivatives against differences.
#include <gtest/gtest.h>

#include <cmath>

#include "factor_checks.hpp"
#include "lockstep/solve/factors.hpp"

namespace lockstep::solve::test {
namespace {

using Eigen::Isometry2d, Eigen::Isometry3d, Eigen::MatrixXd, Eigen::VectorXd;
using Numbers = std::vector<double>;

constexpr double kPoint3[] = {0.6, -0.4, 5.2}, kPoint2[] = {2.5, -1.2};

VectorXd error3(const Isometry3d& e) {
  Eigen::Quaterniond q(e.linear());
  if (q.w() < 0) q.coeffs() *= -1;
  VectorXd v(6);
  v << e.translation(), q.vec();
  return v;
}
VectorXd error2(const Isometry2d& e) {
  VectorXd v(3);
  v << e.translation(), std::atan2(e.linear()(1, 0), e.linear()(0, 0));
  return v;
}

TEST(FactorValues, RelativePosesAndPriorsInSpace) {
  for (const uint64_t seed : {3, 4, 5, 6}) {
    const Numbers x = poses3(3, seed);
    Numbers data(x.begin() + 14, x.end());
    const Isometry3d a = isometry3(&x[0]), b = isometry3(&x[7]), z = isometry3(&x[14]);
    const MatrixXd w = weights(6, data);
    Problem between, prior;
    const BlockSet two = between.add_blocks("poses", se3(), Numbers(x.begin(), x.begin() + 14));
    between.add_terms(se3_between(), {two, two}, std::vector<int32_t>{0, 1}, data);
    expect_residuals(between, w * error3(z.inverse() * a.inverse() * b));
    const BlockSet one = prior.add_blocks("pose", se3(), Numbers(x.begin(), x.begin() + 7));
    prior.add_terms(se3_pose_prior(), {one}, std::vector<int32_t>{0}, data);
    expect_residuals(prior, w * error3(z.inverse() * a));
  }
}

TEST(FactorValues, RelativePosesAndPriorsInThePlane) {
  const Numbers x{0.3, -0.7, 0.6, 1.4, 0.5, -1.1}, z{0.2, 0.9, -0.8};
  const Isometry2d a = isometry2(&x[0]), b = isometry2(&x[3]), seen = isometry2(z.data());
  Numbers numbers;
  const MatrixXd w = weights(3, numbers);
  Problem between, prior;
  const BlockSet two = between.add_blocks("poses", se2(), x);
  between.add_terms(se2_between(), {two, two}, std::vector<int32_t>{0, 1}, se2_between_data(z, numbers));
  expect_residuals(between, w * error2(seen.inverse() * a.inverse() * b));
  const BlockSet one = prior.add_blocks("pose", se2(), Numbers(x.begin(), x.begin() + 3));
  prior.add_terms(se2_pose_prior(), {one}, std::vector<int32_t>{0}, se2_between_data(z, numbers));
  expect_residuals(prior, w * error2(seen.inverse() * a));
}

TEST(FactorValues, PointsBearingsAndRanges) {
  const Numbers flat{0.3, -0.7, 0.6}, space = poses3(1, 8);
  const Eigen::Vector2d p2(kPoint2[0], kPoint2[1]);
  const Eigen::Vector3d p3(kPoint3[0], kPoint3[1], kPoint3[2]);
  const Eigen::Vector2d seen2 = isometry2(flat.data()).inverse() * p2;
  const Eigen::Vector3d seen3 = isometry3(space.data()).inverse() * p3;
  const auto in_plane = [&](const TermType& type, const Numbers& data, const VectorXd& expected) {
    Problem problem;
    const BlockSet pose = problem.add_blocks("pose", se2(), flat),
                   point = problem.add_blocks("point", euclidean(2), Numbers(kPoint2, kPoint2 + 2));
    problem.add_terms(type, {pose, point}, std::vector<int32_t>{0, 0}, data);
    expect_residuals(problem, expected);
  };
  const auto in_space = [&](const TermType& type, const Numbers& data, const VectorXd& expected) {
    Problem problem;
    const BlockSet pose = problem.add_blocks("pose", se3(), space),
                   point = problem.add_blocks("point", euclidean(3), Numbers(kPoint3, kPoint3 + 3));
    problem.add_terms(type, {pose, point}, std::vector<int32_t>{0, 0}, data);
    expect_residuals(problem, expected);
  };
  Numbers data2{0.4, -0.3}, data3{0.4, -0.3, 0.9};
  const MatrixXd w2 = weights(2, data2), w3 = weights(3, data3);
  in_plane(se2_point(), data2, w2 * (seen2 - Eigen::Vector2d(0.4, -0.3)));
  in_space(se3_point(), data3, w3 * (seen3 - Eigen::Vector3d(0.4, -0.3, 0.9)));
  in_plane(se2_bearing_to(), {0.25, 0.2},
           VectorXd::Constant(1, (std::atan2(seen2.y(), seen2.x()) - 0.25) / 0.2));
  in_plane(range_to(2), {1.25, 0.2}, VectorXd::Constant(1, (seen2.norm() - 1.25) / 0.2));
  in_space(range_to(3), {1.25, 0.2}, VectorXd::Constant(1, (seen3.norm() - 1.25) / 0.2));
}

TEST(FactorValues, ProjectionsOfEveryCamera) {
  const Numbers pose{0.1, -0.2, 0.3, 0.98, 0.1, -0.15, 0.05};
  Numbers unit = pose;
  normalize_rows(unit, 7, 3, 4);
  const Eigen::Vector3d p = isometry3(unit.data()) * Eigen::Vector3d(kPoint3[0], kPoint3[1], kPoint3[2]);
  const double x = p.x() / p.z(), y = p.y() / p.z(), r = std::hypot(x, y), r2 = r * r, t = std::atan(r);
  const double bent =
      t * (1 + 0.1 * std::pow(t, 2) - 0.02 * std::pow(t, 4) + 0.3 * std::pow(t, 6) - 0.4 * std::pow(t, 8)) /
      r;
  const double grown = 1 - 0.3 * r2 + 0.1 * r2 * r2 + 0.2 * r2 * r2 * r2;
  struct Row {
    CameraModel model;
    Numbers intrinsics;
    double u, v;
  };
  for (const Row& row : {Row{CameraModel::pinhole, {500, 510, 320, 240}, 500 * x + 320, 510 * y + 240},
                         Row{CameraModel::radial,
                             {500, 320, 240, -0.2, 0.05},
                             500 * x * (1 - 0.2 * r2 + 0.05 * r2 * r2) + 320,
                             500 * y * (1 - 0.2 * r2 + 0.05 * r2 * r2) + 240},
                         Row{CameraModel::brown_conrady,
                             {500, 510, 320, 240, -0.3, 0.1, 0.02, -0.01, 0.2},
                             500 * (x * grown + 0.04 * x * y - 0.01 * (r2 + 2 * x * x)) + 320,
                             510 * (y * grown + 0.02 * (r2 + 2 * y * y) - 0.02 * x * y) + 240},
                         Row{CameraModel::fisheye,
                             {500, 510, 320, 240, 0.1, -0.02, 0.3, -0.4},
                             500 * bent * x + 320,
                             510 * bent * y + 240}}) {
    Problem problem;
    const BlockSet poses = problem.add_blocks("pose", se3(), unit),
                   cameras =
                       problem.add_blocks("camera", euclidean(int(row.intrinsics.size())), row.intrinsics),
                   points = problem.add_blocks("point", euclidean(3), Numbers(kPoint3, kPoint3 + 3));
    problem.add_terms(projection(row.model), {poses, cameras, points}, std::vector<int32_t>{0, 0, 0},
                      Numbers{300, 250, 0.4});
    VectorXd expected(2);
    expected << (row.u - 300) / 0.4, (row.v - 250) / 0.4;
    expect_residuals(problem, expected);
  }
}

}  // namespace
}  // namespace lockstep::solve::test
