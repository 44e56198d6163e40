// Planes and lines as unknowns, and the table of all factors.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/solve/factors.hpp"
#include "lockstep/solve/imu.hpp"
#include "solve/model/pose_math.hpp"

namespace lockstep::solve {
namespace {

using autodiff::Vec2;
using autodiff::Vec3;

void check_count(std::span<const double> numbers, size_t size, const char* what, const char* where) {
  if (numbers.size() != size)
    throw InputError(fmt::format("{} of {} numbers", what, numbers.size()), where, fmt::format("{}", size));
  for (const double v : numbers)
    if (!std::isfinite(v)) throw InputError(fmt::format("{} with {}", what, v), where, "finite numbers");
}

}  // namespace

Manifold plane_landmark() { return product(sphere2(), euclidean(1)); }
Manifold line_landmark(int dimension) {
  if (dimension != 2 && dimension != 3)
    throw InputError(fmt::format("dimension {}", dimension), "solve line_landmark", "2 or 3");
  return dimension == 2 ? product(so2(), euclidean(1)) : product(so3(), euclidean(1));
}

TermType se3_plane(const RobustLoss& loss) {
  return {"se3_plane",
          {7, 4},
          10,
          [](const TermArguments& a) {
            const Vec3 n = a.vec3(1), seen = rotate(conjugate(a.quaternion(0, 3)), n);
            const auto [u, v] = sphere_log(seen, Vec3{{a.data(0), a.data(1), a.data(2)}});
            return whitened(a, 4, {u, v, a.x(1, 3) - dot(n, a.vec3(0)) - a.data(3)});
          },
          loss};
}
TermType se3_point_on_plane(const RobustLoss& loss) {
  return {"se3_point_on_plane",
          {7, 4},
          4,
          [](const TermArguments& a) {
            const Vec3 there = se3_act(a.block(0), Vec3{{a.data(0), a.data(1), a.data(2)}});
            return std::vector<Value>{(dot(a.vec3(1), there) - a.x(1, 3)) / a.data(3)};
          },
          loss};
}
TermType se2_point_on_line(const RobustLoss& loss) {
  return {
      "se2_point_on_line",
      {3, 2},
      3,
      [](const TermArguments& a) {
        const Vec2 there = a.vec2(0) + turn(Vec2{{a.data(0), a.data(1)}}, cos(a.x(0, 2)), sin(a.x(0, 2)));
        const Value angle = a.x(1);
        return std::vector<Value>{(cos(angle) * there[0] + sin(angle) * there[1] - a.x(1, 1)) / a.data(2)};
      },
      loss};
}
TermType se3_point_on_line(const RobustLoss& loss) {
  return {"se3_point_on_line",
          {7, 5},
          6,
          [](const TermArguments& a) {
            const Vec3 there = se3_act(a.block(0), Vec3{{a.data(0), a.data(1), a.data(2)}});
            const Vec3 own =
                rotate(conjugate(a.quaternion(1)), there);  // the line is along z, at x = distance
            return whitened(a, 3, {own[0] - a.x(1, 4), own[1]});
          },
          loss};
}

std::vector<double> plane_data(std::span<const double> normal, double distance, std::span<const double> w) {
  constexpr auto kWhere = "solve plane_data";
  check_count(normal, 3, "normal", kWhere), check_count({&distance, 1}, 1, "distance", kWhere);
  check_count(w, 6, "W", kWhere);
  const double length = std::hypot(normal[0], normal[1], normal[2]);
  if (!(length > 0)) throw InputError("a normal without length", kWhere, "a direction");
  std::vector<double> data;
  for (const double v : normal) data.push_back(v / length);
  data.push_back(distance / length);
  data.insert(data.end(), w.begin(), w.end());
  return data;
}
std::vector<double> landmark_point_data(std::span<const double> p, double standard_deviation) {
  constexpr auto kWhere = "solve landmark_point_data";
  if (p.size() != 2) check_count(p, 3, "p", kWhere);
  check_count(p, p.size(), "p", kWhere);
  if (!(standard_deviation > 0) || !std::isfinite(standard_deviation))
    throw InputError(fmt::format("standard deviation {}", standard_deviation), kWhere,
                     "a finite number above 0");
  std::vector<double> data(p.begin(), p.end());
  data.push_back(standard_deviation);
  return data;
}
std::vector<double> line_point_data(std::span<const double> p, std::span<const double> w) {
  constexpr auto kWhere = "solve line_point_data";
  check_count(p, 3, "p", kWhere), check_count(w, 3, "W", kWhere);
  std::vector<double> data(p.begin(), p.end());
  data.insert(data.end(), w.begin(), w.end());
  return data;
}

std::span<const Factor> factors() {
  using Numbers = std::span<const double>;
  using Row = std::vector<double>;
  constexpr auto camera = []<CameraModel model>() {
    return [](const RobustLoss& loss) { return projection(model, loss); };
  };
  constexpr auto pixel = [](Numbers z, Numbers w) { return projection_data(z[0], z[1], 1 / w[0]); };
  constexpr auto range = [](Numbers z, Numbers w) { return range_data(z[0], 1 / w[0]); };
  constexpr auto pair = [](Numbers z, Numbers w) {
    return point_to_point_data(z.first(z.size() / 2), z.subspan(z.size() / 2), w);
  };
  constexpr auto onto = [](Numbers z, Numbers w) {
    const size_t n = z.size() / 3;
    return point_to_plane_data(z.first(n), z.subspan(n, n), z.subspan(2 * n), 1 / w[0]);
  };
  constexpr auto on_landmark = [](Numbers z, Numbers w) { return landmark_point_data(z, 1 / w[0]); };
  constexpr auto whole = [](Numbers z, Numbers) { return Row(z.begin(), z.end()); };
  static const auto kAll = std::to_array<Factor>({
      {"se2_between", &se2_between, 3, 3, &se2_between_data},
      {"se2_between_log", &se2_between_log, 3, 3, &se2_between_data},
      {"se2_pose_prior", &se2_pose_prior, 3, 3, &se2_between_data},
      {"se2_pose_prior_log", &se2_pose_prior_log, 3, 3, &se2_between_data},
      {"se3_between", &se3_between, 7, 6, &se3_between_data_from_radians},
      {"se3_between_log", &se3_between_log, 7, 6, &se3_between_log_data},
      {"se3_pose_prior", &se3_pose_prior, 7, 6, &se3_between_data_from_radians},
      {"se3_pose_prior_log", &se3_pose_prior_log, 7, 6, &se3_between_log_data},
      {"se2_point", &se2_point, 2, 2, &point_data},
      {"se3_point", &se3_point, 3, 3, &point_data},
      {"se2_bearing", &se2_bearing_to, 1, 1,
       [](Numbers z, Numbers w) { return bearing_data(z[0], 1 / w[0]); }},
      {"se3_bearing", &se3_bearing_to, 3, 1, [](Numbers z, Numbers w) { return bearing_data(z, 1 / w[0]); }},
      {"se2_range", [](const RobustLoss& loss) { return range_to(2, loss); }, 1, 1, range},
      {"se3_range", [](const RobustLoss& loss) { return range_to(3, loss); }, 1, 1, range},
      {"se2_point_to_point", &se2_point_to_point, 4, 2, pair},
      {"se3_point_to_point", &se3_point_to_point, 6, 3, pair},
      {"se2_point_to_line", &se2_point_to_line, 6, 1, onto},
      {"se3_point_to_plane", &se3_point_to_plane, 9, 1, onto},
      {"se2_point_to_point_between", &se2_point_to_point_between, 4, 2, pair},
      {"se3_point_to_point_between", &se3_point_to_point_between, 6, 3, pair},
      {"se2_point_to_line_between", &se2_point_to_line_between, 6, 1, onto},
      {"se3_point_to_plane_between", &se3_point_to_plane_between, 9, 1, onto},
      {"se3_plane", &se3_plane, 4, 3, [](Numbers z, Numbers w) { return plane_data(z.first(3), z[3], w); }},
      {"se3_point_on_plane", &se3_point_on_plane, 3, 1, on_landmark},
      {"se2_point_on_line", &se2_point_on_line, 2, 1, on_landmark},
      {"se3_point_on_line", &se3_point_on_line, 3, 2, &line_point_data},
      {"pinhole", camera.operator()<CameraModel::pinhole>(), 2, 1, pixel},
      {"radial", camera.operator()<CameraModel::radial>(), 2, 1, pixel},
      {"brown_conrady", camera.operator()<CameraModel::brown_conrady>(), 2, 1, pixel},
      {"fisheye", camera.operator()<CameraModel::fisheye>(), 2, 1, pixel},
      {"imu_preintegrated", &imu_preintegrated, 119, 0, whole},
      {"imu_bias_walk", &imu_bias_walk, 0, 6, [](Numbers, Numbers w) { return Row(w.begin(), w.end()); }},
  });
  return kAll;
}

const Factor& factor_named(std::string_view name) {
  std::string all;
  for (const Factor& f : factors()) {
    if (f.name == name) return f;
    all += fmt::format("{}{}", all.empty() ? "" : ", ", f.name);
  }
  throw InputError(fmt::format("factor '{}'", name), "solve factors", "one of " + all);
}

}  // namespace lockstep::solve
