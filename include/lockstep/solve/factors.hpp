// Ready-made residuals: relative poses, priors, points, bearings, ranges, planes, lines and cameras. Poses are blocks
// of se2()
// (x, y, angle) or se3() (translation, quaternion w x y z), from the body's frame to the world's. W is upper
// triangular with information W^T W, by rows: three numbers of a 2 x 2 matrix, six of 3 x 3, 21 of 6 x 6.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

// ── poses as values ──

/// In the plane: (x, y, angle). The angle of a result is not wrapped.
std::vector<Value> se2_compose(std::span<const Value> a, std::span<const Value> b);
std::vector<Value> se2_inverse(std::span<const Value> a);
/// Tangent vector (dx, dy, dangle) of the group's exponential map, and back; the angle of log is in [-pi, pi).
std::vector<Value> se2_exp(std::span<const Value> tangent);
std::vector<Value> se2_log(std::span<const Value> a);
/// In space: (t, q).
std::vector<Value> se3_compose(std::span<const Value> a, std::span<const Value> b);
std::vector<Value> se3_inverse(std::span<const Value> a);
/// Tangent vector (rho, phi) of the group's exponential map, and back: phi is the rotation vector, of at most pi, and the
/// translation is V(phi) rho.
std::vector<Value> se3_exp(std::span<const Value> tangent);
std::vector<Value> se3_log(std::span<const Value> a);
/// A pose of the frame `a` applied to a point of the body, and its inverse.
autodiff::Vec3 se3_act(std::span<const Value> a, const autodiff::Vec3& point);
autodiff::Vec3 se3_act_inverse(std::span<const Value> a, const autodiff::Vec3& point);

// ── poses ──

/// W (translation, angle) of Z^-1 Xi^-1 Xj, as g2o. Slots: two poses. Data: z (x, y, angle), cos and sin of its
/// angle, W: 11 numbers; se2_between_data() makes them.
TermType se2_between(const RobustLoss& loss = {});
/// W (translation, vec q) of Z^-1 Xi^-1 Xj with q's w >= 0, as g2o. Data: z (7), W: 28 numbers. |vec q| is the sine of
/// half the angle: near zero half of it in radians, and at an error of 180 degrees without slope. Where errors may be that
/// large, or W is about radians, use se3_between_log().
TermType se3_between(const RobustLoss& loss = {});
/// W (translation, angle) of Z^-1 X. Slot: a pose. Data as se2_between.
TermType se2_pose_prior(const RobustLoss& loss = {});
/// W (translation, vec q) of Z^-1 X. Data as se3_between.
TermType se3_pose_prior(const RobustLoss& loss = {});
/// W se2_log(Z^-1 Xi^-1 Xj), and W se2_log(Z^-1 X). Data as se2_between.
TermType se2_between_log(const RobustLoss& loss = {});
TermType se2_pose_prior_log(const RobustLoss& loss = {});
/// W se3_log(Z^-1 Xi^-1 Xj), and W se3_log(Z^-1 X): rotation vectors in radians. Data: z (7), W: 28 numbers.
TermType se3_between_log(const RobustLoss& loss = {});
TermType se3_pose_prior_log(const RobustLoss& loss = {});

/// W of n errors from their standard deviations (n), their covariance (n, n) or its inverse, the information. Returns
/// the n (n + 1) / 2 numbers of the data rows. Throws InputError if a deviation is not positive or a matrix is not
/// symmetric and positive definite.
std::vector<double> w_from_standard_deviations(std::span<const double> deviations);
std::vector<double> w_from_covariance(std::span<const double> covariance);
std::vector<double> w_from_information(std::span<const double> information);
/// Rows of data of se2_between(), se2_pose_prior() and the same by logarithm. `w`: (6).
std::vector<double> se2_between_data(std::span<const double> z, std::span<const double> w);
/// Rows of data of se3_between_log() and se3_pose_prior_log(). `w`: (21), rotations in radians.
std::vector<double> se3_between_log_data(std::span<const double> z, std::span<const double> w);
/// Rows of data of se3_between() and se3_pose_prior(), whose residuals are half as large: `w` (21) refers to
/// rotations in radians, and its numbers for vec q are doubled.
std::vector<double> se3_between_data_from_radians(std::span<const double> z, std::span<const double> w);

// ── points seen from poses ──

/// W (R^T (l - t) - z). Slots: pose, point. Data: z, W: 5 numbers; in space 9.
TermType se2_point(const RobustLoss& loss = {});
TermType se3_point(const RobustLoss& loss = {});
/// (angle of R^T (l - t), less z) / sigma, in [-pi, pi) / sigma. Slots: pose of the plane, point. Data: z, sigma.
TermType se2_bearing_to(const RobustLoss& loss = {});
/// The direction of R^T (l - t) less the unit vector z, along the great circle from z, in radians over sigma: 2 residuals
/// that span an angle of up to pi. Slots: pose of space, point. Data: z (3), sigma.
TermType se3_bearing_to(const RobustLoss& loss = {});
/// (|l - t| - z) / sigma. Slots: pose, point of the same dimension (2 or 3). Data: z, sigma.
TermType range_to(int dimension, const RobustLoss& loss = {});
/// Rows of data of se2_point() and se3_point(): z of 2 or 3 numbers, `w` of 3 or 6.
std::vector<double> point_data(std::span<const double> z, std::span<const double> w);
/// Rows of data of range_to() and se2_bearing_to(), and of se3_bearing_to(), whose z need not have length 1.
std::vector<double> range_data(double z, double standard_deviation);
std::vector<double> bearing_data(double angle, double standard_deviation);
std::vector<double> bearing_data(std::span<const double> direction, double standard_deviation);

// ── scans ──
//
// A point p of a body, matched with a point q, or with the plane (in the plane: the line) through q with the unit normal n.

/// W (X p - q), q in the world. Slot: a pose. Data: p, q, W: 7 numbers in the plane, 12 in space.
TermType se2_point_to_point(const RobustLoss& loss = {});
TermType se3_point_to_point(const RobustLoss& loss = {});
/// n . (X p - q) / sigma. Slot: a pose. Data: p, q, n, sigma: 7 numbers in the plane, 10 in space.
TermType se2_point_to_line(const RobustLoss& loss = {});
TermType se3_point_to_plane(const RobustLoss& loss = {});
/// The same with q and n in the body of the first pose and p in that of the second: Xi^-1 Xj p for X p. Slots: two poses.
TermType se2_point_to_point_between(const RobustLoss& loss = {});
TermType se3_point_to_point_between(const RobustLoss& loss = {});
TermType se2_point_to_line_between(const RobustLoss& loss = {});
TermType se3_point_to_plane_between(const RobustLoss& loss = {});
/// Rows of data. `normal` need not have length 1. Throws InputError for sizes that are not those of one dimension, a
/// normal without length and a deviation that is not positive.
std::vector<double> point_to_point_data(std::span<const double> p, std::span<const double> q,
                                        std::span<const double> w);
std::vector<double> point_to_plane_data(std::span<const double> p, std::span<const double> q,
                                        std::span<const double> normal, double standard_deviation);

// ── planes and lines as unknowns ──

/// (n, d): the plane n . x = d, n a unit vector of space.
Manifold plane_landmark();
/// In the plane (angle, d): the line cos(angle) x + sin(angle) y = d. In space (quaternion, d): the line along z
/// through (d, 0, 0), rotated by the quaternion. A line through the origin may rotate about itself, so keep the
/// origin off lines.
Manifold line_landmark(int dimension);
/// W (direction of the normal seen from the pose, less z's, as se3_bearing_to; distance from the pose, less z's). Slots: pose,
/// plane. Data: normal, distance, W: 10 numbers.
TermType se3_plane(const RobustLoss& loss = {});
/// (n . X p - d) / sigma of a point p of the body. Slots: pose, plane or line. Data: p, sigma.
TermType se3_point_on_plane(const RobustLoss& loss = {});
TermType se2_point_on_line(const RobustLoss& loss = {});
/// W (the two distances of X p across the line). Slots: pose, line of space. Data: p, W: 6 numbers.
TermType se3_point_on_line(const RobustLoss& loss = {});
/// Rows of data. `normal` need not have length 1, and `distance` is divided by its length too.
std::vector<double> plane_data(std::span<const double> normal, double distance, std::span<const double> w);
std::vector<double> landmark_point_data(std::span<const double> p, double standard_deviation);
std::vector<double> line_point_data(std::span<const double> p, std::span<const double> w);

// ── cameras ──
//
// Slots: pose of the world in the camera's frame (se3; P = R X + t, seen along +z), intrinsics (Euclidean), point.
// Data: pixel u, v, sigma. Residual: (projection - pixel) / sigma. With p = P.xy / P.z and r2 = |p|^2:

enum class CameraModel : uint8_t {
  pinhole,        // fx fy cx cy
  radial,         // f cx cy k1 k2:                p (1 + k1 r2 + k2 r2^2)
  brown_conrady,  // fx fy cx cy k1 k2 p1 p2 k3:   OpenCV's radial and tangential distortion
  /// fx fy cx cy k1 k2 k3 k4: OpenCV's fisheye (Kannala and Brandt 2006), a function of the angle to the axis from 0
  /// up to, but not including, 180 degrees. Pinhole-like models are for points with P.z > 0.
  fisheye,
};
/// Numbers of a camera's intrinsics.
int intrinsics(CameraModel model);
/// Pixel of a point P in the camera's frame.
autodiff::Vec2 project(CameraModel model, std::span<const Value> intrinsics, const autodiff::Vec3& point);
TermType projection(CameraModel model, const RobustLoss& loss = {});
/// The row of data.
std::vector<double> projection_data(double u, double v, double standard_deviation);

// ── by name ──

/// A factor of this file or of imu.hpp, and the construction of its rows of data.
struct Factor {
  std::string_view name;
  TermType (*make)(const RobustLoss& loss);
  int measured = 0;  // numbers of a measurement, in the order of the function that makes the row
  int errors = 0;    // number of errors weighted by W; 1: one standard deviation
  std::vector<double> (*row)(std::span<const double> measured, std::span<const double> w);
};
std::span<const Factor> factors();
/// Throws InputError that lists all names.
const Factor& factor_named(std::string_view name);

}  // namespace lockstep::solve
