// Terms of the right-hand side: fields made of the spectrum, and products that go back to it.
#pragma once

#include <vector>

#include "flow/closures.hpp"
#include "flow/modes.hpp"

namespace lockstep::flow {

/// Products at points that go back to the spectrum. stress_p, stress_q: u v - 2 nu_t S12 and
/// u^2 - v^2 - 4 nu_t S11, without the advective part where fluxes represent it.
enum class Product : uint8_t { stress_p, stress_q, flux_x, flux_y, eddy };

/// The fields and products of a model, in their order in memory.
struct Terms {
  std::vector<Quantity> fields;
  std::vector<Product> products;
  Closure closure = Closure::none;
  ClosureForm form = ClosureForm::divergence;
  Averaging averaging = Averaging::global;
  bool flux = false;

  int field(Quantity q) const;
  int product(Product p) const;
  bool has(Product p) const { return product(p) >= 0; }
};

inline bool is_local(const Terms& t) { return is_dynamic(t.closure) && t.averaging == Averaging::local; }
/// Largest C^p of local dynamic closures: mixing lengths do not exceed the filter's width.
inline constexpr double kLargestLocal = 1;

inline int Terms::field(Quantity q) const {
  for (size_t k = 0; k < fields.size(); ++k)
    if (fields[k] == q) return int(k);
  return -1;
}
inline int Terms::product(Product p) const {
  for (size_t k = 0; k < products.size(); ++k)
    if (products[k] == p) return int(k);
  return -1;
}

inline Terms terms_of(const Model& model) {
  Terms t;
  t.closure = model.closure;
  t.form = model.form;
  t.averaging = model.averaging;
  t.flux = model.advection == Advection::flux;
  const bool closed = t.closure != Closure::none, simple = closed && t.form == ClosureForm::simple;
  t.fields = {Quantity::u, Quantity::v};
  if (closed) t.fields.insert(t.fields.end(), {Quantity::s11, Quantity::s12});
  const bool dynamic = is_dynamic(t.closure);  // Germano's identity is that of the flux of vorticity
  if (t.flux || dynamic) t.fields.push_back(Quantity::w);
  if (dynamic) t.fields.insert(t.fields.end(), {Quantity::wx, Quantity::wy});
  for (const Quantity q : rate_fields(row_of(t.closure).rate))
    if (t.field(q) < 0) t.fields.push_back(q);
  if (simple) t.fields.push_back(Quantity::laplacian);
  if (!t.flux || (closed && !simple)) t.products = {Product::stress_p, Product::stress_q};
  if (t.flux) t.products.insert(t.products.end(), {Product::flux_x, Product::flux_y});
  if (simple) t.products.push_back(Product::eddy);
  return t;
}

/// Fields of the filtered state that Germano's identity needs.
inline std::vector<Quantity> germano_fields(const Terms& t) {
  std::vector<Quantity> list{Quantity::u, Quantity::v, Quantity::w, Quantity::wx, Quantity::wy};
  if (row_of(t.closure).rate == Rate::strain) list.insert(list.end(), {Quantity::s11, Quantity::s12});
  return list;
}

}  // namespace lockstep::flow
