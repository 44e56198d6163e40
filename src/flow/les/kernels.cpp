#include "flow/les/kernels.hpp"

#include <fmt/format.h>

#include <string>

#include "flow/les/rates.hpp"
#include "flow/les/update.hpp"

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

}  // namespace

std::string text(const KernelForm& form) {
  std::string t = fmt::format("{}{}", form.terms.flux ? "flux" : "stress",
                              form.terms.closure == Closure::none ? "" : ".");
  if (form.terms.closure != Closure::none)
    t += fmt::format("{}{}", name(form.terms.closure),
                     form.terms.form == ClosureForm::simple ? ".simple" : "");
  if (is_local(form.terms)) t += ".local";
  for (const auto& [on, word] : {std::pair{form.kolmogorov, ".kolmogorov"},
                                 {form.stochastic, ".stochastic"},
                                 {form.filter, ".filter"},
                                 {form.beta, ".beta"},
                                 {form.hyper, ".hyper"},
                                 {form.hypo, ".hypo"},
                                 {form.adaptive, ".adaptive"},
                                 {form.slab, ".slab"}})
    if (on) t += word;
  return t;
}

namespace {

/// Writes the quantities of a state to `fields`.
template <class T>
void store_fields(const Terms& terms, const Out<T, 4>& fields, const Mode<T>& mode, const ComplexVal<T>& w,
                  const Val<i32>& members, const Val<i32>& m, const Val<i32>& row) {
  for (size_t f = 0; f < terms.fields.size(); ++f)
    store_complex<T>(fields, mode.of(terms.fields[f], w), members * int(f) + m, row, mode.ix);
}

/// Coefficients of products in memory.
template <class T>
auto product_at(const KernelForm& form, const Grid<T, 4>& products, const Val<i32>& members,
                const Val<i32>& m, const Val<i32>& row, const Val<i32>& ix) {
  return [&form, &products, members, m, row, ix](Product which) {
    return load_complex(products, members * form.terms.product(which) + m, row, ix);
  };
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
    const RightHandSide<T> rhs(p, form);
    store_complex<T>(out,
                     rhs.nonlinear(mode, product_at(form, products, at.extent(2), m, row, mode.ix)) +
                         rhs.linear(mode, load_complex(w, m, row, mode.ix)),
                     m, row, mode.ix);
  });
}

template <class T>
Kernel LesKernels<T>::advance(const KernelForm& form, StageKind kind) {
  const std::string what = fmt::format("advance.{}.{}.{}", name(kind.integrator), kind.stage + 1, text(form));
  return kernel(kernel_name<T>(what), [&](At<3> at, Parameters& p) {
    const auto products = p.read<T, 4>("products");
    const auto fields = p.write<T, 4>("fields");
    const Mode<T> mode(p, at.x, at.y);
    const Val<i32> m = at.z, row = at.y;
    StageUpdate<T> update(p, form, kind, m);
    const ComplexVal<T> next = update(mode, row, product_at(form, products, at.extent(2), m, row, mode.ix));
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
      const auto viscosity = [&] {
        if (is_local(t)) return p.read<T, 3>("eddy")(m, y, x);
        const Val<T> rate = rate_at<T>(row_of(t.closure).rate, field);
        Val<T> power = p.scalar<T>("width_power");  // width^p, with C^p where that is a number
        if (is_dynamic(t.closure)) power = power * p.read<T, 1>("coefficient")[m];
        return power * rate;
      };
      const Val<T> nu_t = viscosity();
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
Kernel LesKernels<T>::take_field(bool turned) {
  return kernel(kernel_name<T>(turned ? "take_field.turned" : "take_field"), [=](At<3> at, Parameters& p) {
    const auto from = p.read<T, 4>("from");
    const auto w = p.write<T, 4>("w");
    const Mode<T> mode(p, at.x, at.y);
    const Val<i32> m = at.z, row = at.y;
    const Val<T> scale = select(mode.is_mean(), Val<T>(T(0)), p.scalar<T>("scale"));
    store_state<T>(turned, w, scale * load_complex(from, m, row, mode.ix), m, row, mode.ix);
  });
}

template <class T>
Kernel LesKernels<T>::turn() {
  return kernel(kernel_name<T>("turn"), [](At<3> at, Parameters& p) {
    const auto from = p.read<T, 4>("from");
    const auto to = p.write<T, 4>("to");
    const Val<i32> m = at.z, y = at.y, x = at.x;
    store_complex<T>(to, load_complex(from, m, x, y), m, y, x);
  });
}

template struct LesKernels<f32>;
template struct LesKernels<f64>;

}  // namespace lockstep::flow
