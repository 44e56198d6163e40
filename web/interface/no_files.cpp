// The page has no files: what applications read by a file's name is refused, no finished tile is kept, and pictures, which a page
// draws itself, are not made.
#include "core/files/folder.hpp"
#include "core/files/folder_lock.hpp"
#include "core/record/journal.hpp"
#include "io/arrays/mat5.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/pages/html.hpp"
#include "io/pictures/map_picture.hpp"
#include "io/pictures/plot.hpp"
#include "io/pictures/png.hpp"
#include "io/rasters/crs.hpp"
#include "io/rasters/gdal/gdal_raster.hpp"
#include "io/rasters/raster_bands.hpp"
#include "io/series/weather/weather.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/curve.hpp"
#include "lockstep/forecast/rollout.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/series/outputs/points.hpp"
#include "urban/tiles/tile_store.hpp"

namespace lockstep {

namespace {
[[noreturn]] void refuse_file(const std::filesystem::path& file = {}) {
  throw InputError("file " + file.native(), "web", "its contents: a page has no files");
}
[[noreturn]] void refuse_netcdf(const std::filesystem::path& file) {
  throw UnsupportedError("a NetCDF file: a page has no netCDF", file.native(), ".npz or .npy");
}
}  // namespace

void journal::note(std::vector<std::filesystem::path> Entries::*, const std::filesystem::path&) {}
FolderLock::~FolderLock() = default;
InputFolder::InputFolder(const std::filesystem::path& folder) { refuse_file(folder); }
InputFolder::~InputFolder() = default;
std::filesystem::path InputFolder::name_of(const std::filesystem::path& file) { return file; }

namespace forecast {

void draw_forecast(const std::filesystem::path& file, std::span<const double>, std::span<const double>,
                   const CurveForecast&, const std::string&) {
  refuse_file(file);
}
void draw_rollout(const std::filesystem::path& file, double, const Forecast&, const std::string&) {
  refuse_file(file);
}

}  // namespace forecast

namespace io {

void write_png(const std::filesystem::path&, const Image&) {}
void write_drawing(const std::filesystem::path&, const Drawing&) {}
Drawing draw_plot(std::span<const PlotSeries>, const PlotOptions&) { return {0, 0}; }
Drawing stack(std::span<const Drawing>) { return {0, 0}; }
namespace html {
std::string figure(const Drawing&) { refuse_file(); }
std::string heading(const std::string&, int) { refuse_file(); }
std::string table(const Table&) { refuse_file(); }
std::string facts(const std::vector<std::pair<std::string, std::string>>&) { refuse_file(); }
std::string page(const std::string&, const std::string&) { refuse_file(); }
}  // namespace html
Rgb series_ink(size_t) { return {}; }
Image draw_map(const std::vector<float>&, int64_t, int64_t, const MapPictureOptions&) { return {}; }
std::vector<BandLabel> band_labels(const std::filesystem::path& file) { refuse_file(file); }
NpzArrays read_mat5(const std::filesystem::path& file) {
  throw UnsupportedError("a .mat file on a page", file.native(), ".npz or .npy");
}
std::string netcdf_missing() { return "a page has no netCDF"; }
void write_netcdf(const std::filesystem::path& file, const std::vector<NetcdfVariable>&,
                  const std::vector<std::pair<std::string, std::string>>&) {
  refuse_netcdf(file);
}
NpzArrays read_netcdf(const std::filesystem::path& file, const std::vector<std::string>&) {
  refuse_netcdf(file);
}
Sizes netcdf_shape(const std::filesystem::path& file, const std::string&) { refuse_netcdf(file); }
Array read_netcdf_frame(const std::filesystem::path& file, const std::string&, int64_t) {
  refuse_netcdf(file);
}
bool is_netcdf(const std::filesystem::path&) { return false; }
std::unique_ptr<RasterReader> open_gdal_reader(const std::filesystem::path& file, const RasterReadOptions&) {
  refuse_file(file);
}
WeatherTable read_era5(const std::filesystem::path& file, const WeatherPlace&) { refuse_file(file); }
// Grids of a page name no system of coordinates.
bool is_same_crs(const std::string& wkt, const std::string& other) { return wkt == other; }
std::string crs_title(std::string_view wkt) { return std::string(wkt); }
LonLat centre_lon_lat(const RasterGrid&) { return {}; }

}  // namespace io

namespace urban {

LoadedCity read_city(const CityFiles& files, GroundUse) { refuse_file(files.dsm); }
Raster read_layer(const std::filesystem::path& file, const CityFiles&, LoadedCity&, LayerValues) {
  refuse_file(file);
}
std::vector<SeriesPoint> read_points(const std::filesystem::path& file, const io::RasterGrid&) {
  refuse_file(file);
}

Hash128 hash_in_parts(std::span<const std::byte> data) { return hash128(data); }
TileStore::TileStore(std::filesystem::path, std::string_view, bool) {}
void TileStore::begin(int64_t) {}
void TileStore::save(const Tile&, std::span<const std::byte>) const {}
bool TileStore::load(const Tile&, std::span<std::byte>) const { return false; }

}  // namespace urban

}  // namespace lockstep
