// Robust losses against their published forms, and what J^T J takes from their second derivative.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <array>
#include <cmath>
#include <functional>

#include "lockstep/solve/evaluation.hpp"
#include "lockstep/solve/factors.hpp"
#include "problems.hpp"
#include "solve/evaluate/evaluator.hpp"
#include "solve/reference.hpp"

namespace lockstep::solve::test {
namespace {

using Three = std::array<double, 3>;  // rho, rho', rho''

struct Published {
  const char* text;
  std::function<Three(double s)> form;  // as in Ceres' loss_function.h, or the loss's paper
};

std::vector<Published> published() {
  constexpr double a = 0.7, a2 = a * a;
  return {
      {"huber:0.7",
       [](double s) -> Three {
         if (s <= a2) return {s, 1, 0};
         const double root = std::sqrt(s);
         return {2 * a * root - a2, a / root, -a / root / (2 * s)};
       }},
      {"soft_l1:0.7",
       [](double s) -> Three {
         const double sum = 1 + s / a2, root = std::sqrt(sum);
         return {2 * a2 * (root - 1), 1 / root, -(1 / a2) / (2 * root * sum)};
       }},
      {"cauchy:0.7",
       [](double s) -> Three {
         const double inverse = 1 / (1 + s / a2);
         return {-a2 * std::log(inverse), inverse, -inverse * inverse / a2};
       }},
      {"arctan:0.7",
       [](double s) -> Three {
         const double inverse = 1 / (1 + s * s / a2);
         return {a * std::atan2(s, a), inverse, -2 * s / a2 * inverse * inverse};
       }},
      {"tukey:0.7",
       [](double s) -> Three {
         if (s > a2) return {a2 / 3, 0, 0};
         const double v = 1 - s / a2;
         return {a2 / 3 * (1 - v * v * v), v * v, -2 / a2 * v};
       }},
      {"geman_mcclure:0.7",  // Geman and McClure 1985, with rho'(0) = 1
       [](double s) -> Three {
         const double t = a2 / (a2 + s);
         return {s * t, t * t, -2 * t * t * t / a2};
       }},
      {"tolerant:4,1",
       [](double s) -> Three {
         const double e = std::exp(s - 4), at_0 = std::log(1 + std::exp(-4.0));
         return {std::log(1 + e) - at_0, e / (1 + e), 0.5 / (1 + std::cosh(s - 4))};
       }},
      {"tolerant:0.5,0.05",
       [](double s) -> Three {
         const double x = (s - 0.5) / 0.05, e = std::exp(x), at_0 = 0.05 * std::log(1 + std::exp(-10.0));
         return {0.05 * std::log(1 + e) - at_0, e / (1 + e), 0.5 / (0.05 * (1 + std::cosh(x)))};
       }},
  };
}

TEST(Losses, AndTheirDerivativesAreThePublishedForms) {
  constexpr double kStep = 1e-5;
  for (const auto& [text, form] : published())
    for (const double s : {0.0, 1e-6, 0.03, 0.3, 0.48, 0.5, 1.7, 3.9, 4.0, 4.6, 11.0}) {
      autodiff::Tape graph;
      const Value v = graph.variable("s"), rho = robust_loss(parse_robust_loss(text), v);
      const Value slope = autodiff::gradient(rho, {v})[0], bend = autodiff::gradient(slope, {v})[0];
      const Three expected = form(s);
      const auto at = [&](const Value& value) {
        return autodiff::evaluate<double>(value, std::vector<double>{s});
      };
      EXPECT_NEAR(at(rho), expected[0], 1e-13 * (1 + expected[0])) << text << " " << s;
      EXPECT_NEAR(at(slope), expected[1], 1e-13) << text << " " << s;
      EXPECT_NEAR(at(bend), expected[2], 1e-12 * (1 + std::abs(expected[2]))) << text << " " << s;
      // The forms themselves against differences, away from the edge of tukey and huber.
      if (s == 0 || std::abs(s - 0.49) < 0.02) continue;
      for (const size_t k : {0u, 1u}) {
        const double step = std::min(kStep, 0.5 * s);
        EXPECT_NEAR((form(s + step)[k] - form(s - step)[k]) / (2 * step), expected[k + 1],
                    1e-4 * (1e-3 + std::abs(expected[k + 1])))
            << text << " " << s << " derivative " << k + 1;
      }
    }
}

/// Two residuals of three unknowns, under a loss.
Problem bent_problem(const RobustLoss& loss, double scale) {
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(3), std::vector<double>{0.4, -0.7, 1.1});
  problem.add_terms({"bent",
                     {3},
                     1,
                     [](const TermArguments& a) {
                       return std::vector<Value>{a.data(0) * (a.x(0, 0) * a.x(0, 1) + 1.0),
                                                 a.data(0) * (sin(a.x(0, 2)) - a.x(0, 0))};
                     },
                     loss},
                    {x}, std::vector<int32_t>{0}, std::vector<double>{scale});
  return problem;
}

TEST(Losses, GiveTheJacobianTheirConvexPart) {
  ContextOptions interp;
  interp.device = "interp";
  Context context(interp);
  EvaluateOptions options;
  options.normal = true;
  for (const auto& [text, form] : published())
    for (const double scale : {0.1, 0.8, 1.9, 3.0}) {
      const Problem problem = bent_problem(parse_robust_loss(text), scale);
      const Evaluation e = evaluate(problem, context, options);
      const Eigen::Vector2d r(scale * (0.4 * -0.7 + 1), scale * (std::sin(1.1) - 0.4));
      Eigen::Matrix<double, 2, 3> j;
      j << -0.7, 0.4, 0, -1, 0, std::cos(1.1);
      j *= scale;
      const Three rho = form(r.squaredNorm());
      const Eigen::Vector3d half = j.transpose() * r, gradient = rho[1] * half;
      const Eigen::Matrix3d normal =
          rho[1] * j.transpose() * j + 2 * std::max(rho[2], 0.0) * half * half.transpose();
      Eigen::Matrix3d got = Eigen::Matrix3d::Zero(), of_rows = Eigen::Matrix3d::Zero();
      Eigen::Vector3d of_residuals = Eigen::Vector3d::Zero();
      for (int64_t row = 0; row < 3; ++row)
        for (int64_t k = e.normal.first[size_t(row)]; k < e.normal.first[size_t(row) + 1]; ++k)
          got(row, e.normal.column[size_t(k)]) = e.normal.values[size_t(k)];
      Eigen::Matrix<double, 2, 3> s = Eigen::Matrix<double, 2, 3>::Zero();
      for (int64_t row = 0; row < 2; ++row)
        for (int64_t k = e.jacobian.first[size_t(row)]; k < e.jacobian.first[size_t(row) + 1]; ++k)
          s(row, e.jacobian.column[size_t(k)]) = e.jacobian.values[size_t(k)];
      of_rows = s.transpose() * s;
      of_residuals = s.transpose() * Eigen::Vector2d(e.residuals[0], e.residuals[1]);
      const double tolerance = 1e-12 * (1 + normal.norm());
      EXPECT_LT((got - normal).norm(), tolerance) << text << " " << scale;
      EXPECT_LT((of_rows - normal).norm(), tolerance) << text << " " << scale;
      EXPECT_LT((of_residuals - gradient).norm(), tolerance) << text << " " << scale;
      for (int k = 0; k < 3; ++k) EXPECT_NEAR(e.gradient[size_t(k)], gradient(k), tolerance);
    }
}

/// Products without a stored Jacobian, those of host terms, and aliases of slots are those of the reference.
TEST(Losses, GiveAllProductsTheirConvexPart) {
  const RobustLoss loss = tolerant_loss(0.3, 0.1);
  for (const bool on_host : {false, true}) {
    Problem problem;
    const BlockSet points = problem.add_blocks("points", euclidean(3), random_numbers(8 * 3, 1));
    const std::vector<int32_t> edges = random_tuples(20, 2, 8, 3);
    const std::vector<double> lengths = random_numbers(20, 5, 0.1, 1);
    TermType spring = spring_type(loss);
    Problem traced;
    const BlockSet same = traced.add_blocks("points", euclidean(3), random_numbers(8 * 3, 1));
    traced.add_terms(spring, {same, same}, edges, lengths);
    if (on_host) {
      HostTerm host{.name = "spring", .slots = {3, 3}, .residuals = 1, .data = 1, .loss = loss};
      host.residual = [](const HostInstance& at, std::span<double> r) {
        r[0] = std::hypot(at.blocks[0][0] - at.blocks[1][0], at.blocks[0][1] - at.blocks[1][1],
                          at.blocks[0][2] - at.blocks[1][2]) -
               at.data[0];
      };
      problem.add_terms(host, {points, points}, edges, lengths);
    } else {
      problem.add_terms(spring, {points, points}, edges, lengths);
    }
    const std::vector<double> p = random_numbers(24, 9);
    const reference::Linearized expected = reference::linearize(traced, traced.state().values, p);
    for (const char* assembly : {"plain", "groups"}) {
      if (on_host && assembly == std::string("groups")) continue;
      const Device device = Device::open("cpu");
      EvaluatorOptions options;
      options.assembly = assembly;
      Evaluator evaluator(problem, device, Precision::f64, options);
      EXPECT_NEAR(evaluator.linearize(), expected.cost, 1e-12);
      const Buffer from = device.upload(p), to = device.allocate(Storage::f64, {24});
      evaluator.multiply(from, to);
      expect_near(device.download<double>(to), expected.product, on_host ? 1e-7 : 1e-10, assembly);
      expect_near(device.download<double>(evaluator.diagonal()), expected.diagonal, on_host ? 1e-7 : 1e-10,
                  assembly);
      expect_near(device.download<double>(evaluator.gradient()), expected.gradient, on_host ? 1e-7 : 1e-12,
                  assembly);
    }
  }
}

}  // namespace
}  // namespace lockstep::solve::test
