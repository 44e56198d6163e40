// Preintegrated inertial measurements against Runge and Kutta's integration in small steps, differences and a generated flight.
#include "lockstep/solve/imu.hpp"

#include <Eigen/Geometry>
#include <cmath>

#include "core/refusal.hpp"
#include "factor_checks.hpp"
#include "lockstep/solve/factors.hpp"

namespace lockstep::solve::test {
namespace {

using Eigen::Vector3d, Eigen::VectorXd, Eigen::MatrixXd, Eigen::Quaterniond;
using lockstep::test::refusal;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Sample {
  Vector3d rate, force;
  double seconds;
};
std::vector<Sample> wild_samples(int count, double fastest) {
  std::vector<Sample> out;
  for (int k = 0; k < count; ++k)
    out.push_back({fastest * Vector3d(std::sin(0.7 * k), std::cos(1.1 * k), std::sin(0.3 * k + 1)),
                   Vector3d(3 * std::cos(0.5 * k), 9.8 + std::sin(1.3 * k), 2 * std::sin(0.9 * k)),
                   0.004 + 0.002 * (k % 3)});
  return out;
}
ImuPreintegration logged(const std::vector<Sample>& samples, const VectorXd& bias = VectorXd::Zero(6)) {
  ImuPreintegration log({2e-3, 3e-2}, {bias.data(), 6});
  for (const Sample& s : samples) log.add({s.rate.data(), 3}, {s.force.data(), 3}, s.seconds);
  return log;
}
/// R' = R [w], v' = R a, p' = v in steps of a thousandth of a sample.
struct Motion {
  Quaterniond q = Quaterniond::Identity();
  Vector3d v = Vector3d::Zero(), p = Vector3d::Zero();
};
Motion integrated(const std::vector<Sample>& samples, int steps) {
  Motion m;
  for (const Sample& s : samples)
    for (int k = 0; k < steps; ++k) {
      const double h = s.seconds / steps;
      const auto slope = [&](const Quaterniond& q) {
        Quaterniond d = q * Quaterniond(0, s.rate[0], s.rate[1], s.rate[2]);
        d.coeffs() *= 0.5;
        return d;
      };
      const auto along = [](const Quaterniond& q, const Quaterniond& d, double step) {
        Quaterniond out = q;
        out.coeffs() += step * d.coeffs();
        return out;
      };
      const Quaterniond k1 = slope(m.q), k2 = slope(along(m.q, k1, h / 2)), k3 = slope(along(m.q, k2, h / 2)),
                        k4 = slope(along(m.q, k3, h));
      Quaterniond end = m.q, middle = along(m.q, k2, h / 2).normalized();
      end.coeffs() += h / 6 * (k1.coeffs() + 2 * k2.coeffs() + 2 * k3.coeffs() + k4.coeffs());
      end.normalize();
      const Vector3d a1 = m.q * s.force, a2 = middle * s.force, a3 = end * s.force;
      m.p += h * m.v + h * h / 6 * (a1 + 2 * a2);
      m.v += h / 6 * (a1 + 4 * a2 + a3);
      m.q = end;
    }
  return m;
}
/// (rotation vector, velocity, position) from one log to another.
VectorXd difference(const ImuPreintegration& to, const ImuPreintegration& from) {
  const auto turn = [](const ImuPreintegration& log) {
    const auto& q = log.rotation();
    return Quaterniond(q[0], q[1], q[2], q[3]);
  };
  Quaterniond d = turn(from).conjugate() * turn(to);
  VectorXd out(9);
  out.head(3) = 2 * (d.w() < 0 ? -1 : 1) * d.vec();
  for (size_t k = 0; k < 3; ++k) {
    out[Eigen::Index(3 + k)] = to.velocity()[k] - from.velocity()[k];
    out[Eigen::Index(6 + k)] = to.position()[k] - from.position()[k];
  }
  return out;
}

TEST(Imu, IsTheIntegralOfItsSamples) {
  for (const double fastest :
       {0.5, 40.0, 400.0}) {  // up to turns of two radians a sample, where the series end
    const std::vector<Sample> samples = wild_samples(30, fastest);
    const ImuPreintegration log = logged(samples);
    const Motion m = integrated(samples, fastest > 100 ? 4000 : 1000);
    const auto& q = log.rotation();
    EXPECT_NEAR(std::abs(m.q.dot(Quaterniond(q[0], q[1], q[2], q[3]))), 1, 1e-12);
    for (Eigen::Index k = 0; k < 3; ++k) {
      EXPECT_NEAR(log.velocity()[size_t(k)], m.v[k], 1e-8);
      EXPECT_NEAR(log.position()[size_t(k)], m.p[k], 1e-9);
    }
  }
}

// Derivatives to the biases, and the covariance as the sum of what each sample's noise does, by preintegrating again.
TEST(Imu, BiasesAndCovarianceAreThoseOfLogsMadeAnew) {
  std::vector<Sample> samples = wild_samples(20, 3);
  const VectorXd bias = (VectorXd(6) << 0.02, -0.01, 0.03, 0.1, -0.2, 0.05).finished();
  const ImuPreintegration log = logged(samples, bias);
  constexpr double kStep = 1e-6;
  const std::vector<double> made = log.bias_jacobian(), covariance = log.covariance();
  const Eigen::Map<const RowMajor> jacobian(made.data(), 9, 6), found(covariance.data(), 9, 9);
  for (int k = 0; k < 6; ++k) {
    VectorXd up = bias, down = bias;
    up[k] += kStep, down[k] -= kStep;
    const VectorXd slope =
        (difference(logged(samples, up), log) - difference(logged(samples, down), log)) / (2 * kStep);
    EXPECT_LT((slope - jacobian.col(k)).norm(), 1e-7) << k;
  }
  MatrixXd sum = MatrixXd::Zero(9, 9);
  for (Sample& s : samples)
    for (const bool turns : {true, false})
      for (Eigen::Index k = 0; k < 3; ++k) {
        double& number = (turns ? s.rate : s.force)[k];
        const double was = number;
        number = was + kStep;
        VectorXd slope = difference(logged(samples, bias), log);
        number = was - kStep;
        slope = (slope - difference(logged(samples, bias), log)) / (2 * kStep);
        number = was;
        sum += slope * slope.transpose() * std::pow(turns ? 2e-3 : 3e-2, 2) / s.seconds;
      }
  for (Eigen::Index r = 0; r < 9; ++r)
    for (Eigen::Index c = 0; c < 9; ++c)
      EXPECT_NEAR(found(r, c), sum(r, c), 1e-6 * std::sqrt(sum(r, r) * sum(c, c)));
}

/// Two states that a log connects without error, with gravity, in a world that is turned and moved.
struct Flight {
  std::vector<double> poses, velocities, biases, gravity;
};
Flight flight(const std::vector<Sample>& samples, const Eigen::Isometry3d& world, const VectorXd& bias) {
  const Motion m = integrated(samples, 1000);
  const Vector3d g(0, 0, -9.81), v0(1, -2, 0.5);
  double t = 0;
  for (const Sample& s : samples) t += s.seconds;
  Eigen::Isometry3d first = Eigen::Isometry3d::Identity(), second = first;
  first.linear() = Quaterniond(0.8, 0.36, -0.48, 0.0).normalized().toRotationMatrix();
  first.translation() << 3, -1, 2;
  const Vector3d v1 = v0 + g * t + first.linear() * m.v;
  second.linear() = first.linear() * m.q.toRotationMatrix();
  second.translation() = first.translation() + v0 * t + 0.5 * t * t * g + first.linear() * m.p;
  Flight out;
  for (const Eigen::Isometry3d& x : {Eigen::Isometry3d(world * first), Eigen::Isometry3d(world * second)}) {
    const Quaterniond q(x.rotation());
    for (const double v :
         {x.translation()[0], x.translation()[1], x.translation()[2], q.w(), q.x(), q.y(), q.z()})
      out.poses.push_back(v);
  }
  for (const Vector3d& v : {Vector3d(world.linear() * v0), Vector3d(world.linear() * v1)})
    out.velocities.insert(out.velocities.end(), v.data(), v.data() + 3);
  const Vector3d turned = world.linear() * g;
  out.gravity.assign(turned.data(), turned.data() + 3);
  out.biases.assign(bias.data(), bias.data() + 6);
  return out;
}
Problem of_flight(const Flight& f, const ImuPreintegration& log, BlockSet sets[3]) {
  Problem problem;
  sets[0] = problem.add_blocks("poses", se3(), f.poses);
  sets[1] = problem.add_blocks("velocities", euclidean(3), f.velocities);
  sets[2] = problem.add_blocks("biases", euclidean(6), f.biases);
  problem.add_terms(imu_preintegrated(), {sets[0], sets[1], sets[2], sets[0], sets[1]},
                    std::vector<int32_t>{0, 0, 0, 1, 1}, log.data(f.gravity));
  return problem;
}

TEST(Imu, ResidualsVanishAtTheTruthInEveryWorld) {
  const std::vector<Sample> samples = wild_samples(40, 2);
  Eigen::Isometry3d moved = Eigen::Isometry3d::Identity();
  moved.linear() = Quaterniond(0.5, -0.5, 0.1, 0.7).normalized().toRotationMatrix();
  moved.translation() << 100, -20, 7;
  VectorXd before;
  for (const Eigen::Isometry3d& world : {Eigen::Isometry3d(Eigen::Isometry3d::Identity()), moved}) {
    BlockSet sets[3];
    const ImuPreintegration log = logged(samples);
    Flight f = flight(samples, world, VectorXd::Zero(6));
    Problem problem = of_flight(f, log, sets);
    Context context({.device = "interp"});
    for (const double r : evaluate(problem, context).residuals)
      EXPECT_NEAR(r, 0, 1e-3);  // in standard deviations
    // Elsewhere: the same errors in both worlds, and right derivatives.
    problem.values(sets[2])[1] = 0.05, problem.values(sets[2])[3] = -0.4;
    const Vector3d off = world.linear() * Vector3d(0.1, 0.2, -0.3);
    for (size_t k = 0; k < 3; ++k)
      problem.values(sets[1])[k] += off[Eigen::Index(k)],
          problem.values(sets[0])[7 + k] += off[Eigen::Index(k)];
    const std::vector<double> errors = evaluate(problem, context).residuals;
    const Eigen::Map<const VectorXd> now(errors.data(), 9);
    if (before.size()) EXPECT_LT((now - before).norm(), 1e-6 * before.norm());
    before = now;
    for (const DerivativeFault& fault : check_derivatives(problem, {.spread = 0.01}))
      ADD_FAILURE() << fault.text();
  }
}

// Samples with a bias that is not known: poses and the first velocity being measured, the bias is found.
TEST(Imu, RecoversABias) {
  const VectorXd bias = (VectorXd(6) << 0.01, -0.02, 0.015, 0.08, 0.05, -0.1).finished();
  std::vector<Sample> truth = wild_samples(100, 1.5), seen = truth;
  for (Sample& s : seen) s.rate += bias.head(3), s.force += bias.tail(3);
  BlockSet sets[3];
  Flight f = flight(truth, Eigen::Isometry3d::Identity(), VectorXd::Zero(6));
  Problem problem = of_flight(f, logged(seen), sets);
  problem.fix(sets[0], 0), problem.fix(sets[0], 1), problem.fix(sets[1], 0), problem.fix(sets[1], 1);
  Context context({.device = "interp"});
  for (int round = 0; round < 3; ++round) {  // the log is made again where the bias is believed to be
    const auto found = problem.values(sets[2]);
    const VectorXd at = Eigen::Map<const VectorXd>(found.data(), 6);
    Problem again = of_flight(f, logged(seen, at), sets);
    std::copy(at.data(), at.data() + 6, again.values(sets[2]).begin());
    again.fix(sets[0], 0), again.fix(sets[0], 1), again.fix(sets[1], 0), again.fix(sets[1], 1);
    minimize(again, context);
    problem = std::move(again);
  }
  // Nine residuals hold six numbers.
  for (size_t k = 0; k < 6; ++k) EXPECT_NEAR(problem.values(sets[2])[k], bias[Eigen::Index(k)], 1e-5);
}

TEST(Imu, TheWalkOfBiasesHasTheirDeviations) {
  Problem problem;
  const BlockSet biases =
      problem.add_blocks("biases", euclidean(6), std::vector<double>{0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6});
  problem.add_terms(imu_bias_walk(), {biases, biases}, std::vector<int32_t>{0, 1},
                    imu_bias_walk_data(4, {0.1, 0.5}));
  expect_residuals(problem, (VectorXd(6) << 5, 10, 15, 4, 5, 6).finished());
}

TEST(Imu, RefusesBadLogs) {
  const std::vector<double> three{1, 2, 3}, bad{1, NAN, 3}, two{1, 2};
  EXPECT_NE(refusal([] { ImuPreintegration({0, 1}); }).find("noise density 0"), std::string::npos);
  ImuPreintegration log({1e-3, 1e-2});
  EXPECT_NE(refusal([&] { log.add(bad, three, 1); }).find("gyroscope with nan"), std::string::npos);
  EXPECT_NE(refusal([&] { log.add(three, two, 1); }).find("accelerometer of 2 numbers"), std::string::npos);
  EXPECT_NE(refusal([&] { log.add(three, three, 0); }).find("0 seconds"), std::string::npos);
  log.add(three, three, 0.01);
  EXPECT_NE(refusal([&] { (void)log.data(three); }).find("1 samples"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::solve::test
