// The features in plain C++ from their definitions, in f64: the oracle.
#pragma once

#include <array>
#include <vector>

#include "lockstep/forecast/encoder.hpp"

namespace lockstep::forecast::reference {

/// `signals[s]`: the rows of a signal that the history holds, oldest first; at least one.
std::array<double, kFeatures> encode(const std::vector<std::vector<double>>& signals);

/// Each row of `states` by the mean and variance of all rows up to it, two passes each.
std::vector<std::array<double, kFeatures>> normalise(
    const std::vector<std::array<double, kFeatures>>& states);

}  // namespace lockstep::forecast::reference
