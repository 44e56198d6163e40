#include "pde/kernels/sweep.hpp"

#include <fmt/format.h>

#include "pde/kernels/sweep_ops.hpp"

namespace lockstep::pde {

using ir::Id;
using ir::kNone;
using namespace sweep_ops;

Sweep::Sweep(const Discretisation& d, const KernelForm& form, const std::vector<FieldLevel>& outputs,
             const FusedShape& shape, Type sum)
    : b_(builder()),
      d_(d),
      plan_(*d.plan),
      form_(form),
      outputs_(outputs),
      shape_(shape),
      sum_(sum),
      channels_(plan_),
      layout_(d, shape, channels_),
      forward_(d.forward_reach[2]),
      back_(d.reach[2]),
      fields_(fields_of(plan_, plan_.residuals, Access::field)),
      edges_(d, form.type(), scalars_, cells_, [this](const std::function<void()>& branch) {
        const auto staged = staged_memo_;
        const auto cotangents = cotangent_memo_;
        branch();
        staged_memo_ = staged;
        cotangent_memo_ = cotangents;
      }) {
  for (size_t k = 0; k < plan_.residuals.size(); ++k) {
    size_t first = 0;
    while (plan_.term_of[first] != plan_.term_of[k] || plan_.weights[first] != plan_.weights[k]) ++first;
    sum_of_.push_back(first);
  }
}

bool Sweep::swept(const Target& t) {
  for (const Term& term : t.terms)
    if (term.axis == 2) return true;
  return false;
}

void Sweep::trace() {
  declare();
  place();
  place_ring();
  place_stages();
  const size_t rows = size_t(shape_.rows);
  for (size_t k = 0; k < plan_.residuals.size(); ++k)
    sums_.push_back(sum_of_[k] == k ? b_.variable(b_.number(sum_, 0)) : kNone);
  const Id zero = b_.number(form_.type(), 0);
  const auto expect = [&](int row, size_t output, const Target& t, int carried) {
    Pending p{row, output, &t, {}, t.point && !t.terms.empty() ? b_.variable(zero) : kNone, carried};
    for (int k = 0; swept(t) && k < 2 * back_; ++k) p.planes.push_back(b_.variable(zero));
    pending_.push_back(std::move(p));
  };
  for (int q = 0; q < shape_.rows; ++q) {
    for (size_t o = 0; o < outputs_.size(); ++o)
      for (const Target* t : targets_of(plan_, outputs_[o]))
        if (plan_.carry.row_left(*t) < 0) expect(q, o, *t, -1);
    for (const Target& t : plan_.targets)
      if (const int row = plan_.carry.row_left(t); row >= 0) expect(q, 0, t, row);
  }

  // Planes around the first one; slot k of the ring holds plane first - forward + k.
  for (int k = -forward_; k < forward_ + shape_.ahead; ++k)
    fetch(plus(first_, k), constant((k + forward_) * layout_.slot()));
  head_ = b_.variable(constant(forward_ * layout_.slot()));
  cotangent_head_ = b_.variable(constant(0));
  const auto variables = [&](size_t count) {
    Values list;
    for (size_t k = 0; k < count; ++k) list.push_back(b_.variable(zero));
    return list;
  };
  const size_t own = channels_.own.size() + (form_.mask ? 1 : 0);
  const Id first_plane = inside_plane(first_);
  for (size_t q = 0; q < rows; ++q) {
    next_.push_back(variables(own));
    load_next(rows_[q], first_plane, next_.back());
    carried_.push_back(variables(plan_.carry.reads ? size_t(plan_.carry.rows()) : 0));
    load_carried(int(q), first_plane, kNone);
  }
  for (RingPass& pass : ring_) {
    pass.next = variables(own);
    const auto load = [&] { load_next(pass.cell, first_plane, pass.next); };
    if (pass.full)
      load();
    else
      b_.if_(pass.lane_in_ring, load);
  }
  if (direct()) async_wait(shape_.ahead - 1);
  barrier();
  for (size_t q = 0; q < rows; ++q) {
    queue_.emplace_back();
    for (int c = 0; c < layout_.channels; ++c) {
      queue_.back().push_back(variables(size_t(2 * forward_)));
      for (int k = 0; k < 2 * forward_; ++k)
        b_.set(queue_.back().back()[size_t(k)],
               shared(plus(rows_[q].staged, k * layout_.slot() + c * layout_.plane())));
    }
  }

  for (size_t q = 0; q < rows; ++q) {
    kept_cotangent_.push_back(variables(plan_.residuals.size()));
    older_cotangent_.emplace_back();
    for (int k = 0; follows() && back_ > 1 && k < back_; ++k)
      older_cotangent_.back().push_back(variables(plan_.residuals.size()));
  }
  find_slots();
  fetch(plus(first_, forward_ + shape_.ahead), slot(forward_ + shape_.ahead));
  begin_residuals(first_);
  residual_phase(first_);
  keep();
  b_.for_(plus(first_, 1), last_, 1, [&](Id z) { step(z); });
  barrier();
  find_slots();
  take_columns();
  back_phase(plus(last_, -1));

  for (size_t k = 0; k < sums_.size(); ++k) {
    Id total = b_.number(sum_, 0);
    if (sums_[k] != kNone)
      total = b_.emit(ir::Op::group_reduce, sum_, {b_.get(sums_[k])}, uint64_t(ir::Reduction::add));
    b_.if_(equal(lane_, constant(0)), [&] { partial_->store({constant(int(k)), group_}, total); });
  }
}

void Sweep::declare() {
  arrays_.emplace(plan_, fields_, form_, "", ir::Access::read);
  if (form_.mask) mask_.emplace("mask", form_.storage, 3, ir::Access::read);
  gradients_.emplace(plan_, outputs_, form_, "d_", ir::Access::write);
  if (plan_.carry.reads) carried_in_.emplace("carried_in", form_.scratch(), 4, ir::Access::read);
  if (plan_.carry.writes) carried_out_.emplace("carried_out", form_.scratch(), 4, ir::Access::write);
  partial_.emplace("partial", sum_ == Type::f64 ? Storage::f64 : Storage::f32, 2, ir::Access::write);
  for (size_t a = 0; a < 3; ++a) cells_[a] = add_scalar(fmt::format("n{}", char('x' + a)), Type::i32);
  chunk_ = add_scalar("chunk", Type::i32);
  if (form_.batch) chunks_ = add_scalar("chunks", Type::i32);
  scalars_ = Tracer::declare(d_, form_.type());
  for (size_t k = 0; k < plan_.residuals.size(); ++k)
    seeds_.push_back(add_scalar(fmt::format("seed{}", k), form_.type()));
  staged_ = lockstep::detail::declare_array(true, form_.scratch(),
                                            std::max<int64_t>(1, int64_t(layout_.planes) * layout_.slot()));
  cotangents_ = lockstep::detail::declare_array(true, form_.scratch(),
                                                2 * int64_t(layout_.residuals) * layout_.inner());
  const Type index = b_.function().index_type;
  plane_cells_ = times(b_.convert(index, cells_[0]), b_.convert(index, cells_[1]));
  volume_ = times(plane_cells_, b_.convert(index, cells_[2]));
}

/// A coordinate that may lie outside the grid: wrapped or clamped. For coordinates that are computed once.
Id Sweep::inside(int axis, Id c) {
  const Id n = cells_[size_t(axis)];
  if (!d_.wraps[size_t(axis)]) return b_.emit(ir::Op::clamp_index, Type::i32, {c, n});
  return remainder(plus(remainder(c, n), n), n);
}

/// The same along z, where no coordinate lies more than one period outside.
Id Sweep::inside_plane(Id z) {
  const Id n = cells_[2];
  if (!d_.wraps[2]) return b_.emit(ir::Op::clamp_index, Type::i32, {z, n});
  const Id up = b_.select(less(z, constant(0)), plus(z, n), z);
  return b_.select(less(up, n), up, minus(up, n));
}

/// Offset of a component at a cell, whose place in its plane is `in_plane`.
Id Sweep::offset(int field_index, int component, Id plane, Id in_plane) {
  const Type index = b_.function().index_type;
  const auto constant_of = [&](int v) { return b_.convert(index, constant(v)); };
  if (form_.rows) {
    const Id cell = plus(times(b_.convert(index, member_plane(plane)), plane_cells_), in_plane);
    const int column = FieldArrays::column(plan_, field_index, component);
    const Id row = times(cell, constant_of(FieldArrays::width(plan_)));
    return column == 0 ? row : plus(row, constant_of(column));
  }
  Id base = times(b_.convert(index, plane), plane_cells_);
  if (member_ != kNone) {
    const Id first = times(member_, plan_.fields[size_t(field_index)].components);
    base = plus(base, times(volume_, b_.convert(index, plus(first, component))));
  } else if (component != 0) {
    base = plus(base, times(volume_, constant_of(component)));
  }
  return plus(base, in_plane);
}

Id Sweep::member_plane(Id plane) { return member_ == kNone ? plane : plus(times(member_, cells_[2]), plane); }

Id Sweep::mask_offset(Id plane, Id in_plane) {
  return plus(times(b_.convert(b_.function().index_type, member_plane(plane)), plane_cells_), in_plane);
}

Id Sweep::carried_offset(int row, Id plane, Id in_plane) {
  const Type index = b_.function().index_type;
  const Id number = member_ == kNone ? constant(row) : plus(times(member_, plan_.carry.rows()), row);
  return plus(plus(times(volume_, b_.convert(index, number)), times(b_.convert(index, plane), plane_cells_)),
              in_plane);
}

bool Sweep::follows() const {
  for (const Pending& p : pending_)
    if (!p.target->after.empty()) return true;
  return false;
}

const RawBuffer& Sweep::buffer_of(const Channel& c) const {
  return arrays_->buffer({c.field_index, c.level});
}

void Sweep::place() {
  const auto id = [&](int axis) { return b_.emit(ir::Op::coord, Type::i32, {}, uint64_t(axis)); };
  const auto count = [&](int axis) { return b_.emit(ir::Op::extent, Type::i32, {}, uint64_t(axis)); };
  lane_x_ = b_.emit(ir::Op::local_id, Type::i32, {}, 0);
  lane_y_ = b_.emit(ir::Op::local_id, Type::i32, {}, 1);
  lane_ = b_.emit(ir::Op::lane, Type::i32);
  group_ = plus(times(plus(times(id(2), count(1)), id(1)), count(0)), id(0));
  tile_x_ = times(id(0), shape_.x);
  tile_y_ = times(id(1), shape_.tall());
  Id chunk_number = id(2);
  if (form_.batch) {
    member_ = quotient(chunk_number, chunks_);
    chunk_number = remainder(chunk_number, chunks_);
  }
  begin_ = times(chunk_number, chunk_);
  end_ = b_.op(ir::Op::imin, {plus(begin_, chunk_), cells_[2]});
  first_ = plus(begin_, -back_);
  last_ = plus(end_, back_);
  if (!d_.wraps[2]) {
    first_ = b_.op(ir::Op::imax, {first_, constant(0)});
    last_ = b_.op(ir::Op::imin, {last_, cells_[2]});
  }
  const Id row = times(lane_y_, shape_.rows);
  for (int q = 0; q < shape_.rows; ++q) {
    rows_.push_back(cell(lane_x_, plus(row, q)));
    owned_.push_back(both(less(rows_.back().x, cells_[0]), less(rows_.back().y, cells_[1])));
  }
}

/// The cell at a place relative to the tile. Beyond an edge that does not wrap it is the edge's cell.
Sweep::Cell Sweep::cell(Id column, Id row) {
  Cell c;
  c.x = plus(tile_x_, column);
  c.y = plus(tile_y_, row);
  c.own = {inside(0, c.x), inside(1, c.y), kNone};
  const Id staged_column = d_.wraps[0] ? column : minus(c.own[0], tile_x_),
           staged_row = d_.wraps[1] ? row : minus(c.own[1], tile_y_);
  c.staged = plus(times(plus(staged_row, layout_.margin), layout_.width), plus(staged_column, layout_.left));
  c.cotangent = plus(times(plus(row, layout_.halo), layout_.inner_width), plus(column, layout_.halo));
  const Type index = b_.function().index_type;
  c.offset =
      plus(times(b_.convert(index, c.own[1]), b_.convert(index, cells_[0])), b_.convert(index, c.own[0]));
  return c;
}

/// Lanes that also take a cell around the tile: first the columns left and right, then the rows below and
/// above. Corners are not needed.
void Sweep::place_ring() {
  const int h = layout_.halo, tall = shape_.tall(), sides = 2 * h * tall, all = sides + 2 * h * shape_.x;
  if (h == 0) return;
  for (int from = 0; from < all; from += shape_.lanes()) {
    RingPass pass;
    const Id e = plus(lane_, from);
    pass.full = from + shape_.lanes() <= all;
    pass.lane_in_ring = less(e, constant(all));
    const Id at_side = less(e, constant(sides));
    const auto outward = [&](Id along, int size) {
      return b_.select(less(along, constant(h)), plus(along, -h), plus(along, size - h));
    };
    const Id f = plus(e, -sides);
    const Id column = b_.select(at_side, outward(remainder(e, constant(2 * h)), shape_.x),
                                remainder(f, constant(shape_.x)));
    const Id row =
        b_.select(at_side, quotient(e, constant(2 * h)), outward(quotient(f, constant(shape_.x)), tall));
    pass.cell = cell(column, row);
    ring_.push_back(std::move(pass));
  }
}

void Sweep::place_stages() {
  const Type index = b_.function().index_type;
  const int across = layout_.width / shape_.wide, copies = across * layout_.height;
  for (int from = 0; from < copies; from += shape_.lanes()) {
    StagePlace s;
    const Id p = plus(lane_, from);
    const Id row = quotient(p, constant(across)), column = times(remainder(p, constant(across)), shape_.wide);
    const Id x = plus(plus(tile_x_, column), -layout_.left),
             y = inside(1, plus(plus(tile_y_, row), -layout_.margin));
    s.place = plus(times(row, layout_.width), column);
    s.offset =
        plus(times(b_.convert(index, y), b_.convert(index, cells_[0])), b_.convert(index, inside(0, x)));
    s.guard = from + shape_.lanes() <= copies ? kNone : less(p, constant(copies));
    s.outside = kNone;
    if (shape_.wide > 1 && !d_.wraps[0]) s.outside = either(less(x, constant(0)), at_most(cells_[0], x));
    stages_.push_back(s);
  }
}

/// Starts bringing a plane of all staged channels in; closes a stage of copies.
void Sweep::fetch(Id plane, Id slot) {
  const Id z = inside_plane(plane);
  for (const StagePlace& s : stages_) {
    const auto copy = [&](const Channel& channel, Id to, int lanes) {
      const Id from = offset(channel.field_index, channel.component, z, s.offset);
      if (direct())
        buffer_of(channel).copy_async_at(staged_, to, from, lanes);
      else
        b_.emit(ir::Op::shared_store, Type::none, {to, buffer_of(channel).load_at(from)}, staged_);
    };
    const auto all = [&](bool outside) {
      for (size_t c = 0; c < channels_.staged.size(); ++c) {
        const Id to = plus(plus(slot, s.place), int(c) * layout_.plane());
        if (!outside) copy(channels_.staged[c], to, shape_.wide);
        // Beyond an edge lies the edge's cell, again and again.
        for (int k = 0; outside && k < shape_.wide; ++k) copy(channels_.staged[c], plus(to, k), 1);
      }
    };
    const auto guarded = [&] {
      if (s.outside == kNone)
        all(false);
      else
        b_.if_(s.outside, [&] { all(true); }, [&] { all(false); });
    };
    if (s.guard == kNone)
      guarded();
    else
      b_.if_(s.guard, guarded);
  }
  if (direct()) async_commit();
}

/// Loads what enters at a cell alone, for the step that takes `plane` as its own. Neighbouring tiles read the
/// cells around theirs again, so these loads stay in the cache.
void Sweep::load_next(const Cell& c, Id plane, Values& next) {
  for (size_t k = 0; k < channels_.own.size(); ++k) {
    const Channel& channel = channels_.own[k];
    b_.set(next[k],
           buffer_of(channel).load_at(offset(channel.field_index, channel.component, plane, c.offset)));
  }
  if (mask_) b_.set(next.back(), mask_->load_at(mask_offset(plane, c.offset)));
}

/// Loads what the part of a trajectory before this one left: gradients at the plane that comes next,
/// cotangents at the one that will be done then.
void Sweep::load_carried(int row, Id above, Id below) {
  for (size_t k = 0; k < carried_[size_t(row)].size(); ++k) {
    const Id plane = k < plan_.carry.gradients.size() ? above : below;
    if (plane == kNone) continue;
    b_.set(carried_[size_t(row)][k],
           carried_in_->load_at(carried_offset(int(k), plane, rows_[size_t(row)].offset)));
  }
}

}  // namespace lockstep::pde
