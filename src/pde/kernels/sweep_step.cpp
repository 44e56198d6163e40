// One plane of the sweep: residuals of the tile and of the cells around it, then what they give to the
// gradients.
#include "pde/kernels/sweep.hpp"
#include "pde/kernels/sweep_ops.hpp"

namespace lockstep::pde {

using ir::Id;
using ir::kNone;
using namespace sweep_ops;

/// Where the planes around the current slot lie in shared memory.
void Sweep::find_slots() {
  const int total = layout_.planes * layout_.slot();
  slots_.clear();
  for (int dz = -std::max(forward_, 1); dz <= forward_ + shape_.ahead; ++dz) {
    const Id moved = plus(b_.get(head_), dz * layout_.slot());
    slots_[dz] = dz == 0  ? moved
                 : dz > 0 ? b_.select(less(moved, constant(total)), moved, plus(moved, -total))
                          : b_.select(less(moved, constant(0)), plus(moved, total), moved);
  }
}

Id Sweep::shared(Id place) { return b_.emit(ir::Op::shared_load, form_.type(), {place}, staged_); }

/// A staged value near one of the lane's rows, `plane` planes from the current slot: from registers where a
/// row of the lane has it.
Id Sweep::staged_value(int channel, int row, const Offset& at, int plane) {
  const int beside = row + at[1], in_column = at[2] + plane + forward_;
  const bool same_row = at[1] == 0 || (at[2] == 0 && beside >= 0 && beside < shape_.rows);
  if (at[0] == 0 && same_row) {
    const Values& column = column_[size_t(beside)][size_t(channel)];
    if (in_column >= 0 && in_column < int(column.size())) return column[size_t(in_column)];
  }
  const auto [entry, added] = staged_memo_.try_emplace({channel, at[0], beside, at[2] + plane}, kNone);
  if (added)
    entry->second = shared(plus(plus(slot(at[2] + plane), rows_[size_t(row)].staged),
                                channel * layout_.plane() + at[1] * layout_.width + at[0]));
  return entry->second;
}

/// A cotangent of the plane below the current slot.
Id Sweep::cotangent_value(int residual, int row, const Offset& at) {
  const int beside = row + at[1];
  if (at[0] == 0 && beside >= 0 && beside < shape_.rows)
    return b_.get(kept_cotangent_[size_t(beside)][size_t(residual)]);
  const auto [entry, added] = cotangent_memo_.try_emplace({residual, at[0], beside}, kNone);
  if (added)
    entry->second = b_.emit(ir::Op::shared_load, form_.type(),
                            {plus(plus(cotangent_base_, rows_[size_t(row)].cotangent),
                                  residual * layout_.inner() + at[1] * layout_.inner_width + at[0])},
                            cotangents_);
  return entry->second;
}

/// A cotangent of one of the lane's cells, `below` planes below that one. Of two planes only their own lane
/// overwrites them, later in this step.
Id Sweep::own_cotangent(int residual, int row, int below) {
  if (below == 0) return b_.get(kept_cotangent_[size_t(row)][size_t(residual)]);
  if (back_ > 1) return b_.get(older_cotangent_[size_t(row)][size_t(below - 1)][size_t(residual)]);
  return b_.emit(
      ir::Op::shared_load, form_.type(),
      {plus(plus(b_.get(cotangent_head_), rows_[size_t(row)].cotangent), residual * layout_.inner())},
      cotangents_);
}

/// Adds to the sums of a row and plane, `below` planes below that of the back phase, what other levels give.
Sweep::Sums Sweep::complete(Sums sums, Id plane, int below) {
  const int row = sums.empty() ? 0 : sums[0].first->row;
  const size_t q = size_t(row);
  Tracer tracer(d_, form_.type(), scalars_, rows_[q].own, cells_, [&](const Datum& x) -> Id {
    if (x.kind == Access::cotangent) return own_cotangent(x.component, row, below);
    if (below == back_) return b_.get(carried_[q][size_t(x.component)]);
    return carried_in_->load_at(carried_offset(x.component, plane, rows_[q].offset));
  });
  for (auto& [p, sum] : sums)
    for (const Value& v : p->target->after) sum = b_.op(ir::Op::fadd, {sum, tracer.value(v)});
  return sums;
}

Tracer::Load Sweep::residual_load(int row) {
  return [this, row, q = size_t(row)](const Datum& x) -> Id {
    if (x.kind == Access::cotangent) return cotangent_[q][size_t(x.component)];
    if (x.kind == Access::carried && size_t(x.component) < carried_own_[q].size())
      return carried_own_[q][size_t(x.component)];
    if (x.kind == Access::carried)
      return carried_in_->load_at(carried_offset(x.component, inside_plane(z_), rows_[q].offset));
    if (const int k = Channels::find(channels_.staged, x); k >= 0) return staged_value(k, row, x.at, 0);
    return own_[q][size_t(Channels::find(channels_.own, x))];
  };
}

/// Residuals and cotangents of one of the lane's rows.
void Sweep::residuals(int row) {
  const size_t q = size_t(row);
  std::array<Id, 3> own = rows_[q].own;
  own[2] = inside_plane(z_);
  edges_.differences(*tracers_[q], plan_.residuals, own, residual_load(row));
  for (size_t k = 0; k < plan_.residuals.size(); ++k) {
    const Id r = tracers_[q]->value(plan_.residuals[k]);
    const Id weight = mask_ ? b_.op(ir::Op::fmul, {seeds_[k], own_[q].back()}, ir::kNoContract) : seeds_[k];
    cotangent_[q].push_back(b_.op(ir::Op::fmul, {weight, r}, ir::kNoContract));
  }
}

void Sweep::store_cotangents(const Cell& c, const Values& values) {
  const Id base = plus(b_.get(cotangent_head_), c.cotangent);
  for (size_t k = 0; k < values.size(); ++k)
    b_.emit(ir::Op::shared_store, Type::none, {plus(base, int(k) * layout_.inner()), values[k]}, cotangents_);
}

/// Adds c^2 / m of a row: (2 w / N)^2 m R^2.
void Sweep::add_loss(int row) {
  const size_t q = size_t(row);
  const Id counts = both(owns_plane_, owned_[q]), zero = b_.number(form_.type(), 0);
  Id inverse = kNone;
  if (mask_) {
    // Masks are mostly 0 and 1: only other weights divide.
    const Id m = own_[q].back();
    const Id none = b_.op(ir::Op::feq, {m, zero}), one = b_.op(ir::Op::feq, {m, b_.number(form_.type(), 1)});
    inverse = b_.variable(b_.select(none, b_.number(sum_, 0), b_.number(sum_, 1)));
    b_.if_(b_.op(ir::Op::bnot, {either(none, one)}),
           [&] { b_.set(inverse, b_.op(ir::Op::fdiv, {b_.number(sum_, 1), b_.convert(sum_, m)})); });
  }
  for (size_t k = 0; k < plan_.residuals.size(); ++k) {
    const Id c = b_.convert(sum_, b_.select(counts, cotangent_[q][k], zero));
    const Id weighted = mask_ ? b_.op(ir::Op::fmul, {c, b_.get(inverse)}, ir::kNoContract) : c;
    const Id sum = sums_[sum_of_[k]];
    b_.set(sum, b_.op(ir::Op::fma, {weighted, c, b_.get(sum)}));
  }
}

/// The lane's own columns of the staged channels, as far as they wait in registers.
void Sweep::take_columns() {
  staged_memo_.clear();
  column_.assign(size_t(shape_.rows), {});
  for (size_t q = 0; q < column_.size(); ++q)
    for (const Values& variables : queue_[q]) {
      column_[q].emplace_back();
      for (Id variable : variables) column_[q].back().push_back(b_.get(variable));
    }
}

/// Takes what was loaded for plane z.
void Sweep::begin_residuals(Id z) {
  const size_t rows = size_t(shape_.rows);
  z_ = z;
  take_columns();
  for (size_t q = 0; q < rows; ++q)
    for (int c = 0; c < layout_.channels; ++c)
      column_[q][size_t(c)].push_back(
          shared(plus(plus(slot(forward_), rows_[q].staged), c * layout_.plane())));
  own_.assign(rows, {});
  carried_own_.assign(rows, {});
  cotangent_.assign(rows, {});
  tracers_.clear();
  next_plane_ = inside_plane(b_.op(ir::Op::imin, {plus(z, 1), plus(last_, -1)}));
  for (size_t q = 0; q < rows; ++q) {
    for (Id variable : next_[q]) own_[q].push_back(b_.get(variable));
    for (size_t k = 0; plan_.carry.reads && k < plan_.carry.gradients.size(); ++k)
      carried_own_[q].push_back(b_.get(carried_[q][k]));
    std::array<Id, 3> own = rows_[q].own;
    own[2] = inside_plane(z);
    tracers_.push_back(
        std::make_unique<Tracer>(d_, form_.type(), scalars_, own, cells_, residual_load(int(q))));
  }
}

/// Residuals of a plane: of the tile's rows, and of the cells around it.
void Sweep::residual_phase(Id z) {
  const size_t rows = size_t(shape_.rows);
  z_ = z;
  owns_plane_ = both(at_most(begin_, z), less(z, end_));
  for (int q = 0; q < shape_.rows; ++q) residuals(q);
  // Beyond an edge that does not wrap stands the edge's cell again. A row that took its neighbour from the
  // lane's registers takes the edge's cotangents too.
  neighbour_ = cotangent_;
  for (size_t q = 1; q < rows && !d_.wraps[1]; ++q)
    for (size_t k = 0; k < neighbour_[q].size(); ++k)
      neighbour_[q][k] = b_.select(less(rows_[q].y, cells_[1]), cotangent_[q][k], neighbour_[q - 1][k]);
  // The next plane's values take the registers of those that were used.
  for (size_t q = 0; q < rows; ++q) {
    load_next(rows_[q], next_plane_, next_[q]);
    load_carried(int(q), next_plane_, inside_plane(plus(z, -back_)));
    store_cotangents(rows_[q], neighbour_[q]);
  }
  for (int q = 0; q < shape_.rows; ++q) add_loss(q);
  for (int q = 0; q < shape_.rows; ++q) {
    Sums done;  // what no neighbour adds to
    for (const Pending& p : pending_)
      if (p.row == q && p.target->terms.empty()) {
        Tracer& tracer = *tracers_[size_t(q)];
        Id total = p.target->point ? tracer.value(*p.target->point) : b_.number(form_.type(), 0);
        for (const Value& v : p.target->after) total = b_.op(ir::Op::fadd, {total, tracer.value(v)});
        done.push_back({&p, total});
      }
    if (done.empty() && !carried_out_) continue;
    b_.if_(both(owns_plane_, owned_[size_t(q)]), [&] {
      const Id plane = inside_plane(z);
      store(done, plane, rows_[size_t(q)]);
      const Carry& carry = plan_.carry;
      for (size_t k = 0; carried_out_ && k < carry.cotangents.size(); ++k)
        carried_out_->store_at(
            carried_offset(int(carry.gradients.size() + k), plane, rows_[size_t(q)].offset),
            cotangent_[size_t(q)][size_t(carry.residual + carry.cotangents[k])], form_.streaming);
    });
  }
  ring();
}

/// What the step of the next plane needs of this one.
void Sweep::keep() {
  for (size_t q = 0; q < size_t(shape_.rows); ++q) {
    for (size_t c = 0; c < queue_[q].size(); ++c)
      for (size_t k = 0; k < queue_[q][c].size(); ++k) b_.set(queue_[q][c][k], column_[q][c][k + 1]);
    for (size_t k = older_cotangent_[q].size(); k-- > 0;)
      for (size_t c = 0; c < kept_cotangent_[q].size(); ++c)
        b_.set(older_cotangent_[q][k][c],
               b_.get(k > 0 ? older_cotangent_[q][k - 1][c] : kept_cotangent_[q][c]));
    for (size_t k = 0; k < kept_cotangent_[q].size(); ++k) b_.set(kept_cotangent_[q][k], neighbour_[q][k]);
  }
  for (Pending& p : pending_)
    if (p.point != kNone) b_.set(p.point, tracers_[size_t(p.row)]->value(*p.target->point));
  b_.set(head_, slot(1));
  b_.set(cotangent_head_, minus(constant(layout_.residuals * layout_.inner()), b_.get(cotangent_head_)));
}

/// One step: residuals of plane z while neighbours' cotangents of plane z - 1 go to the gradients. One
/// barrier.
void Sweep::step(Id z) {
  if (direct()) async_wait(shape_.ahead - 1);
  barrier();
  find_slots();
  fetch(plus(z, forward_ + shape_.ahead), slot(forward_ + shape_.ahead));
  begin_residuals(z);
  back_phase(plus(z, -1));
  residual_phase(z);
  keep();
}

/// Gradients of plane z, whose cotangents stand in the other half of the shared array.
void Sweep::back_phase(Id z) {
  z_ = z;
  cotangent_base_ = minus(constant(layout_.residuals * layout_.inner()), b_.get(cotangent_head_));
  cotangent_memo_.clear();
  owns_plane_ = both(at_most(begin_, z), less(z, end_));
  for (int q = 0; q < shape_.rows; ++q) back(q);
}

/// Cotangents of the cells around the tile.
void Sweep::ring() {
  for (RingPass& pass : ring_) {
    const auto work = [&] {
      const Cell& c = pass.cell;
      std::array<Id, 3> own = c.own;
      own[2] = inside_plane(z_);
      Values values;
      for (Id variable : pass.next) values.push_back(b_.get(variable));
      const Tracer::Load load = [&](const Datum& x) -> Id {
        if (const int k = Channels::find(channels_.staged, x); k >= 0)
          return shared(
              plus(plus(slot(x.at[2]), c.staged), k * layout_.plane() + x.at[1] * layout_.width + x.at[0]));
        return values[size_t(Channels::find(channels_.own, x))];
      };
      Tracer tracer(d_, form_.type(), scalars_, own, cells_, load);
      edges_.differences(tracer, plan_.residuals, own, load);
      Values cotangents;
      for (size_t k = 0; k < plan_.residuals.size(); ++k) {
        const Id r = tracer.value(plan_.residuals[k]);
        const Id weight =
            mask_ ? b_.op(ir::Op::fmul, {seeds_[k], values.back()}, ir::kNoContract) : seeds_[k];
        cotangents.push_back(b_.op(ir::Op::fmul, {weight, r}, ir::kNoContract));
      }
      load_next(c, next_plane_, pass.next);
      store_cotangents(c, cotangents);
    };
    if (pass.full)
      work();
    else
      b_.if_(pass.lane_in_ring, work);
  }
}

/// What the current plane adds to the gradients of one row; stores the plane that is complete.
void Sweep::back(int row) {
  const size_t q = size_t(row);
  const Id zero = b_.number(form_.type(), 0), plane = inside_plane(z_);
  std::array<Id, 3> own = rows_[q].own;
  own[2] = plane;
  const Tracer::Load load = [this, row](const Datum& x) -> Id {
    if (x.kind == Access::cotangent) return cotangent_value(x.component, row, x.at);
    return staged_value(Channels::find(channels_.staged, x), row, x.at, -1);
  };
  Tracer tracer(d_, form_.type(), scalars_, own, cells_, load);
  std::vector<const Target*> targets;
  for (const Pending& p : pending_)
    if (p.row == row) targets.push_back(p.target);
  const std::map<const Term*, Id> known = edges_.own_differences(tracer, targets, own, load);
  const auto own_plane = [&](const Pending& p, Id sum) {
    return tracer.add_own_plane(*p.target, sum, p.point == kNone ? kNone : b_.get(p.point),
                                [&](const Term& t) { return known.at(&t); });
  };
  Sums here, finished;
  for (const Pending& p : pending_) {
    if (p.row != row || p.target->terms.empty()) continue;
    if (p.planes.empty()) {
      const Id total = own_plane(p, kNone);
      here.push_back({&p, total == kNone ? zero : total});
      continue;
    }
    Values sums;  // of the planes z-back … z+back
    for (Id variable : p.planes) sums.push_back(b_.get(variable));
    sums.push_back(zero);
    for (int to = -back_; to <= back_; ++to) {
      Id& sum = sums[size_t(to + back_)];
      sum = to == 0 ? own_plane(p, sum) : tracer.add_to_plane(*p.target, to, sum);
    }
    finished.push_back({&p, sums[0]});
    for (size_t k = 0; k < p.planes.size(); ++k) b_.set(p.planes[k], sums[k + 1]);
  }
  if (!here.empty())
    b_.if_(both(owns_plane_, owned_[q]), [&] { store(complete(here, plane, 0), plane, rows_[q]); });
  if (finished.empty()) return;
  const Id done = plus(z_, -back_);
  b_.if_(both(both(at_most(begin_, done), less(done, end_)), owned_[q]),
         [&] { store(complete(finished, done, back_), done, rows_[q]); });
  if (!d_.wraps[2] && back_ > 0) flush(row);
}

/// No plane follows the grid's last one: what waits is complete.
void Sweep::flush(int row) {
  b_.if_(both(equal(z_, plus(cells_[2], -1)), owned_[size_t(row)]), [&] {
    for (int k = 1; k <= back_; ++k) {
      const Id plane = plus(z_, k - back_);
      Sums list;
      for (const Pending& p : pending_)
        if (p.row == row && !p.planes.empty()) list.push_back({&p, b_.get(p.planes[size_t(k - 1)])});
      b_.if_(both(at_most(begin_, plane), less(plane, end_)),
             [&] { store(complete(list, plane, back_ - k), plane, rows_[size_t(row)]); });
    }
  });
}

void Sweep::store(const Sums& list, Id plane, const Cell& c) {
  for (const auto& [p, value] : list) {
    const Target& t = *p->target;
    if (p->carried >= 0)
      carried_out_->store_at(carried_offset(p->carried, plane, c.offset), value, form_.streaming);
    else
      gradients_->buffer(outputs_[p->output])
          .store_at(offset(t.field_index, t.component, plane, c.offset), value, form_.streaming);
  }
}

}  // namespace lockstep::pde
