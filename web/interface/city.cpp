// A city of a page: shadows of a moment, sky view factors that grow tile by tile, hours of radiation and comfort.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "arrays.hpp"
#include "calls.hpp"
#include "io/rasters/raster.hpp"
#include "io/series/weather/weather.hpp"
#include "lockstep/urban.hpp"
#include "objects.hpp"
#include "options.hpp"
#include "page_context.hpp"
#include "urban/city/sample_city.hpp"
#include "urban/series/tiled_series.hpp"
#include "urban/sky/sky.hpp"
#include "urban/sun/shadows.hpp"

namespace lockstep::web {

namespace {

using urban::CityInput;
using urban::Raster;
constexpr int64_t kMostPixels = 4'000'000;
constexpr float kMissingPixel = std::numeric_limits<float>::quiet_NaN();

struct PageCity {
  urban::SeriesArrays arrays;
  urban::City city;
  PageContext context;
  std::optional<urban::SkyPlan> sky;
  std::vector<urban::Tile> sky_tiles;
  std::vector<float> svf;
  std::unique_ptr<urban::TiledSeries> series;
  size_t outputs = 0;
  std::vector<float> values;  // (steps, outputs, rows, cols)

  size_t pixels() const { return size_t(city.pixels()); }
  explicit PageCity(const Json& request) : context(request) {}
};

Handles<std::unique_ptr<PageCity>>& cities() {
  static Handles<std::unique_ptr<PageCity>> all{"city"};
  return all;
}
PageCity& city_of(const Json& request) { return *cities().at(member(request, "city")); }

double number(const Json& request, const char* name) {
  const Json& value = member(request, name);
  if (!value.is_number()) throw InputError(name, "lockstep.js", "a finite number");
  return value.get<double>();
}

void check_size(int64_t rows, int64_t cols) {
  if (rows > kMostPixels / std::max<int64_t>(cols, 1))
    throw InputError("a city of " + std::to_string(rows) + " x " + std::to_string(cols) + " pixels",
                     "lockstep.city", "at most " + std::to_string(kMostPixels) + " on a page");
}

/// Grids of a city as it is given them, under the city's names.
constexpr std::pair<const char*, Raster CityInput::*> kGrids[] = {{"dsm", &CityInput::dsm},
                                                                  {"dem", &CityInput::dem},
                                                                  {"cdsm", &CityInput::cdsm},
                                                                  {"tdsm", &CityInput::tdsm}};

Raster raster_of(const Json& request, const char* name) {
  if (!request.contains(name)) return {};
  const Array& given = arrays().at(request[name]);
  if (given.rank() != 2)
    throw InputError("an array of shape " + to_string(given.shape()), name, "rows and columns");
  check_size(given.size(0), given.size(1));
  return Raster(given.to(Storage::f32).packed());
}

Json opened(const Json& request, CityInput input) {
  urban::City prepared = urban::prepare_city(input);
  auto made = std::make_unique<PageCity>(request);
  PageCity& c = *made;
  c.arrays.city = std::move(input);
  c.city = std::move(prepared);
  Json answer = c.context.status();
  answer["rows"] = c.city.rows;
  answer["cols"] = c.city.cols;
  answer["pixel_size"] = c.city.pixel_size_m;
  answer["missing"] = c.city.missing;
  answer["plants"] = c.city.has_vegetation();
  answer["relief"] = c.city.relief_m();
  answer["handle"] = cities().add(std::move(made));
  return answer;
}

/// A member that names a choice of the library's options.
template <class E>
E chosen(const Json& request, const char* name) {
  const std::string given = text(request, name);
  std::string names;
  for (const Choice<E>& choice : choices(E{})) {
    if (given == choice.name) return choice.value;
    names += (names.empty() ? "" : " or ") + std::string(choice.name);
  }
  throw InputError(std::string(name) + " " + given, "lockstep.city", names);
}

Json make_city(const Json& request) {
  CityInput input;
  Json doubts = Json::array();
  input.dsm_heights = chosen<urban::DsmHeights>(request, "dsm_heights");
  input.canopy_heights = chosen<urban::CanopyHeights>(request, "canopy");
  const bool high = input.canopy_heights == urban::CanopyHeights::absolute;
  for (const auto& [name, grid] : kGrids) {
    input.*grid = raster_of(request, name);
    if ((input.*grid).empty()) continue;
    const bool ground = std::string_view(name) == "dsm" || std::string_view(name) == "dem";
    const std::string doubt = io::check_heights(
        (input.*grid).values, ground || high ? io::HeightKind::absolute : io::HeightKind::above_ground,
        std::string("argument ") + name);
    if (!doubt.empty()) doubts.push_back(doubt);
  }
  input.pixel_size_m = number(request, "pixel_size");
  input.trunk_ratio = number(request, "trunk_ratio");
  Json answer = opened(request, std::move(input));
  answer["doubts"] = doubts;
  return answer;
}

Json sample_city(const Json& request) {
  urban::SampleCityOptions options;
  options.rows = whole(request, "rows", 16, 2048);
  options.cols = whole(request, "cols", 16, 2048);
  options.pixel_size_m = number(request, "pixel_size");
  options.seed = uint64_t(whole(request, "seed", 0, INT32_MAX));
  check_size(options.rows, options.cols);
  return opened(request, urban::make_sample_city(options));
}

void give(const Json& request, std::span<const float> values) {
  char* const to = page_memory(request, int64_t(values.size_bytes()));
  std::memcpy(to, values.data(), values.size_bytes());
}

/// A grid as it was given; the ground of a city without one is that of its lowest pixel.
Json city_grid(const Json& request) {
  const PageCity& c = city_of(request);
  const std::string name = text(request, "name");
  for (const auto& [known, grid] : kGrids)
    if (name == known && !(c.arrays.city.*grid).empty())
      return give(request, (c.arrays.city.*grid).pixels()), Json();
  throw InputError("grid " + name, "city.grid", "dsm, or another grid that the city was given");
}

/// (2, rows, cols): 1 where no building, and where no plant, hides the sun.
Json city_shadows(const Json& request) {
  PageCity& c = city_of(request);
  const urban::Direction sun{number(request, "azimuth"), number(request, "altitude")};
  const size_t pixels = c.pixels();
  auto* const planes = reinterpret_cast<float*>(page_memory(request, int64_t(8 * pixels)));
  urban::stream_shadows(*c.context, c.city, nullptr, sun, {}, {},
                        [&](const urban::Tile& tile, const urban::TileResult& result) {
                          for (size_t k = 0; k < 2; ++k)
                            urban::stitch(tile, result.plane(k), planes + k * pixels, c.city.cols);
                        });
  return nullptr;
}

/// Begins with sky view factors; how many tiles there are to compute.
Json begin_sky(const Json& request) {
  PageCity& c = city_of(request);
  const int64_t side = whole(request, "side", 16, 4096);
  c.sky = urban::plan_sky(c.city, {});
  c.sky_tiles = urban::make_tiles(c.city.rows, c.city.cols, side, c.sky->reach);
  c.svf.assign(c.pixels(), kMissingPixel);
  return {{"tiles", c.sky_tiles.size()}};
}

Json sky_tile(const Json& request) {
  PageCity& c = city_of(request);
  const int64_t number = whole(request, "tile", 0, int64_t(c.sky_tiles.size()) - 1);
  const urban::Tile& tile = c.sky_tiles[size_t(number)];
  const urban::TileResult result(tile, urban::kSkyViewGrids, 0);
  c.context->run_stage(urban::kSkyStage, [&](const Device& device) {
    urban::compute_sky_tile(device, {}, c.city, *c.sky, tile, result, [](int) {});
  });
  const std::span<const float> svf(result.plane(0), size_t(tile.core_pixels()));
  for (int64_t row = 0; row < tile.rows; ++row)
    for (int64_t col = 0; col < tile.cols; ++col) {
      const int64_t pixel = (tile.row + row) * c.city.cols + tile.col + col;
      if (!c.city.is_missing(pixel)) c.svf[size_t(pixel)] = svf[size_t(row * tile.cols + col)];
    }
  return c.context.status();
}

/// The sky view factors so far, NaN where there are none.
Json city_svf(const Json& request) { return give(request, city_of(request).svf), Json(); }

/// The first and the last interval of a file of weather, by their ends, and its place if it says so.
Json read_weather(const Json& request) {
  const std::string name = text(request, "name");
  const io::WeatherTable table =
      io::within_memory(name, [&] { return io::parse_weather(text(request, "weather"), name); });
  Json answer{{"first", io::civil_text(table.rows.front().time)},
              {"last", io::civil_text(table.rows.back().time)}};
  const std::pair<const char*, std::optional<double>> place[] = {{"latitude", table.latitude_deg},
                                                                 {"longitude", table.longitude_deg},
                                                                 {"utc_offset", table.utc_offset_h}};
  for (const auto& [key, value] : place)
    if (value) answer[key] = *value;
  return answer;
}

/// Begins with hours of weather.
Json begin_series(const Json& request) {
  PageCity& c = city_of(request);
  urban::SeriesOptions options;
  set_options(schema_of<urban::SeriesOptions>(), &options, request, "city.series");
  options.words = schema_of<urban::SeriesOptions>().in_python("city.series");
  options.tiles.side = whole(request, "side", 16, 4096);
  urban::SeriesArrays arrays = c.arrays;
  arrays.weather = text(request, "weather");
  arrays.convergence_deg = number(request, "convergence");
  c.series.reset();
  c.values.clear();
  auto series = [&] {
    try {
      return std::make_unique<urban::TiledSeries>(*c.context, options, arrays);
    } catch (const OptionError& e) { throw e.in(options.words); }
  }();
  const std::vector<std::string> times = series->times();
  Json names = Json::array();
  for (const urban::SeriesOutput output : options.outputs) names.push_back(urban::name(output));
  c.outputs = options.outputs.size();
  if (times.size() * c.outputs > size_t(INT32_MAX) / 4 / c.pixels())
    throw InputError(std::to_string(times.size()) + " hours", "city.series",
                     "fewer hours, outputs or pixels: results of at most 2 GiB");
  c.values.assign(times.size() * c.outputs * c.pixels(), kMissingPixel);
  c.series = std::move(series);
  Json answer = c.context.status();
  answer["times"] = times;
  answer["outputs"] = names;
  answer["tiles"] = c.series->tiles().size();
  return answer;
}

Json series_tile(const Json& request) {
  PageCity& c = city_of(request);
  if (!c.series) throw InputError("a tile of no series", "city.series", "a series that has begun");
  const auto number = size_t(whole(request, "tile", 0, int64_t(c.series->tiles().size()) - 1));
  const urban::Tile& tile = c.series->tiles()[number];
  const std::vector<float> found = c.series->compute(number).grids;
  const auto core = size_t(tile.core_pixels());
  for (size_t plane = 0; plane < c.values.size() / c.pixels(); ++plane)
    urban::stitch(tile, found.data() + plane * core, c.values.data() + plane * c.pixels(), c.city.cols);
  return c.context.status();
}

/// A grid of the series: an output at a step, NaN where no tile is done.
Json series_grid(const Json& request) {
  const PageCity& c = city_of(request);
  const int64_t planes = int64_t(c.values.size() / c.pixels()),
                outputs = int64_t(std::max<size_t>(c.outputs, 1));
  const int64_t step = whole(request, "step", 0, planes / outputs - 1),
                output = whole(request, "output", 0, outputs - 1);
  return give(request, std::span(c.values).subspan(size_t(step * outputs + output) * c.pixels(), c.pixels())),
         Json();
}

Json sun_at(const Json& request) {
  const std::optional<double> offset =
      request.contains("utc_offset") ? std::optional(number(request, "utc_offset")) : std::nullopt;
  const urban::SunPosition sun =
      urban::sun_position(urban::parse_local_time(text(request, "time"), offset),
                          {number(request, "latitude"), number(request, "longitude")});
  return {{"azimuth", sun.azimuth_deg}, {"altitude", sun.altitude_deg}};
}

}  // namespace

void add_city_calls(Calls& calls) {
  calls["city"] = make_city;
  calls["sample_city"] = sample_city;
  calls["free_city"] = [](const Json& r) { return cities().remove(member(r, "city")), Json(); };
  calls["city_status"] = [](const Json& r) { return city_of(r).context.status(); };
  calls["city_grid"] = city_grid;
  calls["city_shadows"] = city_shadows;
  calls["begin_sky"] = begin_sky;
  calls["sky_tile"] = sky_tile;
  calls["city_svf"] = city_svf;
  calls["weather"] = read_weather;
  calls["begin_series"] = begin_series;
  calls["series_tile"] = series_tile;
  calls["series_grid"] = series_grid;
  calls["sun"] = sun_at;
}

}  // namespace lockstep::web
