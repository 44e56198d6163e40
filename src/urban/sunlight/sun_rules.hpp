// Rules for the duration of sunlight: days, sun that counts, hours that are requested.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/series/civil_time.hpp"
#include "lockstep/urban/sunlight.hpp"

namespace lockstep::urban {

struct RuleDay {
  int month = 1, day = 1;
};

/// A grade begins with so many minutes on each of the days.
struct RuleLevel {
  int minutes = 0;
  const char* label = "";
};

struct SunRuleFacts {
  const char* source = "";
  std::vector<RuleDay> days;
  double least_altitude_deg = 0;
  int from_minute = 0, to_minute = static_cast<int>(io::kMinutesPerDay);  ///< of the day, in which sun counts
  std::vector<RuleLevel> levels;                                          ///< ascending
  /// The day may be chosen from these; absent: it may not.
  std::vector<RuleDay> choice = {};

  /// 0 below the first level, k from the k-th on.
  int grade(int64_t minutes) const;
  /// "less than 1.5 h", then the labels.
  std::vector<std::string> labels() const;
};

/// Of another value than none.
const SunRuleFacts& facts_of(SunRule rule);

}  // namespace lockstep::urban
