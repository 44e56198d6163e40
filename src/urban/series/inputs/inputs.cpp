#include "urban/series/inputs/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/files/folder.hpp"
#include "core/record/journal.hpp"
#include "core/reports/log.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/arrays/npy.hpp"
#include "io/series/civil_time.hpp"
#include "lockstep/error.hpp"
#include "urban/checks/city_checks.hpp"
#include "urban/checks/sky_record.hpp"
#include "urban/checks/weather_checks.hpp"
#include "urban/city/missing.hpp"
#include "urban/city/people_ground.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/options/errors.hpp"
#include "urban/radiation/sky_luminance.hpp"
#include "urban/series/arrays.hpp"
#include "urban/series/outputs/points.hpp"
#include "urban/sky/patches.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
constexpr size_t kPlantView = 5;  // svf_veg of kSkyViewNames

bool wants(const SeriesOptions& options, SeriesOutput output) {
  return std::find(options.outputs.begin(), options.outputs.end(), output) != options.outputs.end();
}

using Fault = OptionError::Kind;

OptionError series_error(OptionError::Parts parts) {
  return schema_of<SeriesOptions>().error(std::move(parts));
}

void check_options(const SeriesOptions& o) {
  schema_of<SeriesOptions>().check(&o);
  if (o.outputs.empty())
    throw series_error({Fault::missing, "outputs", "no outputs", "at least one, such as tmrt", ""});
  if (o.formats.empty()) throw series_error({Fault::missing, "format", "no format", "nc, tif or npy", ""});
  if (o.wall_height.empty() != o.wall_aspect.empty())
    throw series_error({Fault::missing, o.wall_height.empty() ? "wall_aspect" : "wall_height",
                        "only one wall grid", "{wall_height} and {wall_aspect}", ""});
  if (o.latitude_deg.has_value() != o.longitude_deg.has_value())
    throw series_error(
        {Fault::missing, "latitude", "only one of latitude and longitude", "{latitude} and {longitude}", ""});
  if (o.evergreen && o.leaf_days)
    throw series_error({Fault::conflict, "leaf_days", "days with leaves", "no {evergreen} next to them", ""});
}

RadiationOptions radiation_options(const SeriesOptions& o, const ModelParameters& parameters, Preset preset) {
  RadiationOptions r;
  r.constants = constants_of(preset);
  if (!o.parameters.empty()) parameters.apply(r);
  r.sky = o.sky;
  r.body = o.body;
  r.posture = o.posture.value_or(r.posture);
  r.view.patches = o.patches;
  r.view.zenith = preset == Preset::solweig ? ZenithRule::open : ZenithRule::umep;
  r.view.edges = preset == Preset::solweig ? AnnulusEdges::solweig
                 : preset == Preset::umep  ? AnnulusEdges::umep
                                           : AnnulusEdges::centred;
  r.view.rays = o.rays;
  r.view.keep_states = true;
  return r;
}

/// Ground heights: the DEM, or where there is none the lowest of the DSM everywhere.
void set_ground(LoadedCity& loaded, bool with_land_cover) {
  if (!loaded.input.dem.empty() || with_land_cover) return;
  const Raster& dsm = loaded.input.dsm;
  float lowest = std::numeric_limits<float>::infinity();
  for (const float h : dsm.pixels())
    if (!is_missing(dsm, h)) lowest = std::min(lowest, h);
  loaded.input.dem = Raster(dsm.rows(), dsm.cols(), lowest);
}

Raster read_svf(const SeriesOptions& o, LoadedCity& loaded, std::string_view grid) {
  for (const char* suffix : {".tif", ".npy"}) {
    const fs::path file = o.svf_folder / (std::string(grid) + suffix);
    std::error_code ignored;
    if (fs::exists(file, ignored)) return read_layer(file, o.city, loaded, LayerValues::numbers);
  }
  throw InputError(fmt::format("no {}.tif or .npy", grid), o.svf_folder.string(),
                   "the 15 grids of 'lockstep urban svf --save-patches'");
}

StoredSky read_sky(const SeriesOptions& o, LoadedCity& loaded, const RadiationOptions& radiation) {
  StoredSky sky;
  for (size_t g = 0; g < kSkyViewGrids; ++g) sky.grids[g] = read_svf(o, loaded, kSkyViewNames[g]);
  if (!has_patches(radiation.sky)) return sky;
  const fs::path file = o.svf_folder / "sky_states.npz";
  const io::NpzArrays arrays = io::read_npz(file, {"states", "patches"});
  const Array *states = nullptr, *patches = nullptr;
  for (const auto& [array_name, array] : arrays) {
    if (array_name == "states") states = &array;
    if (array_name == "patches") patches = &array;
  }
  const int wanted = patch_count(o.patches);
  const int64_t words = (wanted + 15) / 16;
  if (!states || !patches || states->storage() != Storage::u32 || patches->elements() != 1)
    throw InputError("no packed sky states", file.string(),
                     "what 'lockstep urban svf --save-patches' writes");
  const int there = patches->to(Storage::i32).as<int32_t>()[0];
  if (there != wanted || states->shape() != Sizes{words, loaded.grid.rows, loaded.grid.cols})
    throw InputError(
        fmt::format("sky states of {} patches, {}", there, to_string(states->shape())), file.string(),
        fmt::format("{} patches, {}", wanted, to_string(Sizes{words, loaded.grid.rows, loaded.grid.cols})));
  const Array packed = states->packed();
  const auto span = packed.as<uint32_t>();
  sky.states.assign(span.begin(), span.end());
  sky.words = static_cast<int>(words);
  return sky;
}

/// The place that the options or the raster give.
std::optional<io::LonLat> place_without_weather(const SeriesOptions& o, const LoadedCity& loaded) {
  if (o.latitude_deg) return io::LonLat{.lon = *o.longitude_deg, .lat = *o.latitude_deg};
  if (!loaded.grid.crs_wkt.empty()) return io::centre_lon_lat(loaded.grid);
  return {};
}

/// Place and clock: options first, then the raster, then the weather.
Site find_site(const SeriesOptions& o, const LoadedCity& loaded, const io::WeatherTable& weather) {
  Site site;
  if (const std::optional<io::LonLat> place = place_without_weather(o, loaded)) {
    site.latitude_deg = place->lat;
    site.longitude_deg = place->lon;
  } else if (weather.latitude_deg) {
    site.latitude_deg = *weather.latitude_deg;
    site.longitude_deg = *weather.longitude_deg;
    logging::info("the raster has no location on Earth: that of the weather is used, {:.3f}, {:.3f}",
                  site.latitude_deg, site.longitude_deg);
  } else {
    throw file_error("neither the raster nor the weather has a location on Earth", loaded.dsm_file,
                     "a CRS, or {latitude} and {longitude}");
  }
  site.elevation_m = o.elevation_m.value_or(weather.elevation_m.value_or(0));
  if (o.utc_offset_h && weather.utc_offset_h && std::abs(*o.utc_offset_h - *weather.utc_offset_h) > 1e-9)
    throw file_error(
        fmt::format("the weather's clock is {:+g} h ahead of universal time", *weather.utc_offset_h),
        weather.where, fmt::format("{:+g} h, as {{utc_offset}} says", *o.utc_offset_h));
  if (!o.utc_offset_h && !weather.utc_offset_h)
    throw file_error("the weather does not specify its time zone", weather.where,
                     "{utc_offset}, the hours that local standard time is ahead of universal time");
  site.utc_offset_h = o.utc_offset_h ? *o.utc_offset_h : *weather.utc_offset_h;
  for (const auto& [option, value] : {std::pair("latitude", site.latitude_deg),
                                      {"longitude", site.longitude_deg},
                                      {"elevation", site.elevation_m},
                                      {"utc_offset", site.utc_offset_h}})
    journal::found(option, fmt::format("{}", value));
  return site;
}

std::optional<io::CivilMinutes> chosen_time(const std::string& text, const char* option) {
  if (text.empty()) return {};
  const auto time = io::parse_iso_time(text);
  if (!time || time->utc_offset_h)
    throw series_error(
        {Fault::invalid, option, fmt::format("'{}'", text), "local time such as 2015-06-21T15:00", ""});
  return time->minutes;
}

/// Times that name the start or the middle of their intervals become those of the end.
void take_as_ends(io::WeatherTable& table, IntervalLabel label) {
  if (label == IntervalLabel::end) return;
  if (label == IntervalLabel::middle && table.step_min % 2 != 0)
    throw file_error(fmt::format("middles of intervals of {} min", table.step_min), table.where,
                     "an even number of minutes, or {interval} start or end");
  const int64_t minutes = label == IntervalLabel::start ? table.step_min : table.step_min / 2;
  for (io::WeatherRow& row : table.rows) row.time += minutes;
}

WeatherRules rules_of(const SeriesOptions& o, const SeriesInputs& inputs) {
  WeatherRules rules = weather_rules(inputs.preset, inputs.radiation.constants);
  const ModelParameters& p = inputs.parameters;
  if (o.evergreen)
    rules.evergreen = true;
  else if (o.leaf_days)
    set_leaves(rules, o.leaf_days->first, o.leaf_days->last);
  else if (inputs.preset == Preset::corrected && !p.leaf_first_day && !p.leaf_last_day)
    set_leaves_by_latitude(rules, inputs.site.latitude_deg);
  return rules;
}

void check_weather(const SeriesOptions& o, const LoadedCity& loaded, const io::WeatherTable& whole,
                   SeriesInputs& inputs) {
  std::optional<io::LonLat> raster;
  if (!loaded.grid.crs_wkt.empty()) {
    try {
      raster = io::centre_lon_lat(loaded.grid);
    } catch (const Error&) {}  // said where the city was read
  }
  check_place(inputs.site, whole, raster, inputs.findings);
  check_radiation(inputs.weather, inputs.steps, inputs.site, inputs.rules.horizontal_direct, inputs.findings);
  if (!loaded.input.cdsm.empty()) check_season(inputs.rules, inputs.site.latitude_deg, inputs.findings);
  if (!wants(o, SeriesOutput::utci)) return;
  const ComfortWind wind = comfort_wind(inputs);
  check_comfort(inputs.weather, inputs.steps, wind.measured_10m, wind.utci, inputs.findings);
}

/// Parts of an interval: as asked, else of about ten minutes in `corrected`, and none in the published programs' presets.
int substeps_of(const SeriesOptions& o, Preset preset, int64_t step_min) {
  if (o.substeps > 0) return o.substeps;
  return preset == Preset::corrected ? static_cast<int>(std::max<int64_t>(1, (step_min + 5) / 10)) : 1;
}

io::WeatherTable read_weather_of(const SeriesOptions& o, const std::string& text, const LoadedCity& loaded) {
  if (!text.empty()) return io::parse_weather(text, "argument weather");
  if (!io::is_netcdf(o.weather)) return io::read_weather(o.weather);
  io::WeatherPlace place;
  place.nearest = o.nearest_cell;
  place.utc_offset_h = o.utc_offset_h.value_or(0);
  const std::optional<io::LonLat> city = place_without_weather(o, loaded);
  if (!city)
    throw file_error("the raster has no location on Earth", loaded.dsm_file,
                     "a CRS, or {latitude} and {longitude}, for weather of many places");
  place.latitude_deg = city->lat;
  place.longitude_deg = city->lon;
  return io::read_era5(o.weather, place);
}

/// Returns the whole table.
io::WeatherTable read_weather_into(const SeriesOptions& o, const std::string& text, const LoadedCity& loaded,
                                   SeriesInputs& inputs) {
  io::WeatherTable whole = read_weather_of(o, text, loaded);
  take_as_ends(whole, o.interval);
  inputs.site = find_site(o, loaded, whole);
  std::vector<io::FilledGap> filled;
  inputs.weather =
      io::complete_weather(whole, chosen_time(o.from, "start"), chosen_time(o.to, "end"), &filled);
  journal::found("start", io::civil_text(inputs.weather.rows.front().time));
  journal::found("end", io::civil_text(inputs.weather.rows.back().time));
  check_rows(inputs.weather, whole, filled, inputs.findings);
  const bool comfort = wants(o, SeriesOutput::utci) || wants(o, SeriesOutput::pet);
  if (comfort && !inputs.weather.has(io::Weather::wind_speed))
    throw file_error("no wind", whole.where, "wind, which utci and pet need",
                     "without it: {outputs} tmrt and shadow");
  inputs.rules = rules_of(o, inputs);
  inputs.rules.horizontal_direct = o.horizontal_direct || whole.horizontal_direct;
  if (!loaded.input.cdsm.empty()) note_leaves(inputs.rules);
  inputs.rules.substeps = inputs.radiation.substeps = substeps_of(o, inputs.preset, whole.step_min);
  journal::found("substeps", fmt::format("{}", inputs.rules.substeps));
  WeatherSeries series =
      make_series(inputs.weather, whole, inputs.site, loaded.north.convergence_deg, inputs.rules);
  inputs.warm_up = std::move(series.warm_up);
  inputs.steps = std::move(series.steps);
  check_weather(o, loaded, whole, inputs);
  return whole;
}

/// The grids that a run begins from.
struct Grids {
  LoadedCity city;
  Raster land_cover;
  std::optional<Walls> walls;
};

Grids grids_of(const SeriesArrays& arrays) {
  Grids grids{{}, arrays.land_cover, arrays.walls};
  LoadedCity& city = grids.city;
  city.input = arrays.city;
  city.dsm_file = "argument dsm";
  city.grid.rows = city.input.dsm.rows();
  city.grid.cols = city.input.dsm.cols();
  city.grid.place(city.input.pixel_size_m);
  city.north.convergence_deg = arrays.convergence_deg;
  const auto check = [&](const char* argument, const Raster& raster,
                         std::optional<io::HeightKind> kind = {}) {
    if (raster.empty()) return;
    io::RasterGrid grid;
    grid.rows = raster.rows();
    grid.cols = raster.cols();
    io::require_same_grid(city.grid, city.dsm_file, grid, argument);
    const std::string doubt = kind ? io::check_heights(raster.values, *kind, argument) : "";
    if (!doubt.empty()) city.doubts.push_back(doubt);
  };
  const bool high = city.input.canopy_heights == CanopyHeights::absolute;
  const io::HeightKind plants = high ? io::HeightKind::absolute : io::HeightKind::above_ground;
  check("argument dsm", city.input.dsm, io::HeightKind::absolute);
  check("argument dem", city.input.dem, io::HeightKind::absolute);
  check("argument cdsm", city.input.cdsm, plants);
  check("argument tdsm", city.input.tdsm, plants);
  check("argument land_cover", grids.land_cover);
  if (!grids.walls) return grids;
  if (grids.walls->height.empty() || grids.walls->aspect.empty())
    throw InputError("only one wall grid", "arguments wall_height and wall_aspect", "both or none");
  check("argument wall_height", grids.walls->height);
  check("argument wall_aspect", grids.walls->aspect);
  return grids;
}

Grids read_grids(const SeriesOptions& o) {
  Grids grids{read_city(o.city, GroundUse::counted), {}, {}};
  const auto read = [&](const fs::path& file, LayerValues values = LayerValues::heights) {
    return read_layer(file, o.city, grids.city, values);
  };
  if (!o.land_cover.empty()) grids.land_cover = read(o.land_cover, LayerValues::numbers);
  if (!o.wall_height.empty())
    grids.walls = Walls{read(o.wall_height), read(o.wall_aspect, LayerValues::numbers)};
  return grids;
}

/// The city of a run, its doubts and points; the ground is set.
void take_city_into(const SeriesOptions& o, Grids& grids, bool from_files, SeriesInputs& inputs) {
  LoadedCity& loaded = grids.city;
  if (!o.points.empty()) inputs.points = read_points(o.points, loaded.grid);
  check_city({loaded.input, grids.land_cover, loaded.grid, inputs.points}, inputs.findings);
  set_ground(loaded, !grids.land_cover.empty());
  inputs.walls = std::move(grids.walls);
  std::optional<InputFolder> views;
  if (!o.svf_folder.empty()) {
    views.emplace(o.svf_folder);
    inputs.sky = read_sky(o, loaded, inputs.radiation);
  }
  inputs.city = prepare_city(std::move(loaded.input));
  if (inputs.sky) check_stored_sky(o.svf_folder, inputs.city, inputs.sky->grids[kPlantView], inputs.findings);
  if (!grids.land_cover.empty())
    inputs.land_cover = land_cover_codes(grids.land_cover, inputs.parameters, inputs.city,
                                         from_files ? o.land_cover.string() : "argument land_cover");
  inputs.ground = people_ground(inputs.city, inputs.land_cover);
}

/// The same weather, warmer by whole kelvins.
WeatherSeries warmer_series(const SeriesInputs& inputs, const io::WeatherTable& whole, int kelvin) {
  const auto warmer = [&](io::WeatherTable table) {
    for (io::WeatherRow& row : table.rows) row[io::Weather::air_temperature] += kelvin;
    return table;
  };
  return make_series(warmer(inputs.weather), warmer(whole), inputs.site, inputs.convergence_deg,
                     inputs.rules);
}

void read_fields_into(const SeriesOptions& o, const LoadedCity& loaded, const io::WeatherTable& whole,
                      SeriesInputs& inputs) {
  if (!o.wind_field.file.empty())
    inputs.wind_field = read_wind_field(o.wind_field, loaded, inputs.ground, inputs.weather);
  if (o.air_field.file.empty()) return;
  inputs.air_field =
      read_air_field(o.air_field, loaded, inputs.ground, inputs.weather, inputs.site.utc_offset_h);
  const Tile all{0, 0, inputs.city.rows, inputs.city.cols};
  const auto [low, high] = offset_range(inputs.air_field, all, inputs.city.cols, inputs.weather);
  for (int kelvin = static_cast<int>(std::floor(low)); kelvin <= static_cast<int>(std::ceil(high)); ++kelvin)
    inputs.warmer.push_back({kelvin, warmer_series(inputs, whole, kelvin)});
}

/// False where something could not be read, which is a row of the findings then.
bool read_into(const SeriesOptions& o, const SeriesArrays& arrays, SeriesInputs& inputs) {
  Findings& findings = inputs.findings;
  Grids grids;
  bool whole = findings.part("options", [&] {
    check_options(o);
    inputs.preset = o.preset;
    if (!o.parameters.empty()) inputs.parameters = read_parameters(o.parameters);
    if (o.wind_height_m) inputs.parameters.wind_height_m = *o.wind_height_m;
    journal::found("wind_height", fmt::format("{}", inputs.parameters.wind_height_m));
    inputs.radiation = radiation_options(o, inputs.parameters, inputs.preset);
    journal::found("posture", inputs.radiation.posture == Posture::sitting ? "sitting" : "standing");
  });
  if (!whole) return false;
  const bool from_files = arrays.city.dsm.empty();
  LoadedCity& loaded = grids.city;
  const bool city = findings.part("city", [&] {
    grids = from_files ? read_grids(o) : grids_of(arrays);
    if (inputs.parameters.trunk_ratio) loaded.input.trunk_ratio = *inputs.parameters.trunk_ratio;
    inputs.grid = loaded.grid;
    inputs.projection_scale = loaded.scale;
    inputs.convergence_deg = loaded.north.convergence_deg;
  });
  io::WeatherTable weather;
  whole = findings.part("weather", [&] { weather = read_weather_into(o, arrays.weather, loaded, inputs); }) &&
          city;
  if (city) whole = findings.part("city", [&] { take_city_into(o, grids, from_files, inputs); }) && whole;
  if (whole) whole = findings.part("fields", [&] { read_fields_into(o, loaded, weather, inputs); });
  for (const std::string& doubt : loaded.doubts) findings.warn("rasters", {}, "", doubt);
  return whole;
}

}  // namespace

namespace {

/// UTCI has no value without wind.
double wind_of_utci(const SeriesInputs& inputs, double high) {
  const bool calm = inputs.preset == Preset::corrected ? high < kUtciLeastWind : high <= 0;
  return calm ? kUtciLeastWind : high;
}

}  // namespace

FieldWind field_wind(const SeriesInputs& inputs, double measured, double factor) {
  const WindField& field = inputs.wind_field;
  const double here = factor * field.reference(measured, inputs.parameters.wind_height_m);
  return {wind_of_utci(inputs, wind_at(kUtciWindHeight, here, field.height_m)),
          wind_at(kPetWindHeight, here, field.height_m)};
}

void note_leaves(const WeatherRules& rules) {
  if (rules.evergreen)
    journal::found("evergreen", "true");
  else
    journal::found("leaf_days", fmt::format("{}:{}", rules.leaf_first_day + 1, rules.leaf_last_day - 1));
}

ComfortWind comfort_wind(const SeriesInputs& inputs) {
  ComfortWind wind;
  const double height = inputs.parameters.wind_height_m;
  for (const WeatherStep& step : inputs.steps) {
    const double measured = step.forcing.wind_m_s;
    // solweig hands the measured wind on as it is.
    const bool raw = inputs.preset == Preset::solweig;
    const double high = raw ? measured : wind_at(kUtciWindHeight, measured, height);
    wind.measured_10m.push_back(high);
    wind.utci.push_back(wind_of_utci(inputs, high));
    wind.pet.push_back(raw ? measured : wind_at(kPetWindHeight, measured, height));
  }
  return wind;
}

SeriesInputs read_series_inputs(const SeriesOptions& o) { return read_series_inputs(o, {}); }

SeriesInputs read_series_inputs(const SeriesOptions& o, const SeriesArrays& arrays) {
  SeriesInputs inputs;
  inputs.findings = Findings(Findings::Errors::thrown, o.words);
  read_into(o, arrays, inputs);
  inputs.findings.say();
  return inputs;
}

std::pair<SeriesInputs, bool> check_series_inputs(const SeriesOptions& o) {
  std::pair<SeriesInputs, bool> read;
  read.first.findings = Findings(Findings::Errors::kept, o.words);
  read.second = read_into(o, {}, read.first);
  return read;
}

}  // namespace lockstep::urban
