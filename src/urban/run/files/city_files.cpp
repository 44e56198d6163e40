#include "urban/run/files/city_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "urban/run/city_windows.hpp"
#include "urban/tiles/run_tiles.hpp"

namespace lockstep::urban {
namespace {

constexpr double kScaleTolerance = 0.005;      // what lengths may be wrong by
constexpr double kAnisotropyTolerance = 0.01;  // between the axes; Web Mercator has up to 0.7 %

/// Heights of another unit than metres have been converted: said. A unit that is not known is a doubt.
void check_unit(const io::RasterGrid& grid, const std::string& where, LoadedCity& city) {
  if (grid.value_unit.empty()) return;
  const std::optional<double> metres = io::metres_of_unit(grid.value_unit);
  if (!metres && grid.vertical_metres == 0)
    city.doubts.push_back(fmt::format(
        "{}: heights in '{}', which is not a unit of length: metres are assumed", where, grid.value_unit));
  else if (const double factor = metres.value_or(grid.vertical_metres); std::abs(factor - 1) > 1e-9)
    city.doubts.push_back(fmt::format("{}: heights in {} are converted to metres (times {:.6g})", where,
                                      grid.value_unit, factor));
}

OpenLayer open_layer(const std::filesystem::path& file, const CityFiles& files, std::optional<int> band,
                     io::HeightKind kind, LayerValues values, LoadedCity& city) {
  const bool heights = values == LayerValues::heights;
  OpenLayer layer{
      io::RasterReader::open(file, {.pixel_size = files.pixel_size_m, .band = band, .heights = heights}),
      kind, file.string()};
  const io::RasterGrid& grid = layer.reader->grid();
  if (heights) check_unit(grid, layer.where, city);
  io::require_square_metres(grid, layer.where);
  const std::optional<double> wanted = files.pixel_size_m;
  if (wanted && std::abs(grid.pixel_size() - *wanted) > 1e-3 * *wanted)
    throw schema_of<CityFiles>().error(
        {OptionError::Kind::invalid, "", fmt::format("its pixels are {} m", grid.pixel_size()),
         fmt::format("{} m, as {{pixel_size}} says", *wanted), "", layer.where});
  if (grid.bands > 1 && !band)
    city.doubts.push_back(fmt::format("{} has {} bands: the first is taken", layer.where, grid.bands));
  return layer;
}

/// Another raster of the city's grid; none without a file.
OpenLayer open_other(const std::filesystem::path& file, const CityFiles& files, LoadedCity& city,
                     io::HeightKind kind, LayerValues values = LayerValues::heights) {
  if (file.empty()) return {};
  OpenLayer layer = open_layer(file, files, {}, kind, values, city);
  io::require_same_grid(city.grid, city.dsm_file, layer.reader->grid(), layer.where);
  return layer;
}

/// All of it, checked; nothing of none.
Raster read_whole(const OpenLayer& layer, LoadedCity& city) {
  if (!layer.reader) return {};
  const io::RasterGrid& grid = layer.reader->grid();
  io::require_memory(grid, layer.where);
  city.claims.emplace_back(4.0 * double(grid.rows) * double(grid.cols), "the raster", layer.where);
  Raster raster(grid.rows, grid.cols);
  layer.reader->read(0, 0, grid.rows, grid.cols, raster.pixels().data());
  if (const std::string doubt = io::check_heights(raster.values, layer.kind, layer.where); !doubt.empty())
    city.doubts.push_back(doubt);
  return raster;
}

GridNorth north_at(const io::RasterGrid& grid, double col, double row) {
  const auto place_of = [&](double x, double y) {
    const io::LonLat place = io::to_lon_lat(grid, x, y);
    return Place{place.lon, place.lat};
  };
  return grid_north(place_of, grid.transform[0] + col * grid.transform[1],
                    grid.transform[3] + row * grid.transform[5]);
}

}  // namespace

void find_north(LoadedCity& city) {
  const io::RasterGrid& grid = city.grid;
  if (grid.crs_wkt.empty()) return;
  const double rows = static_cast<double>(grid.rows), cols = static_cast<double>(grid.cols);
  try {
    city.north = north_at(grid, cols / 2, rows / 2);
  } catch (const Error& error) {
    city.doubts.push_back(
        fmt::format("north and scale of the projection cannot be checked: {}", error.what()));
    return;
  }
  const GridNorth& north = city.north;
  if (!(std::abs(north.scale_east / north.scale_north - 1) <= kAnisotropyTolerance))
    throw InputError(
        fmt::format("its projection stretches lengths {:.4f} times to the east and {:.4f} times to "
                    "the north",
                    north.scale_east, north.scale_north),
        city.dsm_file, "a projection that is true to shape")
        .with_hint("reproject it first, e.g. gdalwarp -t_srs EPSG:<UTM zone of the place> in.tif out.tif");
  if (std::abs(north.scale() - 1) <= kScaleTolerance) return;
  const double corners[] = {north_at(grid, 0, 0).scale(), north_at(grid, cols, rows).scale()};
  for (const double corner : corners) {
    if (std::abs(corner / north.scale() - 1) > kScaleTolerance)
      throw InputError(fmt::format("the scale of its projection runs from {:.4f} to {:.4f} over the raster",
                                   corners[0], corners[1]),
                       city.dsm_file, "one scale within 0.5 %")
          .with_hint("reproject it first, e.g. gdalwarp -t_srs EPSG:<UTM zone of the place> in.tif out.tif");
  }
  city.scale = north.scale();
  city.input.pixel_size_m = grid.pixel_size() / city.scale;
  logging::info("the projection stretches lengths {:.4f} times: its pixels of {} m are taken as {:.4f} m",
                city.scale, grid.pixel_size(), city.input.pixel_size_m);
}

namespace {

/// The city's files, and its place.
OpenCity open_city(const CityFiles& files, LoadedCity& city, GroundUse ground) {
  if (!files.tdsm.empty() && files.cdsm.empty())
    throw schema_of<CityFiles>().error(
        {OptionError::Kind::missing, "tdsm", "trunk heights without a canopy", "{cdsm} too", ""});
  const bool above_ground = files.dsm_heights == DsmHeights::above_ground;
  if (above_ground && files.dem.empty())
    throw schema_of<CityFiles>().error({OptionError::Kind::missing, "dsm_heights",
                                        "a DSM above ground without the ground", "{dem} too", ""});
  OpenCity open;
  city.dsm_file = files.dsm.string();
  open.dsm = open_layer(files.dsm, files, files.band, io::HeightKind::absolute, LayerValues::heights, city);
  city.grid = open.dsm.reader->grid();
  city.input.pixel_size_m = city.grid.pixel_size();
  city.input.trunk_ratio = files.trunk_ratio;
  city.input.dsm_heights = files.dsm_heights;
  city.input.canopy_heights = files.canopy_heights;
  find_north(city);
  open.input = city.input;
  if (above_ground || ground == GroundUse::counted)
    open.dem = open_other(files.dem, files, city, io::HeightKind::absolute);
  else if (!files.dem.empty())
    logging::info("{} is not needed: the DSM is absolute (else: --dsm-heights above-ground)",
                  files.dem.string());
  const io::HeightKind plants = files.canopy_heights == CanopyHeights::absolute
                                    ? io::HeightKind::absolute
                                    : io::HeightKind::above_ground;
  open.cdsm = open_other(files.cdsm, files, city, plants);
  open.tdsm = open_other(files.tdsm, files, city, plants);
  return open;
}

void read_all(OpenCity open, LoadedCity& city) {
  city.input.dsm = read_whole(std::exchange(open.dsm, {}), city);
  city.input.dem = read_whole(std::exchange(open.dem, {}), city);
  city.input.cdsm = read_whole(std::exchange(open.cdsm, {}), city);
  city.input.tdsm = read_whole(std::exchange(open.tdsm, {}), city);
}

}  // namespace

Raster read_layer(const std::filesystem::path& file, const CityFiles& files, LoadedCity& city,
                  LayerValues values) {
  return read_whole(open_other(file, files, city, io::HeightKind::absolute, values), city);
}

LoadedCity read_city(const CityFiles& files, GroundUse ground) {
  LoadedCity city;
  read_all(open_city(files, city, ground), city);
  return city;
}

LoadedCity read_city(const CityFiles& files, const TileOptions& tiles, GroundUse ground) {
  constexpr double kHeldShare = 0.5, kBandShare = 1.0 / 32;
  constexpr double kLargestBand = 1 << 28;
  LoadedCity city;
  OpenCity open = open_city(files, city, ground);
  const double held = static_cast<double>(held_bytes(open)),
               free = static_cast<double>(free_host_bytes(tiles));
  if (held <= kHeldShare * free) {
    read_all(std::move(open), city);
    return city;
  }
  logging::info(
      "the city takes {:.1f} MiB, more than half of the {:.1f} MiB that may be used: it is read "
      "tile by tile",
      held / 0x1p20, free / 0x1p20);
  for (const OpenLayer* layer : {&open.dsm, &open.dem, &open.cdsm, &open.tdsm})
    if (layer->where.ends_with(".asc"))
      logging::warning("{} is text, which is parsed again for each tile: as a GeoTIFF it is faster",
                       layer->where);
  city.by_windows =
      city_by_windows(std::move(open), static_cast<uint64_t>(std::min(kBandShare * free, kLargestBand)));
  return city;
}

LoadedCity read_city_by_windows(const CityFiles& files, uint64_t band_bytes, GroundUse ground) {
  LoadedCity city;
  city.by_windows = city_by_windows(open_city(files, city, ground), band_bytes);
  return city;
}

City take_city(LoadedCity& loaded) {
  if (loaded.by_windows) return *std::exchange(loaded.by_windows, {});
  return prepare_city(std::move(loaded.input));
}

}  // namespace lockstep::urban
