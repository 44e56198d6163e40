#include "solve/datasets/g2o.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/error.hpp"
#include "solve/model/pose_math.hpp"

namespace lockstep::solve {
namespace {

using autodiff::Quaternion;
using autodiff::Vec2;
using autodiff::Vec3;

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
            const Value wrapped = wrap(turned);
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

TermType se2_sight(const RobustLoss& loss) {
  return {"g2o.se2_xy",
          {3, 2},
          5,
          [](const TermArguments& a) {
            const Value angle = a.x(0, 2);
            const Vec2 seen = turn(a.vec2(1) - a.vec2(0), cos(angle), -sin(angle));
            return whitened(a, 2, {seen[0] - a.data(0), seen[1] - a.data(1)});
          },
          loss};
}

TermType se3_sight(const RobustLoss& loss) {
  return {"g2o.se3_xyz",
          {7, 3},
          16,
          [](const TermArguments& a) {
            const Vec3 mount{{a.data(0), a.data(1), a.data(2)}};
            const Quaternion turned{a.data(3), a.data(4), a.data(5), a.data(6)};
            const Vec3 robot = rotate(conjugate(a.quaternion(0, 3)), a.vec3(1) - a.vec3(0));
            const Vec3 seen = rotate(conjugate(turned), robot - mount);
            return whitened(a, 10, {seen[0] - a.data(7), seen[1] - a.data(8), seen[2] - a.data(9)});
          },
          loss};
}

TermType se2_bearing(const RobustLoss& loss) {
  return {"g2o.bearing",
          {3, 2},
          2,
          [](const TermArguments& a) {
            const Value angle = a.x(0, 2);
            const Vec2 seen = turn(a.vec2(1) - a.vec2(0), cos(angle), -sin(angle));
            const Value off = atan2(seen[1], seen[0]) - a.data(0);
            return std::vector<Value>{a.data(1) * wrap(off)};
          },
          loss};
}

TermType se2_prior(const RobustLoss& loss) {
  return {"g2o.se2_prior",
          {3},
          11,
          [](const TermArguments& a) {
            const Vec2 t = turn(a.vec2(0) - Vec2{{a.data(0), a.data(1)}}, a.data(3), -a.data(4));
            const Value turned = a.x(0, 2) - a.data(2);
            const Value wrapped = wrap(turned);
            return whitened(a, 5, {t[0], t[1], wrapped});
          },
          loss};
}

TermType se3_prior(const RobustLoss& loss) {
  return {"g2o.se3_prior",
          {7},
          35,
          [](const TermArguments& a) {
            const Vec3 mount{{a.data(0), a.data(1), a.data(2)}}, tz{{a.data(7), a.data(8), a.data(9)}};
            const Quaternion turned{a.data(3), a.data(4), a.data(5), a.data(6)};
            const Quaternion qz = conjugate(Quaternion{a.data(10), a.data(11), a.data(12), a.data(13)});
            const Quaternion robot = a.quaternion(0, 3);
            const Vec3 t = rotate(qz, a.vec3(0) + rotate(robot, mount) - tz);
            const Quaternion q = qz * (robot * turned);
            const Value sign = select(q.w < 0.0, -1.0, a.graph().constant(1));
            return whitened(a, 14, {t[0], t[1], t[2], sign * q.x, sign * q.y, sign * q.z});
          },
          loss};
}

TermType point_link(const RobustLoss& loss) {
  return {"g2o.xy",
          {2, 2},
          5,
          [](const TermArguments& a) {
            return whitened(a, 2, {a.x(1, 0) - a.x(0, 0) - a.data(0), a.x(1, 1) - a.x(0, 1) - a.data(1)});
          },
          loss};
}

namespace {

/// Appends the upper triangle of W by rows, where `information` = W^T W.
void append_factor(std::vector<double>& data, const double* information, size_t n, const char* what,
                   size_t e) {
  std::array<double, 36> factor;
  if (!io::whitening_factor(information, int(n), factor.data()))
    throw InputError(fmt::format("the information matrix of {} {}", what, e), "pose graph",
                     "a positive semidefinite matrix");
  for (size_t r = 0; r < n; ++r) data.insert(data.end(), &factor[r * n + r], &factor[r * n] + n);
}

}  // namespace

std::vector<double> edge_data(const io::PoseGraph& graph) {
  const size_t pose = size_t(graph.pose_size()), n = size_t(graph.error_size());
  std::vector<double> data;
  data.reserve(size_t(graph.edge_count()) * (graph.dimension == 2 ? 11 : 28));
  for (size_t e = 0; e < size_t(graph.edge_count()); ++e) {
    const double* z = graph.measurements.data() + e * pose;
    data.insert(data.end(), z, z + pose);
    if (graph.dimension == 2) {
      data.push_back(std::cos(z[2]));
      data.push_back(std::sin(z[2]));
    }
    append_factor(data, graph.information.data() + e * n * n, n, "edge", e);
  }
  return data;
}

std::vector<double> sight_data(const io::PoseGraph& graph) {
  const io::Landmarks& l = graph.landmarks;
  const size_t d = size_t(graph.dimension);
  std::vector<double> data;
  for (size_t e = 0; e < size_t(graph.sight_count()); ++e) {
    if (d == 3) {
      const double* sensor = l.sensor_poses.data() + 7 * size_t(l.sensors[e]);
      data.insert(data.end(), sensor, sensor + 7);
    }
    data.insert(data.end(), l.seen.begin() + std::ptrdiff_t(e * d),
                l.seen.begin() + std::ptrdiff_t((e + 1) * d));
    append_factor(data, l.information.data() + e * d * d, d, "sight", e);
  }
  return data;
}

std::vector<double> link_data(const io::PoseGraph& graph) {
  const io::Landmarks& l = graph.landmarks;
  std::vector<double> data;
  for (size_t e = 0; e < size_t(graph.link_count()); ++e) {
    data.insert(data.end(), {l.differences[2 * e], l.differences[2 * e + 1]});
    append_factor(data, l.link_information.data() + 4 * e, 2, "link", e);
  }
  return data;
}

std::vector<double> bearing_data(const io::PoseGraph& graph) {
  std::vector<double> data;
  for (size_t e = 0; e < size_t(graph.bearing_count()); ++e) {
    data.push_back(graph.landmarks.angles[e]);
    append_factor(data, &graph.landmarks.angle_information[e], 1, "bearing", e);
  }
  return data;
}

std::vector<double> prior_data(const io::PoseGraph& graph) {
  const io::PosePriors& p = graph.priors;
  const size_t pose = size_t(graph.pose_size()), n = size_t(graph.error_size());
  std::vector<double> data;
  for (size_t e = 0; e < size_t(graph.prior_count()); ++e) {
    const double* z = p.measurements.data() + e * pose;
    if (graph.dimension == 3) {
      const double* sensor = graph.landmarks.sensor_poses.data() + 7 * size_t(p.sensors[e]);
      data.insert(data.end(), sensor, sensor + 7);
    }
    data.insert(data.end(), z, z + pose);
    if (graph.dimension == 2) data.insert(data.end(), {std::cos(z[2]), std::sin(z[2])});
    append_factor(data, p.information.data() + e * n * n, n, "prior", e);
  }
  return data;
}

PoseGraphProblem build(const io::PoseGraph& graph, const RobustLoss& loss) {
  const io::Landmarks& l = graph.landmarks;
  std::vector<bool> poses(graph.ids.size()), points(l.ids.size());
  for (const int32_t v : graph.edges) poses[size_t(v)] = true;
  for (const int32_t v : graph.priors.poses) poses[size_t(v)] = true;
  for (const int32_t v : l.links) points[size_t(v)] = true;
  for (const std::vector<int32_t>* seen : {&l.sights, &l.bearings})
    for (size_t k = 0; k < seen->size(); k += 2)
      poses[size_t((*seen)[k])] = points[size_t((*seen)[k + 1])] = true;

  PoseGraphProblem made;
  const bool flat = graph.dimension == 2;
  if (!graph.ids.empty()) made.poses = made.problem.add_blocks("poses", flat ? se2() : se3(), graph.poses);
  if (!l.ids.empty())
    made.landmarks = made.problem.add_blocks("landmarks", euclidean(graph.dimension), l.points);
  const auto add = [&](const TermType& type, std::initializer_list<BlockSet> sets,
                       const std::vector<int32_t>& blocks, auto data, const std::vector<int64_t>& lines) {
    if (blocks.empty()) return;
    made.problem.add_terms(type, sets, blocks, data(graph));
    made.lines[type.name] = lines;
  };
  add(flat ? se2_edge(loss) : se3_edge(loss), {made.poses, made.poses}, graph.edges, &edge_data,
      graph.lines.edges);
  add(flat ? se2_sight(loss) : se3_sight(loss), {made.poses, made.landmarks}, l.sights, &sight_data,
      graph.lines.sights);
  add(point_link(loss), {made.landmarks, made.landmarks}, l.links, &link_data, graph.lines.links);
  add(se2_bearing(loss), {made.poses, made.landmarks}, l.bearings, &bearing_data, graph.lines.bearings);
  add(flat ? se2_prior(loss) : se3_prior(loss), {made.poses}, graph.priors.poses, &prior_data,
      graph.lines.priors);
  for (const int32_t v : graph.fixed) made.problem.fix(made.poses, v);
  for (const int32_t v : l.fixed) made.problem.fix(made.landmarks, v);
  for (size_t v = 0; v < poses.size(); ++v)
    if (!poses[v]) made.problem.fix(made.poses, int64_t(v));
  for (size_t v = 0; v < points.size(); ++v)
    if (!points[v]) made.problem.fix(made.landmarks, int64_t(v));
  if (graph.fixed.empty() && l.fixed.empty() && graph.priors.poses.empty())
    made.problem.fix(graph.ids.empty() ? made.landmarks : made.poses, 0);
  return made;
}

io::PoseGraph with_poses(io::PoseGraph graph, const PoseGraphProblem& problem) {
  const auto copy = [&](BlockSet set, std::vector<double>& to) {
    if (set.id < 0) return;
    const std::span<const double> values = problem.problem.values(set);
    to.assign(values.begin(), values.end());
  };
  copy(problem.poses, graph.poses);
  copy(problem.landmarks, graph.landmarks.points);
  return graph;
}

}  // namespace lockstep::solve
