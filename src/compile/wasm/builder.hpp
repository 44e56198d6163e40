// Values in locals and the operations on them, the same for scalars and for vectors of four lanes.
#pragma once

#include <functional>
#include <initializer_list>

#include "compile/wasm/body.hpp"
#include "lockstep/types.hpp"

namespace lockstep::compile::wasm {

inline constexpr int kLanes = 4;

/// A scalar, or four lanes: one vector, or two where a lane has 64 bits. A bool is an i32 of 0 or 1; a lane's, a mask of
/// 0 or -1.
struct Value {
  Type type = Type::none;
  bool vector = false, constant = false;
  uint64_t bits = 0;  // of a constant, the same in all lanes
  std::array<Local, 2> part;

  explicit operator bool() const { return type != Type::none; }
  bool wide() const { return is_wide(type); }
  int parts() const { return vector && wide() ? 2 : 1; }
};

/// One operation on 32-bit and 64-bit scalars, and on vectors of such lanes; kNone where there is none.
struct Forms {
  uint32_t narrow, wide, narrow_lanes, wide_lanes;
};

Kind kind_of(Type type);

class Builder {
 public:
  /// `fuses`: the engine has relaxed SIMD, and its madd rounds once.
  Builder(std::shared_ptr<Body> body, std::function<uint32_t(std::string_view)> helper, bool fuses = false)
      : body_(std::move(body)), helper_(std::move(helper)), fuses_(fuses) {}

  Body& body() { return *body_; }
  /// The number of a helper function of the module (helpers.hpp).
  uint32_t helper(std::string_view name) { return helper_(name); }
  bool fuses() const { return fuses_; }

  static Value constant(Type type, uint64_t bits) { return {type, false, true, bits, {}}; }
  static Value i32(int64_t value) { return constant(Type::i32, uint32_t(value)); }
  /// The number as a constant of the same type and lanes.
  static Value like(const Value& x, uint64_t bits) {
    return {x.type, x.vector, true, x.wide() ? bits : uint32_t(bits), {}};
  }

  void push(const Value& x, int part = 0);
  /// The top of the stack, in a new local. The parts of a vector come one after the other by pop_part.
  Value pop(Type type, bool vector = false);
  void pop_part(Value& to, int part);
  /// New locals that assign() sets.
  Value variable(Type type, bool vector);
  void assign(const Value& variable, const Value& value);
  Value copy(const Value& x);

  /// One operation of equal operand and result form.
  Value map(const Forms& forms, std::initializer_list<const Value*> operands, Type result = Type::none);
  /// A comparison; gives a bool.
  Value compare(const Forms& forms, const Value& x, const Value& y);
  /// `c`: a scalar bool, or a mask for vectors.
  Value select(const Value& c, const Value& x, const Value& y);
  Value retype(const Value& x, Type type);  // the same bits and kind of local
  Value bitcast(const Value& x, Type type);

  Value splat(const Value& x);
  /// first + stride * lane.
  Value ramp(const Value& first, int64_t stride);
  Value lane(const Value& x, int l);
  Value lane(const Value& x, const Value& l);
  Value combine(const std::array<Value, kLanes>& lanes);
  /// Each lane by itself; f gets its number.
  Value by_lane(const std::function<Value(int)>& f);

  // ── integers of any form ──
  Value add(const Value& x, const Value& y);
  Value sub(const Value& x, const Value& y);
  Value mul(const Value& x, const Value& y);
  Value and_(const Value& x, const Value& y);
  Value or_(const Value& x, const Value& y);
  Value xor_(const Value& x, const Value& y);
  Value not_(const Value& x);
  Value shl(const Value& x, int by);
  Value shr(const Value& x, int by);  // by the type's sign
  Value equal(const Value& x, const Value& y);
  Value less(const Value& x, const Value& y);  // by the type's sign
  Value less_equal(const Value& x, const Value& y);
  Value min(const Value& x, const Value& y);
  Value max(const Value& x, const Value& y);

  // ── masks ──
  Value all_lanes() { return {Type::boolean, true, true, ~uint64_t(0), {}}; }
  Value no_lanes() { return {Type::boolean, true, true, 0, {}}; }
  Value any(const Value& mask);                // scalar bool
  Value all(const Value& mask);                // scalar bool
  Value bitmask(const Value& mask);            // scalar i32, bit per lane
  Value from_mask(const Value& x, Type type);  // 0 and 1

  // ── parts of vectors ──
  /// The low words of both parts, as 32-bit lanes.
  Value low_words(const Value& x, Type type);
  /// Pushes a mask as 64-bit lanes.
  void push_wide_mask(const Value& mask, int part);

 private:
  std::shared_ptr<Body> body_;
  std::function<uint32_t(std::string_view)> helper_;
  bool fuses_;
};

}  // namespace lockstep::compile::wasm
