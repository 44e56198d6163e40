#include "flow/les/kernels.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>

#include "flow/les/mode.hpp"

namespace lockstep::flow {

int stages_of(Integrator integrator) {
  switch (integrator) {
    case Integrator::rk2: return 2;
    case Integrator::ssprk3: return 3;
    case Integrator::ab3: return 1;
    default: return 4;
  }
}
int StageKind::stages() const { return stages_of(integrator); }

namespace {

template <class T>
std::string kernel_name(const std::string& what) {
  return fmt::format("flow.{}.{}", what, name(detail::kType<T>));
}

std::string text(const KernelForm& form) {
  std::string t = fmt::format("{}{}", form.terms.flux ? "flux" : "stress",
                              form.terms.closure == Closure::none ? "" : ".");
  if (form.terms.closure != Closure::none)
    t += fmt::format("{}{}", name(form.terms.closure),
                     form.terms.form == ClosureForm::simple ? ".simple" : "");
  if (is_dynamic(form.terms.closure) && form.terms.averaging == Averaging::local) t += ".local";
  for (const auto& [on, word] : {std::pair{form.kolmogorov, ".kolmogorov"},
                                 {form.stochastic, ".stochastic"},
                                 {form.filter, ".filter"},
                                 {form.beta, ".beta"},
                                 {form.hyper, ".hyper"},
                                 {form.hypo, ".hypo"},
                                 {form.adaptive, ".adaptive"}})
    if (on) t += word;
  return t;
}

/// Writes the quantities of a state to `fields`.
template <class T>
void store_fields(const Terms& terms, const Out<T, 4>& fields, const Mode<T>& mode, const ComplexVal<T>& w,
                  const Val<i32>& members, const Val<i32>& m, const Val<i32>& row) {
  for (size_t f = 0; f < terms.fields.size(); ++f)
    store_complex<T>(fields, mode.of(terms.fields[f], w), members * int(f) + m, row, mode.ix);
}

/// The parts of the right-hand side at a mode.
template <class T>
class RightHandSide {
 public:
  RightHandSide(Parameters& p, const KernelForm& form, const Mode<T>& mode)
      : form_(form),
        mode_(mode),
        viscosity_(p.scalar<T>("viscosity")),
        drag_(p.scalar<T>("drag")),
        beta_(optional(p, form.beta, "beta")),
        hyper_(optional(p, form.hyper, "hyper")),
        hypo_(optional(p, form.hypo, "hypo")),
        scale_(p.scalar<T>("scale")),
        force_(optional(p, form.kolmogorov, "kolmogorov")),
        force_row_(form.kolmogorov ? p.scalar<i32>("kolmogorov_mode") : Val<i32>(0)) {}

  /// Products and deterministic forcing.
  ComplexVal<T> nonlinear(const Grid<T, 4>& products, const Val<i32>& members, const Val<i32>& m,
                          const Val<i32>& row) const {
    const auto product = [&](Product which) {
      return scale_ * load_complex(products, members * form_.terms.product(which) + m, row, mode_.ix);
    };
    ComplexVal<T> n{T(0), T(0)};
    if (form_.terms.has(Product::stress_p)) {
      const Val<T> a = mode_.kx * mode_.kx - mode_.ky * mode_.ky, b = mode_.kx * mode_.ky;
      n = plus(a * product(Product::stress_p), -b, product(Product::stress_q));
    }
    if (form_.terms.has(Product::flux_x))
      n = n + turned(-mode_.kx, product(Product::flux_x)) + turned(-mode_.ky, product(Product::flux_y));
    if (form_.terms.has(Product::eddy)) n = n + product(Product::eddy);
    if (form_.kolmogorov)
      n.re = n.re - select(mode_.ix == 0 && abs(mode_.iy) == force_row_, force_, Val<T>(T(0)));
    const Val<bool> mean = mode_.is_mean();
    return {select(mean, Val<T>(T(0)), n.re), select(mean, Val<T>(T(0)), n.im)};
  }

  ComplexVal<T> linear(const ComplexVal<T>& w) const {
    Val<T> damping = fma(viscosity_, mode_.k2, drag_);
    if (form_.hyper) damping = fma(hyper_, powi(mode_.k2, form_.hyper_power), damping);
    if (form_.hypo) damping = fma(hypo_, powi(mode_.over_k2, form_.hypo_power), damping);
    const ComplexVal<T> damped = -damping * w;
    return form_.beta ? damped + turned(beta_ * mode_.kx * mode_.over_k2, w) : damped;
  }

 private:
  static Val<T> optional(Parameters& p, bool on, const char* name) {
    return on ? p.scalar<T>(name) : Val<T>(T(0));
  }
  const KernelForm& form_;
  const Mode<T>& mode_;
  Val<T> viscosity_, drag_, beta_, hyper_, hypo_, scale_, force_;
  Val<i32> force_row_;
};

/// A random number of the ring's modes, the same for every device: sqrt(dt) times the amplitude of the mode.
template <class T>
ComplexVal<T> random_kick(Parameters& p, const Mode<T>& mode, const Val<T>& dt, const Val<i32>& step,
                          const Val<i32>& member) {
  const Val<T> k = sqrt(mode.k2), at = k * p.scalar<T>("over_unit");
  const Val<bool> mirrored = mode.ix == 0 && mode.iy < 0;
  const Val<u32> ix = cast<u32>(mode.ix), iy = bitcast<u32>(select(mirrored, -mode.iy, mode.iy));
  const Val<u32> bits = philox<Val<u32>>((iy << 16u) | (ix & 0xFFFFu), bitcast<u32>(step),
                                         p.read<u32, 1>("keys")[member], upper_half);
  const Val<T> angle = T(2 * kPi / 16777216.0) * (cast<T>(bits >> 8u) + T(0.5));
  const auto [sine, cosine] = sincos(select(mirrored, -angle, angle));
  const Val<T> size =
      select(abs(at - p.scalar<T>("ring")) <= T(0.5), k * p.scalar<T>("kick") * sqrt(dt), Val<T>(T(0)));
  return {size * cosine, size * sine};
}

/// exp(-23.6 (k d - 0.65 pi)^4) beyond.
template <class T>
Val<T> spectral_filter(Parameters& p, const Mode<T>& mode) {
  const Val<T> x = mode.kx * p.scalar<T>("dx"), y = mode.ky * p.scalar<T>("dy");
  const Val<T> beyond = sqrt(x * x + y * y) - T(0.65 * kPi);
  return select(beyond > T(0), exp(T(-23.6) * powi(beyond, 4)), Val<T>(T(1)));
}

/// State and scratch spectra at a member's mode; a buffer becomes a parameter when it is first used.
template <class T>
class States {
 public:
  States(Parameters& p, const Val<i32>& m, const Val<i32>& row, const Val<i32>& ix)
      : parameters_(p), m_(m), row_(row), ix_(ix) {}
  ComplexVal<T> load(const char* name) {
    const InOut<T, 4>& from = buffer(name);
    return {from(m_, row_, ix_, 0), from(m_, row_, ix_, 1)};
  }
  void store(const char* name, const ComplexVal<T>& value) {
    store_complex<T>(buffer(name), value, m_, row_, ix_);
  }
  /// Part of the exponential integrator's weights.
  ComplexVal<T> weight(int part) {
    if (!weights_) weights_ = parameters_.read<T, 3>("weights");
    return {(*weights_)(row_, ix_, 2 * part), (*weights_)(row_, ix_, 2 * part + 1)};
  }

 private:
  const InOut<T, 4>& buffer(const char* name) {
    const auto found = buffers_.find(name);
    if (found != buffers_.end()) return found->second;
    return buffers_.emplace(name, parameters_.read_write<T, 4>(name)).first->second;
  }
  Parameters& parameters_;
  Val<i32> m_, row_, ix_;
  std::map<std::string, InOut<T, 4>> buffers_;
  std::optional<Grid<T, 3>> weights_;
};

/// Runge-Kutta stages: gives the next state. `f` is the right-hand side at the present one.
template <class T>
ComplexVal<T> runge_kutta(StageKind kind, States<T>& s, const ComplexVal<T>& w, const ComplexVal<T>& present,
                          const ComplexVal<T>& f, const Val<T>& h) {
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
ComplexVal<T> adams_bashforth(States<T>& s, const ComplexVal<T>& w, const ComplexVal<T>& f, const Val<T>& h,
                              const Val<i32>& step) {
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
ComplexVal<T> exponential(StageKind kind, States<T>& s, const ComplexVal<T>& w, const ComplexVal<T>& n,
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

}  // namespace

template <class T>
Kernel LesKernels<T>::derive(const KernelForm& form) {
  return kernel(kernel_name<T>("derive." + text(form)), [&](At<3> at, Parameters& p) {
    const auto w = p.read<T, 4>("w");
    const auto fields = p.write<T, 4>("fields");
    const Mode<T> mode(p, at.x, at.y);
    const Val<i32> m = at.z, row = at.y;
    store_fields<T>(form.terms, fields, mode, load_complex(w, m, row, mode.ix), at.extent(2), m, row);
  });
}

template <class T>
Kernel LesKernels<T>::right_hand_side(const KernelForm& form) {
  return kernel(kernel_name<T>("rhs." + text(form)), [&](At<3> at, Parameters& p) {
    const auto w = p.read<T, 4>("w"), products = p.read<T, 4>("products");
    const auto out = p.write<T, 4>("out");
    const Mode<T> mode(p, at.x, at.y);
    const Val<i32> m = at.z, row = at.y;
    const RightHandSide<T> rhs(p, form, mode);
    store_complex<T>(
        out, rhs.nonlinear(products, at.extent(2), m, row) + rhs.linear(load_complex(w, m, row, mode.ix)), m,
        row, mode.ix);
  });
}

template <class T>
Kernel LesKernels<T>::advance(const KernelForm& form, StageKind kind) {
  const std::string what = fmt::format("advance.{}.{}.{}", name(kind.integrator), kind.stage + 1, text(form));
  return kernel(kernel_name<T>(what), [&](At<3> at, Parameters& p) {
    const bool etd = kind.integrator == Integrator::etdrk4;
    const auto products = p.read<T, 4>("products");
    const auto fields = p.write<T, 4>("fields");
    const Mode<T> mode(p, at.x, at.y);
    const Val<i32> m = at.z, row = at.y;
    States<T> s(p, m, row, mode.ix);
    const RightHandSide<T> rhs(p, form, mode);
    const Val<T> h = p.read<T, 2>("clock")(m, kClockDt);
    const bool counts = form.stochastic || kind.integrator == Integrator::ab3;
    const Val<i32> step = counts ? p.read<i32, 2>("status")(m, kStatusSteps) : Val<i32>(0);
    const ComplexVal<T> w = s.load("w"), present = kind.stage == 0 || etd ? w : s.load("y");
    const ComplexVal<T> n = rhs.nonlinear(products, at.extent(2), m, row);
    ComplexVal<T> next = w;
    if (etd)
      next = exponential<T>(kind, s, w, n, h);
    else if (kind.integrator == Integrator::ab3)
      next = adams_bashforth<T>(s, w, n + rhs.linear(present), h, step);
    else
      next = runge_kutta<T>(kind, s, w, present, n + rhs.linear(present), h);
    if (kind.last() && form.stochastic) next = next + random_kick<T>(p, mode, h, step, m);
    if (kind.last() && form.filter) next = spectral_filter<T>(p, mode) * next;
    if (form.adaptive) next = {select(h > T(0), next.re, w.re), select(h > T(0), next.im, w.im)};
    s.store(kind.last() ? "w" : "y", next);
    store_fields<T>(form.terms, fields, mode, next, at.extent(2), m, row);
  });
}

template <class T>
Kernel LesKernels<T>::products(const KernelForm& form) {
  return kernel(kernel_name<T>("products." + text(form)), [&](At<3> at, Parameters& p) {
    const Terms& t = form.terms;
    const auto fields = p.read<T, 3>("fields");
    const auto products = p.write<T, 3>("products");
    const Val<i32> members = at.extent(2), m = at.z, y = at.y, x = at.x;
    const auto field = [&](Quantity q) { return fields(members * t.field(q) + m, y, x); };
    const auto store = [&](Product which, const Val<T>& value) {
      products(members * t.product(which) + m, y, x) = value;
    };
    const Val<T> u = field(Quantity::u), v = field(Quantity::v);
    Val<T> stress_p = t.flux ? Val<T>(T(0)) : u * v, stress_q = t.flux ? Val<T>(T(0)) : u * u - v * v;
    if (t.flux) {
      const Val<T> w = field(Quantity::w);
      store(Product::flux_x, u * w);
      store(Product::flux_y, v * w);
    }
    if (t.closure != Closure::none) {
      const Val<T> s11 = field(Quantity::s11), s12 = field(Quantity::s12);
      const auto gradient = [&] {
        const Val<T> wx = field(Quantity::wx), wy = field(Quantity::wy);
        return sqrt(wx * wx + wy * wy);
      };
      const Val<T> rate = is_leith(t.closure) ? gradient() : T(2) * sqrt(s11 * s11 + s12 * s12);
      Val<T> power = p.scalar<T>("width_power");  // width^p, with C^p where that is a number
      if (is_dynamic(t.closure) && t.averaging == Averaging::global)
        power = power * p.read<T, 1>("coefficient")[m];
      if (is_dynamic(t.closure) && t.averaging == Averaging::local) {
        const auto pair = p.read<T, 3>("pair");
        const Val<T> below = pair(members + m, y, x);
        power = power * select(below > T(0), max(pair(m, y, x) / below, T(0)), Val<T>(T(0)));
      }
      const Val<T> nu_t = power * rate;
      if (t.form == ClosureForm::divergence) {
        stress_p = fma(T(-2) * nu_t, s12, stress_p);
        stress_q = fma(T(-4) * nu_t, s11, stress_q);
      } else {
        store(Product::eddy, nu_t * field(Quantity::laplacian));
      }
    }
    if (t.has(Product::stress_p)) {
      store(Product::stress_p, stress_p);
      store(Product::stress_q, stress_q);
    }
  });
}

template <class T>
Kernel LesKernels<T>::take_field() {
  return kernel(kernel_name<T>("take_field"), [](At<3> at, Parameters& p) {
    const auto from = p.read<T, 4>("from");
    const auto w = p.write<T, 4>("w");
    const Mode<T> mode(p, at.x, at.y);
    const Val<i32> m = at.z, row = at.y;
    const Val<T> scale = select(mode.is_mean(), Val<T>(T(0)), p.scalar<T>("scale"));
    store_complex<T>(w, scale * load_complex(from, m, row, mode.ix), m, row, mode.ix);
  });
}

template struct LesKernels<f32>;
template struct LesKernels<f64>;

}  // namespace lockstep::flow
