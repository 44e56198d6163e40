#include "pde/language/discretisation.hpp"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::pde {

namespace {
constexpr const char* kAxis[] = {"x", "y", "z"};

int radius(Stencil s, int order) {
  return s == Stencil::point ? 0 : s == Stencil::first || s == Stencil::second ? order / 2 : 1;
}
}  // namespace

Side Discretisation::side(int field_index, int component, int axis, int end) const {
  const FieldInfo& f = plan->fields[size_t(field_index)];
  const Boundary& b = f.boundary ? *f.boundary : mesh.boundary;
  return resolve_side(b.sides[size_t(axis)][size_t(end)], axis, component, f.vector);
}

int Discretisation::scale_index(Stencil stencil, int axis) const {
  for (size_t k = 0; k < scales.size(); ++k)
    if (scales[k] == std::pair(stencil, axis)) return int(k);
  return -1;
}

Discretisation::Discretisation(std::shared_ptr<const Plan> p, const Mesh& m) : plan(std::move(p)), mesh(m) {
  if (m.order != 2 && m.order != 4 && m.order != 6 && m.order != 8)
    throw InputError(fmt::format("order {}", m.order), "pde mesh", "2, 4, 6 or 8");
  if (!(m.dt > 0) || !std::isfinite(m.dt))
    throw InputError(fmt::format("dt {}", m.dt), "pde mesh", "a finite number above 0");
  for (int a = 0; a < 3; ++a) {
    if (!(m.spacing[size_t(a)] > 0) || !std::isfinite(m.spacing[size_t(a)]))
      throw InputError(fmt::format("spacing {} along {}", m.spacing[size_t(a)], kAxis[a]), "pde mesh",
                       "a finite number above 0");
    if (m.cells[size_t(a)] < 1)
      throw InputError(fmt::format("{} cells along {}", m.cells[size_t(a)], kAxis[a]), "pde mesh",
                       "1 or more");
    if (m.cells[size_t(a)] > (int64_t(1) << 30))
      throw InputError(fmt::format("{} cells along {}", m.cells[size_t(a)], kAxis[a]), "pde mesh",
                       "at most 2^30");
    if (a >= plan->dimensions && m.cells[size_t(a)] != 1)
      throw InputError(fmt::format("{} cells along {}", m.cells[size_t(a)], kAxis[a]), "pde mesh",
                       fmt::format("1 in a system of {} dimensions", plan->dimensions));
    for (const FieldInfo& f : plan->fields) {
      const auto& sides = (f.boundary ? *f.boundary : m.boundary).sides[size_t(a)];
      const bool periodic = m.boundary.sides[size_t(a)][0].rule == Rule::periodic;
      if ((sides[0].rule == Rule::periodic) != periodic || (sides[1].rule == Rule::periodic) != periodic)
        throw InputError(fmt::format("field {} is periodic on one side of {} alone, or another field is not",
                                     f.name, kAxis[a]),
                         "pde mesh", "all fields periodic along an axis, or none");
    }
  }
  std::array<int, 3> widest{};
  for (const Access& a : plan->accesses)
    if (a.kind == Access::field && a.stencil != Stencil::point)
      widest[size_t(a.axis)] = std::max(widest[size_t(a.axis)], radius(a.stencil, m.order));
  for (size_t a = 0; a < 3; ++a)
    wraps[a] = m.boundary.sides[a][0].rule == Rule::periodic && m.cells[a] >= std::max(widest[a], 1);

  for (const Access& a : plan->accesses) {
    if (a.kind != Access::field || a.stencil == Stencil::point) continue;
    const size_t axis = size_t(a.axis);
    AxisOperator op =
        make_operator(a.stencil, m.order, side(a.field_index, a.component, a.axis, 0),
                      side(a.field_index, a.component, a.axis, 1), m.cells[axis], kAxis[axis], wraps[axis]);
    reach[axis] = std::max(reach[axis], op.reach);
    for (const Row& r : op.rows)
      for (const Tap& t : r.taps) forward_reach[axis] = std::max(forward_reach[axis], std::abs(t.offset));
    forward_reach[axis] = std::max(forward_reach[axis], radius(a.stencil, m.order));
    operators.insert_or_assign({a.field_index, a.component, int(a.stencil), a.axis}, std::move(op));
    if (scale_index(a.stencil, a.axis) < 0) {
      scales.push_back({a.stencil, a.axis});
      scale_values.push_back(operator_scale(a.stencil, m.order, m.spacing[axis]));
    }
  }
  for (const Target& t : plan->targets)
    for (const Term& term : t.terms)
      for (uint32_t leaf : autodiff::leaves_of(std::span(&term.g, 1))) {
        const Access& a = plan->accesses[leaf];
        pointwise_adjoint &= a.kind != Access::field || a.stencil == Stencil::point;
      }
}

}  // namespace lockstep::pde
