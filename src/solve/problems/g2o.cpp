#include "solve/problems/g2o.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

using autodiff::Quaternion;
using autodiff::Vec2;
using autodiff::Vec3;

constexpr double kTurn = 2 * std::numbers::pi;

/// W e, W upper triangular by rows from data number `first`.
std::vector<Value> whitened(const TermArguments& a, int first, const std::vector<Value>& e) {
  std::vector<Value> residual;
  int k = first;
  for (size_t r = 0; r < e.size(); ++r) {
    Value sum = a.data(k++) * e[r];
    for (size_t c = r + 1; c < e.size(); ++c) sum = sum + a.data(k++) * e[c];
    residual.push_back(sum);
  }
  return residual;
}

/// v turned by the angle with this cosine and sine.
Vec2 turn(const Vec2& v, const Value& cosine, const Value& sine) {
  return {{cosine * v[0] - sine * v[1], sine * v[0] + cosine * v[1]}};
}

}  // namespace

TermType se2_edge(const RobustLoss& loss) {
  return {"g2o.se2",
          {3, 3},
          11,
          [](const TermArguments& a) {
            const Value angle = a.x(0, 2);
            const Vec2 seen = turn(a.vec2(1) - a.vec2(0), cos(angle), -sin(angle));
            const Vec2 t = turn(seen - Vec2{{a.data(0), a.data(1)}}, a.data(3), -a.data(4));
            const Value turned = a.x(1, 2) - angle - a.data(2);
            const Value wrapped = turned - kTurn * floor((turned + std::numbers::pi) * (1 / kTurn));
            return whitened(a, 5, {t[0], t[1], wrapped});
          },
          loss};
}

TermType se3_edge(const RobustLoss& loss) {
  return {"g2o.se3",
          {7, 7},
          28,
          [](const TermArguments& a) {
            const Quaternion qi = conjugate(a.quaternion(0, 3));
            const Quaternion qz = conjugate(Quaternion{a.data(3), a.data(4), a.data(5), a.data(6)});
            const Vec3 tz{{a.data(0), a.data(1), a.data(2)}};
            const Vec3 t = rotate(qz, rotate(qi, a.vec3(1) - a.vec3(0)) - tz);
            const Quaternion q = qz * (qi * a.quaternion(1, 3));
            const Value sign = select(q.w < 0.0, -1.0, a.graph().constant(1));
            return whitened(a, 7, {t[0], t[1], t[2], sign * q.x, sign * q.y, sign * q.z});
          },
          loss};
}

std::vector<double> edge_data(const io::PoseGraph& graph) {
  const size_t pose = size_t(graph.pose_size()), n = size_t(graph.error_size());
  std::vector<double> data;
  data.reserve(size_t(graph.edge_count()) * (graph.dimension == 2 ? 11 : 28));
  std::array<double, 36> factor;
  for (size_t e = 0; e < size_t(graph.edge_count()); ++e) {
    const double* z = graph.measurements.data() + e * pose;
    data.insert(data.end(), z, z + pose);
    if (graph.dimension == 2) {
      data.push_back(std::cos(z[2]));
      data.push_back(std::sin(z[2]));
    }
    if (!io::whitening_factor(graph.information.data() + e * n * n, int(n), factor.data()))
      throw InputError(fmt::format("the information matrix of edge {}", e), "pose graph",
                       "a positive definite matrix");
    for (size_t r = 0; r < n; ++r) data.insert(data.end(), &factor[r * n + r], &factor[r * n] + n);
  }
  return data;
}

PoseGraphProblem build(const io::PoseGraph& graph, std::string_view where, const RobustLoss& loss) {
  std::vector<bool> has_edge(graph.ids.size());
  for (const int32_t v : graph.edges) has_edge[size_t(v)] = true;
  for (const int32_t v : graph.fixed) has_edge[size_t(v)] = true;
  if (const auto alone = std::find(has_edge.begin(), has_edge.end(), false); alone != has_edge.end())
    throw InputError(fmt::format("vertex {} has no edge", graph.ids[size_t(alone - has_edge.begin())]), where,
                     "an edge to each vertex that is not fixed");
  PoseGraphProblem made;
  const bool flat = graph.dimension == 2;
  made.poses = made.problem.add_blocks("poses", flat ? se2() : se3(), graph.poses);
  made.problem.add_terms(flat ? se2_edge(loss) : se3_edge(loss), {made.poses, made.poses}, graph.edges,
                         edge_data(graph));
  if (graph.fixed.empty()) made.problem.fix(made.poses, 0);
  for (const int32_t v : graph.fixed) made.problem.fix(made.poses, v);
  return made;
}

io::PoseGraph with_poses(io::PoseGraph graph, const PoseGraphProblem& problem) {
  const std::span<const double> poses = problem.problem.values(problem.poses);
  graph.poses.assign(poses.begin(), poses.end());
  return graph;
}

}  // namespace lockstep::solve
