// What a lane of the two-sweep path computes of one plane: cotangents, or gradients.
#include "pde/stream.hpp"
#include "pde/sweep_ops.hpp"

namespace lockstep::pde {

using ir::Id;
using ir::kNone;
using namespace sweep_ops;

/// Values near one of the lane's rows: from registers where a row of the lane has them.
Tracer::Load Stream::loads(int row, Id slot) {
  return [this, row, slot](const Datum& x) -> Id {
    const int c = layout_.find(x), beside = row + x.at[1];
    const int centre = depth(layout_.channels[size_t(c)]);
    if (x.at[0] == 0 && x.at[1] == 0)
      return b_.get(rows_[size_t(row)].column[size_t(c)][size_t(centre + x.at[2])]);
    if (x.at[0] == 0 && beside >= 0 && beside < shape_.rows)
      return b_.get(rows_[size_t(beside)].column[size_t(c)][size_t(centre)]);
    const auto [entry, added] = memo_.try_emplace({c, x.at[0], beside}, kNone);
    if (added)
      entry->second = b_.emit(ir::Op::shared_load, form_.type(),
                              {plus(plus(slot, rows_[size_t(row)].place),
                                    c * layout_.plane() + x.at[1] * layout_.width + x.at[0])},
                              staged_);
    return entry->second;
  };
}

/// Whether any lane of the group may stand at an edge in plane z: the same for all of them.
Id Stream::edge_of_group(Id z) {
  const std::array<int, 3> size{shape_.x, shape_.tall(), 1};
  Id edge = kNone;
  for (size_t a = 0; a < 3; ++a) {
    const Id first = a == 2 ? z : tile_[a];
    for (const Id at :
         {edge_[a].low > 0 ? less(first, constant(edge_[a].low)) : kNone,
          edge_[a].high > 0 ? less(plus(cells_[a], -edge_[a].high), plus(first, size[a])) : kNone})
      if (at != kNone) edge = edge == kNone ? at : either(edge, at);
  }
  return edge;
}

Id Stream::at_edge(const std::array<Id, 3>& own, int axis, const EdgeWidth& width) {
  Id edge = width.low > 0 ? less(own[size_t(axis)], constant(width.low)) : kNone;
  if (width.high > 0) {
    const Id high = at_most(plus(cells_[size_t(axis)], -width.high), own[size_t(axis)]);
    edge = edge == kNone ? high : either(edge, high);
  }
  return edge;
}

/// Variables that hold `inner` and, in a branch that only lanes at an edge take, what `edged` sets them to.
/// Its tracer is its own, since nothing that a branch computes may be used after it.
Stream::Values Stream::unless_at_edge(const std::array<Id, 3>& own, int axis, const EdgeWidth& width,
                                      const Tracer::Load& load, const Values& inner,
                                      const std::function<Id(Tracer&, size_t)>& edged) {
  Values variables;
  for (Id value : inner) variables.push_back(b_.variable(value));
  const auto memo = memo_;
  b_.if_(at_edge(own, axis, width), [&] {
    Tracer tracer(d_, form_.type(), scalars_, own, cells_, load);
    for (size_t k = 0; k < variables.size(); ++k) b_.set(variables[k], edged(tracer, k));
  });
  memo_ = memo;
  Values values;
  for (Id variable : variables) values.push_back(b_.get(variable));
  return values;
}

/// Gives the tracer the differences that edges change.
void Stream::edge_differences(Tracer& tracer, const std::array<Id, 3>& own, const Tracer::Load& load) {
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<uint32_t> leaves;
    EdgeWidth width;
    Values inner;
    for (uint32_t leaf : autodiff::leaves_of(values_)) {
      const Access& a = plan_.accesses[leaf];
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
    const Values values = unless_at_edge(own, axis, width, load, inner, [&](Tracer& t, size_t k) {
      return t.difference(plan_.accesses[leaves[k]], {0, 0, 0}, true);
    });
    for (size_t k = 0; k < leaves.size(); ++k) tracer.set_difference(leaves[k], values[k]);
  }
}

/// Differences along x and y that gradients take, edges included.
std::map<const Term*, Id> Stream::own_differences(Tracer& tracer, const std::array<Id, 3>& own,
                                                  const Tracer::Load& load, bool edges) {
  std::map<const Term*, Id> all;
  for (int axis = 0; axis < 2; ++axis) {
    std::vector<std::pair<const Target*, const Term*>> edged;
    Values inner;
    EdgeWidth width;
    for (const FieldLevel& o : outputs_)
      for (const Target* target : targets_of(plan_, o))
        for (const Term& term : target->terms) {
          if (term.axis != axis) continue;
          const AxisOperator& op = d_.of(target->field_index, target->component, term.stencil, axis);
          const Id value = all[&term] = tracer.own_difference(*target, term, false);
          EdgeWidth one;
          one.widen(op.rows_t, op.taps_t, false);
          if (!one || !edges) continue;
          width.widen(op.rows_t, op.taps_t, false);
          edged.push_back({target, &term});
          inner.push_back(value);
        }
    if (edged.empty()) continue;
    const Values values = unless_at_edge(own, axis, width, load, inner, [&](Tracer& t, size_t k) {
      return t.own_difference(*edged[k].first, *edged[k].second, true);
    });
    for (size_t k = 0; k < edged.size(); ++k) all[edged[k].second] = values[k];
  }
  return all;
}

/// One plane: in two forms, since most groups see no edge.
void Stream::compute(Id z, Id slot, bool edges) {
  memo_.clear();
  for (int q = 0; q < shape_.rows; ++q) {
    const Place& row = rows_[size_t(q)];
    const std::array<Id, 3> own{row.own[0], row.own[1], z};
    const Tracer::Load load = loads(q, slot);
    Tracer tracer(d_, form_.type(), scalars_, own, cells_, load);
    if (edges)
      edge_differences(tracer, own, load);
    else
      tracer.without_edges();
    Values results;
    if (stage_ == StreamStage::residual) {
      for (size_t k = 0; k < plan_.residuals.size(); ++k) {
        const Id weight =
            mask_ ? b_.op(ir::Op::fmul, {seeds_[k], b_.get(row.mask)}, ir::kNoContract) : seeds_[k];
        results.push_back(b_.op(ir::Op::fmul, {weight, tracer.value(plan_.residuals[k])}, ir::kNoContract));
      }
    } else {
      const std::map<const Term*, Id> known = own_differences(tracer, own, load, edges);
      for (const FieldLevel& o : outputs_)
        for (const Target* t : targets_of(plan_, o))
          results.push_back(tracer.gradient(*t, [&](const Term& term) { return known.at(&term); }));
    }
    b_.if_(row.inside, [&] {
      size_t k = 0;
      if (stage_ == StreamStage::residual)
        for (Id value : results) cotangents_->store_at(stacked(constant(int(k++)), z, row.offset), value);
      else
        for (const FieldLevel& o : outputs_)
          for (const Target* t : targets_of(plan_, o))
            gradients_->buffer(o).store_at(in_volume(t->field_index, t->component, z, row.offset),
                                           results[k++], form_.streaming);
    });
  }
}

}  // namespace lockstep::pde
