// Lists whose length the data decide: each element of a sequence gives a number of entries, in order. One kernel counts
// those of each chunk, a scan of the counts gives their positions, a second kernel writes them.
#pragma once

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::primitives {

inline constexpr int kEmissionChunk = 4096;
/// One lane for a CPU, a group for other devices; the list is the same.
inline constexpr int kEmissionLanes[] = {1, 256};

/// The elements of a lane: neighbours, so that the lanes are in the order of their entries.
class Emission {
 public:
  Emission(const Group<1>& g, const Val<i32>& size)
      : lane_(g.lane()),
        begin_(g.id() * kEmissionChunk + g.lane() * (kEmissionChunk / g.lanes())),
        end_(min(begin_ + kEmissionChunk / g.lanes(), size)) {}

  /// counts[group] = the sum of count(element) over the group's chunk.
  template <class Count>
  void count(const Out<u32, 1>& counts, const Val<i32>& group, Count count) const {
    const Val<u32> all = group_sum(own(count));
    if_(lane_ == 0, [&] { counts[group] = all; });
  }
  /// emit(element, its entries, position of the first) for each element, unless the chunk has no entry; `starts` is the
  /// exclusive scan of the counts and `group` the chunk's place in them.
  template <class Count, class Emit>
  void emit(const Grid<u32, 1>& starts, const Val<i32>& group, Count count, Emit emit) const {
    if_(uniform(starts[group] != starts[group + 1]), [&] {
      const Val<u32> before = own(count);
      Var<u32> position = starts[group] + group_scan_sum(before) - before;
      for_(begin_, end_, [&](Val<i32> at) {
        const Val<u32> entries = count(at);
        emit(at, entries, bitcast<i32>(Val<u32>(position)));
        position += entries;
      });
    });
  }

 private:
  template <class Count>
  Val<u32> own(Count count) const {
    Var<u32> sum = 0u;
    for_(begin_, end_, [&](Val<i32> at) { sum += count(at); });
    return sum;
  }
  Val<i32> lane_, begin_, end_;
};

}  // namespace lockstep::primitives
