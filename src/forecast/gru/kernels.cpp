#include "forecast/gru/kernels.hpp"

#include <fmt/format.h>

namespace lockstep::forecast {

namespace {

template <class T>
std::string gru_name(const char* what) {
  return fmt::format("forecast.gru.{}.{}", what, name(detail::kType<T>));
}

template <class T>
GruKernels<T> trace_forward() {
  GruKernels<T> k;
  k.gates = kernel(gru_name<T>("gates"), [](At<2> at, Grid<T, 2> x, Grid<T, 1> b, Grid<T, 2> g, Grid<T, 2> h,
                                            Out<T, 2> z, Out<T, 2> r, Out<T, 2> rh) {
    const Val<i32> j = at.x, d = at.extent(0), i = at.y;
    const Val<T> reset = sigmoid((x(i, d + j) + b[d + j]) + g(i, d + j));
    z(i, j) = sigmoid((x(i, j) + b[j]) + g(i, j));
    r(i, j) = reset;
    rh(i, j) = reset * h(i, j);
  });
  k.candidate = kernel(gru_name<T>("candidate"), [](At<2> at, Grid<T, 2> x, Grid<T, 1> b, Grid<T, 2> c,
                                                    Grid<T, 2> z, Grid<T, 2> h, Out<T, 2> n, Out<T, 2> next) {
    const Val<i32> j = at.x, d = at.extent(0), i = at.y;
    const Val<T> value = tanh((x(i, d * 2 + j) + b[d * 2 + j]) + c(i, j)), own = h(i, j);
    n(i, j) = value;
    next(i, j) = fma(z(i, j), value - own, own);
  });
  k.step = kernel(gru_name<T>("step"),
                  [](At<2> at, Grid<T, 2> x, Grid<T, 1> b, Grid<T, 2> g, Grid<T, 1> rb, Grid<T, 2> h,
                     Out<T, 2> z, Out<T, 2> r, Out<T, 2> n, Out<T, 2> a, Out<T, 2> next) {
                    const Val<i32> j = at.x, d = at.extent(0), i = at.y;
                    const Val<T> update = sigmoid((x(i, j) + b[j]) + (g(i, j) + rb[j]));
                    const Val<T> reset = sigmoid((x(i, d + j) + b[d + j]) + (g(i, d + j) + rb[d + j]));
                    const Val<T> recurrent = g(i, d * 2 + j) + rb[d * 2 + j];
                    const Val<T> value = tanh(fma(reset, recurrent, x(i, d * 2 + j) + b[d * 2 + j]));
                    z(i, j) = update;
                    r(i, j) = reset;
                    n(i, j) = value;
                    a(i, j) = recurrent;
                    next(i, j) = fma(update, h(i, j) - value, value);
                  });
  return k;
}

template <class T>
GruKernels<T> trace_all() {
  GruKernels<T> k = trace_forward<T>();
  k.back = kernel(gru_name<T>("back"), [](At<2> at, Grid<T, 2> incoming, Grid<T, 2> z, Grid<T, 2> n,
                                          Grid<T, 2> h, InOut<T, 2> carried, Out<T, 2> d_g) {
    const Val<i32> j = at.x, d = at.extent(0), i = at.y;
    const Val<T> dh = incoming(i, j) + Val<T>(carried(i, j)), update = z(i, j), value = n(i, j);
    d_g(i, j) = dh * (value - h(i, j)) * (update * (T(1) - update));
    d_g(i, d * 2 + j) = dh * update * (T(1) - value * value);
    carried(i, j) = dh * (T(1) - update);
  });
  k.back_reset = kernel(gru_name<T>("back-reset"), [](At<2> at, Grid<T, 2> p, Grid<T, 2> r, Grid<T, 2> h,
                                                      InOut<T, 2> carried, Out<T, 2> d_g) {
    const Val<i32> j = at.x, d = at.extent(0), i = at.y;
    const Val<T> reset = r(i, j), product = p(i, j);
    d_g(i, d + j) = product * h(i, j) * (reset * (T(1) - reset));
    carried(i, j) = fma(product, reset, Val<T>(carried(i, j)));
  });
  k.back_step = kernel(gru_name<T>("back-step"),
                       [](At<2> at, Grid<T, 2> incoming, Grid<T, 2> z, Grid<T, 2> r, Grid<T, 2> n,
                          Grid<T, 2> a, Grid<T, 2> h, InOut<T, 2> carried, Out<T, 2> d_g, Out<T, 2> d_u) {
                         const Val<i32> j = at.x, d = at.extent(0), i = at.y;
                         const Val<T> dh = incoming(i, j) + Val<T>(carried(i, j));
                         const Val<T> update = z(i, j), reset = r(i, j), value = n(i, j);
                         const Val<T> dz = dh * (h(i, j) - value) * (update * (T(1) - update));
                         const Val<T> dn = dh * (T(1) - update) * (T(1) - value * value);
                         const Val<T> dr = dn * a(i, j) * (reset * (T(1) - reset));
                         for (int side = 0; side < 2; ++side) {
                           const auto& to = side == 0 ? d_g : d_u;
                           to(i, j) = dz;
                           to(i, d + j) = dr;
                           to(i, d * 2 + j) = side == 0 ? dn : dn * reset;
                         }
                         carried(i, j) = dh * update;
                       });
  k.add = kernel(gru_name<T>("add"), [](At<2> at, Grid<T, 2> p, InOut<T, 2> carried) {
    const Val<i32> j = at.x, i = at.y;
    carried(i, j) = Val<T>(carried(i, j)) + p(i, j);
  });
  return k;
}

}  // namespace

template <class T>
const GruKernels<T>& gru_kernels() {
  static const GruKernels<T> kernels = trace_all<T>();
  return kernels;
}
template const GruKernels<f32>& gru_kernels<f32>();
template const GruKernels<f64>& gru_kernels<f64>();

}  // namespace lockstep::forecast
