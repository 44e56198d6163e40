// Inputs of a run hour by hour: the city, its ground, the weather, the points.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/urban/series.hpp"
#include "urban/checks/findings.hpp"
#include "urban/city/prepare.hpp"
#include "urban/radiation/model.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/series/inputs/fields.hpp"
#include "urban/weather/forcing.hpp"
#include "urban/weather/parameters.hpp"

namespace lockstep::urban {

/// View factors and states that an earlier run left, whole grids.
struct StoredSky {
  std::array<Raster, kSkyViewGrids> grids;
  std::vector<uint32_t> states;  ///< (words, rows, cols); empty with an isotropic sky
  int words = 0;
};

struct SeriesInputs {
  io::RasterGrid grid;
  double projection_scale = 1, convergence_deg = 0;
  City city;
  std::optional<Walls> walls;  ///< from files
  std::vector<int32_t> land_cover;
  std::vector<uint8_t> ground;  ///< 1 where people can be (city/people_ground.hpp)
  std::optional<StoredSky> sky;
  ModelParameters parameters;
  RadiationOptions radiation;
  Preset preset = Preset::corrected;
  Site site;
  io::WeatherTable weather;  ///< the rows of the run, without gaps
  WeatherRules rules;
  std::vector<WeatherStep> warm_up;  ///< intervals before the run that its first ones remember
  std::vector<WeatherStep> steps;
  WindField wind_field;
  AirField air_field;
  /// With a field of air: the run's steps in weather that is whole kelvins warmer, in ascending order. A pixel's results are
  /// those between the two around its own air.
  struct WarmerSteps {
    int kelvin = 0;
    WeatherSeries series;
  };
  std::vector<WarmerSteps> warmer;
  std::vector<SeriesPoint> points;
  Findings findings;
};

/// Wind of each step (m/s). UTCI has no value without wind: `corrected` raises it to the least of the fit, the published
/// presets only where there is none.
struct ComfortWind {
  std::vector<double> measured_10m, utci, pet;
};
ComfortWind comfort_wind(const SeriesInputs& inputs);
/// Of one step where the field's share of the wind is `factor`.
struct FieldWind {
  double utci, pet;
};
FieldWind field_wind(const SeriesInputs& inputs, double measured, double factor);

/// For the record of a run with plants: the days with leaves.
void note_leaves(const WeatherRules& rules);

/// Throws InputError for inputs that do not fit, naming file, line or pixel, and reports its doubts.
SeriesInputs read_series_inputs(const SeriesOptions& options);

}  // namespace lockstep::urban
