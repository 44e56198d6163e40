// Terms of mesh problems: values by plain formulas, gradients by complex steps.
#include "solve/mesh/energies/terms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "solve/mesh/geometry.hpp"
#include "solve/mesh/parameterize.hpp"
#include "solve/mesh/shapes/generate.hpp"

namespace lockstep::solve::mesh {
namespace {

struct Traced {
  explicit Traced(const TermType& type) {
    std::vector<std::vector<Value>> blocks;
    for (const int size : type.slots) {
      blocks.emplace_back();
      for (int c = 0; c < size; ++c) blocks.back().push_back(graph.variable("x"));
    }
    std::vector<Value> data;
    for (int k = 0; k < type.data; ++k) data.push_back(graph.parameter("d"));
    outputs = type.residual(TermArguments(graph, blocks, data));
    leaves = size_t(graph.leaf_count());
  }
  std::vector<double> operator()(const std::vector<double>& at) const {
    return autodiff::evaluate(outputs, at);
  }
  void check(const std::vector<double>& at, const std::string& name) const {
    ASSERT_EQ(at.size(), leaves) << name;
    for (const Value& output : outputs) {
      const auto c = autodiff::check_gradient(output, at);
      EXPECT_LT(c.max_error, 1e-11) << name;
      EXPECT_LT(c.forward_error, 1e-11) << name;
    }
  }
  autodiff::Tape graph;
  std::vector<Value> outputs;
  size_t leaves = 0;
};

TEST(MeshTerms, GradientsAgreeWithComplexSteps) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> share(0.2, 1);
  const auto numbers = [&](size_t n) {
    std::vector<double> v(n);
    for (double& x : v) x = share(random) * (random() % 2 ? 1 : -1);
    return v;
  };
  for (const TermType& type : {spring_term(), laplacian_term(2), laplacian_term(6), attachment_term(),
                               normal_difference_term(), bend_term(), gravity_term(), arap_term()}) {
    const Traced traced(type);
    for (int trial = 0; trial < 5; ++trial) traced.check(numbers(traced.leaves), type.name);
  }
  // An upright triangle.
  Traced(symmetric_dirichlet_term()).check({0, 0, 1.1, 0.2, 0.3, 0.9, 1, -0.4, 0.1, 1.3, 0.7}, "dirichlet");
}

TEST(MeshTerms, SpringsRestAtTheirLength) {
  const Traced spring(spring_term());
  EXPECT_DOUBLE_EQ(spring({0, 0, 0, 3, 4, 0, 5, 2})[0], 0);
  EXPECT_DOUBLE_EQ(spring({0, 0, 0, 3, 4, 0, 4, 2})[0], 2);
  EXPECT_DOUBLE_EQ(spring({1, 1, 1, 1, 1, 1, 4, 2})[0], -8) << "finite where both ends meet";
}

// Leaves: the vertex, then its anchor and weight.
TEST(MeshTerms, AttachmentIsTheWeighedOffset) {
  const std::vector<double> found = Traced(attachment_term())({1, 2, 3, 0.5, 3, 2.25, 4});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_DOUBLE_EQ(found[0], 2);
  EXPECT_DOUBLE_EQ(found[1], -4);
  EXPECT_DOUBLE_EQ(found[2], 3);
}

TEST(MeshTerms, BendIsTheHingeAngle) {
  const Traced bend(bend_term());
  for (double angle = -3; angle <= 3; angle += 0.25) {
    // a, b on the x axis; c to the left, d to the right, turned down by the angle.
    const double c = std::cos(angle), s = std::sin(angle);
    TriangleMesh mesh{{0, 0, 0, 2, 0, 0, 1, 1, 0, 1, -c, -s}, {0, 1, 2, 1, 0, 3}, {}};
    std::vector<double> leaves = mesh.vertices;
    leaves.insert(leaves.end(), {0.5, 3});
    const double measured = hinge_angle(mesh, {0, 1, 2, 3});
    EXPECT_NEAR(measured, angle, 1e-14);
    EXPECT_NEAR(bend(leaves)[0], 3 * (angle - 0.5), 1e-13);
  }
}

TEST(MeshTerms, NormalDifferenceIsTwiceTheSineOfHalfTheAngle) {
  const Traced difference(normal_difference_term());
  for (double angle = 0; angle < 3; angle += 0.5) {
    const auto r = difference({0, 0, 0, 2, 0, 0, 1, 1, 0, 1, -std::cos(angle), -std::sin(angle), 0.3});
    EXPECT_NEAR(std::hypot(r[0], r[1], r[2]), 0.3 * 2 * std::sin(angle / 2), 1e-11);
  }
}

TEST(MeshTerms, LaplaciansVanishOnLinearFunctions) {
  const TriangleMesh mesh = grid(5, 5);
  const Connectivity t = build_connectivity(mesh, "grid");
  const std::vector<double> cotangents = cotangent_weights(mesh, t);
  for (int64_t v = 0; v < t.vertices; ++v) {
    if (t.on_boundary[size_t(v)]) continue;
    const auto ring = t.star(v);
    const Traced laplacian(laplacian_term(int(ring.size())));
    std::vector<double> leaves;
    const auto add = [&](int32_t w) {
      const Point p = point(mesh, w);
      leaves.insert(leaves.end(), {2 * p[0] - p[1], 3 * p[1] + 1, p[0] + p[1]});
    };
    add(int32_t(v));
    for (const int32_t w : ring) add(w);
    for (const int32_t w : ring) leaves.push_back(cotangents[size_t(edge_index(t, int32_t(v), w))]);
    for (const double r : laplacian(leaves)) EXPECT_NEAR(r, 0, 1e-14);
  }
}

TEST(MeshTerms, ArapVanishesUnderTheRotationItHolds) {
  const Traced arap(arap_term());
  const double s = std::sqrt(0.5);  // a quarter turn around z
  for (const double r : arap({1, 2, 3, 1 - 0.5, 2 + 2, 3 + 1, s, 0, 0, s, 2, 0.5, 1, 7}))
    EXPECT_NEAR(r, 0, 1e-14);
}

TEST(MeshTerms, SymmetricDirichletOfIsometriesIsFourPerArea) {
  const TriangleMesh mesh = grid(4, 6);
  std::vector<double> uv;
  const double c = std::cos(0.7), s = std::sin(0.7);
  for (int64_t v = 0; v < mesh.vertex_count(); ++v) {
    const Point p = point(mesh, v);
    uv.insert(uv.end(), {c * p[0] - s * p[1] + 5, s * p[0] + c * p[1] - 2});
  }
  EXPECT_NEAR(symmetric_dirichlet(mesh, uv), 4, 1e-12);
  const Traced term(symmetric_dirichlet_term());
  const std::vector<double> frames = rest_frames(mesh);
  double sum = 0, stretched_sum = 0, shares = 0;
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    for (const bool stretched : {false, true}) {
      std::vector<double> leaves;
      for (const int32_t v : triangle(mesh, t)) {
        leaves.push_back(uv[size_t(2 * v)] * (stretched ? 2 : 1));
        leaves.push_back(uv[size_t(2 * v) + 1] * (stretched ? 2 : 1));
      }
      leaves.insert(leaves.end(), frames.begin() + 5 * t, frames.begin() + 5 * t + 5);
      (stretched ? stretched_sum : sum) += term(leaves)[0];
    }
    shares += frames[size_t(5 * t + 4)];
  }
  EXPECT_NEAR(shares, 1, 1e-13);
  EXPECT_NEAR(sum, 4, 1e-12);
  EXPECT_NEAR(stretched_sum, 2 * (4 + 0.25), 1e-12);
  // A triangle that is turned over costs infinity, and its gradient is not NaN.
  std::vector<double> turned{0, 0, 1, 0, 0, -1, 1, 0, 0, 1, 0.5};
  EXPECT_EQ(term(turned)[0], std::numeric_limits<double>::infinity());
  std::vector<Value> inputs;
  Traced again(symmetric_dirichlet_term());
  for (uint32_t k = 0; k < 6; ++k) inputs.push_back(again.graph.leaf_value(k));
  for (const double g : autodiff::evaluate<double>(gradient(again.outputs[0], inputs), turned))
    EXPECT_EQ(g, 0);
}

}  // namespace
}  // namespace lockstep::solve::mesh
