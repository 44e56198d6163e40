// What a lane of the two-sweep path computes of one plane: cotangents, or gradients.
#include "pde/kernels/stream.hpp"
#include "pde/kernels/sweep_ops.hpp"

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

/// One plane: in two forms, since most groups see no edge.
void Stream::compute(Id z, Id slot, bool edges) {
  memo_.clear();
  for (int q = 0; q < shape_.rows; ++q) {
    const Place& row = rows_[size_t(q)];
    const std::array<Id, 3> own{row.own[0], row.own[1], z};
    const Tracer::Load load = loads(q, slot);
    Tracer tracer(d_, form_.type(), scalars_, own, cells_, load);
    if (edges)
      edges_.differences(tracer, values_, own, load);
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
      std::vector<const Target*> targets;
      for (const FieldLevel& o : outputs_)
        for (const Target* t : targets_of(plan_, o)) targets.push_back(t);
      const std::map<const Term*, Id> known = edges_.own_differences(tracer, targets, own, load, edges);
      for (const Target* t : targets)
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
