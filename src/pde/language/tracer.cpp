#include "pde/language/tracer.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::pde {

using ir::Id;
using ir::kNone;

namespace {

ir::Builder& builder() { return lockstep::detail::builder(); }

Id add(Id a, Id b) { return a == kNone ? b : builder().op(ir::Op::fadd, {a, b}); }
Id multiply(Id a, Id b) { return builder().op(ir::Op::fmul, {a, b}, ir::kNoContract); }
/// sum + weight * value.
Id accumulate(Id sum, Id weight, Id value) {
  return sum == kNone ? multiply(weight, value) : builder().op(ir::Op::fma, {weight, value, sum});
}
Id accumulate(Type type, Id sum, double weight, Id value) {
  if (weight == 1) return add(sum, value);
  if (weight == -1)
    return sum == kNone ? builder().op(ir::Op::fneg, {value}) : builder().op(ir::Op::fsub, {sum, value});
  return accumulate(sum, builder().number(type, weight), value);
}
double weight_at(const std::vector<Tap>& taps, int offset) {
  for (const Tap& t : taps)
    if (t.offset == offset) return t.weight;
  return 0;
}

/// Whether the interior row, read with clamped coordinates, is this row.
bool clamping_gives(const Row& row, const std::vector<Tap>& taps) {
  if (row.constant != 0) return false;
  std::map<int, double> weights;
  for (const Tap& t : taps) {
    const int offset = row.high ? std::min(t.offset, row.at) : std::max(t.offset, -row.at);
    weights[offset] += t.weight;
  }
  for (const Tap& t : row.taps) weights[t.offset] -= t.weight;
  for (const auto& [offset, weight] : weights)
    if (weight != 0) return false;
  return true;
}

}  // namespace

RawBuffer::RawBuffer(std::string name, Storage storage, int rank, ir::Access access)
    : BufferRef(uint32_t(builder().function().buffers.size()), rank), storage_(storage) {
  builder().function().buffers.push_back({std::move(name), storage, rank, access});
}
Id RawBuffer::load_at(Id offset, bool streaming) const {
  ir::Instruction load{ir::Op::load};
  load.type = value_type(storage_);
  load.flags = streaming ? ir::kStreaming : 0;
  load.imm = buffer_;
  load.args[0] = offset;
  return builder().append(load);
}
void RawBuffer::copy_async_at(uint32_t shared, Id to, Id offset, int lanes) const {
  ir::Instruction copy{ir::Op::async_copy};
  copy.lanes = uint8_t(lanes);
  copy.imm = uint64_t(shared) << 32 | buffer_;
  copy.args[0] = to;
  copy.args[1] = offset;
  builder().append(copy);
}
void RawBuffer::store_at(Id offset, Id value, bool streaming) const {
  ir::Instruction store{ir::Op::store};
  store.flags = streaming ? ir::kStreaming : 0;
  store.imm = buffer_;
  store.args[0] = offset;
  store.args[1] = value;
  builder().append(store);
}

Id add_scalar(std::string name, Type type) {
  ir::Function& f = builder().function();
  f.scalars.push_back({std::move(name), type});
  return builder().emit(ir::Op::param, type, {}, f.scalars.size() - 1);
}

Tracer::Scalars Tracer::declare(const Discretisation& d, Type type) {
  Scalars s;
  for (size_t k = 0; k < d.scales.size(); ++k)
    s.scales.push_back(add_scalar(fmt::format("scale{}", k), type));
  for (size_t k = 0; k < d.plan->parameters.size(); ++k)
    s.parameters.push_back(add_scalar(fmt::format("parameter{}", k), type));
  return s;
}

Tracer::Tracer(const Discretisation& d, Type type, const Scalars& scalars, std::array<Id, 3> own,
               std::array<Id, 3> size, Load load)
    : d_(d), type_(type), scalars_(scalars), own_(own), size_(size), load_(std::move(load)) {}

Id Tracer::coordinate(int axis, int offset) {
  const auto found = coordinates_.find({axis, offset});
  if (found != coordinates_.end()) return found->second;
  ir::Builder& b = builder();
  const Id own = own_[size_t(axis)], n = size_[size_t(axis)];
  Id c = own;
  if (offset != 0) {
    const Id moved = b.op(ir::Op::iadd, {own, b.i32(offset)}, ir::kNoWrap);
    if (!d_.wraps[size_t(axis)]) {
      c = b.emit(ir::Op::clamp_index, Type::i32, {moved, n});
    } else if (offset < 0) {
      c = b.select(b.op(ir::Op::ilt, {own, b.i32(-offset)}), b.op(ir::Op::iadd, {moved, n}, ir::kNoWrap),
                   moved);
    } else {
      c = b.select(b.op(ir::Op::ilt, {moved, n}), moved, b.op(ir::Op::isub, {moved, n}, ir::kNoWrap));
    }
  }
  coordinates_[{axis, offset}] = c;
  return c;
}

Id Tracer::row_condition(const Row& row, int axis, int offset) {
  const int at = row.high ? row.at + offset : row.at - offset;
  const auto key = std::make_tuple(axis, row.high, at);
  if (const auto found = conditions_.find(key); found != conditions_.end()) return found->second;
  ir::Builder& b = builder();
  const Id bound =
      row.high ? b.op(ir::Op::iadd, {size_[size_t(axis)], b.i32(-1 - at)}, ir::kNoWrap) : b.i32(at);
  return conditions_[key] = b.op(ir::Op::ieq, {own_[size_t(axis)], bound});
}

Id Tracer::datum(const Datum& d) {
  const auto [entry, added] = data_.try_emplace(d.key(), kNone);
  if (added) entry->second = load_(d);
  return entry->second;
}

Id Tracer::combine(const std::vector<Tap>& taps, const std::vector<Row>& rows, int axis, const Offset& at,
                   bool affine, bool edges, const std::function<Id(int)>& get) {
  int radius = 0;
  for (const Tap& t : taps) radius = std::max(radius, std::abs(t.offset));
  Id sum = kNone;
  for (int k = 1; k <= radius; ++k) {
    const double up = weight_at(taps, k), down = weight_at(taps, -k);
    if (up != 0 && up == -down) {
      sum = accumulate(type_, sum, up, builder().op(ir::Op::fsub, {get(k), get(-k)}));
    } else if (up != 0 && up == down) {
      sum = accumulate(type_, sum, up, builder().op(ir::Op::fadd, {get(k), get(-k)}));
    } else {
      if (up != 0) sum = accumulate(type_, sum, up, get(k));
      if (down != 0) sum = accumulate(type_, sum, down, get(-k));
    }
  }
  if (const double centre = weight_at(taps, 0); centre != 0) sum = accumulate(type_, sum, centre, get(0));
  for (const Row& row : rows) {
    if (!edges || !edges_ || (clamping_gives(row, taps) && (affine || row.constant == 0))) continue;
    Id value = kNone;
    for (const Tap& t : row.taps) value = accumulate(type_, value, t.weight, get(t.offset));
    if (affine && row.constant != 0) value = add(value, builder().number(type_, row.constant));
    if (value == kNone) value = builder().number(type_, 0);
    sum = builder().select(row_condition(row, axis, at[size_t(axis)]), value, sum);
  }
  return sum;
}

void EdgeWidth::widen(const std::vector<Row>& rows, const std::vector<Tap>& taps, bool affine) {
  for (const Row& row : rows) {
    if (clamping_gives(row, taps) && (affine || row.constant == 0)) continue;
    int& width = row.high ? high : low;
    width = std::max(width, row.at + 1);
  }
}

Id Tracer::difference(const Access& a, const Offset& at, bool edges) {
  const AxisOperator& op = d_.of(a.field_index, a.component, a.stencil, a.axis);
  const Id sum = combine(op.taps, op.rows, a.axis, at, a.kind == Access::field, edges, [&](int k) {
    Offset moved = at;
    moved[size_t(a.axis)] += k;
    return datum({a.kind, a.field_index, a.component, a.level, moved});
  });
  return multiply(scalars_.scales[size_t(d_.scale_index(a.stencil, a.axis))], sum);
}

Id Tracer::access(const Access& a, const Offset& at) {
  switch (a.kind) {
    case Access::parameter: return scalars_.parameters[size_t(a.number)];
    case Access::carried:
    case Access::cotangent: return datum({a.kind, 0, a.number, 0, at});
    default: break;
  }
  if (a.stencil == Stencil::point) return datum({a.kind, a.field_index, a.component, a.level, at});
  return difference(a, at, true);
}

Id Tracer::value(const Value& v, const Offset& at) {
  auto& lowering = at_[at];
  if (!lowering)
    lowering = std::make_unique<autodiff::Lowering>(*d_.plan->graph, type_, [this, at](uint32_t leaf) {
      if (at == Offset{0, 0, 0})
        if (const auto known = known_.find(leaf); known != known_.end())
          return lockstep::detail::any_value(known->second);
      return lockstep::detail::any_value(access(d_.plan->accesses[leaf], at));
    });
  return lockstep::detail::id_of((*lowering)(v));
}

bool Tracer::starts_at_zero(const Target& target) const {
  for (const Term& t : target.terms)
    if (t.axis == 2) return true;
  return false;
}

bool Tracer::reaches(const Target& target, int to) const {
  for (const Term& t : target.terms) {
    if (t.axis != 2) continue;
    const AxisOperator& op = d_.of(target.field_index, target.component, t.stencil, 2);
    if (weight_at(op.taps_t, -to) != 0) return true;
    for (const Row& r : op.rows_t)
      if (weight_at(r.taps, -to) != 0) return true;
  }
  return false;
}

Id Tracer::plane_weight(const Target& target, const Term& term, int k, int row_offset) {
  const AxisOperator& op = d_.of(target.field_index, target.component, term.stencil, 2);
  const double regular = weight_at(op.taps_t, k);
  ir::Builder& b = builder();
  const Id scale = scalars_.scales[size_t(d_.scale_index(term.stencil, 2))];
  bool special = false;
  for (const Row& r : op.rows_t) special |= edges_ && weight_at(r.taps, k) != regular;
  if (!special) {
    if (regular == 0) return kNone;
    return regular == 1 ? scale : multiply(scale, b.number(type_, regular));
  }
  Id weight = b.number(type_, regular);
  for (const Row& r : op.rows_t)
    if (const double w = weight_at(r.taps, k); w != regular)
      weight = b.select(row_condition(r, 2, row_offset), b.number(type_, w), weight);
  return multiply(scale, weight);
}

Id Tracer::own_difference(const Target& target, const Term& term, bool edges) {
  const AxisOperator& op = d_.of(target.field_index, target.component, term.stencil, term.axis);
  return combine(op.taps_t, op.rows_t, term.axis, {0, 0, 0}, false, edges, [&](int k) {
    Offset at{0, 0, 0};
    at[size_t(term.axis)] = k;
    return value(term.g, at);
  });
}

Id Tracer::add_own_plane(const Target& target, Id sum, Id point,
                         const std::function<Id(const Term&)>& difference) {
  if (target.point) sum = add(sum, point != kNone ? point : value(*target.point));
  for (const Term& t : target.terms) {
    if (t.axis == 2) continue;
    const Id change = difference ? difference(t) : own_difference(target, t, true);
    sum = accumulate(sum, scalars_.scales[size_t(d_.scale_index(t.stencil, t.axis))], change);
  }
  return add_to_plane(target, 0, sum);
}

Id Tracer::add_to_plane(const Target& target, int to, Id sum) {
  for (const Term& t : target.terms) {
    if (t.axis != 2) continue;
    const Id weight = plane_weight(target, t, -to, to);
    if (weight != kNone) sum = accumulate(sum, weight, value(t.g));
  }
  return sum;
}

Id Tracer::gradient(const Target& target, const std::function<Id(const Term&)>& difference) {
  const int reach = d_.reach[2];
  // From 0 where z takes part: planes outside the grid then change no bit by their weight of 0.
  Id sum = starts_at_zero(target) ? builder().number(type_, 0) : kNone;
  const auto planes = [&](int from, int to) {
    for (int k = from; k <= to; ++k)
      for (const Term& t : target.terms) {
        if (t.axis != 2) continue;
        const Id weight = plane_weight(target, t, k, 0);
        if (weight != kNone) sum = accumulate(sum, weight, value(t.g, {0, 0, k}));
      }
  };
  planes(-reach, -1);
  sum = add_own_plane(target, sum, kNone, difference);
  planes(1, reach);
  return sum == kNone ? builder().number(type_, 0) : sum;
}

}  // namespace lockstep::pde
