// Control flow, local and shared arrays, barriers of the kernel language.
#pragma once

#include <source_location>

#include "lockstep/kernel/math.hpp"

namespace lockstep {

template <class Then>
void if_(const Val<bool>& condition, Then then) {
  detail::builder().if_(condition.id(), then);
}
template <class Then, class Else>
void if_(const Val<bool>& condition, Then then, Else otherwise) {
  detail::builder().if_(condition.id(), then, otherwise);
}

/// for (i = begin; i < end; i += step), or i > end where step < 0. Bounds are evaluated once; the counter is
/// a value.
template <class A, class B, class Body>
void for_(const A& begin, const B& end, int step, Body body) {
  using T = typename std::conditional_t<
      detail::HasValue<A>, detail::Common<A, B>,
      std::conditional_t<detail::HasValue<B>, detail::Common<A, B>, std::type_identity<i32>>>::type;
  const ir::Id first = detail::id_of<T>(begin), last = detail::id_of<T>(end);
  detail::builder().for_(first, last, step, [&](ir::Id index) { body(Val<T>::from(index)); });
}
template <class A, class B, class Body>
void for_(const A& begin, const B& end, Body body) {
  for_(begin, end, 1, body);
}

inline void break_() { detail::builder().emit(ir::Op::break_, Type::none); }
inline void continue_() { detail::builder().emit(ir::Op::continue_, Type::none); }
/// Ends the lane.
inline void return_() { detail::builder().emit(ir::Op::return_, Type::none); }
inline void break_if(const Val<bool>& condition) {
  if_(condition, [] { break_(); });
}
inline void continue_if(const Val<bool>& condition) {
  if_(condition, [] { continue_(); });
}
inline void return_if(const Val<bool>& condition) {
  if_(condition, [] { return_(); });
}

/// Repeats until break_ or return_.
template <class Body>
void loop_(Body body) {
  detail::builder().loop(body);
}
/// `condition` is a function that gives Val<bool>; it is evaluated before every pass.
template <class Condition, class Body>
void while_(Condition condition, Body body) {
  loop_([&] {
    break_if(!Val<bool>(condition()));
    body();
  });
}

/// States that all lanes of a group agree on this value; a back end may then compute it once. Wrong use is
/// undefined.
template <detail::HasValue A>
Val<detail::expr_t<A>> uniform(const A& a) {
  const ir::Id id = detail::id_of<detail::expr_t<A>>(a);
  detail::builder().function()[id].flags |= ir::kUniform;
  return Val<detail::expr_t<A>>::from(id);
}

namespace detail {
uint32_t declare_array(bool shared, Storage storage, int64_t count);

/// An element that can be read, assigned and combined. `load` and `store` name the IR operations.
template <class T, ir::Op kLoad, ir::Op kStore>
class Element {
 public:
  using value_type = T;
  Element(uint64_t array, ir::Id index) : array_(array), index_(index) {}
  operator Val<T>() const { return Val<T>::from(builder().emit(kLoad, kType<T>, {index_}, array_)); }
  void operator=(const Val<T>& value) const {
    builder().emit(kStore, Type::none, {index_, value.id()}, array_);
  }
  template <class C>
    requires std::is_arithmetic_v<C>
  void operator=(C constant) const {
    *this = Val<T>(constant);
  }
  void operator=(const Element& other) const { *this = Val<T>(other); }
  template <class B>
  void operator+=(const B& b) const {
    *this = *this + b;
  }
  template <class B>
  void operator-=(const B& b) const {
    *this = *this - b;
  }
  template <class B>
  void operator*=(const B& b) const {
    *this = *this * b;
  }
  ir::Id index() const { return index_; }
  uint64_t array() const { return array_; }

 private:
  uint64_t array_;
  ir::Id index_;
};
}  // namespace detail

/// Array of one lane. A compile-time index costs a register; a run-time one costs memory.
template <class T>
class LocalArray {
 public:
  explicit LocalArray(int64_t count) : array_(detail::declare_array(false, detail::kStorage<T>, count)) {}
  template <class I>
  auto operator[](const I& index) const {
    return detail::Element<T, ir::Op::local_load, ir::Op::local_store>(array_, detail::id_of<i32>(index));
  }

 private:
  uint32_t array_;
};

/// Array that the lanes of a group share; its first contents are undefined. Groups kernels only.
template <class T>
class SharedArray {
 public:
  explicit SharedArray(int64_t count) : array_(detail::declare_array(true, detail::kStorage<T>, count)) {}
  template <class I>
  auto operator[](const I& index) const {
    return detail::Element<T, ir::Op::shared_load, ir::Op::shared_store>(array_, detail::id_of<i32>(index));
  }
  /// Adds to an element of i32 or u32; gives the old value.
  template <class I, class V>
    requires(std::is_integral_v<T> && sizeof(T) == 4)
  Val<T> atomic_add(const I& index, const V& value) const {
    const ir::AtomicTarget target{ir::AtomicOp::add, true, array_};
    return Val<T>::from(detail::builder().emit(ir::Op::atomic, detail::kType<T>,
                                               {detail::id_of<i32>(index), detail::id_of<T>(value)},
                                               target.bits()));
  }
  uint32_t id() const { return array_; }

 private:
  uint32_t array_;
};

/// Waits for all lanes of the group; memory written before is seen after. Never in divergent flow.
inline void barrier() { detail::builder().emit(ir::Op::barrier, Type::none); }

/// Value of a balanced tree over the group's lanes: for s = lanes/2 … 1: v[i] = v[i] op v[i+s]. All lanes get
/// it. The group's lane count must be a power of two. Never in divergent flow.
template <detail::HasValue A>
Val<detail::expr_t<A>> group_sum(const A& a) {
  using T = detail::expr_t<A>;
  return Val<T>::from(detail::builder().emit(ir::Op::group_reduce, detail::kType<T>, {detail::id_of<T>(a)},
                                             uint64_t(ir::Reduction::add)));
}
template <detail::HasValue A>
Val<detail::expr_t<A>> group_min(const A& a) {
  using T = detail::expr_t<A>;
  return Val<T>::from(detail::builder().emit(ir::Op::group_reduce, detail::kType<T>, {detail::id_of<T>(a)},
                                             uint64_t(ir::Reduction::min)));
}
template <detail::HasValue A>
Val<detail::expr_t<A>> group_max(const A& a) {
  using T = detail::expr_t<A>;
  return Val<T>::from(detail::builder().emit(ir::Op::group_reduce, detail::kType<T>, {detail::id_of<T>(a)},
                                             uint64_t(ir::Reduction::max)));
}

/// Closes a stage of asynchronous copies (Grid::copy_async).
inline void async_commit() { detail::builder().emit(ir::Op::async_commit, Type::none); }
/// Waits until at most `open` stages of this lane are unfinished; a barrier makes the data visible to the
/// others.
inline void async_wait(int open) {
  detail::builder().emit(ir::Op::async_wait, Type::none, {}, uint64_t(open));
}

}  // namespace lockstep
