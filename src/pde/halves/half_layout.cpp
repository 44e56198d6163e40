#include <fmt/format.h>

#include <algorithm>

#include "pde/halves/half_sweep.hpp"

namespace lockstep::pde {

std::string HalfShape::key() const { return fmt::format("{}x{}x{}.{}.{}", x, y, rows, wide, blocks); }

namespace {

void widen(std::vector<HalfChannel>& list, const Access& a, int axis) {
  const bool field = a.kind == Access::field;
  HalfChannel c{a.kind, field ? a.field_index : 0, field ? a.level : 0, field ? a.component : a.number, {}};
  auto at = std::find_if(list.begin(), list.end(), [&](const HalfChannel& o) {
    return o.kind == c.kind && o.field_index == c.field_index && o.level == c.level &&
           o.component == c.component;
  });
  if (at == list.end()) at = list.insert(list.end(), c);
  if (axis >= 0) at->spread[size_t(axis)] = true;
}

}  // namespace

std::vector<Value> half_values(const Plan& plan, SweepHalf half, const std::vector<FieldLevel>& outputs) {
  return half == SweepHalf::residual ? plan.residuals : adjoint_values(plan, outputs);
}

HalfLayout::HalfLayout(const Discretisation& d, SweepHalf half, const std::vector<FieldLevel>& outputs,
                       const HalfShape& shape)
    : reach(half == SweepHalf::residual ? d.forward_reach : d.reach) {
  const Plan& plan = *d.plan;
  const auto kept = [](const Access& a) { return a.kind == Access::field || a.kind == Access::cotangent; };
  for (uint32_t leaf : autodiff::leaves_of(half_values(plan, half, outputs))) {
    const Access& a = plan.accesses[leaf];
    if (kept(a)) widen(channels, a, a.stencil == Stencil::point ? -1 : a.axis);
  }
  if (half == SweepHalf::adjoint)
    for (const FieldLevel& o : outputs)
      for (const Target* t : targets_of(plan, o))
        for (const Term& term : t->terms)
          for (uint32_t leaf : autodiff::leaves_of(std::span(&term.g, 1)))
            if (kept(plan.accesses[leaf])) widen(channels, plan.accesses[leaf], term.axis);
  std::stable_partition(channels.begin(), channels.end(), [](const HalfChannel& c) { return c.beside(); });
  staged = int(std::count_if(channels.begin(), channels.end(), [](const auto& c) { return c.beside(); }));
  left = (reach[0] + shape.wide - 1) / shape.wide * shape.wide;
  width = shape.x + 2 * left;
  height = shape.tall() + 2 * reach[1];
}

int HalfLayout::find(const Datum& x) const {
  for (size_t k = 0; k < channels.size(); ++k) {
    const HalfChannel& c = channels[k];
    if (c.kind == x.kind && c.field_index == x.field_index && c.level == x.level &&
        c.component == x.component)
      return int(k);
  }
  return -1;
}

}  // namespace lockstep::pde
