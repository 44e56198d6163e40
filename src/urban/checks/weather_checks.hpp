// Doubts about the weather of a run, its clock and its place.
#pragma once

#include <optional>
#include <vector>

#include "io/rasters/raster.hpp"
#include "urban/checks/findings.hpp"
#include "urban/weather/forcing.hpp"

namespace lockstep::urban {

/// Period, gaps, humidity as a share. `rows`: those of the run, out of `whole`.
void check_rows(const io::WeatherTable& rows, const io::WeatherTable& whole,
                const std::vector<io::FilledGap>& filled, Findings& findings);

/// Clock against longitude; place of the weather and of the raster (if it specifies one) against the run's.
void check_place(const Site& site, const io::WeatherTable& weather, std::optional<io::LonLat> raster,
                 Findings& findings);

/// Closure of beam, diffuse and global; global against the clear sky and the top of the atmosphere. A step a row.
void check_radiation(const io::WeatherTable& rows, const std::vector<WeatherStep>& steps, const Site& site,
                     bool horizontal_direct, Findings& findings);

/// Leaves in the local summer and winter.
void check_season(const WeatherRules& rules, double latitude_deg, Findings& findings);

/// Wind of UTCI (m/s at 10 m), a value a step, as measured and as taken: calm steps, and steps outside of the fit.
void check_comfort(const io::WeatherTable& rows, const std::vector<WeatherStep>& steps,
                   const std::vector<double>& measured, const std::vector<double>& taken, Findings& findings);

}  // namespace lockstep::urban
