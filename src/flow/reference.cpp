#include "flow/reference.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "flow/etd.hpp"
#include "flow/random.hpp"

namespace lockstep::flow::reference {
namespace {

/// The same modes on the points of the grid.
Modes on_grid(Modes modes, const BoxGrid& grid) {
  modes.points_x = grid.nx;
  modes.points_y = grid.ny;
  return modes;
}

Field product(const Field& a, const Field& b) {
  Field r(a.size());
  for (size_t k = 0; k < r.size(); ++k) r[k] = a[k] * b[k];
  return r;
}

double mean(const Field& a) { return std::accumulate(a.begin(), a.end(), 0.0) / double(a.size()); }

/// a + sum of factor times spectrum.
Spectrum combined(Spectrum a, std::initializer_list<std::pair<double, const Spectrum*>> terms) {
  for (const auto& [factor, b] : terms)
    for (size_t k = 0; k < a.size(); ++k) a[k] += factor * (*b)[k];
  return a;
}

}  // namespace

Flow::Flow(const Model& model, const Stepping& stepping)
    : model_(model),
      stepping_(stepping),
      modes_(modes_of(model)),
      transform_(modes_),
      w_(size_t(modes_.count())),
      dt_(stepping.dt),
      width_(std::sqrt(model.grid.dx() * model.grid.dy())) {}

template <class F>
Spectrum Flow::each(F f) const {
  Spectrum result(size_t(modes_.count()));
  for (int64_t row = 0; row < modes_.rows(); ++row)
    for (int64_t ix = 0; ix < modes_.columns(); ++ix) {
      const double kx = 2 * std::numbers::pi / model_.grid.lx * double(ix);
      const double ky = 2 * std::numbers::pi / model_.grid.ly * double(modes_.iy(row));
      const auto at = size_t(row * modes_.columns() + ix);
      result[at] = f(kx, ky, at);
    }
  return result;
}
template <class F>
Spectrum Flow::multiplied(const Spectrum& w, F factor) const {
  return each([&](double kx, double ky, size_t at) { return times(Complex(factor(kx, ky)), w[at]); });
}

void Flow::set_vorticity(std::span<const double> w) {
  w_ = Transform(on_grid(modes_, model_.grid)).forward(Field(w.begin(), w.end()));
  w_[0] = 0;
  history_.clear();
}
Field Flow::vorticity() const { return Transform(on_grid(modes_, model_.grid)).inverse(w_); }

Complex Flow::linear(double kx, double ky) const {
  const double k2 = kx * kx + ky * ky;
  if (k2 == 0) return 0;
  const double damping = model_.viscosity * k2 + model_.drag +
                         model_.hyper_viscosity * std::pow(k2, model_.hyper_power) +
                         model_.hypo_viscosity * std::pow(k2, -model_.hypo_power);
  return {-damping, model_.beta * kx / k2};
}

Flow::Velocity Flow::velocity(const Spectrum& w) const {
  const auto per_k2 = [](double kx, double ky, double k) {
    return kx == 0 && ky == 0 ? 0 : k / (kx * kx + ky * ky);
  };
  Velocity r;
  transform_.inverse(multiplied(w, [&](double kx, double ky) { return Complex(0, per_k2(kx, ky, ky)); }),
                     multiplied(w, [&](double kx, double ky) { return Complex(0, -per_k2(kx, ky, kx)); }),
                     r.u, r.v);
  return r;
}

Field Flow::eddy_rate(const Spectrum& w, const Field& s11, const Field& s12, double test_width) const {
  Field rate(s11.size());
  const Rate kind = row_of(model_.closure).rate;
  if (kind == Rate::strain) {
    for (size_t k = 0; k < rate.size(); ++k) rate[k] = 2 * std::sqrt(s11[k] * s11[k] + s12[k] * s12[k]);
    return rate;
  }
  const auto filter = [&](double kx, double ky) {
    return std::exp(-(kx * kx + ky * ky) * test_width * test_width / 24);
  };
  Field wx, wy;
  transform_.inverse(multiplied(w, [&](double kx, double ky) { return Complex(0, kx * filter(kx, ky)); }),
                     multiplied(w, [&](double kx, double ky) { return Complex(0, ky * filter(kx, ky)); }), wx,
                     wy);
  for (size_t k = 0; k < rate.size(); ++k) rate[k] = std::sqrt(wx[k] * wx[k] + wy[k] * wy[k]);
  return rate;
}

// Three points along each axis whose weights are not negative and whose second moment is that of a box of twice the
// filter's width, width^2 / 3, where that fits between them.
Field Flow::local_mean(const Field& f) const {
  const int64_t nx = modes_.points_x, ny = modes_.points_y;
  const auto outer = [&](double length, int64_t n) {
    const double spacing = length / double(n);
    return std::min(width_ * width_ / (3 * spacing * spacing) / 2, 0.5);
  };
  const double ax = outer(model_.grid.lx, nx), ay = outer(model_.grid.ly, ny);
  Field r(f.size());
  for (int64_t y = 0; y < ny; ++y)
    for (int64_t x = 0; x < nx; ++x)
      for (int64_t dy = -1; dy <= 1; ++dy)
        for (int64_t dx = -1; dx <= 1; ++dx)
          r[size_t(y * nx + x)] += (dx == 0 ? 1 - 2 * ax : ax) * (dy == 0 ? 1 - 2 * ay : ay) *
                                   f[size_t((y + dy + ny) % ny * nx + (x + dx + nx) % nx)];
  return r;
}

// Germano's identity for the flux of vorticity (that of momentum feeds energy back in two dimensions), with a
// Gaussian test filter of twice the width: filtered(u w) - filtered(u) filtered(w) = c M, least squares.
Field Flow::dynamic_closure(const Spectrum& w, const Field& u, const Field& v, const Field& s11,
                            const Field& s12, const Field& rate) const {
  const double test = 2 * width_;
  const int p = width_power(model_.closure);
  const auto filter = [&](double kx, double ky) { return std::exp(-(kx * kx + ky * ky) * test * test / 24); };
  const auto filtered = [&](const Field& a, const Field& b, Field& to_a, Field& to_b) {
    Spectrum fa, fb;
    transform_.forward(a, b, fa, fb);
    transform_.inverse(multiplied(fa, filter), multiplied(fb, filter), to_a, to_b);
  };
  const Field own = transform_.inverse(w);
  Field wx, wy;
  transform_.inverse(multiplied(w, [](double kx, double) { return Complex(0, kx); }),
                     multiplied(w, [](double, double ky) { return Complex(0, ky); }), wx, wy);
  Field fu, fv, f11, f12, fx, fy, fuw, fvw, frx, fry;
  filtered(u, v, fu, fv);
  filtered(s11, s12, f11, f12);
  filtered(wx, wy, fx, fy);
  filtered(product(u, own), product(v, own), fuw, fvw);
  filtered(product(rate, wx), product(rate, wy), frx, fry);
  const Field fw = transform_.inverse(multiplied(w, filter));
  const Field test_rate = eddy_rate(w, f11, f12, test);
  Field lm(u.size()), mm(u.size());
  for (size_t k = 0; k < u.size(); ++k) {
    const double mx = std::pow(width_, p) * frx[k] - std::pow(test, p) * test_rate[k] * fx[k];
    const double my = std::pow(width_, p) * fry[k] - std::pow(test, p) * test_rate[k] * fy[k];
    lm[k] = (fuw[k] - fu[k] * fw[k]) * mx + (fvw[k] - fv[k] * fw[k]) * my;
    mm[k] = mx * mx + my * my;
  }
  Field c(u.size());
  if (model_.averaging == Averaging::global) {
    const double below = mean(mm);
    std::fill(c.begin(), c.end(), below > 0 ? std::max(0.0, mean(lm) / below) : 0.0);
  } else {
    const Field above = local_mean(lm), below = local_mean(mm);
    for (size_t k = 0; k < c.size(); ++k)
      c[k] = below[k] > 0 ? std::clamp(above[k] / below[k], 0.0, 1.0) : 0.0;
  }
  coefficient_ = mean(c);
  return c;
}

Spectrum Flow::nonlinear(const Spectrum& w, Closure closure) const {
  const auto [u, v] = velocity(w);
  Field p(u.size()), q(u.size()), r;
  const bool flux = model_.advection == Advection::flux;
  if (!flux)
    for (size_t k = 0; k < u.size(); ++k) {
      p[k] = u[k] * v[k];
      q[k] = u[k] * u[k] - v[k] * v[k];
    }
  if (closure != Closure::none) {
    const auto over_k2 = [](double kx, double ky) {
      return kx == 0 && ky == 0 ? 0 : 1 / (kx * kx + ky * ky);
    };
    Field s11, s12;
    transform_.inverse(
        multiplied(w, [&](double kx, double ky) { return -kx * ky * over_k2(kx, ky); }),
        multiplied(w, [&](double kx, double ky) { return 0.5 * (kx * kx - ky * ky) * over_k2(kx, ky); }), s11,
        s12);
    const Field rate = eddy_rate(w, s11, s12, 0);
    Field nu_t(u.size(), std::pow(constant_of(model_), width_power(closure)));
    if (is_dynamic(closure)) nu_t = dynamic_closure(w, u, v, s11, s12, rate);
    for (size_t k = 0; k < u.size(); ++k) nu_t[k] *= std::pow(width_, width_power(closure)) * rate[k];
    largest_viscosity_ = *std::max_element(nu_t.begin(), nu_t.end());
    if (model_.form == ClosureForm::divergence) {
      for (size_t k = 0; k < u.size(); ++k) {
        p[k] -= 2 * nu_t[k] * s12[k];
        q[k] -= 4 * nu_t[k] * s11[k];
      }
    } else {
      r = product(
          nu_t, transform_.inverse(multiplied(w, [](double kx, double ky) { return -(kx * kx + ky * ky); })));
    }
  }
  Spectrum fp, fq, fr;
  transform_.forward(p, q, fp, fq);
  Spectrum n =
      each([&](double kx, double ky, size_t at) { return (kx * kx - ky * ky) * fp[at] - kx * ky * fq[at]; });
  if (!r.empty()) {
    fr = transform_.forward(r);
    n = combined(n, {{1, &fr}});
  }
  if (flux) {
    const Field field = transform_.inverse(w);
    transform_.forward(product(u, field), product(v, field), fp, fq);
    const Spectrum advected = each([&](double kx, double ky, size_t at) {
      return times(Complex(0, -kx), fp[at]) + times(Complex(0, -ky), fq[at]);
    });
    n = combined(n, {{1, &advected}});
  }
  if (model_.forcing.kind == ForcingKind::kolmogorov) {
    const auto mode = int64_t(std::llround(model_.forcing.wavenumber));
    const double k = 2 * std::numbers::pi / model_.grid.ly * double(mode);
    if (mode <= modes_.kept_y)
      for (const int64_t iy : {mode, -mode})
        n[size_t(modes_.row_of(iy) * modes_.columns())] -= model_.forcing.amount * k / 2;
  }
  n[0] = 0;
  return n;
}

Spectrum Flow::right_hand_side(const Spectrum& w) const {
  const Spectrum l = multiplied(w, [&](double kx, double ky) { return linear(kx, ky); });
  return combined(nonlinear(w, model_.closure), {{1, &l}});
}

double Flow::courant() const {
  const auto [u, v] = velocity(w_);
  double most = 0;
  double a = 0, b = 0;
  for (size_t k = 0; k < u.size(); ++k) {
    a = std::max(a, std::abs(u[k]));
    b = std::max(b, std::abs(v[k]));
  }
  most = a / model_.grid.dx() + b / model_.grid.dy();
  return most * dt_;
}

void Flow::random_kick(Spectrum& w) const {
  const Forcing& f = model_.forcing;
  const double unit = 2 * std::numbers::pi / std::max(model_.grid.lx, model_.grid.ly);
  const auto on_ring = [&](double kx, double ky) {
    return std::abs(std::hypot(kx, ky) / unit - f.wavenumber) <= 0.5;
  };
  double modes = 0;  // of both half planes
  each([&](double kx, double ky, size_t) {
    modes += on_ring(kx, ky) ? (kx > 0 ? 2 : 1) : 0;
    return Complex();
  });
  if (modes == 0) return;
  for (int64_t row = 0; row < modes_.rows(); ++row)
    for (int64_t ix = 0; ix < modes_.columns(); ++ix) {
      const double kx = 2 * std::numbers::pi / model_.grid.lx * double(ix);
      const double ky = 2 * std::numbers::pi / model_.grid.ly * double(modes_.iy(row));
      if (!on_ring(kx, ky)) continue;
      const int64_t iy = modes_.iy(row);
      const bool mirrored = ix == 0 && iy < 0;
      const uint32_t bits =
          philox(mode_counter<uint32_t>(ix, mirrored ? -iy : iy), uint32_t(steps_), random_key(f.seed));
      const double angle = 2 * std::numbers::pi * (double(bits >> 8) + 0.5) / 16777216.0;
      const double size = std::hypot(kx, ky) * std::sqrt(2 * f.amount * dt_ / modes);
      w[size_t(row * modes_.columns() + ix)] += std::polar(size, mirrored ? -angle : angle);
    }
}

namespace {

Spectrum pointwise(const Spectrum& a, const Spectrum& b) {
  Spectrum r(a.size());
  for (size_t k = 0; k < r.size(); ++k) r[k] = times(a[k], b[k]);
  return r;
}

}  // namespace

// dt nu k^2 of the largest kept mode is half of where the integrator becomes unstable on the negative real axis.
double Flow::viscous_step() const {
  double most = 0;
  each([&](double kx, double ky, size_t) {
    most = std::max(most, kx * kx + ky * ky);
    return Complex();
  });
  const std::map<Integrator, double> reaches = {{Integrator::rk2, 2.0},
                                                {Integrator::ssprk3, 2.51},
                                                {Integrator::rk4, 2.78},
                                                {Integrator::ab3, 6.0 / 11},
                                                {Integrator::etdrk4, 2.78}};
  return 0.5 * reaches.at(stepping_.integrator) / most;
}

void Flow::step() {
  if (stepping_.cfl > 0) {
    dt_ = 1;
    dt_ = std::min(stepping_.dt, stepping_.cfl / courant());
    if (is_dynamic(model_.closure) && model_.averaging == Averaging::local) {
      nonlinear(w_, model_.closure);
      dt_ = std::min(dt_, viscous_step() / largest_viscosity_);
    }
  }
  const double h = dt_;
  // Right-hand side and nonlinear part of a stage, whose time is `share` of the step from its start.
  const auto sourced = [&](Spectrum slope, double share) {
    if (!source_) return slope;
    const Spectrum source = source_(time_ + share * h);
    return combined(std::move(slope), {{1, &source}});
  };
  const auto f = [&](const Spectrum& w, double share) { return sourced(right_hand_side(w), share); };
  const auto n = [&](const Spectrum& w, double share) {
    return sourced(nonlinear(w, model_.closure), share);
  };
  const Spectrum start = w_;
  switch (stepping_.integrator) {
    case Integrator::rk2: {
      const Spectrum a = f(start, 0), b = f(combined(start, {{h, &a}}), 1);
      w_ = combined(start, {{h / 2, &a}, {h / 2, &b}});
      break;
    }
    case Integrator::ssprk3: {
      const Spectrum a = f(start, 0), b = f(combined(start, {{h, &a}}), 1);
      const Spectrum c = f(combined(start, {{h / 4, &a}, {h / 4, &b}}), 0.5);
      w_ = combined(start, {{h / 6, &a}, {h / 6, &b}, {2 * h / 3, &c}});
      break;
    }
    case Integrator::rk4: {
      const Spectrum a = f(start, 0), b = f(combined(start, {{h / 2, &a}}), 0.5);
      const Spectrum c = f(combined(start, {{h / 2, &b}}), 0.5), d = f(combined(start, {{h, &c}}), 1);
      w_ = combined(start, {{h / 6, &a}, {h / 3, &b}, {h / 3, &c}, {h / 6, &d}});
      break;
    }
    case Integrator::ab3: {
      const Spectrum a = f(start, 0);
      if (history_.empty())
        w_ = combined(start, {{h, &a}});
      else if (history_.size() == 1)
        w_ = combined(start, {{1.5 * h, &a}, {-0.5 * h, &history_[0]}});
      else
        w_ = combined(start, {{23 * h / 12, &a}, {-16 * h / 12, &history_[0]}, {5 * h / 12, &history_[1]}});
      history_.push_front(a);
      if (history_.size() > 2) history_.pop_back();
      break;
    }
    case Integrator::etdrk4: {
      const auto weight = [&](Complex EtdWeights::* part) {
        return each([&](double kx, double ky, size_t) { return etd_weights(linear(kx, ky) * h).*part; });
      };
      const Spectrum half = weight(&EtdWeights::half), whole = weight(&EtdWeights::whole),
                     stage = weight(&EtdWeights::stage);
      const auto staged = [&](const Spectrum& from, const Spectrum& slope) {
        const Spectrum turned = pointwise(stage, slope);
        return combined(pointwise(half, from), {{h, &turned}});
      };
      const Spectrum n0 = n(start, 0), a = staged(start, n0), na = n(a, 0.5), b = staged(start, na),
                     nb = n(b, 0.5);
      const Spectrum c = staged(a, combined(Spectrum(n0.size()), {{2, &nb}, {-1, &n0}})), nc = n(c, 1);
      const Spectrum first = pointwise(weight(&EtdWeights::first), n0),
                     middle = pointwise(weight(&EtdWeights::middle), combined(na, {{1, &nb}})),
                     last = pointwise(weight(&EtdWeights::last), nc);
      w_ = combined(pointwise(whole, start), {{h, &first}, {2 * h, &middle}, {h, &last}});
      break;
    }
  }
  if (model_.forcing.kind == ForcingKind::stochastic) random_kick(w_);
  if (model_.dealias == Dealias::filter)
    w_ = multiplied(w_, [&](double kx, double ky) {
      const double k = std::hypot(kx * model_.grid.dx(), ky * model_.grid.dy()) - 0.65 * std::numbers::pi;
      return k > 0 ? std::exp(-23.6 * k * k * k * k) : 1.0;
    });
  time_ += h;
  ++steps_;
}

Budget Flow::budget() const {
  Budget b;
  each([&](double kx, double ky, size_t at) {
    const double k2 = kx * kx + ky * ky, z = std::norm(w_[at]) * (kx > 0 ? 1 : 0.5);
    b.energy += k2 > 0 ? z / k2 : 0;
    b.enstrophy += z;
    b.palinstrophy += z * k2;
    return Complex();
  });
  return b;
}

Spectra Flow::spectra() const {
  const Spectrum n = [&] {
    Flow unforced = *this;
    unforced.model_.forcing.kind = ForcingKind::none;
    return unforced.nonlinear(w_, Closure::none);
  }();
  const double unit = 2 * std::numbers::pi / std::max(model_.grid.lx, model_.grid.ly);
  const auto ring = [&](double kx, double ky) { return size_t(std::hypot(kx, ky) / unit + 0.5); };
  size_t rings = 0;
  each([&](double kx, double ky, size_t) {
    rings = std::max(rings, ring(kx, ky) + 1);
    return Complex();
  });
  Spectra s{Field(rings), Field(rings), Field(rings), Field(rings)};
  each([&](double kx, double ky, size_t at) {
    const double k2 = kx * kx + ky * ky, share = kx > 0 ? 1 : 0.5;
    const size_t j = ring(kx, ky);
    const double z = share * std::norm(w_[at]);
    const double transfer = 2 * share * (std::conj(w_[at]) * n[at]).real();
    s.enstrophy[j] += z;
    s.enstrophy_flux[j] -= transfer;
    if (k2 > 0) {
      s.energy[j] += z / k2;
      s.energy_flux[j] -= transfer / k2;
    }
    return Complex();
  });
  std::partial_sum(s.energy_flux.begin(), s.energy_flux.end(), s.energy_flux.begin());
  std::partial_sum(s.enstrophy_flux.begin(), s.enstrophy_flux.end(), s.enstrophy_flux.begin());
  return s;
}

}  // namespace lockstep::flow::reference
