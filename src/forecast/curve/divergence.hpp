// Runs whose loss has turned and rises: no family of falling curves describes them.
#pragma once

#include <optional>
#include <span>

namespace lockstep::forecast {

struct Rise {
  double step = 0, least = 0;  // where the loss was least, and that
  double level = 0;            // now
};

/// By medians of neighbouring rows: now at least half as much again as the least (of losses of either sign: up by a quarter
/// of their fall), and beyond six standard errors of the rows' scatter. One outlier among the last rows is no rise.
std::optional<Rise> find_rise(std::span<const double> steps, std::span<const double> losses);

}  // namespace lockstep::forecast
