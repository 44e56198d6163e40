#include "flow/codec/reference.hpp"

#include <algorithm>
#include <cmath>

#include "flow/random.hpp"
#include "flow/reference.hpp"

namespace lockstep::flow::reference {

namespace {

int64_t wrapped(int64_t i, int64_t n) { return (i % n + n) % n; }

/// w less its mean over a square of points; what lies outside counts as 0, or is periodic.
Field box_residual(const CodecOptions& o, std::span<const double> w) {
  const int64_t nx = o.grid.nx, ny = o.grid.ny, half = box_points(o) / 2, side = 2 * half + 1;
  const bool periodic = o.kind == CodecKind::v2;
  const auto value = [&](const Field& of, int64_t y, int64_t x) {
    if (periodic) return of[size_t(wrapped(y, ny) * nx + wrapped(x, nx))];
    return y < 0 || y >= ny || x < 0 || x >= nx ? 0.0 : of[size_t(y * nx + x)];
  };
  const Field field(w.begin(), w.end());
  Field sums(w.size()), r(w.size());
  for (int64_t y = 0; y < ny; ++y)
    for (int64_t x = 0; x < nx; ++x)
      for (int64_t d = -half; d <= half; ++d) sums[size_t(y * nx + x)] += value(field, y, x + d);
  for (int64_t y = 0; y < ny; ++y)
    for (int64_t x = 0; x < nx; ++x) {
      double sum = 0;
      for (int64_t d = -half; d <= half; ++d) sum += value(sums, y + d, x);
      r[size_t(y * nx + x)] = field[size_t(y * nx + x)] - sum / double(side * side);
    }
  return r;
}

/// Coefficients of all modes, divided by the number of points; at(iy, ix) of any sign.
struct Plane {
  int64_t ny, nx;
  std::vector<Complex> c;
  Complex& at(int64_t iy, int64_t ix) { return c[size_t(wrapped(iy, ny) * nx + wrapped(ix, nx))]; }
};

Plane transformed(const BoxGrid& grid, std::span<const double> w) {
  Plane p{grid.ny, grid.nx, {}};
  for (const double v : w) p.c.emplace_back(v, 0.0);
  fft2(p.c, grid.ny, grid.nx, -1);
  for (Complex& c : p.c) c /= double(grid.points());
  return p;
}

Field real_field(Plane p) {
  fft2(p.c, p.ny, p.nx, 1);
  Field w;
  for (const Complex& c : p.c) w.push_back(c.real());
  return w;
}

/// f(mode, band) for the modes of the full plane that belong to a band.
template <class F>
void each_band_mode(const CodecPlan& plan, F f) {
  const CodecOptions& o = plan.options;
  const int64_t ny = o.grid.ny, nx = o.grid.nx;
  std::vector<bool> anchors(size_t(ny * nx), false);
  for (const int32_t a : plan.anchors) anchors[size_t(a)] = true;
  for (int64_t row = 0; row < ny; ++row)
    for (int64_t column = 0; column < nx; ++column) {
      const int64_t iy = row <= (ny - 1) / 2 ? row : row - ny,
                    ix = column <= (nx - 1) / 2 ? column : column - nx;
      const double k = plane_wavenumber(o.grid, iy, ix) * (1 - 1e-12);
      int band = 0;
      if (o.kind == CodecKind::classic) {
        const bool anchor = anchors[size_t(row * nx + column)];
        band = k <= o.low || anchor ? 0 : k <= o.middle ? 1 : 2;
      } else if (k > o.cut || 2 * row == ny || 2 * column == nx) {
        band = 1;
        for (double edge = 2 * o.cut; k > edge; edge *= 2) ++band;
      }
      if (band > 0) f(PlaneMode{iy, ix}, size_t(band - 1));
    }
}

Field noise_field(const CodecPlan& plan, const std::vector<double>& energies,
                  const std::vector<double>& members, int only, int64_t number) {
  const BoxGrid& g = plan.options.grid;
  Plane p{g.ny, g.nx, std::vector<Complex>(size_t(g.points()))};
  each_band_mode(plan, [&](const PlaneMode& mode, size_t band) {
    if (only >= 0 && band != size_t(only)) return;
    const uint32_t counter =
        mode_counter<uint32_t>(uint32_t(wrapped(mode.ix, g.nx)), uint32_t(wrapped(mode.iy, g.ny)));
    const uint32_t bits = philox(counter, uint32_t(number), random_key(plan.options.seed));
    const double angle = 2 * kPi * double(bits >> 8) / 16777216.0;
    p.at(mode.iy, mode.ix) = std::polar(std::sqrt(energies[band] / members[band]), angle);
  });
  return real_field(std::move(p));
}

void add_masked(Field& w, const Field& r, const std::vector<int>& mask, double energy) {
  double mean = 0;
  for (size_t k = 0; k < w.size(); ++k) mean += mask[k] != 0 ? r[k] * r[k] / double(w.size()) : 0;
  if (mean == 0) return;
  for (size_t k = 0; k < w.size(); ++k)
    if (mask[k] != 0) w[k] += r[k] * std::sqrt(energy / mean);
}

}  // namespace

std::vector<int> ternary_mask(const CodecOptions& o, std::span<const double> w) {
  const int64_t nx = o.grid.nx, ny = o.grid.ny;
  const Field r = box_residual(o, w);
  double peak = 0;
  for (const double v : r) peak = std::max(peak, std::abs(v));
  std::vector<int> s(w.size(), 0), next(w.size());
  for (size_t k = 0; k < s.size() && peak > 0; ++k)
    s[k] = int(r[k] > o.threshold * peak) - int(r[k] < -o.threshold * peak);
  for (int sweep = 0; sweep < 8; ++sweep) {
    for (int64_t y = 0; y < ny; ++y)
      for (int64_t x = 0; x < nx; ++x) {
        int sum = 0;
        for (int64_t dy = -1; dy <= 1; ++dy)
          for (int64_t dx = -1; dx <= 1; ++dx)
            sum += s[size_t(wrapped(y + dy, ny) * nx + wrapped(x + dx, nx))];
        next[size_t(y * nx + x)] = (sum > 0) - (sum < 0);
      }
    if (next == s) break;
    s.swap(next);
  }
  return s;
}

std::vector<float> first_spectrum(const CodecOptions& o, std::span<const double> w) {
  Plane p =
      transformed(o.grid, o.kind == CodecKind::classic ? box_residual(o, w) : Field(w.begin(), w.end()));
  std::vector<float> half;
  for (int64_t row = 0; row < o.grid.ny; ++row)
    for (int64_t column = 0; column <= o.grid.nx / 2; ++column) {
      const Complex c = p.at(row, column) * double(o.grid.points());
      half.insert(half.end(), {float(c.real()), float(c.imag())});
    }
  return half;
}

std::vector<double> encode(const CodecPlan& plan, std::span<const double> w) {
  const CodecOptions& o = plan.options;
  const CodecLayout l = codec_layout(plan);
  Plane field = transformed(o.grid, w);
  std::vector<double> z, energy(size_t(l.bands), 0.0), count(size_t(l.bands), 0.0);
  if (o.kind == CodecKind::v2) {
    each_band_mode(plan, [&](const PlaneMode& m, size_t b) { energy[b] += std::norm(field.at(m.iy, m.ix)); });
    for (const PlaneMode& m : l.modes) {
      const Complex c = field.at(m.iy, m.ix);
      z.push_back(c.real());
      if (z.size() > 1) z.push_back(c.imag());
    }
    for (const double e : energy) z.push_back(std::sqrt(e));
    for (size_t j = 0; j < z.size(); ++j) z[j] /= double(plan.scales[j]);
    return z;
  }
  for (const PlaneMode& m : l.modes) z.push_back(field.at(m.iy, m.ix).real());
  for (const PlaneMode& m : l.modes) z.push_back(field.at(m.iy, m.ix).imag());
  Plane residual = transformed(o.grid, box_residual(o, w));
  each_band_mode(plan, [&](const PlaneMode& m, size_t b) {
    energy[b] += std::norm(residual.at(m.iy, m.ix));
    count[b] += 1;
  });
  double support = 0;
  for (const int s : ternary_mask(o, w)) support += s != 0 ? 1 / double(w.size()) : 0;
  z.push_back(support);
  for (size_t b = 0; b < 2; ++b) z.push_back(count[b] > 0 ? energy[b] / count[b] : 0);
  z.push_back(double(plan.anchors.size()));
  for (const int32_t a : plan.anchors) z.push_back(residual.at(a / l.nx, a % l.nx).real());
  for (const int32_t a : plan.anchors) z.push_back(residual.at(a / l.nx, a % l.nx).imag());
  return z;
}

std::vector<double> decode(const CodecPlan& plan, std::span<const double> z, Decoder decoder,
                           int64_t number) {
  const CodecOptions& o = plan.options;
  const CodecLayout l = codec_layout(plan);
  Plane p{l.ny, l.nx, std::vector<Complex>(size_t(l.nx * l.ny))};
  const size_t modes = l.modes.size();
  for (size_t m = 0; m < modes; ++m) {
    const PlaneMode& mode = l.modes[m];
    if (o.kind == CodecKind::classic) {
      p.at(mode.iy, mode.ix) = {z[m], z[modes + m]};
      continue;
    }
    const Complex c = m == 0 ? Complex(z[0] * double(plan.scales[0]), 0.0)
                             : Complex(z[2 * m - 1] * double(plan.scales[2 * m - 1]),
                                       z[2 * m] * double(plan.scales[2 * m]));
    p.at(-mode.iy, -mode.ix) = std::conj(c);
    p.at(mode.iy, mode.ix) = c;
  }
  const size_t begin = size_t(l.extras) + 4, anchors = plan.anchors.size();
  if (o.kind == CodecKind::classic && o.anchors == Anchors::used)
    for (size_t a = 0; a < anchors; ++a)
      p.at(plan.anchors[a] / l.nx, plan.anchors[a] % l.nx) = {z[begin + a], z[begin + anchors + a]};
  Field w = real_field(std::move(p));
  if (decoder == Decoder::mean || l.bands == 0) return w;
  const std::vector<int> mask = ternary_mask(o, w);
  std::vector<double> energies, members(size_t(l.bands), 0.0);
  each_band_mode(plan, [&](const PlaneMode&, size_t b) { members[b] += 1; });
  for (size_t b = 0; b < size_t(l.bands); ++b) {
    const double v = std::max(0.0, z[size_t(l.extras) + b + (o.kind == CodecKind::classic ? 1 : 0)]);
    energies.push_back(o.kind == CodecKind::classic
                           ? v * members[b]
                           : std::pow(v * double(plan.scales[size_t(l.extras) + b]), 2));
  }
  if (o.kind == CodecKind::classic) {
    Field sum = w;
    for (int b = 0; b < 2; ++b)
      add_masked(sum, noise_field(plan, energies, members, b, number), mask, energies[size_t(b)]);
    return sum;
  }
  double all = 0;
  for (const double e : energies) all += e;
  add_masked(w, noise_field(plan, energies, members, -1, number), mask, all);
  return w;
}

}  // namespace lockstep::flow::reference
