// Surrogates: linear systems are found again, the published formula, delays, rollouts in their three forms, scores.
#include "lockstep/flow/surrogate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "device/devices.hpp"
#include "lockstep/error.hpp"
#include "lockstep/verify.hpp"

namespace lockstep::flow {
namespace {

using Complex = std::complex<double>;

/// Frames of three damped rotations and a constant, seen in `size` numbers through fixed random vectors.
Array rotations(int64_t frames, int64_t size, const std::vector<Complex>& turns) {
  std::mt19937_64 engine(5);
  std::normal_distribution<double> normal;
  std::vector<double> mix(size_t((2 * int64_t(turns.size()) + 1) * size));
  for (double& v : mix) v = normal(engine);
  Array z(Storage::f64, {frames, size});
  const auto to = z.mutate<double>();
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t j = 0; j < size; ++j) {
      double sum = mix[size_t(2 * int64_t(turns.size()) * size + j)];
      for (size_t k = 0; k < turns.size(); ++k) {
        const Complex at = std::pow(turns[k], double(t));
        sum += at.real() * mix[2 * k * size_t(size) + size_t(j)] +
               at.imag() * mix[(2 * k + 1) * size_t(size) + size_t(j)];
      }
      to[size_t(t * size + j)] = sum;
    }
  return z;
}

const std::vector<Complex> kTurns{std::polar(0.999, 0.7), std::polar(0.99, 0.2), std::polar(1.0, 1.9)};

TEST(FlowSurrogate, FindsLinearSystemsAgain) {
  const Array z = rotations(60, 40, kTurns);
  for (const SurrogateMethod method : {SurrogateMethod::ridge, SurrogateMethod::dmd}) {
    const Surrogate model = learn(z, {.method = method, .train_share = 0.5, .lambda = 0});
    EXPECT_EQ(model.rank, 7);
    EXPECT_EQ(model.train_frames, 30);
    const std::vector<Complex> found = eigenvalues(model);
    std::vector<Complex> want{1.0};
    for (const Complex& t : kTurns) want.insert(want.end(), {t, std::conj(t)});
    for (const Complex& w : want) {
      double nearest = 1;
      for (const Complex& f : found) nearest = std::min(nearest, std::abs(f - w));
      EXPECT_LT(nearest, 1e-10);
    }
    for (const std::string& device : host_devices()) {
      const SurrogateScores s = score(test_device(device), model, z, Storage::f64);
      EXPECT_LT(s.held_out.surrogate_all, 1e-8) << device;
      EXPECT_LT(s.one_step_held_out, 1e-10) << device;
      EXPECT_EQ(s.held_out.horizon, 30);
      EXPECT_FALSE(s.held_out.lost());
      EXPECT_GT(s.held_out.persistence_all, 0.3);
      EXPECT_GT(s.held_out.climatology_all, 0.3);
    }
  }
}

// On a device: the same step and subspace as on the host, the same bits on every device, singular values down to
// rounding, systems found again.
TEST(FlowSurrogate, LearnsOnADeviceAsOnTheHost) {
  std::vector<double> first;
  for (const std::string& name : host_devices())
    for (const SurrogateMethod method : {SurrogateMethod::ridge, SurrogateMethod::dmd})
      for (const int64_t size : {40, 1500}) {
        const Device& device = test_device(name);
        const Array z = rotations(40, size, kTurns);
        const SurrogateOptions options{.method = method, .delays = 2, .lambda = 0};
        const Buffer on_device = device.upload(z);
        const LearntOnDevice learnt = learn(device, on_device, options);
        EXPECT_EQ(learnt.model.rank, 7);
        const Surrogate host = learn(z, options), same = to_host(device, learnt, on_device);
        EXPECT_EQ(same.basis.shape(), host.basis.shape());
        EXPECT_EQ(same.last.shape(), host.last.shape());
        for (int64_t j = 0; j < size; ++j)
          EXPECT_NEAR(same.climatology.at<double>(j), host.climatology.at<double>(j), 1e-13);
        Rollout rollout(device, learnt, Storage::f64);
        const SurrogateScores s = score(rollout, learnt.model, on_device, learnt.climatology);
        EXPECT_LT(s.held_out.surrogate_all, 1e-8) << name << ' ' << size;
        EXPECT_LT(s.one_step_held_out, 1e-10);
        const std::vector<double> step(same.step.as<double>().begin(), same.step.as<double>().end());
        if (method == SurrogateMethod::ridge && size == 1500) {
          if (first.empty()) first = step;
          EXPECT_EQ(step, first) << name;
        }
      }
}

// One number that swings is no linear function of itself, but of its last two values.
TEST(FlowSurrogate, DelaysHoldWhatOneFrameDoesNot) {
  std::vector<double> swing;
  for (int t = 0; t < 80; ++t) swing.push_back(std::cos(0.3 * t));
  const Array z = Array::of(swing, {80, 1});
  const Device device = Device::open("interp");
  const SurrogateScores one = score(device, learn(z, {.lambda = 0}), z, Storage::f64);
  const Surrogate model = learn(z, {.delays = 2, .lambda = 0});
  EXPECT_EQ(model.state_size(), 2);
  const SurrogateScores two = score(device, model, z, Storage::f64);
  EXPECT_GT(one.held_out.surrogate_all, 0.5);
  EXPECT_LT(two.held_out.surrogate_all, 1e-8);
  const std::vector<Complex> found = eigenvalues(model);
  EXPECT_NEAR(std::abs(std::arg(found[0])), 0.3, 1e-10);
}

/// x of a x = b by elimination with pivots; a is n x n, b is n x m.
std::vector<double> eliminated(std::vector<double> a, std::vector<double> b, size_t n, size_t m) {
  for (size_t c = 0; c < n; ++c) {
    size_t best = c;
    for (size_t r = c; r < n; ++r)
      if (std::abs(a[r * n + c]) > std::abs(a[best * n + c])) best = r;
    for (size_t j = 0; j < n; ++j) std::swap(a[c * n + j], a[best * n + j]);
    for (size_t j = 0; j < m; ++j) std::swap(b[c * m + j], b[best * m + j]);
    for (size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double f = a[r * n + c] / a[c * n + c];
      for (size_t j = 0; j < n; ++j) a[r * n + j] -= f * a[c * n + j];
      for (size_t j = 0; j < m; ++j) b[r * m + j] -= f * b[c * m + j];
    }
  }
  for (size_t r = 0; r < n; ++r)
    for (size_t j = 0; j < m; ++j) b[r * m + j] /= a[r * n + r];
  return b;
}

// The published operator, (X'X + lambda)^-1 X'Y on whole latents: in fewer frames than numbers, and in more.
TEST(FlowSurrogate, RidgeIsThePublishedOperator) {
  for (const int64_t frames : {12, 60}) {
    const size_t size = 10, pairs = size_t(frames) / 2 - 1;
    std::mt19937_64 engine(7);
    std::normal_distribution<double> normal;
    std::vector<double> numbers(size_t(frames) * size);
    for (double& v : numbers) v = normal(engine);
    const double lambda = 1e-3;
    std::vector<double> gram(size * size), right(size * size);
    for (size_t i = 0; i < size; ++i)
      for (size_t j = 0; j < size; ++j) {
        if (i == j) gram[i * size + j] = lambda;
        for (size_t t = 0; t < pairs; ++t) {
          gram[i * size + j] += numbers[t * size + i] * numbers[t * size + j];
          right[i * size + j] += numbers[t * size + i] * numbers[(t + 1) * size + j];
        }
      }
    const std::vector<double> operator_ = eliminated(gram, right, size, size);
    std::vector<double> state(numbers.begin() + int64_t(pairs * size),
                              numbers.begin() + int64_t((pairs + 1) * size));
    const Array z = Array::of(numbers, {frames, int64_t(size)});
    const Surrogate model = learn(z, {.lambda = lambda});
    const Device device = Device::open("interp");
    Rollout rollout(device, model, Storage::f64);
    rollout.start(device.upload(model.last));
    const Buffer out = device.allocate(Storage::f64, {4, int64_t(size)});
    rollout.run(out);
    const Array got = device.download(out);
    double largest = 0;
    for (int64_t s = 0; s < 4; ++s) {
      std::vector<double> next(size);
      for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j < size; ++j) next[j] += state[i] * operator_[i * size + j];
      state = next;
      for (size_t j = 0; j < size; ++j)
        largest = std::max(largest, std::abs(got.at<double>(s, int64_t(j)) - state[j]));
    }
    EXPECT_LT(largest, 1e-8) << frames;
  }
}

TEST(FlowSurrogate, StridesMeetTheSteps) {
  const Array z = rotations(60, 20, kTurns);
  const Surrogate model = learn(z, {.delays = 2, .lambda = 1e-9});
  for (const std::string& name : host_devices()) {
    const Device& device = test_device(name);
    Rollout rollout(device, model, Storage::f64);
    rollout.start(device.upload(model.last));
    const Buffer steps = device.allocate(Storage::f64, {37, 20}),
                 doubled = device.allocate(Storage::f64, {37, 20}),
                 one = device.allocate(Storage::f64, {1, 20});
    rollout.run(steps);
    rollout.run(doubled, RolloutMode::doubling);
    const Array a = device.download(steps), b = device.download(doubled);
    EXPECT_TRUE(compare({b}, {a}).within(Bound::relative(1e-12))) << name;
    for (const int64_t at : {1, 8, 37}) {
      rollout.jump(at, one);
      EXPECT_TRUE(
          compare({device.download(one)[0].packed()}, {a[at - 1].packed()}).within(Bound::relative(1e-12)))
          << name << at;
    }
    rollout.jump(0, one);
    EXPECT_TRUE(
        compare({device.download(one)[0].packed()}, {model.last[1].packed()}).within(Bound::relative(1e-6)));
  }
}

TEST(FlowSurrogate, TheHorizonMayBeZero) {
  const Array still = Array::of(std::vector<double>(20, 3.0), {10, 2});
  const RolloutScore s = score_rollout(still.slice(0, 0, 4), still.slice(0, 4, 4), still[0], still[0]);
  EXPECT_EQ(s.horizon, 0);
  EXPECT_TRUE(s.lost());
  const Array truth = Array::of(std::vector<double>{1, 2, 3, 4}, {4, 1});
  const Array predicted = Array::of(std::vector<double>{1, 2.5, 0, 4}, {4, 1});
  const Array start = Array::of(std::vector<double>{0.5}), mean = Array::of(std::vector<double>{2});
  const RolloutScore r = score_rollout(predicted, truth, start, mean);
  EXPECT_EQ(r.horizon, 2);
  EXPECT_DOUBLE_EQ(r.surrogate[1], 0.25);
  EXPECT_DOUBLE_EQ(r.persistence[0], 0.5);
  EXPECT_DOUBLE_EQ(r.climatology[2], 1.0 / 3);
  EXPECT_DOUBLE_EQ(r.surrogate_all, std::sqrt(9.25 / 30));
}

TEST(FlowSurrogate, FilesHoldTheWholeModel) {
  const Surrogate model = learn(rotations(30, 8, kTurns), {.delays = 2, .rank = 3});
  const Surrogate again = surrogate_from(to_arrays(model), "test");
  EXPECT_EQ(again.state_size(), 6);
  EXPECT_EQ(again.train_frames, 15);
  EXPECT_TRUE(compare({again.step, again.basis, again.last}, {model.step, model.basis, model.last})
                  .within(Bound::exact()));
  auto broken = to_arrays(model);
  broken[2].second = Array(Storage::f64, {5, 5});
  EXPECT_THROW(surrogate_from(broken, "test"), InputError);
  broken.pop_back();
  EXPECT_THROW(surrogate_from(broken, "test"), InputError);
}

TEST(FlowSurrogate, Refusals) {
  const Array z = rotations(20, 4, kTurns);
  EXPECT_THROW(learn(z, {.train_share = 1}), InputError);
  EXPECT_THROW(learn(z, {.train_share = 0.05}), InputError);
  EXPECT_THROW(learn(z, {.delays = 12}), InputError);
  EXPECT_THROW(learn(z, {.delays = 0}), InputError);
  EXPECT_THROW(learn(z, {.lambda = -1}), InputError);
  EXPECT_THROW(learn(z[0], {}), InputError);
  EXPECT_THROW(learn(Array(Storage::f32, {8, kMaxLatent + 1}), {}), InputError);
  Array holed = z.copy();
  holed.mutate<double>()[3] = std::nan("");
  EXPECT_THROW(learn(holed, {}), InputError);
  const Device device = Device::open("interp");
  Rollout rollout(device, learn(z, {}), Storage::f64);
  const Buffer out = device.allocate(Storage::f64, {2, 4});
  EXPECT_THROW(rollout.run(out), InputError);
  EXPECT_THROW(rollout.start(device.allocate(Storage::f32, {1, 4})), InputError);
}

}  // namespace
}  // namespace lockstep::flow
