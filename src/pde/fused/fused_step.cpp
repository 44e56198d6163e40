// One plane of the sweep: residuals of the tile and of the cells around it,
// then what they give to the gradients.
#include "pde/fused/fused_sweep.hpp"

namespace lockstep::pde {

FusedStep::FusedStep(FusedSweep& sweep, const Index& z)
    : s_(sweep),
      z_(z),
      edges_(sweep.d_, sweep.form_.type(), sweep.scalars_, sweep.grid_.cells, Edges::Ends::together,
             [this](const std::function<void()>& branch) {
               Memo outside = memo_;
               branch();
               // libc++ copies a map by assigning its values, which no branch may do.
               memo_ = std::move(outside);
             }) {
  // The offsets in shared memory of the planes around the current slot.
  const int slot = s_.layout_.slot(), total = s_.layout_.planes * slot,
            farthest = s_.forward_ + s_.shape_.ahead;
  for (int dz = -std::max(s_.forward_, 1); dz <= farthest; ++dz) {
    const Index moved = Index(s_.head_) + dz * slot;
    slots_[dz] = dz == 0  ? moved
                 : dz > 0 ? select(moved < total, moved, moved - total)
                          : select(moved < 0, moved + total, moved);
  }
  if (!z.empty()) s_.fetch(z + farthest, slots_.at(farthest));
  for (const std::vector<FusedSweep::Variables>& row : s_.queue_) {
    column_.emplace_back();
    for (const FusedSweep::Variables& channel : row)
      column_.back().emplace_back(channel.begin(), channel.end());
  }
  if (!z.empty()) take(z);
}

/// Takes over the values loaded for plane z.
void FusedStep::take(const Index& z) {
  const size_t rows = s_.rows_.size();
  for (size_t q = 0; q < rows; ++q)
    for (int c = 0; c < s_.layout_.channels; ++c)
      column_[q][size_t(c)].push_back(
          s_.staged_.load(slots_.at(s_.forward_) + s_.rows_[q].staged + c * s_.layout_.plane()));
  plane_ = s_.grid_.inside_plane(z);
  next_plane_ = s_.grid_.inside_plane(min(z + 1, s_.last_ - 1));
  carried_own_.resize(rows);
  cotangent_.resize(rows);
  for (size_t q = 0; q < rows; ++q) {
    own_.emplace_back(s_.next_[q].begin(), s_.next_[q].end());
    for (size_t k = 0; s_.plan_.carry.reads && k < s_.plan_.carry.gradients.size(); ++k)
      carried_own_[q].push_back(s_.carried_[q][k]);
    tracers_.push_back(std::make_unique<Tracer>(tracer(own(s_.rows_[q], plane_), residual_load(int(q)))));
  }
}

/// A staged value near one of the lane's rows, `plane` planes from the current
/// slot: from registers where a row of the lane has it.
AnyVal FusedStep::staged_value(int channel, int row, const Offset& at, int plane) {
  const int beside = row + at[1], in_column = at[2] + plane + s_.forward_;
  const bool same_row = at[1] == 0 || (at[2] == 0 && beside >= 0 && beside < s_.shape_.rows);
  if (at[0] == 0 && same_row) {
    const Values& column = column_[size_t(beside)][size_t(channel)];
    if (in_column >= 0 && in_column < int(column.size())) return column[size_t(in_column)];
  }
  const FusedLayout& l = s_.layout_;
  const auto [entry, added] = memo_.staged.try_emplace({channel, at[0], beside, at[2] + plane});
  if (added)
    entry->second = s_.staged_.load(slots_.at(at[2] + plane) + s_.rows_[size_t(row)].staged +
                                    (channel * l.plane() + at[1] * l.width + at[0]));
  return entry->second;
}

/// A cotangent of the plane below the current slot.
AnyVal FusedStep::cotangent_value(int residual, int row, const Offset& at, const Below& below) {
  const int beside = row + at[1];
  if (at[0] == 0 && beside >= 0 && beside < s_.shape_.rows)
    return s_.kept_cotangent_[size_t(beside)][size_t(residual)];
  const FusedLayout& l = s_.layout_;
  const auto [entry, added] = memo_.cotangents.try_emplace({residual, at[0], beside});
  if (added)
    entry->second = s_.cotangents_.load(below.cotangents + s_.rows_[size_t(row)].cotangent +
                                        (residual * l.inner() + at[1] * l.inner_width + at[0]));
  return entry->second;
}

/// A cotangent of one of the lane's cells, `below` planes below that one. Of
/// two planes only their own lane overwrites them, later in this step.
AnyVal FusedStep::own_cotangent(int residual, int row, int below) const {
  const size_t q = size_t(row), k = size_t(residual);
  if (below == 0) return s_.kept_cotangent_[q][k];
  if (s_.back_ > 1) return s_.older_cotangent_[q][size_t(below - 1)][k];
  return s_.cotangents_.load(Index(s_.cotangent_head_) + s_.rows_[q].cotangent +
                             residual * s_.layout_.inner());
}

/// Adds to the sums of a row and plane, `below` planes below that of the
/// gradients, what other levels give.
FusedStep::Sums FusedStep::complete(Sums sums, const Index& plane, int below) {
  const int row = sums.empty() ? 0 : sums[0].first->row;
  const FusedSweep::Spot& c = s_.rows_[size_t(row)];
  Tracer after = tracer(own(c, {}), [&, row, below](const Datum& x) -> AnyVal {
    if (x.kind == Access::cotangent) return own_cotangent(x.component, row, below);
    if (below == s_.back_) return s_.carried_[size_t(row)][size_t(x.component)];
    return s_.carried_in_->load_at(s_.carried_offset(x.component, plane, c.offset));
  });
  for (auto& [p, sum] : sums)
    for (const Value& v : p->target->after) sum = sum + after.value(v);
  return sums;
}

Tracer::Load FusedStep::residual_load(int row) {
  return [this, row, q = size_t(row)](const Datum& x) -> AnyVal {
    if (x.kind == Access::cotangent) return cotangent_[q][size_t(x.component)];
    if (x.kind == Access::carried && size_t(x.component) < carried_own_[q].size())
      return carried_own_[q][size_t(x.component)];
    if (x.kind == Access::carried)
      return s_.carried_in_->load_at(s_.carried_offset(x.component, plane_, s_.rows_[q].offset));
    if (const int k = Channels::find(s_.channels_.staged, x); k >= 0) return staged_value(k, row, x.at, 0);
    return own_[q][size_t(Channels::find(s_.channels_.own, x))];
  };
}

AnyVal FusedStep::cotangent_of(const AnyVal& residual, size_t k, const AnyVal& mask) const {
  const AnyVal weight = s_.mask_ ? rounded_product(s_.seeds_[k], mask) : s_.seeds_[k];
  return rounded_product(weight, residual);
}

/// Residuals and cotangents of one of the lane's rows.
void FusedStep::row_residuals(int row) {
  const size_t q = size_t(row);
  edges_.differences(*tracers_[q], s_.plan_.residuals, own(s_.rows_[q], plane_), residual_load(row));
  for (size_t k = 0; k < s_.plan_.residuals.size(); ++k) {
    const AnyVal r = tracers_[q]->value(s_.plan_.residuals[k]);
    cotangent_[q].push_back(cotangent_of(r, k, s_.mask_ ? own_[q].back() : AnyVal()));
  }
}

void FusedStep::store_cotangents(const FusedSweep::Spot& c, const Values& values) const {
  const Index base = Index(s_.cotangent_head_) + c.cotangent;
  for (size_t k = 0; k < values.size(); ++k)
    s_.cotangents_.store(base + int(k) * s_.layout_.inner(), values[k]);
}

/// Adds c^2 / m of a row: (2 w / N)^2 m R^2.
void FusedStep::add_loss(int row, const Val<bool>& owned) {
  const size_t q = size_t(row);
  const Val<bool> counts = owned && s_.rows_[q].owned;
  const AnyVal zero = AnyVal::number(s_.form_.type(), 0);
  std::optional<AnyVar> inverse;
  if (s_.mask_) {
    // Masks are mostly 0 and 1: only other weights divide.
    const AnyVal m = own_[q].back();
    const Val<bool> none = m == zero, one = m == 1;
    inverse.emplace(select(none, AnyVal::number(s_.sum_, 0), AnyVal::number(s_.sum_, 1)));
    if_(!(none || one), [&] { *inverse = 1 / m.convert(s_.sum_); });
  }
  for (size_t k = 0; k < s_.plan_.residuals.size(); ++k) {
    const AnyVal c = select(counts, cotangent_[q][k], zero).convert(s_.sum_);
    const AnyVal weighted = s_.mask_ ? rounded_product(c, *inverse) : c;
    AnyVar& sum = *s_.sums_[s_.sum_of_[k]];
    sum = fma(weighted, c, sum);
  }
}

void FusedStep::residuals() {
  const size_t rows = s_.rows_.size();
  const Val<bool> owned = in_chunk(z_);
  for (size_t q = 0; q < rows; ++q) row_residuals(int(q));
  // Beyond an edge that does not wrap, the edge's cell is repeated. A row that
  // took its neighbour from the lane's registers takes the edge's cotangents
  // too.
  for (size_t q = 0; q < rows; ++q) {
    neighbour_.push_back(cotangent_[q]);
    for (size_t k = 0; q > 0 && !s_.d_.wraps[1] && k < cotangent_[q].size(); ++k)
      neighbour_[q][k] = select(s_.rows_[q].y < s_.grid_.cells[1], cotangent_[q][k], neighbour_[q - 1][k]);
  }
  // The next plane's values take the registers of those that were used.
  for (size_t q = 0; q < rows; ++q) {
    s_.load_next(s_.rows_[q], next_plane_, s_.next_[q]);
    s_.load_carried(int(q), next_plane_, s_.grid_.inside_plane(z_ - s_.back_));
    store_cotangents(s_.rows_[q], neighbour_[q]);
  }
  for (size_t q = 0; q < rows; ++q) add_loss(int(q), owned);
  for (size_t q = 0; q < rows; ++q) store_done(int(q), owned);
  ring();
}

/// Gradients that no neighbour adds to, and what the next part of a trajectory
/// needs of the plane.
void FusedStep::store_done(int row, const Val<bool>& owned) {
  const size_t q = size_t(row);
  Sums done;
  for (const FusedSweep::Pending& p : s_.pending_) {
    if (p.row != row || !p.target->terms.empty()) continue;
    AnyVal total =
        p.target->point ? tracers_[q]->value(*p.target->point) : AnyVal::number(s_.form_.type(), 0);
    for (const Value& v : p.target->after) total = total + tracers_[q]->value(v);
    done.push_back({&p, total});
  }
  if (done.empty() && !s_.carried_out_) return;
  if_(owned && s_.rows_[q].owned, [&] {
    store(done, plane_, s_.rows_[q]);
    const Carry& carry = s_.plan_.carry;
    for (size_t k = 0; s_.carried_out_ && k < carry.cotangents.size(); ++k)
      s_.carried_out_->store_at(
          s_.carried_offset(int(carry.gradients.size() + k), plane_, s_.rows_[q].offset),
          cotangent_[q][size_t(carry.residual + carry.cotangents[k])]);
  });
}

void FusedStep::keep() {
  for (size_t q = 0; q < s_.rows_.size(); ++q) {
    for (size_t c = 0; c < s_.queue_[q].size(); ++c)
      for (size_t k = 0; k < s_.queue_[q][c].size(); ++k) s_.queue_[q][c][k] = column_[q][c][k + 1];
    std::vector<FusedSweep::Variables>& older = s_.older_cotangent_[q];
    FusedSweep::Variables& kept = s_.kept_cotangent_[q];
    for (size_t k = older.size(); k-- > 0;)
      for (size_t c = 0; c < kept.size(); ++c) older[k][c] = k > 0 ? older[k - 1][c] : kept[c];
    for (size_t k = 0; k < kept.size(); ++k) kept[k] = neighbour_[q][k];
  }
  for (FusedSweep::Pending& p : s_.pending_)
    if (p.point) *p.point = tracers_[size_t(p.row)]->value(*p.target->point);
  s_.head_ = slots_.at(1);
  s_.cotangent_head_ = s_.layout_.residuals * s_.layout_.inner() - Index(s_.cotangent_head_);
}

/// Cotangents of the cells around the tile.
void FusedStep::ring() {
  for (FusedSweep::RingPass& pass : s_.ring_) {
    if (pass.full)
      ring_residuals(pass);
    else
      if_(pass.lane_in_ring, [&] { ring_residuals(pass); });
  }
}

void FusedStep::ring_residuals(FusedSweep::RingPass& pass) {
  const FusedSweep::Spot& c = pass.spot;
  const Values values(pass.next.begin(), pass.next.end());
  const Tracer::Load load = [&](const Datum& x) -> AnyVal {
    if (const int k = Channels::find(s_.channels_.staged, x); k >= 0)
      return s_.staged_.load(slots_.at(x.at[2]) + c.staged +
                             (k * s_.layout_.plane() + x.at[1] * s_.layout_.width + x.at[0]));
    return values[size_t(Channels::find(s_.channels_.own, x))];
  };
  Tracer around = tracer(own(c, plane_), load);
  edges_.differences(around, s_.plan_.residuals, own(c, plane_), load);
  Values cotangents;
  for (size_t k = 0; k < s_.plan_.residuals.size(); ++k)
    cotangents.push_back(
        cotangent_of(around.value(s_.plan_.residuals[k]), k, s_.mask_ ? values.back() : AnyVal()));
  s_.load_next(c, next_plane_, pass.next);
  store_cotangents(c, cotangents);
}

void FusedStep::gradients(const Index& plane) {
  const Below below{plane, s_.layout_.residuals * s_.layout_.inner() - Index(s_.cotangent_head_),
                    in_chunk(plane)};
  for (int q = 0; q < s_.shape_.rows; ++q) row_gradients(q, below);
}

/// Adds a plane's contribution to the gradients of one row; stores the plane that is
/// complete.
void FusedStep::row_gradients(int row, const Below& below) {
  const FusedSweep::Spot& c = s_.rows_[size_t(row)];
  const int back = s_.back_;
  const AnyVal zero = AnyVal::number(s_.form_.type(), 0);
  const Index plane = s_.grid_.inside_plane(below.z);
  const Tracer::Load load = [&](const Datum& x) -> AnyVal {
    if (x.kind == Access::cotangent) return cotangent_value(x.component, row, x.at, below);
    return staged_value(Channels::find(s_.channels_.staged, x), row, x.at, -1);
  };
  Tracer tracer = this->tracer(own(c, plane), load);
  std::vector<const Target*> targets;
  for (const FusedSweep::Pending& p : s_.pending_)
    if (p.row == row) targets.push_back(p.target);
  const std::map<const Term*, Tracer::Change> known =
      edges_.own_differences(tracer, targets, own(c, plane), load);
  const auto own_plane = [&](const FusedSweep::Pending& p, const AnyVal& sum) {
    return tracer.add_own_plane(*p.target, sum, p.point ? AnyVal(*p.point) : AnyVal(),
                                [&](const Term& t) { return known.at(&t); });
  };
  Sums here, finished;
  for (FusedSweep::Pending& p : s_.pending_) {
    if (p.row != row || p.target->terms.empty()) continue;
    if (p.planes.empty()) {
      const AnyVal total = own_plane(p, {});
      here.push_back({&p, total.empty() ? zero : total});
      continue;
    }
    Values sums(p.planes.begin(),
                p.planes.end());  // of the planes z-back … z+back
    sums.push_back(zero);
    for (int to = -back; to <= back; ++to) {
      AnyVal& sum = sums[size_t(to + back)];
      sum = to == 0 ? own_plane(p, sum) : tracer.add_to_plane(*p.target, to, sum);
    }
    finished.push_back({&p, sums[0]});
    for (size_t k = 0; k < p.planes.size(); ++k) p.planes[k] = sums[k + 1];
  }
  if (!here.empty()) if_(below.owned && c.owned, [&] { store(complete(here, plane, 0), plane, c); });
  if (finished.empty()) return;
  const Index done = below.z - back;
  if_(in_chunk(done) && c.owned, [&] { store(complete(finished, done, back), done, c); });
  if (!s_.d_.wraps[2] && back > 0) flush(row, below);
}

/// No plane follows the grid's last one: what waits is complete.
void FusedStep::flush(int row, const Below& below) {
  const FusedSweep::Spot& c = s_.rows_[size_t(row)];
  if_(below.z == s_.grid_.cells[2] - 1 && c.owned, [&] {
    for (int k = 1; k <= s_.back_; ++k) {
      const Index plane = below.z + (k - s_.back_);
      Sums list;
      for (const FusedSweep::Pending& p : s_.pending_)
        if (p.row == row && !p.planes.empty()) list.push_back({&p, p.planes[size_t(k - 1)]});
      if_(in_chunk(plane), [&] { store(complete(list, plane, s_.back_ - k), plane, c); });
    }
  });
}

void FusedStep::store(const Sums& list, const Index& plane, const FusedSweep::Spot& c) const {
  for (const auto& [p, value] : list) {
    const Target& t = *p->target;
    if (p->carried >= 0)
      s_.carried_out_->store_at(s_.carried_offset(p->carried, plane, c.offset), value);
    else
      s_.gradients_.buffer(s_.outputs_[p->output])
          .streaming(s_.form_.streaming)
          .store_at(s_.offset(t.field_index, t.component, plane, c.offset), value);
  }
}

}  // namespace lockstep::pde
