// The content that a folder of view factors was computed from: theirs is a city, which may be another than the run's.
#pragma once

#include <filesystem>

#include "urban/checks/findings.hpp"
#include "urban/city/prepare.hpp"

namespace lockstep::urban {

/// Writes `folder`/sky_inputs.json.
void write_sky_record(const std::filesystem::path& folder, const City& city);

/// Refuses view factors of other heights or plants than the city's. Without a record, plants are compared: `plant_view` is
/// svf_veg, 1 everywhere without plants.
void check_stored_sky(const std::filesystem::path& folder, const City& city, const Raster& plant_view,
                      Findings& findings);

}  // namespace lockstep::urban
