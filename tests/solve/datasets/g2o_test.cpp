// Pose graphs: errors against matrices, derivatives against complex steps, costs of public graphs.
#include "solve/datasets/g2o.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "io/test_data.hpp"
#include "lockstep/error.hpp"
#include "solve/datasets/pose_graph_start.hpp"

namespace lockstep::solve {
namespace {

using test::data_folder;

/// e^T Omega e of an edge by 4 x 4 matrices.
double reference_cost3(const io::PoseGraph& graph, size_t e) {
  const auto matrix = [](const double* p) {
    Eigen::Isometry3d x = Eigen::Isometry3d::Identity();
    x.translation() << p[0], p[1], p[2];
    x.linear() = Eigen::Quaterniond(p[3], p[4], p[5], p[6]).toRotationMatrix();
    return x;
  };
  const Eigen::Isometry3d error = matrix(&graph.measurements[7 * e]).inverse() *
                                  matrix(&graph.poses[7 * size_t(graph.edges[2 * e])]).inverse() *
                                  matrix(&graph.poses[7 * size_t(graph.edges[2 * e + 1])]);
  Eigen::Quaterniond q(error.linear());
  if (q.w() < 0) q.coeffs() *= -1;
  Eigen::Matrix<double, 6, 1> v;
  v << error.translation(), q.vec();
  return v.dot(Eigen::Map<const Eigen::Matrix<double, 6, 6>>(&graph.information[36 * e]) * v);
}
double reference_cost2(const io::PoseGraph& graph, size_t e) {
  const auto matrix = [](const double* p) {
    Eigen::Isometry2d x = Eigen::Isometry2d::Identity();
    x.translation() << p[0], p[1];
    x.linear() = Eigen::Rotation2Dd(p[2]).toRotationMatrix();
    return x;
  };
  const Eigen::Isometry2d error = matrix(&graph.measurements[3 * e]).inverse() *
                                  matrix(&graph.poses[3 * size_t(graph.edges[2 * e])]).inverse() *
                                  matrix(&graph.poses[3 * size_t(graph.edges[2 * e + 1])]);
  const Eigen::Vector3d v(error.translation().x(), error.translation().y(),
                          std::atan2(error.linear()(1, 0), error.linear()(0, 0)));
  return v.dot(Eigen::Map<const Eigen::Matrix3d>(&graph.information[9 * e]) * v);
}

/// The term, traced once over leaves: blocks first, then data.
struct Traced {
  explicit Traced(const TermType& type) {
    std::vector<std::vector<Value>> blocks;
    for (const int size : type.slots) {
      blocks.emplace_back();
      for (int k = 0; k < size; ++k) blocks.back().push_back(graph.variable("x"));
    }
    std::vector<Value> data;
    for (int k = 0; k < type.data; ++k) data.push_back(graph.parameter("d"));
    residual = type.residual(TermArguments(graph, blocks, data));
  }
  autodiff::Tape graph;
  std::vector<Value> residual;
};

std::vector<double> leaves_of_edge(const io::PoseGraph& graph, const std::vector<double>& data, size_t e) {
  const size_t pose = size_t(graph.pose_size()), width = graph.dimension == 2 ? 11 : 28;
  std::vector<double> leaves;
  for (size_t end = 0; end < 2; ++end) {
    const double* p = &graph.poses[size_t(graph.edges[2 * e + end]) * pose];
    leaves.insert(leaves.end(), p, p + pose);
  }
  leaves.insert(leaves.end(), data.begin() + std::ptrdiff_t(e * width),
                data.begin() + std::ptrdiff_t((e + 1) * width));
  return leaves;
}

/// A closed loop with random poses, measurements and information.
io::PoseGraph random_graph(int dimension, int vertices, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(-1, 1);
  io::PoseGraph graph;
  graph.dimension = dimension;
  const auto pose = [&](std::vector<double>& out) {
    for (int k = 0; k < dimension; ++k) out.push_back(3 * unit(random));
    if (dimension == 2) {
      out.push_back(3 * unit(random));
    } else {
      Eigen::Vector4d q(unit(random), unit(random), unit(random), unit(random));
      q.normalize();
      out.insert(out.end(), q.data(), q.data() + 4);
    }
  };
  const int n = graph.error_size();
  for (int v = 0; v < vertices; ++v) {
    graph.ids.push_back(10 + v);
    pose(graph.poses);
    graph.edges.insert(graph.edges.end(), {v, (v + 1) % vertices});
    pose(graph.measurements);
    Eigen::MatrixXd half = Eigen::MatrixXd::NullaryExpr(n, n, [&] { return unit(random); });
    const Eigen::MatrixXd information = half * half.transpose() + Eigen::MatrixXd::Identity(n, n);
    graph.information.insert(graph.information.end(), information.data(), information.data() + n * n);
  }
  return graph;
}

TEST(PoseGraph, ResidualsAreTheWhitenedErrors) {
  for (const int dimension : {2, 3}) {
    const io::PoseGraph graph = random_graph(dimension, 50, 3);
    const Traced term(dimension == 2 ? se2_edge() : se3_edge());
    const std::vector<double> data = edge_data(graph);
    for (size_t e = 0; e < size_t(graph.edge_count()); ++e) {
      double got = 0;
      for (const double r : evaluate<double>(term.residual, leaves_of_edge(graph, data, e))) got += r * r;
      const double want = dimension == 2 ? reference_cost2(graph, e) : reference_cost3(graph, e);
      EXPECT_NEAR(got, want, 1e-11 * want) << dimension << " " << e;
    }
  }
}

TEST(PoseGraph, DerivativesMatchComplexSteps) {
  for (const int dimension : {2, 3}) {
    const io::PoseGraph graph = random_graph(dimension, 10, 4);
    const Traced term(dimension == 2 ? se2_edge() : se3_edge());
    const std::vector<double> data = edge_data(graph);
    for (size_t e = 0; e < 10; ++e)
      for (const Value& r : term.residual)
        EXPECT_LT(check_gradient(r, leaves_of_edge(graph, data, e)).max_error, 1e-12);
  }
}

TEST(PoseGraph, FixedVertices) {
  io::PoseGraph graph = random_graph(3, 5, 5);
  PoseGraphProblem made = build(graph);
  EXPECT_TRUE(made.problem.fixed(made.poses, 0));
  EXPECT_EQ(made.problem.variable_count(), 4 * 6);
  EXPECT_EQ(made.problem.residual_count(), 5 * 6);
  EXPECT_EQ(made.problem.batch_count(), 1);
  graph.fixed = {2, 4};
  made = build(graph);
  EXPECT_FALSE(made.problem.fixed(made.poses, 0));
  EXPECT_TRUE(made.problem.fixed(made.poses, 2));
  EXPECT_EQ(made.problem.variable_count(), 3 * 6);
  EXPECT_EQ(with_poses(graph, made).poses, graph.poses);
}

/// random_graph() with measurements made from its poses; edges point both ways.
io::PoseGraph exact_graph(int dimension) {
  io::PoseGraph graph = random_graph(dimension, 9, 8);
  const size_t pose = size_t(graph.pose_size());
  for (size_t e = 0; e < 9; e += 2) std::swap(graph.edges[2 * e], graph.edges[2 * e + 1]);
  for (size_t e = 0; e < 9; ++e) {
    const double *a = &graph.poses[pose * size_t(graph.edges[2 * e])],
                 *b = &graph.poses[pose * size_t(graph.edges[2 * e + 1])];
    double* z = &graph.measurements[pose * e];
    if (dimension == 2) {
      const Eigen::Vector2d t = Eigen::Rotation2Dd(-a[2]) * Eigen::Vector2d(b[0] - a[0], b[1] - a[1]);
      z[0] = t.x(), z[1] = t.y(), z[2] = b[2] - a[2];
    } else {
      const Eigen::Quaterniond p(a[3], a[4], a[5], a[6]), q(b[3], b[4], b[5], b[6]);
      const Eigen::Vector3d t = p.conjugate() * Eigen::Vector3d(b[0] - a[0], b[1] - a[1], b[2] - a[2]);
      const Eigen::Quaterniond r = p.conjugate() * q;
      const double values[] = {t.x(), t.y(), t.z(), r.w(), r.x(), r.y(), r.z()};
      std::copy_n(values, 7, z);
    }
  }
  return graph;
}

// Exact measurements give the poses back with any start.
TEST(PoseGraph, StartsFromExactMeasurementsAreThePoses) {
  for (const int dimension : {2, 3})
    for (const PoseStart start : {PoseStart::tree, PoseStart::chordal}) {
      SCOPED_TRACE(std::string(name(start)) + std::to_string(dimension));
      io::PoseGraph graph = exact_graph(dimension);
      const size_t pose = size_t(graph.pose_size());
      const std::vector<double> truth = graph.poses;
      std::fill(graph.poses.begin() + std::ptrdiff_t(pose), graph.poses.end(), 0.1);
      EXPECT_EQ(start_poses(graph, start), start);
      const Traced term(dimension == 2 ? se2_edge() : se3_edge());
      const std::vector<double> data = edge_data(graph);
      for (size_t e = 0; e < 9; ++e)
        for (const double r : evaluate<double>(term.residual, leaves_of_edge(graph, data, e)))
          EXPECT_NEAR(r, 0, 1e-11);
      for (size_t v = 0; v < 9; ++v)
        for (size_t k = 0; k < size_t(dimension); ++k)
          EXPECT_NEAR(graph.poses[v * pose + k], truth[v * pose + k], 1e-11);
    }
}

TEST(PoseGraph, AFileOfEdgesAloneStartsFromThem) {
  for (const int dimension : {2, 3}) {
    const io::PoseGraph graph = exact_graph(dimension);
    const auto path =
        std::filesystem::temp_directory_path() / ("lockstep_edges_" + std::to_string(::getpid()));
    io::write_g2o(path, graph);
    std::string edges;
    {
      std::ifstream stream(path);
      for (std::string line; std::getline(stream, line);)
        if (line.rfind("EDGE", 0) == 0) edges += line + "\n";
    }
    std::filesystem::remove(path);
    io::PoseGraph bare = io::parse_g2o(edges, "edges.g2o");
    EXPECT_FALSE(bare.has_poses);
    EXPECT_EQ(bare.ids, graph.ids);
    EXPECT_EQ(bare.edges, graph.edges);
    EXPECT_EQ(start_poses(bare, PoseStart::file), PoseStart::tree);
    PoseGraphProblem made = build(bare);
    Context context({.device = "cpu"});
    const Summary summary = minimize(made.problem, context);
    EXPECT_LT(summary.initial_cost, 1e-18);
    EXPECT_THROW(io::parse_g2o(edges + "FIX 10\nFIX 11\n", "edges.g2o"), InputError);
    EXPECT_EQ(io::parse_g2o(edges + "FIX 11\n", "edges.g2o").fixed, std::vector<int32_t>{1});
  }
  EXPECT_THROW(io::parse_g2o("", "edges.g2o"), InputError);
}

// Under noise the relaxation, which sees every loop, starts closer to the minimum than a tree.
TEST(PoseGraph, AChordalStartIsBetterThanATree) {
  for (const char* name : {"smallGrid3D", "intel"}) {
    const auto path = data_folder() / "solve" / "g2o" / (std::string(name) + ".g2o");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
    const auto cost = [&](PoseStart start) {
      io::PoseGraph graph = io::read_g2o(path);
      start_poses(graph, start);
      PoseGraphProblem made = build(graph);
      Context context({.device = "cpu"});
      Options options;
      options.max_iterations = 0;
      return minimize(made.problem, context, options).initial_cost;
    };
    EXPECT_LT(cost(PoseStart::chordal), 0.2 * cost(PoseStart::tree)) << name;
  }
}

// Two edges that disagree about one pose: the translation is their mean by the information of translation, the rotation that of
// the mean of the matrices by the information of the angle.
TEST(PoseGraph, AChordalStartWeighsEdgesByTheirInformation) {
  io::PoseGraph graph = io::parse_g2o(
      "VERTEX_SE2 0 0 0 0\nVERTEX_SE2 1 0 0 0\nFIX 0\n"
      "EDGE_SE2 0 1 1 2 0.2 3 0 0 5 0 7\nEDGE_SE2 0 1 4 -1 1.4 12 0 0 20 0 2\n",
      "two.g2o");
  start_chordal(graph);
  const double near = 4, far = 16;  // means of the diagonals
  EXPECT_NEAR(graph.poses[3], (near * 1 + far * 4) / (near + far), 1e-12);
  EXPECT_NEAR(graph.poses[4], (near * 2 - far * 1) / (near + far), 1e-12);
  EXPECT_NEAR(graph.poses[5],
              std::atan2(7 * std::sin(0.2) + 2 * std::sin(1.4), 7 * std::cos(0.2) + 2 * std::cos(1.4)),
              1e-12);
}

TEST(PoseGraph, AVertexWithoutEdgesStays) {
  io::PoseGraph graph = random_graph(2, 3, 6);
  graph.ids.push_back(99);
  graph.poses.insert(graph.poses.end(), {0, 0, 0});
  PoseGraphProblem made = build(graph);
  EXPECT_TRUE(made.problem.fixed(made.poses, 3));
  EXPECT_TRUE(made.problem.fixed(made.poses, 0));
}

/// Poses that explain priors, bearings and steps exactly are found from a nearby start.
TEST(PoseGraph, PriorsHoldItAndBearingsFindALandmark) {
  const std::string text =
      "VERTEX_SE2 0 0.1 -0.1 0.05\nVERTEX_SE2 1 2.1 0.1 0.6\nVERTEX_XY 2 2.4 2.6\n"
      "EDGE_PRIOR_SE2 0 0 0 0 4 0 0 4 0 9\n"
      "EDGE_SE2 0 1 2 0 0.5 1 0 0 1 0 1\n"
      "EDGE_BEARING_SE2_XY 0 2 0.7853981633974483 100\n"
      "EDGE_BEARING_SE2_XY 1 2 1.0707963267948966 100\n";
  const io::PoseGraph graph = io::parse_g2o(text, "p.g2o");
  EXPECT_EQ(graph.prior_count(), 1);
  EXPECT_EQ(graph.bearing_count(), 2);
  PoseGraphProblem made = build(graph);
  EXPECT_FALSE(made.problem.fixed(made.poses, 0));
  Context context({.device = "interp"});
  const Summary summary = minimize(made.problem, context);
  EXPECT_LT(summary.final_cost, 1e-18);
  const io::PoseGraph solved = with_poses(graph, made);
  const double expected[] = {0, 0, 0, 2, 0, 0.5};
  for (size_t k = 0; k < 6; ++k) EXPECT_NEAR(solved.poses[k], expected[k], 1e-9);
  EXPECT_NEAR(solved.landmarks.points[0], 2, 1e-9);
  EXPECT_NEAR(solved.landmarks.points[1], 2, 1e-9);
}

TEST(PoseGraph, APriorInSpaceIsOfTheSensor) {
  // The sensor is 1 ahead of the robot and rotated by 90 degrees about z. There is no information on the rotation.
  const std::string text =
      "PARAMS_SE3OFFSET 5 1 0 0 0 0 0.7071067811865476 0.7071067811865476\n"
      "VERTEX_SE3:QUAT 0 0.3 0.2 0.1 0 0 0 1\n"
      "EDGE_SE3_PRIOR 0 5 4 5 6 0 0 0.7071067811865476 0.7071067811865476 "
      "1 0 0 0 0 0 1 0 0 0 0 1 0 0 0 1 0 0 1 0 1\n";
  const io::PoseGraph graph = io::parse_g2o(text, "p.g2o");
  PoseGraphProblem made = build(graph);
  Context context({.device = "interp"});
  EXPECT_LT(minimize(made.problem, context).final_cost, 1e-18);
  const std::span<const double> pose = std::as_const(made.problem).values(made.poses);
  const double expected[] = {3, 5, 6, 1, 0, 0, 0};
  for (size_t k = 0; k < 7; ++k) EXPECT_NEAR(pose[k], expected[k], 1e-8) << k;
}

struct Known {
  const char* name;
  double cost;
};
class PublicGraph : public testing::TestWithParam<Known> {};

// Costs of Ceres 2.1 with the same errors.
TEST_P(PublicGraph, ReachesTheCostOfCeres) {
  const auto path = data_folder() / "solve" / "g2o" / (std::string(GetParam().name) + ".g2o");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  PoseGraphProblem made = build(io::read_g2o(path));
  Context context({.device = "cpu"});
  Options options;
  options.linear = Linear::cholesky;
  const Summary summary = minimize(made.problem, context, options);
  EXPECT_TRUE(converged(summary.termination)) << report(summary);
  EXPECT_NEAR(summary.final_cost, GetParam().cost, 1e-6 * std::max(1.0, GetParam().cost)) << report(summary);
}
INSTANTIATE_TEST_SUITE_P(Graphs, PublicGraph,
                         testing::Values(Known{"tinyGrid3D", 3.363941}, Known{"smallGrid3D", 229.0769},
                                         Known{"intel", 22.50235}, Known{"parking-garage", 0.619345},
                                         Known{"sphere2500", 363.574834}),
                         [](const auto& known) {
                           std::string name = known.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace lockstep::solve
