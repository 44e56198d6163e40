// A bundle adjustment problem of any size whose truth is known.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "lockstep/error.hpp"
#include "solve/datasets/bal.hpp"

namespace lockstep::solve {
namespace {

constexpr double kRing = 12, kColumn = 5;   // radii, m
constexpr int64_t kFewest = 2, kMost = 12;  // observations of a point

/// Numbers of a stream that is known by its name alone, so that parts may be made in any order.
class Stream {
 public:
  Stream(uint64_t seed, uint64_t kind, uint64_t number)
      : state_(seed * 0x9e3779b97f4a7c15u + kind * 0xd1b54a32d192ed03u + number * 0x8cb92ba72f3d8dd7u) {}
  double uniform() { return double(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int64_t below(int64_t n) { return int64_t(next() % uint64_t(n)); }
  /// Of mean 0 and variance 1, as the sum of twelve uniform numbers: nearly Gaussian, and of the same bits
  /// with every mathematical library.
  double normal() {
    double sum = -6;
    for (int k = 0; k < 12; ++k) sum += uniform();
    return sum;
  }

 private:
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  uint64_t state_;
};

using Point = std::array<double, 3>;
enum Kind : uint64_t { camera_truth, point_truth, pixels, camera_start, point_start, tracks };

/// Rotation vector of the camera whose axes in the world are the rows of R.
std::array<double, 3> rotation_vector(const std::array<Point, 3>& r) {
  // By the largest of the four quaternion components, so that no angle is special.
  const double trace = r[0][0] + r[1][1] + r[2][2];
  std::array<double, 4> q{};
  std::array<double, 4> squares{1 + trace, 1 + 2 * r[0][0] - trace, 1 + 2 * r[1][1] - trace,
                                1 + 2 * r[2][2] - trace};
  const size_t largest = size_t(std::max_element(squares.begin(), squares.end()) - squares.begin());
  const double w = std::sqrt(squares[largest]) / 2, f = 0.25 / w;
  const double x = r[2][1] - r[1][2], y = r[0][2] - r[2][0], z = r[1][0] - r[0][1];
  if (largest == 0) {
    q = {w, x * f, y * f, z * f};
  } else {
    const size_t i = largest - 1, j = (i + 1) % 3, k = (i + 2) % 3;
    q[0] = (r[k][j] - r[j][k]) * f;
    q[1 + i] = w;
    q[1 + j] = (r[j][i] + r[i][j]) * f;
    q[1 + k] = (r[k][i] + r[i][k]) * f;
  }
  if (q[0] < 0)
    for (double& part : q) part = -part;
  const double sine = std::hypot(q[1], q[2], q[3]);
  const double scale = sine > 0 ? 2 * std::atan2(sine, q[0]) / sine : 2;
  return {q[1] * scale, q[2] * scale, q[3] * scale};
}

/// The rotation by |w| around w (Rodrigues).
std::array<Point, 3> rotation_of(const Point& w) {
  const double angle = std::hypot(w[0], w[1], w[2]);
  const double s = angle > 0 ? std::sin(angle) / angle : 1,
               v = angle > 0 ? (1 - std::cos(angle)) / (angle * angle) : 0.5, c = std::cos(angle);
  return {{{c + v * w[0] * w[0], v * w[0] * w[1] - s * w[2], v * w[0] * w[2] + s * w[1]},
           {v * w[0] * w[1] + s * w[2], c + v * w[1] * w[1], v * w[1] * w[2] - s * w[0]},
           {v * w[0] * w[2] - s * w[1], v * w[1] * w[2] + s * w[0], c + v * w[2] * w[2]}}};
}

/// -R c, the camera's translation for its centre c.
Point translation_of(const std::array<Point, 3>& rotation, const Point& center) {
  Point t{};
  for (size_t r = 0; r < 3; ++r)
    for (size_t k = 0; k < 3; ++k) t[r] -= rotation[r][k] * center[k];
  return t;
}

struct Camera {
  std::array<Point, 3> rotation;
  Point center, translation;
  double focal, k1, k2;
};

/// On the ring at its number's angle, looking at the column's axis, with small departures.
Camera make_camera(const SyntheticBal& options, int64_t number) {
  Stream random(options.seed, camera_truth, uint64_t(number));
  const double angle = 2 * std::numbers::pi * double(number) / double(options.cameras);
  const double radius = kRing + random.uniform(-0.5, 0.5);
  const Point center{radius * std::cos(angle), radius * std::sin(angle), random.uniform(-0.5, 0.5)};
  const Point target{random.uniform(-0.5, 0.5), random.uniform(-0.5, 0.5), random.uniform(-0.5, 0.5)};
  // z points backwards, x to the right, y up.
  Point z;
  for (size_t k = 0; k < 3; ++k) z[k] = center[k] - target[k];
  const double length = std::hypot(z[0], z[1], z[2]), flat = std::hypot(z[0], z[1]);
  for (double& part : z) part /= length;
  const Point x{-(center[1] - target[1]) / flat, (center[0] - target[0]) / flat, 0};
  const Point y{z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]};
  Camera camera{{x, y, z},
                center,
                {},
                800 * random.uniform(0.95, 1.05),
                random.uniform(-1e-2, 1e-2),
                random.uniform(-1e-3, 1e-3)};
  camera.translation = translation_of(camera.rotation, center);
  return camera;
}

std::array<double, 2> project(const Camera& camera, const Point& point) {
  Point p = camera.translation;
  for (size_t r = 0; r < 3; ++r)
    for (size_t k = 0; k < 3; ++k) p[r] += camera.rotation[r][k] * point[k];
  const double x = -p[0] / p[2], y = -p[1] / p[2], r2 = x * x + y * y;
  const double scale = camera.focal * (1 + r2 * (camera.k1 + camera.k2 * r2));
  return {scale * x, scale * y};
}

/// Observations of each point: as many points as the mean of kFewest … kMost allows, the total exact.
std::vector<int8_t> track_lengths(const SyntheticBal& options, int64_t most) {
  const int64_t points = std::max<int64_t>(1, 2 * options.observations / (kFewest + most));
  std::vector<int8_t> lengths(static_cast<size_t>(points));
  Stream random(options.seed, tracks, 0);
  int64_t left = options.observations;
  for (int8_t& length : lengths) {
    length = int8_t(kFewest + random.below(most - kFewest + 1));
    left -= length;
  }
  for (size_t p = 0; left != 0; p = (p + 1) % lengths.size()) {
    const int step = left > 0 ? 1 : -1;
    if (lengths[p] + step < kFewest || lengths[p] + step > most) continue;
    lengths[p] = int8_t(lengths[p] + step);
    left -= step;
  }
  return lengths;
}

}  // namespace

io::BalProblem synthetic_bal(const SyntheticBal& options) {
  const int64_t n = options.cameras;
  if (n < 3 || n > 10'000'000)
    throw InputError(fmt::format("{} cameras", n), "synthetic bundle adjustment", "3 to 10,000,000");
  if (options.observations < 30 * n || options.observations > 1'000'000'000)
    throw InputError(fmt::format("{} observations of {} cameras", options.observations, n),
                     "synthetic bundle adjustment", "30 for each camera at least, 10^9 at most");
  std::vector<Camera> cameras;
  for (int64_t c = 0; c < n; ++c) cameras.push_back(make_camera(options, c));

  io::BalProblem bal;
  for (int64_t c = 0; c < n; ++c) {
    Stream random(options.seed, camera_start, uint64_t(c));
    const Camera& camera = cameras[size_t(c)];
    Point turn = rotation_vector(camera.rotation), center = camera.center;
    for (double& w : turn) w += 0.01 * options.disturbance * random.normal();
    for (double& x : center) x += 0.05 * options.disturbance * random.normal();
    const Point translation = translation_of(rotation_of(turn), center);
    bal.cameras.insert(bal.cameras.end(), turn.begin(), turn.end());
    bal.cameras.insert(bal.cameras.end(), translation.begin(), translation.end());
    bal.cameras.push_back(camera.focal * (1 + 0.005 * options.disturbance * random.normal()));
    // Distortion is not known at the start, but for a start at the truth.
    for (const double k : {camera.k1, camera.k2})
      bal.cameras.push_back(k * std::max(0.0, 1 - options.disturbance));
  }
  // A point is seen from cameras within 45 degrees of its side of the column.
  const int64_t facing = std::max<int64_t>(3, 2 * (n / 8) + 1);
  const std::vector<int8_t> lengths = track_lengths(options, std::min(kMost, facing));
  bal.points.reserve(3 * lengths.size());
  bal.indices.reserve(2 * size_t(options.observations));
  bal.observations.reserve(2 * size_t(options.observations));
  std::vector<int64_t> seen_from;
  for (size_t p = 0; p < lengths.size(); ++p) {
    Stream random(options.seed, point_truth, p), noise(options.seed, pixels, p),
        start(options.seed, point_start, p);
    const int64_t length = lengths[p];
    // Every camera is the nearest of as many points as the others.
    const double place = double(int64_t(p) % n) + random.uniform(-0.5, 0.5);
    const double angle = 2 * std::numbers::pi * place / double(n);
    const double radius = kColumn + 0.5 * std::sin(7 * angle) + random.uniform(-0.3, 0.3);
    const Point point{radius * std::cos(angle), radius * std::sin(angle), random.uniform(-2.5, 2.5)};
    for (const double x : point) bal.points.push_back(x + 0.05 * options.disturbance * start.normal());
    // The facing cameras in as many parts as there are observations: one of each.
    const int64_t first = int64_t(std::llround(place)) - facing / 2 + n;
    seen_from.clear();
    for (int64_t k = 0; k < length; ++k) {
      const int64_t low = k * facing / length, high = (k + 1) * facing / length;
      seen_from.push_back((first + low + random.below(high - low)) % n);
    }
    std::sort(seen_from.begin(), seen_from.end());
    for (const int64_t c : seen_from) {
      const auto pixel = project(cameras[size_t(c)], point);
      bal.indices.push_back(int32_t(c));
      bal.indices.push_back(int32_t(p));
      for (const double x : pixel) bal.observations.push_back(x + options.noise_px * noise.normal());
    }
  }
  return bal;
}

}  // namespace lockstep::solve
