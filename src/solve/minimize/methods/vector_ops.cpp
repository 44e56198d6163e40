#include "solve/minimize/methods/vector_ops.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <type_traits>

#include "device/capabilities.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "optimize/vector_launch.hpp"
#include "primitives/sums/host_reduce.hpp"
#include "solve/linear/host_solver.hpp"
#include "solve/linear/linear_solver.hpp"

namespace lockstep::solve {
namespace {

template <class T>
std::string kernel_name(const char* operation) {
  return std::string("solve.") + operation + "." + std::string(name(detail::kType<T>));
}

template <class T>
Val<T> clamped(const Val<T>& d) {
  const DampingRange range = std::is_same_v<T, f64> ? DampingRange() : DampingRange().narrow();
  return min(max(d, Val<T>(T(range.low))), Val<T>(T(range.high)));
}

constexpr int64_t kShort = 1024;

bool in_place(const Device& device, const Buffer& x) {
  return x.storage() == Storage::f64 && x.elements() <= kShort && capabilities_of(device).vectors &&
         device.numerics() == Numerics::exact;
}
std::span<const double> numbers(const Buffer& x) {
  return {reinterpret_cast<const double*>(x.native()), size_t(x.elements())};
}

}  // namespace

double max_abs(const Device& device, const Buffer& x) {
  if (!in_place(device, x)) return optimize::max_abs(device, x);
  double out = 0;
  for (const double v : numbers(x)) {
    if (std::isnan(v)) return v;
    out = std::max(out, std::abs(v));
  }
  return out;
}
double dot(const Device& device, const Buffer& x, const Buffer& y) {
  return in_place(device, x) ? primitives::host_dot(numbers(x), numbers(y)) : optimize::dot(device, x, y);
}
double norm(const Device& device, const Buffer& x) {
  return in_place(device, x) ? primitives::host_norm(numbers(x)) : optimize::norm(device, x);
}

void scale_by(const Device& device, const Buffer& d, const Buffer& p, const Buffer& q) {
  optimize::by_storage(q, [&]<class T>(T) {
    static const Kernel k =
        kernel(kernel_name<T>("scale_by"), [](At<1> at, Grid<T, 1> diagonal, Grid<T, 1> x, Out<T, 1> r) {
          r[at] = clamped<T>(diagonal[at]) * x[at];
        });
    optimize::launch_over(device, k, q, d, p, q);
  });
}

void divide_by(const Device& device, const Buffer& d, const Buffer& p, const Buffer& q) {
  optimize::by_storage(q, [&]<class T>(T) {
    static const Kernel k =
        kernel(kernel_name<T>("divide_by"), [](At<1> at, Grid<T, 1> diagonal, Grid<T, 1> x, Out<T, 1> r) {
          r[at] = x[at] / clamped<T>(diagonal[at]);
        });
    optimize::launch_over(device, k, q, d, p, q);
  });
}

void raise(const Device& device, const Buffer& p, const Buffer& q) {
  optimize::by_storage(q, [&]<class T>(T) {
    static const Kernel k = kernel(kernel_name<T>("raise"),
                                   [](At<1> at, Grid<T, 1> x, InOut<T, 1> r) { r[at] = max(x[at], r[at]); });
    optimize::launch_over(device, k, q, p, q);
  });
}

void clear(const Device& device, const std::vector<uint8_t>& which, const Buffer& x) {
  std::vector<double> v = to_host(device, x);
  for (size_t k = 0; k < v.size(); ++k)
    if (which[k]) v[k] = 0;
  to_device(device, v, x);
}

}  // namespace lockstep::solve
