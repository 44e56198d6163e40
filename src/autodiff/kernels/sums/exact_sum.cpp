#include "autodiff/kernels/sums/exact_sum.hpp"

#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::gradients {

using lockstep::detail::any_value;
using lockstep::detail::id_of;
using lockstep::detail::kType;

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

/// Calls put(operation, word, i64) for the words of a sum that a term changes.
template <class Put>
void each_change(ir::Id term, Put put) {
  ir::Builder& b = lockstep::detail::builder();
  const Type type = b.type(term);
  const Format format = format_of(type);
  const AnyVal value = any_value(term);
  const AnyVal bits =
      type == Type::f64 ? value.bitcast(Type::u64) : value.bitcast(Type::u32).convert(Type::u64);
  const AnyVal field = (bits >> format.fraction) & u64_number(format.exponents());
  const AnyVal fraction = bits & u64_number((uint64_t(1) << format.fraction) - 1);
  const Val<bool> negative = (bits >> (format.width - 1)) != 0;
  const auto special = [&] {
    const AnyVal flag = select(AnyVal(fraction != 0), u64_number(kNan),
                               select(AnyVal(negative), u64_number(kMinusInfinity), u64_number(kInfinity)));
    put(ir::AtomicOp::or_, AnyVal::number(Type::i32, format.digits), flag.bitcast(Type::i64));
  };
  const auto finite = [&] {
    const AnyVal normal = field != 0;
    const AnyVal whole = select(normal, fraction | u64_number(uint64_t(1) << format.fraction), fraction);
    const AnyVal lowest = select(normal, field - 1, field);  // bit of the number that bit 0 of `whole` is
    const AnyVal shift = lowest & u64_number(31);
    const AnyVal first = (lowest >> 5).convert(Type::i32);
    const AnyVal low = (whole & u64_number(kDigit)) << shift, high = (whole >> 32) << shift;
    const auto add = [&](int digit, const AnyVal& v) {
      const AnyVal magnitude = v.bitcast(Type::i64);
      put(ir::AtomicOp::add, first + AnyVal::number(Type::i32, digit),
          select(AnyVal(negative), -magnitude, magnitude));
    };
    add(0, low & u64_number(kDigit));
    add(1, (low >> 32) + (high & u64_number(kDigit)));
    if (type == Type::f64) add(2, high >> 32);
  };
  const auto nonzero = [&] { b.if_(id_of(AnyVal((field | fraction) != 0)), finite); };
  b.if_(id_of(AnyVal(field == u64_number(format.exponents()))), special, nonzero);
}

}  // namespace

int64_t sum_words(Type type) { return format_of(type).digits + 1; }

void add_exactly(uint32_t sums, ir::Id offset, ir::Id term) {
  ir::Builder& b = lockstep::detail::builder();
  const AnyVal first = any_value(offset) * AnyVal::number(kIndexType, sum_words(b.type(term)));
  each_change(term, [&](ir::AtomicOp op, const AnyVal& word, const AnyVal& v) {
    b.emit(ir::Op::atomic, Type::i64, {id_of(first + word.convert(kIndexType)), id_of(v)},
           ir::AtomicTarget{op, false, sums}.bits());
  });
}

namespace {

/// Words of a sum in a buffer of sums.
struct BufferWords {
  const InOut<i64, 2>& sums;
  Val<i32> element;
  Val<i64> operator[](const Val<i32>& k) const { return sums(element, k); }
  void set(const Val<i32>& k, const Val<i64>& v) const { sums(element, k) = v; }
};
/// Words of a sum in an array of the lane.
struct LocalWords {
  const LocalArray<i64>& array;
  Val<i64> operator[](const Val<i32>& k) const { return array[k]; }
  void set(const Val<i32>& k, const Val<i64>& v) const { array[k] = v; }
};

/// Digits of one sum while it is rounded.
template <class Words>
class Digits {
 public:
  Digits(const Words& words, const Format& format) : words_(words), count_(format.digits) {}
  Val<u64> operator[](const Val<i32>& k) const { return bitcast<u64>(words_[k]); }
  /// 0 past the last one.
  Val<u64> or_zero(const Val<i32>& k) const {
    return select(k < count_, (*this)[min(k, count_ - 1)], u64(0));
  }
  /// Leaves each digit below 2^32. Gives what lies above the last.
  Val<i64> carry() const {
    return pass(0, [](const Val<i64>& digit) { return digit; });
  }
  /// The two's complement. Gives what lies above the last digit.
  Val<i64> negate() const {
    return pass(1, [](const Val<i64>& digit) { return digit ^ i64(kDigit); });
  }

 private:
  template <class Each>
  Val<i64> pass(i64 first, Each each) const {
    Var<i64> carry = Val<i64>(first);
    for_(0, count_, [&](Val<i32> k) {
      const Val<i64> digit = each(words_[k]) + Val<i64>(carry);
      words_.set(k, digit & i64(kDigit));
      carry = digit >> 32;
    });
    return carry;
  }

  Words words_;
  int count_;
};

/// Bits of the magnitude, rounded to nearest even.
template <class Words>
Val<u64> rounded_bits(const Digits<Words>& digits, const Format& format) {
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
template <class T, class Words>
Val<T> rounded_sum(const Words& words) {
  const Format format = format_of(kType<T>);
  const u64 infinity = format.exponents() << format.fraction, sign = u64(1) << (format.width - 1);
  const Digits<Words> digits(words, format);
  Var<i64> above = digits.carry();
  const Val<bool> negative = above < 0;
  if_(negative, [&] { above = digits.negate() - 1 - Val<i64>(above); });
  const Val<u64> flags = bitcast<u64>(words[format.digits]);
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
  return kernel(name, [](At<1> at, InOut<i64, 2> sums, Out<T, 1> result) {
    result[at] = rounded_sum<T>(BufferWords{sums, at.x});
  });
}
template <class T>
ir::Id take(const InOut<i64, 2>& sums, const Val<i32>& element) {
  const Val<T> sum = rounded_sum<T>(BufferWords{sums, element});
  for_(0, int(sum_words(kType<T>)), [&](Val<i32> k) { sums(element, k) = Val<i64>(i64(0)); });
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

template <class T>
LaneSum<T>::LaneSum() : words_(sum_words(kType<T>)) {
  for_(0, int(sum_words(kType<T>)), [&](Val<i32> k) { words_[k] = Val<i64>(i64(0)); });
}
template <class T>
void LaneSum<T>::add(const Val<T>& term) const {
  each_change(term.id(), [&](ir::AtomicOp op, const AnyVal& word, const AnyVal& v) {
    const Val<i32> k = word.as<i32>();
    const Val<i64> change = v.as<i64>(), before = words_[k];
    words_[k] = op == ir::AtomicOp::add ? before + change : before | change;
  });
}
template <class T>
Val<T> LaneSum<T>::rounded() const {
  return rounded_sum<T>(LocalWords{words_});
}
template class LaneSum<f32>;
template class LaneSum<f64>;

}  // namespace lockstep::gradients
