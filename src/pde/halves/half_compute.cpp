// The computation of one plane by a lane of the two-sweep path: cotangents, or gradients.
#include "pde/halves/half_sweep.hpp"

namespace lockstep::pde {

/// Values near one of the lane's rows: from registers where a row of the lane has them.
Tracer::Load HalfSweep::loads(int row, const Index& slot, Memo& memo) const {
  return [this, row, slot, &memo](const Datum& x) -> AnyVal {
    const int c = layout_.find(x), beside = row + x.at[1];
    const int centre = depth(layout_.channels[size_t(c)]);
    if (x.at[0] == 0 && x.at[1] == 0) return rows_[size_t(row)].column[size_t(c)][size_t(centre + x.at[2])];
    if (x.at[0] == 0 && beside >= 0 && beside < shape_.rows)
      return rows_[size_t(beside)].column[size_t(c)][size_t(centre)];
    const auto [entry, added] = memo.try_emplace({c, x.at[0], beside});
    if (added)
      entry->second = staged_->load(slot + rows_[size_t(row)].place +
                                    (c * layout_.plane() + x.at[1] * layout_.width + x.at[0]));
    return entry->second;
  };
}

/// Whether any lane of the group may be at an edge in plane z. The value is the same for all lanes.
std::optional<Val<bool>> HalfSweep::edge_of_group(const Index& z) const {
  const std::array<int, 3> size{shape_.x, shape_.tall(), 1};
  std::optional<Val<bool>> edge;
  const auto also = [&](const Val<bool>& at) { edge.emplace(edge ? *edge || at : at); };
  for (size_t a = 0; a < 3; ++a) {
    const Index& first = a == 2 ? z : tile_[a];
    if (edge_[a].low > 0) also(first < edge_[a].low);
    if (edge_[a].high > 0) also(grid_.cells[a] - edge_[a].high < first + size[a]);
  }
  return edge;
}

HalfSweep::Values HalfSweep::cotangents_of(Tracer& tracer, const Place& row) const {
  Values results;
  for (size_t k = 0; k < plan_.residuals.size(); ++k) {
    const AnyVal weight = mask_ ? rounded_product(seeds_[k], *row.mask) : seeds_[k];
    results.push_back(rounded_product(weight, tracer.value(plan_.residuals[k])));
  }
  return results;
}

/// One plane: in two forms, since most groups see no edge.
void HalfSweep::compute(const Index& z, const Index& slot, bool edges) const {
  Memo memo;
  const Edges at_edges(
      d_, form_.type(), scalars_, grid_.cells, Edges::Ends::apart, [&](const std::function<void()>& branch) {
        Memo outside = memo;
        branch();
        memo = std::move(outside);  // libc++ copies a map by assigning its values, which no branch may do
      });
  for (int q = 0; q < shape_.rows; ++q) {
    const Place& row = rows_[size_t(q)];
    const Cell own{row.x, row.y, z};
    const Tracer::Load load = loads(q, slot, memo);
    Tracer tracer(d_, form_.type(), scalars_, own, grid_.cells, load);
    if (edges)
      at_edges.differences(tracer, values_, own, load);
    else
      tracer.without_edges();
    if (half_ == SweepHalf::residual) {
      const Values results = cotangents_of(tracer, row);
      if_(row.inside, [&] {
        for (size_t k = 0; k < results.size(); ++k)
          cotangents_.store_at(stacked(int(k), z, row.offset), results[k]);
      });
      continue;
    }
    std::vector<const Target*> targets;
    for (const FieldLevel& o : outputs_)
      for (const Target* t : targets_of(plan_, o)) targets.push_back(t);
    const std::map<const Term*, Tracer::Change> known =
        at_edges.own_differences(tracer, targets, own, load, edges);
    Values results;
    for (const Target* t : targets)
      results.push_back(tracer.gradient(*t, [&](const Term& term) { return known.at(&term); }));
    if_(row.inside, [&] {
      for (size_t k = 0; k < targets.size(); ++k) {
        const Target& t = *targets[k];
        gradients_->buffer({t.field_index, t.level})
            .streaming(form_.streaming)
            .store_at(in_volume(t.field_index, t.component, z, row.offset), results[k]);
      }
    });
  }
}

}  // namespace lockstep::pde
