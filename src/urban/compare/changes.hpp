// The numbers of a comparison: summaries pixel by pixel, and outputs over time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/urban/compare.hpp"
#include "urban/results/run_folder.hpp"

namespace lockstep::urban {

/// After minus before; NaN where one of them has no value.
std::vector<float> difference_of(std::span<const float> before, std::span<const float> after);

/// Statistics over the pixels where `counted` is 1 and both have a value. File and picture are left empty.
SummaryChange summary_change(const std::string& name, const io::RasterGrid& grid,
                             std::span<const float> before, std::span<const float> after,
                             std::span<const uint8_t> counted);

/// Means a step, largest changes, and of UTCI and PET the area by class.
struct SteppedChanges {
  std::vector<OutputChange> outputs;
  std::vector<StressChange> stress;
};
/// Of the outputs that both runs have.
SteppedChanges stepped_changes(const RunFolder& before, const RunFolder& after,
                               std::span<const uint8_t> counted);

/// Title and unit of an output by its name; of others the name.
std::pair<std::string, std::string> output_text(const std::string& name);
/// Title and unit of a summary by its name, such as "utci_hours_above_32".
std::pair<std::string, std::string> summary_text(const std::string& name);

}  // namespace lockstep::urban
