// Preintegration of inertial measurements. A sample's step is written once, as an expression; covariance and derivatives to the
// biases follow from its derivatives.
#include "lockstep/solve/imu.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <cmath>

#include "autodiff/host_program.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/factors.hpp"
#include "solve/model/pose_math.hpp"

namespace lockstep::solve {
namespace {

using autodiff::Quaternion;
using autodiff::Vec3;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kErrors = 9, kBiases = 6;

/// The second integral of exp(s phi) over s in [0, 1], applied to a: a / 2 + c3 phi x a + c4 phi x (phi x a) with
/// c3 = (t - sin t) / t^3 and c4 = (t^2 / 2 - 1 + cos t) / t^4, by their series near 0.
Vec3 twice_integrated(const Vec3& phi, const Vec3& a) {
  const Value t2 = dot(phi, phi);
  const auto large = t2 > 0.25;
  const Value safe = select(large, t2, 1), t = sqrt(safe);
  const Value c3 =
      select(large, (t - sin(t)) / (safe * t),
             1.0 / 6 - t2 * (1.0 / 120 - t2 * (1.0 / 5040 - t2 * (1.0 / 362880 - t2 * (1.0 / 39916800)))));
  const Value c4 = select(
      large, (0.5 * safe - 1 + cos(t)) / (safe * safe),
      1.0 / 24 - t2 * (1.0 / 720 - t2 * (1.0 / 40320 - t2 * (1.0 / 3628800 - t2 * (1.0 / 479001600)))));
  const Vec3 once = cross(phi, a);
  return a * 0.5 + once * c3 + cross(phi, once) * c4;
}

/// A sample's step from (rotation, velocity, position), its errors, and the errors' derivatives to those before and to the
/// sample, all at no error.
struct Step {
  autodiff::Tape graph;
  autodiff::HostProgram<double> outputs,
      state;  // 10 numbers of the state, then (9, 15) derivatives; those 10

  Step() {
    std::vector<Value> leaf;
    for (int k = 0; k < 17 + kErrors; ++k) leaf.push_back(graph.variable("x"));
    const auto vec = [&](int first) {
      return Vec3{{leaf[size_t(first)], leaf[size_t(first + 1)], leaf[size_t(first + 2)]}};
    };
    const Quaternion q{leaf[0], leaf[1], leaf[2], leaf[3]};
    const Value dt = leaf[16];
    const Vec3 turn = vec(10) * dt, a = vec(13);
    const Quaternion r = q * exp_map(vec(17)), plain = q * exp_map(turn), next = r * exp_map(turn);
    const Vec3 v = vec(4) + vec(20), p = vec(7) + vec(23);
    const std::vector<Value> moved = se3_exp(std::vector<Value>{a[0], a[1], a[2], turn[0], turn[1], turn[2]});
    const Vec3 velocity = v + rotate(r, Vec3{{moved[0], moved[1], moved[2]}}) * dt;
    const Vec3 position = p + v * dt + rotate(r, twice_integrated(turn, a)) * (dt * dt);
    // `plain` is the end without errors, held: its own leaves are copies.
    std::vector<Value> held;
    for (int k = 0; k < 4; ++k) held.push_back(graph.parameter("held"));
    const Vec3 error = log_map(conjugate(Quaternion{held[0], held[1], held[2], held[3]}) * next);
    std::vector<Value> all{plain.w,     plain.x,     plain.y,     plain.z,     velocity[0],
                           velocity[1], velocity[2], position[0], position[1], position[2]};
    std::vector<Value> errors{error[0],    error[1],    error[2],    velocity[0], velocity[1],
                              velocity[2], position[0], position[1], position[2]};
    std::vector<Value> to(leaf.begin() + 17, leaf.end());
    to.insert(to.end(), leaf.begin() + 10, leaf.begin() + 16);
    for (const Value& e : errors)
      for (const Value& slope : autodiff::gradient(e, to)) all.push_back(slope);
    outputs = autodiff::HostProgram<double>(all);
    state = autodiff::HostProgram<double>(std::span(all).first(10));
  }
};

void check_numbers(std::span<const double> numbers, size_t size, const char* what) {
  if (numbers.size() != size)
    throw InputError(fmt::format("{} of {} numbers", what, numbers.size()), "solve imu",
                     fmt::format("{}", size));
  for (const double v : numbers)
    if (!std::isfinite(v))
      throw InputError(fmt::format("{} with {}", what, v), "solve imu", "finite numbers");
}
void check_noise(const ImuNoise& noise) {
  for (const double v : {noise.gyroscope, noise.accelerometer})
    if (!(v > 0) || !std::isfinite(v))
      throw InputError(fmt::format("noise density {}", v), "solve imu", "a finite number above 0");
}

}  // namespace

ImuPreintegration::ImuPreintegration(const ImuNoise& noise, std::span<const double> bias) : noise_(noise) {
  check_noise(noise);
  if (bias.empty()) return;
  check_numbers(bias, bias_.size(), "bias");
  std::copy(bias.begin(), bias.end(), bias_.begin());
}

void ImuPreintegration::add(std::span<const double> gyroscope, std::span<const double> accelerometer,
                            double seconds) {
  check_numbers(gyroscope, 3, "gyroscope"), check_numbers(accelerometer, 3, "accelerometer");
  if (!(seconds > 0) || !std::isfinite(seconds))
    throw InputError(fmt::format("{} seconds", seconds), "solve imu", "a finite number above 0");
  static const Step step;
  std::vector<double> at;
  at.insert(at.end(), rotation_.begin(), rotation_.end());
  at.insert(at.end(), velocity_.begin(), velocity_.end());
  at.insert(at.end(), position_.begin(), position_.end());
  for (size_t k = 0; k < 3; ++k) at.push_back(gyroscope[k] - bias_[k]);
  for (size_t k = 0; k < 3; ++k) at.push_back(accelerometer[k] - bias_[3 + k]);
  at.push_back(seconds);
  at.resize(17 + kErrors + 4, 0);
  const std::vector<double> state = step.state(at);
  std::copy(state.begin(), state.begin() + 4, at.begin() + 17 + kErrors);
  const std::vector<double> all = step.outputs(at);
  const Eigen::Map<const Rows> slopes(all.data() + 10, kErrors, kErrors + kBiases);
  const Rows a = slopes.leftCols(kErrors), b = slopes.rightCols(kBiases);
  Eigen::Map<Rows> covariance(covariance_.data(), kErrors, kErrors),
      to_bias(to_bias_.data(), kErrors, kBiases);
  Eigen::VectorXd noise(kBiases);
  noise.head(3).setConstant(noise_.gyroscope * noise_.gyroscope / seconds);
  noise.tail(3).setConstant(noise_.accelerometer * noise_.accelerometer / seconds);
  covariance = (a * covariance * a.transpose() + b * noise.asDiagonal() * b.transpose()).eval();
  to_bias = (a * to_bias - b).eval();
  double length = 0;
  for (size_t k = 0; k < 4; ++k) length = std::hypot(length, state[k]);
  for (size_t k = 0; k < 4; ++k) rotation_[k] = state[k] / length;
  for (size_t k = 0; k < 3; ++k) velocity_[k] = state[4 + k], position_[k] = state[7 + k];
  seconds_ += seconds, ++samples_;
}

std::vector<double> ImuPreintegration::data(std::span<const double> gravity) const {
  check_numbers(gravity, 3, "gravity");
  if (samples_ < 2) throw InputError(fmt::format("{} samples", samples_), "solve imu", "two or more");
  std::vector<double> out{seconds_};
  const auto add = [&](const auto& numbers) { out.insert(out.end(), numbers.begin(), numbers.end()); };
  add(rotation_), add(velocity_), add(position_), add(bias_), add(to_bias_), add(gravity);
  // Scaled, so that the factorisation sees no units.
  std::vector<double> scaled(covariance_.begin(), covariance_.end()), scale;
  for (size_t k = 0; k < kErrors; ++k) scale.push_back(std::sqrt(covariance_[k * kErrors + k]));
  for (size_t r = 0; r < kErrors; ++r)
    for (size_t c = 0; c < kErrors; ++c)
      scaled[r * kErrors + c] =
          0.5 * (covariance_[r * kErrors + c] + covariance_[c * kErrors + r]) / (scale[r] * scale[c]);
  std::vector<double> w = w_from_covariance(scaled);
  for (size_t r = 0, k = 0; r < kErrors; ++r)
    for (size_t c = r; c < kErrors; ++c, ++k) w[k] /= scale[c];
  add(w);
  return out;
}

TermType imu_preintegrated(const RobustLoss& loss) {
  constexpr int kRotation = 1, kVelocity = 5, kPosition = 8, kBias = 11, kSlopes = 17, kGravity = 71,
                kWeights = 74;
  return {
      "imu_preintegrated",
      {7, 3, 6, 7, 3},
      kWeights + 45,
      [](const TermArguments& a) {
        const auto vec = [&](int first) {
          return Vec3{{a.data(first), a.data(first + 1), a.data(first + 2)}};
        };
        std::vector<Value> off;  // of the biases from where samples were corrected
        for (int k = 0; k < kBiases; ++k) off.push_back(a.x(2, k) - a.data(kBias + k));
        const auto corrected = [&](int row) {
          Vec3 out{{a.graph().constant(0), a.graph().constant(0), a.graph().constant(0)}};
          for (int r = 0; r < 3; ++r)
            for (int k = 0; k < kBiases; ++k)
              out[r] = out[r] + a.data(kSlopes + (row + r) * kBiases + k) * off[size_t(k)];
          return out;
        };
        const Value t = a.data(0);
        const Quaternion first = a.quaternion(0, 3), second = a.quaternion(3, 3);
        const Quaternion measured{a.data(kRotation), a.data(kRotation + 1), a.data(kRotation + 2),
                                  a.data(kRotation + 3)};
        const Vec3 turn = log_map(conjugate(measured * exp_map(corrected(0))) * (conjugate(first) * second));
        const Vec3 g = vec(kGravity), v = a.vec3(1);
        const Vec3 velocity = rotate(conjugate(first), a.vec3(4) - v - g * t) - vec(kVelocity) - corrected(3);
        const Vec3 position = rotate(conjugate(first), a.vec3(3) - a.vec3(0) - v * t - g * (0.5 * t * t)) -
                              vec(kPosition) - corrected(6);
        return whitened(a, kWeights,
                        {turn[0], turn[1], turn[2], velocity[0], velocity[1], velocity[2], position[0],
                         position[1], position[2]});
      },
      loss};
}

TermType imu_bias_walk(const RobustLoss& loss) {
  return {"imu_bias_walk",
          {6, 6},
          21,
          [](const TermArguments& a) {
            std::vector<Value> moved;
            for (int k = 0; k < kBiases; ++k) moved.push_back(a.x(1, k) - a.x(0, k));
            return whitened(a, 0, moved);
          },
          loss};
}

std::vector<double> imu_bias_walk_data(double seconds, const ImuNoise& walk) {
  check_noise(walk);
  if (!(seconds > 0) || !std::isfinite(seconds))
    throw InputError(fmt::format("{} seconds", seconds), "solve imu", "a finite number above 0");
  std::vector<double> deviations(3, walk.gyroscope * std::sqrt(seconds));
  deviations.resize(6, walk.accelerometer * std::sqrt(seconds));
  return w_from_standard_deviations(deviations);
}

}  // namespace lockstep::solve
