#include "compile/wasm/builder.hpp"

namespace lockstep::compile::wasm {

Kind kind_of(Type type) {
  switch (type) {
    case Type::i64:
    case Type::u64: return Kind::i64;
    case Type::f32: return Kind::f32;
    case Type::f64: return Kind::f64;
    default: return Kind::i32;
  }
}

namespace {

Kind local_kind(Type type, bool vector) { return vector ? Kind::v128 : kind_of(type); }

constexpr uint32_t v(uint32_t number) { return kVector | number; }
constexpr Forms kAdd{0x6a, 0x7c, v(0xae), v(0xce)}, kSub{0x6b, 0x7d, v(0xb1), v(0xd1)},
    kMul{0x6c, 0x7e, v(0xb5), v(0xd5)}, kAndForms{0x71, 0x83, kAnd, kAnd}, kOrForms{0x72, 0x84, kOr, kOr},
    kXorForms{0x73, 0x85, kXor, kXor}, kShiftLeft{0x74, 0x86, v(0xab), v(0xcb)},
    kShiftSigned{0x75, 0x87, v(0xac), v(0xcc)}, kShiftUnsigned{0x76, 0x88, v(0xad), v(0xcd)},
    kEqual{0x46, 0x51, v(0x37), v(0xd6)}, kLessSigned{0x48, 0x53, v(0x39), v(0xd8)},
    kLessUnsigned{0x49, 0x54, v(0x3a), kNone}, kLessEqualSigned{0x4c, 0x57, v(0x3d), v(0xda)},
    kLessEqualUnsigned{0x4d, 0x58, v(0x3e), kNone};

}  // namespace

void Builder::push(const Value& x, int part) {
  if (!x.constant) return body_->get(x.part[size_t(part)]);
  if (!x.vector) return body_->constant(kind_of(x.type), x.bits);
  const uint64_t word = x.wide() ? x.bits : (x.bits & 0xffffffffu) * 0x100000001u;
  body_->constant({word, word});
}

void Builder::pop_part(Value& to, int part) {
  Local& local = to.part[size_t(part)];
  if (!local) local = body_->local(local_kind(to.type, to.vector));
  body_->set(local);
}

Value Builder::pop(Type type, bool vector) {
  Value x{type, vector, false, 0, {}};
  pop_part(x, 0);
  return x;
}

Value Builder::variable(Type type, bool vector) {
  Value x{type, vector, false, 0, {}};
  for (int k = 0; k < x.parts(); ++k) x.part[size_t(k)] = body_->local(local_kind(type, vector));
  return x;
}

void Builder::assign(const Value& variable, const Value& value) {
  for (int k = 0; k < variable.parts(); ++k) push(value, k);
  for (int k = variable.parts() - 1; k >= 0; --k) body_->set(variable.part[size_t(k)]);
}

Value Builder::copy(const Value& x) {
  if (x.constant) return x;
  const Value fresh = variable(x.type, x.vector);
  assign(fresh, x);
  return fresh;
}

Value Builder::map(const Forms& forms, std::initializer_list<const Value*> operands, Type result) {
  const Value& first = **operands.begin();
  Value x{result == Type::none ? first.type : result, first.vector, false, 0, {}};
  const bool wide = first.wide();
  const uint32_t opcode =
      x.vector ? (wide ? forms.wide_lanes : forms.narrow_lanes) : (wide ? forms.wide : forms.narrow);
  if (opcode == kNone) {
    return by_lane([&](int l) {
      std::array<Value, 3> scalars;
      size_t n = 0;
      for (const Value* operand : operands) scalars[n++] = operand->vector ? lane(*operand, l) : *operand;
      if (n == 1) return map(forms, {&scalars[0]}, result);
      return n == 2 ? map(forms, {&scalars[0], &scalars[1]}, result)
                    : map(forms, {&scalars[0], &scalars[1], &scalars[2]}, result);
    });
  }
  for (int k = 0; k < x.parts(); ++k) {
    for (const Value* operand : operands) push(*operand, operand->vector ? k : 0);
    body_->op(Opcode(opcode));
    pop_part(x, k);
  }
  return x;
}

Value Builder::compare(const Forms& forms, const Value& x, const Value& y) {
  const uint32_t opcode =
      x.vector ? (x.wide() ? forms.wide_lanes : forms.narrow_lanes) : (x.wide() ? forms.wide : forms.narrow);
  for (int k = 0; k < x.parts(); ++k) {
    push(x, k), push(y, k);
    body_->op(Opcode(opcode));
  }
  // Of 64-bit masks the low words.
  if (x.parts() == 2) body_->shuffle({0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27});
  return pop(Type::boolean, x.vector);
}

void Builder::push_wide_mask(const Value& mask, int part) {
  push(mask);
  body_->op(part == 0 ? kExtendLowS : kExtendHighS);
}

Value Builder::select(const Value& c, const Value& x, const Value& y) {
  if (c.constant) return c.bits != 0 ? x : y;
  Value r{x.type, x.vector, false, 0, {}};
  for (int k = 0; k < r.parts(); ++k) {
    push(x, k), push(y, k);
    if (!c.vector) {
      push(c);
      body_->op(kSelect);
    } else {
      r.parts() == 2 ? push_wide_mask(c, k) : push(c);
      body_->op(!fuses_ ? kBitselect : r.parts() == 2 ? kSelect64 : kSelect32);
    }
    pop_part(r, k);
  }
  return r;
}

Value Builder::retype(const Value& x, Type type) {
  Value r = x;
  r.type = type;
  return r;
}

Value Builder::bitcast(const Value& x, Type type) {
  if (x.constant || x.vector || kind_of(x.type) == kind_of(type)) return retype(x, type);
  push(x);
  body_->op(Opcode(is_float(type) ? (is_wide(type) ? 0xbf : 0xbe) : (is_wide(type) ? 0xbd : 0xbc)));
  return pop(type);
}

Value Builder::splat(const Value& x) {
  Value r{x.type, true, false, 0, {}};
  if (x.constant) {
    r.constant = true;
    r.bits = x.type == Type::boolean ? (x.bits != 0 ? ~uint64_t(0) : 0) : x.bits;
    return r;
  }
  if (x.type == Type::boolean) {
    push(i32(0)), push(x);
    body_->op(kSubI32);
    body_->op(kSplat32);
    return pop(Type::boolean, true);
  }
  static constexpr Opcode kSplats[] = {kSplat32, kSplat64, kSplatF32, kSplatF64};
  push(x);
  body_->op(kSplats[(is_float(x.type) ? 2 : 0) + (x.wide() ? 1 : 0)]);
  pop_part(r, 0);
  if (r.parts() == 2) r.part[1] = r.part[0];
  return r;
}

Value Builder::ramp(const Value& first, int64_t stride) {
  const Value base = splat(first);
  Value r{first.type, true, false, 0, {}};
  for (int k = 0; k < r.parts(); ++k) {
    push(base, k);
    const auto at = [&](int l) { return uint64_t(stride * l); };
    if (r.wide()) {
      body_->constant({at(2 * k), at(2 * k + 1)});
    } else {
      const auto pair = [&](int l) { return (at(l) & 0xffffffffu) | at(l + 1) << 32; };
      body_->constant({pair(0), pair(2)});
    }
    body_->op(Opcode(r.wide() ? kAdd.wide_lanes : kAdd.narrow_lanes));
    pop_part(r, k);
  }
  return r;
}

Value Builder::lane(const Value& x, int l) {
  if (x.constant) return {x.type, false, true, x.type == Type::boolean ? x.bits & 1 : x.bits, {}};
  static constexpr Opcode kExtracts[] = {kExtract32, kExtract64, kExtractF32, kExtractF64};
  push(x, x.wide() ? l / 2 : 0);
  body_->lane(kExtracts[(is_float(x.type) ? 2 : 0) + (x.wide() ? 1 : 0)], x.wide() ? l % 2 : l);
  if (x.type == Type::boolean) {
    push(i32(1));
    body_->op(kAndI32);
  }
  return pop(x.type);
}

/// Bytes of the lane come to the front by a swizzle.
Value Builder::lane(const Value& x, const Value& l) {
  if (l.constant) return lane(x, int(l.bits));
  if (x.constant) return lane(x, 0);
  Value moved{x.type, true, false, 0, {}};
  if (x.wide()) {
    // Lanes 0 and 1 of either part, then the part.
    push(x, 0), push(x, 1);
    push(less(l, i32(2)));
    body_->op(kSelect);
    push(mul(and_(l, i32(1)), i32(0x08080808)));
    body_->op(kSplat32);
    body_->constant({0x0706050403020100u, 0x0706050403020100u});
  } else {
    push(x);
    push(mul(l, i32(0x04040404)));
    body_->op(kSplat32);
    body_->constant({0x0302010003020100u, 0x0302010003020100u});
  }
  body_->op(Opcode(kAdd.narrow_lanes));
  body_->op(kSwizzle);
  pop_part(moved, 0);
  return lane(moved, 0);
}

Value Builder::combine(const std::array<Value, kLanes>& lanes) {
  Value r{lanes[0].type, true, false, 0, {}};
  static constexpr Opcode kSplats[] = {kSplat32, kSplat64, kSplatF32, kSplatF64},
                          kReplaces[] = {kReplace32, kReplace64, kReplaceF32, kReplaceF64};
  const int form = (is_float(r.type) ? 2 : 0) + (r.wide() ? 1 : 0), each = r.wide() ? 2 : 4;
  for (int k = 0; k < r.parts(); ++k) {
    push(lanes[size_t(k * each)]);
    body_->op(kSplats[form]);
    for (int l = 1; l < each; ++l) {
      push(lanes[size_t(k * each + l)]);
      body_->lane(kReplaces[form], l);
    }
    pop_part(r, k);
  }
  if (r.type != Type::boolean) return r;
  const Value ones = retype(r, Type::i32);
  return retype(sub(like(ones, 0), ones), Type::boolean);
}

Value Builder::by_lane(const std::function<Value(int)>& f) {
  std::array<Value, kLanes> all;
  for (int l = 0; l < kLanes; ++l) all[size_t(l)] = f(l);
  return combine(all);
}

Value Builder::add(const Value& x, const Value& y) {
  if (x.constant && y.constant) return like(x, x.bits + y.bits);
  if (y.constant && y.bits == 0) return x;
  return map(kAdd, {&x, &y});
}
Value Builder::sub(const Value& x, const Value& y) { return map(kSub, {&x, &y}); }
Value Builder::mul(const Value& x, const Value& y) {
  if (x.constant && y.constant) return like(x, x.bits * y.bits);
  return map(kMul, {&x, &y});
}
Value Builder::and_(const Value& x, const Value& y) { return map(kAndForms, {&x, &y}); }
Value Builder::or_(const Value& x, const Value& y) { return map(kOrForms, {&x, &y}); }
Value Builder::xor_(const Value& x, const Value& y) { return map(kXorForms, {&x, &y}); }
Value Builder::not_(const Value& x) {
  return xor_(x, like(x, x.type == Type::boolean && !x.vector ? 1 : ~uint64_t(0)));
}
Value Builder::shl(const Value& x, int by) {
  const Value amount = constant(x.vector || !x.wide() ? Type::i32 : x.type, uint64_t(by));
  return map(kShiftLeft, {&x, &amount});
}
Value Builder::shr(const Value& x, int by) {
  const Value amount = constant(x.vector || !x.wide() ? Type::i32 : x.type, uint64_t(by));
  return map(is_signed(x.type) ? kShiftSigned : kShiftUnsigned, {&x, &amount});
}

namespace {
constexpr uint64_t kSign64 = uint64_t(1) << 63;
bool needs_flip(const Value& x) { return x.vector && x.type == Type::u64; }
}  // namespace

Value Builder::equal(const Value& x, const Value& y) { return compare(kEqual, x, y); }
/// Unsigned 64-bit lanes are compared as signed ones with the sign bit flipped.
Value Builder::less(const Value& x, const Value& y) {
  if (needs_flip(x)) return compare(kLessSigned, xor_(x, like(x, kSign64)), xor_(y, like(y, kSign64)));
  return compare(is_signed(x.type) ? kLessSigned : kLessUnsigned, x, y);
}
Value Builder::less_equal(const Value& x, const Value& y) {
  if (needs_flip(x)) return compare(kLessEqualSigned, xor_(x, like(x, kSign64)), xor_(y, like(y, kSign64)));
  return compare(is_signed(x.type) ? kLessEqualSigned : kLessEqualUnsigned, x, y);
}
Value Builder::min(const Value& x, const Value& y) {
  const bool sgn = is_signed(x.type);
  if (x.vector && !x.wide()) return map({kNone, kNone, v(sgn ? 0xb6 : 0xb7), kNone}, {&x, &y});
  return select(less(y, x), y, x);
}
Value Builder::max(const Value& x, const Value& y) {
  const bool sgn = is_signed(x.type);
  if (x.vector && !x.wide()) return map({kNone, kNone, v(sgn ? 0xb8 : 0xb9), kNone}, {&x, &y});
  return select(less(x, y), y, x);
}

Value Builder::any(const Value& mask) {
  if (mask.constant) return constant(Type::boolean, mask.bits & 1);
  push(mask);
  body_->op(kBitmask32);
  push(i32(0));
  body_->op(kNotEqualI32);
  return pop(Type::boolean);
}
Value Builder::all(const Value& mask) {
  if (mask.constant) return constant(Type::boolean, mask.bits & 1);
  push(mask);
  body_->op(kBitmask32);
  push(i32((1 << kLanes) - 1));
  body_->op(Opcode(kEqual.narrow));
  return pop(Type::boolean);
}
Value Builder::bitmask(const Value& mask) {
  if (mask.constant) return i32(mask.bits != 0 ? 15 : 0);
  push(mask);
  body_->op(kBitmask32);
  return pop(Type::i32);
}

/// A bool as a number of the type.
Value Builder::from_mask(const Value& x, Type type) {
  const Value one{type,
                  x.vector,
                  true,
                  type == Type::f32   ? 0x3f800000u
                  : type == Type::f64 ? 0x3ff0000000000000u
                                      : 1u,
                  {}};
  return select(x, one, like(one, 0));
}

Value Builder::low_words(const Value& x, Type type) {
  if (x.constant) return {type, true, true, uint32_t(x.bits), {}};
  push(x, 0), push(x, 1);
  body_->shuffle({0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27});
  return pop(type, true);
}

}  // namespace lockstep::compile::wasm
