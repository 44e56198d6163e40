// Tools of the kernels of L-BFGS while they are traced.
#pragma once

#include <limits>
#include <type_traits>

#include "lockstep/kernel/kernel.hpp"
#include "optimize/lbfgs/kernels.hpp"

namespace lockstep::optimize::lbfgs {

constexpr int kLanes = 256;
constexpr int kSlot = 0, kPairs = 1;  // head of the memory

template <class A>
Val<i32> index_of(const Val<A>& number) {
  return cast<i32>(number);
}
/// The slot `age` places before `slot`; 0 <= age <= slots.
inline Val<i32> before(const Val<i32>& slot, const Val<i32>& age, int slots) {
  return (slot + slots - age) % slots;
}

template <class T, class A>
Val<A> inverse_scale(const Val<T>& d) {
  // A coordinate that nothing depends on keeps its units.
  return Val<A>(A(1)) / cast<A>(select(d > T(0), d, Val<T>(T(1))));
}

template <class T, class A>
std::string named(const LbfgsLayout& l, const char* what, const std::string& variant = "") {
  return fmt::format("optimize.lbfgs.{}.{}.{}.{}{}{}", what, name(lockstep::detail::kType<T>),
                     name(lockstep::detail::kType<A>), l.history, l.scaled ? ".scaled" : "", variant);
}

/// Sums of f32 take one element at a time, in the same order: they are WebGPU's, of whose software adapters the compilers
/// make a copy of fma for each use.
template <class A>
inline constexpr bool kRolled = std::is_same_v<A, f32>;

/// Calls `turn(first of the lane's elements, how many)` for the elements of a chunk; they are kLanes apart.
template <bool kOneByOne, class Turn>
void over_chunk(const Val<i32>& chunk, const Val<i32>& lane, const Val<i32>& length, const Val<i32>& size,
                int unroll, Turn turn) {
  const Val<i32> begin = chunk * length, end = max(min(begin + length, size), 0);
  if constexpr (kOneByOne) return for_(begin + lane, end, kLanes, [&](Val<i32> at) { turn(at, 1); });
  const Val<i32> whole = end - (end - begin) % (kLanes * unroll);
  for_(begin, whole, kLanes * unroll, [&](Val<i32> at) { turn(at + lane, unroll); });
  for_(whole, end, kLanes, [&](Val<i32> at) { if_(at + lane < end, [&] { turn(at + lane, 1); }); });
}

/// Whether the pair of the accepted trial has curvature, and what the memory's head says after it.
template <class A>
struct Taken {
  Val<bool> kept;
  Val<i32> pending, older, pairs,
      next;  // its slot, older pairs that stay, all pairs, the slot of the next trial
  Val<A> sy, yy;
};
template <class A>
Taken<A> take(const LbfgsLayout& l, const Grid<A, 1>& numbers, const InOut<A, 1>& memory) {
  constexpr double kCurvature = std::numeric_limits<double>::epsilon();
  const Val<i32> pending = index_of<A>(memory[kSlot]);
  const Val<i32> older = min(index_of<A>(memory[kPairs]), Val<i32>(l.history - 1));
  const Val<A> sy = numbers[kLbfgsYS], yy = numbers[kLbfgsYWY];
  // Pairs without curvature would make the next direction one of ascent.
  const Val<bool> kept = sy > A(0) && sy > A(kCurvature) * yy;
  const Val<i32> more = select(kept, Val<i32>(1), Val<i32>(0));
  return {kept, pending, older, older + more, (pending + more) % l.slots(), sy, yy};
}

}  // namespace lockstep::optimize::lbfgs
