// Hessians of vertex stars, column by column or unrolled, and Newton's method on them.
#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include "solve/evaluate/evaluator.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/mesh/energies/mesh_problem.hpp"
#include "solve/mesh/shapes/generate.hpp"

namespace lockstep::solve::mesh {
namespace {

/// A vertex with `valence` neighbours on a wavy ring around it, a little out of symmetry.
Problem star_problem(Developability kind, int valence) {
  std::mt19937 random{unsigned(valence)};
  std::uniform_real_distribution<double> uniform(-0.12, 0.12);
  std::vector<double> positions{0.03, -0.02, 0.25};
  for (int k = 0; k < valence; ++k) {
    const double angle = 2 * std::numbers::pi * (k + 0.3 * std::sin(1.7 * k)) / valence;
    positions.insert(positions.end(), {std::cos(angle) + uniform(random), std::sin(angle) + uniform(random),
                                       0.3 * std::sin(2 * angle) + uniform(random)});
  }
  Problem problem;
  const BlockSet set = problem.add_blocks("star", euclidean(3), positions);
  std::vector<int32_t> row;
  for (int32_t k = 0; k <= valence; ++k) row.push_back(k);
  const TermType type = star_term(kind, valence);
  const std::vector<double> masks = kind == Developability::partition_sampled
                                        ? sampled_masks({0, valence / 2}, valence, 3, 1, 0)
                                        : std::vector<double>();
  problem.add_terms(type, std::vector<BlockSet>(size_t(valence) + 1, set), row, masks);
  return problem;
}

/// The Hessian by complex steps of the gradient's expression.
Eigen::MatrixXd reference_hessian(const Problem& problem) {
  using C = std::complex<double>;
  constexpr double kStep = 1e-30;
  const Batch& batch = problem.state().batches[0];
  const auto term = derivatives_of(batch);
  const int w = term->columns(), slots = int(term->widths().size());
  std::vector<C> leaves;
  for (const TermDerivatives::Leaf& leaf : term->leaves()) {
    double value = 0;
    const Segment& s = batch.segments[0];
    switch (leaf.kind) {
      case TermDerivatives::Leaf::Kind::component:
        value = problem.state().values[size_t(3 * s.blocks[size_t(leaf.slot)] + leaf.index)];
        break;
      case TermDerivatives::Leaf::Kind::datum: {
        size_t column = size_t(leaf.index);
        if (column < s.data.size()) {
          value = s.data[column];
          break;
        }
        column -= s.data.size();
        for (size_t k = 0; k < term->constants().size(); ++k)
          if (term->constants()[k].where == ConstantUse::Where::column && column-- == 0)
            value = s.constants[k];
        break;
      }
      case TermDerivatives::Leaf::Kind::uniform: {
        int at = leaf.index;
        for (size_t k = 0; k < term->constants().size(); ++k)
          if (term->constants()[k].where == ConstantUse::Where::uniform && at-- == 0) value = s.constants[k];
        break;
      }
      case TermDerivatives::Leaf::Kind::direction: break;
    }
    leaves.emplace_back(value);
  }
  Eigen::MatrixXd h(w, w);
  for (int c = 0; c < w; ++c) {
    std::vector<C> at = leaves;
    for (size_t k = 0; k < at.size(); ++k)
      if (const auto& leaf = term->leaves()[k];
          leaf.kind == TermDerivatives::Leaf::Kind::component && leaf.slot == c / 3 && leaf.index == c % 3)
        at[k] += C(0, kStep);
    const std::vector<C> g = autodiff::evaluate<C>(term->gradient(), at);
    for (int slot = 0; slot < slots; ++slot)
      for (int k = 0; k < 3; ++k) h(3 * slot + k, c) = g[size_t(k * slots + slot)].imag() / kStep;
  }
  return h;
}

/// Rows and columns by slot, from the stored upper triangle that linearize() left.
Eigen::MatrixXd device_hessian(const Problem& problem, const char* device, Precision precision) {
  Evaluator evaluator(problem, Device::open(device), precision);
  evaluator.linearize();
  const HostBatch batch = evaluator.host_batches()[0];
  return Eigen::Map<const Eigen::MatrixXd>(batch.jacobian.data(), batch.rows, batch.rows);
}

Eigen::MatrixXd projected(const Eigen::MatrixXd& h) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(0.5 * (h + h.transpose()));
  return solver.eigenvectors() * solver.eigenvalues().cwiseMax(0).asDiagonal() *
         solver.eigenvectors().transpose();
}

TEST(StarHessians, AreTheProjectedDerivativesOfTheGradient) {
  struct Sample {
    Developability kind;
    int valence;
  };
  for (const auto& [kind, valence] :
       {Sample{Developability::midpoint, 4}, Sample{Developability::covariance, 12},
        Sample{Developability::partition_sampled, 7}}) {
    const Problem problem = star_problem(kind, valence);
    const Eigen::MatrixXd reference = reference_hessian(problem);
    const double scale = reference.norm();
    ASSERT_GT(scale, 0.01);
    EXPECT_LT((reference - reference.transpose()).norm(), 1e-12 * scale);
    const Eigen::MatrixXd expected = projected(reference);
    ASSERT_GT((expected - reference).norm(), 1e-3 * scale) << "negative curvature is projected away";
    const Eigen::MatrixXd found = device_hessian(problem, "cpu", Precision::f64);
    EXPECT_LT((found - expected).norm(), 1e-12 * scale) << int(kind) << " " << valence;
    if (valence > 4) continue;
    const Eigen::MatrixXd narrow = device_hessian(problem, "cpu", Precision::f32);
    EXPECT_LT((narrow - expected).norm(), 1e-4 * scale);
  }
}

TEST(StarHessians, LargeOnesGoColumnByColumn) {
  const auto columns = [](Developability kind, int valence) {
    const Problem problem = star_problem(kind, valence);
    return !derivatives_of(problem.state().batches[0])->hessian_product().empty();
  };
  EXPECT_TRUE(columns(Developability::covariance, 8));
  EXPECT_TRUE(columns(Developability::plane_alignment, 6));
  // A triangle's energy stays one expression.
  Problem small;
  const BlockSet set = small.add_blocks("x", euclidean(2), std::vector<double>{0, 0, 1, 0, 0.3, 0.8});
  TermType area{"area", {2, 2, 2}, 0, [](const TermArguments& a) {
                  const Value twice = cross(a.vec2(1) - a.vec2(0), a.vec2(2) - a.vec2(0));
                  return std::vector{twice + 1.0 / twice};
                }};
  area.energy = true;
  small.add_terms(area, {set, set, set}, std::vector<int32_t>{0, 1, 2}, {});
  EXPECT_TRUE(derivatives_of(small.state().batches[0])->hessian_product().empty());
}

TEST(StarHessians, HaveTheSameBitsInTheInterpreter) {
  const Problem problem = star_problem(Developability::covariance, 5);
  ASSERT_FALSE(derivatives_of(problem.state().batches[0])->hessian_product().empty());
  for (const Precision precision : {Precision::f64, Precision::f32})
    EXPECT_EQ(device_hessian(problem, "cpu", precision), device_hessian(problem, "interp", precision));
}

/// Meridians and circles of latitude: poles with `meridians` neighbours, the others with five or six. A
/// little disturbed, so that no two cuts or edges of a star are equal.
TriangleMesh globe(int32_t meridians, int32_t circles) {
  TriangleMesh mesh;
  mesh.vertices = {0, 0, 1};
  for (int32_t i = 0; i < circles; ++i)
    for (int32_t j = 0; j < meridians; ++j) {
      const double t = std::numbers::pi * (i + 1) / (circles + 1), p = 2 * std::numbers::pi * j / meridians;
      mesh.vertices.insert(mesh.vertices.end(),
                           {std::sin(t) * std::cos(p), std::sin(t) * std::sin(p), std::cos(t)});
    }
  mesh.vertices.insert(mesh.vertices.end(), {0, 0, -1});
  const auto at = [&](int32_t i, int32_t j) { return 1 + i * meridians + j % meridians; };
  for (int32_t j = 0; j < meridians; ++j) {
    mesh.faces.insert(mesh.faces.end(), {0, at(0, j), at(0, j + 1)});
    mesh.faces.insert(mesh.faces.end(),
                      {1 + circles * meridians, at(circles - 1, j + 1), at(circles - 1, j)});
    for (int32_t i = 0; i + 1 < circles; ++i)
      mesh.faces.insert(mesh.faces.end(),
                        {at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j), at(i + 1, j + 1), at(i, j + 1)});
  }
  std::mt19937 random(4);
  std::uniform_real_distribution<double> uniform(-0.01, 0.01);
  for (double& v : mesh.vertices) v += uniform(random);
  return mesh;
}

Summary minimized(const TriangleMesh& mesh, const std::string& energy, Method method, int iterations) {
  MeshOptions options;
  options.energy = energy;
  MeshProblem problem(mesh, build_connectivity(mesh, "test"), options);
  Context context({.device = "cpu"});
  Options chosen;
  chosen.method = method;
  chosen.max_iterations = iterations;
  return minimize_mesh(problem, context, chosen);
}

TEST(NewtonOnStars, FallsFasterPerStepThanLbfgs) {
  const TriangleMesh mesh = globe(13, 3);  // valences 5, 6 and 13
  for (const char* energy : {"developable", "partition"}) {
    const Summary newton = minimized(mesh, energy, Method::newton, 8),
                  lbfgs = minimized(mesh, energy, Method::lbfgs, 8);
    EXPECT_EQ(newton.initial_cost, lbfgs.initial_cost) << energy;
    EXPECT_LT(newton.final_cost, 0.5 * newton.initial_cost) << energy;
    EXPECT_LT(newton.final_cost, lbfgs.final_cost) << energy;
    double before = newton.initial_cost;
    for (const Iteration& row : newton.trace) {
      EXPECT_LE(row.cost, before) << energy;
      before = row.cost;
    }
  }
}

TEST(NewtonOnStars, EndsQuadratically) {
  // The proxy is smooth and reaches zero.
  TriangleMesh mesh = icosphere(2);
  for (size_t k = 0; k < mesh.vertices.size(); ++k)
    mesh.vertices[k] += 0.002 * std::sin(37.1 * double(k * k));
  const Summary newton = minimized(mesh, "eigen-proxy", Method::newton, 40);
  EXPECT_TRUE(converged(newton.termination)) << newton.message;
  EXPECT_LT(std::abs(newton.final_cost), 1e-9);
  EXPECT_LT(newton.iterations, 30);
}

}  // namespace
}  // namespace lockstep::solve::mesh
