// Handlers of the elementary operations, one instance per operation and type, generated from ops.def.
#include "device/interp/machine.hpp"
#include "ir/meaning.hpp"

namespace lockstep::interp {

using namespace ir::meaning;
using ir::Op;

namespace {

template <Type kType>
struct Cpp;
template <>
struct Cpp<Type::boolean> {
  using type = bool;
};
template <>
struct Cpp<Type::i32> {
  using type = int32_t;
};
template <>
struct Cpp<Type::u32> {
  using type = uint32_t;
};
template <>
struct Cpp<Type::i64> {
  using type = int64_t;
};
template <>
struct Cpp<Type::u64> {
  using type = uint64_t;
};
template <>
struct Cpp<Type::f32> {
  using type = float;
};
template <>
struct Cpp<Type::f64> {
  using type = double;
};

/// Picks `make<kType>()` for a type known at run time.
template <template <Type> class Make>
Handler pick(Type type) {
  switch (type) {
    case Type::boolean: return Make<Type::boolean>::handler();
    case Type::i32: return Make<Type::i32>::handler();
    case Type::u32: return Make<Type::u32>::handler();
    case Type::i64: return Make<Type::i64>::handler();
    case Type::u64: return Make<Type::u64>::handler();
    case Type::f32: return Make<Type::f32>::handler();
    case Type::f64: return Make<Type::f64>::handler();
    case Type::none: break;
  }
  return nullptr;
}

#define LOCKSTEP_OP(name, arity, ...)                                                                     \
  template <Type kType>                                                                                   \
  struct Make_##name {                                                                                    \
    using T = typename Cpp<kType>::type;                                                                  \
    static Handler handler() {                                                                            \
      if constexpr (ir::takes(Op::name, kType)) {                                                         \
        return [](Machine& m, const Code& c) {                                                            \
          const uint64_t* r = m.r;                                                                        \
          m.r[c.dst] = to_bits(op_##name(from_bits<T>(r[c.a]), (arity) > 1 ? from_bits<T>(r[c.b]) : T(0), \
                                         (arity) > 2 ? from_bits<T>(r[c.c]) : T(0)));                     \
        };                                                                                                \
      } else {                                                                                            \
        return nullptr;                                                                                   \
      }                                                                                                   \
    }                                                                                                     \
  };
#include "lockstep/ir/ops.def"

template <class From, class To>
void convert_value(Machine& m, const Code& c) {
  m.r[c.dst] = to_bits(convert<To>(from_bits<From>(m.r[c.a])));
}
template <Type kTo>
struct ConvertTo {
  template <Type kFrom>
  struct From {
    static Handler handler() { return convert_value<typename Cpp<kFrom>::type, typename Cpp<kTo>::type>; }
  };
};

template <bool kUp>
struct LoopTest {
  template <Type kType>
  struct On {
    static Handler handler() {
      using T = typename Cpp<kType>::type;
      return [](Machine& m, const Code& c) {
        const T i = from_bits<T>(m.r[c.a]), end = from_bits<T>(m.r[c.b]);
        if (kUp ? !(i < end) : !(i > end)) m.pc = c.dst;
      };
    }
  };
};
template <Type kType>
struct LoopStep {
  static Handler handler() {
    using T = typename Cpp<kType>::type;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return [](Machine& m, const Code& c) {
        // A counter that would pass the end of its type stays there, where the loop ends.
        const T now = from_bits<T>(m.r[c.a]);
        const auto step = std::make_signed_t<T>(from_bits<T>(m.r[c.b]));
        T next;
        if (__builtin_add_overflow(now, step, &next))
          next = step < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
        m.r[c.a] = to_bits(next);
      };
    else
      return nullptr;
  }
};

}  // namespace

Handler elementary_handler(Op op, Type type) {
  switch (op) {
#define LOCKSTEP_OP(name, ...) \
  case Op::name: return pick<Make_##name>(type);
#include "lockstep/ir/ops.def"
    default: return nullptr;
  }
}

Handler convert_handler(Type from, Type to) {
  switch (to) {
    case Type::i32: return pick<ConvertTo<Type::i32>::From>(from);
    case Type::u32: return pick<ConvertTo<Type::u32>::From>(from);
    case Type::i64: return pick<ConvertTo<Type::i64>::From>(from);
    case Type::u64: return pick<ConvertTo<Type::u64>::From>(from);
    case Type::f32: return pick<ConvertTo<Type::f32>::From>(from);
    case Type::f64: return pick<ConvertTo<Type::f64>::From>(from);
    default: return nullptr;
  }
}

Handler loop_test_handler(Type counter, bool up) {
  return up ? pick<LoopTest<true>::On>(counter) : pick<LoopTest<false>::On>(counter);
}
Handler loop_step_handler(Type counter) { return pick<LoopStep>(counter); }

uint64_t combine(ir::Reduction reduction, Type type, uint64_t a, uint64_t b) {
  const bool floats = is_float(type);
  const Op op = reduction == ir::Reduction::add   ? (floats ? Op::fadd : Op::iadd)
                : reduction == ir::Reduction::min ? (floats ? Op::fmin : Op::imin)
                                                  : (floats ? Op::fmax : Op::imax);
  const uint64_t args[] = {a, b, 0};
  return evaluate(op, type, type, args);
}

}  // namespace lockstep::interp
