#include "pde/fused.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::pde {

using ir::Id;
using ir::kNone;

namespace {

ir::Builder& builder() { return lockstep::detail::builder(); }
Id constant(int v) { return builder().i32(v); }
Id plus(Id a, Id b) { return builder().op(ir::Op::iadd, {a, b}, ir::kNoWrap); }
Id minus(Id a, Id b) { return builder().op(ir::Op::isub, {a, b}, ir::kNoWrap); }
Id times(Id a, Id b) { return builder().op(ir::Op::imul, {a, b}, ir::kNoWrap); }
Id remainder(Id a, Id b) { return builder().op(ir::Op::irem, {a, b}); }
Id quotient(Id a, Id b) { return builder().op(ir::Op::idiv, {a, b}); }
Id less(Id a, Id b) { return builder().op(ir::Op::ilt, {a, b}); }
Id both(Id a, Id b) { return builder().op(ir::Op::band, {a, b}); }

/// One component of a field at a level.
struct Channel {
  int field_index, level, component;
  friend bool operator==(const Channel&, const Channel&) = default;
};

void add_channel(std::vector<Channel>& list, const Access& a) {
  const Channel c{a.field_index, a.level, a.component};
  if (std::find(list.begin(), list.end(), c) == list.end()) list.push_back(c);
}

/// Channels with differences pass through shared memory; the others are read at the lane's own cell.
struct Channels {
  std::vector<Channel> staged, own;

  explicit Channels(const Plan& plan) {
    const std::vector<uint32_t> leaves = autodiff::leaves_of(plan.residuals);
    for (uint32_t leaf : leaves)
      if (plan.accesses[leaf].kind == Access::field && plan.accesses[leaf].stencil != Stencil::point)
        add_channel(staged, plan.accesses[leaf]);
    for (const Target& t : plan.targets)  // what neighbours' contributions need
      for (const Term& term : t.terms)
        for (uint32_t leaf : autodiff::leaves_of(std::span(&term.g, 1)))
          if (plan.accesses[leaf].kind == Access::field) add_channel(staged, plan.accesses[leaf]);
    for (uint32_t leaf : leaves) {
      const Access& a = plan.accesses[leaf];
      if (a.kind == Access::field && std::find(staged.begin(), staged.end(),
                                               Channel{a.field_index, a.level, a.component}) == staged.end())
        add_channel(own, a);
    }
  }
  static int find(const std::vector<Channel>& list, const Datum& d) {
    const auto at = std::find(list.begin(), list.end(), Channel{d.field_index, d.level, d.component});
    return at == list.end() ? -1 : int(at - list.begin());
  }
};

/// Sizes of what a group holds in shared memory.
struct Layout {
  int halo, margin, planes, width, height, residuals, inner_width, inner_height;

  Layout(const Discretisation& d, const FusedShape& s) {
    const int forward = std::max({d.forward_reach[0], d.forward_reach[1], d.forward_reach[2]});
    halo = std::max(d.reach[0], d.reach[1]);
    margin = halo + std::max(d.forward_reach[0], d.forward_reach[1]);
    planes = 2 * std::max(forward, 0) + 2;  // those of one residual and the next one on its way
    width = s.x + 2 * margin;
    height = s.y * s.rows + 2 * margin;
    inner_width = s.x + 2 * halo;
    inner_height = s.y * s.rows + 2 * halo;
    residuals = int(d.plan->residuals.size());
  }
  int64_t bytes(const Channels& channels, int element) const {
    return int64_t(element) * (int64_t(channels.staged.size()) * planes * width * height +
                               int64_t(residuals) * inner_width * inner_height);
  }
};

/// The sweep of one group through a chunk of planes.
class Sweep {
 public:
  Sweep(const Discretisation& d, const KernelForm& form, const std::vector<FieldLevel>& outputs,
        const FusedShape& shape, Type sum)
      : b_(builder()),
        d_(d),
        plan_(*d.plan),
        form_(form),
        outputs_(outputs),
        shape_(shape),
        sum_(sum),
        channels_(plan_),
        layout_(d, shape),
        forward_(d.forward_reach[2]),
        back_(d.reach[2]),
        fields_(fields_of(plan_, plan_.residuals, Access::field)) {
    for (size_t k = 0; k < plan_.residuals.size(); ++k) {  // residuals of one term and weight share a sum
      size_t first = 0;
      while (plan_.term_of[first] != plan_.term_of[k] || plan_.weights[first] != plan_.weights[k]) ++first;
      sum_of_.push_back(first);
    }
  }

  void trace() {
    declare();
    place();
    const Id zero = b_.number(form_.type(), 0);
    std::vector<Id> sums;
    for (size_t k = 0; k < plan_.residuals.size(); ++k)
      sums.push_back(sum_of_[k] == k ? b_.variable(b_.number(sum_, 0)) : kNone);
    // Partial gradients of planes z-back … z+back, by row and target; the variables outlive a step.
    for (int q = 0; q < shape_.rows; ++q)
      for (size_t o = 0; o < outputs_.size(); ++o)
        for (const Target* t : targets_of(plan_, outputs_[o])) {
          Pending p{q, o, t, {}};
          if (swept(*t))
            for (int k = 0; k < 2 * back_; ++k) p.planes.push_back(b_.variable(zero));
          pending_.push_back(std::move(p));
        }
    next_.resize(size_t(shape_.rows));
    for (int q = 0; q < shape_.rows; ++q)
      for (const Channel& c : channels_.own)
        next_[size_t(q)].push_back(b_.variable(load_own(q, c, inside_plane(first_))));
    for (int k = -forward_; k <= forward_; ++k) fetch(plus(first_, constant(k)));
    b_.for_(first_, last_, 1, [&](Id z) { step(z, sums); });
    for (size_t k = 0; k < sums.size(); ++k) {
      Id total = b_.number(sum_, 0);
      if (sums[k] != kNone)
        total = b_.emit(ir::Op::group_reduce, sum_, {b_.get(sums[k])}, uint64_t(ir::Reduction::add));
      b_.if_(b_.op(ir::Op::ieq, {lane_, constant(0)}),
             [&] { partial_->store({constant(int(k)), group_}, total); });
    }
  }

 private:
  struct Pending {
    int row;
    size_t output;
    const Target* target;
    std::vector<Id> planes;  // variables: [0] = plane z-back, …; the newest plane begins in its first step
  };
  /// A cell as a residual sees it.
  struct Cell {
    Id column, row;         // place in the staged planes
    std::array<Id, 3> own;  // coordinates in the grid
  };

  bool swept(const Target& t) const {
    for (const Term& term : t.terms)
      if (term.axis == 2) return true;
    return false;
  }

  void declare() {
    for (const FieldLevel& f : fields_)
      field_buffers_.emplace_back(fmt::format("{}_{}", plan_.fields[size_t(f.field_index)].name, f.level + 1),
                                  form_.storage, 4, ir::Access::read);
    if (form_.mask) mask_.emplace("mask", form_.storage, 3, ir::Access::read);
    for (const FieldLevel& o : outputs_)
      gradient_buffers_.emplace_back(
          fmt::format("d_{}_{}", plan_.fields[size_t(o.field_index)].name, o.level + 1), form_.storage, 4,
          ir::Access::write);
    partial_.emplace("partial", sum_ == Type::f64 ? Storage::f64 : Storage::f32, 2, ir::Access::write);
    nx_ = add_scalar("nx", Type::i32);
    ny_ = add_scalar("ny", Type::i32);
    nz_ = add_scalar("nz", Type::i32);
    scalars_ = Tracer::declare(d_, form_.type());
    for (size_t k = 0; k < plan_.residuals.size(); ++k)
      seeds_.push_back(add_scalar(fmt::format("seed{}", k), form_.type()));
    norm_ = add_scalar("norm", sum_);
    staged_ = lockstep::detail::declare_array(
        true, form_.scratch(),
        std::max<int64_t>(
            1, int64_t(channels_.staged.size()) * layout_.planes * layout_.width * layout_.height));
    cotangents_ = lockstep::detail::declare_array(
        true, form_.scratch(), int64_t(layout_.residuals) * layout_.inner_width * layout_.inner_height);
  }

  Id size(int axis) const { return axis == 0 ? nx_ : axis == 1 ? ny_ : nz_; }
  /// A coordinate that may lie outside the grid: wrapped or clamped.
  Id inside(int axis, Id c) {
    const Id n = size(axis);
    if (!d_.wraps[size_t(axis)]) return b_.emit(ir::Op::clamp_index, Type::i32, {c, n});
    return remainder(plus(remainder(c, n), n), n);
  }
  Id inside_plane(Id z) { return inside(2, z); }

  void place() {
    const auto id = [&](int axis) { return b_.emit(ir::Op::coord, Type::i32, {}, uint64_t(axis)); };
    const auto count = [&](int axis) { return b_.emit(ir::Op::extent, Type::i32, {}, uint64_t(axis)); };
    lane_x_ = b_.emit(ir::Op::local_id, Type::i32, {}, 0);
    lane_y_ = b_.emit(ir::Op::local_id, Type::i32, {}, 1);
    lane_ = b_.emit(ir::Op::lane, Type::i32);
    group_ = plus(times(plus(times(id(2), count(1)), id(1)), count(0)), id(0));
    tile_x_ = times(id(0), constant(shape_.x));
    tile_y_ = times(id(1), constant(shape_.y * shape_.rows));
    begin_ = times(id(2), constant(shape_.chunk));
    end_ = b_.op(ir::Op::imin, {plus(begin_, constant(shape_.chunk)), nz_});
    first_ = minus(begin_, constant(back_));
    last_ = plus(end_, constant(back_));
    if (!d_.wraps[2]) {
      first_ = b_.op(ir::Op::imax, {first_, constant(0)});
      last_ = b_.op(ir::Op::imin, {last_, nz_});
    }
    for (int q = 0; q < shape_.rows; ++q) {
      const Id row = plus(lane_y_, constant(q * shape_.y));
      const Id x = plus(tile_x_, lane_x_), y = plus(tile_y_, row);
      owned_.push_back(both(less(x, nx_), less(y, ny_)));
      cells_.push_back(cell(lane_x_, row));
    }
    const int lanes = shape_.x * shape_.y, places = layout_.width * layout_.height;
    for (int from = 0; from < places; from += lanes) {
      const Id p = plus(lane_, constant(from));
      const Id row = quotient(p, constant(layout_.width)), column = remainder(p, constant(layout_.width));
      stage_places_.push_back({p, inside(0, plus(tile_x_, minus(column, constant(layout_.margin)))),
                               inside(1, plus(tile_y_, minus(row, constant(layout_.margin))))});
    }
  }

  /// The cell at a place relative to the tile. Beyond an edge that does not wrap it is the edge's cell.
  Cell cell(Id column, Id row) {
    Cell c;
    const Id x = plus(tile_x_, column), y = plus(tile_y_, row);
    c.own = {inside(0, x), inside(1, y), kNone};
    c.column = plus(d_.wraps[0] ? column : minus(c.own[0], tile_x_), constant(layout_.margin));
    c.row = plus(d_.wraps[1] ? row : minus(c.own[1], tile_y_), constant(layout_.margin));
    return c;
  }

  const RawBuffer& buffer_of(const Channel& c) const {
    const auto at = std::find(fields_.begin(), fields_.end(), FieldLevel{c.field_index, c.level});
    return field_buffers_[size_t(at - fields_.begin())];
  }
  Id load_own(int row, const Channel& c, Id z) {
    return buffer_of(c).load(
        {constant(c.component), z, cells_[size_t(row)].own[1], cells_[size_t(row)].own[0]}, true);
  }

  Id slot_base(Id plane) {  // planes begin at -(back + forward)
    const Id slot =
        remainder(plus(plane, constant(layout_.planes * (back_ + forward_ + 1))), constant(layout_.planes));
    return times(slot, constant(int(channels_.staged.size()) * layout_.width * layout_.height));
  }

  /// Storage that needs no conversion can be copied asynchronously.
  bool direct() const { return form_.storage == form_.scratch(); }

  /// Starts bringing a plane of all staged channels in; closes a stage of copies.
  void fetch(Id plane) {
    const Id z = inside_plane(plane), base = slot_base(plane);
    for (const StagePlace& p : stage_places_) {
      const auto copy = [&] {
        for (size_t c = 0; c < channels_.staged.size(); ++c) {
          const Channel& channel = channels_.staged[c];
          const Id to = plus(plus(base, constant(int(c) * layout_.width * layout_.height)), p.place);
          const RawBuffer& from = buffer_of(channel);
          if (direct())
            from.copy_async(staged_, to, {constant(channel.component), z, p.y, p.x});
          else
            b_.emit(ir::Op::shared_store, Type::none,
                    {to, from.load({constant(channel.component), z, p.y, p.x})}, staged_);
        }
      };
      const bool full =
          &p != &stage_places_.back() || (layout_.width * layout_.height) % (shape_.x * shape_.y) == 0;
      if (full)
        copy();
      else
        b_.if_(less(p.place, constant(layout_.width * layout_.height)), copy);
    }
    if (direct()) async_commit();
  }

  /// Values of the staged planes around a cell.
  Id staged(int channel, const Cell& c, Id plane, const Offset& at) {
    const Id base = slot_base(plus(plane, constant(at[2])));
    const Id in_plane =
        plus(times(plus(c.row, constant(at[1])), constant(layout_.width)), plus(c.column, constant(at[0])));
    return b_.emit(ir::Op::shared_load, form_.type(),
                   {plus(plus(base, constant(channel * layout_.width * layout_.height)), in_plane)}, staged_);
  }
  Id cotangent_place(int residual, Id column, Id row) {
    return plus(constant(residual * layout_.inner_width * layout_.inner_height),
                plus(times(row, constant(layout_.inner_width)), column));
  }

  /// Cotangents of one cell, stored at a place of the inner tile.
  std::vector<Id> cotangents(const Cell& cell, Id plane, const std::vector<Id>* own_values, Id place_column,
                             Id place_row, Id* mask_value) {
    Cell c = cell;
    c.own[2] = inside_plane(plane);
    std::unique_ptr<Tracer> tracer;
    tracer = std::make_unique<Tracer>(d_, form_.type(), scalars_, c.own, std::array<Id, 3>{nx_, ny_, nz_},
                                      [&](const Datum& x) -> Id {
                                        if (const int k = Channels::find(channels_.staged, x); k >= 0)
                                          return staged(k, c, plane, x.at);
                                        const int k = Channels::find(channels_.own, x);
                                        if (own_values) return (*own_values)[size_t(k)];
                                        return buffer_of(channels_.own[size_t(k)])
                                            .load({constant(x.component), c.own[2], c.own[1], c.own[0]});
                                      });
    std::optional<Id> m;
    if (mask_) m = mask_->load({c.own[2], c.own[1], c.own[0]});
    if (m && mask_value) *mask_value = *m;
    std::vector<Id> result;
    for (size_t k = 0; k < plan_.residuals.size(); ++k) {
      const Id r = tracer->value(plan_.residuals[k]);
      const Id weight = m ? b_.op(ir::Op::fmul, {seeds_[k], *m}, ir::kNoContract) : seeds_[k];
      result.push_back(b_.op(ir::Op::fmul, {weight, r}, ir::kNoContract));
      b_.emit(ir::Op::shared_store, Type::none,
              {cotangent_place(int(k), place_column, place_row), result.back()}, cotangents_);
    }
    return result;
  }

  void add_loss(const std::vector<Id>& c, Id mask_value, const std::vector<Id>& sums) {
    for (size_t k = 0; k < c.size(); ++k) {
      const Id scaled = b_.op(ir::Op::fmul, {b_.convert(sum_, c[k]), norm_}, ir::kNoContract);
      Id square = b_.op(ir::Op::fmul, {scaled, scaled}, ir::kNoContract);
      if (mask_) {
        const Id m = b_.convert(sum_, mask_value), zero = b_.number(sum_, 0);
        const Id none = b_.op(ir::Op::feq, {m, zero});
        square = b_.select(none, zero, b_.op(ir::Op::fdiv, {square, b_.select(none, b_.number(sum_, 1), m)}));
      }
      const Id sum = sums[sum_of_[k]];
      b_.set(sum, b_.op(ir::Op::fadd, {b_.get(sum), square}));
    }
  }

  void step(Id z, const std::vector<Id>& sums) {
    if (direct()) async_wait(0);
    barrier();
    fetch(plus(z, constant(forward_ + 1)));
    // Residuals of the own cells; values at the own cell were loaded one step ahead.
    const Id owns_plane = both(b_.op(ir::Op::ile, {begin_, z}), less(z, end_));
    const Id next_plane =
        inside_plane(b_.op(ir::Op::imin, {plus(z, constant(1)), minus(last_, constant(1))}));
    std::vector<std::vector<Id>> own(size_t(shape_.rows));
    for (int q = 0; q < shape_.rows; ++q)
      for (size_t k = 0; k < channels_.own.size(); ++k) {
        own[size_t(q)].push_back(b_.get(next_[size_t(q)][k]));
        b_.set(next_[size_t(q)][k], load_own(q, channels_.own[k], next_plane));
      }
    for (int q = 0; q < shape_.rows; ++q) {
      const Id column = plus(lane_x_, constant(layout_.halo)),
               row = plus(lane_y_, constant(layout_.halo + q * shape_.y));
      Id m = kNone;
      const std::vector<Id> c = cotangents(cells_[size_t(q)], z, &own[size_t(q)], column, row, &m);
      b_.if_(both(owns_plane, owned_[size_t(q)]), [&] { add_loss(c, m, sums); });
    }
    ring(z);
    barrier();
    for (int q = 0; q < shape_.rows; ++q) back(q, z, owns_plane);
  }

  /// Cotangents of the cells around the tile; corners are not needed.
  void ring(Id z) {
    const int h = layout_.halo, tall = shape_.y * shape_.rows, sides = 2 * h * tall, ends = 2 * h * shape_.x,
              lanes = shape_.x * shape_.y;
    for (int from = 0; from < sides + ends; from += lanes) {
      const Id e = plus(lane_, constant(from));
      b_.if_(less(e, constant(sides + ends)), [&] {
        // First the columns left and right, then the rows below and above.
        const Id at_side = less(e, constant(sides)), f = minus(e, constant(sides));
        const Id along = h == 0 ? constant(0) : remainder(e, constant(2 * h));
        const Id side_column = b_.select(less(along, constant(h)), minus(along, constant(h)),
                                         plus(along, constant(shape_.x - h)));
        const Id side_row = h == 0 ? constant(0) : quotient(e, constant(2 * h));
        const Id across = quotient(f, constant(shape_.x));
        const Id end_row = b_.select(less(across, constant(h)), minus(across, constant(h)),
                                     plus(across, constant(tall - h)));
        const Id column = b_.select(at_side, side_column, remainder(f, constant(shape_.x)));
        const Id row = b_.select(at_side, side_row, end_row);
        cotangents(cell(column, row), z, nullptr, plus(column, constant(h)), plus(row, constant(h)), nullptr);
      });
    }
  }

  void back(int q, Id z, Id owns_plane) {
    Cell c = cells_[size_t(q)];
    c.own[2] = inside_plane(z);
    const Id column = plus(lane_x_, constant(layout_.halo)),
             row = plus(lane_y_, constant(layout_.halo + q * shape_.y));
    std::unique_ptr<Tracer> tracer;
    tracer = std::make_unique<Tracer>(
        d_, form_.type(), scalars_, c.own, std::array<Id, 3>{nx_, ny_, nz_}, [&](const Datum& x) -> Id {
          if (x.kind == Access::cotangent)
            return b_.emit(
                ir::Op::shared_load, form_.type(),
                {cotangent_place(x.component, plus(column, constant(x.at[0])), plus(row, constant(x.at[1])))},
                cotangents_);
          if (const int k = Channels::find(channels_.staged, x); k >= 0) return staged(k, c, z, x.at);
          return buffer_of({x.field_index, x.level, x.component})
              .load({constant(x.component), c.own[2], c.own[1], c.own[0]});
        });
    const Id zero = b_.number(form_.type(), 0);
    std::vector<std::pair<const Pending*, Id>> here, finished;
    for (const Pending& p : pending_) {
      if (p.row != q) continue;
      if (p.planes.empty()) {
        const Id total = tracer->add_own_plane(*p.target, kNone);
        here.push_back({&p, total == kNone ? zero : total});
        continue;
      }
      std::vector<Id> sums;  // of the planes z-back … z+back
      for (Id variable : p.planes) sums.push_back(b_.get(variable));
      sums.push_back(zero);
      for (int to = -back_; to <= back_; ++to) {
        Id& sum = sums[size_t(to + back_)];
        sum = to == 0 ? tracer->add_own_plane(*p.target, sum) : tracer->add_to_plane(*p.target, to, sum);
      }
      finished.push_back({&p, sums[0]});
      for (size_t k = 0; k < p.planes.size(); ++k) b_.set(p.planes[k], sums[k + 1]);
    }
    const auto store = [&](const std::vector<std::pair<const Pending*, Id>>& list, Id plane) {
      for (const auto& [p, value] : list)
        gradient_buffers_[p->output].store({constant(p->target->component), plane, c.own[1], c.own[0]}, value,
                                           form_.streaming);
    };
    if (!here.empty()) b_.if_(both(owns_plane, owned_[size_t(q)]), [&] { store(here, c.own[2]); });
    if (finished.empty()) return;
    const Id done = minus(z, constant(back_));
    b_.if_(both(both(b_.op(ir::Op::ile, {begin_, done}), less(done, end_)), owned_[size_t(q)]),
           [&] { store(finished, done); });
    if (d_.wraps[2] || back_ == 0) return;
    // No plane follows the grid's last one: what waits is complete.
    const Id at_end = both(b_.op(ir::Op::ieq, {z, minus(nz_, constant(1))}), owned_[size_t(q)]);
    b_.if_(at_end, [&] {
      for (int k = 1; k <= back_; ++k) {
        const Id plane = minus(z, constant(back_ - k));
        std::vector<std::pair<const Pending*, Id>> list;
        for (const Pending& p : pending_)
          if (p.row == q && !p.planes.empty()) list.push_back({&p, b_.get(p.planes[size_t(k - 1)])});
        b_.if_(b_.op(ir::Op::ile, {begin_, plane}), [&] { store(list, plane); });
      }
    });
  }

  struct StagePlace {
    Id place, x, y;
  };

  ir::Builder& b_;
  const Discretisation& d_;
  const Plan& plan_;
  KernelForm form_;
  const std::vector<FieldLevel>& outputs_;
  FusedShape shape_;
  Type sum_;
  Channels channels_;
  Layout layout_;
  int forward_, back_;
  std::vector<FieldLevel> fields_;
  std::vector<size_t> sum_of_;
  std::vector<RawBuffer> field_buffers_, gradient_buffers_;
  std::optional<RawBuffer> mask_, partial_;
  Id nx_, ny_, nz_, norm_, lane_x_, lane_y_, lane_, group_, tile_x_, tile_y_, begin_, end_, first_, last_;
  Tracer::Scalars scalars_;
  std::vector<Id> seeds_, owned_;
  std::vector<Cell> cells_;
  std::vector<StagePlace> stage_places_;
  std::vector<std::vector<Id>> next_;  // by row and own channel: values of the plane that comes next
  std::vector<Pending> pending_;
  uint32_t staged_ = 0, cotangents_ = 0;
};

std::vector<FusedShape> shapes() { return {{64, 4, 2, 64}, {32, 8, 1, 64}, {32, 4, 1, 64}, {16, 8, 1, 64}}; }

}  // namespace

std::string FusedShape::key() const { return fmt::format("{}x{}x{}x{}", x, y, rows, chunk); }

std::string fused_refusal(const Discretisation& d, const Device& device, const KernelForm& form) {
  const Plan& plan = *d.plan;
  if (plan.dimensions != 3) return "grids of three dimensions only";
  if (!d.pointwise_adjoint) return "the way back needs differences of differences";
  for (int a = 0; a < 3; ++a) {
    if (d.reach[size_t(a)] > d.forward_reach[size_t(a)] || d.reach[size_t(a)] > 2)
      return "a stencil or boundary that reaches too far";
    if (d.mesh.cells[size_t(a)] < 2 * (d.reach[size_t(a)] + d.forward_reach[size_t(a)]) + 2)
      return "a grid that is too small";
  }
  const Channels channels(plan);
  for (const FusedShape& s : shapes())
    if (Layout(d, s).bytes(channels, size_of(form.scratch())) <= device.info().limits.shared_bytes &&
        int64_t(s.x) * s.y <= device.info().limits.group_lanes)
      return "";
  return "too little shared memory";
}

Path choose_path(const Discretisation& d, const Device& device, const KernelForm& form,
                 const std::vector<FieldLevel>& outputs, const LossOptions& options) {
  if (options.path == Path::two_kernel) return Path::two_kernel;
  const std::string why = fused_refusal(d, device, form);
  if (options.path == Path::fused) {
    if (!why.empty())
      throw UnsupportedError(fmt::format("the fused path: {}", why), "pde options",
                             "a problem that it can do, or the two-kernel path");
    return Path::fused;
  }
  // The sweep pays where planes in shared memory save traffic and there are enough tiles to fill the device.
  const bool worth = device.info().kind == DeviceKind::cuda && !outputs.empty() &&
                     d.mesh.count() >= 96 * 96 * 96 && form.storage != Storage::f64;
  return why.empty() && worth ? Path::fused : Path::two_kernel;
}

FusedShape choose_shape(const Discretisation& d, const Device& device, const KernelForm& form,
                        const LossOptions& options) {
  const Channels channels(*d.plan);
  FusedShape shape = shapes().back();
  // Two groups should share a multiprocessor's memory.
  for (const FusedShape& s : shapes())
    if (Layout(d, s).bytes(channels, size_of(form.scratch())) <=
            std::min<int64_t>(device.info().limits.shared_bytes, 110 << 10) &&
        int64_t(s.x) * s.y <= device.info().limits.group_lanes) {
      shape = s;
      break;
    }
  if (options.tile_x > 0) shape.x = options.tile_x;
  if (options.tile_y > 0) shape.y = options.tile_y;
  if (options.tile_rows > 0) shape.rows = options.tile_rows;
  // Fewer planes a chunk where the grid would not give each multiprocessor two groups.
  const int64_t tiles = ((d.mesh.cells[0] + shape.x - 1) / shape.x) *
                        ((d.mesh.cells[1] + shape.y * shape.rows - 1) / (shape.y * shape.rows));
  while (shape.chunk > 16 && tiles * ((d.mesh.cells[2] + shape.chunk - 1) / shape.chunk) < 300)
    shape.chunk /= 2;
  if (options.chunk > 0) shape.chunk = options.chunk;
  const int64_t lanes = int64_t(shape.x) * shape.y;
  if (lanes < 1 || lanes > 1024 || (lanes & (lanes - 1)) != 0 || shape.rows > 16)
    throw InputError(fmt::format("a tile of {} x {} lanes, {} rows", shape.x, shape.y, shape.rows),
                     "pde options", "a power of two up to 1024 lanes, up to 16 rows");
  return shape;
}

Kernel fused_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                    std::vector<FieldLevel> outputs, FusedShape shape, Type sum) {
  KernelOptions options;
  options.group = {shape.x, shape.y, 1};
  options.min_blocks = 2;
  return Kernel::trace(
      fmt::format("pde.fused.{}.{}.{}", variant(*d, form), outputs.size(), lockstep::name(sum)),
      ir::Domain::groups, 3, options, [=](ir::Builder&) { Sweep(*d, form, outputs, shape, sum).trace(); });
}

std::vector<Launch> fused_launches(std::shared_ptr<const Discretisation> d, const Device& device,
                                   const KernelForm& form, const std::vector<FieldLevel>& outputs,
                                   const FusedShape& shape, Type sum, const FusedArguments& a,
                                   const KernelStore& store) {
  std::string key = fmt::format("fused {} {} {} {} {}", int(form.storage), form.mask, form.streaming,
                                int(sum), shape.key());
  for (const FieldLevel& o : outputs) key += fmt::format(" {}:{}", o.field_index, o.level);
  const Kernel& kernel = store(key, [&] { return fused_kernel(d, form, outputs, shape, sum); });
  const Kernel& total = store(fmt::format("total {}", int(sum)), [&] { return total_kernel(sum); });
  const auto tiles = [](int64_t n, int64_t size) { return (n + size - 1) / size; };
  const Extent extent{tiles(d->mesh.cells[2], shape.chunk), tiles(d->mesh.cells[1], shape.y * shape.rows),
                      tiles(d->mesh.cells[0], shape.x)};
  const int64_t residuals = int64_t(d->plan->residuals.size());
  const Buffer partial = device.allocate(a.totals.storage(), {residuals, extent.elements()});
  std::vector<Argument> list = a.fields;
  if (a.mask) list.push_back(a.mask);
  list.insert(list.end(), a.gradients.begin(), a.gradients.end());
  list.push_back(partial);
  for (int axis = 0; axis < 3; ++axis) list.push_back(d->mesh.cells[size_t(axis)]);
  list.insert(list.end(), a.scalars.begin(), a.scalars.end());
  list.push_back(a.norm);
  return {{kernel, extent, std::move(list)}, {total, {residuals}, {partial, a.totals}}};
}

}  // namespace lockstep::pde
