// The solver in plain C++, f64, one thread, without the engine: the oracle of the kernels, itself held to
// published solutions and theory by tests/flow. Transforms of its own, any length.
#pragma once

#include <complex>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "flow/closures.hpp"
#include "flow/modes.hpp"

namespace lockstep::flow::reference {

using Complex = std::complex<double>;
using Field = std::vector<double>;
/// Coefficients of the kept modes, as Modes orders them: w(x) = sum of c exp(i k . x) over both half planes.
using Spectrum = std::vector<Complex>;

/// A product without the standard's care for infinities.
inline Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// In place, both axes: sum of a exp(sign 2 pi i …), not scaled.
void fft2(std::vector<Complex>& a, int64_t ny, int64_t nx, int sign);

/// Fields and spectra on the points of a Modes.
class Transform {
 public:
  explicit Transform(const Modes& modes) : modes_(modes) {}
  Field inverse(const Spectrum& spectrum) const;
  Spectrum forward(const Field& field) const;
  /// Two real fields as one complex transform.
  void inverse(const Spectrum& a, const Spectrum& b, Field& to_a, Field& to_b) const;
  void forward(const Field& a, const Field& b, Spectrum& to_a, Spectrum& to_b) const;
  const Modes& modes() const { return modes_; }

 private:
  Modes modes_;
};

struct Spectra {
  std::vector<double> energy, enstrophy;            // of the ring |k| = j +- 1/2, in units of the smallest
  std::vector<double> energy_flux, enstrophy_flux;  // through |k| = j + 1/2, by advection
};

class Flow {
 public:
  Flow(const Model& model, const Stepping& stepping);
  void set_vorticity(std::span<const double> w);  // (ny, nx)
  Field vorticity() const;
  void set_spectrum(Spectrum w) { w_ = std::move(w); }
  const Spectrum& spectrum() const { return w_; }
  /// A source of vorticity at each time, in addition to the model's forcing.
  void set_source(std::function<Spectrum(double time)> source) { source_ = std::move(source); }

  /// Time derivative but for stochastic forcing.
  Spectrum right_hand_side(const Spectrum& w) const;
  void step();
  double time() const { return time_; }
  double dt() const { return dt_; }
  double courant() const;  // (max|u| / dx + max|v| / dy) dt
  Budget budget() const;
  Spectra spectra() const;
  /// C^p of the last evaluation of a dynamic closure, averaged.
  double dynamic_coefficient() const { return coefficient_; }

 private:
  struct Velocity {
    Field u, v;
  };
  Spectrum nonlinear(const Spectrum& w, Closure closure) const;
  Complex linear(double kx, double ky) const;
  Velocity velocity(const Spectrum& w) const;
  /// C^p at each point.
  Field dynamic_closure(const Spectrum& w, const Field& u, const Field& v, const Field& s11, const Field& s12,
                        const Field& rate) const;
  Field eddy_rate(const Spectrum& w, const Field& s11, const Field& s12, double test_width) const;
  template <class F>
  Spectrum each(F f) const;  // f(kx, ky, place) of all modes
  template <class F>
  Spectrum multiplied(const Spectrum& w, F factor) const;  // factor(kx, ky) times w
  Field local_mean(const Field& f) const;
  double viscous_step() const;  // dt times the eddy viscosity, at most
  void random_kick(Spectrum& w) const;

  Model model_;
  Stepping stepping_;
  Modes modes_;
  Transform transform_;
  Spectrum w_;
  std::function<Spectrum(double)> source_;
  std::deque<Spectrum> history_;  // ab3: derivatives before, latest first
  double time_ = 0, dt_ = 0, width_ = 0;
  int64_t steps_ = 0;
  mutable double coefficient_ = 0, largest_viscosity_ = 0;
};

}  // namespace lockstep::flow::reference
