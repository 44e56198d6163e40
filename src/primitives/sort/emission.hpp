// Lists whose length the data decide: each element of a sequence gives a number of entries, in order. One kernel counts
// those of each chunk, a scan of the counts gives their positions, a second kernel writes them.
#pragma once

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::primitives {

inline constexpr int kEmissionChunk = 2048;
/// One lane for a CPU, a group for other devices; the list is the same.
inline constexpr int kEmissionLanes[] = {1, 256};

/// The elements of a chunk, in rounds of neighbouring lanes. Where a group has several, a lane adds the entries of elements
/// that follow each other, which pass through shared memory.
class Emission {
 public:
  Emission(const Group<1>& g, const Val<i32>& size)
      : lane_(g.lane()), lanes_(g.lanes()), begin_(g.id() * kEmissionChunk), size_(size) {}

  /// counts[group] = the sum of count(element) over the group's chunk.
  template <class Count>
  void count(const Out<u32, 1>& counts, const Val<i32>& group, Count count) const {
    Var<u32> sum = 0u;
    rounds(
        [&](const Val<i32>& ahead) { if_(ahead < size_ - begin_, [&] { sum += count(begin_ + ahead); }); });
    const Val<u32> all = group_sum(Val<u32>(sum));
    if_(lane_ == 0, [&] { counts[group] = all; });
  }
  /// emit(element, its entries, position of the first) for each element, unless the chunk has no entry; `starts` is the
  /// exclusive scan of the counts and `group` the chunk's place in them.
  template <class Count, class Emit>
  void emit(const Grid<u32, 1>& starts, const Val<i32>& group, Count count, Emit emit) const {
    if_(uniform(starts[group] != starts[group + 1]), [&] {
      if (lanes_ == 1) {
        Var<u32> position = starts[group];
        rounds([&](const Val<i32>& ahead) {
          if_(ahead < size_ - begin_, [&] {
            const Val<i32> at = begin_ + ahead;
            const Val<u32> entries = count(at);
            emit(at, entries, bitcast<i32>(Val<u32>(position)));
            position += entries;
          });
        });
        return;
      }
      // Lanes that read at this stride meet in no bank.
      const int own = kEmissionChunk / lanes_;
      const SharedArray<u32> before(kEmissionChunk + lanes_);
      const auto place = [&](const Val<i32>& ahead) { return ahead + ahead / own; };
      rounds([&](const Val<i32>& ahead) {
        Var<u32> entries = 0u;
        if_(ahead < size_ - begin_, [&] { entries = count(begin_ + ahead); });
        before[place(ahead)] = Val<u32>(entries);
      });
      barrier();
      Var<u32> sum = 0u;
      for_(0, own, [&](Val<i32> k) { sum += before[lane_ * (own + 1) + k]; });
      const Val<u32> all = sum;
      Var<u32> position = starts[group] + group_scan_sum(all) - all;
      for_(0, own, [&](Val<i32> k) {
        const Val<i32> at = lane_ * (own + 1) + k;
        const Val<u32> entries = before[at];
        before[at] = Val<u32>(position);
        position += entries;
      });
      barrier();
      rounds([&](const Val<i32>& ahead) {
        if_(ahead < size_ - begin_, [&] {
          const Val<i32> at = begin_ + ahead;
          emit(at, count(at), bitcast<i32>(Val<u32>(before[place(ahead)])));
        });
      });
    });
  }

 private:
  template <class Round>
  void rounds(Round round) const {
    for_(0, kEmissionChunk / lanes_, [&](Val<i32> k) { round(k * lanes_ + lane_); });
  }
  Val<i32> lane_;
  int lanes_;
  Val<i32> begin_, size_;
};

}  // namespace lockstep::primitives
