// Communication between the lanes of a group: votes, shuffles, scans, and reductions by any operation. They use shared
// arrays and barriers in a fixed order, so every device gives the same bits, with or without subgroups. Each costs at
// least 2 barriers. They are for groups kernels only and not allowed in divergent control flow. Lanes have the order of
// Group::lane().
#pragma once

#include "lockstep/kernel/control.hpp"

namespace lockstep {

namespace detail {
/// Number of lanes of a group; throws InputError in a points kernel.
int group_lanes(const char* word);
/// Throws InputError for a lane count that is not a power of two.
[[noreturn]] void refuse_lanes(const char* word, int lanes);
/// Number of the shared array of `count` elements that the functions below use in common. Each function ends with a
/// barrier, so the array is free afterwards.
uint32_t group_scratch(Storage storage, int64_t count);
template <class T>
SharedArray<T> scratch(int64_t count) {
  return SharedArray<T>::numbered(group_scratch(kStorage<T>, count));
}
inline Val<i32> own_lane() { return Val<i32>::from(builder().emit(ir::Op::lane, Type::i32)); }
/// Types that arrays can hold.
template <class A>
concept GroupValue = HasValue<A> && !std::same_as<expr_t<A>, bool>;
}  // namespace detail

/// Whether the condition is true in any lane, whether it is true in all lanes, and the number of lanes in which it is
/// true. The lane count must be a power of two.
inline Val<bool> group_any(const Val<bool>& condition,
                           std::source_location where = std::source_location::current()) {
  return group_max(cast<u32>(condition), where) != 0u;
}
inline Val<bool> group_all(const Val<bool>& condition,
                           std::source_location where = std::source_location::current()) {
  return group_min(cast<u32>(condition), where) != 0u;
}
inline Val<u32> group_count(const Val<bool>& condition,
                            std::source_location where = std::source_location::current()) {
  return group_sum(cast<u32>(condition), where);
}

/// The condition in the 32 lanes around this one: bit k is that of lane 32 (lane / 32) + k, and 0 if there is none.
Val<u32> group_ballot(const Val<bool>& condition,
                      std::source_location where = std::source_location::current());

/// The value of lane `from`, from 0 to lanes - 1. `from` may differ between lanes.
template <detail::GroupValue A, class I>
Val<detail::expr_t<A>> group_shuffle(const A& value, const I& from,
                                     std::source_location where = std::source_location::current()) {
  using T = detail::expr_t<A>;
  const auto all = detail::scratch<T>(detail::group_lanes("group_shuffle"));
  all[detail::own_lane()] = Val<T>(value);
  barrier(where);
  const Val<T> theirs = all[Val<i32>::from(detail::id_of<i32>(from))];
  barrier(where);
  return theirs;
}

/// Inclusive scan by Hillis and Steele: for d = 1, 2, 4 … below the lane count: v[l] = op(v[l - d], v[l]) for l >= d.
/// `op` takes two Val<T> and returns one.
template <detail::GroupValue A, class Op>
Val<detail::expr_t<A>> group_scan(const A& value, Op op,
                                  std::source_location where = std::source_location::current()) {
  using T = detail::expr_t<A>;
  const int lanes = detail::group_lanes("group_scan");
  const auto all =
      detail::scratch<T>(2 * lanes);  // two halves: a step writes one while slow lanes read the other
  const Val<i32> lane = detail::own_lane();
  Val<T> v = value;
  int half = 0;
  for (int d = 1; d < lanes; d *= 2) {
    all[lane + half] = v;
    barrier(where);
    const Val<T> before = all[max(lane - d, 0) + half];
    v = select(lane >= d, Val<T>(op(before, v)), v);
    half = lanes - half;
  }
  barrier(where);
  return v;
}
/// v[0] + … + v[lane], added in the order of group_scan.
template <detail::GroupValue A>
Val<detail::expr_t<A>> group_scan_sum(const A& value,
                                      std::source_location where = std::source_location::current()) {
  using T = detail::expr_t<A>;
  return group_scan(value, [](const Val<T>& a, const Val<T>& b) { return a + b; }, where);
}

/// Reduction by any operation along the tree of group_sum, returned to all lanes: for s = lanes/2 … 1:
/// v[l] = op(v[l], v[l + s]). Throws InputError unless the lane count is a power of two.
template <detail::GroupValue A, class Op>
Val<detail::expr_t<A>> group_reduce(const A& value, Op op,
                                    std::source_location where = std::source_location::current()) {
  using T = detail::expr_t<A>;
  const int lanes = detail::group_lanes("group_reduce");
  if (lanes & (lanes - 1)) detail::refuse_lanes("group_reduce", lanes);
  const auto all = detail::scratch<T>(lanes);
  const Val<i32> lane = detail::own_lane();
  all[lane] = Val<T>(value);
  barrier(where);
  for (int s = lanes / 2; s > 0; s /= 2) {
    if_(lane < s, [&] { all[lane] = Val<T>(op(Val<T>(all[lane]), Val<T>(all[lane + s]))); }, where);
    barrier(where);
  }
  const Val<T> result = all[0];
  barrier(where);
  return result;
}

}  // namespace lockstep
