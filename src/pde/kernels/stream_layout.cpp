#include <fmt/format.h>

#include <algorithm>

#include "pde/kernels/stream.hpp"

namespace lockstep::pde {

std::string StreamShape::key() const { return fmt::format("{}x{}x{}.{}.{}", x, y, rows, wide, blocks); }

namespace {

void widen(std::vector<StreamChannel>& list, const Access& a, int axis) {
  const bool field = a.kind == Access::field;
  StreamChannel c{a.kind, field ? a.field_index : 0, field ? a.level : 0, field ? a.component : a.number, {}};
  auto at = std::find_if(list.begin(), list.end(), [&](const StreamChannel& o) {
    return o.kind == c.kind && o.field_index == c.field_index && o.level == c.level &&
           o.component == c.component;
  });
  if (at == list.end()) at = list.insert(list.end(), c);
  if (axis >= 0) at->spread[size_t(axis)] = true;
}

}  // namespace

std::vector<Value> stream_values(const Plan& plan, StreamStage stage,
                                 const std::vector<FieldLevel>& outputs) {
  return stage == StreamStage::residual ? plan.residuals : adjoint_values(plan, outputs);
}

StreamLayout::StreamLayout(const Discretisation& d, StreamStage stage, const std::vector<FieldLevel>& outputs,
                           const StreamShape& shape)
    : reach(stage == StreamStage::residual ? d.forward_reach : d.reach) {
  const Plan& plan = *d.plan;
  const auto kept = [](const Access& a) { return a.kind == Access::field || a.kind == Access::cotangent; };
  for (uint32_t leaf : autodiff::leaves_of(stream_values(plan, stage, outputs))) {
    const Access& a = plan.accesses[leaf];
    if (kept(a)) widen(channels, a, a.stencil == Stencil::point ? -1 : a.axis);
  }
  if (stage == StreamStage::adjoint)
    for (const FieldLevel& o : outputs)
      for (const Target* t : targets_of(plan, o))
        for (const Term& term : t->terms)
          for (uint32_t leaf : autodiff::leaves_of(std::span(&term.g, 1)))
            if (kept(plan.accesses[leaf])) widen(channels, plan.accesses[leaf], term.axis);
  std::stable_partition(channels.begin(), channels.end(), [](const StreamChannel& c) { return c.beside(); });
  staged = int(std::count_if(channels.begin(), channels.end(), [](const auto& c) { return c.beside(); }));
  left = (reach[0] + shape.wide - 1) / shape.wide * shape.wide;
  width = shape.x + 2 * left;
  height = shape.tall() + 2 * reach[1];
}

int StreamLayout::find(const Datum& x) const {
  for (size_t k = 0; k < channels.size(); ++k) {
    const StreamChannel& c = channels[k];
    if (c.kind == x.kind && c.field_index == x.field_index && c.level == x.level &&
        c.component == x.component)
      return int(k);
  }
  return -1;
}

}  // namespace lockstep::pde
