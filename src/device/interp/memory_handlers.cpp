// Loads, stores, atomic operations and asynchronous copies, with their checks.
#include "device/interp/machine.hpp"
#include "ir/meaning.hpp"

namespace lockstep::interp {

using namespace ir::meaning;
using ir::AtomicOp;
using ir::AtomicTarget;
using ir::Op;

namespace {

template <Storage kStorage>
uint64_t read_element(const uint8_t* p) {
  if constexpr (kStorage == Storage::u8) {
    return *p;
  } else if constexpr (size_of(kStorage) == 2) {
    uint16_t v;
    std::memcpy(&v, p, 2);
    return to_bits(kStorage == Storage::f16 ? f16_to_f32(v) : bf16_to_f32(v));
  } else {
    uint64_t v = 0;
    std::memcpy(&v, p, size_of(kStorage));
    return v;
  }
}
template <Storage kStorage>
void write_element(uint8_t* p, uint64_t bits) {
  if constexpr (kStorage == Storage::u8) {
    *p = uint8_t(bits);
  } else if constexpr (size_of(kStorage) == 2) {
    const float f = from_bits<float>(bits);
    const uint16_t v = kStorage == Storage::f16 ? f32_to_f16(f) : f32_to_bf16(f);
    std::memcpy(p, &v, 2);
  } else {
    std::memcpy(p, &bits, size_of(kStorage));
  }
}

/// Element offset out of a slot: i32 or i64 by the bytes of the index type.
template <bool kWide>
int64_t offset_in(const Machine& m, uint32_t slot) {
  return kWide ? int64_t(m.r[slot]) : int64_t(int32_t(m.r[slot]));
}

void note(Machine& m, const BoundBuffer& b, uint64_t element, bool write, ir::Id source) {
  if (!b.records) return;
  for (uint32_t k = 0; k < b.records_per_element; ++k) {
    AccessRecord& record = b.records[b.record_first + element * b.records_per_element + k];
    if (write ? record.note_write(m.launch, m.group, m.lane, m.epoch)
              : record.note_read(m.launch, m.group, m.lane, m.epoch))
      return m.report(FindingKind::race, source);
  }
}

template <int kBytes>
bool initialised(const BoundBuffer& b, uint64_t element) {
  for (int k = 0; k < kBytes; ++k)
    if (!b.initialised[element * kBytes + k]) return false;
  return true;
}

template <Storage kStorage>
uint64_t load_element(Machine& m, const BoundBuffer& b, int64_t at, ir::Id source) {
  if (uint64_t(at) >= b.elements) {
    m.report(FindingKind::out_of_bounds, source);
    return 0;
  }
  if (!initialised<size_of(kStorage)>(b, uint64_t(at))) m.report(FindingKind::uninitialised, source);
  note(m, b, uint64_t(at), false, source);
  return read_element<kStorage>(b.data + at * size_of(kStorage));
}
template <Storage kStorage>
void store_element(Machine& m, const BoundBuffer& b, int64_t at, uint64_t bits, ir::Id source) {
  if (uint64_t(at) >= b.elements) return m.report(FindingKind::out_of_bounds, source);
  note(m, b, uint64_t(at), true, source);
  write_element<kStorage>(b.data + at * size_of(kStorage), bits);
  std::memset(b.initialised + at * size_of(kStorage), 1, size_of(kStorage));
}

void check_alignment(Machine& m, int64_t at, uint32_t lanes, ir::Id source) {
  if (at % lanes) m.report(FindingKind::misaligned, source);
}

template <Storage kStorage, bool kWide>
void load(Machine& m, const Code& c) {
  m.r[c.dst] = load_element<kStorage>(m, m.buffers[c.imm], offset_in<kWide>(m, c.a), c.source);
}
template <Storage kStorage, bool kWide>
void load_lanes(Machine& m, const Code& c) {
  const int64_t at = offset_in<kWide>(m, c.a);
  check_alignment(m, at, c.more, c.source);
  for (uint32_t k = 0; k < c.more; ++k)
    m.r[c.dst + k] = load_element<kStorage>(m, m.buffers[c.imm], at + k, c.source);
}
template <Storage kStorage, bool kWide>
void store(Machine& m, const Code& c) {
  store_element<kStorage>(m, m.buffers[c.imm], offset_in<kWide>(m, c.a), m.r[c.b], c.source);
}
template <Storage kStorage, bool kWide>
void store_lanes(Machine& m, const Code& c) {
  const int64_t at = offset_in<kWide>(m, c.a);
  const uint32_t lanes = c.dst;
  check_alignment(m, at, lanes, c.source);
  for (uint32_t k = 0; k < lanes; ++k)
    store_element<kStorage>(m, m.buffers[c.imm], at + k, m.r[m.program->wide_slots[c.more + k]], c.source);
}

template <Storage kStorage>
Handler buffer_handler(const ir::Function& f, const ir::Instruction& i) {
  const bool wide = f.index_type == Type::i64;
  if (i.op == Op::load && i.lanes == 1) return wide ? load<kStorage, true> : load<kStorage, false>;
  if (i.op == Op::load) return wide ? load_lanes<kStorage, true> : load_lanes<kStorage, false>;
  if (i.lanes == 1) return wide ? store<kStorage, true> : store<kStorage, false>;
  return wide ? store_lanes<kStorage, true> : store_lanes<kStorage, false>;
}

// ── shared and local arrays: c.b is the first element, c.imm the count ──
bool inside(Machine& m, const Code& c, int64_t at) {
  if (uint64_t(at) < c.imm) return true;
  m.report(FindingKind::out_of_bounds, c.source);
  return false;
}
int64_t index_in(const Machine& m, uint32_t slot) { return int32_t(m.r[slot]); }

void note_shared(Machine& m, size_t element, bool write, ir::Id source) {
  AccessRecord& record = m.shared_records[element];
  if (write ? record.note_write(m.serial, m.group, m.lane, m.epoch)
            : record.note_read(m.serial, m.group, m.lane, m.epoch))
    m.report(FindingKind::race, source);
}
void shared_load(Machine& m, const Code& c) {
  const int64_t first = index_in(m, c.a);
  check_alignment(m, first, c.more, c.source);
  for (uint32_t k = 0; k < c.more; ++k) {
    const int64_t at = first + k;
    m.r[c.dst + k] = 0;
    if (!inside(m, c, at)) continue;
    const size_t element = c.b + size_t(at);
    if (m.shared_stamps[element] != m.serial) m.report(FindingKind::uninitialised, c.source);
    note_shared(m, element, false, c.source);
    m.r[c.dst + k] = m.shared[element];
  }
}
void shared_store(Machine& m, const Code& c) {
  const int64_t at = index_in(m, c.a);
  if (!inside(m, c, at)) return;
  const size_t element = c.b + size_t(at);
  note_shared(m, element, true, c.source);
  m.shared[element] = m.r[c.c];
  m.shared_stamps[element] = m.serial;
}
void local_load(Machine& m, const Code& c) {
  const int64_t at = index_in(m, c.a);
  m.r[c.dst] = 0;
  if (!inside(m, c, at)) return;
  const size_t element = c.b + size_t(at);
  if (m.local_stamps[element] != m.serial) m.report(FindingKind::uninitialised, c.source);
  m.r[c.dst] = m.locals[element];
}
void local_store(Machine& m, const Code& c) {
  const int64_t at = index_in(m, c.a);
  if (!inside(m, c, at)) return;
  const size_t element = c.b + size_t(at);
  m.locals[element] = m.r[c.c];
  m.local_stamps[element] = m.serial;
}

// ── atomic operations ──
template <class T>
T update_integer(AtomicOp op, T old, T value, T compare) {
  switch (op) {
    case AtomicOp::add: return wrap_add(old, value);
    case AtomicOp::min: return value < old ? value : old;
    case AtomicOp::max: return old < value ? value : old;
    case AtomicOp::and_: return old & value;
    case AtomicOp::or_: return old | value;
    case AtomicOp::xor_: return old ^ value;
    case AtomicOp::exchange: return value;
    case AtomicOp::compare_exchange: break;
  }
  return old == compare ? value : old;
}
template <class T>
T update(AtomicOp op, T old, T value, T compare) {
  if constexpr (std::is_floating_point_v<T>)
    return old + value;  // the only one of floats
  else
    return update_integer(op, old, value, compare);
}
uint64_t updated(const Machine& m, const Code& c, uint64_t old) {
  const ir::Instruction& i = m.program->function[c.source];
  const AtomicOp op = AtomicTarget::from_bits(i.imm).op;
  const uint64_t value = m.r[c.b], compare = op == AtomicOp::compare_exchange ? m.r[c.c] : 0;
  return with_type(i.type, [&]<class T>(T) -> uint64_t {
    if constexpr (std::is_same_v<T, bool>)
      return old;
    else
      return to_bits(update(op, from_bits<T>(old), from_bits<T>(value), from_bits<T>(compare)));
  });
}
template <bool kWide, Storage kStorage>
void atomic_buffer(Machine& m, const Code& c) {
  const BoundBuffer& b = m.buffers[c.imm];
  const int64_t at = offset_in<kWide>(m, c.a);
  m.r[c.dst] = 0;
  if (uint64_t(at) >= b.elements) return m.report(FindingKind::out_of_bounds, c.source);
  constexpr int kBytes = size_of(kStorage);
  if (!initialised<kBytes>(b, uint64_t(at))) m.report(FindingKind::uninitialised, c.source);
  note(m, b, uint64_t(at), false, c.source);
  const uint64_t old = read_element<kStorage>(b.data + at * kBytes);
  write_element<kStorage>(b.data + at * kBytes, updated(m, c, old));
  m.r[c.dst] = old;
}
void atomic_shared(Machine& m, const Code& c) {
  const uint32_t array = AtomicTarget::from_bits(m.program->function[c.source].imm).array;
  const int64_t at = index_in(m, c.a);
  m.r[c.dst] = 0;
  if (uint64_t(at) >= uint64_t(m.program->function.shared[array].count))
    return m.report(FindingKind::out_of_bounds, c.source);
  const size_t element = m.program->shared_offset[array] + size_t(at);
  if (m.shared_stamps[element] != m.serial) m.report(FindingKind::uninitialised, c.source);
  note_shared(m, element, false, c.source);
  const uint64_t old = m.shared[element];
  m.shared[element] = updated(m, c, old);
  m.shared_stamps[element] = m.serial;
  m.r[c.dst] = old;
}

// ── asynchronous copies happen when a wait demands them, so that a missing wait shows ──
template <bool kWide>
void async_copy(Machine& m, const Code& c) {
  m.pending[m.lane].push_back({&c, m.stages[m.lane], index_in(m, c.a), offset_in<kWide>(m, c.b)});
}

uint64_t load_any(Machine& m, Storage storage, const BoundBuffer& b, int64_t at, ir::Id source) {
  switch (storage) {
    case Storage::f64:
    case Storage::i64:
    case Storage::u64: return load_element<Storage::u64>(m, b, at, source);
    case Storage::f16: return load_element<Storage::f16>(m, b, at, source);
    case Storage::bf16: return load_element<Storage::bf16>(m, b, at, source);
    case Storage::u8: return load_element<Storage::u8>(m, b, at, source);
    default: return load_element<Storage::u32>(m, b, at, source);
  }
}

void perform(Machine& m, const PendingCopy& copy) {
  const Code& c = *copy.code;
  const ir::Function& f = m.program->function;
  const ir::Instruction& i = f[c.source];
  const uint32_t array = uint32_t(i.imm >> 32), buffer = uint32_t(i.imm);
  check_alignment(m, copy.offset, i.lanes, c.source);
  check_alignment(m, copy.shared_index, i.lanes, c.source);
  for (uint32_t k = 0; k < i.lanes; ++k) {
    const uint64_t bits =
        load_any(m, f.buffers[buffer].storage, m.buffers[buffer], copy.offset + k, c.source);
    const int64_t at = copy.shared_index + k;
    if (uint64_t(at) >= uint64_t(f.shared[array].count)) {
      m.report(FindingKind::out_of_bounds, c.source);
      continue;
    }
    const size_t element = m.program->shared_offset[array] + size_t(at);
    note_shared(m, element, true, c.source);
    m.shared[element] = bits;
    m.shared_stamps[element] = m.serial;
  }
}

}  // namespace

void finish_copies(Machine& m, uint32_t open) {
  auto& pending = m.pending[m.lane];
  const uint32_t closed = m.stages[m.lane], limit = closed > open ? closed - open : 0;
  size_t kept = 0;
  for (const PendingCopy& copy : pending)
    if (copy.stage < limit)
      perform(m, copy);
    else
      pending[kept++] = copy;
  pending.resize(kept);
}

Handler memory_handler(const ir::Function& f, const ir::Instruction& i) {
  const bool wide = f.index_type == Type::i64;
  switch (i.op) {
    case Op::shared_load: return shared_load;
    case Op::shared_store: return shared_store;
    case Op::local_load: return local_load;
    case Op::local_store: return local_store;
    case Op::atomic:
      if (AtomicTarget::from_bits(i.imm).shared) return atomic_shared;
      if (size_of(i.type) == 8)
        return wide ? atomic_buffer<true, Storage::u64> : atomic_buffer<false, Storage::u64>;
      return wide ? atomic_buffer<true, Storage::u32> : atomic_buffer<false, Storage::u32>;
    case Op::async_copy: return wide ? async_copy<true> : async_copy<false>;
    case Op::async_commit: return [](Machine& m, const Code&) { ++m.stages[m.lane]; };
    case Op::async_wait: return [](Machine& m, const Code& c) { finish_copies(m, uint32_t(c.imm)); };
    case Op::load:
    case Op::store:
      switch (f.buffers[i.imm].storage) {
        case Storage::f64:
        case Storage::i64:
        case Storage::u64: return buffer_handler<Storage::u64>(f, i);
        case Storage::f16: return buffer_handler<Storage::f16>(f, i);
        case Storage::bf16: return buffer_handler<Storage::bf16>(f, i);
        case Storage::u8: return buffer_handler<Storage::u8>(f, i);
        default: return buffer_handler<Storage::u32>(f, i);
      }
    default: return nullptr;
  }
}

}  // namespace lockstep::interp
