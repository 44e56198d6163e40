// Minimisers over device vectors: known minima, and first-order steps against the formulas in plain C++.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <type_traits>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "lockstep/optimize.hpp"
#include "lockstep/primitives.hpp"
#include "optimize/lbfgs/memory.hpp"
#include "optimize/line_search.hpp"

namespace lockstep::optimize {
namespace {

template <class T>
std::vector<double> widened(const Device& device, const Buffer& buffer) {
  const std::vector<T> values = device.download<T>(buffer);
  return {values.begin(), values.end()};
}
template <class T>
Buffer uploaded(const Device& device, const std::vector<double>& values) {
  const std::vector<T> narrow(values.begin(), values.end());
  return device.upload(narrow);
}

/// Rosenbrock's function in n variables, pairs of (x, y): sum of 100 (y - x^2)^2 + (1 - x)^2; least 0 at 1.
template <class T>
struct Rosenbrock final : VectorObjective {
  Rosenbrock(const Device& device, int pairs)
      : VectorObjective(device, uploaded<T>(device, start(pairs))),
        terms_(device.allocate(lockstep::detail::kStorage<T>, {2 * pairs})) {}
  static std::vector<double> start(int pairs) {
    std::vector<double> x;
    for (int k = 0; k < pairs; ++k) x.insert(x.end(), {-1.2 + 0.1 * k, 1.0});
    return x;
  }
  void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
    static const Kernel work =
        kernel(std::is_same_v<T, f64> ? "test.rosenbrock.f64" : "test.rosenbrock.f32",
               [](At<1> at, Grid<T, 1> p, Out<T, 1> g, Out<T, 1> terms) {
                 const Val<i32> k = at.x, first = k - k % 2;
                 const Val<T> u = p[first], v = p[first + 1], bend = v - u * u, rest = T(1) - u;
                 const Val<bool> is_first = k % 2 == 0;
                 g[at] = select(is_first, T(-400) * u * bend - T(2) * rest, T(200) * bend);
                 terms[at] = select(is_first, T(100) * bend * bend, rest * rest);
               });
    device().launch(work, {x.elements()}, x, gradient, terms_);
    primitives::reduce(device(), primitives::Reduce::sum, terms_, value);
  }
  Buffer terms_;
};

/// 1/2 sum d_k (x_k - k)^2 with d_k from 1 to 1000; the value of storage A.
template <class T, class A = T>
struct Quadratic final : VectorObjective {
  static constexpr int kSize = 50;
  explicit Quadratic(const Device& device)
      : VectorObjective(device, uploaded<T>(device, std::vector<double>(kSize, 3)),
                        lockstep::detail::kStorage<A>),
        terms_(device.allocate(lockstep::detail::kStorage<A>, {kSize})) {
    std::vector<double> d;
    for (int k = 0; k < kSize; ++k) d.push_back(std::pow(1000, k / double(kSize - 1)));
    stiffness_ = uploaded<T>(device, d);
  }
  void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
    static const Kernel work =
        kernel(std::string("test.quadratic.") + std::string(name(lockstep::detail::kType<T>)) + "." +
                   std::string(name(lockstep::detail::kType<A>)),
               [](At<1> at, Grid<T, 1> p, Grid<T, 1> d, Out<T, 1> g, Out<A, 1> terms) {
                 const Val<i32> k = at.x;
                 const Val<T> away = p[at] - cast<T>(k);
                 g[at] = d[at] * away;
                 terms[at] = A(0.5) * cast<A>(Val<T>(d[at])) * cast<A>(away) * cast<A>(away);
               });
    device().launch(work, {x.elements()}, x, stiffness_, gradient, terms_);
    primitives::reduce(device(), primitives::Reduce::sum, terms_, value);
  }
  Buffer terms_, stiffness_;
};

TEST(Optimize, LbfgsFindsTheMinimumOfRosenbrock) {
  for (const char* name : {"cpu", "interp"}) {
    SCOPED_TRACE(name);
    const Device device = Device::open(name);
    for (const int pairs : {1, 7}) {
      Rosenbrock<f64> f(device, pairs);
      Options options;
      options.max_iterations = 600;
      options.value_tolerance = 0;
      int calls = 0;
      options.callback = [&](const Iteration& row) { return row.iteration == ++calls; };
      const Result result = minimize(f, options);
      EXPECT_TRUE(result.termination == Termination::gradient_tolerance ||
                  result.termination == Termination::step_tolerance)
          << optimize::name(result.termination);
      EXPECT_LT(result.value, 1e-20);
      EXPECT_LT(result.value, result.first_value);
      EXPECT_EQ(result.iterations, int(result.trace.size()));
      EXPECT_EQ(calls, result.iterations);
      EXPECT_GE(result.evaluations, result.iterations);
      for (const double x : widened<double>(device, f.point())) EXPECT_NEAR(x, 1, 1e-9);
    }
    Rosenbrock<f32> narrow(device, 3);
    Options options;
    options.max_iterations = 300;
    options.value_tolerance = 0;
    const Result result = minimize(narrow, options);
    EXPECT_LT(result.value, 1e-8);
    for (const double x : widened<float>(device, narrow.point())) EXPECT_NEAR(x, 1, 1e-3);
  }
}

TEST(Optimize, LbfgsFindsTheMinimumOfAQuadraticForm) {
  const Device device = Device::open("cpu");
  for (const int history : {1, 5, 20}) {
    Quadratic<f64> f(device);
    Options options;
    options.history = history;
    options.max_iterations = 2000;
    options.value_tolerance = 0;
    options.step_tolerance = 0;
    options.gradient_tolerance = 1e-8;
    const Result result = minimize(f, options);
    EXPECT_EQ(result.termination, Termination::gradient_tolerance) << history;
    EXPECT_LE(result.gradient_max, 1e-8);
    const std::vector<double> x = widened<double>(device, f.point());
    for (size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(x[k], double(k), 1e-8) << history;
  }
}

/// Nocedal and Wright's two-loop recursion (algorithm 7.4) on the quadratic form, in plain C++.
struct PlainLbfgs {
  size_t history;
  std::vector<double> d, x, g;
  std::deque<std::vector<double>> s, y;  // the newest first
  double value = 0, step_norm = 0;
  int trials = 0;

  explicit PlainLbfgs(size_t history_) : history(history_), x(Quadratic<f64>::kSize, 3), g(x.size()) {
    for (size_t k = 0; k < x.size(); ++k) d.push_back(std::pow(1000, double(k) / double(x.size() - 1)));
    value = at(x, g);
  }
  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
    return sum;
  }
  double at(const std::vector<double>& point, std::vector<double>& gradient) const {
    double sum = 0;
    for (size_t k = 0; k < point.size(); ++k) {
      const double away = point[k] - double(k);
      gradient[k] = d[k] * away;
      sum += 0.5 * d[k] * away * away;
    }
    return sum;
  }
  static void add(double factor, const std::vector<double>& b, std::vector<double>& a) {
    for (size_t k = 0; k < a.size(); ++k) a[k] += factor * b[k];
  }
  std::vector<double> direction() const {
    std::vector<double> q = g, alpha(s.size());
    for (size_t age = 0; age < s.size(); ++age) {
      alpha[age] = dot(s[age], q) / dot(s[age], y[age]);
      add(-alpha[age], y[age], q);
    }
    const double scale =
        s.empty() ? std::min(1.0, 1 / std::sqrt(dot(g, g))) : dot(s[0], y[0]) / dot(y[0], y[0]);
    for (double& v : q) v *= scale;
    for (size_t age = s.size(); age-- > 0;) add(alpha[age] - dot(y[age], q) / dot(s[age], y[age]), s[age], q);
    for (double& v : q) v = -v;
    return q;
  }
  void step() {
    const std::vector<double> way = direction(), x0 = x, g0 = g;
    const LineResult line = strong_wolfe(
        [&](double t) {
          x = x0;
          add(t, way, x);
          const double now = at(x, g);
          return LinePoint{t, now, dot(g, way)};
        },
        {0, value, dot(g0, way)}, 1);
    value = line.point.value, trials = line.trials;
    step_norm = line.point.t * std::sqrt(dot(way, way));
    s.push_front(x), y.push_front(g);
    add(-1, x0, s[0]), add(-1, g0, y[0]);
    if (s.size() > history) s.pop_back(), y.pop_back();
  }
};

template <class T, class A>
void expect_the_two_loops(const Device& device, int history, int iterations, double bound) {
  SCOPED_TRACE(testing::Message() << name(lockstep::detail::kType<T>) << ", " << history << " pairs");
  Quadratic<T, A> f(device);
  Options options;
  options.history = history, options.max_iterations = iterations;
  options.value_tolerance = 0;
  const Result result = minimize(f, options);
  PlainLbfgs plain{size_t(history)};
  EXPECT_NEAR(result.first_value, plain.value, bound * plain.value);
  ASSERT_EQ(result.iterations, iterations);
  int evaluations = 1;
  for (const Iteration& row : result.trace) {
    plain.step();
    evaluations += plain.trials;
    EXPECT_EQ(row.trials, plain.trials) << row.iteration;
    EXPECT_NEAR(row.value, plain.value, bound * plain.value) << row.iteration;
    EXPECT_NEAR(row.step_norm, plain.step_norm, bound * plain.step_norm) << row.iteration;
  }
  EXPECT_EQ(result.evaluations, evaluations);
}

// Loops on vectors (f64) and on products (f32 with sums in f64), with fewer, as many and more pairs than iterations.
TEST(Optimize, LbfgsStepsAreTheTwoLoops) {
  for (const char* device : {"cpu", "interp"})
    for (const int history : {1, 3, 12, 40}) {
      expect_the_two_loops<f64, f64>(Device::open(device), history, 14, 1e-8);
      expect_the_two_loops<f32, f64>(Device::open(device), history, 8, 1e-3);
    }
}

template <class T, class A>
void expect_the_saved_direction(int history, int iterations) {
  SCOPED_TRACE(testing::Message() << name(lockstep::detail::kType<T>) << ", " << history << " pairs after "
                                  << iterations);
  const Device device = Device::open("cpu");
  Quadratic<T, A> f(device);
  const Buffer none = device.allocate(f.gradient().storage(), {f.gradient().elements()});
  device.clear(none);
  f.launch(none);
  LbfgsMemory memory(f, history, false);
  memory.begin();
  for (int k = 0; k < iterations; ++k) {
    memory.advance();
    memory.trial(0.5);
    memory.accept();
  }
  std::vector<double> scalars;
  std::vector<std::vector<double>> vectors;
  memory.save(scalars, vectors);
  LbfgsMemory restored(f, history, false), others(f, history + 1, false);
  restored.restore(scalars, vectors);
  others.restore(scalars, vectors);
  EXPECT_EQ(others.advance().pairs, 0);  // numbers of another history are no memory
  const LbfgsTrial again = restored.advance(), on = memory.advance();
  EXPECT_EQ(on.pairs, std::min(history, iterations));
  EXPECT_EQ(again.pairs, on.pairs);
  EXPECT_EQ(again.value, on.value);
  EXPECT_EQ(widened<T>(device, restored.step()), widened<T>(device, memory.step()));
  EXPECT_EQ(memory.find_direction(f.gradient()), std::min(history, iterations + 1));  // with the trial's
}

/// 1/2 sum (k + 1) (x_k - 1)^2 from 2 on; counts what the host launches.
struct Bowl final : VectorObjective {
  Bowl(const Device& device, int size, bool recordable = true)
      : VectorObjective(device, uploaded<f64>(device, std::vector<double>(size_t(size), 2))),
        recordable_(recordable),
        terms_(device.allocate(Storage::f64, {size})) {}
  bool recordable() const override { return recordable_; }
  void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
    static const Kernel work =
        kernel("test.bowl", [](At<1> at, Grid<f64, 1> p, Out<f64, 1> g, Out<f64, 1> terms) {
          const Val<f64> stiffness = cast<f64>(at.x + 1), away = p[at] - 1.0;
          g[at] = stiffness * away;
          terms[at] = 0.5 * stiffness * away * away;
        });
    device().launch(work, {x.elements()}, x, gradient, terms_);
    primitives::reduce(device(), primitives::Reduce::sum, terms_, value);
    ++launches;
  }
  int launches = 0;
  bool recordable_;
  Buffer terms_;
};

// Rows of the memory are padded to multiples of 128 bytes, a group has 256 lanes, and a lane takes two elements in a turn:
// sizes around these.
TEST(Optimize, LbfgsOfEverySize) {
  for (const int size : {1, 2, 15, 16, 17, 18, 31, 32, 33, 49, 255, 256, 257, 511, 512, 513, 1027}) {
    SCOPED_TRACE(size);
    const Device device = Device::open(size < 50 ? "interp" : "cpu");
    Bowl bowl(device, size);
    minimize(bowl, {.max_iterations = 1000, .value_tolerance = 0});
    for (const double x : widened<f64>(device, bowl.point())) EXPECT_NEAR(x, 1, 1e-6);
  }
}

// A gradient of the wrong sign: nothing lower is found, and the start is left.
TEST(Optimize, WhereNothingFallsTheStartIsKept) {
  struct Uphill final : VectorObjective {
    using VectorObjective::VectorObjective;
    void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
      device().copy(x, gradient);
      primitives::scale(device(), -1, gradient);
      primitives::dot(device(), x, x, value);
    }
  };
  const Device device = Device::open("cpu");
  const std::vector<double> start{1, -2, 3};
  Uphill f(device, uploaded<f64>(device, start));
  const Result result = minimize(f);
  EXPECT_EQ(result.termination, Termination::no_descent);
  EXPECT_EQ(result.value, result.first_value);
  EXPECT_EQ(widened<double>(device, f.point()), start);
}

// A gradient that is not finite ends a minimisation, regardless of the value.
TEST(Optimize, AGradientThatIsNotFiniteIsAFailure) {
  struct Cliff final : VectorObjective {
    using VectorObjective::VectorObjective;
    void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
      static const Kernel slope = kernel("test.cliff", [](At<1> at, Grid<f64, 1> p, Out<f64, 1> g) {
        g[at] = select(p[at] < 2.0, Val<f64>(f64(NAN)), Val<f64>(p[at]));
      });
      device().launch(slope, {x.elements()}, x, gradient);
      primitives::dot(device(), x, x, value);
    }
  };
  const Device device = Device::open("cpu");
  for (const Method method : {Method::sgd, Method::adam}) {
    Cliff f(device, uploaded<f64>(device, {3, 2.5}));
    const Result result = minimize(f, {.method = method, .learning_rate = 0.3});
    EXPECT_EQ(result.termination, Termination::failure) << name(method);
    EXPECT_EQ(result.iterations, method == Method::sgd ? 1 : 2);  // the first gradient below 2
  }
}

// An objective that may not be recorded is launched for every evaluation; others are replayed.
TEST(Optimize, OnlyWhatMayBeRecordedIs) {
  const Device device = Device::open("cpu");
  Bowl launched(device, 20, false), replayed(device, 20);
  const Options options{.max_iterations = 12, .value_tolerance = 0};
  const Result a = minimize(launched, options), b = minimize(replayed, options);
  EXPECT_EQ(launched.launches, a.evaluations);
  EXPECT_LT(replayed.launches, b.evaluations);
  EXPECT_EQ(a.value, b.value);
}

TEST(Optimize, LbfgsGoesOnFromWhatItSaved) {
  for (const int history : {1, 4})
    for (const int iterations : {1, 3, 7}) {
      expect_the_saved_direction<f64, f64>(history, iterations);
      expect_the_saved_direction<f32, f64>(history, iterations);
    }
}

/// The textbook's step of each method from gradients of the quadratic form.
struct Plain {
  Method method;
  Options options;
  std::vector<double> x, m, v, d;
  int steps = 0;

  explicit Plain(Method method_, const Options& options_)
      : method(method_), options(options_), x(Quadratic<f64>::kSize, 3), m(x.size()), v(x.size()) {
    for (size_t k = 0; k < x.size(); ++k) d.push_back(std::pow(1000, double(k) / double(x.size() - 1)));
  }
  void step() {
    ++steps;
    for (size_t k = 0; k < x.size(); ++k) {
      const double g = d[k] * (x[k] - double(k)), rate = options.learning_rate;
      if (method == Method::sgd) {
        m[k] = options.momentum * m[k] + g;
        x[k] -= rate * m[k];
        continue;
      }
      m[k] = 0.9 * m[k] + 0.1 * g;
      v[k] = 0.999 * v[k] + 0.001 * g * g;
      const double mean = m[k] / (1 - std::pow(0.9, steps)), square = v[k] / (1 - std::pow(0.999, steps));
      const double decay = method == Method::adamw ? rate * options.weight_decay * x[k] : 0;
      x[k] -= rate * mean / (std::sqrt(square) + 1e-8) + decay;
    }
  }
  double value() const {
    double sum = 0;
    for (size_t k = 0; k < x.size(); ++k) sum += 0.5 * d[k] * (x[k] - double(k)) * (x[k] - double(k));
    return sum;
  }
};

TEST(Optimize, FirstOrderStepsAreTheFormulas) {
  const Device device = Device::open("cpu");
  for (const Method method : {Method::sgd, Method::adam, Method::adamw}) {
    SCOPED_TRACE(name(method));
    Options options;
    options.method = method;
    options.max_iterations = 60;
    options.learning_rate = method == Method::sgd ? 1e-4 : 0.05;
    options.momentum = 0.7, options.weight_decay = 0.3;
    Quadratic<f64> wide(device);
    Quadratic<f32> narrow(device);
    const Result result = minimize(wide, options), single = minimize(narrow, options);
    Plain plain(method, options);
    ASSERT_EQ(result.iterations, 60);
    EXPECT_EQ(result.evaluations, 61);  // one at the start and one a step
    EXPECT_EQ(result.termination, Termination::max_iterations);
    EXPECT_NEAR(result.first_value, plain.value(), 1e-9 * plain.value());
    for (const Iteration& row : result.trace) {
      plain.step();
      EXPECT_NEAR(row.value, plain.value(), 1e-11 * plain.value()) << row.iteration;
    }
    const std::vector<double> x = widened<double>(device, wide.point()),
                              y = widened<float>(device, narrow.point());
    for (size_t k = 0; k < x.size(); ++k) {
      EXPECT_NEAR(x[k], plain.x[k], 1e-11 * (1 + std::abs(plain.x[k])));
      EXPECT_NEAR(y[k], plain.x[k], 1e-4 * (1 + std::abs(plain.x[k])));
    }
    EXPECT_LT(single.value, single.first_value);
  }
}

TEST(Optimize, TheBestPointIsLeft) {
  const Device device = Device::open("cpu");
  Quadratic<f64> f(device);
  Options options;
  options.method = Method::sgd;
  options.learning_rate = 1e-2;  // stiff coordinates diverge
  options.max_iterations = 40;
  const Result result = minimize(f, options);
  EXPECT_GT(result.trace.back().value, result.first_value);
  EXPECT_LE(result.value, result.first_value);
  const std::vector<double> x = widened<double>(device, f.point());
  double sum = 0;
  for (size_t k = 0; k < x.size(); ++k)
    sum += 0.5 * std::pow(1000, double(k) / 49) * (x[k] - double(k)) * (x[k] - double(k));
  EXPECT_NEAR(sum, result.value, 1e-10 * sum);
}

TEST(Optimize, RefusesBadInput) {
  const Device device = Device::open("cpu");
  Quadratic<f64> f(device);
  const auto refused = [&](auto change) {
    Options options;
    change(options);
    EXPECT_THROW(minimize(f, options), InputError);
  };
  refused([](Options& o) { o.history = 0; });
  refused([](Options& o) { o.history = 1001; });
  refused([](Options& o) { o.max_iterations = -1; });
  refused([](Options& o) { o.value_tolerance = NAN; });
  refused([](Options& o) { o.learning_rate = 0; });
  refused([](Options& o) { o.momentum = -1; });
  struct Infinite final : VectorObjective {
    using VectorObjective::VectorObjective;
    void launch_at(const Buffer&, const Buffer& gradient, const Buffer& value) override {
      primitives::fill(device(), gradient, 1);
      primitives::fill(device(), value, INFINITY);
    }
  };
  Infinite nowhere(device, uploaded<f64>(device, {1, 2}));
  EXPECT_THROW(minimize(nowhere), InputError);
  const std::vector<int32_t> whole{1, 2};
  EXPECT_THROW(Infinite(device, device.upload(whole)), InputError);
  EXPECT_THROW(Infinite(device, uploaded<f64>(device, {1, 2}), Storage::f32), InputError);
  Options stopped;
  stopped.callback = [](const Iteration& row) { return row.iteration < 2; };
  EXPECT_EQ(minimize(f, stopped).termination, Termination::stopped);
}

}  // namespace
}  // namespace lockstep::optimize
