#include "solve/datasets/bal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::solve {

using autodiff::Vec3;

TermType snavely_observation(const RobustLoss& loss) {
  return {"bal.snavely",
          {9, 3},
          2,
          [](const TermArguments& a) {
            const Vec3 p = rotate(exp_map(a.vec3(0)), a.vec3(1)) + a.vec3(0, 3);
            const Value depth = -reciprocal(p[2]), x = p[0] * depth, y = p[1] * depth;
            const Value r2 = x * x + y * y;
            const Value scale = a.x(0, 6) * (1 + r2 * (a.x(0, 7) + a.x(0, 8) * r2));
            return std::vector<Value>{scale * x - a.data(0), scale * y - a.data(1)};
          },
          loss};
}

BalGraph build(const io::BalProblem& bal, std::string_view where, const RobustLoss& loss) {
  std::vector<bool> seeing(size_t(bal.camera_count())), seen(size_t(bal.point_count()));
  for (size_t k = 0; k < bal.indices.size(); k += 2) {
    seeing[size_t(bal.indices[k])] = true;
    seen[size_t(bal.indices[k + 1])] = true;
  }
  for (const auto& [name, used] : {std::pair("camera", &seeing), std::pair("point", &seen)})
    if (const auto alone = std::find(used->begin(), used->end(), false); alone != used->end())
      throw InputError(fmt::format("{} {} has no observation", name, alone - used->begin()), where,
                       "one of each camera and point at least");
  BalGraph made;
  made.cameras = made.problem.add_blocks("cameras", euclidean(9), bal.cameras);
  made.points = made.problem.add_blocks("points", euclidean(3), bal.points);
  made.problem.add_terms(snavely_observation(loss), {made.cameras, made.points}, bal.indices,
                         bal.observations);
  return made;
}

io::BalProblem with_values(io::BalProblem bal, const BalGraph& graph) {
  const auto cameras = graph.problem.values(graph.cameras), points = graph.problem.values(graph.points);
  bal.cameras.assign(cameras.begin(), cameras.end());
  bal.points.assign(points.begin(), points.end());
  return bal;
}

io::TriangleMesh point_cloud(const io::BalProblem& bal) {
  io::TriangleMesh cloud;
  cloud.vertices = bal.points;
  cloud.colors.assign(bal.points.size(), 160);
  for (size_t c = 0; c < size_t(bal.camera_count()); ++c) {
    const double* camera = &bal.cameras[9 * c];
    // The centre is -R^T t: t turned by the inverse rotation (Rodrigues).
    const double angle = std::hypot(camera[0], camera[1], camera[2]);
    const double s = angle > 0 ? std::sin(angle) / angle : 1.0,
                 v = angle > 0 ? (1 - std::cos(angle)) / (angle * angle) : 0.5;
    const std::array<double, 3> w{-camera[0], -camera[1], -camera[2]}, t{camera[3], camera[4], camera[5]};
    const double dot = w[0] * t[0] + w[1] * t[1] + w[2] * t[2];
    for (size_t k = 0; k < 3; ++k) {
      const size_t i = (k + 1) % 3, j = (k + 2) % 3;
      cloud.vertices.push_back(-(std::cos(angle) * t[k] + s * (w[i] * t[j] - w[j] * t[i]) + v * dot * w[k]));
    }
    for (const uint8_t channel : {220, 40, 40}) cloud.colors.push_back(channel);
  }
  return cloud;
}

}  // namespace lockstep::solve
