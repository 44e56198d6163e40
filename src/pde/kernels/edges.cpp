#include "pde/kernels/edges.hpp"

namespace lockstep::pde {

Edges::Edges(const Discretisation& d, Type type, const Tracer::Scalars& scalars, const Cell& cells, Ends ends,
             Branch apart)
    : d_(d), type_(type), scalars_(scalars), cells_(cells), ends_(ends), apart_(std::move(apart)) {}

Val<bool> Edges::at_end(const Cell& own, int axis, const End& end) const {
  const Index &at = own[size_t(axis)], &n = cells_[size_t(axis)];
  return end.high ? n - end.width <= at : at < end.width;
}

std::optional<OddEnds> Edges::without_branch(const AxisOperator& op, bool transposed) const {
  if (ends_ != Ends::together) return {};
  return transposed ? OddEnds::of(op.rows_t, op.taps_t) : OddEnds::of(op.rows, op.taps);
}

Tracer::OddFactors Edges::factors(const Cell& own, int axis, const OddEnds& ends, const AnyVal& scale) const {
  const AnyVal one = AnyVal::number(type_, 1);
  const Val<bool> high = own[size_t(axis)] == cells_[size_t(axis)] - 1;
  Tracer::OddFactors f{AnyVal::number(type_, -1), scale};
  if (ends.low) f.back = select(own[size_t(axis)] == 0, one, f.back);
  if (ends.high) f = {select(high, one, f.back), select(high, -scale, scale)};
  return f;
}

/// Variables that hold `inner` and, in branches that only lanes at an edge take, what `edged` makes of it there.
/// Each has a tracer of its own, since nothing that a branch computes may be used after it.
Edges::Values Edges::unless_at_edge(const Cell& own, int axis, const EdgeWidth& width,
                                    const Tracer::Load& load, const Values& inner, const Edged& edged) const {
  std::vector<AnyVar> variables(inner.begin(), inner.end());
  const End low{false, width.low}, high{true, width.high};
  const auto branch = [&](const Val<bool>& here, const End* end) {
    apart_([&] {
      if_(here, [&] {
        Tracer tracer(d_, type_, scalars_, own, cells_, load);
        for (size_t k = 0; k < variables.size(); ++k) variables[k] = edged(tracer, k, end, variables[k]);
      });
    });
  };
  const bool both = width.low > 0 && width.high > 0;
  const Val<bool> here = both            ? at_end(own, axis, low) || at_end(own, axis, high)
                         : width.low > 0 ? at_end(own, axis, low)
                                         : at_end(own, axis, high);
  if (ends_ == Ends::together)
    branch(here, nullptr);
  else if (!both)
    branch(here, width.low > 0 ? &low : &high);
  else  // one test for most lanes
    if_(here, [&] {
      branch(at_end(own, axis, low), &low);
      branch(at_end(own, axis, high), &high);
    });
  return Values(variables.begin(), variables.end());
}

void Edges::differences(Tracer& tracer, std::span<const Value> values, const Cell& own,
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
      one.widen(op.rows, op.taps);
      if (!one) continue;
      if (const auto ends = without_branch(op, false)) {
        tracer.set_difference(
            leaf, tracer.difference_by(factors(own, axis, *ends, tracer.scale(a.stencil, axis)), a));
        continue;
      }
      width.widen(op.rows, op.taps);
      leaves.push_back(leaf);
      inner.push_back(tracer.difference(a, {0, 0, 0}, false));
    }
    if (leaves.empty()) continue;
    const Values chosen = unless_at_edge(
        own, axis, width, load, inner, [&](Tracer& t, size_t k, const End* end, const AnyVal& value) {
          const Access& a = plan.accesses[leaves[k]];
          return end ? t.difference_at(*end, a, value) : t.difference(a, {0, 0, 0}, true);
        });
    for (size_t k = 0; k < leaves.size(); ++k) tracer.set_difference(leaves[k], chosen[k]);
  }
}

std::map<const Term*, Tracer::Change> Edges::own_differences(Tracer& tracer,
                                                             std::span<const Target* const> targets,
                                                             const Cell& own, const Tracer::Load& load,
                                                             bool edged) const {
  std::map<const Term*, Tracer::Change> all;
  for (int axis = 0; axis < 2; ++axis) {
    std::vector<std::pair<const Target*, const Term*>> changed;
    Values inner;
    EdgeWidth width;
    for (const Target* target : targets)
      for (const Term& term : target->terms) {
        if (term.axis != axis) continue;
        const AxisOperator& op = d_.of(target->field_index, target->component, term.stencil, axis);
        EdgeWidth one;
        one.widen(op.rows_t, op.taps_t);
        const bool changes = one && edged;
        const auto ends = changes ? without_branch(op, true) : std::nullopt;
        if (ends) {
          all[&term] = tracer.own_difference_by(factors(own, axis, *ends, tracer.scale(term.stencil, axis)),
                                                *target, term);
          continue;
        }
        const AnyVal value = tracer.own_difference(*target, term, false);
        all[&term] = {value, {}};
        if (!changes) continue;
        width.widen(op.rows_t, op.taps_t);
        changed.push_back({target, &term});
        inner.push_back(value);
      }
    if (changed.empty()) continue;
    const Values chosen = unless_at_edge(own, axis, width, load, inner,
                                         [&](Tracer& t, size_t k, const End* end, const AnyVal& value) {
                                           const auto& [target, term] = changed[k];
                                           return end ? t.own_difference_at(*end, *target, *term, value)
                                                      : t.own_difference(*target, *term, true);
                                         });
    for (size_t k = 0; k < changed.size(); ++k) all[changed[k].second] = {chosen[k], {}};
  }
  return all;
}

}  // namespace lockstep::pde
