#include "lockstep/solve/factors.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <cmath>

#include "lockstep/error.hpp"
#include "solve/model/pose_math.hpp"

namespace lockstep::solve {
namespace {

using autodiff::Quaternion;
using autodiff::Vec2;
using autodiff::Vec3;

Quaternion turn_of(std::span<const Value> pose) { return {pose[3], pose[4], pose[5], pose[6]}; }
Vec3 place_of(std::span<const Value> pose) { return {{pose[0], pose[1], pose[2]}}; }
std::vector<Value> pose_of(const Vec3& t, const Quaternion& q) {
  return {t[0], t[1], t[2], q.w, q.x, q.y, q.z};
}

/// W (translation, angle) of Z^-1 X, X = (t, angle).
std::vector<Value> se2_error(const TermArguments& a, const Vec2& t, const Value& angle) {
  const Vec2 off = turn(t - Vec2{{a.data(0), a.data(1)}}, a.data(3), -a.data(4));
  return whitened(a, 5, {off[0], off[1], wrap(angle - a.data(2))});
}
/// W (translation, vec q) of Z^-1 X.
std::vector<Value> se3_error(const TermArguments& a, const std::vector<Value>& x) {
  std::vector<Value> z;
  for (int k = 0; k < 7; ++k) z.push_back(a.data(k));
  const std::vector<Value> e = se3_compose(se3_inverse(z), x);
  const Value sign = select(e[3] < 0.0, -1.0, a.graph().constant(1));
  return whitened(a, 7, {e[0], e[1], e[2], sign * e[4], sign * e[5], sign * e[6]});
}

/// W log(Z^-1 X).
std::vector<Value> se3_log_error(const TermArguments& a, const std::vector<Value>& x) {
  std::vector<Value> z;
  for (int k = 0; k < 7; ++k) z.push_back(a.data(k));
  return whitened(a, 7, se3_log(se3_compose(se3_inverse(z), x)));
}

/// W log(Z^-1 X), X = (t, angle).
std::vector<Value> se2_log_error(const TermArguments& a, const std::vector<Value>& x) {
  const Vec2 off = turn(Vec2{{x[0], x[1]}} - Vec2{{a.data(0), a.data(1)}}, a.data(3), -a.data(4));
  return whitened(a, 5, se2_log(std::vector<Value>{off[0], off[1], x[2] - a.data(2)}));
}

/// The upper triangle by rows.
std::vector<double> triangle(const Eigen::MatrixXd& w) {
  std::vector<double> out;
  for (Eigen::Index r = 0; r < w.rows(); ++r)
    for (Eigen::Index c = r; c < w.cols(); ++c) out.push_back(w(r, c));
  return out;
}
/// A symmetric positive definite matrix and its factor L.
Eigen::MatrixXd lower_factor(const Eigen::MatrixXd& m, const char* where) {
  const Eigen::LLT<Eigen::MatrixXd> factor(m);
  if (factor.info() != Eigen::Success || !m.allFinite())
    throw InputError("a matrix that is not positive definite", where, "one with positive eigenvalues");
  return factor.matrixL();
}
Eigen::MatrixXd symmetric(std::span<const double> numbers, const char* where) {
  const auto n = Eigen::Index(std::llround(std::sqrt(double(numbers.size()))));
  if (n == 0 || n * n != Eigen::Index(numbers.size()))
    throw InputError(fmt::format("{} numbers", numbers.size()), where, "those of a square matrix");
  const Eigen::Map<const Eigen::MatrixXd> m(numbers.data(), n, n);
  for (Eigen::Index r = 0; r < n; ++r)
    for (Eigen::Index c = 0; c < r; ++c)
      if (!(std::abs(m(r, c) - m(c, r)) <= 1e-9 * std::sqrt(std::abs(m(r, r) * m(c, c)))))
        throw InputError(fmt::format("({}, {}) is {} and ({}, {}) is {}", c, r, m(r, c), r, c, m(c, r)),
                         where, "a symmetric matrix");
  return 0.5 * (m + m.transpose());
}
/// z and W in a row.
std::vector<double> se3_row(std::span<const double> z, std::span<const double> w, const char* where) {
  if (z.size() != 7 || w.size() != 21)
    throw InputError(fmt::format("{} and {} numbers", z.size(), w.size()), where,
                     "7 of z and 21 of the upper triangle of W");
  if (!(std::abs(std::hypot(std::hypot(z[3], z[4]), std::hypot(z[5], z[6])) - 1) <= 1e-5))
    throw InputError(fmt::format("quaternion ({}, {}, {}, {})", z[3], z[4], z[5], z[6]), where,
                     "(w, x, y, z) of length 1");
  std::vector<double> data(z.begin(), z.end());
  data.insert(data.end(), w.begin(), w.end());
  return data;
}

/// sin(x) / x and (1 - cos(x)) / x, by their series near 0.
std::pair<Value, Value> turned_lengths(const Value& x) {
  const Value t = x * x;
  const auto large = t > 1e-6;
  const Value safe = select(large, x, 1);
  return {select(large, sin(safe) / safe, 1 - t * (1.0 / 6 - t * (1.0 / 120))),
          select(large, (1 - cos(safe)) / safe, x * (0.5 - t * (1.0 / 24 - t * (1.0 / 720))))};
}

}  // namespace

std::vector<Value> se2_compose(std::span<const Value> a, std::span<const Value> b) {
  const Vec2 t = turn(Vec2{{b[0], b[1]}}, cos(a[2]), sin(a[2]));
  return {a[0] + t[0], a[1] + t[1], a[2] + b[2]};
}
std::vector<Value> se2_inverse(std::span<const Value> a) {
  const Vec2 t = turn(Vec2{{a[0], a[1]}}, cos(a[2]), -sin(a[2]));
  return {-t[0], -t[1], -a[2]};
}
std::vector<Value> se2_exp(std::span<const Value> v) {
  const auto [s, c] = turned_lengths(v[2]);
  return {s * v[0] - c * v[1], c * v[0] + s * v[1], v[2]};
}
std::vector<Value> se2_log(std::span<const Value> a) {
  const Value angle = wrap(a[2]);
  const auto [s, c] = turned_lengths(angle);
  const Value scale = 1 / (s * s + c * c);
  return {scale * (s * a[0] + c * a[1]), scale * (s * a[1] - c * a[0]), angle};
}
std::vector<Value> se3_compose(std::span<const Value> a, std::span<const Value> b) {
  return pose_of(place_of(a) + rotate(turn_of(a), place_of(b)), turn_of(a) * turn_of(b));
}
std::vector<Value> se3_inverse(std::span<const Value> a) {
  const Quaternion q = conjugate(turn_of(a));
  const Vec3 t = rotate(q, place_of(a));
  return pose_of(Vec3{{-t[0], -t[1], -t[2]}}, q);
}
// V = I + a [phi] + b [phi]^2 with a = (1 - cos t) / t^2, b = (t - sin t) / t^3; V^-1 = I - 1/2 [phi] + c [phi]^2 with
// c = (1 - t/2 cot(t/2)) / t^2; by their series near 0.
std::vector<Value> se3_exp(std::span<const Value> v) {
  const Vec3 rho{{v[0], v[1], v[2]}}, phi{{v[3], v[4], v[5]}};
  const Value t2 = dot(phi, phi);
  const auto large = t2 > 1e-4;
  const Value safe = select(large, t2, 1), t = sqrt(safe);
  const Value a = select(large, (1 - cos(t)) / safe, 0.5 - t2 * (1.0 / 24 - t2 * (1.0 / 720)));
  const Value b = select(large, (t - sin(t)) / (safe * t), 1.0 / 6 - t2 * (1.0 / 120 - t2 * (1.0 / 5040)));
  const Vec3 once = cross(phi, rho), twice = cross(phi, once);
  return pose_of(rho + once * a + twice * b, exp_map(phi));
}
std::vector<Value> se3_log(std::span<const Value> pose) {
  const Quaternion q = turn_of(pose);
  const Vec3 phi = log_map(q), move = place_of(pose);
  const Value t2 = dot(phi, phi), sine2 = q.x * q.x + q.y * q.y + q.z * q.z;  // of half the angle
  const auto large = t2 > 1e-4;
  const Value safe = select(large, t2, 1), sine = sqrt(select(large, sine2, 1));
  const Value c = select(large, (1 - 0.5 * sqrt(safe) * abs(q.w) / sine) / safe,
                         1.0 / 12 + t2 * (1.0 / 720 + t2 * (1.0 / 30240)));
  const Vec3 once = cross(phi, move), twice = cross(phi, once);
  const Vec3 rho = move - once * 0.5 + twice * c;
  return {rho[0], rho[1], rho[2], phi[0], phi[1], phi[2]};
}
Vec3 se3_act(std::span<const Value> a, const Vec3& point) { return place_of(a) + rotate(turn_of(a), point); }
Vec3 se3_act_inverse(std::span<const Value> a, const Vec3& point) {
  return rotate(conjugate(turn_of(a)), point - place_of(a));
}

TermType se2_between(const RobustLoss& loss) {
  return {"se2_between",
          {3, 3},
          11,
          [](const TermArguments& a) {
            const std::vector<Value> x = se2_compose(se2_inverse(a.block(0)), a.block(1));
            return se2_error(a, Vec2{{x[0], x[1]}}, x[2]);
          },
          loss};
}
TermType se3_between(const RobustLoss& loss) {
  return {
      "se3_between",
      {7, 7},
      28,
      [](const TermArguments& a) { return se3_error(a, se3_compose(se3_inverse(a.block(0)), a.block(1))); },
      loss};
}
TermType se2_pose_prior(const RobustLoss& loss) {
  return {
      "se2_prior", {3}, 11, [](const TermArguments& a) { return se2_error(a, a.vec2(0), a.x(0, 2)); }, loss};
}
TermType se3_pose_prior(const RobustLoss& loss) {
  return {"se3_prior",
          {7},
          28,
          [](const TermArguments& a) { return se3_error(a, {a.block(0).begin(), a.block(0).end()}); },
          loss};
}
TermType se2_between_log(const RobustLoss& loss) {
  return {"se2_between_log",
          {3, 3},
          11,
          [](const TermArguments& a) {
            return se2_log_error(a, se2_compose(se2_inverse(a.block(0)), a.block(1)));
          },
          loss};
}
TermType se2_pose_prior_log(const RobustLoss& loss) {
  return {"se2_prior_log",
          {3},
          11,
          [](const TermArguments& a) { return se2_log_error(a, {a.block(0).begin(), a.block(0).end()}); },
          loss};
}
TermType se3_between_log(const RobustLoss& loss) {
  return {"se3_between_log",
          {7, 7},
          28,
          [](const TermArguments& a) {
            return se3_log_error(a, se3_compose(se3_inverse(a.block(0)), a.block(1)));
          },
          loss};
}
TermType se3_pose_prior_log(const RobustLoss& loss) {
  return {"se3_prior_log",
          {7},
          28,
          [](const TermArguments& a) { return se3_log_error(a, {a.block(0).begin(), a.block(0).end()}); },
          loss};
}

std::vector<double> w_from_standard_deviations(std::span<const double> deviations) {
  const auto n = Eigen::Index(deviations.size());
  Eigen::MatrixXd w = Eigen::MatrixXd::Zero(n, n);
  for (Eigen::Index k = 0; k < n; ++k) {
    if (!(deviations[size_t(k)] > 0) || !std::isfinite(deviations[size_t(k)]))
      throw InputError(fmt::format("standard deviation {} of error {}", deviations[size_t(k)], k),
                       "solve w_from_standard_deviations", "a finite number above 0");
    w(k, k) = 1 / deviations[size_t(k)];
  }
  return triangle(w);
}
std::vector<double> w_from_information(std::span<const double> information) {
  const char* const where = "solve w_from_information";
  return triangle(lower_factor(symmetric(information, where), where).transpose());
}
std::vector<double> w_from_covariance(std::span<const double> covariance) {
  // Backwards, so that the factor U of U U^T is upper triangular; W is its inverse.
  const char* const where = "solve w_from_covariance";
  const Eigen::MatrixXd m = symmetric(covariance, where);
  const Eigen::MatrixXd upper = lower_factor(m.reverse(), where).reverse();
  return triangle(upper.triangularView<Eigen::Upper>().solve(Eigen::MatrixXd::Identity(m.rows(), m.rows())));
}
std::vector<double> se3_between_log_data(std::span<const double> z, std::span<const double> w) {
  return se3_row(z, w, "solve se3_between_log_data");
}
std::vector<double> se3_between_data_from_radians(std::span<const double> z, std::span<const double> w) {
  std::vector<double> data = se3_row(z, w, "solve se3_between_data_from_radians");
  for (size_t r = 0, k = 7; r < 6; ++r)
    for (size_t c = r; c < 6; ++c, ++k)
      if (c >= 3) data[k] *= 2;
  return data;
}
std::vector<double> se2_between_data(std::span<const double> z, std::span<const double> w) {
  if (z.size() != 3 || w.size() != 6)
    throw InputError("other than 3 and 6 numbers", "solve se2_between_data", "z and the upper triangle of W");
  std::vector<double> data(z.begin(), z.end());
  data.insert(data.end(), {std::cos(z[2]), std::sin(z[2])});
  data.insert(data.end(), w.begin(), w.end());
  return data;
}

TermType se2_point(const RobustLoss& loss) {
  return {"se2_point",
          {3, 2},
          5,
          [](const TermArguments& a) {
            const Vec2 seen = turn(a.vec2(1) - a.vec2(0), cos(a.x(0, 2)), -sin(a.x(0, 2)));
            return whitened(a, 2, {seen[0] - a.data(0), seen[1] - a.data(1)});
          },
          loss};
}
TermType se3_point(const RobustLoss& loss) {
  return {"se3_point",
          {7, 3},
          9,
          [](const TermArguments& a) {
            const Vec3 seen = se3_act_inverse(a.block(0), a.vec3(1));
            return whitened(a, 3, {seen[0] - a.data(0), seen[1] - a.data(1), seen[2] - a.data(2)});
          },
          loss};
}
TermType se2_bearing_to(const RobustLoss& loss) {
  return {"se2_bearing",
          {3, 2},
          2,
          [](const TermArguments& a) {
            const Vec2 seen = turn(a.vec2(1) - a.vec2(0), cos(a.x(0, 2)), -sin(a.x(0, 2)));
            return std::vector<Value>{wrap(atan2(seen[1], seen[0]) - a.data(0)) / a.data(1)};
          },
          loss};
}
TermType se3_bearing_to(const RobustLoss& loss) {
  return {"se3_bearing",
          {7, 3},
          4,
          [](const TermArguments& a) {
            const Vec3 seen = se3_act_inverse(a.block(0), a.vec3(1));
            const auto [u, v] = sphere_log(seen * (1 / norm(seen)), Vec3{{a.data(0), a.data(1), a.data(2)}});
            return std::vector<Value>{u / a.data(3), v / a.data(3)};
          },
          loss};
}
TermType range_to(int dimension, const RobustLoss& loss) {
  if (dimension != 2 && dimension != 3)
    throw InputError("dimension " + std::to_string(dimension), "solve range_to", "2 or 3");
  return {dimension == 2 ? "se2_range" : "se3_range",
          {dimension == 2 ? 3 : 7, dimension},
          2,
          [dimension](const TermArguments& a) {
            Value squares = a.graph().constant(0);
            for (int k = 0; k < dimension; ++k) {
              const Value d = a.x(1, k) - a.x(0, k);
              squares = squares + d * d;
            }
            return std::vector<Value>{(sqrt(squares) - a.data(0)) / a.data(1)};
          },
          loss};
}

int intrinsics(CameraModel model) {
  switch (model) {
    case CameraModel::pinhole: return 4;
    case CameraModel::radial: return 5;
    case CameraModel::brown_conrady: return 9;
    case CameraModel::fisheye: return 8;
  }
  return 0;
}

namespace {

/// From the angle to the axis, which does not divide by the depth: smooth everywhere but at the centre and on the axis
/// behind it.
Vec2 project_fisheye(std::span<const Value> k, const Vec3& point) {
  const Value r2 = point[0] * point[0] + point[1] * point[1], z = point[2];
  // The angle over the radius is smooth through the axis.
  const auto off_axis = r2 > 1e-8 * z * z || z <= 0.0;
  const Value r = sqrt(select(off_axis, r2, 1)), depth = select(off_axis, 1, z), s2 = r2 / (depth * depth);
  const Value ratio = select(off_axis, atan2(r, z) / r, (1 - s2 * (1.0 / 3 - s2 * (1.0 / 5))) / depth);
  const Value t2 = ratio * ratio * r2;
  const Value grown = ratio * (1 + t2 * (k[4] + t2 * (k[5] + t2 * (k[6] + t2 * k[7]))));
  return {{k[0] * grown * point[0] + k[2], k[1] * grown * point[1] + k[3]}};
}

}  // namespace

Vec2 project(CameraModel model, std::span<const Value> k, const Vec3& point) {
  if (model == CameraModel::fisheye) return project_fisheye(k, point);
  const Value x = point[0] / point[2], y = point[1] / point[2], r2 = x * x + y * y;
  switch (model) {
    case CameraModel::pinhole: return {{k[0] * x + k[2], k[1] * y + k[3]}};
    case CameraModel::radial: {
      const Value grown = k[0] * (1 + r2 * (k[3] + k[4] * r2));
      return {{grown * x + k[1], grown * y + k[2]}};
    }
    case CameraModel::brown_conrady: {
      const Value grown = 1 + r2 * (k[4] + r2 * (k[5] + r2 * k[8]));
      const Value u = x * grown + 2.0 * k[6] * x * y + k[7] * (r2 + 2.0 * x * x);
      const Value v = y * grown + k[6] * (r2 + 2.0 * y * y) + 2.0 * k[7] * x * y;
      return {{k[0] * u + k[2], k[1] * v + k[3]}};
    }
    case CameraModel::fisheye: break;
  }
  return {};
}

TermType projection(CameraModel model, const RobustLoss& loss) {
  static constexpr const char* kNames[] = {"pinhole", "radial", "brown_conrady", "fisheye"};
  return {kNames[size_t(model)],
          {7, intrinsics(model), 3},
          3,
          [model](const TermArguments& a) {
            const Vec2 pixel = project(model, a.block(1), se3_act(a.block(0), a.vec3(2)));
            return std::vector<Value>{(pixel[0] - a.data(0)) / a.data(2), (pixel[1] - a.data(1)) / a.data(2)};
          },
          loss};
}

}  // namespace lockstep::solve
