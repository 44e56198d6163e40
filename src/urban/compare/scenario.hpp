// The differences of two recorded runs, and whether that is what is compared.
#pragma once

#include <string>
#include <vector>

#include "lockstep/urban/compare.hpp"
#include "urban/results/run_folder.hpp"

namespace lockstep::urban {

/// The options that differ, by value or by the content of their files. Throws InputError where one of them is neither of the
/// surface nor meant to differ, and for a name in `options.differing` that no record has. What cannot be known is a warning.
std::vector<RunDifference> scenario_of(const CompareOptions& options, const RunFolder& before,
                                       const RunFolder& after, std::vector<std::string>& warnings);

/// That of the run's options, else its folder.
std::string scenario_name(const RunFolder& run);

/// compare() of runs whose records do not say what they differ in: `known` does. Empty: the records are compared.
CompareResult compare(const CompareOptions& options, const std::vector<RunDifference>& known);

}  // namespace lockstep::urban
