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

const BoundaryConditions& Discretisation::boundary(int field_index, int component) const {
  const std::vector<BoundaryConditions>& own = plan->fields[size_t(field_index)].boundaries;
  if (own.empty()) return mesh.boundary;
  return own.size() == 1 ? own[0] : own[size_t(component)];
}

Side Discretisation::side(int field_index, int component, int axis, int end) const {
  return resolve_side(boundary(field_index, component).sides[size_t(axis)][size_t(end)], axis, component,
                      plan->fields[size_t(field_index)].vector);
}

SideValue Discretisation::side_value(int field_index, int component, int axis, size_t end) const {
  const std::string& name = boundary(field_index, component).sides[size_t(axis)][end].parameter;
  for (size_t k = kTimeParameters; k < plan->parameters.size(); ++k)
    if (plan->parameters[k] == name) return {SideValue::parameter, int(k)};
  for (size_t k = 0; k < plan->profiles.size(); ++k)
    if (plan->profiles[k] == name) return {SideValue::profile, int(k)};
  throw InputError(fmt::format("unknown parameter or profile {}", name), "pde boundary", "one of the system");
}

int Discretisation::scale_index(Stencil stencil, int axis) const {
  for (size_t k = 0; k < scales.size(); ++k)
    if (scales[k] == std::pair(stencil, axis)) return int(k);
  return -1;
}

void Discretisation::check_mesh() const {
  if (mesh.order != 2 && mesh.order != 4 && mesh.order != 6 && mesh.order != 8)
    throw InputError(fmt::format("order {}", mesh.order), "pde mesh", "2, 4, 6 or 8");
  if (!(mesh.dt > 0) || !std::isfinite(mesh.dt))
    throw InputError(fmt::format("dt {}", mesh.dt), "pde mesh", "a finite number above 0");
  for (int a = 0; a < 3; ++a) {
    const double spacing = mesh.spacing[size_t(a)];
    const int64_t cells = mesh.cells[size_t(a)];
    if (!(spacing > 0) || !std::isfinite(spacing))
      throw InputError(fmt::format("spacing {} along {}", spacing, kAxis[a]), "pde mesh",
                       "a finite number above 0");
    if (cells < 1)
      throw InputError(fmt::format("{} cells along {}", cells, kAxis[a]), "pde mesh", "1 or more");
    if (cells > (int64_t(1) << 30))
      throw InputError(fmt::format("{} cells along {}", cells, kAxis[a]), "pde mesh", "at most 2^30");
    if (a >= plan->dimensions && cells != 1)
      throw InputError(fmt::format("{} cells along {}", cells, kAxis[a]), "pde mesh",
                       fmt::format("1 in a system of {} dimensions", plan->dimensions));
  }
}

/// Periodic axes are those of all fields; what sides name exists, and a profile lies along one axis.
void Discretisation::check_sides() {
  profile_axes.assign(plan->profiles.size(), -1);
  for (size_t f = 0; f < plan->fields.size(); ++f)
    for (int c = 0; c < plan->fields[f].components; ++c)
      for (size_t a = 0; a < 3; ++a) {
        const auto& sides = boundary(int(f), c).sides[a];
        const bool periodic = mesh.boundary.sides[a][0].rule == Rule::periodic;
        if ((sides[0].rule == Rule::periodic) != periodic || (sides[1].rule == Rule::periodic) != periodic)
          throw InputError(fmt::format("field {} is periodic on only one side of {}, or another field is not",
                                       plan->fields[f].name, kAxis[a]),
                           "pde mesh", "all fields periodic along an axis, or none");
        for (size_t end = 0; end < 2; ++end) {
          if (sides[end].parameter.empty()) continue;
          const SideValue given = side_value(int(f), c, int(a), end);
          if (given.kind == SideValue::parameter) continue;
          int& axis = profile_axes[size_t(given.number)];
          if (axis >= 0 && axis != int(a))
            throw InputError(
                fmt::format("profile {} on sides of {} and {}", sides[end].parameter, kAxis[axis], kAxis[a]),
                "pde boundary", "a profile for each axis");
          axis = int(a);
        }
      }
}

Discretisation::Discretisation(std::shared_ptr<const Plan> p, const Mesh& m) : plan(std::move(p)), mesh(m) {
  check_mesh();
  check_sides();
  std::array<int, 3> widest{};
  for (const Access& a : plan->accesses)
    if (a.kind == Access::field && a.stencil != Stencil::point)
      widest[size_t(a.axis)] = std::max(widest[size_t(a.axis)], radius(a.stencil, m.order));
  for (const Target& t : plan->targets)
    for (const Term& term : t.terms)
      for (uint32_t leaf : autodiff::leaves_of(std::span(&term.g, 1))) {
        pointwise_adjoint &= plan->accesses[leaf].stencil == Stencil::point;
      }
  // Coordinates wrap once: the axis is at least as long as the farthest neighbour is away, which on the way back may be
  // one of a neighbour. Shorter ones list all rows.
  const int stencils = pointwise_adjoint ? 1 : 2;
  for (size_t a = 0; a < 3; ++a)
    wraps[a] =
        m.boundary.sides[a][0].rule == Rule::periodic && m.cells[a] >= std::max(stencils * widest[a], 1);

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
}

}  // namespace lockstep::pde
