// The instances of a batch that count.
#pragma once

#include <cstdint>
#include <span>

#include "solve/model/problem.hpp"

namespace lockstep::solve {

/// Calls f(blocks, segment, instance of the segment) for each.
template <class AnyBatch, class F>
void each_that_counts(AnyBatch& batch, F f) {
  const size_t slots = batch.expression->slots.size();
  for (auto& segment : batch.segments)
    for (int64_t i = 0; i < segment.count; ++i)
      if (segment.counts(i)) f(std::span(segment.blocks).subspan(size_t(i) * slots, slots), segment, i);
}

}  // namespace lockstep::solve
