// Records of loops in the kernel that is being built, and where lanes have their own elements.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "autodiff/kernels/adjoint.hpp"

namespace lockstep::gradients {

/// Number of the lane's group, or of its point.
inline ir::Id place_number(ir::Builder& b) {
  ir::Id number = ir::kNone;
  for (int axis = b.function().rank - 1; axis >= 0; --axis) {
    const ir::Id at = b.convert(kIndexType, b.emit(ir::Op::coord, Type::i32, {}, uint64_t(axis)));
    const ir::Id n = b.convert(kIndexType, b.emit(ir::Op::extent, Type::i32, {}, uint64_t(axis)));
    number = number == ir::kNone
                 ? at
                 : b.op(ir::Op::iadd, {b.op(ir::Op::imul, {number, n}, ir::kNoWrap), at}, ir::kNoWrap);
  }
  return number;
}
/// Number of the lane among all.
inline ir::Id lane_number(ir::Builder& b) {
  const ir::Id place = place_number(b);
  if (b.function().domain == ir::Domain::points) return place;
  const ir::Id lanes = b.convert(kIndexType, b.i32(b.function().group_lanes()));
  const ir::Id lane = b.convert(kIndexType, b.emit(ir::Op::lane, Type::i32, {}));
  return b.op(ir::Op::iadd, {b.op(ir::Op::imul, {place, lanes}, ir::kNoWrap), lane}, ir::kNoWrap);
}
/// Row `word` of a buffer of rank 2 at a column.
inline ir::Id word_offset(ir::Builder& b, uint32_t buffer, ir::Id word, ir::Id column) {
  const ir::Id stride = b.emit(ir::Op::stride, kIndexType, {}, uint64_t(buffer) * 8);
  return b.op(ir::Op::iadd, {b.op(ir::Op::imul, {b.convert(kIndexType, word), stride}, ir::kNoWrap), column},
              ir::kNoWrap);
}
/// Offset of the lane's element in a buffer of lane_buffer().
inline ir::Id lane_offset(ir::Builder& b, uint32_t buffer) {
  return b.function().domain == ir::Domain::points ? own_point(b, buffer) : lane_number(b);
}

/// In a buffer of record_words().
inline void note_words(ir::Builder& b, uint32_t buffer, ir::Id words) {
  const ir::Id slot = b.op(ir::Op::band, {lane_number(b), b.constant(kIndexType, kCountSlots - 1)});
  b.emit(ir::Op::atomic, Type::i32, {slot, words}, ir::AtomicTarget{ir::AtomicOp::max, false, buffer}.bits());
}

inline uint32_t add_array(ir::Builder& b, Storage storage, int64_t count) {
  auto& arrays = b.function().locals;
  arrays.push_back({fmt::format("l{}", arrays.size()), storage, count});
  return uint32_t(arrays.size() - 1);
}

/// Words of records: a column of a buffer for each lane, or an array of the lane for each loop. An inner loop has its own,
/// so that lanes whose outer loops differ in length use the same word of it at a time.
class Record {
 public:
  Record(ir::Builder& b, const Plan& plan) : b_(b), buffer_(plan.in_lanes ? ir::kNoBlock : plan.record) {
    if (buffer_ != ir::kNoBlock) lane_ = lane_number(b);
  }
  bool in_lanes() const { return buffer_ == ir::kNoBlock; }
  /// The following words are of this loop, at most `most` words where lanes keep them. `bounded`: further ones are left out.
  void of_loop(ir::Id loop, int64_t most, bool bounded) {
    if (!in_lanes()) return;
    most_ = bounded ? int32_t(most) : 0;
    const auto [at, added] = arrays_.try_emplace(loop);
    if (added) at->second = add_array(b_, Storage::u32, std::max<int64_t>(most, 1));
    array_ = at->second;
  }
  void save(ir::Id word, ir::Id value) {
    const Type type = b_.type(value);
    if (type == Type::boolean) return put(word, b_.select(value, b_.u32(1), b_.u32(0)));
    if (type == kIndexType) return save(word, b_.convert(Type::i64, value));
    if (!is_wide(type)) return put(word, b_.bitcast(Type::u32, value));
    const ir::Id bits = b_.bitcast(Type::u64, value);
    put(word, b_.convert(Type::u32, bits));
    put(next(word), b_.convert(Type::u32, b_.op(ir::Op::shr, {bits, b_.number(Type::u64, 32)})));
  }
  ir::Id restore(ir::Id word, Type type) {
    if (type == Type::boolean) return b_.op(ir::Op::ine, {take(word), b_.u32(0)});
    if (type == kIndexType) return b_.convert(kIndexType, restore(word, Type::i64));
    if (!is_wide(type)) return b_.bitcast(type, take(word));
    const ir::Id high =
        b_.op(ir::Op::shl, {b_.convert(Type::u64, take(next(word))), b_.number(Type::u64, 32)});
    return b_.bitcast(type, b_.op(ir::Op::bor, {b_.convert(Type::u64, take(word)), high}));
  }

 private:
  ir::Id next(ir::Id word) { return b_.op(ir::Op::iadd, {word, b_.i32(1)}, ir::kNoWrap); }
  ir::Id offset(ir::Id word) { return word_offset(b_, buffer_, word, lane_); }
  void put(ir::Id word, ir::Id bits) {
    if (!in_lanes())
      b_.emit(ir::Op::store, Type::none, {offset(word), bits}, buffer_);
    else if (most_ == 0)
      b_.emit(ir::Op::local_store, Type::none, {word, bits}, array_);
    else
      b_.if_(b_.op(ir::Op::ilt, {word, b_.i32(most_)}),
             [&] { b_.emit(ir::Op::local_store, Type::none, {word, bits}, array_); });
  }
  ir::Id take(ir::Id word) {
    if (in_lanes()) return b_.emit(ir::Op::local_load, Type::u32, {word}, array_);
    return b_.emit(ir::Op::load, Type::u32, {offset(word)}, buffer_);
  }

  ir::Builder& b_;
  uint32_t buffer_, array_ = ir::kNoBlock;
  int32_t most_ = 0;
  std::map<ir::Id, uint32_t> arrays_;  // by loop
  ir::Id lane_ = ir::kNone;
};

}  // namespace lockstep::gradients
