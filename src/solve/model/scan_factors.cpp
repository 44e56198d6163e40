// Matched points of scans, and rows of data of residuals of points.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "lockstep/error.hpp"
#include "lockstep/solve/factors.hpp"
#include "solve/model/pose_math.hpp"

namespace lockstep::solve {
namespace {

constexpr int kPlane = 2, kSpace = 3;

int pose_numbers(int dimension) { return dimension == kPlane ? 3 : 7; }

/// Data numbers `first` to `first` + dimension - 1.
std::vector<Value> data_point(const TermArguments& a, int first, int dimension) {
  std::vector<Value> out;
  for (int k = 0; k < dimension; ++k) out.push_back(a.data(first + k));
  return out;
}

/// X p - q of the first pose, or with the second one's p in the body of the first.
std::vector<Value> misfit(const TermArguments& a, int dimension, bool between) {
  const std::vector<Value> p = data_point(a, 0, dimension), q = data_point(a, dimension, dimension);
  if (dimension == kPlane) {
    std::vector<Value> x(a.block(0).begin(), a.block(0).end());
    if (between) x = se2_compose(se2_inverse(x), a.block(1));
    const autodiff::Vec2 turned = turn(autodiff::Vec2{{p[0], p[1]}}, cos(x[2]), sin(x[2]));
    return {x[0] + turned[0] - q[0], x[1] + turned[1] - q[1]};
  }
  const autodiff::Vec3 body{{p[0], p[1], p[2]}};
  const autodiff::Vec3 there =
      between ? se3_act_inverse(a.block(0), se3_act(a.block(1), body)) : se3_act(a.block(0), body);
  return {there[0] - q[0], there[1] - q[1], there[2] - q[2]};
}

TermType point_to_point(const char* name, int dimension, bool between, const RobustLoss& loss) {
  const int w = dimension * (dimension + 1) / 2;
  return {name, std::vector<int>(between ? 2 : 1, pose_numbers(dimension)), 2 * dimension + w,
          [=](const TermArguments& a) { return whitened(a, 2 * dimension, misfit(a, dimension, between)); },
          loss};
}
TermType point_to_plane(const char* name, int dimension, bool between, const RobustLoss& loss) {
  return {name, std::vector<int>(between ? 2 : 1, pose_numbers(dimension)), 3 * dimension + 1,
          [=](const TermArguments& a) {
            const std::vector<Value> off = misfit(a, dimension, between);
            Value sum = a.data(2 * dimension) * off[0];
            for (int k = 1; k < dimension; ++k) sum = sum + a.data(2 * dimension + k) * off[size_t(k)];
            return std::vector<Value>{sum / a.data(3 * dimension)};
          },
          loss};
}

void check_deviation(double sigma, const char* where) {
  if (!(sigma > 0) || !std::isfinite(sigma))
    throw InputError(fmt::format("standard deviation {}", sigma), where, "a finite number above 0");
}
void check_finite(std::span<const double> numbers, const char* what, const char* where) {
  for (const double v : numbers)
    if (!std::isfinite(v)) throw InputError(fmt::format("{} with {}", what, v), where, "finite numbers");
}
void check_dimension(size_t size, const char* what, const char* where) {
  if (size != kPlane && size != kSpace)
    throw InputError(fmt::format("{} of {} numbers", what, size), where, "2 in the plane or 3 in space");
}
void check_size(size_t size, size_t expected, const char* what, const char* where) {
  if (size != expected)
    throw InputError(fmt::format("{} of {} numbers", what, size), where, fmt::format("{}", expected));
}

/// A direction with length 1.
std::vector<double> unit(std::span<const double> direction, const char* what, const char* where) {
  check_finite(direction, what, where);
  double length = 0;
  for (const double v : direction) length = std::hypot(length, v);
  if (!(length > 0)) throw InputError(fmt::format("{} without length", what), where, "a direction");
  std::vector<double> out;
  for (const double v : direction) out.push_back(v / length);
  return out;
}

}  // namespace

TermType se2_point_to_point(const RobustLoss& loss) {
  return point_to_point("se2_point_to_point", kPlane, false, loss);
}
TermType se3_point_to_point(const RobustLoss& loss) {
  return point_to_point("se3_point_to_point", kSpace, false, loss);
}
TermType se2_point_to_line(const RobustLoss& loss) {
  return point_to_plane("se2_point_to_line", kPlane, false, loss);
}
TermType se3_point_to_plane(const RobustLoss& loss) {
  return point_to_plane("se3_point_to_plane", kSpace, false, loss);
}
TermType se2_point_to_point_between(const RobustLoss& loss) {
  return point_to_point("se2_point_to_point_between", kPlane, true, loss);
}
TermType se3_point_to_point_between(const RobustLoss& loss) {
  return point_to_point("se3_point_to_point_between", kSpace, true, loss);
}
TermType se2_point_to_line_between(const RobustLoss& loss) {
  return point_to_plane("se2_point_to_line_between", kPlane, true, loss);
}
TermType se3_point_to_plane_between(const RobustLoss& loss) {
  return point_to_plane("se3_point_to_plane_between", kSpace, true, loss);
}

std::vector<double> point_data(std::span<const double> z, std::span<const double> w) {
  constexpr auto kWhere = "solve point_data";
  check_dimension(z.size(), "z", kWhere);
  check_size(w.size(), z.size() * (z.size() + 1) / 2, "W", kWhere);
  check_finite(z, "z", kWhere), check_finite(w, "W", kWhere);
  std::vector<double> data(z.begin(), z.end());
  data.insert(data.end(), w.begin(), w.end());
  return data;
}
std::vector<double> range_data(double z, double standard_deviation) {
  constexpr auto kWhere = "solve range_data";
  check_finite({&z, 1}, "z", kWhere), check_deviation(standard_deviation, kWhere);
  return {z, standard_deviation};
}
std::vector<double> bearing_data(double angle, double standard_deviation) {
  constexpr auto kWhere = "solve bearing_data";
  check_finite({&angle, 1}, "angle", kWhere), check_deviation(standard_deviation, kWhere);
  return {angle, standard_deviation};
}
std::vector<double> bearing_data(std::span<const double> direction, double standard_deviation) {
  constexpr auto kWhere = "solve bearing_data";
  check_size(direction.size(), kSpace, "direction", kWhere);
  check_deviation(standard_deviation, kWhere);
  std::vector<double> data = unit(direction, "direction", kWhere);
  data.push_back(standard_deviation);
  return data;
}
std::vector<double> point_to_point_data(std::span<const double> p, std::span<const double> q,
                                        std::span<const double> w) {
  constexpr auto kWhere = "solve point_to_point_data";
  check_dimension(p.size(), "p", kWhere);
  check_size(q.size(), p.size(), "q", kWhere);
  check_size(w.size(), p.size() * (p.size() + 1) / 2, "W", kWhere);
  check_finite(p, "p", kWhere), check_finite(q, "q", kWhere), check_finite(w, "W", kWhere);
  std::vector<double> data(p.begin(), p.end());
  data.insert(data.end(), q.begin(), q.end());
  data.insert(data.end(), w.begin(), w.end());
  return data;
}
std::vector<double> point_to_plane_data(std::span<const double> p, std::span<const double> q,
                                        std::span<const double> normal, double standard_deviation) {
  constexpr auto kWhere = "solve point_to_plane_data";
  check_dimension(p.size(), "p", kWhere);
  check_size(q.size(), p.size(), "q", kWhere);
  check_size(normal.size(), p.size(), "normal", kWhere);
  check_finite(p, "p", kWhere), check_finite(q, "q", kWhere);
  check_deviation(standard_deviation, kWhere);
  std::vector<double> data(p.begin(), p.end());
  data.insert(data.end(), q.begin(), q.end());
  for (const double v : unit(normal, "normal", kWhere)) data.push_back(v);
  data.push_back(standard_deviation);
  return data;
}
std::vector<double> projection_data(double u, double v, double standard_deviation) {
  constexpr auto kWhere = "solve projection_data";
  const double pixel[] = {u, v};
  check_finite(pixel, "pixel", kWhere), check_deviation(standard_deviation, kWhere);
  return {u, v, standard_deviation};
}

}  // namespace lockstep::solve
