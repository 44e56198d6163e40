// One step of a GRU over (examples, units), and its adjoint. Columns of gates are in the order z, r, n.
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"

namespace lockstep::nn {

template <class T>
const Kernel& gru_kernel(GruForm form, int stage) {
  static const Kernel after =
      kernel(nn_kernel_name<T>("gru.reset_after"),
             [](At<2> at, Grid<T, 2> in, Grid<T, 2> product, Grid<T, 1> bias, Grid<T, 2> before,
                Out<T, 2> gates, Out<T, 2> recurrent, Out<T, 2> state) {
               const Val<i32> b = at.y, j = at.x, units = at.extent(0);
               const Val<T> z = sigmoid(in(b, j) + (product(b, j) + bias[j]));
               const Val<T> r = sigmoid(in(b, j + units) + (product(b, j + units) + bias[j + units]));
               const Val<T> u = product(b, j + 2 * units) + bias[j + 2 * units];
               const Val<T> n = tanh(fma(r, u, in(b, j + 2 * units)));
               gates(b, j) = z;
               gates(b, j + units) = r;
               gates(b, j + 2 * units) = n;
               recurrent[at] = u;
               state[at] = fma(z, before[at] - n, n);
             });
  static const Kernel reset = kernel(
      nn_kernel_name<T>("gru.reset_before.gates"),
      [](At<2> at, Grid<T, 2> in, Grid<T, 2> product, Grid<T, 2> before, Out<T, 2> gates, Out<T, 2> kept) {
        const Val<i32> b = at.y, j = at.x, units = at.extent(0);
        const Val<T> r = sigmoid(in(b, j + units) + product(b, j + units));
        gates(b, j) = sigmoid(in(b, j) + product(b, j));
        gates(b, j + units) = r;
        kept[at] = r * before[at];
      });
  static const Kernel state = kernel(
      nn_kernel_name<T>("gru.reset_before.state"),
      [](At<2> at, Grid<T, 2> in, Grid<T, 2> product, Grid<T, 2> before, InOut<T, 2> gates, Out<T, 2> to) {
        const Val<i32> b = at.y, j = at.x, units = at.extent(0);
        const Val<T> n = tanh(in(b, j + 2 * units) + product[at]);
        gates(b, j + 2 * units) = n;
        to[at] = fma(Val<T>(gates(b, j)), n - before[at], before[at]);
      });
  return form == GruForm::reset_after ? after : stage == 0 ? reset : state;
}
template const Kernel& gru_kernel<f32>(GruForm, int);
template const Kernel& gru_kernel<f64>(GruForm, int);

template <class T>
const Kernel& gru_adjoint_kernel(GruForm form, int stage) {
  static const Kernel after =
      kernel(nn_kernel_name<T>("gru.reset_after.adjoint"),
             [](At<2> at, Grid<T, 2> dy, Grid<T, 2> carry, Grid<T, 2> gates, Grid<T, 2> recurrent,
                Grid<T, 2> before, Out<T, 2> d_in, Out<T, 2> d_product, Out<T, 2> direct) {
               const Val<i32> b = at.y, j = at.x, units = at.extent(0);
               const Val<T> z = gates(b, j), r = gates(b, j + units), n = gates(b, j + 2 * units);
               const Val<T> d = dy[at] + carry[at];
               const Val<T> dn = (d * (T(1) - z)) * (T(1) - n * n);
               const Val<T> dz = (d * (before[at] - n)) * (z * (T(1) - z));
               const Val<T> dr = (dn * recurrent[at]) * (r * (T(1) - r));
               d_in(b, j) = dz;
               d_in(b, j + units) = dr;
               d_in(b, j + 2 * units) = dn;
               d_product(b, j) = dz;
               d_product(b, j + units) = dr;
               d_product(b, j + 2 * units) = dn * r;
               direct[at] = d * z;
             });
  static const Kernel state = kernel(nn_kernel_name<T>("gru.reset_before.state_adjoint"),
                                     [](At<2> at, Grid<T, 2> dy, Grid<T, 2> carry, Grid<T, 2> gates,
                                        Grid<T, 2> before, Out<T, 2> d_in, Out<T, 2> direct) {
                                       const Val<i32> b = at.y, j = at.x, units = at.extent(0);
                                       const Val<T> z = gates(b, j), n = gates(b, j + 2 * units),
                                                    d = dy[at] + carry[at];
                                       d_in(b, j) = (d * (n - before[at])) * (z * (T(1) - z));
                                       d_in(b, j + 2 * units) = (d * z) * (T(1) - n * n);
                                       direct[at] = d * (T(1) - z);
                                     });
  static const Kernel reset = kernel(nn_kernel_name<T>("gru.reset_before.gates_adjoint"),
                                     [](At<2> at, Grid<T, 2> d_kept, Grid<T, 2> gates, Grid<T, 2> before,
                                        Out<T, 2> d_reset, InOut<T, 2> direct) {
                                       const Val<i32> b = at.y, j = at.x, units = at.extent(0);
                                       const Val<T> r = gates(b, j + units), d = d_kept[at];
                                       d_reset[at] = (d * before[at]) * (r * (T(1) - r));
                                       direct[at] = fma(d, r, Val<T>(direct[at]));
                                     });
  return form == GruForm::reset_after ? after : stage == 0 ? state : reset;
}
template const Kernel& gru_adjoint_kernel<f32>(GruForm, int);
template const Kernel& gru_adjoint_kernel<f64>(GruForm, int);

}  // namespace lockstep::nn
