// Host<T>: a number on the host with the operators and functions of Val<T>, so that one body of an elementary
// function serves both the IR and plain C++. Each operation means what ops.def says.
#pragma once

#include "ir/meaning.hpp"
#include "lockstep/kernel/value.hpp"

namespace lockstep::math {

template <class T>
struct Host {
  using value_type = T;
  T v;

  Host() = default;
  template <class C>
    requires std::is_arithmetic_v<C>
  Host(C constant) : v(static_cast<T>(constant)) {}
};

namespace hosting {
template <class T>
Host<T> hosted(T value) {
  return value;
}
/// Stands for an operation that a kind of operand does not have.
struct None {
  template <class T>
  T operator()(T, T, T) const;
};
}  // namespace hosting

#define LOCKSTEP_HOST(parameters, word, floats, integers, x, y, z) \
  template <class T>                                               \
    requires detail::Takes<T, ir::Op::floats, ir::Op::integers>    \
  auto word parameters {                                           \
    using namespace ir::meaning;                                   \
    [[maybe_unused]] constexpr hosting::None op_none;              \
    if constexpr (std::is_floating_point_v<T>)                     \
      return hosting::hosted(op_##floats(x, y, z));                \
    else                                                           \
      return hosting::hosted(op_##integers(x, y, z));              \
  }
#define LOCKSTEP_HOST1(word, floats, integers) \
  LOCKSTEP_HOST((Host<T> a), word, floats, integers, a.v, a.v, a.v)
#define LOCKSTEP_HOST2(word, floats, integers) \
  LOCKSTEP_HOST((Host<T> a, Host<T> b), word, floats, integers, a.v, b.v, b.v)
#define LOCKSTEP_HOST3(word, floats, integers) \
  LOCKSTEP_HOST((Host<T> a, Host<T> b, Host<T> c), word, floats, integers, a.v, b.v, c.v)
#define LOCKSTEP_PREFIX(symbol, ...) LOCKSTEP_HOST1(operator symbol, __VA_ARGS__)
#define LOCKSTEP_INFIX(symbol, ...) LOCKSTEP_HOST2(operator symbol, __VA_ARGS__)
#define LOCKSTEP_WORD(word, arity, ...) LOCKSTEP_HOST##arity(word, __VA_ARGS__)
#define LOCKSTEP_COMPARE(symbol, floats, integers, swapped)                                     \
  LOCKSTEP_HOST((Host<T> a, Host<T> b), operator symbol, floats, integers, swapped ? b.v : a.v, \
                swapped ? a.v : b.v, a.v)
#include "lockstep/ir/ops.def"
#undef LOCKSTEP_HOST1
#undef LOCKSTEP_HOST2
#undef LOCKSTEP_HOST3
#undef LOCKSTEP_HOST

inline Host<bool> operator!(Host<bool> a) { return !a.v; }
inline Host<bool> operator&&(Host<bool> a, Host<bool> b) { return a.v && b.v; }
inline Host<bool> operator||(Host<bool> a, Host<bool> b) { return a.v || b.v; }
template <class T>
Host<T> select(Host<bool> condition, Host<T> yes, Host<T> no) {
  return condition.v ? yes : no;
}

template <class To, class T>
Host<To> cast(Host<T> a) {
  return ir::meaning::convert<To>(a.v);
}
template <class To, class T>
Host<To> bitcast(Host<T> a) {
  return std::bit_cast<To>(a.v);
}

}  // namespace lockstep::math
