#include "solve/minimize/vector_ops.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lockstep/primitives.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/model/traced_buffer.hpp"

namespace lockstep::solve {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kTiny = 1e-8;

template <class T>
std::string kernel_name(const char* operation) {
  return std::string("solve.") + operation + "." + std::string(name(detail::kType<T>));
}

template <class T>
Val<T> clamped(const Val<T>& d) {
  return min(max(d, Val<T>(T(1e-6))), Val<T>(T(1e32)));
}

template <class F>
void by_storage(const Buffer& x, F work) {
  if (x.storage() == Storage::f64)
    work(double{});
  else
    work(float{});
}

template <class T, class... A>
void launch(const Device& device, const Kernel& kernel, const Buffer& extent, const A&... arguments) {
  if (extent.elements() > 0) device.launch(kernel, {extent.elements()}, arguments...);
}

/// numbers = those of five buffers, converted to its type.
Kernel collect_kernel(const std::vector<Storage>& from, Storage to) {
  std::string key = "solve.collect";
  for (const Storage s : from) key += "." + std::string(name(s));
  return cached_kernel(key + " " + std::string(name(to)), [=] {
    return Kernel::trace(key, ir::Domain::points, 1, {}, [=](ir::Builder& b) {
      std::vector<TracedBuffer> sources;
      for (size_t k = 0; k < from.size(); ++k)
        sources.emplace_back("x" + std::to_string(k), from[k], 1, ir::Access::read);
      const TracedBuffer numbers("numbers", to, 1, ir::Access::write);
      for (size_t k = 0; k < from.size(); ++k) numbers.store({b.i32(int(k))}, sources[k].load({b.i32(0)}));
    });
  });
}

}  // namespace

void scale_by(const Device& device, const Buffer& d, const Buffer& p, const Buffer& q) {
  by_storage(q, [&]<class T>(T) {
    static const Kernel k =
        kernel(kernel_name<T>("scale_by"), [](At<1> at, Grid<T, 1> diagonal, Grid<T, 1> x, Out<T, 1> r) {
          r[at] = clamped<T>(diagonal[at]) * x[at];
        });
    launch<T>(device, k, q, d, p, q);
  });
}

void divide_by(const Device& device, const Buffer& d, const Buffer& p, const Buffer& q) {
  by_storage(q, [&]<class T>(T) {
    static const Kernel k =
        kernel(kernel_name<T>("divide_by"), [](At<1> at, Grid<T, 1> diagonal, Grid<T, 1> x, Out<T, 1> r) {
          r[at] = x[at] / clamped<T>(diagonal[at]);
        });
    launch<T>(device, k, q, d, p, q);
  });
}

void raise(const Device& device, const Buffer& p, const Buffer& q) {
  by_storage(q, [&]<class T>(T) {
    static const Kernel k = kernel(kernel_name<T>("raise"),
                                   [](At<1> at, Grid<T, 1> x, InOut<T, 1> r) { r[at] = max(x[at], r[at]); });
    launch<T>(device, k, q, p, q);
  });
}

double max_abs(const Device& device, const Buffer& x) {
  double out = 0;
  by_storage(x, [&]<class T>(T) {
    const double high = double(primitives::max<T>(device, x)), low = double(primitives::min<T>(device, x));
    out = x.elements() == 0 ? 0 : high != high ? high : std::max(high, -low);
  });
  return out;
}
double dot(const Device& device, const Buffer& x, const Buffer& y) {
  double out = 0;
  by_storage(x, [&]<class T>(T) { out = double(primitives::dot<T>(device, x, y)); });
  return out;
}
double norm(const Device& device, const Buffer& x) {
  double out = 0;
  by_storage(x, [&]<class T>(T) { out = double(primitives::norm<T>(device, x)); });
  return out;
}

StepReader::StepReader(const Evaluator& evaluator) : evaluator_(evaluator) {
  const Evaluator::State& s = evaluator.internals();
  for (Buffer* b : {&step_square_, &most_, &least_}) *b = s.device.allocate(s.values.real, {1});
  state_square_ = s.device.allocate(s.values.state, {1});
  if (s.any_fixed) masked_ = s.device.allocate(s.values.state, {s.ambient});
  numbers_ = s.device.allocate(s.values.cost, {5});
}

StepNumbers StepReader::try_gradient(const Buffer& step) {
  const Evaluator::State& s = evaluator_.internals();
  const Device& device = s.device;
  s.launch_retract(step);
  s.launch_gradient(s.candidate, false);
  s.sum_cost();
  primitives::dot(device, step, step, step_square_);
  primitives::reduce(device, primitives::Reduce::max, s.gradient, most_);
  primitives::reduce(device, primitives::Reduce::min, s.gradient, least_);
  if (s.any_fixed) primitives::multiply(device, s.candidate, s.free_numbers, masked_);
  const Buffer& state = s.any_fixed ? masked_ : s.candidate;
  primitives::dot(device, state, state, state_square_);
  device.launch(collect_kernel({s.values.cost, s.values.real, s.values.real, s.values.real, s.values.state},
                               s.values.cost),
                {1}, s.cost, step_square_, most_, least_, state_square_, numbers_);
  const std::vector<double> n = download_numbers(device, numbers_);
  return {n[0], std::sqrt(n[1]), std::isnan(n[2]) ? n[2] : std::max(n[2], -n[3]), std::sqrt(n[4])};
}

void momentum_step(const Device& device, const Buffer& g, const Buffer& v, const Buffer& step,
                   double momentum, double rate) {
  by_storage(g, [&]<class T>(T) {
    static const Kernel k = kernel(
        kernel_name<T>("momentum_step"),
        [](At<1> at, Grid<T, 1> slope, InOut<T, 1> velocity, Out<T, 1> move, Param<T> keep, Param<T> rate_) {
          const Val<T> next = fma(keep, velocity[at], slope[at]);
          velocity[at] = next;
          move[at] = -(rate_ * next);
        });
    launch<T>(device, k, g, g, v, step, double(T(momentum)), double(T(rate)));
  });
}

void adam_step(const Device& device, const Buffer& g, const Buffer& m, const Buffer& v, const Buffer& x,
               const Buffer& step, double rate, double c1, double c2, double decay) {
  by_storage(g, [&]<class T>(T) {
    static const Kernel k = kernel(
        kernel_name<T>("adam_step"),
        [](At<1> at, Grid<T, 1> slope, InOut<T, 1> mean, InOut<T, 1> square, InOut<T, 1> point,
           Out<T, 1> move, Param<T> rate_, Param<T> first, Param<T> second, Param<T> decay_) {
          const Val<T> s = slope[at];
          const Val<T> next_mean = fma(Val<T>(T(kBeta1)), mean[at], Val<T>(T(1 - kBeta1)) * s);
          const Val<T> next_square = fma(Val<T>(T(kBeta2)), square[at], Val<T>(T(1 - kBeta2)) * (s * s));
          mean[at] = next_mean;
          square[at] = next_square;
          const Val<T> moved =
              -(rate_ * ((next_mean * first) / (sqrt(next_square * second) + Val<T>(T(kTiny))))) -
              decay_ * point[at];
          move[at] = moved;
          point[at] = point[at] + moved;
        });
    launch<T>(device, k, g, g, m, v, x, step, double(T(rate)), double(T(c1)), double(T(c2)),
              double(T(decay)));
  });
}

}  // namespace lockstep::solve
