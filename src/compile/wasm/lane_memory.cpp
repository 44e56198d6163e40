// Loads, stores, atomics: vectors where the index runs along by 1, scalars where it is uniform, else lane by lane.
#include "compile/wasm/lane_code.hpp"
#include "compile/wasm/lower_op.hpp"
#include "compile/wasm/wide_rows.hpp"

namespace lockstep::compile::wasm {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

int shift_of(Storage storage) {
  const int size = size_of(storage);
  return size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;
}
bool is_narrow(Storage storage) { return size_of(storage) < 4; }
/// Type of an element in memory.
Type raw_type(Storage storage) { return is_narrow(storage) ? Type::u32 : value_type(storage); }

Opcode scalar_load(Storage storage) {
  if (is_narrow(storage)) return size_of(storage) == 1 ? kLoad8 : kLoad16;
  static constexpr Opcode kLoads[] = {kLoadI32, kLoadI64, kLoadF32, kLoadF64};
  const Type type = value_type(storage);
  return kLoads[(is_float(type) ? 2 : 0) + (is_wide(type) ? 1 : 0)];
}
Opcode scalar_store(Storage storage) {
  if (is_narrow(storage)) return size_of(storage) == 1 ? kStore8 : kStore16;
  static constexpr Opcode kStores[] = {kStoreI32, kStoreI64, kStoreF32, kStoreF64};
  const Type type = value_type(storage);
  return kStores[(is_float(type) ? 2 : 0) + (is_wide(type) ? 1 : 0)];
}

/// Offset of lane l, `more` elements on.
uint32_t lane_offset(const MemoryPlace& place, int l) {
  return place.offset + uint32_t(l * size_of(place.storage));
}

}  // namespace

/// The address of element `index`, a scalar: addresses have 32 bits, so only the index's low half counts.
void LaneCode::push_address(const MemoryPlace& place, const Value& index) {
  b_.push(place.base);
  if (index.constant && index.bits == 0) return;
  b_.push(b_.shl(lower_convert(b_, index, Type::i32), shift_of(place.storage)));
  body_.op(kAddI32);
}

/// Ends the kernel where `count` elements from `index` on, a scalar, are not all inside of the array.
void LaneCode::check(const Access& a, const Value& index, int count) {
  if (a.place.elements == kChecked) return;
  const Value limit = u_.limit(a.place, count, index.type);
  if (index.constant && limit.constant && index.bits < limit.bits) return;
  b_.push(b_.less(b_.retype(index, limit.type), limit));
  body_.op(kEqzI32);
  body_.if_();
  u_.fault(a.place, index, a.line);
  body_.end();
}
/// The same for the active lanes of a vector.
void LaneCode::check_lanes(const Access& a, const Value& index) {
  const Value limit = u_.limit(a.place, a.components, index.type);
  const Value beyond = b_.less_equal(b_.splat(limit), b_.retype(index, limit.type));
  const Value outside = mask_ ? b_.and_(mask_, beyond) : beyond;
  b_.push(b_.any(outside));
  body_.if_();
  b_.push(b_.bitmask(outside));
  body_.op(kCtzI32);
  u_.fault(a.place, b_.lane(index, b_.pop(Type::i32)), a.line);
  body_.end();
}

Value LaneCode::load_one(const MemoryPlace& place, const Value& index, int more) {
  push_address(place, index);
  body_.memory(scalar_load(place.storage), lane_offset(place, more));
  return b_.pop(raw_type(place.storage));
}
void LaneCode::store_one(const MemoryPlace& place, const Value& index, const Value& value, int more) {
  push_address(place, index);
  b_.push(value);
  body_.memory(scalar_store(place.storage), lane_offset(place, more));
}

void LaneCode::for_active_lanes(const std::function<void(int)>& body) {
  if (!mask_) {
    for (int l = 0; l < kLanes; ++l) body(l);
    return;
  }
  const Value bits = b_.bitmask(mask_);
  for (int l = 0; l < kLanes; ++l) {
    b_.push(bits);
    body_.constant(Kind::i32, uint64_t(1) << l);
    body_.op(kAndI32);
    body_.if_();
    body(l);
    body_.end();
  }
}

/// Pushes the address of the first of four elements in a row, behind a check where the row is not known to be inside.
std::function<void()> LaneCode::row_address(const Access& a, const Value& index) {
  const int shift = shift_of(a.place.storage);
  if (const std::optional<RowStart> start = row_start(a))
    return [this, shift, start] {
      b_.push(start->address);
      b_.push(b_.shl(coord[0], shift));
      body_.op(kAddI32);
      if (start->offset == 0) return;
      b_.push(Builder::i32(start->offset * (int64_t(1) << shift)));
      body_.op(kAddI32);
    };
  check(a, index, kLanes);
  return [this, place = a.place, index] { push_address(place, index); };
}

/// The elements of four lanes in a row from `index` on. Lanes that are off are not read.
Value LaneCode::load_row(const Access& a, const Value& index) {
  const MemoryPlace& place = a.place;
  const Type type = raw_type(place.storage);
  const Value row = b_.variable(type, true);
  const auto whole = [&] {
    const auto push = row_address(a, index);
    for (int k = 0; k < row.parts(); ++k) {
      push();
      const int size = size_of(place.storage);
      const Opcode load = size == 1 ? kLoad32Zero : size == 2 ? kLoad16Extended : kLoad;
      body_.memory(load, place.offset + uint32_t(16 * k));
      if (size == 1) body_.op(kExtendBytes), body_.op(kExtendWords);
      body_.set(row.part[size_t(k)]);
    }
  };
  const auto apart = [&] {
    b_.assign(row, b_.splat(Builder::constant(type, 0)));
    for_active_lanes([&](int l) {
      check(a, b_.add(index, Builder::like(index, uint64_t(l))), 1);
      const Local& part = row.part[size_t(row.wide() ? l / 2 : 0)];
      if (is_narrow(place.storage)) {
        body_.get(part);
        b_.push(load_one(place, index, l));
        body_.lane(kReplace32, l);
      } else {
        push_address(place, index);
        body_.get(part);
        body_.memory(row.wide() ? kLoad64Lane : kLoad32Lane, lane_offset(place, l), row.wide() ? l % 2 : l);
      }
      body_.set(part);
    });
  };
  whole_or_apart(whole, apart);
  return row;
}

void LaneCode::store_row(const Access& a, const Value& index, const Value& value) {
  const MemoryPlace& place = a.place;
  const auto whole = [&] {
    const auto push = row_address(a, index);
    for (int k = 0; k < value.parts(); ++k) {
      push();
      b_.push(value, k);
      if (is_narrow(place.storage)) {
        // The low bytes of the lanes come to the front.
        const bool bytes = size_of(place.storage) == 1;
        b_.push(value);
        body_.shuffle(bytes ? std::array<uint8_t, 16>{0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12}
                            : std::array<uint8_t, 16>{0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13});
        body_.memory(bytes ? kStore32Lane : kStore64Lane, place.offset, 0);
      } else {
        body_.memory(kStore, place.offset + uint32_t(16 * k));
      }
    }
  };
  const auto apart = [&] {
    for_active_lanes([&](int l) {
      check(a, b_.add(index, Builder::like(index, uint64_t(l))), 1);
      store_one(place, index, b_.lane(value, l), l);
    });
  };
  whole_or_apart(whole, apart);
}

/// Lanes that are off read the first element, which is there since some lane reads.
Value LaneCode::gather(const MemoryPlace& place, const Value& index, int more) {
  Value low = index.wide() ? b_.low_words(index, Type::i32) : index;
  if (mask_) low = b_.and_(low, b_.retype(mask_, low.type));
  const uint32_t offset = lane_offset(place, mask_ ? 0 : more);
  if (mask_ && more != 0)
    low = b_.add(low, b_.and_(Builder::like(low, uint64_t(more)), b_.retype(mask_, low.type)));
  const Value address = b_.add(b_.shl(low, shift_of(place.storage)), b_.splat(place.base));
  const Type type = raw_type(place.storage);
  if (is_narrow(place.storage))
    return b_.by_lane([&](int l) {
      b_.push(b_.lane(address, l));
      body_.memory(scalar_load(place.storage), offset);
      return b_.pop(type);
    });
  Value all{type, true, false, 0, {}};
  const int each = all.wide() ? 2 : 4;
  for (int l = 0; l < kLanes; ++l) {
    const int part = l / each, within = l % each;
    const Value at = b_.lane(address, l);
    b_.push(at);
    if (within == 0) {
      body_.memory(all.wide() ? kLoad64Zero : kLoad32Zero, offset);
    } else {
      b_.push(all, part);
      body_.memory(all.wide() ? kLoad64Lane : kLoad32Lane, offset, within);
    }
    b_.pop_part(all, part);
  }
  return all;
}

void LaneCode::scatter(const MemoryPlace& place, const Value& index, const Value& value, int more) {
  for_active_lanes([&](int l) { store_one(place, b_.lane(index, l), b_.lane(value, l), more); });
}

/// Components of lanes whose elements follow each other.
Slot LaneCode::load_wide_row(const Access& a) {
  const MemoryPlace& place = a.place;
  const Type type = raw_type(place.storage);
  Slot values;
  for (int k = 0; k < a.components; ++k) values[size_t(k)] = b_.variable(type, true);
  const auto whole = [&] {
    const Value index = scalar(a.index);
    check(a, index, kLanes * a.components);
    std::vector<Local> memory;
    for (int k = 0; k < kLanes * a.components * size_of(place.storage) / 16; ++k) {
      push_address(place, index);
      body_.memory(kLoad, place.offset + uint32_t(16 * k));
      memory.push_back(body_.local(Kind::v128));
      body_.set(memory.back());
    }
    const std::vector<Value> all = components_of(b_, type, a.components, memory);
    for (size_t k = 0; k < all.size(); ++k) b_.assign(values[k], all[k]);
  };
  const auto apart = [&] {
    check_lanes(a, vector(a.index));
    for (int k = 0; k < a.components; ++k) b_.assign(values[size_t(k)], gather(place, vector(a.index), k));
  };
  whole_or_apart(whole, apart);
  return values;
}

void LaneCode::store_wide_row(const Access& a, const std::vector<Value>& values) {
  const auto whole = [&] {
    const Value index = scalar(a.index);
    check(a, index, kLanes * a.components);
    uint32_t offset = a.place.offset;
    for (const Local& one : memory_of(b_, values)) {
      push_address(a.place, index);
      body_.get(one);
      body_.memory(kStore, offset);
      offset += 16;
    }
  };
  const auto apart = [&] {
    check_lanes(a, vector(a.index));
    for (int k = 0; k < a.components; ++k) scatter(a.place, vector(a.index), values[size_t(k)], k);
  };
  whole_or_apart(whole, apart);
}

/// The pattern of an access, whose bounds are checked here unless it is a row: what loads and stores those checks them.
LaneCode::Pattern LaneCode::checked(const Access& a) {
  const Form& form = divergence_[a.index];
  if (form.is_uniform()) {
    check(a, scalar(a.index), a.components);
    return Pattern::uniform;
  }
  if (a.components == 1 && form.is_linear(1)) return Pattern::row;
  if ((a.components == 2 || a.components == 4) && form.is_linear(a.components) && !is_narrow(a.place.storage))
    return Pattern::wide_row;
  check_lanes(a, vector(a.index));
  return Pattern::apart;
}

Slot LaneCode::load(const Access& a) {
  const Pattern pattern = checked(a);
  if (pattern == Pattern::wide_row) return load_wide_row(a);
  Slot values;
  for (int k = 0; k < a.components; ++k) {
    Value raw;
    if (pattern == Pattern::uniform)
      raw = load_one(a.place, scalar(a.index), k);
    else if (pattern == Pattern::row)
      raw = load_row(a, scalar(a.index));
    else
      raw = gather(a.place, vector(a.index), k);
    values[size_t(k)] = widen(b_, a.place.storage, raw);
  }
  return values;
}

void LaneCode::store(const Access& a, const std::array<Value, 4>& values) {
  const Pattern pattern = checked(a);
  if (pattern == Pattern::wide_row) {
    std::vector<Value> all;
    for (int k = 0; k < a.components; ++k)
      all.push_back(values[size_t(k)].vector ? values[size_t(k)] : b_.splat(values[size_t(k)]));
    return store_wide_row(a, all);
  }
  Value last;  // several lanes at one place: the last active one is seen
  for (int k = 0; k < a.components; ++k) {
    const Value raw = narrow(b_, a.place.storage, values[size_t(k)]);
    if (pattern == Pattern::uniform) {
      if (raw.vector && !last) {
        last = Builder::i32(kLanes - 1);
        if (mask_) {
          b_.push(Builder::i32(31));
          b_.push(b_.bitmask(mask_));
          body_.op(kClzI32);
          body_.op(kSubI32);
          last = b_.pop(Type::i32);
        }
      }
      store_one(a.place, scalar(a.index), raw.vector ? b_.lane(raw, last) : raw, k);
      continue;
    }
    const Value all = raw.vector ? raw : b_.splat(raw);
    if (pattern == Pattern::row)
      store_row(a, scalar(a.index), all);
    else
      scatter(a.place, vector(a.index), all, k);
  }
}

void LaneCode::load_instruction(Id id) {
  const Instruction& i = f_[id];
  slots_[id] = load({i.op == Op::load ? u_.buffer(i.imm) : u_.shared(i.imm), i.args[0], i.lanes, i.place});
}

void LaneCode::store_instruction(Id id) {
  const Instruction& i = f_[id];
  std::array<Value, 4> values;
  for (int k = 0; k < i.lanes; ++k) {
    const Id value = i.args[size_t(1 + k)];
    values[size_t(k)] = divergence_.uniform(value) ? scalar(value) : vector(value);
  }
  store({i.op == Op::store ? u_.buffer(i.imm) : u_.shared(i.imm), i.args[0], i.lanes, i.place}, values);
}

void LaneCode::async_copy(Id id) {
  const Instruction& i = f_[id];
  store({u_.shared(i.imm >> 32), i.args[0], i.lanes, i.place},
        load({u_.buffer(i.imm & 0xffffffffu), i.args[1], i.lanes, i.place}));
}

/// One lane after the other, in order: one thread runs the launch, so no atomic instruction is needed.
Value LaneCode::atomic(Id id) {
  const Instruction& i = f_[id];
  const ir::AtomicTarget target = ir::AtomicTarget::from_bits(i.imm);
  const MemoryPlace place = target.shared ? u_.shared(target.array) : u_.buffer(target.array);
  std::array<Value, 3> operands;
  for (int k = 0; k < i.arg_count(); ++k) operands[size_t(k)] = vector(i.args[size_t(k)]);
  check_lanes({place, i.args[0], 1, i.place}, operands[0]);
  const auto combine = [&](const Value& old, const Value& value, int l) {
    switch (target.op) {
      case ir::AtomicOp::add: return lower_op(b_, is_float(i.type) ? Op::fadd : Op::iadd, old, value);
      case ir::AtomicOp::min: return b_.min(old, value);
      case ir::AtomicOp::max: return b_.max(old, value);
      case ir::AtomicOp::and_: return b_.and_(old, value);
      case ir::AtomicOp::or_: return b_.or_(old, value);
      case ir::AtomicOp::xor_: return b_.xor_(old, value);
      case ir::AtomicOp::compare_exchange:
        return b_.select(b_.equal(old, b_.lane(operands[2], l)), value, old);
      case ir::AtomicOp::exchange: break;
    }
    return value;
  };
  std::array<Value, kLanes> before;
  for (Value& old : before) {
    old = b_.variable(i.type, false);
    if (mask_) b_.assign(old, Builder::constant(i.type, 0));
  }
  for_active_lanes([&](int l) {
    const Value index = b_.lane(operands[0], l);
    const Value& old = before[size_t(l)];
    b_.assign(old, load_one(place, index));
    store_one(place, index, combine(old, b_.lane(operands[1], l), l));
  });
  return b_.combine(before);
}

// A local array keeps one vector of lanes per element.

MemoryPlace LaneCode::local_array(uint64_t number) {
  if (const auto found = local_arrays_.find(number); found != local_arrays_.end()) return found->second;
  const ir::ArrayDecl& array = f_.locals[number];
  auto place = outer_array(number);
  if (!place) place = u_.scratch(array.count * kLanes * size_of(array.storage), array.storage);
  place->elements = array.count;
  return local_arrays_[number] = *place;
}

/// The lanes' elements with the same number are contiguous. They need no check other than that of the number.
LaneCode::Access LaneCode::lanes_of(const Access& a) {
  Access row = a;
  row.place.elements = kChecked;
  return row;
}

/// Indices of each lane's elements.
Value LaneCode::local_elements(const Value& index) {
  return b_.add(b_.shl(index, 2), b_.ramp(Builder::i32(0), 1));
}

Value LaneCode::local_load(Id id) {
  const Instruction& i = f_[id];
  const Access a{local_array(i.imm), i.args[0], 1, i.place};
  if (!divergence_.uniform(a.index)) {
    check_lanes(a, vector(a.index));
    return gather(a.place, local_elements(vector(a.index)), 0);
  }
  check(a, scalar(a.index), 1);
  const Value mask = std::exchange(mask_, Value());  // every lane has its own element
  const Value all = load_row(lanes_of(a), b_.shl(scalar(a.index), 2));
  mask_ = mask;
  return all;
}

void LaneCode::local_store(Id id) {
  const Instruction& i = f_[id];
  const Access a{local_array(i.imm), i.args[0], 1, i.place};
  const Value value = vector(i.args[1]);
  if (!divergence_.uniform(a.index)) {
    check_lanes(a, vector(a.index));
    return scatter(a.place, local_elements(vector(a.index)), value, 0);
  }
  check(a, scalar(a.index), 1);
  store_row(lanes_of(a), b_.shl(scalar(a.index), 2), value);
}

}  // namespace lockstep::compile::wasm
