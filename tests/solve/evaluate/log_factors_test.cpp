// Residuals by the logarithm of a pose against the series of the matrix exponential, their derivatives away from zero, and
// rows of data from deviations, covariances and information.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "core/refusal.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "lockstep/solve/factors.hpp"
#include "problems.hpp"

namespace lockstep::solve::test {
namespace {

using Eigen::Matrix3d, Eigen::Matrix4d, Eigen::MatrixXd, Eigen::Vector3d, Eigen::VectorXd;
using lockstep::test::refusal;

std::vector<double> evaluated(const std::vector<double>& in,
                              const std::function<std::vector<Value>(std::span<const Value>)>& f) {
  autodiff::Tape graph;
  std::vector<Value> leaves;
  for (size_t k = 0; k < in.size(); ++k) leaves.push_back(graph.variable("x"));
  return autodiff::evaluate<double>(f(leaves), in);
}

/// The exponential of the twist (rho, phi) as a matrix, by its series: halved until short, then squared.
Matrix4d exponential(const std::vector<double>& v) {
  Matrix4d twist = Matrix4d::Zero();
  twist.topLeftCorner<3, 3>() << 0, -v[5], v[4], v[5], 0, -v[3], -v[4], v[3], 0;
  twist.topRightCorner<3, 1>() << v[0], v[1], v[2];
  constexpr int kHalvings = 8;
  twist /= 1 << kHalvings;
  Matrix4d sum = Matrix4d::Identity(), power = sum;
  for (int k = 1; k < 20; ++k) power = power * twist / k, sum += power;
  for (int k = 0; k < kHalvings; ++k) sum = sum * sum;
  return sum;
}
Matrix4d matrix_of(const std::vector<double>& pose) {
  Matrix4d m = Matrix4d::Identity();
  m.topLeftCorner<3, 3>() = Eigen::Quaterniond(pose[3], pose[4], pose[5], pose[6]).toRotationMatrix();
  m.topRightCorner<3, 1>() << pose[0], pose[1], pose[2];
  return m;
}
std::vector<double> se3_exp_of(const std::vector<double>& v) {
  return evaluated(v, [](std::span<const Value> x) { return se3_exp(x); });
}

std::vector<std::vector<double>> twists() {
  std::vector<std::vector<double>> out;
  for (const double angle : {0.0, 1e-9, 1e-4, 0.0099, 0.0101, 0.7, 2.0, 3.1}) {
    std::vector<double> v = random_numbers(6, uint64_t(1e5 * angle) + 3);
    normalize_rows(v, 6, 3, 3);
    for (size_t k = 3; k < 6; ++k) v[k] *= angle;
    out.push_back(v);
  }
  return out;
}

TEST(LogFactors, ExponentialIsTheMatrixSeriesAndLogarithmItsInverse) {
  for (const std::vector<double>& v : twists()) {
    const std::vector<double> pose = se3_exp_of(v);
    EXPECT_LT((matrix_of(pose) - exponential(v)).cwiseAbs().maxCoeff(), 1e-13) << v[3];
    const std::vector<double> again = evaluated(pose, [](std::span<const Value> x) { return se3_log(x); });
    for (size_t k = 0; k < 6; ++k)
      EXPECT_NEAR(again[k], v[k], 1e-12) << k << " of angle " << std::hypot(v[3], v[4], v[5]);
  }
}

/// Upper triangular numbers with a positive diagonal, as a matrix too.
std::vector<double> random_w(uint64_t seed, MatrixXd& w) {
  const std::vector<double> numbers = random_numbers(21, seed);
  std::vector<double> out;
  w = MatrixXd::Zero(6, 6);
  for (int r = 0, k = 0; r < 6; ++r)
    for (int c = r; c < 6; ++c, ++k) out.push_back(w(r, c) = numbers[size_t(k)] + (r == c ? 2 : 0));
  return out;
}

// Z^-1 A^-1 B = exp(v) by construction, so that the residual is W v.
TEST(LogFactors, ResidualsAreTheWhitenedTwistAndTheirDerivativesItsSlopes) {
  for (const std::vector<double>& v : twists()) {
    std::vector<double> given = random_numbers(14, 17);
    normalize_rows(given, 7, 3, 4);
    const std::vector<double> a(given.begin(), given.begin() + 7), z(given.begin() + 7, given.end());
    const Matrix4d b = matrix_of(a) * matrix_of(z) * exponential(v);
    const Eigen::Quaterniond q(Matrix3d(b.topLeftCorner<3, 3>()));
    std::vector<double> both = a;
    both.insert(both.end(), {b(0, 3), b(1, 3), b(2, 3), q.w(), q.x(), q.y(), q.z()});
    MatrixXd w;
    const std::vector<double> numbers = random_w(29, w);
    Problem problem;
    const BlockSet poses = problem.add_blocks("poses", se3(), both);
    problem.add_terms(se3_between_log(), {poses, poses}, std::vector<int32_t>{0, 1},
                      se3_between_log_data(z, numbers));
    ContextOptions interp;
    interp.device = "interp";
    Context context(interp);
    const Evaluation e = evaluate(problem, context);
    const VectorXd expected = w * Eigen::Map<const VectorXd>(v.data(), 6);
    ASSERT_EQ(e.residuals.size(), 6u);
    for (int k = 0; k < 6; ++k) EXPECT_NEAR(e.residuals[size_t(k)], expected[k], 1e-11);
    if (std::hypot(v[3], v[4], v[5]) < 3)  // at a half turn the logarithm jumps
      for (const DerivativeFault& fault : check_derivatives(problem)) ADD_FAILURE() << fault.text();

    Problem prior;  // of B, at Z' = A Z
    const BlockSet one = prior.add_blocks("pose", se3(), std::vector<double>(both.begin() + 7, both.end()));
    std::vector<double> az = a;
    az.insert(az.end(), z.begin(), z.end());
    az = evaluated(az, [](std::span<const Value> x) { return se3_compose(x.first(7), x.subspan(7)); });
    prior.add_terms(se3_pose_prior_log(), {one}, std::vector<int32_t>{0}, se3_between_log_data(az, numbers));
    const Evaluation p = evaluate(prior, context);
    for (int k = 0; k < 6; ++k) EXPECT_NEAR(p.residuals[size_t(k)], expected[k], 1e-11);
  }
}

// An error of half a turn: the logarithm has a slope there; vec q has none, and the summary says so.
TEST(LogFactors, AnErrorOfHalfATurnIsMinimisedOrNoted) {
  ContextOptions cpu;
  cpu.device = "cpu";
  Context context(cpu);
  const std::vector<double> turned{1, 2, 3, 0, 1, 0, 0}, z{0, 0, 0, 1, 0, 0, 0};
  const std::vector<double> w = w_from_standard_deviations(std::vector<double>(6, 0.1));
  for (const Method method : {Method::lm, Method::dogleg, Method::gn}) {
    Options options;
    options.method = method;
    Problem problem;
    const BlockSet pose = problem.add_blocks("pose", se3(), turned);
    problem.add_terms(se3_pose_prior_log(), {pose}, std::vector<int32_t>{0}, se3_between_log_data(z, w));
    const Summary summary = minimize(problem, context, options);
    EXPECT_TRUE(converged(summary.termination)) << name(method);
    EXPECT_LT(summary.final_cost, 1e-15 * summary.initial_cost) << name(method);
    EXPECT_EQ(summary.notes, std::vector<std::string>());
  }
  Problem problem;
  const BlockSet pose = problem.add_blocks("pose", se3(), turned);
  problem.add_terms(se3_pose_prior(), {pose}, std::vector<int32_t>{0}, se3_between_data_from_radians(z, w));
  const Summary summary = minimize(problem, context);
  ASSERT_EQ(summary.notes.size(), 1u);
  EXPECT_EQ(summary.notes[0], "1 direction changes no residual to first order: pose");
}

TEST(FactorData, WComesFromDeviationsCovarianceOrInformation) {
  const MatrixXd root =
      Eigen::Map<const MatrixXd>(random_numbers(36, 5).data(), 6, 6) + 2 * MatrixXd::Identity(6, 6);
  const MatrixXd covariance = root * root.transpose(), information = covariance.inverse();
  const auto numbers = [](const MatrixXd& m) { return std::vector<double>(m.data(), m.data() + m.size()); };
  const auto product = [](const std::vector<double>& w, int n) {
    MatrixXd m = MatrixXd::Zero(n, n);
    size_t k = 0;
    for (int r = 0; r < n; ++r)
      for (int c = r; c < n; ++c) m(r, c) = w[k++];
    EXPECT_EQ(k, w.size());
    return MatrixXd(m.transpose() * m);
  };
  const double scale = information.cwiseAbs().maxCoeff();
  EXPECT_LT((product(w_from_covariance(numbers(covariance)), 6) - information).cwiseAbs().maxCoeff(),
            1e-12 * scale);
  EXPECT_LT((product(w_from_information(numbers(information)), 6) - information).cwiseAbs().maxCoeff(),
            1e-12 * scale);
  EXPECT_EQ(w_from_standard_deviations(std::vector<double>{0.5, 0.25, 4}),
            (std::vector<double>{2, 0, 0, 4, 0, 0.25}));

  EXPECT_NE(
      refusal([] { w_from_standard_deviations(std::vector<double>{1, 0}); }).find("deviation 0 of error 1"),
      std::string::npos);
  EXPECT_NE(refusal([] { w_from_covariance(std::vector<double>{1, 2, 2, 1}); }).find("positive"),
            std::string::npos);
  EXPECT_NE(refusal([] { w_from_information(std::vector<double>{1, 0.5, 0.4, 1}); }).find("symmetric"),
            std::string::npos);
  EXPECT_NE(refusal([] { w_from_information(std::vector<double>{1, 2, 3}); }).find("3 numbers"),
            std::string::npos);
  EXPECT_NE(refusal([] { w_from_covariance(std::vector<double>{}); }).find("0 numbers"), std::string::npos);
  const std::vector<double> w(21, 1), z{0, 0, 0, 2, 0, 0, 0};
  EXPECT_NE(refusal([&] { se3_between_log_data(z, w); }).find("length 1"), std::string::npos);
  EXPECT_NE(refusal([&] { se3_between_log_data(w, z); }).find("21 and 7"), std::string::npos);
}

// 0.01 rad with a deviation of 0.1 rad costs 1/2 0.1^2 by either residual.
TEST(FactorData, DeviationsOfRotationsAreRadiansForBothResiduals) {
  ContextOptions interp;
  interp.device = "interp";
  Context context(interp);
  const std::vector<double> z{0, 0, 0, 1, 0, 0, 0}, pose{0, 0, 0, std::cos(0.005), 0, std::sin(0.005), 0};
  const std::vector<double> w = w_from_standard_deviations(std::vector<double>{1, 1, 1, 0.1, 0.1, 0.1});
  for (const bool log : {true, false}) {
    Problem problem;
    const BlockSet set = problem.add_blocks("pose", se3(), pose);
    problem.add_terms(log ? se3_pose_prior_log() : se3_pose_prior(), {set}, std::vector<int32_t>{0},
                      log ? se3_between_log_data(z, w) : se3_between_data_from_radians(z, w));
    EXPECT_NEAR(evaluate(problem, context).cost, 0.005, log ? 1e-15 : 1e-7) << log;
  }
}

}  // namespace
}  // namespace lockstep::solve::test
