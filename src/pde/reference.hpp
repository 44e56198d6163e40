// The transport loss and its adjoint in plain C++, for float, double and std::complex<double>: boundary rules
// as ghost values going forward, and every tap sent back to the cells that its ghost is made of. Slow, and
// shares no rule with the kernels, which gather by the rows of the transposed operators.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <vector>

#include "lockstep/pde.hpp"
#include "pde/language/stencil.hpp"
#include "pde/reference_ghosts.hpp"

namespace lockstep::pde::reference {

template <class T>
using Array = std::vector<T>;

/// sigma and u at three levels; u has three components, x first.
template <class T>
struct State {
  std::array<Array<T>, 3> sigma;             // levels -1, 0, +1
  std::array<std::array<Array<T>, 3>, 3> u;  // [level][component]
};

template <class T>
struct Result {
  T loss_sigma{}, loss_u{};
  State<T> gradient;
};

/// Ghosts and their transposes along one axis of a box.
template <class T>
class Axis {
 public:
  Axis(const Mesh& mesh, int axis)
      : n_(mesh.cells[size_t(axis)]), order_(mesh.order), h_(mesh.spacing[size_t(axis)]) {
    stride_ = axis == 0 ? 1 : axis == 1 ? mesh.cells[0] : mesh.cells[0] * mesh.cells[1];
    static const std::vector<double> kWeights[] = {
        {1. / 2}, {2. / 3, -1. / 12}, {3. / 4, -3. / 20, 1. / 60}, {4. / 5, -1. / 5, 4. / 105, -1. / 280}};
    weights_ = kWeights[order_ / 2 - 1];
  }

  /// Central difference of `f` at every cell.
  Array<T> difference(const Array<T>& f, const Side& low, const Side& high) const {
    Array<T> out(f.size());
    lines(f.size(), [&](size_t base) {
      const auto at = [&](int64_t m) { return extended(f, base, m, low, high); };
      for (int64_t i = 0; i < n_; ++i) {
        T sum{};
        for (size_t k = 0; k < weights_.size(); ++k)
          sum += T(weights_[k]) * (at(i + int64_t(k) + 1) - at(i - int64_t(k) - 1));
        out[base + size_t(i * stride_)] = sum / T(h_);
      }
    });
    return out;
  }

  /// Adds the transpose applied to `g`: every tap of every row goes back to the cells that its ghost is made
  /// of.
  void add_transposed(const Array<T>& g, const Side& low, const Side& high, Array<T>& out) const {
    lines(g.size(), [&](size_t base) {
      for (int64_t i = 0; i < n_; ++i) {
        const T own = g[base + size_t(i * stride_)] / T(h_);
        for (size_t k = 0; k < weights_.size(); ++k) {
          scatter(out, base, i + int64_t(k) + 1, low, high, T(weights_[k]) * own);
          scatter(out, base, i - int64_t(k) - 1, low, high, -T(weights_[k]) * own);
        }
      }
    });
  }

 private:
  template <class F>
  void lines(size_t size, F f) const {
    for (size_t base = 0; base < size; ++base)
      if ((int64_t(base) / stride_) % n_ == 0) f(base);
  }
  T extended(const Array<T>& f, size_t base, int64_t m, const Side& low, const Side& high) const {
    if (m >= 0 && m < n_) return f[base + size_t(m * stride_)];
    const bool is_high = m >= n_;
    const Side& side = is_high ? high : low;
    const int64_t d = is_high ? m - n_ + 1 : -m;
    if (side.rule == Rule::periodic) return extended(f, base, ((m % n_) + n_) % n_, low, high);
    const Ghost ghost = reference::ghost(side.rule, d);
    T sum = T(ghost.value * side.value);
    for (const auto& [at, weight] : ghost.cells)
      sum += T(weight) * extended(f, base, is_high ? n_ - 1 - at : at, low, high);
    return sum;
  }
  void scatter(Array<T>& out, size_t base, int64_t m, const Side& low, const Side& high, T v) const {
    if (m >= 0 && m < n_) {
      out[base + size_t(m * stride_)] += v;
      return;
    }
    const bool is_high = m >= n_;
    const Side& side = is_high ? high : low;
    const int64_t d = is_high ? m - n_ + 1 : -m;
    if (side.rule == Rule::periodic) return scatter(out, base, ((m % n_) + n_) % n_, low, high, v);
    for (const auto& [at, weight] : reference::ghost(side.rule, d).cells)
      scatter(out, base, is_high ? n_ - 1 - at : at, low, high, T(weight) * v);
  }

  int64_t n_, stride_;
  int order_;
  double h_;
  std::vector<double> weights_;
};

/// Loss and all gradients in three dimensions (axes of one cell included).
template <class T>
Result<T> evaluate(const Mesh& mesh, const State<T>& s, const std::vector<T>& mask = {},
                   double weight_sigma = 1, double weight_u = 1) {
  const size_t count = size_t(mesh.count());
  const T kt = T(0.5 / mesh.dt);
  const auto side = [&](int component, int axis, int end) {
    return resolve_side(mesh.boundary.sides[size_t(axis)][size_t(end)], axis, component, component >= 0);
  };
  std::array<Axis<T>, 3> axes{Axis<T>(mesh, 0), Axis<T>(mesh, 1), Axis<T>(mesh, 2)};
  const Array<T>& sigma = s.sigma[1];
  const auto& u = s.u[1];
  std::array<Array<T>, 3> d_sigma;
  std::array<std::array<Array<T>, 3>, 3> d_u;  // [component][axis]
  for (int a = 0; a < 3; ++a) {
    d_sigma[size_t(a)] = axes[size_t(a)].difference(sigma, side(-1, a, 0), side(-1, a, 1));
    for (int c = 0; c < 3; ++c)
      d_u[size_t(c)][size_t(a)] = axes[size_t(a)].difference(u[size_t(c)], side(c, a, 0), side(c, a, 1));
  }
  Result<T> result;
  for (auto& level : result.gradient.sigma) level.assign(count, T{});
  for (auto& level : result.gradient.u)
    for (auto& component : level) component.assign(count, T{});
  Array<T> p(count), div(count);
  std::array<Array<T>, 3> q{Array<T>(count), Array<T>(count), Array<T>(count)};
  for (size_t i = 0; i < count; ++i) {
    const T m = mask.empty() ? T(1) : mask[i];
    T r = kt * (s.sigma[2][i] - s.sigma[0][i]);
    for (size_t a = 0; a < 3; ++a) {
      r += u[a][i] * d_sigma[a][i];
      div[i] += d_u[a][a][i];
    }
    r += sigma[i] * div[i];
    result.loss_sigma += m * r * r;
    p[i] = T(2 * weight_sigma / double(count)) * m * r;
    for (size_t c = 0; c < 3; ++c) {
      T ru = kt * (s.u[2][c][i] - s.u[0][c][i]);
      for (size_t a = 0; a < 3; ++a) ru += u[a][i] * d_u[c][a][i];
      result.loss_u += m * ru * ru;
      q[c][i] = T(2 * weight_u / double(count)) * m * ru;
    }
  }
  result.loss_sigma *= T(weight_sigma / double(count));
  result.loss_u *= T(weight_u / double(count));
  auto& g = result.gradient;
  for (size_t i = 0; i < count; ++i) {
    g.sigma[2][i] = kt * p[i];
    g.sigma[0][i] = -kt * p[i];
    g.sigma[1][i] = p[i] * div[i];
    for (size_t c = 0; c < 3; ++c) {
      g.u[2][c][i] = kt * q[c][i];
      g.u[0][c][i] = -kt * q[c][i];
      g.u[1][c][i] = p[i] * d_sigma[c][i];
      for (size_t b = 0; b < 3; ++b) g.u[1][c][i] += q[b][i] * d_u[b][c][i];
    }
  }
  Array<T> product(count);
  const auto back = [&](const Array<T>& a, const Array<T>& b, int axis, int component, Array<T>& out) {
    for (size_t i = 0; i < count; ++i) product[i] = a[i] * b[i];
    axes[size_t(axis)].add_transposed(product, side(component, axis, 0), side(component, axis, 1), out);
  };
  for (int a = 0; a < 3; ++a) {
    back(p, u[size_t(a)], a, -1, g.sigma[1]);
    back(p, sigma, a, a, g.u[1][size_t(a)]);
    for (int c = 0; c < 3; ++c) back(q[size_t(c)], u[size_t(a)], a, c, g.u[1][size_t(c)]);
  }
  return result;
}

}  // namespace lockstep::pde::reference
