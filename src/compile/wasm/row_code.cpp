#include "compile/wasm/row_code.hpp"

#include <algorithm>

#include "compile/wasm/lower_op.hpp"

namespace lockstep::compile::wasm {

using ir::Id;
using ir::Instruction;
using ir::Op;

Invariants::Invariants(Unit& unit, const Divergence& divergence, Invariants* outer)
    : LaneCode(unit, divergence), outer_(outer) {}

bool Invariants::holds(Id id) {
  if (const auto found = held_.find(id); found != held_.end()) return found->second;
  const Instruction& i = f_[id];
  bool all = false;
  switch (i.op) {
    case Op::coord: all = outer_ && i.imm > 0; break;
    case Op::local_id:
    case Op::lane:
    case Op::uniform:
    case Op::extract: break;
    default:
      all = ir::is_pure(i.op);
      for (int k = 0; k < i.arg_count() && all; ++k) all = holds(i.args[size_t(k)]);
  }
  return held_[id] = all;
}

Value Invariants::in_section(const std::function<Value()>& emit) {
  Bytes* const before = body_.redirect(&section);
  const Value value = emit();
  body_.redirect(before);
  return value;
}

Value Invariants::value(Id id) {
  if (outer_ && outer_->holds(id)) return outer_->value(id);
  return in_section([&] { return scalar(id); });
}

Value Invariants::in_all_lanes(Id id) {
  if (outer_ && outer_->holds(id)) return outer_->in_all_lanes(id);
  Value& all = spread_[id];
  if (!all) all = in_section([&] { return b_.splat(scalar(id)); });
  return all;
}

Slot Invariants::import(Id id) {
  if (outer_ && outer_->holds(id)) return {outer_->value(id)};
  for (int k = 0; k < f_[id].arg_count(); ++k) slot(f_[id].args[size_t(k)]);
  return pure(id);
}

/// The terms of what is added to x.
Value RowPlaces::sum(const Place& place, Type type) {
  Builder& b = u_.b();
  Value all = Builder::constant(type, 0);
  for (const simd::Affine::Term& term : place.terms) {
    const Value v = lower_convert(b, row_.value(term.id), type);
    all = term.sign > 0 ? b.add(v, all) : b.sub(all, v);
  }
  return all;
}

LaneCode::RowStart RowPlaces::start(const MemoryPlace& place, const simd::Affine& law) {
  const auto same = [&](const Place& other) {
    return other.place.buffer == place.buffer &&
           std::ranges::equal(other.terms, law.terms,
                              [](const auto& x, const auto& y) { return x.id == y.id && x.sign == y.sign; });
  };
  auto found = std::ranges::find_if(places_, same);
  if (found == places_.end()) {
    Place fresh{place, law.terms, law.constant, law.constant, {}};
    fresh.address = row_.in_section([&] {
      Builder& b = u_.b();
      return b.add(place.base, b.mul(sum(fresh, Type::i32), Builder::i32(size_of(place.storage))));
    });
    found = places_.insert(places_.end(), fresh);
  }
  found->least = std::min(found->least, law.constant);
  found->most = std::max(found->most, law.constant);
  return {found->address, law.constant};
}

void RowPlaces::narrow(Value& low, Value& high) {
  Builder& b = u_.b();
  const auto number = [](int64_t v) { return Builder::constant(Type::i64, uint64_t(v)); };
  for (const Place& place : places_) {
    const Value added = sum(place, Type::i64);
    low = b.max(low, b.sub(number(-place.least), added));
    const Value begins = b.retype(u_.limit(place.place, kLanes, Type::i64), Type::i64);
    high = b.min(high, b.sub(b.sub(begins, number(1 + place.most)), added));
  }
}

std::optional<LaneCode::RowStart> PointCode::row_start(const Access& a) {
  // Of indices of 32 bits, those that are inside of the buffer as whole numbers are what the index wraps to.
  if (!places_ || a.place.buffer == kNoBuffer || f_[a.index].type != Type::i32) return {};
  const auto law = simd::along_x(f_, a.index, *assumptions_,
                                 [&](Id id) { return is_integer(f_[id].type) && row_->holds(id); });
  if (!law || law->terms.size() > 8) return {};
  return places_->start(a.place, *law);
}

}  // namespace lockstep::compile::wasm
