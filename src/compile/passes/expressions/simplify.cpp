#include "compile/passes/expressions/simplify.hpp"

#include <bit>
#include <cmath>
#include <optional>

#include "compile/passes/rewrite.hpp"
#include "ir/meaning.hpp"

namespace lockstep::compile {

using namespace ir;

namespace {

uint64_t all_ones(Type type) {
  return type == Type::boolean ? 1 : is_wide(type) ? ~uint64_t(0) : 0xffffffffu;
}

class Simplifier {
 public:
  explicit Simplifier(Function& f) : f_(f), replaced_(f.instructions.size()) {}

  void run() {
    block(0);
    replaced_.apply(f_);
    compact(f_);
  }

 private:
  void block(uint32_t b) {
    const Block old = std::move(f_.blocks[b]);
    f_.blocks[b] = {};
    for (Id id : old) statement(b, id);
  }

  void statement(uint32_t b, Id id) {
    replaced_.apply(f_[id]);
    const Op op = f_[id].op;
    if (op == Op::if_) {
      if (const auto condition = constant(f_[id].args[0])) {
        // The content of the branch moves here; its values are used nowhere else.
        const Block taken = f_.blocks[f_[id].blocks[*condition ? 0 : 1]];
        for (Id inner : taken) statement(b, inner);
        return;
      }
    }
    for (int k = 0; k < 2; ++k)
      if (const uint32_t inner = f_[id].blocks[k]; inner != kNoBlock) block(inner);
    if (is_pure(op) && op != Op::constant) {
      block_ = b;
      if (fold(id)) {
        // now a constant
      } else {
        order(f_[id]);
        if (const Id same = identity(id); same != kNone) {
          replaced_.set(id, same);
          return;
        }
      }
    }
    f_.blocks[b].push_back(id);
  }

  std::optional<uint64_t> constant(Id id) const {
    if (f_[id].op != Op::constant) return {};
    return f_[id].imm;
  }
  bool is_constant(Id id, uint64_t bits) const { return f_[id].op == Op::constant && f_[id].imm == bits; }
  bool is_zero(Id id) const { return is_constant(id, 0); }
  bool is_one(Id id) const { return is_constant(id, 1); }
  bool is_float_value(Id id, double v) const {
    const Type t = f_[id].type;
    return is_constant(id, t == Type::f32 ? std::bit_cast<uint32_t>(float(v)) : std::bit_cast<uint64_t>(v));
  }
  Id new_constant(Type type, uint64_t bits) {
    Instruction i{Op::constant};
    i.type = type;
    i.imm = bits;
    f_.instructions.push_back(i);
    const Id id = Id(f_.instructions.size() - 1);
    f_.blocks[block_].push_back(id);
    return id;
  }
  void become_constant(Id id, uint64_t bits) {
    Instruction& i = f_[id];
    const Type type = i.type;
    i = Instruction{Op::constant};
    i.type = type;
    i.imm = bits;
  }
  void become(Id id, Op op, Id a, Id b = kNone, Id c = kNone, uint8_t flags = 0) {
    Instruction& i = f_[id];
    i.op = op;
    i.args = Instruction::operands({a, b, c});
    i.flags = flags;
    i.imm = 0;
  }

  bool fold(Id id) {
    const Instruction& i = f_[id];
    const int n = i.arg_count();
    if (n == 0 || is_math(i.op)) return false;
    uint64_t bits[kMostArgs] = {};
    for (int k = 0; k < n; ++k) {
      const auto c = constant(i.args[k]);
      if (!c) return false;
      bits[k] = *c;
    }
    if (i.op == Op::clamp_index) {
      const int32_t at = int32_t(bits[0]), last = int32_t(uint32_t(bits[1]) - 1);
      become_constant(id, uint32_t(std::max(0, std::min(at, last))));
      return true;
    }
    if (!is_elementary(i.op) && i.op != Op::select && i.op != Op::convert && i.op != Op::bitcast)
      return false;
    const Type operand = i.op == Op::select ? i.type : f_[i.args[0]].type;
    become_constant(id, meaning::evaluate(i.op, operand, i.type, bits));
    return true;
  }

  /// Constants of commutative operations go to the right.
  void order(Instruction& i) const {
    switch (i.op) {
      case Op::fadd:
      case Op::fmul:
      case Op::fma:
      case Op::feq:
      case Op::fne:
      case Op::iadd:
      case Op::imul:
      case Op::imin:
      case Op::imax:
      case Op::umulhi:
      case Op::ieq:
      case Op::ine:
      case Op::band:
      case Op::bor:
      case Op::bxor:
        if (constant(i.args[0]) && !constant(i.args[1])) std::swap(i.args[0], i.args[1]);
        break;
      default: break;
    }
  }

  /// The value that this instruction always equals, or kNone after rewriting it in place where that helps.
  Id identity(Id id) {
    const Type t = f_[id].type;
    switch (f_[id].op) {
      case Op::select: return select(id);
      case Op::convert:
      case Op::bitcast: return conversion(id);
      case Op::bnot: return negation(id);
      case Op::uniform: return constant(f_[id].args[0]) ? f_[id].args[0] : kNone;
      default: break;
    }
    if (is_float(t)) return floats(id);
    if (f_[id].arg_count() == 2)
      return is_integer(t) ? integers(id) : t == Type::boolean ? booleans(id) : kNone;
    if (const Instruction& i = f_[id]; i.op == Op::ineg && f_[i.args[0]].op == Op::ineg)
      return f_[i.args[0]].args[0];
    return kNone;
  }

  Id floats(Id id) {
    const Instruction i = f_[id];
    const Id a = i.args[0], b = i.args[1];
    switch (i.op) {
      case Op::fadd: return is_float_value(b, -0.0) ? a : kNone;
      case Op::fsub: return is_float_value(b, 0.0) ? a : kNone;
      case Op::fmul:
        if (is_float_value(b, 1)) return a;
        if (is_float_value(b, -1)) become(id, Op::fneg, a);
        return kNone;
      case Op::fdiv:
        if (is_float_value(b, 1)) return a;
        if (const auto c = constant(b)) {
          // Multiplying by an exact reciprocal rounds the same real number.
          const double v =
              i.type == Type::f32 ? double(std::bit_cast<float>(uint32_t(*c))) : std::bit_cast<double>(*c);
          int exponent;
          const bool power = std::isfinite(v) && v != 0 && std::fabs(std::frexp(v, &exponent)) == 0.5;
          if (power && std::abs(exponent) < (i.type == Type::f32 ? 120 : 1000)) {
            const Id reciprocal =
                new_constant(i.type, i.type == Type::f32 ? std::bit_cast<uint32_t>(float(1 / v))
                                                         : std::bit_cast<uint64_t>(1 / v));
            become(id, Op::fmul, a, reciprocal);
          }
        }
        return kNone;
      case Op::fneg: return f_[a].op == Op::fneg ? f_[a].args[0] : kNone;
      case Op::fabs:
        if (f_[a].op == Op::fabs) return a;
        if (f_[a].op == Op::fneg) become(id, Op::fabs, f_[a].args[0]);
        return kNone;
      case Op::fmin:
      case Op::fmax: return a == b ? a : kNone;
      default: return kNone;
    }
  }

  Id integers(Id id) {
    const Instruction i = f_[id];
    const Id a = i.args[0], b = i.args[1];
    const auto c = constant(b);
    const uint64_t ones = all_ones(i.type);
    const auto zero = [&] {
      become_constant(id, 0);
      return kNone;
    };
    switch (i.op) {
      case Op::iadd:
        if (is_zero(b)) return a;
        return c ? chain(id, *c) : kNone;
      case Op::isub:
        if (is_zero(b)) return a;
        if (a == b) return zero();
        // x - c = x + (-c); of the least value the negative is itself, and no_wrap would not carry over.
        if (c && *c != (ones >> 1) + 1) {
          become(id, Op::iadd, a, new_constant(i.type, (~*c + 1) & ones), kNone,
                 is_signed(i.type) ? i.flags : 0);
          return chain(id, constant(f_[id].args[1]).value());
        }
        return kNone;
      case Op::imul:
        if (is_one(b)) return a;
        return is_zero(b) ? zero() : kNone;
      case Op::idiv:
        if (is_one(b)) return a;
        if (is_zero(b)) return zero();
        if (c && !is_signed(i.type) && std::has_single_bit(*c))
          become(id, Op::shr, a, new_constant(i.type, uint64_t(std::countr_zero(*c))));
        return kNone;
      case Op::irem:
        if (is_zero(b) || is_one(b)) return zero();
        if (c && !is_signed(i.type) && std::has_single_bit(*c))
          become(id, Op::band, a, new_constant(i.type, *c - 1));
        return kNone;
      case Op::shl:
      case Op::shr:
        if (c && (*c & (is_wide(i.type) ? 63 : 31)) == 0) return a;
        return kNone;
      case Op::imin:
      case Op::imax: return a == b ? a : kNone;
      default: return bitwise(id, ones);
    }
  }

  /// (x + c1) + c2 = x + (c1 + c2).
  Id chain(Id id, uint64_t c2) {
    const Instruction inner = f_[f_[id].args[0]];
    if (inner.op != Op::iadd) return kNone;
    const auto c1 = constant(inner.args[1]);
    if (!c1) return kNone;
    const Type t = f_[id].type;
    const uint64_t sum = (*c1 + c2) & all_ones(t);
    // Exact in unbounded integers only where the sum of the constants is.
    const auto signed_value = [&](uint64_t bits) {
      return is_wide(t) ? int64_t(bits) : int64_t(int32_t(bits));
    };
    int64_t exact;
    const bool sum_exact =
        !__builtin_add_overflow(signed_value(*c1), signed_value(c2), &exact) && exact == signed_value(sum);
    const uint8_t flags = is_signed(t) && sum_exact ? f_[id].flags & inner.flags & kNoWrap : 0;
    if (sum == 0) return inner.args[0];
    become(id, Op::iadd, inner.args[0], new_constant(t, sum), kNone, flags);
    return kNone;
  }

  Id bitwise(Id id, uint64_t ones) {
    const Instruction i = f_[id];
    const Id a = i.args[0], b = i.args[1];
    switch (i.op) {
      case Op::band:
        if (a == b || is_constant(b, ones)) return a;
        return is_zero(b) ? b : kNone;
      case Op::bor:
        if (a == b || is_zero(b)) return a;
        return is_constant(b, ones) ? b : kNone;
      case Op::bxor:
        if (is_zero(b)) return a;
        if (a == b)
          become_constant(id, 0);
        else if (is_constant(b, ones))
          become(id, Op::bnot, a);
        return kNone;
      default: return kNone;
    }
  }

  Id booleans(Id id) {
    const Instruction i = f_[id];
    const bool same = i.args[0] == i.args[1];
    switch (i.op) {
      case Op::ieq:
      case Op::ile:
        if (same) become_constant(id, 1);
        return kNone;
      case Op::ine:
      case Op::ilt:
        if (same) become_constant(id, 0);
        return kNone;
      default: return bitwise(id, 1);
    }
  }

  Id negation(Id id) {
    const Instruction inner = f_[f_[id].args[0]];
    switch (inner.op) {
      case Op::bnot: return inner.args[0];
      case Op::ieq: become(id, Op::ine, inner.args[0], inner.args[1]); break;
      case Op::ine: become(id, Op::ieq, inner.args[0], inner.args[1]); break;
      case Op::ilt: become(id, Op::ile, inner.args[1], inner.args[0]); break;
      case Op::ile: become(id, Op::ilt, inner.args[1], inner.args[0]); break;
      case Op::feq: become(id, Op::fne, inner.args[0], inner.args[1]); break;
      case Op::fne: become(id, Op::feq, inner.args[0], inner.args[1]); break;
      default: break;  // not flt: neither a < b nor b <= a holds for NaN
    }
    return kNone;
  }

  Id select(Id id) {
    const Instruction i = f_[id];
    const Id c = i.args[0], a = i.args[1], b = i.args[2];
    if (const auto known = constant(c)) return *known ? a : b;
    if (a == b) return a;
    if (i.type == Type::boolean && is_one(a) && is_zero(b)) return c;
    if (i.type == Type::boolean && is_zero(a) && is_one(b)) {
      become(id, Op::bnot, c);
      return negation(id);
    }
    if (f_[c].op == Op::bnot) become(id, Op::select, f_[c].args[0], b, a);
    return kNone;
  }

  Id conversion(Id id) {
    const Instruction i = f_[id];
    const Instruction inner = f_[i.args[0]];
    if (inner.op != i.op) return kNone;
    const Id origin = inner.args[0];
    const Type from = f_[origin].type, middle = inner.type;
    if (i.op == Op::bitcast) {
      if (from == i.type) return origin;
      become(id, Op::bitcast, origin);
      return kNone;
    }
    // There and back through a type that holds every value of the first.
    const bool widens = (is_integer(from) && is_integer(middle) && size_of(middle) >= size_of(from)) ||
                        (from == Type::f32 && middle == Type::f64) ||
                        (from == Type::i32 && middle == Type::f64) ||
                        (from == Type::u32 && middle == Type::f64);
    return from == i.type && widens ? origin : kNone;
  }

  Function& f_;
  Replacement replaced_;
  uint32_t block_ = 0;
};

}  // namespace

void simplify(Function& f) { Simplifier(f).run(); }

}  // namespace lockstep::compile
