#include "urban/series/inputs/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/reports/log.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/error.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/series/arrays.hpp"
#include "urban/series/outputs/points.hpp"
#include "urban/sky/patches.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

bool wants(const SeriesOptions& options, SeriesOutput output) {
  return std::find(options.outputs.begin(), options.outputs.end(), output) != options.outputs.end();
}

template <class E>
E one_of(const std::string& text, const char* option,
         std::initializer_list<std::pair<const char*, E>> choices) {
  std::string names;
  for (const auto& [choice, value] : choices) {
    if (text == choice) return value;
    names += (names.empty() ? "" : ", ") + std::string(choice);
  }
  throw InputError(fmt::format("'{}'", text), option, "one of " + names);
}

void check_options(const SeriesOptions& o) {
  if (o.outputs.empty()) throw InputError("no outputs", "--outputs", "at least one, such as tmrt");
  if (o.formats.empty()) throw InputError("no format", "--format", "nc, tif or npy");
  for (size_t k = 0; k < o.outputs.size(); ++k)
    if (std::count(o.outputs.begin(), o.outputs.end(), o.outputs[k]) > 1)
      throw InputError(fmt::format("{} twice", name(o.outputs[k])), "--outputs", "each output once");
  if (o.wall_height.empty() != o.wall_aspect.empty())
    throw InputError("one wall grid alone", o.wall_height.empty() ? "--wall-aspect" : "--wall-height",
                     "--wall-height and --wall-aspect");
  if (o.latitude_deg.has_value() != o.longitude_deg.has_value())
    throw InputError("half a place", "--lat", "--lat and --lon");
}

RadiationOptions radiation_options(const SeriesOptions& o, const ModelParameters& parameters, Preset preset) {
  RadiationOptions r;
  r.constants = constants_of(preset);
  if (!o.parameters.empty()) parameters.apply(r);
  r.sky = one_of<SkyModel>(o.sky, "--sky",
                           {{"anisotropic", SkyModel::anisotropic}, {"isotropic", SkyModel::isotropic}});
  r.body = one_of<Body>(o.body, "--body", {{"cylinder", Body::cylinder}, {"box", Body::box}});
  if (!o.posture.empty())
    r.posture = one_of<Posture>(o.posture, "--posture",
                                {{"standing", Posture::standing}, {"sitting", Posture::sitting}});
  r.view.patches = o.patches;
  r.view.zenith = preset == Preset::solweig ? ZenithRule::open : ZenithRule::umep;
  r.view.edges = preset == Preset::solweig ? AnnulusEdges::solweig : AnnulusEdges::umep;
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
    if (std::isfinite(h) && !(dsm.nodata && h == *dsm.nodata)) lowest = std::min(lowest, h);
  loaded.input.dem = Raster(dsm.rows(), dsm.cols(), lowest);
  logging::info(
      "no DEM and no land cover: the ground is taken as flat, at {:g} m; what rises 2 m above is a "
      "building (--dem gives the ground)",
      lowest);
}

Raster read_svf(const SeriesOptions& o, const LoadedCity& loaded, std::string_view grid) {
  for (const char* suffix : {".tif", ".npy"}) {
    const fs::path file = o.svf_folder / (std::string(grid) + suffix);
    std::error_code ignored;
    if (fs::exists(file, ignored)) return read_layer(file, o.city, loaded);
  }
  throw InputError(fmt::format("no {}.tif or .npy", grid), o.svf_folder.string(),
                   "the 15 grids of 'lockstep urban svf --save-patches'");
}

StoredSky read_sky(const SeriesOptions& o, const LoadedCity& loaded, const RadiationOptions& radiation) {
  StoredSky sky;
  for (size_t g = 0; g < kSkyViewGrids; ++g) sky.grids[g] = read_svf(o, loaded, kSkyViewNames[g]);
  if (radiation.sky == SkyModel::isotropic) return sky;
  const fs::path file = o.svf_folder / "sky_states.npz";
  const io::NpzArrays arrays = io::read_npz(file);
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

/// Place and clock: options first, then the raster, then the weather.
Site find_site(const SeriesOptions& o, const LoadedCity& loaded, const io::WeatherTable& weather) {
  Site site;
  if (o.latitude_deg) {
    site.latitude_deg = *o.latitude_deg;
    site.longitude_deg = *o.longitude_deg;
  } else if (!loaded.grid.crs_wkt.empty()) {
    const io::LonLat place = io::centre_lon_lat(loaded.grid);
    site.latitude_deg = place.lat;
    site.longitude_deg = place.lon;
  } else if (weather.latitude_deg) {
    site.latitude_deg = *weather.latitude_deg;
    site.longitude_deg = *weather.longitude_deg;
    logging::info("the raster does not tell its place: that of the weather is taken, {:.3f}, {:.3f}",
                  site.latitude_deg, site.longitude_deg);
  } else {
    throw InputError("neither the raster nor the weather tells its place on Earth", loaded.dsm_file,
                     "a CRS, or --lat and --lon");
  }
  site.elevation_m = o.elevation_m.value_or(weather.elevation_m.value_or(0));
  if (o.utc_offset_h && weather.utc_offset_h && std::abs(*o.utc_offset_h - *weather.utc_offset_h) > 1e-9)
    throw InputError(
        fmt::format("the weather's clock is {:+g} h ahead of universal time", *weather.utc_offset_h),
        weather.where, fmt::format("{:+g} h, as --utc-offset says", *o.utc_offset_h));
  if (!o.utc_offset_h && !weather.utc_offset_h)
    throw InputError("the weather does not tell its clock", weather.where,
                     "--utc-offset H, the hours that local standard time is ahead of universal time");
  site.utc_offset_h = o.utc_offset_h ? *o.utc_offset_h : *weather.utc_offset_h;
  return site;
}

std::optional<io::CivilMinutes> chosen_time(const std::string& text, const char* option) {
  if (text.empty()) return {};
  const auto time = io::parse_iso_time(text);
  if (!time || time->utc_offset_h)
    throw InputError(fmt::format("'{}'", text), option, "local time such as 2015-06-21T15:00");
  return time->minutes;
}

void read_weather_into(const SeriesOptions& o, const std::string& text, const LoadedCity& loaded,
                       SeriesInputs& inputs) {
  const io::WeatherTable whole =
      text.empty() ? io::read_weather(o.weather) : io::parse_weather(text, "argument weather");
  inputs.site = find_site(o, loaded, whole);
  std::vector<io::FilledGap> filled;
  inputs.weather =
      io::complete_weather(whole, chosen_time(o.from, "--from"), chosen_time(o.to, "--to"), &filled);
  for (const io::FilledGap& gap : filled)
    logging::warning("{}: {} missing from {} to {}: filled from the values around", whole.where,
                     gap.quantity == "row" ? "rows are" : gap.quantity + " is", io::civil_text(gap.first),
                     io::civil_text(gap.last));
  const bool comfort = wants(o, SeriesOutput::utci) || wants(o, SeriesOutput::pet);
  if (comfort && !inputs.weather.has(io::Weather::wind_speed))
    throw InputError("no wind", whole.where, "wind, which utci and pet need")
        .with_hint("without it: --outputs tmrt,shadow");
  inputs.steps = make_forcing(inputs.weather, whole, inputs.site, loaded.north.convergence_deg,
                              weather_rules(inputs.preset, inputs.radiation.constants));
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
  const auto check = [&](const char* argument, const Raster& raster,
                         std::optional<io::HeightKind> kind = {}) {
    if (raster.empty()) return;
    io::RasterGrid grid;
    grid.rows = raster.rows();
    grid.cols = raster.cols();
    io::require_same_grid(city.grid, city.dsm_file, grid, argument);
    const std::string doubt = kind ? io::check_heights(raster.values, *kind, argument) : "";
    if (!doubt.empty()) logging::warning("{}", doubt);
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
    throw InputError("one wall grid alone", "arguments wall_height and wall_aspect", "both or none");
  check("argument wall_height", grids.walls->height);
  check("argument wall_aspect", grids.walls->aspect);
  return grids;
}

Grids read_grids(const SeriesOptions& o) {
  CityFiles files = o.city;
  if (files.dsm_heights == DsmHeights::absolute) files.dem.clear();  // read below, for it tells the ground
  Grids grids{read_city(files), {}, {}};
  const auto read = [&](const fs::path& file) { return read_layer(file, o.city, grids.city); };
  if (grids.city.input.dem.empty() && !o.city.dem.empty()) grids.city.input.dem = read(o.city.dem);
  if (!o.land_cover.empty()) grids.land_cover = read(o.land_cover);
  if (!o.wall_height.empty()) grids.walls = Walls{read(o.wall_height), read(o.wall_aspect)};
  return grids;
}

}  // namespace

SeriesInputs read_series_inputs(const SeriesOptions& o) { return read_series_inputs(o, {}); }

SeriesInputs read_series_inputs(const SeriesOptions& o, const SeriesArrays& arrays) {
  check_options(o);
  SeriesInputs inputs;
  inputs.preset = parse_preset(o.preset);
  if (!o.parameters.empty()) inputs.parameters = read_parameters(o.parameters);
  inputs.radiation = radiation_options(o, inputs.parameters, inputs.preset);
  const bool from_files = arrays.city.dsm.empty();
  Grids grids = from_files ? read_grids(o) : grids_of(arrays);
  LoadedCity& loaded = grids.city;
  if (inputs.parameters.trunk_ratio) loaded.input.trunk_ratio = *inputs.parameters.trunk_ratio;
  inputs.grid = loaded.grid;
  inputs.projection_scale = loaded.scale;
  inputs.convergence_deg = loaded.north.convergence_deg;
  read_weather_into(o, arrays.weather, loaded, inputs);
  if (!o.points.empty()) inputs.points = read_points(o.points, loaded.grid);
  set_ground(loaded, !grids.land_cover.empty());
  inputs.walls = std::move(grids.walls);
  if (!o.svf_folder.empty()) inputs.sky = read_sky(o, loaded, inputs.radiation);
  OutputOptions pictures;
  pictures.pictures = o.pictures || o.video;
  inputs.relief = relief_of(loaded.input.dsm, loaded.grid, pictures);
  inputs.city = prepare_city(std::move(loaded.input));
  if (!grids.land_cover.empty())
    inputs.land_cover = land_cover_codes(grids.land_cover, inputs.parameters, inputs.city,
                                         from_files ? o.land_cover.string() : "argument land_cover");
  return inputs;
}

}  // namespace lockstep::urban
