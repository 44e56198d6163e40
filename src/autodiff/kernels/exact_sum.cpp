#include "autodiff/kernels/exact_sum.hpp"

#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::gradients {

using lockstep::detail::any_value;
using lockstep::detail::id_of;

namespace {

struct Format {
  int width, fraction;  // bits
  int digits;           // of the fixed-point number; digit 0 begins at the least subnormal number
  uint64_t exponents() const { return (uint64_t(1) << (width - 1 - fraction)) - 1; }  // all ones
};
constexpr Format format_of(Type type) { return type == Type::f64 ? Format{64, 52, 66} : Format{32, 23, 9}; }
constexpr uint64_t kDigit = 0xffffffffu;
enum : uint64_t { kNan = 1, kInfinity = 2, kMinusInfinity = 4 };

AnyVal u64_number(uint64_t v) { return AnyVal::number(Type::u64, v); }

}  // namespace

int64_t sum_words(Type type) { return format_of(type).digits + 1; }

void add_exactly(uint32_t sums, ir::Id offset, ir::Id term) {
  ir::Builder& b = lockstep::detail::builder();
  const Type type = b.type(term);
  const Format format = format_of(type);
  const AnyVal value = any_value(term);
  const AnyVal bits =
      type == Type::f64 ? value.bitcast(Type::u64) : value.bitcast(Type::u32).convert(Type::u64);
  const AnyVal field = (bits >> format.fraction) & u64_number(format.exponents());
  const AnyVal fraction = bits & u64_number((uint64_t(1) << format.fraction) - 1);
  const Val<bool> negative = (bits >> (format.width - 1)) != 0;
  const AnyVal first = any_value(offset) * AnyVal::number(kIndexType, sum_words(type));
  const auto atomic = [&](ir::AtomicOp op, const AnyVal& at, const AnyVal& v) {
    b.emit(ir::Op::atomic, Type::i64, {id_of(at), id_of(v)}, ir::AtomicTarget{op, false, sums}.bits());
  };
  const auto special = [&] {
    const AnyVal flag = select(AnyVal(fraction != 0), u64_number(kNan),
                               select(AnyVal(negative), u64_number(kMinusInfinity), u64_number(kInfinity)));
    atomic(ir::AtomicOp::or_, first + AnyVal::number(kIndexType, format.digits), flag.bitcast(Type::i64));
  };
  const auto finite = [&] {
    const AnyVal normal = field != 0;
    const AnyVal whole = select(normal, fraction | u64_number(uint64_t(1) << format.fraction), fraction);
    const AnyVal lowest = select(normal, field - 1, field);  // bit of the number that bit 0 of `whole` is
    const AnyVal shift = lowest & u64_number(31);
    const AnyVal at = first + (lowest >> 5).convert(kIndexType);
    const AnyVal low = (whole & u64_number(kDigit)) << shift, high = (whole >> 32) << shift;
    const auto add = [&](int digit, const AnyVal& v) {
      const AnyVal magnitude = v.bitcast(Type::i64);
      atomic(ir::AtomicOp::add, at + AnyVal::number(kIndexType, digit),
             select(AnyVal(negative), -magnitude, magnitude));
    };
    add(0, low & u64_number(kDigit));
    add(1, (low >> 32) + (high & u64_number(kDigit)));
    if (type == Type::f64) add(2, high >> 32);
  };
  const auto nonzero = [&] { b.if_(id_of(AnyVal((field | fraction) != 0)), finite); };
  b.if_(id_of(AnyVal(field == u64_number(format.exponents()))), special, nonzero);
}

namespace {

/// Digits of one sum while it is rounded.
class Digits {
 public:
  Digits(const InOut<i64, 2>& sums, const Val<i32>& element, const Format& format)
      : sums_(sums), element_(element), count_(format.digits) {}
  Val<u64> operator[](const Val<i32>& k) const { return bitcast<u64>(Val<i64>(sums_(element_, k))); }
  /// 0 past the last one.
  Val<u64> or_zero(const Val<i32>& k) const {
    return select(k < count_, (*this)[min(k, count_ - 1)], u64(0));
  }
  /// Leaves each digit below 2^32. Gives what lies above the last.
  Val<i64> carry() const {
    Var<i64> carry = Val<i64>(i64(0));
    for_(0, count_, [&](Val<i32> k) {
      const Val<i64> digit = sums_(element_, k) + Val<i64>(carry);
      sums_(element_, k) = digit & i64(kDigit);
      carry = digit >> 32;
    });
    return carry;
  }
  /// The two's complement. Gives what lies above the last digit.
  Val<i64> negate() const {
    Var<i64> carry = Val<i64>(i64(1));
    for_(0, count_, [&](Val<i32> k) {
      const Val<i64> digit = (sums_(element_, k) ^ i64(kDigit)) + Val<i64>(carry);
      sums_(element_, k) = digit & i64(kDigit);
      carry = digit >> 32;
    });
    return carry;
  }

 private:
  const InOut<i64, 2>& sums_;
  Val<i32> element_;
  int count_;
};

/// Bits of the magnitude, rounded to nearest even.
Val<u64> rounded_bits(const Digits& digits, const Format& format) {
  Var<i32> top = Val<i32>(-1);
  for_(0, format.digits, [&](Val<i32> k) { if_(digits[k] != 0, [&] { top = k; }); });
  Var<u64> bits = Val<u64>(u64(0));
  if_(top >= 0, [&] {
    const Val<i32> highest = Val<i32>(top) * 32 + 63 - cast<i32>(clz(digits[top]));
    const Val<i32> lowest = max(highest - format.fraction, 0), k = lowest >> 5;
    const Val<u64> shift = cast<u64>(lowest & 31);
    const Val<u64> low = digits[k], middle = digits.or_zero(k + 1), high = digits.or_zero(k + 2);
    const Val<u64> whole = ((low | (middle << 32)) >> shift) | ((high << (63 - shift)) << 1);
    Var<u64> up = Val<u64>(u64(0));
    if_(lowest > 0, [&] {
      const Val<i32> half = (lowest - 1) >> 5;
      const Val<u64> bit = u64(1) << cast<u64>((lowest - 1) & 31);
      Var<u64> below = digits[half] & (bit - 1);
      for_(0, half, [&](Val<i32> j) { below = below | digits[j]; });
      if_((digits[half] & bit) != 0 && (below != 0 || (whole & 1) != 0), [&] { up = Val<u64>(u64(1)); });
    });
    bits = (cast<u64>(lowest) << format.fraction) + whole + up;
    const u64 infinity = format.exponents() << format.fraction;
    if_(bits > infinity || cast<u64>(lowest) > format.exponents() - 2, [&] { bits = Val<u64>(infinity); });
  });
  return bits;
}

/// The float nearest to a sum, whose digits change.
template <class T>
Val<T> rounded_sum(const InOut<i64, 2>& sums, const Val<i32>& element) {
  const Format format = format_of(sizeof(T) == 8 ? Type::f64 : Type::f32);
  const u64 infinity = format.exponents() << format.fraction, sign = u64(1) << (format.width - 1);
  const Digits digits(sums, element, format);
  Var<i64> above = digits.carry();
  const Val<bool> negative = above < 0;
  if_(negative, [&] { above = digits.negate() - 1 - Val<i64>(above); });
  const Val<u64> flags = bitcast<u64>(Val<i64>(sums(element, format.digits)));
  Var<u64> bits = rounded_bits(digits, format);
  if_(above != 0, [&] { bits = Val<u64>(infinity); });
  bits = bits | select(negative, Val<u64>(sign), u64(0));
  if_(flags == u64(kInfinity), [&] { bits = Val<u64>(infinity); });
  if_(flags == u64(kMinusInfinity), [&] { bits = Val<u64>(infinity | sign); });
  if_((flags & u64(kNan)) != 0 || flags == u64(kInfinity | kMinusInfinity),
      [&] { bits = Val<u64>(infinity | u64(1) << (format.fraction - 1)); });
  if constexpr (sizeof(T) == 8)
    return bitcast<f64>(Val<u64>(bits));
  else
    return bitcast<f32>(cast<u32>(bits));
}
template <class T>
Kernel make_rounding_kernel(const char* name) {
  return kernel(
      name, [](At<1> at, InOut<i64, 2> sums, Out<T, 1> result) { result[at] = rounded_sum<T>(sums, at.x); });
}
template <class T>
ir::Id take(const InOut<i64, 2>& sums, const Val<i32>& element) {
  const Val<T> sum = rounded_sum<T>(sums, element);
  for_(0, int(sum_words(sizeof(T) == 8 ? Type::f64 : Type::f32)),
       [&](Val<i32> k) { sums(element, k) = Val<i64>(i64(0)); });
  return sum.id();
}

}  // namespace

ir::Id take_exactly(uint32_t sums, ir::Id element, Type type) {
  const InOut<i64, 2> words(sums);
  const auto at = Val<i32>::from(element);
  return type == Type::f64 ? take<f64>(words, at) : take<f32>(words, at);
}

const Kernel& rounding_kernel(Type type) {
  static const Kernel narrow = make_rounding_kernel<f32>("gradient.round.f32");
  static const Kernel wide = make_rounding_kernel<f64>("gradient.round.f64");
  return type == Type::f64 ? wide : narrow;
}

}  // namespace lockstep::gradients
