// Splits a domain into dispatches that a back end's limits allow.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace lockstep::device {

struct Piece {
  std::array<int64_t, 3> first;  // group number along x, y, z
  std::array<int64_t, 3> count;  // groups
};

/// Calls `visit` for each piece of `groups` (per axis) with no axis above `limit`; x fastest. Nothing where
/// an axis is 0.
template <class Visit>
void for_each_piece(const std::array<int64_t, 3>& groups, const std::array<int64_t, 3>& limit, Visit visit) {
  for (int64_t z = 0; z < groups[2]; z += limit[2])
    for (int64_t y = 0; y < groups[1]; y += limit[1])
      for (int64_t x = 0; x < groups[0]; x += limit[0])
        visit(Piece{{x, y, z},
                    {std::min(limit[0], groups[0] - x), std::min(limit[1], groups[1] - y),
                     std::min(limit[2], groups[2] - z)}});
}

}  // namespace lockstep::device
