#include "pde/halves/half_sweep.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::pde {

namespace {

/// Cells at the ends of each axis whose rows differ from the inner ones.
std::array<EdgeWidth, 3> edge_widths(const Discretisation& d, const std::vector<Value>& values,
                                     std::span<const FieldLevel> gradients) {
  std::array<EdgeWidth, 3> widths;
  for (uint32_t leaf : autodiff::leaves_of(values)) {
    const Access& a = d.plan->accesses[leaf];
    if (a.kind != Access::field || a.stencil == Stencil::point) continue;
    const AxisOperator& op = d.of(a.field_index, a.component, a.stencil, a.axis);
    widths[size_t(a.axis)].widen(op.rows, op.taps);
  }
  for (const FieldLevel& o : gradients)
    for (const Target* t : targets_of(*d.plan, o))
      for (const Term& term : t->terms) {
        const AxisOperator& op = d.of(t->field_index, t->component, term.stencil, term.axis);
        EdgeWidth& width = widths[size_t(term.axis)];
        width.widen(op.rows_t, op.taps_t);
        // Planes outside the grid have zero weight, regardless of their clamped values.
        for (const Row& row : op.rows_t)
          if (term.axis == 2)
            (row.high ? width.high : width.low) = std::max(row.high ? width.high : width.low, row.at + 1);
      }
  return widths;
}

}  // namespace

HalfSweep::HalfSweep(Parameters& p, const Group<3>& g, const Discretisation& d, const KernelForm& form,
                     SweepHalf half, const std::vector<FieldLevel>& outputs, const HalfShape& shape)
    : d_(d),
      plan_(*d.plan),
      form_(form),
      half_(half),
      outputs_(outputs),
      shape_(shape),
      layout_(d, half, outputs, shape),
      values_(half_values(plan_, half, outputs)),
      arrays_(p, plan_, fields_of(plan_, values_, Access::field), form, kField),
      mask_(half == SweepHalf::residual && form.mask ? std::optional(p.read("mask", form.storage, 3))
                                                     : std::nullopt),
      cotangents_(half == SweepHalf::residual ? p.write("cotangents", form.scratch(), 4)
                                              : p.read("cotangents", form.scratch(), 4)),
      gradients_(half == SweepHalf::adjoint
                     ? std::optional<FieldArrays>(std::in_place, p, plan_, outputs, form, kGradient)
                     : std::nullopt),
      grid_(p, d, form),
      chunk_(grid_, g.id(2)),
      scalars_(p, d, form.type()),
      seeds_(half == SweepHalf::residual ? seed_scalars(p, plan_, form.type()) : Values()),
      lane_(g.lane()),
      lane_x_(g.local(0)),
      lane_y_(g.local(1)),
      tile_{Index(g.id(0)) * shape.x, Index(g.id(1)) * shape.tall()},
      edge_(edge_widths(d, values_,
                        half == SweepHalf::adjoint ? std::span(outputs) : std::span<const FieldLevel>())) {
  const bool direct = form.storage == form.scratch() && !form.rows;
  if (layout_.staged > 0) staged_.emplace(form, 2 * int64_t(layout_.slot()), direct);
  place_rows();
  for (int axis = 0; axis < 2; ++axis) place_sides(axis);
}

void HalfSweep::trace() {
  for (Place& row : rows_) {
    for (const HalfChannel& c : layout_.channels) {
      row.column.emplace_back();
      for (int k = -depth(c); k <= depth(c); ++k)
        row.column.back().emplace_back(load(c, grid_.inside_plane(chunk_.begin + k), row.offset));
    }
    if (mask_) row.mask.emplace(mask_->load_at(stacked({}, chunk_.begin, row.offset)));
  }
  head_.emplace(Index(0));
  if (staged_) {
    bring(chunk_.begin, 0);
    for (const Place& row : rows_)
      for (int c = 0; c < layout_.staged; ++c)
        share(row, c, 0, row.column[size_t(c)][size_t(depth(layout_.channels[size_t(c)]))]);
  }
  for_(chunk_.begin, chunk_.end, 1, [&](const Index& z) { step(z); });
}

/// Offset in an array whose planes of all members follow each other, `number` times over (empty: once).
Index HalfSweep::stacked(const Index& number, const Index& plane, const Index& in_plane) const {
  const Index at = chunk_.member_plane(grid_, plane).offset() * grid_.plane_cells + in_plane;
  if (number.empty()) return at;
  const Index planes = Index(cotangents_.size(1)).offset();
  return number.offset() * planes * grid_.plane_cells + at;
}

Index HalfSweep::in_volume(int field_index, int component, const Index& plane, const Index& in_plane) const {
  return field_offset(grid_, chunk_, form_, field_index, component, plane, in_plane);
}

Index HalfSweep::offset(const HalfChannel& c, const Index& plane, const Index& in_plane) const {
  return c.kind == Access::cotangent ? stacked(c.component, plane, in_plane)
                                     : in_volume(c.field_index, c.component, plane, in_plane);
}

const AnyGrid& HalfSweep::buffer(const HalfChannel& c) const {
  return c.kind == Access::cotangent ? cotangents_ : arrays_.buffer({c.field_index, c.level});
}

AnyVal HalfSweep::load(const HalfChannel& c, const Index& plane, const Index& in_plane) const {
  return buffer(c).load_at(offset(c, plane, in_plane));
}

void HalfSweep::place_rows() {
  for (int q = 0; q < shape_.rows; ++q) {
    const Index down = lane_y_ * shape_.rows + q, x = tile_[0] + lane_x_, y = tile_[1] + down;
    const Val<bool> inside = x < grid_.cells[0] && y < grid_.cells[1];
    const Index own_x = grid_.inside(0, x), own_y = grid_.inside(1, y);
    rows_.push_back({own_x,
                     own_y,
                     inside,
                     (down + layout_.reach[1]) * layout_.width + (lane_x_ + layout_.left),
                     grid_.in_plane(own_x, own_y),
                     {},
                     {}});
  }
}

/// Cells next to the tile along x in its rows, or along y in its columns. Corners are not needed.
void HalfSweep::place_sides(int axis) {
  const int wide = shape_.wide, across = (axis == 0 ? 2 * layout_.left : shape_.x) / wide,
            copies = across * (axis == 0 ? shape_.tall() : 2 * layout_.reach[1]);
  bool needed = false;
  for (const HalfChannel& c : layout_.channels) needed |= c.spread[size_t(axis)];
  for (int from = 0; needed && from < copies; from += shape_.lanes()) {
    const Index p = lane_ + from;
    Index column = p % across * wide, row = p / across;
    // The second half lies on the other side of the tile.
    if (axis == 0)
      column = select(column < layout_.left, column, column + shape_.x);
    else
      row = select(row < layout_.reach[1], row, row + shape_.tall());
    if (axis == 0) row = row + layout_.reach[1];
    if (axis == 1) column = column + layout_.left;
    sides_.push_back({axis, StagePlace(grid_, lane_, from, shape_.lanes(), copies, layout_.width, wide,
                                       column, row, {tile_[0] - layout_.left, tile_[1] - layout_.reach[1]})});
  }
}

/// Starts loading the cells next to the tile in a plane; closes a stage of copies.
void HalfSweep::bring(const Index& plane, const Index& slot) const {
  for (const Side& s : sides_)
    s.at.run([&](bool beyond) {
      for (int c = 0; c < layout_.staged; ++c) {
        const HalfChannel& channel = layout_.channels[size_t(c)];
        if (!channel.spread[size_t(s.axis)]) continue;
        const Index to = slot + s.at.place + c * layout_.plane(), from = offset(channel, plane, s.at.offset);
        staged_->bring(buffer(channel), to, from, shape_.wide, beyond);
      }
    });
  staged_->close();
}

/// Puts a lane's own value of a channel into a staged plane.
void HalfSweep::share(const Place& row, int channel, const Index& slot, const AnyVal& value) const {
  staged_->array().store(slot + row.place + channel * layout_.plane(), value);
}

void HalfSweep::step(const Index& z) {
  const Index slot = *head_, other = layout_.slot() - slot;
  if (staged_) {
    staged_->wait(0);
    barrier();
  }
  // The next plane is on its way while this one is computed; the chunk's last step brings its own again.
  const Index next = min(z + 1, chunk_.end - 1);
  if (staged_) bring(next, other);
  std::vector<Values> coming;
  Values coming_mask;
  for (const Place& row : rows_) {
    coming.emplace_back();
    for (const HalfChannel& c : layout_.channels)
      coming.back().push_back(load(c, grid_.inside_plane(next + depth(c)), row.offset));
    if (mask_) coming_mask.push_back(mask_->load_at(stacked({}, next, row.offset)));
  }
  if (const auto edge = edge_of_group(z))
    if_(*edge, [&] { compute(z, slot, true); }, [&] { compute(z, slot, false); });
  else
    compute(z, slot, false);
  for (size_t q = 0; q < rows_.size(); ++q) {
    Place& row = rows_[q];
    for (size_t c = 0; c < row.column.size(); ++c) {
      std::vector<AnyVar>& column = row.column[c];
      for (size_t k = 0; k + 1 < column.size(); ++k) column[k] = column[k + 1];
      column.back() = coming[q][c];
      if (int(c) < layout_.staged) share(row, int(c), other, column[size_t(depth(layout_.channels[c]))]);
    }
    if (mask_) *row.mask = coming_mask[q];
  }
  if (staged_) *head_ = other;
}

Kernel half_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, SweepHalf half,
                   std::vector<FieldLevel> outputs, HalfShape shape) {
  KernelOptions options;
  options.group = {shape.x, shape.y, 1};
  options.min_blocks = shape.blocks;
  const bool residual = half == SweepHalf::residual;
  const std::string name =
      fmt::format("pde.half_{}.{}.{}", residual ? "residual" : "adjoint", variant(*d, form),
                  residual ? d->plan->residuals.size() : outputs.size());
  return kernel(
      name, [&](Group<3> g, Parameters& p) { HalfSweep(p, g, *d, form, half, outputs, shape).trace(); },
      options);
}

}  // namespace lockstep::pde
