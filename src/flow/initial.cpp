// Initial vorticity. Formulas and sources: docs/flow.md.
#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <vector>

#include "flow/random.hpp"
#include "flow/reference.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {
namespace {

constexpr int64_t kNormModes = 128;  // modes along each axis that a random field's norm counts, on any grid

/// |w| of a mode at k in units of the largest wavelength's.
double random_amplitude(Initial which, double k) {
  if (which == Initial::noise) return std::exp(-std::pow(k / 6, 2));
  const double psi = 1 / std::sqrt(k * k * (1 + std::pow(k / 6, 4)));  // McWilliams 1984
  return k * k * psi;
}

/// Random phases, amplitudes by k alone. McWilliams: E = 1/2; noise: <w^2> = 1.
std::vector<double> random_field(const BoxGrid& grid, Initial which, uint64_t seed) {
  const Modes modes = modes_of(grid, Dealias::two_thirds);
  const double unit = 2 * kPi / std::max(grid.lx, grid.ly);
  const auto wavenumber = [&](int64_t ix, int64_t iy) {
    return std::hypot(2 * kPi / grid.lx * double(ix), 2 * kPi / grid.ly * double(iy));
  };
  double norm = 0;  // E or <w^2> / 2 of all modes, of both half planes
  for (int64_t iy = -kNormModes; iy <= kNormModes; ++iy)
    for (int64_t ix = 0; ix <= kNormModes; ++ix) {
      const double k = wavenumber(ix, iy), a = k > 0 ? random_amplitude(which, k / unit) : 0;
      const double share = ix > 0 ? 1 : 0.5;
      if (k > 0) norm += share * a * a / (which == Initial::mcwilliams ? k * k : 1);
    }
  const double scale = std::sqrt(0.5 / norm);
  reference::Spectrum w(size_t(modes.count()));
  for (int64_t row = 0; row < modes.rows(); ++row)
    for (int64_t ix = 0; ix < modes.columns(); ++ix) {
      const int64_t iy = modes.iy(row);
      if (ix == 0 && iy == 0) continue;
      const bool mirrored = ix == 0 && iy < 0;
      const uint32_t bits =
          philox(mode_counter<uint32_t>(ix, mirrored ? -iy : iy), 0xFFFFFFFFu, random_key(seed));
      const double angle = 2 * kPi * (double(bits) + 0.5) / 4294967296.0;
      w[size_t(row * modes.columns() + ix)] =
          std::polar(scale * random_amplitude(which, wavenumber(ix, iy) / unit), mirrored ? -angle : angle);
    }
  return reference::Transform(modes).inverse(w);
}

/// The function of scaled coordinates in [0, 2 pi)^2.
double shape(Initial which, double x, double y) {
  const auto gauss = [](double a, double b, double width) { return std::exp(-(a * a + b * b) / width); };
  switch (which) {
    case Initial::taylor_green: return 2 * std::sin(x) * std::sin(y);
    case Initial::vortices:
      return gauss(x - kPi, y - kPi + kPi / 4, 0.2) + gauss(x - kPi, y - kPi - kPi / 4, 0.2) -
             0.5 * gauss(x - kPi - kPi / 4, y - kPi - kPi / 4, 0.4);
    default: {  // shear: Bell, Colella and Glaz 1989
      const double width = kPi / 15, a = (y <= kPi ? y - kPi / 2 : 3 * kPi / 2 - y) / width;
      const double layer = 1 / (width * std::pow(std::cosh(a), 2));
      return 0.05 * std::cos(x) + (y <= kPi ? -layer : layer);
    }
  }
}

}  // namespace

Array initial_field(const BoxGrid& grid, Initial which, uint64_t seed) {
  if (grid.nx < 4 || grid.ny < 4)
    throw InputError(fmt::format("{} x {} points", grid.ny, grid.nx), "flow grid",
                     "4 or more along each axis");
  std::vector<double> w;
  if (which == Initial::mcwilliams || which == Initial::noise) {
    w = random_field(grid, which, seed);
  } else {
    double sum = 0;
    for (int64_t j = 0; j < grid.ny; ++j)
      for (int64_t i = 0; i < grid.nx; ++i) {
        w.push_back(
            shape(which, 2 * kPi * double(i) / double(grid.nx), 2 * kPi * double(j) / double(grid.ny)));
        sum += w.back();
      }
    for (double& value : w) value -= sum / double(grid.points());
  }
  return Array::of(std::move(w), {grid.ny, grid.nx});
}

}  // namespace lockstep::flow
