#include "urban/run/city_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "core/log.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

constexpr double kScaleTolerance = 0.005;      // what lengths may be wrong by
constexpr double kAnisotropyTolerance = 0.01;  // between the axes; Web Mercator has up to 0.7 %

/// A raster and what the file says of its place.
struct Layer {
  io::RasterGrid grid;
  Raster raster;
};

Layer read_checked(const std::filesystem::path& file, const CityFiles& files, std::optional<int> band,
                   io::HeightKind kind) {
  const std::string where = file.string();
  const auto reader = io::RasterReader::open(file, {.pixel_size = files.pixel_size_m, .band = band});
  Layer layer;
  layer.grid = reader->grid();
  io::require_square_metres(layer.grid, where);
  const std::optional<double> wanted = files.pixel_size_m;
  if (wanted && std::abs(layer.grid.pixel_size() - *wanted) > 1e-3 * *wanted)
    throw InputError(fmt::format("its pixels are {} m", layer.grid.pixel_size()), where,
                     fmt::format("{} m, as --pixel-size says", *wanted));
  if (layer.grid.bands > 1 && !band)
    logging::warning("{} has {} bands: the first is taken", where, layer.grid.bands);
  io::require_memory(layer.grid, where);
  layer.raster = Raster(layer.grid.rows, layer.grid.cols);
  reader->read(0, 0, layer.grid.rows, layer.grid.cols, layer.raster.pixels().data());
  if (const std::string doubt = io::check_heights(layer.raster.values, kind, where); !doubt.empty())
    logging::warning("{}", doubt);
  return layer;
}

/// Another raster of the city's grid.
Raster read_other(const std::filesystem::path& file, const CityFiles& files, const LoadedCity& city,
                  io::HeightKind kind) {
  Layer layer = read_checked(file, files, {}, kind);
  io::require_same_grid(city.grid, city.dsm_file, layer.grid, file.string());
  return std::move(layer.raster);
}

GridNorth north_at(const io::RasterGrid& grid, double col, double row) {
  const auto place_of = [&](double x, double y) {
    const io::LonLat place = io::to_lon_lat(grid, x, y);
    return Place{place.lon, place.lat};
  };
  return grid_north(place_of, grid.transform[0] + col * grid.transform[1],
                    grid.transform[3] + row * grid.transform[5]);
}

/// Finds the grid's north and scale, where the raster tells its place.
void find_north(LoadedCity& city) {
  const io::RasterGrid& grid = city.grid;
  if (grid.crs_wkt.empty()) return;
  const double rows = static_cast<double>(grid.rows), cols = static_cast<double>(grid.cols);
  try {
    city.north = north_at(grid, cols / 2, rows / 2);
  } catch (const Error& error) {
    logging::warning("north and scale of the projection cannot be checked: {}", error.what());
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

}  // namespace

Raster read_layer(const std::filesystem::path& file, const CityFiles& files, const LoadedCity& city) {
  return read_other(file, files, city, io::HeightKind::absolute);
}

LoadedCity read_city(const CityFiles& files) {
  if (!files.tdsm.empty() && files.cdsm.empty())
    throw InputError("trunk heights without a canopy", "--tdsm", "--cdsm too");
  const bool above_ground = files.dsm_heights == DsmHeights::above_ground;
  if (above_ground && files.dem.empty())
    throw InputError("a DSM above ground without the ground", "--dsm-heights", "--dem too");
  LoadedCity city;
  city.dsm_file = files.dsm.string();
  Layer dsm = read_checked(files.dsm, files, files.band, io::HeightKind::absolute);
  city.grid = dsm.grid;
  city.input.dsm = std::move(dsm.raster);
  city.input.pixel_size_m = city.grid.pixel_size();
  city.input.trunk_ratio = files.trunk_ratio;
  city.input.dsm_heights = files.dsm_heights;
  city.input.canopy_heights = files.canopy_heights;
  find_north(city);
  if (above_ground)
    city.input.dem = read_other(files.dem, files, city, io::HeightKind::absolute);
  else if (!files.dem.empty())
    logging::info("{} is not needed: the DSM is absolute (else: --dsm-heights above-ground)",
                  files.dem.string());
  const io::HeightKind plants = files.canopy_heights == CanopyHeights::absolute
                                    ? io::HeightKind::absolute
                                    : io::HeightKind::above_ground;
  if (!files.cdsm.empty()) city.input.cdsm = read_other(files.cdsm, files, city, plants);
  if (!files.tdsm.empty()) city.input.tdsm = read_other(files.tdsm, files, city, plants);
  return city;
}

}  // namespace lockstep::urban
