#include "pde/fused/fused_sweep.hpp"

namespace lockstep::pde {

namespace {

std::vector<size_t> shared_sums(const Plan& plan) {
  std::vector<size_t> sums;
  for (size_t k = 0; k < plan.residuals.size(); ++k) {
    size_t first = 0;
    while (plan.term_of[first] != plan.term_of[k] || plan.weights[first] != plan.weights[k]) ++first;
    sums.push_back(first);
  }
  return sums;
}

bool swept(const Target& t) {
  for (const Term& term : t.terms)
    if (term.axis == 2) return true;
  return false;
}

std::optional<AnyGrid> given(bool is, const std::function<AnyGrid()>& declare) {
  return is ? std::optional(declare()) : std::nullopt;
}

}  // namespace

FusedSweep::FusedSweep(Parameters& p, const Group<3>& g, const Discretisation& d, const KernelForm& form,
                       const std::vector<FieldLevel>& outputs, const FusedShape& shape, Type sum)
    : d_(d),
      plan_(*d.plan),
      form_(form),
      outputs_(outputs),
      shape_(shape),
      sum_(sum),
      channels_(plan_),
      layout_(d, shape, channels_),
      forward_(d.forward_reach[2]),
      back_(d.reach[2]),
      sum_of_(shared_sums(plan_)),
      arrays_(p, plan_, fields_of(plan_, plan_.residuals, Access::field), form, kField),
      mask_(given(form.mask, [&] { return p.read("mask", form.storage, 3); })),
      gradients_(p, plan_, outputs, form, kGradient),
      carried_in_(given(plan_.carry.reads, [&] { return p.read("carried_in", form.scratch(), 4); })),
      carried_out_(
          given(plan_.carry.writes,
                [&] { return p.write("carried_out", form.scratch(), 4).streaming(form.streaming); })),
      partial_(p.write("partial", sum == Type::f64 ? Storage::f64 : Storage::f32, 2)),
      grid_(p, d, form),
      scalars_(p, d, form.type()),
      seeds_(seed_scalars(p, plan_, form.type())),
      staged_(form, std::max<int64_t>(1, int64_t(layout_.planes) * layout_.slot()),
              form.storage == form.scratch()),
      cotangents_(form.scratch(), 2 * int64_t(layout_.residuals) * layout_.inner()),
      lane_x_(g.local(0)),
      lane_y_(g.local(1)),
      lane_(g.lane()),
      group_((Index(g.id(2)) * g.count(1) + g.id(1)) * g.count(0) + g.id(0)),
      tile_{Index(g.id(0)) * shape.x, Index(g.id(1)) * shape.tall()},
      chunk_(grid_, g.id(2)),
      first_(d.wraps[2] ? chunk_.begin - back_ : max(chunk_.begin - back_, 0)),
      last_(d.wraps[2] ? chunk_.end + back_ : min(chunk_.end + back_, grid_.cells[2])),
      head_(Index(forward_ * layout_.slot())),
      cotangent_head_(Index(0)) {
  place_rows();
  place_ring();
  place_stages();
  expect_gradients();
}

void FusedSweep::trace() {
  start();
  {
    FusedStep step(*this, first_);
    step.residuals();
    step.keep();
  }
  for_(first_ + 1, last_, 1, [&](const Index& z) {
    staged_.wait(shape_.ahead - 1);
    barrier();
    FusedStep step(*this, z);
    step.gradients(z - 1);
    step.residuals();
    step.keep();
  });
  barrier();
  FusedStep(*this, {}).gradients(last_ - 1);
  finish();
}

void FusedSweep::place_rows() {
  const Index row = lane_y_ * shape_.rows;
  for (int q = 0; q < shape_.rows; ++q) rows_.push_back(spot(lane_x_, row + q));
}

/// The cell at a place relative to the tile. Beyond an edge that does not wrap
/// it is the edge's cell.
FusedSweep::Spot FusedSweep::spot(const Index& column, const Index& row) const {
  const Index x = tile_[0] + column, y = tile_[1] + row;
  const Index own_x = grid_.inside(0, x), own_y = grid_.inside(1, y);
  const Index staged_column = d_.wraps[0] ? column : own_x - tile_[0],
              staged_row = d_.wraps[1] ? row : own_y - tile_[1];
  return {x,
          y,
          own_x,
          own_y,
          (staged_row + layout_.margin) * layout_.width + (staged_column + layout_.left),
          (row + layout_.halo) * layout_.inner_width + (column + layout_.halo),
          grid_.in_plane(own_x, own_y),
          x < grid_.cells[0] && y < grid_.cells[1]};
}

/// Lanes that also take a cell around the tile: first the columns left and
/// right, then the rows below and above. Corners are not needed.
void FusedSweep::place_ring() {
  const int h = layout_.halo, tall = shape_.tall(), sides = 2 * h * tall, all = sides + 2 * h * shape_.x;
  if (h == 0) return;
  for (int from = 0; from < all; from += shape_.lanes()) {
    const Index e = lane_ + from, f = e - sides;
    const Val<bool> at_side = e < sides;
    const auto outward = [&](const Index& along, int size) {
      return select(along < h, along - h, along + (size - h));
    };
    const Index column = select(at_side, outward(e % (2 * h), shape_.x), f % shape_.x);
    const Index row = select(at_side, e / (2 * h), outward(f / shape_.x, tall));
    ring_.push_back({e < all, from + shape_.lanes() <= all, spot(column, row), zeros(own_channels())});
  }
}

void FusedSweep::place_stages() {
  const int across = layout_.width / shape_.wide, copies = across * layout_.height;
  for (int from = 0; from < copies; from += shape_.lanes()) {
    const Index p = lane_ + from;
    stages_.emplace_back(grid_, lane_, from, shape_.lanes(), copies, layout_.width, shape_.wide,
                         p % across * shape_.wide, p / across,
                         std::array{tile_[0] - layout_.left, tile_[1] - layout_.margin});
  }
}

FusedSweep::Variables FusedSweep::zeros(size_t count) const {
  Variables list;
  for (size_t k = 0; k < count; ++k) list.emplace_back(AnyVal::number(form_.type(), 0));
  return list;
}

void FusedSweep::expect_gradients() {
  for (size_t k = 0; k < plan_.residuals.size(); ++k) {
    sums_.emplace_back();
    if (sum_of_[k] == k) sums_.back().emplace(AnyVal::number(sum_, 0));
  }
  const auto expect = [&](int row, size_t output, const Target& t, int carried) {
    Pending p{row, output, &t, zeros(swept(t) ? size_t(2 * back_) : 0), {}, carried};
    if (t.point && !t.terms.empty()) p.point.emplace(AnyVal::number(form_.type(), 0));
    pending_.push_back(std::move(p));
  };
  for (int q = 0; q < shape_.rows; ++q) {
    for (size_t o = 0; o < outputs_.size(); ++o)
      for (const Target* t : targets_of(plan_, outputs_[o]))
        if (plan_.carry.row_left(*t) < 0) expect(q, o, *t, -1);
    for (const Target& t : plan_.targets)
      if (const int row = plan_.carry.row_left(t); row >= 0) expect(q, 0, t, row);
  }
}

/// Brings the planes around the first one in; slot k of the ring holds plane
/// first - forward + k.
void FusedSweep::start() {
  for (int k = -forward_; k < forward_ + shape_.ahead; ++k)
    fetch(first_ + k, (k + forward_) * layout_.slot());
  const Index first_plane = grid_.inside_plane(first_);
  for (size_t q = 0; q < rows_.size(); ++q) {
    next_.push_back(zeros(own_channels()));
    load_next(rows_[q], first_plane, next_.back());
    carried_.push_back(zeros(plan_.carry.reads ? size_t(plan_.carry.rows()) : 0));
    load_carried(int(q), first_plane, {});
  }
  for (RingPass& pass : ring_) {
    const auto load = [&] { load_next(pass.spot, first_plane, pass.next); };
    if (pass.full)
      load();
    else
      if_(pass.lane_in_ring, load);
  }
  staged_.wait(shape_.ahead - 1);
  barrier();
  for (const Spot& row : rows_) {
    queue_.emplace_back();
    for (int c = 0; c < layout_.channels; ++c) {
      queue_.back().emplace_back();
      for (int k = 0; k < 2 * forward_; ++k)
        queue_.back().back().emplace_back(
            staged_.load(row.staged + (k * layout_.slot() + c * layout_.plane())));
    }
    kept_cotangent_.push_back(zeros(plan_.residuals.size()));
    older_cotangent_.emplace_back();
    for (int k = 0; follows() && back_ > 1 && k < back_; ++k)
      older_cotangent_.back().push_back(zeros(plan_.residuals.size()));
  }
}

/// The group's sums of squared cotangents.
void FusedSweep::finish() {
  for (size_t k = 0; k < sums_.size(); ++k) {
    const AnyVal total = sums_[k] ? group_sum(*sums_[k]) : AnyVal::number(sum_, 0);
    if_(lane_ == 0, [&] { partial_.store({int(k), group_}, total); });
  }
}

Index FusedSweep::offset(int field_index, int component, const Index& plane, const Index& in_plane) const {
  return field_offset(grid_, chunk_, form_, field_index, component, plane, in_plane);
}

Index FusedSweep::mask_offset(const Index& plane, const Index& in_plane) const {
  return chunk_.member_plane(grid_, plane).offset() * grid_.plane_cells + in_plane;
}

Index FusedSweep::carried_offset(int row, const Index& plane, const Index& in_plane) const {
  const Index number = chunk_.member.empty() ? Index(row) : chunk_.member * plan_.carry.rows() + row;
  return grid_.volume * number.offset() + plane.offset() * grid_.plane_cells + in_plane;
}

bool FusedSweep::follows() const {
  for (const Pending& p : pending_)
    if (!p.target->after.empty()) return true;
  return false;
}

/// Starts bringing a plane of all staged channels in; closes a stage of copies.
void FusedSweep::fetch(const Index& plane, const Index& slot) const {
  const Index z = grid_.inside_plane(plane);
  for (const StagePlace& s : stages_)
    s.run([&](bool beyond) {
      for (size_t c = 0; c < channels_.staged.size(); ++c) {
        const Channel& channel = channels_.staged[c];
        const Index to = slot + s.place + int(c) * layout_.plane(),
                    from = offset(channel.field_index, channel.component, z, s.offset);
        staged_.bring(arrays_.buffer({channel.field_index, channel.level}), to, from, shape_.wide, beyond);
      }
    });
  staged_.close();
}

/// Loads what enters at a cell alone, for the step that takes `plane` as its
/// own. Neighbouring tiles read the cells around theirs again, so these loads
/// stay in the cache.
void FusedSweep::load_next(const Spot& c, const Index& plane, Variables& next) const {
  for (size_t k = 0; k < channels_.own.size(); ++k) {
    const Channel& channel = channels_.own[k];
    next[k] = arrays_.buffer({channel.field_index, channel.level})
                  .load_at(offset(channel.field_index, channel.component, plane, c.offset));
  }
  if (mask_) next.back() = mask_->load_at(mask_offset(plane, c.offset));
}

/// Loads what the part of a trajectory before this one left: gradients at the
/// plane that comes next, cotangents at the one that will be done then.
void FusedSweep::load_carried(int row, const Index& above, const Index& below) {
  for (size_t k = 0; k < carried_[size_t(row)].size(); ++k) {
    const Index& plane = k < plan_.carry.gradients.size() ? above : below;
    if (plane.empty()) continue;
    carried_[size_t(row)][k] = carried_in_->load_at(carried_offset(int(k), plane, rows_[size_t(row)].offset));
  }
}

}  // namespace lockstep::pde
