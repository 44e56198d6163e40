#include "solve/evaluate/assembly/hessian.hpp"

#include <fmt/format.h>

#include "solve/evaluate/batch_kernels.hpp"

namespace lockstep::solve {

namespace {

/// Place of (row, column), row <= column, in an upper triangle of size `w`.
Val<i32> packed(int w, const Val<i32>& row, const Val<i32>& column) {
  return row * (w - 1) - (row * (row - 1) >> 1) + column;
}

/// Whether a + shift I has a Cholesky factor; `l` is scratch.
template <class T>
Val<bool> is_semidefinite(int w, const LocalArray<T>& a, const LocalArray<T>& l, const Val<T>& shift) {
  Var<bool> ok = Val<bool>(true);
  for_(0, w, [&](Val<i32> column) {
    for_(column, w, [&](Val<i32> row) {
      Var<T> sum = Val<T>(a[row * w + column]);
      if_(row == column, [&] { sum = sum + shift; });
      for_(0, column,
           [&](Val<i32> k) { sum = fma(-Val<T>(l[row * w + k]), Val<T>(l[column * w + k]), Val<T>(sum)); });
      if_(
          row == column,
          [&] {
            ok = ok && sum > T(0);
            l[row * w + column] = sqrt(select(sum > T(0), Val<T>(sum), Val<T>(T(1))));
          },
          [&] { l[row * w + column] = sum / Val<T>(l[column * w + column]); });
    });
  });
  return ok;
}

/// One rotation that makes a[p][q] zero, also of the eigenvectors v, where it is larger than `least`.
template <class T>
void rotate(int w, const LocalArray<T>& a, const LocalArray<T>& v, const Val<i32>& p, const Val<i32>& q,
            const Val<T>& least, Var<bool>& rotated) {
  const Val<T> off = a[p * w + q];
  if_(abs(off) > least, [&] {
    rotated = Val<bool>(true);
    const Val<T> theta = (Val<T>(a[q * w + q]) - Val<T>(a[p * w + p])) / (T(2) * off);
    const Val<T> t =
        select(theta < T(0), Val<T>(T(-1)), Val<T>(T(1))) / (abs(theta) + sqrt(fma(theta, theta, T(1))));
    const Val<T> c = T(1) / sqrt(fma(t, t, T(1))), s = t * c;
    for_(0, w, [&](Val<i32> k) {
      const Val<T> x = a[k * w + p], y = a[k * w + q];
      a[k * w + p] = fma(c, x, -(s * y));
      a[k * w + q] = fma(s, x, c * y);
    });
    for_(0, w, [&](Val<i32> k) {
      const Val<T> x = a[p * w + k], y = a[q * w + k];
      a[p * w + k] = fma(c, x, -(s * y));
      a[q * w + k] = fma(s, x, c * y);
    });
    for_(0, w, [&](Val<i32> k) {
      const Val<T> x = v[k * w + p], y = v[k * w + q];
      v[k * w + p] = fma(c, x, -(s * y));
      v[k * w + q] = fma(s, x, c * y);
    });
  });
}

template <class T>
void project(int w, const LocalArray<T>& a) {
  const LocalArray<T> scratch(w * w);
  Var<T> trace = T(0);
  for_(0, w, [&](Val<i32> k) { trace = trace + abs(Val<T>(a[k * w + k])); });
  const T epsilon = sizeof(T) == 8 ? T(1e-14) : T(1e-7f);
  if_(!is_semidefinite<T>(w, a, scratch, trace * epsilon + std::numeric_limits<T>::min()), [&] {
    for_(0, w, [&](Val<i32> row) {
      for_(0, w, [&](Val<i32> column) {
        scratch[row * w + column] = select(row == column, Val<T>(T(1)), Val<T>(T(0)));
      });
    });
    const Val<T> least = trace * (std::numeric_limits<T>::epsilon() / T(w));
    for_(0, kMostJacobiSweeps, [&](Val<i32>) {
      Var<bool> rotated = Val<bool>(false);
      for_(0, w - 1, [&](Val<i32> p) {
        for_(p + 1, w, [&](Val<i32> q) { rotate<T>(w, a, scratch, p, q, least, rotated); });
      });
      break_if(!Val<bool>(rotated));
    });
    const LocalArray<T> values(w);
    for_(0, w, [&](Val<i32> k) {
      const Val<T> value = a[k * w + k];
      values[k] = select(value > T(0), value, Val<T>(T(0)));
    });
    for_(0, w, [&](Val<i32> row) {
      for_(row, w, [&](Val<i32> column) {
        Var<T> sum = T(0);
        for_(0, w, [&](Val<i32> k) {
          sum = fma(Val<T>(scratch[row * w + k]) * Val<T>(values[k]), Val<T>(scratch[column * w + k]),
                    Val<T>(sum));
        });
        a[row * w + column] = sum;
      });
    });
  });
}

template <class T>
void trace(const TermDerivatives& term, const Val<i32>& instance, Parameters& p) {
  const int w = term.columns();
  const auto hessian = p.read_write<T, 2>("hessian");
  const auto diagonal = p.write<T, 2>("diagonal");
  const LocalArray<T> a(w * w);
  for_(0, w, [&](Val<i32> row) {
    for_(row, w, [&](Val<i32> column) {
      const Val<T> v = hessian(packed(w, row, column), instance);
      a[row * w + column] = v;
      a[column * w + row] = v;
    });
  });
  project<T>(w, a);
  for_(0, w, [&](Val<i32> row) {
    for_(row, w,
         [&](Val<i32> column) { hessian(packed(w, row, column), instance) = Val<T>(a[row * w + column]); });
  });
  for (const TermDerivatives::SlotClass& c : term.classes())
    for (size_t rank = 0; rank < c.slots.size(); ++rank) {
      const int first = term.first_column()[size_t(c.slots[rank])];
      int part = 0;
      for (int row = 0; row < c.width; ++row)
        for (int column = row; column < (c.width <= kWidestInverse ? c.width : row + 1); ++column, ++part)
          diagonal(c.first_diagonal + part * int(c.slots.size()) + int(rank), instance) =
              Val<T>(a[(first + row) * w + first + column]);
    }
}

}  // namespace

void project_hessians(const Device& device, const std::shared_ptr<const TermDerivatives>& term,
                      const Buffer& hessian, const Buffer& diagonal) {
  const Storage real = hessian.storage();
  std::string shape;
  for (const int w : term->widths()) shape += fmt::format(".{}", w);
  const std::string name = fmt::format("solve.project.{}{}", lockstep::name(real), shape);
  const Kernel projection = cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      if (real == Storage::f64)
        trace<f64>(*term, at.x, p);
      else
        trace<f32>(*term, at.x, p);
    });
  });
  device.launch(projection, {hessian.shape()[1]},
                Arguments().set("hessian", hessian).set("diagonal", diagonal));
}

}  // namespace lockstep::solve
