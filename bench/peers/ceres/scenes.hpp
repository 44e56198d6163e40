// Problems that both sides solve, from fixed seeds, and the time a side takes.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace peers {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Result of a run, for the script: seconds (the median of its repetitions), cost and iterations of the last one.
struct Outcome {
  double seconds = 0, cost = 0;
  int iterations = 0;
};
inline double median(std::vector<double> seconds) {
  std::nth_element(seconds.begin(), seconds.begin() + int64_t(seconds.size() / 2), seconds.end());
  return seconds[seconds.size() / 2];
}
inline void print(const Outcome& o) { std::printf("%.9g %.12g %d\n", o.seconds, o.cost, o.iterations); }

/// Uniform numbers in [-1, 1] and normal ones, the same with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double uniform() { return 2 * (double(engine_() >> 11) * 0x1p-53) - 1; }
  double normal() {  // Box and Muller
    const double u = 0.5 * (uniform() + 1) + 1e-18, v = uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(M_PI * v);
  }

 private:
  std::mt19937_64 engine_;
};

using Vector3 = std::array<double, 3>;
/// The unit quaternion (w, x, y, z) q applied to v.
inline Vector3 rotate(const std::array<double, 4>& q, const Vector3& v) {
  const auto [w, x, y, z] = q;
  const double c0 = 2 * (y * v[2] - z * v[1]), c1 = 2 * (z * v[0] - x * v[2]), c2 = 2 * (x * v[1] - y * v[0]);
  return {v[0] + w * c0 + y * c2 - z * c1, v[1] + w * c1 + z * c0 - x * c2, v[2] + w * c2 + x * c1 - y * c0};
}
inline std::array<double, 4> near_identity(Random& random, double size) {
  std::array<double, 4> q{1, size * random.uniform(), size * random.uniform(), size * random.uniform()};
  const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (double& v : q) v /= n;
  return q;
}

/// A camera's pose from points in space: rows (X, Y, Z, u, v) with f = 500 and 0.3 pixels of noise.
inline std::vector<double> pnp_rows(uint64_t seed, int points) {
  Random random(seed);
  const std::array<double, 4> q = near_identity(random, 0.2);
  const Vector3 t{random.uniform(), random.uniform(), 6 + random.uniform()};
  std::vector<double> rows;
  for (int k = 0; k < points; ++k) {
    const Vector3 x{2 * random.uniform(), 2 * random.uniform(), 2 * random.uniform()};
    Vector3 p = rotate(q, x);
    for (size_t i = 0; i < 3; ++i) p[i] += t[i];
    rows.insert(rows.end(), {x[0], x[1], x[2], 500 * p[0] / p[2] + 0.3 * random.normal(),
                             500 * p[1] / p[2] + 0.3 * random.normal()});
  }
  return rows;
}

/// Rows (t, y) of a damped oscillation.
inline std::vector<double> curve_rows(int points) {
  Random random(5);
  std::vector<double> rows;
  for (int k = 0; k < points; ++k) {
    const double t = 10.0 * k / points;
    rows.insert(rows.end(),
                {t, 3 * std::exp(-0.5 * t) * std::cos(2 * t + 0.3) + 0.1 + 0.05 * random.normal()});
  }
  return rows;
}
inline constexpr std::array<double, 5> kCurveStart{2, 0.3, 1.9, 0, 0};

/// A target of 9 x 6 corners, 3 cm apart, in 20 views: rows (view, X, Y, u, v). Intrinsics f_x f_y c_x c_y k_1.
inline std::vector<double> calibration_rows() {
  Random random(9);
  std::vector<double> rows;
  for (int view = 0; view < 20; ++view) {
    const std::array<double, 4> q = near_identity(random, 0.25);
    const Vector3 t{-0.12 + 0.03 * random.uniform(), -0.08 + 0.03 * random.uniform(),
                    0.5 + 0.1 * random.uniform()};
    for (int k = 0; k < 54; ++k) {
      const Vector3 x{0.03 * (k % 9), 0.03 * (k / 9), 0};
      Vector3 p = rotate(q, x);
      for (size_t i = 0; i < 3; ++i) p[i] += t[i];
      const double a = p[0] / p[2], b = p[1] / p[2], d = 1 - 0.08 * (a * a + b * b);
      rows.insert(rows.end(), {double(view), x[0], x[1], 702 * d * a + 322 + 0.2 * random.normal(),
                               698 * d * b + 238 + 0.2 * random.normal()});
    }
  }
  return rows;
}
inline constexpr std::array<double, 5> kCalibrationStart{600, 600, 310, 250, 0};

/// Poses in the plane joined by edges: (x, y, angle) of j seen from i.
struct PlaneEdge {
  int32_t i, j;
  Vector3 z;
};
inline Vector3 compose(const double* a, const Vector3& z) {
  const double c = std::cos(a[2]), s = std::sin(a[2]);
  return {a[0] + c * z[0] - s * z[1], a[1] + s * z[0] + c * z[1], std::remainder(a[2] + z[2], 2 * M_PI)};
}
struct PlaneWorld {
  std::vector<PlaneEdge> odometry, closures;  // closures in the order of their later pose
};
/// A robot on the streets of a square town: turns at crossings, sees places again.
inline PlaneWorld plane_world(int poses) {
  Random random(3);
  PlaneWorld world;
  std::vector<Vector3> truth{{0, 0, 0}};
  const auto edge = [&](int i, int j, double sigma) {
    const Vector3 &a = truth[size_t(i)], &b = truth[size_t(j)];
    const double dx = b[0] - a[0], dy = b[1] - a[1], c = std::cos(a[2]), s = std::sin(a[2]);
    return PlaneEdge{i,
                     j,
                     {c * dx + s * dy + sigma * random.normal(), c * dy - s * dx + sigma * random.normal(),
                      std::remainder(b[2] - a[2] + 0.01 * random.normal(), 2 * M_PI)}};
  };
  for (int k = 1; k < poses; ++k) {
    const double* last = truth.back().data();
    double turn = 0;
    if (k % 10 == 0) turn = M_PI / 2 * std::round(1.5 * random.uniform());
    const Vector3 ahead = compose(last, {1, 0, turn});
    if (std::max(std::abs(ahead[0]), std::abs(ahead[1])) > 20) turn = M_PI;
    truth.push_back(compose(last, {turn == M_PI ? 0.0 : 1.0, 0, turn}));
    world.odometry.push_back(edge(k - 1, k, 0.05));
    int seen = 0;
    for (int j = 0; j < k - 20 && seen < 2; ++j)
      if (std::hypot(truth[size_t(k)][0] - truth[size_t(j)][0], truth[size_t(k)][1] - truth[size_t(j)][1]) <
              0.8 &&
          random.uniform() > 0.3)
        world.closures.push_back(edge(j, k, 0.03)), ++seen;
  }
  return world;
}

/// Frames along a curve; frame k is measured from frames k - 1, k - 2 and k - 5.
struct WindowWorld {
  std::vector<Vector3> starts;                // dead reckoning from the frame before the last truth
  std::vector<std::vector<PlaneEdge>> edges;  // by their later frame
};
inline constexpr int kWindow = 20, kFrames = 300;
inline WindowWorld window_world() {
  Random random(17);
  WindowWorld world;
  std::vector<Vector3> truth{{0, 0, 0}};
  for (int k = 1; k < kFrames; ++k)
    truth.push_back(compose(truth.back().data(), {0.5, 0, 0.3 * random.uniform()}));
  for (int k = 0; k < kFrames; ++k) {
    Vector3 start = truth[size_t(k)];
    for (double& v : start) v += 0.05 * random.normal();
    world.starts.push_back(k == 0 ? truth[0] : start);
    std::vector<PlaneEdge> edges;
    for (const int back : {1, 2, 5}) {
      if (back > k) continue;
      const Vector3 &a = truth[size_t(k - back)], &b = truth[size_t(k)];
      const double dx = b[0] - a[0], dy = b[1] - a[1], c = std::cos(a[2]), s = std::sin(a[2]);
      edges.push_back({k - back,
                       k,
                       {c * dx + s * dy + 0.02 * random.normal(), c * dy - s * dx + 0.02 * random.normal(),
                        b[2] - a[2] + 0.005 * random.normal()}});
    }
    world.edges.push_back(std::move(edges));
  }
  return world;
}

/// Coefficients of residuals that are added one by one: a (x_k+1 - x_k) + sin(x_k) - b.
inline std::vector<double> loose_rows(int count) {
  Random random(23);
  std::vector<double> rows;
  for (int k = 0; k < 2 * count; ++k) rows.push_back(1.5 + 0.5 * random.uniform());
  return rows;
}

/// Each residual exp(d . x) - y uses all numbers of one block: rows (d, y).
inline std::vector<double> wide_rows(int width) {
  Random random(1);
  std::vector<double> rows;
  for (int m = 0; m < 20 * width; ++m) {
    double s = 0;
    for (int k = 0; k < width; ++k) {
      rows.push_back(random.normal() / std::sqrt(width));
      s += rows.back() * std::sin(k);
    }
    rows.push_back(std::exp(s) + 0.01 * random.normal());
  }
  return rows;
}

}  // namespace peers
