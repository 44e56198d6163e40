// A Fourier mode inside a kernel.
#pragma once

#include "flow/les/terms.hpp"
#include "flow/random.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::flow {

template <class T>
struct ComplexVal {
  Val<T> re, im;
};
template <class T>
ComplexVal<T> operator+(const ComplexVal<T>& a, const ComplexVal<T>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
ComplexVal<T> operator*(const std::type_identity_t<Val<T>>& a, const ComplexVal<T>& b) {
  return {a * b.re, a * b.im};
}
template <class T>
ComplexVal<T> operator*(const ComplexVal<T>& a, const ComplexVal<T>& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/// y + a x, by fma.
template <class T>
ComplexVal<T> plus(const ComplexVal<T>& y, const std::type_identity_t<Val<T>>& a, const ComplexVal<T>& x) {
  return {fma(a, x.re, y.re), fma(a, x.im, y.im)};
}
/// i a x.
template <class T>
ComplexVal<T> turned(const std::type_identity_t<Val<T>>& a, const ComplexVal<T>& x) {
  return {-(a * x.im), a * x.re};
}

template <class Buffer, class M, class R, class C>
auto load_complex(const Buffer& from, const M& m, const R& row, const C& column) {
  const auto w = from.template wide<2>(m, row, column, 0);
  return ComplexVal<typename Buffer::T>{w[0], w[1]};
}
template <class T, class Buffer, class M, class R, class C>
void store_complex(const Buffer& to, const ComplexVal<T>& value, const M& m, const R& row, const C& column) {
  to.template store_wide<2>(Wide<T, 2>{{value.re, value.im}}, m, row, column, 0);
}

/// An element of a state: row and column change places where it is `turned` (KernelForm).
template <class Buffer, class M, class R, class C>
auto load_state(bool turned, const Buffer& from, const M& m, const R& row, const C& column) {
  return turned ? load_complex(from, m, column, row) : load_complex(from, m, row, column);
}
template <class T, class Buffer, class M, class R, class C>
void store_state(bool turned, const Buffer& to, const ComplexVal<T>& value, const M& m, const R& row,
                 const C& column) {
  turned ? store_complex<T>(to, value, m, column, row) : store_complex<T>(to, value, m, row, column);
}

/// Parameters `unit_x`, `unit_y`: 2 pi / L.
template <class T>
struct Units {
  Val<T> x, y;
  explicit Units(Parameters& p) : x(p.scalar<T>("unit_x")), y(p.scalar<T>("unit_y")) {}
};

template <class T>
struct Mode {
  Val<i32> ix, iy;
  Val<T> kx, ky, k2, over_k2;  // over_k2: 0 for the mean
  /// The lane's mode in an array of kept modes. Parameters of Units, and `kept_y`.
  Mode(Parameters& p, const Val<i32>& column, const Val<i32>& row)
      : Mode(Units<T>(p), column, [&] {
          const Val<i32> kept = p.scalar<i32>("kept_y");
          return select(row > kept, row - kept * 2 - 1, row);
        }()) {}
  Mode(const Units<T>& unit, const Val<i32>& x, const Val<i32>& y)
      : ix(x),
        iy(y),
        kx(unit.x * cast<T>(ix)),
        ky(unit.y * cast<T>(iy)),
        k2(kx * kx + ky * ky),
        over_k2(select(is_mean(), Val<T>(T(0)), T(1) / k2)) {}
  Val<bool> is_mean() const { return ix == 0 && iy == 0; }

  ComplexVal<T> of(Quantity q, const ComplexVal<T>& w) const {
    switch (q) {
      case Quantity::u: return turned(ky * over_k2, w);
      case Quantity::v: return turned(-(kx * over_k2), w);
      case Quantity::s11: return -(kx * ky * over_k2) * w;
      case Quantity::s12: return T(0.5) * (kx * kx - ky * ky) * over_k2 * w;
      case Quantity::w: return w;
      case Quantity::wx: return turned(kx, w);
      case Quantity::wy: return turned(ky, w);
      case Quantity::laplacian: return -k2 * w;
    }
    return w;
  }
};

inline Val<u32> upper_half(const Val<u32>& a, const Val<u32>& b) {
  const Val<u32> al = a & 0xFFFFu, ah = a >> 16u, bl = b & 0xFFFFu, bh = b >> 16u;
  const Val<u32> low = al * bl, one = ah * bl + (low >> 16u), two = al * bh + (one & 0xFFFFu);
  return ah * bh + (one >> 16u) + (two >> 16u);
}

}  // namespace lockstep::flow
