// From the products of a stage to the next state, mode by mode: the right-hand side, the integrators' stages, random
// kicks, the filter. Shared by the kernels over modes and by those that transform columns around it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "flow/les/kernels.hpp"
#include "flow/les/mode.hpp"

namespace lockstep::flow {

/// The parts of the right-hand side at a mode.
template <class T>
class RightHandSide {
 public:
  RightHandSide(Parameters& p, const KernelForm& form)
      : form_(form),
        viscosity_(p.scalar<T>("viscosity")),
        drag_(p.scalar<T>("drag")),
        beta_(optional(p, form.beta, "beta")),
        hyper_(optional(p, form.hyper, "hyper")),
        hypo_(optional(p, form.hypo, "hypo")),
        scale_(p.scalar<T>("scale")),
        force_(optional(p, form.kolmogorov, "kolmogorov")),
        force_row_(form.kolmogorov ? p.scalar<i32>("kolmogorov_mode") : Val<i32>(0)) {}

  /// Products and deterministic forcing; `of` gives the coefficient of a product, times the number of points.
  template <class Of>
  ComplexVal<T> nonlinear(const Mode<T>& mode, const Of& of) const {
    const auto product = [&](Product which) { return scale_ * of(which); };
    ComplexVal<T> n{T(0), T(0)};
    if (form_.terms.has(Product::stress_p)) {
      const Val<T> a = mode.kx * mode.kx - mode.ky * mode.ky, b = mode.kx * mode.ky;
      n = plus(a * product(Product::stress_p), -b, product(Product::stress_q));
    }
    if (form_.terms.has(Product::flux_x))
      n = n + turned(-mode.kx, product(Product::flux_x)) + turned(-mode.ky, product(Product::flux_y));
    if (form_.terms.has(Product::eddy)) n = n + product(Product::eddy);
    if (form_.kolmogorov) n.re = n.re + forcing(mode).re;
    const Val<bool> mean = mode.is_mean();
    return {select(mean, Val<T>(T(0)), n.re), select(mean, Val<T>(T(0)), n.im)};
  }
  /// The steady force's part of it.
  ComplexVal<T> forcing(const Mode<T>& mode) const {
    if (!form_.kolmogorov) return {T(0), T(0)};
    return {-select(mode.ix == 0 && abs(mode.iy) == force_row_, force_, Val<T>(T(0))), T(0)};
  }

  ComplexVal<T> linear(const Mode<T>& mode, const ComplexVal<T>& w) const {
    Val<T> damping = fma(viscosity_, mode.k2, drag_);
    if (form_.hyper) damping = fma(hyper_, powi(mode.k2, form_.hyper_power), damping);
    if (form_.hypo) damping = fma(hypo_, powi(mode.over_k2, form_.hypo_power), damping);
    const ComplexVal<T> damped = -damping * w;
    return form_.beta ? damped + turned(beta_ * mode.kx * mode.over_k2, w) : damped;
  }

 private:
  static Val<T> optional(Parameters& p, bool on, const char* name) {
    return on ? p.scalar<T>(name) : Val<T>(T(0));
  }
  const KernelForm& form_;
  Val<T> viscosity_, drag_, beta_, hyper_, hypo_, scale_, force_;
  Val<i32> force_row_;
};

/// Random numbers of the ring's modes, the same for every device: sqrt(dt) times the amplitude of the mode.
template <class T>
class RandomKick {
 public:
  RandomKick(Parameters& p, const Val<i32>& member)
      : over_unit_(p.scalar<T>("over_unit")),
        ring_(p.scalar<T>("ring")),
        kick_(p.scalar<T>("kick")),
        key_(p.read<u32, 1>("keys")[member]) {}
  ComplexVal<T> operator()(const Mode<T>& mode, const Val<T>& dt, const Val<i32>& step) const {
    const Val<T> k = sqrt(mode.k2), at = k * over_unit_;
    const Val<bool> mirrored = mode.ix == 0 && mode.iy < 0;
    const Val<u32> ix = cast<u32>(mode.ix), iy = bitcast<u32>(select(mirrored, -mode.iy, mode.iy));
    const Val<u32> bits =
        philox<Val<u32>>((iy << 16u) | (ix & 0xFFFFu), bitcast<u32>(step), key_, upper_half);
    const Val<T> angle = T(2 * kPi / 16777216.0) * (cast<T>(bits >> 8u) + T(0.5));
    const auto [sine, cosine] = sincos(select(mirrored, -angle, angle));
    const Val<T> size = select(abs(at - ring_) <= T(0.5), k * kick_ * sqrt(dt), Val<T>(T(0)));
    return {size * cosine, size * sine};
  }

 private:
  Val<T> over_unit_, ring_, kick_;
  Val<u32> key_;
};

/// exp(-23.6 (k d - 0.65 pi)^4) beyond.
template <class T>
class SpectralFilter {
 public:
  explicit SpectralFilter(Parameters& p) : dx_(p.scalar<T>("dx")), dy_(p.scalar<T>("dy")) {}
  Val<T> operator()(const Mode<T>& mode) const {
    const Val<T> x = mode.kx * dx_, y = mode.ky * dy_;
    const Val<T> beyond = sqrt(x * x + y * y) - T(0.65 * kPi);
    return select(beyond > T(0), exp(T(-23.6) * powi(beyond, 4)), Val<T>(T(1)));
  }

 private:
  Val<T> dx_, dy_;
};

/// Whether a stage may store `name`; true where nothing depends on it.
inline bool may_store(StageKind kind, std::string_view name) {
  if (name == (kind.last() ? "w" : "y")) return true;
  switch (kind.integrator) {
    case Integrator::rk2: return kind.stage == 0 && name == "one";
    case Integrator::ssprk3: return false;
    case Integrator::rk4: return kind.stage < 3 && name == "one";
    default: return true;
  }
}

/// Spectra of the state and of stages; a buffer becomes a parameter when it is first used, one that the stage does not
/// store by reads alone.
template <class T>
class States {
 public:
  States(Parameters& p, StageKind kind, bool turned) : parameters_(p), kind_(kind), turned_(turned) {}
  ComplexVal<T> load(const std::string& name, const Val<i32>& m, const Val<i32>& row, const Val<i32>& ix) {
    if (!may_store(kind_, name)) {
      if (!read_.contains(name)) read_.emplace(name, parameters_.read<T, 4>(name));
      return load_state(turned_, read_.at(name), m, row, ix);
    }
    const InOut<T, 4>& from = stored(name);
    if (turned_) return {from(m, ix, row, 0), from(m, ix, row, 1)};
    return {from(m, row, ix, 0), from(m, row, ix, 1)};
  }
  void store(const std::string& name, const ComplexVal<T>& value, const Val<i32>& m, const Val<i32>& row,
             const Val<i32>& ix) {
    store_state(turned_, stored(name), value, m, row, ix);
  }
  const Grid<T, 3>& weights() {
    if (!weights_) weights_ = parameters_.read<T, 3>("weights");
    return *weights_;
  }

 private:
  const InOut<T, 4>& stored(const std::string& name) {
    if (!stored_.contains(name)) stored_.emplace(name, parameters_.read_write<T, 4>(name));
    return stored_.at(name);
  }
  Parameters& parameters_;
  StageKind kind_;
  bool turned_;
  std::map<std::string, Grid<T, 4>> read_;
  std::map<std::string, InOut<T, 4>> stored_;
  std::optional<Grid<T, 3>> weights_;
};
/// Values of states that were loaded ahead of their use, by name.
template <class T>
using EarlyStates = std::map<std::string, ComplexVal<T>>;
/// Those of a member at a mode.
template <class T>
struct StateAt {
  States<T>& states;
  Val<i32> m, row, ix;
  const EarlyStates<T>* early = nullptr;
  ComplexVal<T> load(const char* name) const {
    if (early)
      if (const auto found = early->find(name); found != early->end()) return found->second;
    return states.load(name, m, row, ix);
  }
  void store(const char* name, const ComplexVal<T>& value) const { states.store(name, value, m, row, ix); }
  /// Part of the exponential integrator's weights.
  ComplexVal<T> weight(int part) const {
    return {states.weights()(row, ix, 2 * part), states.weights()(row, ix, 2 * part + 1)};
  }
};

/// Runge-Kutta stages: gives the next state. `f` is the right-hand side at the present one.
template <class T>
ComplexVal<T> runge_kutta(StageKind kind, const StateAt<T>& s, const ComplexVal<T>& w,
                          const ComplexVal<T>& present, const ComplexVal<T>& f, const Val<T>& h) {
  const auto staged = [&](const ComplexVal<T>& sum, const ComplexVal<T>& next) {
    s.store("one", sum);
    return next;
  };
  switch (kind.integrator) {
    case Integrator::rk2:
      return kind.stage == 0 ? staged(plus(w, T(0.5) * h, f), plus(w, h, f))
                             : plus(s.load("one"), T(0.5) * h, f);
    case Integrator::ssprk3:
      if (kind.stage == 0) return plus(w, h, f);
      if (kind.stage == 1) return plus(T(0.75) * w, T(0.25), plus(present, h, f));
      return plus(T(1.0 / 3) * w, T(2.0 / 3), plus(present, h, f));
    default:
      if (kind.stage == 0) return staged(plus(w, h * T(1.0 / 6), f), plus(w, T(0.5) * h, f));
      if (kind.stage == 1) return staged(plus(s.load("one"), h * T(1.0 / 3), f), plus(w, T(0.5) * h, f));
      if (kind.stage == 2) return staged(plus(s.load("one"), h * T(1.0 / 3), f), plus(w, h, f));
      return plus(s.load("one"), h * T(1.0 / 6), f);
  }
}

/// Adams-Bashforth of third order; Euler and second order for the first steps. `one`, `two`: derivatives
/// before.
template <class T>
ComplexVal<T> adams_bashforth(const StateAt<T>& s, const ComplexVal<T>& w, const ComplexVal<T>& f,
                              const Val<T>& h, const Val<i32>& step) {
  const Val<bool> first = step == 0, second = step == 1;
  const auto by_step = [&](double a, double b, double c) {
    return select(first, Val<T>(T(a)), select(second, Val<T>(T(b)), Val<T>(T(c)))) * h;
  };
  const ComplexVal<T> one = s.load("one"), two = s.load("two");
  ComplexVal<T> next = plus(w, by_step(1, 1.5, 23.0 / 12), f);
  next = plus(next, by_step(0, -0.5, -16.0 / 12), one);
  next = plus(next, by_step(0, 0, 5.0 / 12), two);
  s.store("two", one);
  s.store("one", f);
  return next;
}

/// Stages of ETDRK4. `weights` holds EtdWeights of each mode; `one` the first stage's state, `two` n0 and, in
/// `sum`, na + nb.
template <class T>
ComplexVal<T> exponential(StageKind kind, const StateAt<T>& s, const ComplexVal<T>& w, const ComplexVal<T>& n,
                          const Val<T>& h) {
  const auto weight = [&](int part) { return s.weight(part); };
  const auto staged = [&](const ComplexVal<T>& from, const ComplexVal<T>& slope) {
    return plus(weight(1) * from, h, weight(2) * slope);
  };
  if (kind.stage == 0) {
    const ComplexVal<T> a = staged(w, n);
    s.store("two", n);
    s.store("one", a);
    return a;
  }
  if (kind.stage == 1) {
    s.store("sum", n);
    return staged(w, n);
  }
  if (kind.stage == 2) {
    s.store("sum", s.load("sum") + n);
    return staged(s.load("one"), plus(T(2) * n, T(-1), s.load("two")));
  }
  ComplexVal<T> next = plus(weight(0) * w, h, weight(3) * s.load("two"));
  next = plus(next, T(2) * h, weight(4) * s.load("sum"));
  return plus(next, h, weight(5) * n);
}

/// A stage: parameters once a kernel, then mode by mode.
template <class T>
class StageUpdate {
 public:
  StageUpdate(Parameters& p, const KernelForm& form, StageKind kind, const Val<i32>& member)
      : form_(form),
        kind_(kind),
        member_(member),
        states_(p, kind, form.turned),
        rhs_(p, form),
        h_(p.read<T, 2>("clock")(member, kClockDt)),
        step_(form.stochastic || kind.integrator == Integrator::ab3
                  ? p.read<i32, 2>("status")(member, kStatusSteps)
                  : Val<i32>(0)) {
    if (kind.last() && form.stochastic) kick_.emplace(p, member);
    if (kind.last() && form.filter) filter_.emplace(p);
  }

  /// States that a stage of Runge and Kutta may ask for; loads that it does not need fall away.
  EarlyStates<T> load_early(const Val<i32>& row, const Val<i32>& ix) {
    if (kind_.integrator == Integrator::etdrk4 || kind_.integrator == Integrator::ab3) return {};
    const StateAt<T> s{states_, member_, row, ix};
    EarlyStates<T> early;
    for (const char* name : {"w", "y", "one"}) early.emplace(name, s.load(name));
    return early;
  }
  /// Stores the next state of a mode and gives it.
  template <class Of>
  ComplexVal<T> operator()(const Mode<T>& mode, const Val<i32>& row, const Of& product,
                           const EarlyStates<T>* early = nullptr) {
    const bool etd = kind_.integrator == Integrator::etdrk4;
    const StateAt<T> s{states_, member_, row, mode.ix, early};
    const ComplexVal<T> w = s.load("w"), present = kind_.stage == 0 || etd ? w : s.load("y");
    const ComplexVal<T> n = rhs_.nonlinear(mode, product);
    ComplexVal<T> next = w;
    if (etd)
      next = exponential<T>(kind_, s, w, n, h_);
    else if (kind_.integrator == Integrator::ab3)
      next = adams_bashforth<T>(s, w, n + rhs_.linear(mode, present), h_, step_);
    else
      next = runge_kutta<T>(kind_, s, w, present, n + rhs_.linear(mode, present), h_);
    if (kick_) next = next + (*kick_)(mode, h_, step_);
    if (filter_) next = (*filter_)(mode)*next;
    if (form_.adaptive) next = {select(h_ > T(0), next.re, w.re), select(h_ > T(0), next.im, w.im)};
    s.store(kind_.last() ? "w" : "y", next);
    return next;
  }

 private:
  const KernelForm& form_;
  StageKind kind_;
  Val<i32> member_;
  States<T> states_;
  RightHandSide<T> rhs_;
  Val<T> h_;
  Val<i32> step_;
  std::optional<RandomKick<T>> kick_;
  std::optional<SpectralFilter<T>> filter_;
};

}  // namespace lockstep::flow
