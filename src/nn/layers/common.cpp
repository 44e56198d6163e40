#include "nn/layers/common.hpp"

#include "device/cached_kernel.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::nn {

namespace {

constexpr double kRootHalf = 0.70710678118654752440, kNormalDensity = 0.39894228040143267794;

template <class T>
Val<T> activated(Activation f, const Val<T>& x) {
  switch (f) {
    case Activation::tanh: return tanh(x);
    case Activation::relu: return select(x > T(0), x, T(0));
    case Activation::sigmoid: return sigmoid(x);
    default: return x;
  }
}

}  // namespace

void multiply(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c) {
  primitives::matmul(device, a, b, c, {}, {.tf32 = true});
}

template <class T>
const Kernel& column_sums_kernel() {
  static const Kernel k = kernel(nn_kernel_name<T>("column_sums"), [](At<2> at, Grid<T, 2> x, Out<T, 2> to) {
    const Val<i32> first = Val<i32>(at.y) * kSumRows, column = at.x;
    Var<T> sum = x(first, column);
    for_(first + 1, min(first + kSumRows, x.size(0)), [&](Val<i32> row) { sum += x(row, column); });
    to[at] = sum;
  });
  return k;
}
template const Kernel& column_sums_kernel<f32>();
template const Kernel& column_sums_kernel<f64>();

int64_t column_scratch(int64_t rows) {
  int64_t total = 0;
  while (rows > kSumRows) total += rows = (rows + kSumRows - 1) / kSumRows;
  return total;
}

void column_sums(const Device& device, const Buffer& x, const Buffer& partial, const Buffer& to) {
  const int64_t columns = to.elements();
  by_type(x.storage(), [&]<class T>(T) {
    Buffer from = x;
    int64_t used = 0;
    while (true) {
      const int64_t chunks = (from.shape()[0] + kSumRows - 1) / kSumRows;
      const bool last = chunks == 1;
      const Buffer sums =
          last ? to.reshape({1, columns}) : partial.rows(used, chunks * columns).reshape({chunks, columns});
      device.launch(column_sums_kernel<T>(), {chunks, columns}, from, sums);
      if (last) return;
      used += chunks * columns;
      from = sums;
    }
  });
}

template <class T>
Kernel activate_kernel(Activation f, bool bias) {
  const auto make = [&]() -> Kernel {
    const std::string title = nn_kernel_name<T>("activate." + std::string(name(f)) + (bias ? ".bias" : ""));
    if (f == Activation::gelu) {
      const auto body = [](auto at, const InOut<T, 2>& slope, const Val<T>& x, const Out<T, 2>& y) {
        const Val<T> share = T(0.5) * (T(1) + erf(x * T(kRootHalf)));
        const Val<T> density = exp(T(-0.5) * (x * x)) * T(kNormalDensity);
        y[at] = x * share;
        slope[at] = fma(x, density, share);
      };
      if (bias)
        return kernel(title, [&](At<2> at, InOut<T, 2> slope, Grid<T, 1> b, Out<T, 2> y) {
          body(at, slope, Val<T>(slope[at]) + b[at.x], y);
        });
      return kernel(title, [&](At<2> at, InOut<T, 2> slope, Out<T, 2> y) { body(at, slope, slope[at], y); });
    }
    if (bias)
      return kernel(title, [&](At<2> at, InOut<T, 2> y, Grid<T, 1> b) {
        y[at] = activated<T>(f, Val<T>(y[at]) + b[at.x]);
      });
    return kernel(title, [&](At<2> at, InOut<T, 2> y) { y[at] = activated<T>(f, y[at]); });
  };
  return cached_kernel(
      "nn.activate " + std::string(name(f)) + (bias ? " bias " : " ") + std::to_string(sizeof(T)), make);
}
template Kernel activate_kernel<f32>(Activation, bool);
template Kernel activate_kernel<f64>(Activation, bool);

template <class T>
Kernel slope_kernel(Activation f) {
  return cached_kernel("nn.slope " + std::string(name(f)) + " " + std::to_string(sizeof(T)), [&] {
    return kernel(nn_kernel_name<T>("slope." + std::string(name(f))),
                  [&](At<2> at, InOut<T, 2> dy, Grid<T, 2> from) {
                    const Val<T> y = from[at], d = dy[at];
                    switch (f) {
                      case Activation::tanh: dy[at] = d * (T(1) - y * y); break;
                      case Activation::relu: dy[at] = select(y > T(0), d, T(0)); break;
                      case Activation::sigmoid: dy[at] = d * (y * (T(1) - y)); break;
                      default: dy[at] = d * y; break;
                    }
                  });
  });
}
template Kernel slope_kernel<f32>(Activation);
template Kernel slope_kernel<f64>(Activation);

}  // namespace lockstep::nn
