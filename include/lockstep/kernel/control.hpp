// Control flow, local and shared arrays, barriers of the kernel language.
#pragma once

#include <source_location>
#include <type_traits>

#include "lockstep/kernel/math.hpp"

namespace lockstep {

namespace detail {
/// Rejects bodies that return a value, because it would be lost.
template <class Body, class... Arguments>
constexpr void expect_no_value() {
  static_assert(std::is_void_v<std::invoke_result_t<Body&, Arguments...>>,
                "the body of if_, for_, loop_ or while_ returns nothing: assign to a Var, or write select()");
}
}  // namespace detail

template <class Then>
void if_(const Val<bool>& condition, Then then,
         std::source_location where = std::source_location::current()) {
  detail::expect_no_value<Then>();
  detail::builder().at(where);
  detail::builder().if_(condition.id(), then);
}
template <class Then, class Else>
void if_(const Val<bool>& condition, Then then, Else otherwise,
         std::source_location where = std::source_location::current()) {
  detail::expect_no_value<Then>();
  detail::expect_no_value<Else>();
  detail::builder().at(where);
  detail::builder().if_(condition.id(), then, otherwise);
}

namespace detail {
template <class T, class Body>
void count_loop(ir::Id first, ir::Id last, int step, Body& body, const std::source_location& where) {
  expect_no_value<Body, Val<T>>();
  builder().at(where);
  builder().for_(first, last, step, [&](ir::Id index) { body(Val<T>::from(index)); });
}
}  // namespace detail

/// for (i = begin; i < end; i += step), or i > end if step < 0. The number of iterations, ceil((end - begin) / step), is
/// fixed at the start, so the counter never overflows its type. The bounds are evaluated once, and the counter is a
/// value. The step precedes the body and defaults to 1.
#define LOCKSTEP_FOR(KindA, TakenA, KindB, TakenB, T)                           \
  template <KindA A, KindB B, class Body>                                       \
  void for_(TakenA begin, TakenB end, detail::Whole<int> step, Body body,       \
            std::source_location where = std::source_location::current()) {     \
    detail::builder().at(where);                                                \
    const ir::Id first = detail::id_of<T>(begin), last = detail::id_of<T>(end); \
    detail::count_loop<T>(first, last, step, body, where);                      \
  }                                                                             \
  template <KindA A, KindB B, class Body>                                       \
  void for_(TakenA begin, TakenB end, Body body,                                \
            std::source_location where = std::source_location::current()) {     \
    for_(begin, end, 1, body, where);                                           \
  }
LOCKSTEP_FOR(detail::HasValue, const A&, detail::HasValue, const B&, detail::expr_t<A>)
LOCKSTEP_FOR(detail::HasValue, const A&, detail::Number, B, detail::expr_t<A>)
LOCKSTEP_FOR(detail::Number, A, detail::HasValue, const B&, detail::expr_t<B>)
LOCKSTEP_FOR(detail::Number, A, detail::Number, B, i32)
#undef LOCKSTEP_FOR

namespace detail {
/// An axis of a domain of this rank, 0 = x. Throws InputError if there is no such axis.
uint64_t axis_of(int rank, int axis);

inline void jump(ir::Op op, const std::source_location& where) {
  builder().at(where);
  builder().emit(op, Type::none);
}
}  // namespace detail

inline void break_(std::source_location where = std::source_location::current()) {
  detail::jump(ir::Op::break_, where);
}
inline void continue_(std::source_location where = std::source_location::current()) {
  detail::jump(ir::Op::continue_, where);
}
/// Ends the lane: it executes nothing further in the kernel.
inline void return_(std::source_location where = std::source_location::current()) {
  detail::jump(ir::Op::return_, where);
}
inline void break_if(const Val<bool>& condition,
                     std::source_location where = std::source_location::current()) {
  if_(condition, [&] { break_(where); }, where);
}
inline void continue_if(const Val<bool>& condition,
                        std::source_location where = std::source_location::current()) {
  if_(condition, [&] { continue_(where); }, where);
}
inline void return_if(const Val<bool>& condition,
                      std::source_location where = std::source_location::current()) {
  if_(condition, [&] { return_(where); }, where);
}

/// Repeats until break_ or return_.
template <class Body>
void loop_(Body body, std::source_location where = std::source_location::current()) {
  detail::expect_no_value<Body>();
  detail::builder().at(where);
  detail::builder().loop(body);
}
/// `condition` is a function that returns Val<bool>; it is evaluated before every iteration.
template <class Condition, class Body>
void while_(Condition condition, Body body, std::source_location where = std::source_location::current()) {
  loop_(
      [&] {
        detail::expect_no_value<Body>();
        break_if(!Val<bool>(condition()), where);
        body();
      },
      where);
}

/// Asserts that all lanes of a group have the same value, so that a back end may compute it once. A violation is
/// undefined behaviour, reported by the interpreter.
template <detail::HasValue A>
Val<detail::expr_t<A>> uniform(const A& a, std::source_location where = std::source_location::current()) {
  detail::builder().at(where);
  return Val<detail::expr_t<A>>::from(
      detail::builder().keep(ir::Op::uniform, detail::id_of<detail::expr_t<A>>(a)));
}

namespace detail {
uint32_t declare_array(bool shared, Storage storage, int64_t count);

/// An atomic operation on an element of a buffer or a shared array; returns the old value.
ir::Id atomic(bool shared, uint64_t array, ir::AtomicOp op, ir::Id index, ir::Id value,
              ir::Id compare = ir::kNone);

/// An element of an array or a buffer, as returned by `a[i]`. It can be read, assigned and combined. Only the expression
/// `a[i]` itself can be written to. A named copy, `auto t = a[i]`, is the value of the element at that moment. `kLoad`
/// and `kStore` are the operations of the IR.
template <class T, ir::Op kLoad, ir::Op kStore>
class Element {
  static constexpr bool kReached = kLoad != ir::Op::local_load;
  static constexpr bool kIntegers = kReached && std::is_integral_v<T> && !std::same_as<T, bool>;
  static constexpr bool kFloats = kReached && std::is_floating_point_v<T>;

 public:
  using value_type = T;
  Element(uint64_t array, ir::Id index) : array_(array), index_(index), made_(builder().here()) {}
  Element(const Element&) = default;
  operator Val<T>() const {
    if (value_.empty()) value_ = Traced(builder().load_as_of(made_, kLoad, kType<T>, index_.id(), array_));
    return Val<T>::from(value_.id());
  }
  void operator=(const Located<T>& located) && { write(located.value()); }
  void operator=(const Element& other) && { write(other); }
  void store(const Val<T>& value) && { write(value); }
  void operator=(const Located<T>&) const& = delete;  // a name is a value, not a place: write a[i] = v
  void operator=(const Element&) const& = delete;     // a name is a value, not a place: write a[i] = v
  void store(const Val<T>&) const& = delete;          // a name is a value, not a place: write a[i].store(v)
#define LOCKSTEP_ELEMENT(symbol)          \
  template <HasValue B>                   \
  void operator symbol##=(const B& b)&& { \
    write(*this symbol b);                \
  }                                       \
  template <Number B>                     \
  void operator symbol##=(B b)&& {        \
    write(*this symbol b);                \
  }                                       \
  template <class B>                      \
  void operator symbol##=(const B&) const& = delete; /* a name is a value, not a place: write a[i] += v */
  LOCKSTEP_ELEMENT(+)
  LOCKSTEP_ELEMENT(-)
  LOCKSTEP_ELEMENT(*)
  LOCKSTEP_ELEMENT(/)
  LOCKSTEP_ELEMENT(%)
  LOCKSTEP_ELEMENT(&)
  LOCKSTEP_ELEMENT(|)
  LOCKSTEP_ELEMENT(^)
  LOCKSTEP_ELEMENT(<<)
  LOCKSTEP_ELEMENT(>>)
#undef LOCKSTEP_ELEMENT

  // Atomic operations on integers of a buffer or a shared array. Each returns the old value, which depends on the
  // order of the lanes; the final contents do not, except for exchange and compare_exchange. 64-bit operations on
  // buffers require a device with 64-bit types.
  // clang-format off: the second line is what compilers show
#define LOCKSTEP_ATOMIC(word, operation) \
  Val<T> word(Located<T>) const& = delete; /* of integers, by a[i] itself: a name is a value, not a place */ \
  Val<T> word(const Located<T>& value) && requires(kIntegers) { \
    return Val<T>::from(atomic_op(ir::AtomicOp::operation, value.value().id())); \
  }
  // clang-format on
  LOCKSTEP_ATOMIC(atomic_add, add)
  LOCKSTEP_ATOMIC(atomic_min, min)
  LOCKSTEP_ATOMIC(atomic_max, max)
  LOCKSTEP_ATOMIC(atomic_and, and_)
  LOCKSTEP_ATOMIC(atomic_or, or_)
  LOCKSTEP_ATOMIC(atomic_xor, xor_)
  LOCKSTEP_ATOMIC(atomic_exchange, exchange)
#undef LOCKSTEP_ATOMIC
  /// Stores `desired` if the element equals `expected`. Returns the old value.
 Val<T> atomic_compare_exchange(const Val<T>& expected, const Located<T>& desired) &&
     requires(kIntegers) {
       return Val<T>::from(atomic_op(ir::AtomicOp::compare_exchange, desired.value().id(), expected.id()));
     }
     /// Adds to a float in arbitrary order: the last bits of the sum differ from run to run and from device to
     /// device. No other operation of the language has this property.
     void unordered_atomic_add(const Located<T>& value) &&
     requires(kFloats) { atomic_op(ir::AtomicOp::add, value.value().id()); }

     private : void write(const Val<T>& value) const {
    builder().emit(kStore, Type::none, {index_.id(), value.id()}, array_);
  }
  ir::Id atomic_op(ir::AtomicOp op, ir::Id value, ir::Id compare = ir::kNone) const {
    return atomic(kLoad == ir::Op::shared_load, array_, op, index_.id(), value, compare);
  }
  uint64_t array_;
  Traced index_;
  ir::Builder::Moment made_;
  mutable Traced value_;  // value of the element when it was made, if it was read
};
}  // namespace detail

/// Array of one lane, initially undefined. Elements are in registers if all indices are known during tracing, otherwise
/// in memory.
template <class T>
class LocalArray {
 public:
  explicit LocalArray(detail::Whole<int64_t> count)
      : array_(detail::declare_array(false, detail::kStorage<T>, count)) {}
  auto operator[](detail::Coord index) const {
    made_.check("an array");
    return detail::Element<T, ir::Op::local_load, ir::Op::local_store>(array_, index.id());
  }

 private:
  uint32_t array_;
  detail::OfTrace made_;
};

/// Array shared by the lanes of a group; its initial contents are undefined. Groups kernels only.
template <class T>
class SharedArray {
 public:
  explicit SharedArray(detail::Whole<int64_t> count)
      : array_(detail::declare_array(true, detail::kStorage<T>, count)) {}
  auto operator[](detail::Coord index) const {
    return detail::Element<T, ir::Op::shared_load, ir::Op::shared_store>(id(), index.id());
  }
  /// Adds to an element; returns the old value. Other operations are those of elements: a[i].atomic_max(v).
  Val<T> atomic_add(detail::Coord index, const Val<T>& value) const
    requires(std::is_integral_v<T>)
  {
    return (*this)[index].atomic_add(value);
  }
  /// Number of the array in its kernel. Throws InputError while another kernel is traced.
  uint32_t id() const {
    made_.check("an array");
    return array_;
  }
  /// The array with this number in the kernel that is being traced.
  static SharedArray numbered(uint32_t array) { return SharedArray(array, 0); }

 private:
  SharedArray(uint32_t array, int) : array_(array) {}
  uint32_t array_;
  detail::OfTrace made_;
};

/// Waits for all lanes of the group and makes their earlier writes visible to each other. Not allowed in divergent
/// control flow.
inline void barrier(std::source_location where = std::source_location::current()) {
  detail::jump(ir::Op::barrier, where);
}

namespace detail {
template <class T>
Val<T> reduce_group(ir::Reduction how, ir::Id value, const std::source_location& where) {
  builder().at(where);
  return Val<T>::from(builder().emit(ir::Op::group_reduce, kType<T>, {value}, uint64_t(how)));
}
}  // namespace detail

/// Sum, minimum or maximum over the lanes of the group, returned to all lanes. It is computed along a balanced tree: for
/// s = lanes/2 … 1: v[i] = v[i] op v[i+s]. The lane count must be a power of two. Not allowed in divergent control flow.
template <detail::HasValue A>
Val<detail::expr_t<A>> group_sum(const A& a, std::source_location where = std::source_location::current()) {
  using T = detail::expr_t<A>;
  return detail::reduce_group<T>(ir::Reduction::add, detail::id_of<T>(a), where);
}
template <detail::HasValue A>
Val<detail::expr_t<A>> group_min(const A& a, std::source_location where = std::source_location::current()) {
  using T = detail::expr_t<A>;
  return detail::reduce_group<T>(ir::Reduction::min, detail::id_of<T>(a), where);
}
template <detail::HasValue A>
Val<detail::expr_t<A>> group_max(const A& a, std::source_location where = std::source_location::current()) {
  using T = detail::expr_t<A>;
  return detail::reduce_group<T>(ir::Reduction::max, detail::id_of<T>(a), where);
}

/// Closes a stage of asynchronous copies (Grid::copy_async).
inline void async_commit() { detail::builder().emit(ir::Op::async_commit, Type::none); }
/// Waits until at most `open` stages of this lane are unfinished. A barrier then makes the data visible to other lanes.
inline void async_wait(detail::Whole<int> open) {
  detail::builder().emit(ir::Op::async_wait, Type::none, {}, uint64_t(int(open)));
}

}  // namespace lockstep
