// Ready-made residuals: relative poses, priors, points, bearings, ranges, planes, lines and cameras. Poses are blocks of
// se2() (x, y, angle) or se3() (translation, quaternion w x y z) and transform from the frame of the body to that of the
// world. W is an upper triangular matrix with W^T W the information matrix, stored by rows: 3 numbers for 2 x 2, 6 for
// 3 x 3, 21 for 6 x 6. Angles are in radians.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

// ── poses as values ──

/// Composition and inverse of poses in the plane, (x, y, angle). The angle of the result is not wrapped.
std::vector<Value> se2_compose(std::span<const Value> a, std::span<const Value> b);
std::vector<Value> se2_inverse(std::span<const Value> a);
/// Exponential map of the group from the tangent vector (dx, dy, dangle), and its inverse, whose angle is in [-pi, pi).
std::vector<Value> se2_exp(std::span<const Value> tangent);
std::vector<Value> se2_log(std::span<const Value> a);
/// Composition and inverse of poses in space, (t, q).
std::vector<Value> se3_compose(std::span<const Value> a, std::span<const Value> b);
std::vector<Value> se3_inverse(std::span<const Value> a);
/// Exponential map of the group from the tangent vector (rho, phi), and its inverse. phi is the rotation vector, whose
/// length is at most pi in the result of log. The translation is V(phi) rho.
std::vector<Value> se3_exp(std::span<const Value> tangent);
std::vector<Value> se3_log(std::span<const Value> a);
/// The pose `a` applied to a point of the body, and its inverse applied to a point of the world.
autodiff::Vec3 se3_act(std::span<const Value> a, const autodiff::Vec3& point);
autodiff::Vec3 se3_act_inverse(std::span<const Value> a, const autodiff::Vec3& point);

// ── poses ──

/// W (translation, angle) of Z^-1 Xi^-1 Xj, as in g2o. Slots: poses i and j. Data: z (x, y, angle), cos and sin of its
/// angle, W: 11 numbers, from se2_between_data().
TermType se2_between(const RobustLoss& loss = {});
/// W (translation, vec q) of Z^-1 Xi^-1 Xj, with the sign of q such that w >= 0, as in g2o. Slots: poses i and j. Data:
/// z (7), W: 28 numbers. |vec q| is the sine of half the angle: about half the angle for small errors, and with slope 0 at
/// 180 degrees. If errors may be that large, or W refers to radians, use se3_between_log().
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

/// The n (n + 1) / 2 numbers of W for n errors, from their standard deviations (n), their covariance (n, n) or its
/// inverse, the information (n, n). Throws InputError if a deviation is not positive, or if a matrix is not symmetric and
/// positive definite.
std::vector<double> w_from_standard_deviations(std::span<const double> deviations);
std::vector<double> w_from_covariance(std::span<const double> covariance);
std::vector<double> w_from_information(std::span<const double> information);
/// Rows of data of se2_between(), se2_pose_prior(), se2_between_log() and se2_pose_prior_log(). `w`: (6).
std::vector<double> se2_between_data(std::span<const double> z, std::span<const double> w);
/// Rows of data of se3_between_log() and se3_pose_prior_log(). `w`: (21), rotations in radians.
std::vector<double> se3_between_log_data(std::span<const double> z, std::span<const double> w);
/// Rows of data of se3_between() and se3_pose_prior() for `w` (21) with rotations in radians. Because vec q is about half
/// the rotation vector, the numbers of W for rotations are doubled.
std::vector<double> se3_between_data_from_radians(std::span<const double> z, std::span<const double> w);

// ── points seen from poses ──

/// W (R^T (l - t) - z) for a point l and a pose (R, t). Slots: pose, point. Data: z, W: 5 numbers in the plane, 9 in
/// space.
TermType se2_point(const RobustLoss& loss = {});
TermType se3_point(const RobustLoss& loss = {});
/// (angle of R^T (l - t) - z) / sigma, with the difference in [-pi, pi). Slots: pose in the plane, point. Data: z, sigma.
TermType se2_bearing_to(const RobustLoss& loss = {});
/// Difference between the direction of R^T (l - t) and the unit vector z, divided by sigma: two residuals in the tangent
/// plane at z, whose length is the angle between them in radians, up to pi. Slots: pose in space, point. Data: z (3),
/// sigma.
TermType se3_bearing_to(const RobustLoss& loss = {});
/// (|l - t| - z) / sigma. Slots: pose, point of the same dimension (2 or 3). Data: z, sigma.
TermType range_to(int dimension, const RobustLoss& loss = {});
/// Rows of data of se2_point() and se3_point(): z of 2 or 3 numbers, `w` of 3 or 6.
std::vector<double> point_data(std::span<const double> z, std::span<const double> w);
/// Rows of data of range_to(), se2_bearing_to() and se3_bearing_to(). `direction` need not have length 1.
std::vector<double> range_data(double z, double standard_deviation);
std::vector<double> bearing_data(double angle, double standard_deviation);
std::vector<double> bearing_data(std::span<const double> direction, double standard_deviation);

// ── scans ──
//
// A point p of a body is matched with a point q, or with the plane (in two dimensions: the line) through q with the unit
// normal n.

/// W (X p - q), with q in the world. Slot: a pose. Data: p, q, W: 7 numbers in the plane, 12 in space.
TermType se2_point_to_point(const RobustLoss& loss = {});
TermType se3_point_to_point(const RobustLoss& loss = {});
/// n . (X p - q) / sigma. Slot: a pose. Data: p, q, n, sigma: 7 numbers in the plane, 10 in space.
TermType se2_point_to_line(const RobustLoss& loss = {});
TermType se3_point_to_plane(const RobustLoss& loss = {});
/// The same with Xi^-1 Xj p instead of X p: q and n are in the body of pose i, p in that of pose j. Slots: poses i and j.
TermType se2_point_to_point_between(const RobustLoss& loss = {});
TermType se3_point_to_point_between(const RobustLoss& loss = {});
TermType se2_point_to_line_between(const RobustLoss& loss = {});
TermType se3_point_to_plane_between(const RobustLoss& loss = {});
/// Rows of data. `normal` need not have length 1. Throws InputError for sizes that belong to different dimensions, a
/// normal of length 0 and a deviation that is not positive.
std::vector<double> point_to_point_data(std::span<const double> p, std::span<const double> q,
                                        std::span<const double> w);
std::vector<double> point_to_plane_data(std::span<const double> p, std::span<const double> q,
                                        std::span<const double> normal, double standard_deviation);

// ── planes and lines as unknowns ──

/// (n, d): the plane n . x = d in space, with a unit vector n.
Manifold plane_landmark();
/// In two dimensions (angle, d): the line cos(angle) x + sin(angle) y = d. In three dimensions (quaternion, d): the line
/// along z through (d, 0, 0), rotated by the quaternion. The rotation of a line through the origin is not determined
/// uniquely, so choose an origin that is not on a line.
Manifold line_landmark(int dimension);
/// W (difference of the normals in the frame of the pose, as in se3_bearing_to; difference of the distances from the
/// pose) between the plane and its measurement. Slots: pose, plane. Data: normal, distance, W: 10 numbers.
TermType se3_plane(const RobustLoss& loss = {});
/// (n . X p - d) / sigma for a point p of the body. Slots: pose, plane or line. Data: p, sigma.
TermType se3_point_on_plane(const RobustLoss& loss = {});
TermType se2_point_on_line(const RobustLoss& loss = {});
/// W (the two components of the distance of X p from the line). Slots: pose, line in space. Data: p, W: 6 numbers.
TermType se3_point_on_line(const RobustLoss& loss = {});
/// Rows of data. `normal` need not have length 1; `normal` and `distance` are divided by its length.
std::vector<double> plane_data(std::span<const double> normal, double distance, std::span<const double> w);
std::vector<double> landmark_point_data(std::span<const double> p, double standard_deviation);
std::vector<double> line_point_data(std::span<const double> p, std::span<const double> w);

// ── cameras ──
//
// Slots: pose of the world in the frame of the camera (se3; P = R X + t; the camera looks along +z), intrinsics
// (Euclidean), point. Data: pixel u, v, sigma. Residual: (projection - pixel) / sigma. With p = P.xy / P.z, r2 = |p|^2:

enum class CameraModel : uint8_t {
  pinhole,        // fx fy cx cy
  radial,         // f cx cy k1 k2:                p (1 + k1 r2 + k2 r2^2)
  brown_conrady,  // fx fy cx cy k1 k2 p1 p2 k3:   OpenCV's radial and tangential distortion
  /// fx fy cx cy k1 k2 k3 k4: OpenCV's fisheye (Kannala and Brandt 2006), a function of the angle to the axis, for angles
  /// below 180 degrees. The other models require points with P.z > 0.
  fisheye,
};
/// Number of intrinsics of a camera model.
int intrinsics(CameraModel model);
/// Pixel of a point P in the frame of the camera.
autodiff::Vec2 project(CameraModel model, std::span<const Value> intrinsics, const autodiff::Vec3& point);
TermType projection(CameraModel model, const RobustLoss& loss = {});
/// The row of data of projection(), in pixels.
std::vector<double> projection_data(double u, double v, double standard_deviation);

// ── by name ──

/// A factor of this file or of imu.hpp, and the function that computes its rows of data.
struct Factor {
  std::string_view name;
  TermType (*make)(const RobustLoss& loss);
  int measured = 0;  // number of numbers of a measurement, in the order of the parameters of `row`
  int errors = 0;    // number of errors that W weights; 1: W is one standard deviation
  std::vector<double> (*row)(std::span<const double> measured, std::span<const double> w);
};
std::span<const Factor> factors();
/// The factor of a name. Throws InputError, which lists all names, for another name.
const Factor& factor_named(std::string_view name);

}  // namespace lockstep::solve
