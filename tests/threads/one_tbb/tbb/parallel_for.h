// See parts.hpp.
#pragma once
#include "tbb/blocked_range.h"
#include "tbb/parts.hpp"

namespace tbb {

template <class I, class Body>
void parallel_for(const blocked_range<I>& range, const Body& body) {
  parts::spread<I>(range.begin(), range.end(), I(range.grainsize()),
                   [&](I first, I last) { body(blocked_range<I>(first, last, range.grainsize())); });
}

template <class I, class Body>
void parallel_for(I first, I last, const Body& body) {
  parts::spread<I>(first, last, I(1), [&](I from, I to) {
    for (I k = from; k < to; ++k) body(k);
  });
}

}  // namespace tbb
