#include "pde/kernels/stream.hpp"

#include <fmt/format.h>

#include "pde/kernels/sweep_ops.hpp"

namespace lockstep::pde {

using ir::Id;
using ir::kNone;
using namespace sweep_ops;

Stream::Stream(const Discretisation& d, const KernelForm& form, StreamStage stage,
               const std::vector<FieldLevel>& outputs, const StreamShape& shape)
    : b_(builder()),
      d_(d),
      plan_(*d.plan),
      form_(form),
      stage_(stage),
      outputs_(outputs),
      shape_(shape),
      layout_(d, stage, outputs, shape),
      values_(stream_values(plan_, stage, outputs)),
      fields_(fields_of(plan_, values_, Access::field)),
      edges_(d, form.type(), scalars_, cells_, [this](const std::function<void()>& branch) {
        const auto memo = memo_;
        branch();
        memo_ = memo;
      }) {
  for (uint32_t leaf : autodiff::leaves_of(values_)) {
    const Access& a = plan_.accesses[leaf];
    if (a.kind != Access::field || a.stencil == Stencil::point) continue;
    const AxisOperator& op = d_.of(a.field_index, a.component, a.stencil, a.axis);
    edge_[size_t(a.axis)].widen(op.rows, op.taps, true);
  }
  if (stage == StreamStage::residual) return;
  for (const FieldLevel& o : outputs_)
    for (const Target* t : targets_of(plan_, o))
      for (const Term& term : t->terms) {
        const AxisOperator& op = d_.of(t->field_index, t->component, term.stencil, term.axis);
        EdgeWidth& width = edge_[size_t(term.axis)];
        width.widen(op.rows_t, op.taps_t, false);
        // Planes outside the grid have no weight, whatever their clamped values are.
        for (const Row& row : op.rows_t)
          if (term.axis == 2)
            (row.high ? width.high : width.low) = std::max(row.high ? width.high : width.low, row.at + 1);
      }
}

void Stream::trace() {
  declare();
  place();
  for (Place& row : rows_) {
    for (const StreamChannel& c : layout_.channels) {
      row.column.emplace_back();
      for (int k = -depth(c); k <= depth(c); ++k)
        row.column.back().push_back(b_.variable(load(c, inside_plane(plus(begin_, k)), row.offset)));
    }
    if (mask_) row.mask = b_.variable(mask_->load_at(stacked(kNone, begin_, row.offset)));
  }
  head_ = b_.variable(constant(0));
  if (layout_.staged > 0) {
    bring(begin_, constant(0));
    for (const Place& row : rows_)
      for (int c = 0; c < layout_.staged; ++c)
        share(row, c, constant(0), b_.get(row.column[size_t(c)][size_t(depth(layout_.channels[size_t(c)]))]));
  }
  b_.for_(begin_, end_, 1, [&](Id z) { step(z); });
}

void Stream::declare() {
  arrays_.emplace(plan_, fields_, form_, "", ir::Access::read);
  const bool residual = stage_ == StreamStage::residual;
  if (residual && form_.mask) mask_.emplace("mask", form_.storage, 3, ir::Access::read);
  cotangents_.emplace("cotangents", form_.scratch(), 4, residual ? ir::Access::write : ir::Access::read);
  if (!residual) gradients_.emplace(plan_, outputs_, form_, "d_", ir::Access::write);
  for (size_t a = 0; a < 3; ++a) cells_[a] = add_scalar(fmt::format("n{}", char('x' + a)), Type::i32);
  const Id chunk = add_scalar("chunk", Type::i32);
  Id number = b_.emit(ir::Op::coord, Type::i32, {}, 2);
  if (form_.batch) {
    const Id chunks = add_scalar("chunks", Type::i32);
    member_ = quotient(number, chunks);
    number = remainder(number, chunks);
  }
  scalars_ = Tracer::declare(d_, form_.type());
  for (size_t k = 0; residual && k < plan_.residuals.size(); ++k)
    seeds_.push_back(add_scalar(fmt::format("seed{}", k), form_.type()));
  if (layout_.staged > 0)
    staged_ = lockstep::detail::declare_array(true, form_.scratch(), 2 * int64_t(layout_.slot()));
  const Type index = b_.function().index_type;
  plane_cells_ = times(b_.convert(index, cells_[0]), b_.convert(index, cells_[1]));
  volume_ = times(plane_cells_, b_.convert(index, cells_[2]));
  begin_ = times(number, chunk);
  end_ = b_.op(ir::Op::imin, {plus(begin_, chunk), cells_[2]});
}

/// A coordinate that may lie outside the grid: wrapped or clamped. For coordinates that are computed once.
Id Stream::inside(int axis, Id c) {
  const Id n = cells_[size_t(axis)];
  if (!d_.wraps[size_t(axis)]) return b_.emit(ir::Op::clamp_index, Type::i32, {c, n});
  return remainder(plus(remainder(c, n), n), n);
}

/// The same along z, where no coordinate lies more than one period outside.
Id Stream::inside_plane(Id z) {
  const Id n = cells_[2];
  if (!d_.wraps[2]) return b_.emit(ir::Op::clamp_index, Type::i32, {z, n});
  const Id up = b_.select(less(z, constant(0)), plus(z, n), z);
  return b_.select(less(up, n), up, minus(up, n));
}

/// Offset in an array whose planes of all members follow each other, `number` times over (kNone: once).
Id Stream::stacked(Id number, Id plane, Id in_plane) const {
  const Type index = b_.function().index_type;
  const Id in_member = member_ == kNone ? plane : plus(times(member_, cells_[2]), plane);
  const Id at = plus(times(b_.convert(index, in_member), plane_cells_), in_plane);
  if (number == kNone) return at;
  const Id planes = b_.convert(index, cotangents_->size(1).id());
  return plus(times(times(b_.convert(index, number), planes), plane_cells_), at);
}

Id Stream::in_volume(int field_index, int component, Id plane, Id in_plane) const {
  const Type index = b_.function().index_type;
  const auto wide = [&](Id v) { return b_.convert(index, v); };
  if (form_.rows)
    return plus(times(stacked(kNone, plane, in_plane), wide(constant(FieldArrays::width(plan_)))),
                wide(constant(FieldArrays::column(plan_, field_index, component))));
  const Id in_member = plus(times(wide(plane), plane_cells_), in_plane);
  const Id number = member_ == kNone
                        ? constant(component)
                        : plus(times(member_, plan_.fields[size_t(field_index)].components), component);
  return member_ == kNone && component == 0 ? in_member : plus(times(volume_, wide(number)), in_member);
}

Id Stream::offset(const StreamChannel& c, Id plane, Id in_plane) const {
  return c.kind == Access::cotangent ? stacked(constant(c.component), plane, in_plane)
                                     : in_volume(c.field_index, c.component, plane, in_plane);
}

const RawBuffer& Stream::buffer(const StreamChannel& c) const {
  return c.kind == Access::cotangent ? *cotangents_ : arrays_->buffer({c.field_index, c.level});
}

Id Stream::load(const StreamChannel& c, Id plane, Id in_plane) const {
  return buffer(c).load_at(offset(c, plane, in_plane));
}

void Stream::place() {
  const auto id = [&](int axis) { return b_.emit(ir::Op::coord, Type::i32, {}, uint64_t(axis)); };
  const Type index = b_.function().index_type;
  lane_ = b_.emit(ir::Op::lane, Type::i32);
  const Id lane_x = b_.emit(ir::Op::local_id, Type::i32, {}, 0),
           lane_y = b_.emit(ir::Op::local_id, Type::i32, {}, 1);
  tile_ = {times(id(0), shape_.x), times(id(1), shape_.tall()), kNone};
  for (int q = 0; q < shape_.rows; ++q) {
    Place row;
    const Id down = plus(times(lane_y, shape_.rows), q), x = plus(tile_[0], lane_x), y = plus(tile_[1], down);
    row.inside = both(less(x, cells_[0]), less(y, cells_[1]));
    row.own = {inside(0, x), inside(1, y), kNone};
    row.place = plus(times(plus(down, layout_.reach[1]), layout_.width), plus(lane_x, layout_.left));
    row.offset = plus(times(b_.convert(index, row.own[1]), b_.convert(index, cells_[0])),
                      b_.convert(index, row.own[0]));
    rows_.push_back(std::move(row));
  }
  for (int axis = 0; axis < 2; ++axis) place_sides(axis);
}

/// Cells beside the tile along x in its rows, or along y in its columns. Corners are not needed.
void Stream::place_sides(int axis) {
  const int wide = shape_.wide, across = (axis == 0 ? 2 * layout_.left : shape_.x) / wide,
            copies = across * (axis == 0 ? shape_.tall() : 2 * layout_.reach[1]);
  bool needed = false;
  for (const StreamChannel& c : layout_.channels) needed |= c.spread[size_t(axis)];
  const Type index = b_.function().index_type;
  for (int from = 0; needed && from < copies; from += shape_.lanes()) {
    Side s;
    s.axis = axis;
    const Id p = plus(lane_, from);
    Id column = times(remainder(p, constant(across)), wide), row = quotient(p, constant(across));
    // The second half lies on the other side of the tile.
    if (axis == 0)
      column = b_.select(less(column, constant(layout_.left)), column, plus(column, shape_.x));
    else
      row = b_.select(less(row, constant(layout_.reach[1])), row, plus(row, shape_.tall()));
    if (axis == 0) row = plus(row, layout_.reach[1]);
    if (axis == 1) column = plus(column, layout_.left);
    const Id x = plus(plus(tile_[0], column), -layout_.left),
             y = inside(1, plus(plus(tile_[1], row), -layout_.reach[1]));
    s.place = plus(times(row, layout_.width), column);
    s.offset =
        plus(times(b_.convert(index, y), b_.convert(index, cells_[0])), b_.convert(index, inside(0, x)));
    s.guard = from + shape_.lanes() <= copies ? kNone : less(p, constant(copies));
    s.outside = kNone;
    if (wide > 1 && !d_.wraps[0]) s.outside = either(less(x, constant(0)), at_most(cells_[0], x));
    sides_.push_back(s);
  }
}

/// Starts bringing in what lies beside the tile in a plane; closes a stage of copies.
void Stream::bring(Id plane, Id slot) {
  for (const Side& s : sides_) {
    const auto copies = [&](bool outside) {
      for (int c = 0; c < layout_.staged; ++c) {
        const StreamChannel& channel = layout_.channels[size_t(c)];
        if (!channel.spread[size_t(s.axis)]) continue;
        const Id to = plus(plus(slot, s.place), c * layout_.plane());
        const Id from = offset(channel, plane, s.offset);
        if (!direct())
          b_.emit(ir::Op::shared_store, Type::none, {to, buffer(channel).load_at(from)}, staged_);
        else if (!outside)
          buffer(channel).copy_async_at(staged_, to, from, shape_.wide);
        // Beyond an edge lies the edge's cell, again and again.
        for (int k = 0; outside && k < shape_.wide; ++k)
          buffer(channel).copy_async_at(staged_, plus(to, k), from, 1);
      }
    };
    const auto guarded = [&] {
      if (s.outside == kNone)
        copies(false);
      else
        b_.if_(s.outside, [&] { copies(true); }, [&] { copies(false); });
    };
    if (s.guard == kNone)
      guarded();
    else
      b_.if_(s.guard, guarded);
  }
  if (direct()) async_commit();
}

/// Puts a lane's own value of a channel into a staged plane.
void Stream::share(const Place& row, int channel, Id slot, Id value) {
  b_.emit(ir::Op::shared_store, Type::none, {plus(plus(slot, row.place), channel * layout_.plane()), value},
          staged_);
}

void Stream::step(Id z) {
  const Id slot = b_.get(head_), other = minus(constant(layout_.slot()), slot);
  if (layout_.staged > 0) {
    if (direct()) async_wait(0);
    barrier();
  }
  // The next plane is on its way while this one is computed; the chunk's last step brings its own again.
  const Id last = plus(end_, -1), next = b_.op(ir::Op::imin, {plus(z, 1), last});
  if (layout_.staged > 0) bring(next, other);
  std::vector<Values> coming;
  Values coming_mask;
  for (const Place& row : rows_) {
    coming.emplace_back();
    for (const StreamChannel& c : layout_.channels)
      coming.back().push_back(load(c, inside_plane(plus(next, depth(c))), row.offset));
    if (mask_) coming_mask.push_back(mask_->load_at(stacked(kNone, next, row.offset)));
  }
  if (const Id edge = edge_of_group(z); edge == kNone)
    compute(z, slot, false);
  else
    b_.if_(edge, [&] { compute(z, slot, true); }, [&] { compute(z, slot, false); });
  for (size_t q = 0; q < rows_.size(); ++q) {
    const Place& row = rows_[q];
    for (size_t c = 0; c < row.column.size(); ++c) {
      const Values& column = row.column[c];
      for (size_t k = 0; k + 1 < column.size(); ++k) b_.set(column[k], b_.get(column[k + 1]));
      b_.set(column.back(), coming[q][c]);
      if (int(c) < layout_.staged)
        share(row, int(c), other, b_.get(column[size_t(depth(layout_.channels[c]))]));
    }
    if (mask_) b_.set(row.mask, coming_mask[q]);
  }
  if (layout_.staged > 0) b_.set(head_, other);
}

Kernel stream_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, StreamStage stage,
                     std::vector<FieldLevel> outputs, StreamShape shape) {
  KernelOptions options;
  options.group = {shape.x, shape.y, 1};
  options.min_blocks = shape.blocks;
  const bool residual = stage == StreamStage::residual;
  return Kernel::trace(fmt::format("pde.stream_{}.{}.{}", residual ? "residual" : "adjoint",
                                   variant(*d, form), residual ? d->plan->residuals.size() : outputs.size()),
                       ir::Domain::groups, 3, options,
                       [=](ir::Builder&) { Stream(*d, form, stage, outputs, shape).trace(); });
}

}  // namespace lockstep::pde
