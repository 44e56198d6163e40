// Moments of a run on the device: sums over modes and the largest speeds, row by row in a ring that the host reads
// when it requests them.
#pragma once

#include <vector>

#include "flow/les/evaluation.hpp"

namespace lockstep::flow {

/// Columns of a row: time as a sum of two numbers, dt, max |u|, max |v|, then the sums over modes.
inline constexpr int kMomentTime = 0, kMomentTimeLow = 1, kMomentDt = 2, kMomentSpeeds = 3, kMomentSums = 5;
/// Sums: enstrophy, energy, palinstrophy; the rates of energy and enstrophy by linear terms, by steady forcing,
/// altogether.
inline constexpr int kSumEnstrophy = 0, kSumEnergy = 1, kSumPalinstrophy = 2, kSumRates = 3, kSums = 9;
inline constexpr int kMomentColumns = kMomentSums + kSums;

template <class T>
struct MomentKernels {
  static Kernel sums(const KernelForm& form);  // of chunks of modes: (members, chunks, kSums)
  static Kernel record();                      // a row of the ring
};

/// The ring holds the rows since the last reading; a full ring is read automatically.
struct Recorder {
  int64_t every = 1, since = 0, filled = 0;
  Buffer partial, ring;  // (members, chunks, kSums); (rows, members, kMomentColumns)
  Launch sums;
  Kernel record;
  Arguments arguments;
  std::vector<std::vector<Moment>> read;  // on the host
};

}  // namespace lockstep::flow
