#pragma once

#include <type_traits>

namespace tbb {

template <class Range, class Body>
void parallel_for(const Range& range, const Body& body) {
  if (!range.empty()) body(range);
}
template <class Index, class Body>
  requires std::is_integral_v<Index>
void parallel_for(Index begin, Index end, const Body& body) {
  for (; begin < end; ++begin) body(begin);
}

}  // namespace tbb
