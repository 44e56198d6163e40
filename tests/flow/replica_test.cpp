// The published pipeline's figures (N = 64, seed 0, 300 steps) with this codec and this surrogate: the simulation as its
// authors wrote it, apart from the solver, which is another discretisation.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include "device/devices.hpp"
#include "lockstep/flow/codec.hpp"
#include "lockstep/flow/surrogate.hpp"

namespace lockstep::flow {
namespace {

constexpr int kN = 64, kPoints = kN * kN, kSteps = 300;
using Complex = std::complex<double>;
using Plane = std::vector<Complex>;

/// In place along one axis of the plane, radix 2. `sign` -1: forward.
void lines(Plane& a, int step, int apart, int sign) {
  static const std::array<Complex, kN> roots = [] {
    std::array<Complex, kN> r;
    for (int k = 0; k < kN; ++k) r[size_t(k)] = std::polar(1.0, 2 * std::numbers::pi * k / kN);
    return r;
  }();
  for (int line = 0; line < kN; ++line) {
    const auto at = [&](int k) -> Complex& { return a[size_t(line * apart + k * step)]; };
    for (int i = 1, j = 0; i < kN; ++i) {
      int bit = kN / 2;
      for (; j & bit; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(at(i), at(j));
    }
    for (int half = 1; half < kN; half *= 2)
      for (int begin = 0; begin < kN; begin += 2 * half)
        for (int k = 0; k < half; ++k) {
          const Complex& r = roots[size_t(k * kN / (2 * half))];
          const Complex w(r.real(), sign * r.imag()), x = at(begin + k), y = at(begin + k + half);
          const Complex t(w.real() * y.real() - w.imag() * y.imag(),
                          w.real() * y.imag() + w.imag() * y.real());
          at(begin + k) = x + t;
          at(begin + k + half) = x - t;
        }
  }
}
void forward(Plane& a) {
  lines(a, 1, kN, -1);
  lines(a, kN, 1, -1);
}
std::vector<double> to_points(Plane a) {
  lines(a, 1, kN, 1);
  lines(a, kN, 1, 1);
  std::vector<double> w;
  for (const Complex& c : a) w.push_back(c.real() / kPoints);
  return w;
}
double wavenumber(int k) { return k < kN / 2 ? k : k - kN; }

/// f(kx, ky) times the spectrum.
template <class F>
Plane multiplied(const Plane& a, F f) {
  Plane b(a.size());
  for (int y = 0; y < kN; ++y)
    for (int x = 0; x < kN; ++x) {
      const size_t at = size_t(y * kN + x);
      b[at] = f(wavenumber(x), wavenumber(y)) * a[at];
    }
  return b;
}

/// White noise of NumPy's RandomState(0), box filter of 11 x 11, zero mean, unit deviation.
std::vector<double> published_start() {
  std::mt19937 engine(0);
  const auto uniform = [&] {
    const double a = double(engine() >> 5), b = double(engine() >> 6);
    return (a * 67108864.0 + b) / 9007199254740992.0;
  };
  std::vector<double> noise;
  while (noise.size() < size_t(kPoints)) {
    double x = 0, y = 0, r = 0;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      r = x * x + y * y;
    } while (r >= 1 || r == 0);
    const double f = std::sqrt(-2 * std::log(r) / r);
    noise.push_back(f * y);
    noise.push_back(f * x);
  }
  std::vector<double> w;
  double mean = 0, square = 0;
  for (int j = 0; j < kN; ++j)
    for (int i = 0; i < kN; ++i) {
      double sum = 0;
      for (int b = -5; b <= 5; ++b)
        for (int a = -5; a <= 5; ++a) {
          const int y = j + b, x = i + a;
          if (y >= 0 && y < kN && x >= 0 && x < kN) sum += noise[size_t(y * kN + x)];
        }
      w.push_back(sum / 121);
      mean += w.back() / kPoints;
    }
  for (double& v : w) v -= mean;
  for (const double v : w) square += v * v / kPoints;
  for (double& v : w) v /= std::sqrt(square);
  return w;
}

const Complex kI(0, 1);

class PublishedFlow {
 public:
  explicit PublishedFlow(const std::vector<double>& w) : w_(w.begin(), w.end()) { forward(w_); }
  std::vector<double> field() const { return to_points(w_); }

  /// Heun with the eddy viscosity of the step's start.
  void step() {
    const double dt = 0.01;
    const std::vector<double> nu = eddy();
    const Plane one = rate(w_, nu);
    Plane next = w_;
    for (size_t k = 0; k < next.size(); ++k) next[k] += dt * one[k];
    const Plane two = rate(next, nu);
    for (size_t k = 0; k < next.size(); ++k) w_[k] += dt / 2 * (one[k] + two[k]);
  }
  double energy() const {
    double sum = 0;
    for (const auto& velocity : {part(w_, [](double x, double y) { return kI * y * over_k2(x, y); }),
                                 part(w_, [](double x, double y) { return -kI * x * over_k2(x, y); })})
      for (const double v : velocity) sum += v * v / 2 / kPoints;
    return sum;
  }

 private:
  static double over_k2(double kx, double ky) { return kx == 0 && ky == 0 ? 0 : 1 / (kx * kx + ky * ky); }
  template <class F>
  static std::vector<double> part(const Plane& w, F f) {
    return to_points(multiplied(w, f));
  }
  /// |S| by gradients of the velocity at points: what half the points' wave number had is lost before.
  std::vector<double> eddy() const {
    const auto gradient = [&](auto velocity, auto derivative) {
      const std::vector<double> at_points = part(w_, velocity);
      Plane again(at_points.begin(), at_points.end());
      forward(again);
      return part(again, derivative);
    };
    const auto u = [](double x, double y) { return kI * y * over_k2(x, y); };
    const auto v = [](double x, double y) { return -kI * x * over_k2(x, y); };
    const auto by_x = [](double x, double) { return kI * x; };
    const auto by_y = [](double, double y) { return kI * y; };
    const auto ux = gradient(u, by_x), uy = gradient(u, by_y), vx = gradient(v, by_x), vy = gradient(v, by_y);
    const double length = 0.17 * 2 * std::numbers::pi / kN;
    std::vector<double> nu;
    for (size_t k = 0; k < ux.size(); ++k) {
      const double s12 = (uy[k] + vx[k]) / 2;
      nu.push_back(1e-4 + length * length * std::sqrt(2 * (ux[k] * ux[k] + vy[k] * vy[k] + 2 * s12 * s12)));
    }
    return nu;
  }
  static Plane rate(const Plane& w, const std::vector<double>& nu) {
    const auto u = part(w, [](double x, double y) { return kI * y * over_k2(x, y); });
    const auto v = part(w, [](double x, double y) { return -kI * x * over_k2(x, y); });
    const auto wx = part(w, [](double x, double) { return kI * x; });
    const auto wy = part(w, [](double, double y) { return kI * y; });
    const auto laplacian = part(w, [](double x, double y) { return Complex(-(x * x + y * y)); });
    Plane r(w.size());
    for (size_t k = 0; k < r.size(); ++k) r[k] = -u[k] * wx[k] - v[k] * wy[k] + nu[k] * laplacian[k];
    forward(r);
    return r;
  }
  Plane w_;
};

struct Row {
  double l2 = 0, correlation = 0, enstrophy = 0;
};
Row row_of(const std::vector<double>& truth, std::span<const float> other) {
  double dd = 0, aa = 0, bb = 0, ab = 0;
  for (size_t k = 0; k < truth.size(); ++k) {
    const double a = truth[k], b = double(other[k]);
    dd += (a - b) * (a - b);
    aa += a * a;
    bb += b * b;
    ab += a * b;
  }
  return {std::sqrt(dd / aa), ab / std::sqrt(aa * bb), (bb - aa) / 2 / kPoints};
}

void expect_row(const Row& got, const Row& want, double tolerance, const char* what) {
  EXPECT_NEAR(got.l2, want.l2, tolerance) << what;
  EXPECT_NEAR(got.correlation, want.correlation, tolerance) << what;
  EXPECT_NEAR(got.enstrophy, want.enstrophy, tolerance) << what;
}

class FlowReplica : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    PublishedFlow flow(published_start());
    energy_first = flow.energy();
    for (int t = 0; t <= kSteps; ++t) {
      if (t > 0) flow.step();
      last = flow.field();
      for (const double v : last) frames.push_back(float(v));
    }
    energy_last = flow.energy();
  }
  static std::span<const float> frame(int t) {
    return std::span<const float>(frames).subspan(size_t(t) * kPoints, kPoints);
  }
  static Codec codec(const Device& device, Anchors anchors) {
    CodecOptions o;
    o.kind = CodecKind::classic;
    o.grid = {kN, kN};
    o.anchors = anchors;
    return {device, o, device.upload(frame(0), {kN, kN})};
  }
  /// The last frame decoded from one latent.
  static Row decoded(const Device& device, const Codec& codec, const Buffer& latent, Decoder decoder) {
    const Buffer out = device.allocate(Storage::f32, {1, kN, kN});
    codec.decode(latent, out, decoder, kSteps);
    const std::vector<float> field = device.download<float>(out);
    return row_of(last, field);
  }
  /// Without the slot that holds a constant, which is far larger than all other slots.
  static double latent_error(const Array& got, const Array& want) {
    double difference = 0, size = 0;
    for (int64_t j = 0; j < 654; ++j) {
      if (j == 2 * 197 + 3) continue;
      difference += std::pow(double(got.at<float>(0, j)) - double(want.at<float>(j)), 2);
      size += std::pow(double(want.at<float>(j)), 2);
    }
    return std::sqrt(difference / size);
  }
  static std::vector<float> frames;
  static std::vector<double> last;
  static double energy_first, energy_last;
};
std::vector<float> FlowReplica::frames;
std::vector<double> FlowReplica::last;
double FlowReplica::energy_first = 0, FlowReplica::energy_last = 0;

TEST_F(FlowReplica, Energies) {
  EXPECT_NEAR(energy_first / 6.380872e-2, 1, 1e-6);
  EXPECT_NEAR(energy_last / 6.241147e-2, 1, 1e-6);
  double z = 0;
  for (const double v : last) z += v * v / 2 / kPoints;
  EXPECT_NEAR(z / 0.466451, 1, 2e-6);
}

TEST_F(FlowReplica, Table) {
  const Device& device = test_device(host_devices().front());
  const Codec published = codec(device, Anchors::published), used = codec(device, Anchors::used);
  ASSERT_EQ(published.latent_size(), 654);
  const int64_t count = kSteps + 1;
  const Buffer fields = device.upload(std::span<const float>(frames), {count, kN, kN});
  const Buffer latents = device.allocate(Storage::f32, {count, 654});
  published.encode(fields, latents);
  expect_row(decoded(device, published, latents.rows(kSteps, 1), Decoder::mean), {.473, .881, -.104}, 1e-3,
             "true z");
  expect_row(decoded(device, used, latents.rows(kSteps, 1), Decoder::mean), {.433, .902, -.087}, 3e-3,
             "anchors");
  expect_row(decoded(device, published, latents.rows(kSteps, 1), Decoder::stochastic), {.644, .789, -.017},
             0.02, "true z, as written");
  expect_row(row_of(last, frame(kSteps / 2)), {.927, .579, .019}, 1e-3, "persistence");

  // Learnt from the first half, 150 steps from its end.
  const Array series = device.download(latents);
  const Surrogate half = learn(series, {.train_share = 151.0 / 301});
  ASSERT_EQ(half.train_frames, 151);
  Rollout rollout(device, half);
  rollout.start(latents.rows(150, 1));
  const Buffer end = device.allocate(Storage::f32, {1, 654});
  rollout.jump(150, end);
  expect_row(decoded(device, published, end, Decoder::mean), {.743, .689, -.128}, 0.01, "out of sample");
  expect_row(decoded(device, published, end, Decoder::stochastic), {.836, .630, -.054}, 0.03,
             "out of sample, as written");
  EXPECT_NEAR(latent_error(device.download(end), series[kSteps]), 0.48, 0.01);

  // Learnt from all of it, as published: one more frame stands for what learn() holds out.
  std::vector<float> all(series.as<float>().begin(), series.as<float>().end());
  all.insert(all.end(), all.end() - 654, all.end());
  const Surrogate whole = learn(Array::of(std::move(all), {count + 1, 654}), {.train_share = 301.0 / 302});
  Rollout memorised(device, whole);
  memorised.start(latents.rows(0, 1));
  memorised.jump(300, end);
  EXPECT_LT(latent_error(device.download(end), series[kSteps]), 0.02);
  expect_row(decoded(device, published, end, Decoder::stochastic), {.640, .792, -.017}, 0.03,
             "in sample, as written");
}

}  // namespace
}  // namespace lockstep::flow
