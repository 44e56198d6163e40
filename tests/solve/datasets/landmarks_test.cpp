// Landmarks of pose graphs: errors against matrices, derivatives against complex steps, known optima.
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <random>

#include "lockstep/error.hpp"
#include "solve/datasets/g2o.hpp"
#include "solve/datasets/pose_graph_start.hpp"

namespace lockstep::solve {
namespace {

struct Numbers {
  std::mt19937_64 random;
  double operator()(double low = -1, double high = 1) {
    return low + (high - low) * double(random() >> 11) * 0x1p-53;
  }
};

Eigen::Isometry3d matrix3(const double* p) {
  Eigen::Isometry3d x = Eigen::Isometry3d::Identity();
  x.translation() << p[0], p[1], p[2];
  x.linear() = Eigen::Quaterniond(p[3], p[4], p[5], p[6]).toRotationMatrix();
  return x;
}
Eigen::Isometry2d matrix2(const double* p) {
  Eigen::Isometry2d x = Eigen::Isometry2d::Identity();
  x.translation() << p[0], p[1];
  x.linear() = Eigen::Rotation2Dd(p[2]).toRotationMatrix();
  return x;
}

void append_information(std::vector<double>& to, int n, Numbers& number) {
  const Eigen::MatrixXd half = Eigen::MatrixXd::NullaryExpr(n, n, [&] { return number(); });
  const Eigen::MatrixXd whole = half * half.transpose() + Eigen::MatrixXd::Identity(n, n);
  to.insert(to.end(), whole.data(), whole.data() + n * n);
}

/// A path whose poses observe landmarks. Measurements are exact, so the truth is the optimum, of cost 0.
io::PoseGraph walk(int dimension, int poses, int landmarks, uint64_t seed) {
  Numbers number{std::mt19937_64(seed)};
  io::PoseGraph graph;
  graph.dimension = dimension;
  io::Landmarks& l = graph.landmarks;
  const size_t d = size_t(dimension), pose = size_t(graph.pose_size());
  for (int k = 0; k < poses; ++k) {
    graph.ids.push_back(k);
    for (size_t c = 0; c < d; ++c) graph.poses.push_back(c == 0 ? k : number());
    if (dimension == 2) {
      graph.poses.push_back(number(-3, 3));
    } else {
      Eigen::Vector4d q(number(), number(), number(), number());
      q.normalize();
      graph.poses.insert(graph.poses.end(), q.data(), q.data() + 4);
    }
  }
  for (int k = 0; k < landmarks; ++k) {
    l.ids.push_back(1000 + k);
    for (size_t c = 0; c < d; ++c) l.points.push_back(c == 0 ? number(0, poses) : number(-4, 4));
  }
  if (dimension == 3) {
    l.sensor_ids = {0, 5};
    l.sensor_poses = {0.1, 0.2, -0.3, 0.5, -0.5, 0.5, 0.5, -1, 0, 2, 1, 0, 0, 0};
  }
  for (int k = 0; k + 1 < poses; ++k) {
    graph.edges.insert(graph.edges.end(), {k, k + 1});
    const double *a = &graph.poses[size_t(k) * pose], *b = a + pose;
    if (dimension == 2) {
      const Eigen::Vector2d t = matrix2(a).inverse() * Eigen::Vector2d(b[0], b[1]);
      graph.measurements.insert(graph.measurements.end(), {t.x(), t.y(), b[2] - a[2]});
    } else {
      const Eigen::Isometry3d z = matrix3(a).inverse() * matrix3(b);
      const Eigen::Quaterniond q(z.linear());
      graph.measurements.insert(graph.measurements.end(), {z.translation().x(), z.translation().y(),
                                                           z.translation().z(), q.w(), q.x(), q.y(), q.z()});
    }
    append_information(graph.information, graph.error_size(), number);
  }
  for (int k = 0; k < landmarks; ++k)
    for (int sight = 0; sight < 4; ++sight) {
      const int from = (k * 7 + sight * 3) % poses;
      l.sights.insert(l.sights.end(), {from, k});
      const double *x = &graph.poses[size_t(from) * pose], *p = &l.points[size_t(k) * d];
      if (dimension == 2) {
        const Eigen::Vector2d z = matrix2(x).inverse() * Eigen::Vector2d(p[0], p[1]);
        l.seen.insert(l.seen.end(), {z.x(), z.y()});
      } else {
        l.sensors.push_back((k + sight) % 2);
        const double* sensor = &l.sensor_poses[7 * size_t(l.sensors.back())];
        const Eigen::Vector3d z =
            (matrix3(x) * matrix3(sensor)).inverse() * Eigen::Vector3d(p[0], p[1], p[2]);
        l.seen.insert(l.seen.end(), {z.x(), z.y(), z.z()});
      }
      append_information(l.information, dimension, number);
    }
  if (dimension == 2)
    for (int k = 0; k + 1 < landmarks; ++k) {
      l.links.insert(l.links.end(), {k, k + 1});
      for (size_t c = 0; c < 2; ++c)
        l.differences.push_back(l.points[size_t(k + 1) * 2 + c] - l.points[size_t(k) * 2 + c]);
      append_information(l.link_information, 2, number);
    }
  return graph;
}

/// 1/2 e^T Omega e of all sights and links, by matrices.
double reference_cost(const io::PoseGraph& graph) {
  const io::Landmarks& l = graph.landmarks;
  const size_t d = size_t(graph.dimension), pose = size_t(graph.pose_size());
  double cost = 0;
  for (size_t e = 0; e < size_t(graph.sight_count()); ++e) {
    const double *x = &graph.poses[pose * size_t(l.sights[2 * e])],
                 *p = &l.points[d * size_t(l.sights[2 * e + 1])];
    Eigen::VectorXd error(d);
    if (d == 2)
      error = matrix2(x).inverse() * Eigen::Vector2d(p[0], p[1]);
    else
      error = (matrix3(x) * matrix3(&l.sensor_poses[7 * size_t(l.sensors[e])])).inverse() *
              Eigen::Vector3d(p[0], p[1], p[2]);
    error -= Eigen::Map<const Eigen::VectorXd>(&l.seen[d * e], int(d));
    cost +=
        0.5 * error.dot(Eigen::Map<const Eigen::MatrixXd>(&l.information[d * d * e], int(d), int(d)) * error);
  }
  for (size_t e = 0; e < size_t(graph.link_count()); ++e) {
    const double *a = &l.points[2 * size_t(l.links[2 * e])], *b = &l.points[2 * size_t(l.links[2 * e + 1])];
    const Eigen::Vector2d error(b[0] - a[0] - l.differences[2 * e], b[1] - a[1] - l.differences[2 * e + 1]);
    cost += 0.5 * error.dot(Eigen::Map<const Eigen::Matrix2d>(&l.link_information[4 * e]) * error);
  }
  return cost;
}

void disturb(io::PoseGraph& graph, double by, uint64_t seed) {
  Numbers number{std::mt19937_64(seed)};
  const size_t pose = size_t(graph.pose_size());
  for (size_t k = pose; k < graph.poses.size(); ++k) graph.poses[k] += by * number();
  if (graph.dimension == 3)
    for (size_t v = 0; v < graph.ids.size(); ++v)
      Eigen::Map<Eigen::Vector4d>(&graph.poses[7 * v + 3]).normalize();
  for (double& p : graph.landmarks.points) p += by * number();
}

TEST(Landmarks, CostsAreThoseOfMatrices) {
  for (const int dimension : {2, 3}) {
    io::PoseGraph graph = walk(dimension, 12, 9, 3);
    EXPECT_NEAR(reference_cost(graph), 0, 1e-20);
    disturb(graph, 0.3, 4);
    graph.edges.clear(), graph.measurements.clear(), graph.information.clear();
    PoseGraphProblem made = build(graph);
    Context context({.device = "cpu"});
    const Summary summary = minimize(made.problem, context, {.max_iterations = 0});
    EXPECT_NEAR(summary.initial_cost, reference_cost(graph), 1e-12 * summary.initial_cost) << dimension;
    EXPECT_EQ(summary.kernels, dimension == 2 ? 2 : 1);
  }
}

TEST(Landmarks, DerivativesMatchComplexSteps) {
  for (const TermType& type : {se2_sight(), se3_sight(), point_link()}) {
    Numbers number{std::mt19937_64(8)};
    autodiff::Tape graph;
    std::vector<std::vector<Value>> blocks;
    std::vector<double> leaves;
    for (const int size : type.slots) {
      blocks.emplace_back();
      for (int k = 0; k < size; ++k) {
        blocks.back().push_back(graph.variable("x"));
        leaves.push_back(number());
      }
    }
    std::vector<Value> data;
    for (int k = 0; k < type.data; ++k) {
      data.push_back(graph.parameter("d"));
      leaves.push_back(number());
    }
    const std::vector<Value> residual = type.residual(TermArguments(graph, blocks, data));
    EXPECT_EQ(residual.size(), type.slots[0] == 7 ? 3u : 2u);
    for (const Value& r : residual) EXPECT_LT(check_gradient(r, leaves).max_error, 1e-12) << type.name;
  }
}

TEST(Landmarks, TheTruthIsFoundAgain) {
  for (const int dimension : {2, 3}) {
    const io::PoseGraph truth = walk(dimension, 20, 15, 5);
    for (const Linear linear : {Linear::automatic, Linear::cholesky, Linear::schur_pcg}) {
      // Links join landmarks, which the Schur complement cannot eliminate then.
      io::PoseGraph graph = truth;
      if (linear == Linear::schur_pcg)
        graph.landmarks.links.clear(), graph.landmarks.differences.clear(),
            graph.landmarks.link_information.clear();
      disturb(graph, 0.05, 6);
      PoseGraphProblem made = build(graph);
      EXPECT_TRUE(made.problem.fixed(made.poses, 0));
      Context context({.device = "cpu"});
      const Summary summary = minimize(made.problem, context, {.linear = linear});
      EXPECT_TRUE(converged(summary.termination)) << report(summary);
      EXPECT_LT(summary.final_cost, 1e-12);
      const io::PoseGraph solved = with_poses(graph, made);
      for (size_t k = 0; k < truth.landmarks.points.size(); ++k)
        EXPECT_NEAR(solved.landmarks.points[k], truth.landmarks.points[k], 1e-5);
      for (size_t v = 0; v < truth.ids.size(); ++v)
        for (size_t k = 0; k < size_t(dimension); ++k) {
          const size_t at = v * size_t(truth.pose_size()) + k;
          EXPECT_NEAR(solved.poses[at], truth.poses[at], 1e-5);
        }
    }
  }
}

TEST(Landmarks, ATreePutsThemWhereTheyAreSeen) {
  for (const int dimension : {2, 3}) {
    const io::PoseGraph truth = walk(dimension, 12, 9, 7);
    io::PoseGraph graph = truth;
    disturb(graph, 2, 8);
    graph.landmarks.points[0] = 77;
    graph.landmarks.fixed = {0};
    start_from_tree(graph);
    for (size_t k = size_t(dimension); k < truth.landmarks.points.size(); ++k)
      EXPECT_NEAR(graph.landmarks.points[k], truth.landmarks.points[k], 1e-11);
    EXPECT_EQ(graph.landmarks.points[0], 77);
  }
}

TEST(Landmarks, AloneTheyMakeAProblemAndUnusedOnesStay) {
  io::PoseGraph graph;
  graph.dimension = 2;
  graph.landmarks.ids = {3, 4, 5};
  graph.landmarks.points = {0, 0, 0, 0, 0, 0};
  graph.landmarks.links = {0, 1};
  graph.landmarks.differences = {2, -1};
  graph.landmarks.link_information = {1, 0, 0, 1};
  graph.landmarks.points[5] = 7;
  PoseGraphProblem made = build(graph);
  EXPECT_TRUE(made.problem.fixed(made.landmarks, 0));
  Context context({.device = "cpu"});
  minimize(made.problem, context);
  const io::PoseGraph solved = with_poses(graph, made);
  EXPECT_NEAR(solved.landmarks.points[2], 2, 1e-12);
  EXPECT_NEAR(solved.landmarks.points[3], -1, 1e-12);
  EXPECT_EQ(solved.landmarks.points[5], 7);
}

}  // namespace
}  // namespace lockstep::solve
