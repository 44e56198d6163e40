// Inertial measurements between two poses as one residual (Forster, Carlone, Dellaert and Scaramuzza 2017, On-Manifold
// Preintegration for Real-Time Visual-Inertial Odometry).
//
//   solve::ImuPreintegration log({1e-3, 1e-2});
//   for (const Sample& s : samples) log.add(s.gyroscope, s.accelerometer, s.seconds);
//   problem.add_terms(solve::imu_preintegrated(), {poses, velocities, biases, poses, velocities}, {0, 0, 0, 1, 1},
//                     log.data(std::vector<double>{0, 0, -9.81}));
#pragma once

#include <array>
#include <span>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// Densities of white noise: of the gyroscope in rad / s / sqrt(Hz), of the accelerometer in m / s^2 / sqrt(Hz).
struct ImuNoise {
  double gyroscope = 0, accelerometer = 0;
};

/// The integrated rates and accelerations of a body between two poses: rotation, velocity and position in the frame of
/// the first pose, without gravity, with their covariance and their derivatives with respect to the biases. Samples are
/// taken as constant over their durations, for which the integration is exact.
class ImuPreintegration {
 public:
  /// `bias`: 6 numbers, of the gyroscope and of the accelerometer, that are subtracted from samples; empty: zeros. Throws
  /// InputError if densities are not positive. This and the following functions throw InputError for numbers that are not
  /// finite.
  explicit ImuPreintegration(const ImuNoise& noise, std::span<const double> bias = {});
  /// Adds a sample in rad / s and m / s^2 in the frame of the body, with its duration.
  void add(std::span<const double> gyroscope, std::span<const double> accelerometer, double seconds);

  double seconds() const { return seconds_; }
  const std::array<double, 4>& rotation() const { return rotation_; }  // quaternion w x y z
  const std::array<double, 3>& velocity() const { return velocity_; }
  const std::array<double, 3>& position() const { return position_; }
  /// covariance: (9, 9), row-major, of (rotation vector, velocity, position). bias_jacobian: (9, 6), row-major,
  /// derivatives of these with respect to the biases. Rotations are perturbed on the right.
  std::vector<double> covariance() const { return {covariance_.begin(), covariance_.end()}; }
  std::vector<double> bias_jacobian() const { return {to_bias_.begin(), to_bias_.end()}; }

  /// The row of data of imu_preintegrated(), with `gravity` (3) in m / s^2 in the world. Throws InputError for fewer than
  /// two samples, because their covariance is singular.
  std::vector<double> data(std::span<const double> gravity) const;

 private:
  ImuNoise noise_;
  std::array<double, 6> bias_{};
  double seconds_ = 0;
  int samples_ = 0;
  std::array<double, 4> rotation_{1, 0, 0, 0};
  std::array<double, 3> velocity_{}, position_{};
  std::array<double, 81> covariance_{};
  std::array<double, 54> to_bias_{};
};

/// W (rotation vector, velocity, position): 9 residuals. Slots: pose, velocity (3) and biases (6: gyroscope,
/// accelerometer) at the start, pose and velocity at the end. Poses are of se3(); velocities and gravity are in the
/// world.
TermType imu_preintegrated(const RobustLoss& loss = {});
/// W (b2 - b1): the random walk of the biases. Slots: two blocks of 6 numbers. Data: W, 21 numbers.
TermType imu_bias_walk(const RobustLoss& loss = {});
/// The row of data of imu_bias_walk() for a time in seconds. `walk`: densities in rad / s^2 / sqrt(Hz) and
/// m / s^3 / sqrt(Hz).
std::vector<double> imu_bias_walk_data(double seconds, const ImuNoise& walk);

}  // namespace lockstep::solve
