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

/// Densities of white noise: rad / s / sqrt(Hz) and m / s^2 / sqrt(Hz).
struct ImuNoise {
  double gyroscope = 0, accelerometer = 0;
};

/// The integrated rates and accelerations of a body between two poses: rotation, velocity and position in the frame
/// of the first, without gravity, with covariance and derivatives with respect to the biases. Each sample is constant
/// over its duration; the integration is exact for it.
class ImuPreintegration {
 public:
  /// `bias`: 6 numbers of gyroscope and accelerometer that are subtracted from samples. Throws InputError if
  /// densities are not positive or numbers are not finite, as do the following functions.
  explicit ImuPreintegration(const ImuNoise& noise, std::span<const double> bias = {});
  /// rad / s and m / s^2 in the body frame, and their duration.
  void add(std::span<const double> gyroscope, std::span<const double> accelerometer, double seconds);

  double seconds() const { return seconds_; }
  const std::array<double, 4>& rotation() const { return rotation_; }  // quaternion w x y z
  const std::array<double, 3>& velocity() const { return velocity_; }
  const std::array<double, 3>& position() const { return position_; }
  /// (9, 9) of (rotation vector, velocity, position), row-major, and (9, 6) with respect to the biases. Rotations are
  /// perturbed on the right.
  std::vector<double> covariance() const { return {covariance_.begin(), covariance_.end()}; }
  std::vector<double> bias_jacobian() const { return {to_bias_.begin(), to_bias_.end()}; }

  /// The row of data of imu_preintegrated(). Throws InputError for fewer than two samples, which determine no
  /// covariance.
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

/// W (rotation vector, velocity, position): 9 residuals. Slots: pose, velocity (3), biases (6: gyroscope, accelerometer) at the
/// beginning, pose and velocity at the end. Poses are of se3(); velocities and gravity are in the world.
TermType imu_preintegrated(const RobustLoss& loss = {});
/// W (b2 - b1): the biases' random walk. Slots: two blocks of 6. Data: W, 21 numbers.
TermType imu_bias_walk(const RobustLoss& loss = {});
/// The row of data, from densities in rad / s^2 / sqrt(Hz) and m / s^3 / sqrt(Hz).
std::vector<double> imu_bias_walk_data(double seconds, const ImuNoise& walk);

}  // namespace lockstep::solve
