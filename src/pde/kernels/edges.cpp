#include "pde/kernels/edges.hpp"

#include "pde/kernels/sweep_ops.hpp"

namespace lockstep::pde {

using ir::Id;
using ir::kNone;
using namespace sweep_ops;

Edges::Edges(const Discretisation& d, Type type, const Tracer::Scalars& scalars,
             const std::array<Id, 3>& cells, Branch apart)
    : d_(d), type_(type), scalars_(scalars), cells_(cells), apart_(std::move(apart)) {}

/// Cells whose rows along an axis differ from the inner ones.
Id Edges::at_edge(const std::array<Id, 3>& own, int axis, const EdgeWidth& width) const {
  Id edge = width.low > 0 ? less(own[size_t(axis)], constant(width.low)) : kNone;
  if (width.high > 0) {
    const Id high = at_most(plus(cells_[size_t(axis)], -width.high), own[size_t(axis)]);
    edge = edge == kNone ? high : either(edge, high);
  }
  return edge;
}

/// Variables that hold `inner` and, in a branch that only lanes at an edge take, what `edged` sets them to.
/// Its tracer is its own, since nothing that a branch computes may be used after it.
Edges::Values Edges::unless_at_edge(const std::array<Id, 3>& own, int axis, const EdgeWidth& width,
                                    const Tracer::Load& load, const Values& inner,
                                    const std::function<Id(Tracer&, size_t)>& edged) const {
  ir::Builder& b = builder();
  Values variables;
  for (Id value : inner) variables.push_back(b.variable(value));
  apart_([&] {
    b.if_(at_edge(own, axis, width), [&] {
      Tracer tracer(d_, type_, scalars_, own, cells_, load);
      for (size_t k = 0; k < variables.size(); ++k) b.set(variables[k], edged(tracer, k));
    });
  });
  Values values;
  for (Id variable : variables) values.push_back(b.get(variable));
  return values;
}

void Edges::differences(Tracer& tracer, std::span<const Value> values, const std::array<Id, 3>& own,
                        const Tracer::Load& load) const {
  const Plan& plan = *d_.plan;
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<uint32_t> leaves;
    Values inner;
    EdgeWidth width;
    for (uint32_t leaf : autodiff::leaves_of(values)) {
      const Access& a = plan.accesses[leaf];
      if (a.kind != Access::field || a.stencil == Stencil::point || a.axis != axis) continue;
      const AxisOperator& op = d_.of(a.field_index, a.component, a.stencil, axis);
      EdgeWidth one;
      one.widen(op.rows, op.taps, true);
      if (!one) continue;
      width.widen(op.rows, op.taps, true);
      leaves.push_back(leaf);
      inner.push_back(tracer.difference(a, {0, 0, 0}, false));
    }
    if (leaves.empty()) continue;
    const Values chosen = unless_at_edge(own, axis, width, load, inner, [&](Tracer& t, size_t k) {
      return t.difference(plan.accesses[leaves[k]], {0, 0, 0}, true);
    });
    for (size_t k = 0; k < leaves.size(); ++k) tracer.set_difference(leaves[k], chosen[k]);
  }
}

std::map<const Term*, Id> Edges::own_differences(Tracer& tracer, std::span<const Target* const> targets,
                                                 const std::array<Id, 3>& own, const Tracer::Load& load,
                                                 bool edged) const {
  std::map<const Term*, Id> all;
  for (int axis = 0; axis < 2; ++axis) {
    std::vector<std::pair<const Target*, const Term*>> changed;
    Values inner;
    EdgeWidth width;
    for (const Target* target : targets)
      for (const Term& term : target->terms) {
        if (term.axis != axis) continue;
        const AxisOperator& op = d_.of(target->field_index, target->component, term.stencil, axis);
        const Id value = all[&term] = tracer.own_difference(*target, term, false);
        EdgeWidth one;
        one.widen(op.rows_t, op.taps_t, false);
        if (!one || !edged) continue;
        width.widen(op.rows_t, op.taps_t, false);
        changed.push_back({target, &term});
        inner.push_back(value);
      }
    if (changed.empty()) continue;
    const Values chosen = unless_at_edge(own, axis, width, load, inner, [&](Tracer& t, size_t k) {
      return t.own_difference(*changed[k].first, *changed[k].second, true);
    });
    for (size_t k = 0; k < changed.size(); ++k) all[changed[k].second] = chosen[k];
  }
  return all;
}

}  // namespace lockstep::pde
