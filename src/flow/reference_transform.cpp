#include <cmath>
#include <numbers>

#include "flow/reference.hpp"

namespace lockstep::flow::reference {
namespace {

int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

/// Stockham's ordering: transforms of length n whose elements lie `stride` apart, `stride` of them side by
/// side. The result ends in `a`.
void fft_lines(Complex* a, Complex* scratch, int64_t n, int64_t stride, int sign) {
  const auto root = [&](int64_t of, int64_t power) {
    return std::polar(1.0, sign * 2 * std::numbers::pi * double(power % of) / double(of));
  };
  Complex *from = a, *to = scratch;
  std::vector<Complex> turned;
  int64_t s = stride;
  for (int64_t length = n; length > 1;) {
    const int64_t p = smallest_factor(length), m = length / p;
    for (int64_t k = 0; k < m; ++k)
      for (int64_t r = 0; r < p; ++r) {
        turned.clear();
        for (int64_t j = 0; j < p; ++j) turned.push_back(times(root(p, j * r), root(length, k * r)));
        Complex* y = to + s * (p * k + r);
        const Complex* x = from + s * k;
        for (int64_t q = 0; q < s; ++q) {
          Complex sum = times(x[q], turned[0]);
          for (int64_t j = 1; j < p; ++j) sum += times(x[q + s * m * j], turned[size_t(j)]);
          y[q] = sum;
        }
      }
    std::swap(from, to);
    length = m;
    s *= p;
  }
  if (from != a) std::copy(from, from + n * stride, a);
}

void transpose(const std::vector<Complex>& a, std::vector<Complex>& b, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t i = 0; i < columns; ++i) b[size_t(i * rows + j)] = a[size_t(j * columns + i)];
}

}  // namespace

void fft2(std::vector<Complex>& a, int64_t ny, int64_t nx, int sign) {
  std::vector<Complex> b(a.size());
  fft_lines(a.data(), b.data(), ny, nx, sign);
  std::vector<Complex> turned(a.size());
  transpose(a, turned, ny, nx);
  fft_lines(turned.data(), b.data(), nx, ny, sign);
  transpose(turned, a, nx, ny);
}

void Transform::inverse(const Spectrum& a, const Spectrum& b, Field& to_a, Field& to_b) const {
  const int64_t nx = modes_.points_x, ny = modes_.points_y;
  std::vector<Complex> z(size_t(nx * ny));
  const Complex i(0, 1);
  for (int64_t row = 0; row < modes_.rows(); ++row)
    for (int64_t ix = 0; ix < modes_.columns(); ++ix) {
      const int64_t iy = modes_.iy(row), at = row * modes_.columns() + ix;
      const int64_t y = (iy + ny) % ny, mirrored_y = (ny - iy) % ny;
      z[size_t(y * nx + ix)] = a[size_t(at)] + times(i, b[size_t(at)]);
      if (ix > 0)
        z[size_t(mirrored_y * nx + nx - ix)] = std::conj(a[size_t(at)]) + times(i, std::conj(b[size_t(at)]));
    }
  fft2(z, ny, nx, +1);
  to_a.resize(z.size());
  to_b.resize(z.size());
  for (size_t k = 0; k < z.size(); ++k) {
    to_a[k] = z[k].real();
    to_b[k] = z[k].imag();
  }
}

void Transform::forward(const Field& a, const Field& b, Spectrum& to_a, Spectrum& to_b) const {
  const int64_t nx = modes_.points_x, ny = modes_.points_y;
  std::vector<Complex> z(size_t(nx * ny));
  for (size_t k = 0; k < z.size(); ++k) z[k] = {a[k], b[k]};
  fft2(z, ny, nx, -1);
  to_a.resize(size_t(modes_.count()));
  to_b.resize(size_t(modes_.count()));
  const double half = 0.5 / double(nx * ny);
  for (int64_t row = 0; row < modes_.rows(); ++row)
    for (int64_t ix = 0; ix < modes_.columns(); ++ix) {
      const int64_t iy = modes_.iy(row), at = row * modes_.columns() + ix;
      const Complex p = z[size_t((iy + ny) % ny * nx + ix)];
      const Complex m = std::conj(z[size_t((ny - iy) % ny * nx + (nx - ix) % nx)]);
      to_a[size_t(at)] = half * (p + m);
      to_b[size_t(at)] = times(Complex(0, -half), p - m);
    }
}

Field Transform::inverse(const Spectrum& spectrum) const {
  Field field, none;
  inverse(spectrum, Spectrum(spectrum.size()), field, none);
  return field;
}

Spectrum Transform::forward(const Field& field) const {
  Spectrum spectrum, none;
  forward(field, Field(field.size()), spectrum, none);
  return spectrum;
}

}  // namespace lockstep::flow::reference
