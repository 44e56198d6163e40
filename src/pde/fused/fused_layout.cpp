#include "pde/fused/fused_layout.hpp"

#include <fmt/format.h>

namespace lockstep::pde {

namespace {

void add_channel(std::vector<Channel>& list, const Access& a) {
  const Channel c{a.field_index, a.level, a.component};
  if (std::find(list.begin(), list.end(), c) == list.end()) list.push_back(c);
}

}  // namespace

std::string FusedShape::key() const {
  return fmt::format("{}x{}x{}.{}.{}.{}", x, y, rows, wide, blocks, ahead);
}

Channels::Channels(const Plan& plan) {
  const std::vector<uint32_t> leaves = autodiff::leaves_of(plan.residuals);
  for (uint32_t leaf : leaves)
    if (plan.accesses[leaf].kind == Access::field && plan.accesses[leaf].stencil != Stencil::point)
      add_channel(staged, plan.accesses[leaf]);
  for (const Target& t : plan.targets)  // what neighbours' contributions need
    for (const Term& term : t.terms)
      for (uint32_t leaf : autodiff::leaves_of(std::span(&term.g, 1)))
        if (plan.accesses[leaf].kind == Access::field) add_channel(staged, plan.accesses[leaf]);
  for (uint32_t leaf : leaves) {
    const Access& a = plan.accesses[leaf];
    if (a.kind == Access::field &&
        std::find(staged.begin(), staged.end(), Channel{a.field_index, a.level, a.component}) == staged.end())
      add_channel(own, a);
  }
}

FusedLayout::FusedLayout(const Discretisation& d, const FusedShape& s, const Channels& list) {
  const int forward = std::max({d.forward_reach[0], d.forward_reach[1], d.forward_reach[2]});
  halo = std::max(d.reach[0], d.reach[1]);
  margin = halo + std::max(d.forward_reach[0], d.forward_reach[1]);
  left = (margin + s.wide - 1) / s.wide * s.wide;
  // Those of one residual, the one below it, and the next ones on their way.
  planes = std::max(2 * forward + 1, 2) + s.ahead;
  width = s.x + 2 * left;
  height = s.tall() + 2 * margin;
  inner_width = s.x + 2 * halo;
  inner_height = s.tall() + 2 * halo;
  residuals = int(d.plan->residuals.size());
  channels = int(list.staged.size());
}

}  // namespace lockstep::pde
