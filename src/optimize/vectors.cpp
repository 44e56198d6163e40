#include "optimize/vectors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device/cached_kernel.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "lockstep/primitives.hpp"
#include "optimize/vector_launch.hpp"

namespace lockstep::optimize {
namespace {

/// numbers = value, |step|^2, largest and least gradient component, |point|^2, in the value's type.
template <class A, class T, class S>
Kernel collect_kernel() {
  return cached_kernel(fmt::format("collect {} {} {}", sizeof(A), sizeof(T), sizeof(S)), [] {
    return kernel(fmt::format("optimize.collect.{}.{}.{}", name(lockstep::detail::kType<A>),
                              name(lockstep::detail::kType<T>), name(lockstep::detail::kType<S>)),
                  [](At<1>, Grid<A, 1> value, Grid<T, 1> square, Grid<T, 1> most, Grid<T, 1> least,
                     Grid<S, 1> point, Out<A, 1> numbers) {
                    const Val<i32> first = 0;
                    const auto put = [&](int at, const Val<A>& number) { numbers[Val<i32>(at)] = number; };
                    put(0, value[first]);
                    put(1, cast<A>(Val<T>(square[first])));
                    put(2, cast<A>(Val<T>(most[first])));
                    put(3, cast<A>(Val<T>(least[first])));
                    put(4, cast<A>(Val<S>(point[first])));
                  });
  });
}
Kernel collect_kernel(Storage value, Storage real, Storage point) {
  const bool wide_real = real == Storage::f64, wide_point = point == Storage::f64;
  if (value == Storage::f64) {
    if (wide_real) return wide_point ? collect_kernel<f64, f64, f64>() : collect_kernel<f64, f64, f32>();
    return wide_point ? collect_kernel<f64, f32, f64>() : collect_kernel<f64, f32, f32>();
  }
  return collect_kernel<f32, f32, f32>();
}

}  // namespace

std::vector<double> download_numbers(const Device& device, const Buffer& buffer) {
  if (buffer.storage() == Storage::f64) return device.download<double>(buffer);
  const std::vector<float> narrow = device.download<float>(buffer);
  return {narrow.begin(), narrow.end()};
}

void write_numbers(const Device& device, std::span<const double> numbers, const Buffer& buffer) {
  if (buffer.storage() == Storage::f64) {
    device.write(buffer, numbers.data(), int64_t(numbers.size_bytes()));
    return;
  }
  const std::vector<float> narrow(numbers.begin(), numbers.end());
  device.write(buffer, narrow.data(), int64_t(narrow.size() * sizeof(float)));
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

StepReader::StepReader(Objective& objective) : objective_(objective) {
  const Device& device = objective.device();
  const Storage real = objective.gradient().storage(), state = objective.point().storage();
  for (Buffer* b : {&step_square_, &most_, &least_}) *b = device.allocate(real, {1});
  point_square_ = device.allocate(state, {1});
  if (objective.counted()) masked_ = device.allocate(state, {objective.point().elements()});
  numbers_ = device.allocate(objective.value().storage(), {5});
}

StepNumbers StepReader::evaluate(const Buffer& step) {
  const Device& device = objective_.device();
  objective_.launch(step);
  const Buffer gradient = objective_.gradient(), trial = objective_.trial();
  primitives::dot(device, step, step, step_square_);
  primitives::reduce(device, primitives::Reduce::max, gradient, most_);
  primitives::reduce(device, primitives::Reduce::min, gradient, least_);
  if (masked_) primitives::multiply(device, trial, objective_.counted(), masked_);
  const Buffer& counted = masked_ ? masked_ : trial;
  primitives::dot(device, counted, counted, point_square_);
  device.launch(collect_kernel(numbers_.storage(), gradient.storage(), trial.storage()), {1},
                objective_.value(), step_square_, most_, least_, point_square_, numbers_);
  const std::vector<double> n = download_numbers(device, numbers_);
  return {n[0], std::sqrt(n[1]), std::isnan(n[2]) ? n[2] : std::max(n[2], -n[3]), std::sqrt(n[4])};
}

}  // namespace lockstep::optimize
