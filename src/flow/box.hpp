// Which boxes flows and their codec take.
#pragma once

#include "lockstep/flow.hpp"

namespace lockstep::flow {

/// False for lengths that are no numbers, too. Tables by |k|, in units of the longer side's wavenumber, have as many
/// entries as the ratio of the sides times half the points; squares of |k| are to be numbers.
inline bool is_sound_box(const BoxGrid& grid) {
  const auto sound = [](double length) { return length >= 1e-100 && length <= 1e100; };
  return sound(grid.lx) && sound(grid.ly) && grid.lx <= 4096 * grid.ly && grid.ly <= 4096 * grid.lx;
}
inline constexpr const char* kSoundBox = "two lengths from 1e-100 to 1e100, one at most 4096 times the other";

}  // namespace lockstep::flow
