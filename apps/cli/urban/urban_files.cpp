#include "urban_files.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/log.hpp"
#include "core/progress.hpp"
#include "io/pictures/map_picture.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

io::Raster read_checked(const std::string& file, const CityOptions& options) {
  io::Raster raster = io::read_raster(file, {.pixel_size = options.pixel_size});
  io::require_square_metres(raster, file);
  if (options.pixel_size &&
      std::abs(raster.pixel_size() - *options.pixel_size) > 1e-6 * *options.pixel_size) {
    throw InputError(fmt::format("its pixels are {} m", raster.pixel_size()), file,
                     fmt::format("{} m, as --pixel-size says", *options.pixel_size));
  }
  return raster;
}

urban::Raster to_urban(const io::Raster& raster) {
  urban::Raster out;
  out.rows = raster.rows;
  out.cols = raster.cols;
  const auto values = raster.values.as<float>();
  out.values.assign(values.begin(), values.end());
  return out;
}

}  // namespace

void add_city_options(CLI::App& app, CityOptions& options, bool with_plants) {
  add_file(app, "--dsm", options.dsm,
           "ground and buildings, absolute heights (m): GeoTIFF, any GDAL raster, or .npy");
  require(app, "--dsm");
  add_number(app, "--pixel-size", options.pixel_size,
             "metres a pixel, for rasters without georeference (.npy)", "M", {0, 1e6, true});
  if (!with_plants) return;
  add_file(app, "--dem", options.dem, "ground alone, absolute heights (m)");
  add_file(app, "--cdsm", options.cdsm, "top of the canopy (m); 0 = no plant");
  add_file(app, "--tdsm", options.tdsm,
           "height below which plants are trunk only (m); default: --trunk-ratio of the canopy");
  add_number(app, "--trunk-ratio", options.trunk_ratio,
             "trunk zone as a share of the canopy's height (default 0.25)", "R", {0, 1});
  add_choice(app, "--canopy", options.canopy, "what canopy heights are measured from",
             {"above-ground", "absolute"});
}

urban::Raster read_layer(const std::string& file, const City& city, const CityOptions& options) {
  io::Raster raster = read_checked(file, options);
  io::require_same_grid(city.grid, options.dsm, raster, file);
  return to_urban(raster);
}

City read_city(const CityOptions& options) {
  if (!options.tdsm.empty() && options.cdsm.empty()) {
    throw InputError("trunk heights without a canopy", "--tdsm", "--cdsm too");
  }
  City city;
  io::Raster dsm = read_checked(options.dsm, options);
  city.grid = dsm;
  city.input.dsm = to_urban(dsm);
  city.input.pixel_size_m = city.grid.pixel_size();
  city.input.trunk_ratio = options.trunk_ratio;
  city.input.canopy_heights =
      options.canopy == "absolute" ? urban::CanopyHeights::absolute : urban::CanopyHeights::above_ground;
  if (!options.dem.empty()) city.input.dem = read_layer(options.dem, city, options);
  if (!options.cdsm.empty()) city.input.cdsm = read_layer(options.cdsm, city, options);
  if (!options.tdsm.empty()) city.input.tdsm = read_layer(options.tdsm, city, options);
  return city;
}

void add_output_options(CLI::App& app, OutputOptions& options) {
  add_text(app, "--out", options.out, "folder for the results; it is made if missing", "DIR");
  require(app, "--out");
  add_choice(app, "--format", options.format, "format of the grids", {"tif", "npy"});
  add_flag(app, "--no-pictures", options.no_pictures, "no PNG beside each grid");
}

void add_tile_options(CLI::App& app, TileCommandOptions& options) {
  add_integer(app, "--tile", options.tile,
              "side of a tile in pixels (default: from the device's limits and free memory)", "N", 1,
              1 << 20);
  add_integer(app, "--tile-workers", options.workers, "tiles in flight (default: 2 on a GPU, 1 on the CPU)",
              "N", 1, 64);
}

urban::TileOptions tile_options(const TileCommandOptions& options) {
  urban::TileOptions tiles;
  tiles.side = options.tile;
  tiles.workers = static_cast<int>(options.workers);
  // The bar is made when the number of parts is known, and again if it changes with a fallback.
  struct Bar {
    std::mutex mutex;
    std::unique_ptr<Progress> progress;
  };
  tiles.on_progress = [bar = std::make_shared<Bar>()](int64_t done, int64_t total) {
    std::lock_guard lock(bar->mutex);
    if (!bar->progress || bar->progress->total() != total)
      bar->progress = std::make_unique<Progress>("rays", total);
    bar->progress->set(done);
    if (done >= total) bar->progress.reset();
  };
  return tiles;
}

Outputs::Outputs(const OutputOptions& options, const City& city)
    : options_(options), city_(city), folder_(options.out) {
  std::error_code error;
  if (fs::exists(folder_, error) && !fs::is_directory(folder_, error)) {
    throw InputError("a file stands in the way", options.out, "a folder, or a name that is free");
  }
  fs::create_directories(folder_, error);
  if (error)
    throw InputError("cannot make the folder: " + error.message(), options.out,
                     "a place that can be written");
  if (options.format != "npy") {
    if (const std::string reason = io::gdal_unavailable_reason(); !reason.empty()) {
      throw UnsupportedError(fmt::format("GeoTIFF needs GDAL ({})", reason), "--format tif",
                             "GDAL (Debian 12: apt install libgdal32), or --format npy");
    }
  }
}

fs::path Outputs::file(const std::string& name) const {
  return folder_ / fmt::format("{}.{}", name, options_.format);
}

void Outputs::add(const std::string& name, const std::vector<float>& values, const Look& look) {
  io::write_raster(file(name), city_.grid,
                   Array::view(std::span<const float>(values), {city_.grid.rows, city_.grid.cols}));
  Statistics statistics;
  statistics.take(values);
  entries_.push_back(entry(name, statistics));
  entries_.back().picture = draw(name, values, look);
}

void Outputs::add_written(const std::vector<std::pair<std::string, Look>>& grids) {
  const int64_t cells = city_.grid.rows * city_.grid.cols;
  std::vector<Entry> described(grids.size());
  tbb::parallel_for(size_t{0}, grids.size(), [&](size_t k) {
    const auto& [name, look] = grids[k];
    const auto reader = io::RasterReader::open(file(name));
    const int64_t rows =
        drawable() ? city_.grid.rows : std::max<int64_t>(1, kLargestPicture * city_.grid.rows / cells);
    Statistics statistics;
    std::vector<float> values;
    for (int64_t row = 0; row < city_.grid.rows; row += rows) {
      const int64_t count = std::min(rows, city_.grid.rows - row);
      values.resize(static_cast<size_t>(count * city_.grid.cols));
      reader->read(row, 0, count, city_.grid.cols, values.data());
      statistics.take(values);
    }
    described[k] = entry(name, statistics);
    described[k].picture = draw(name, values, look);
  });
  entries_.insert(entries_.end(), described.begin(), described.end());
}

void Outputs::Statistics::take(const std::vector<float>& values) {
  for (const float v : values) {
    if (std::isnan(v)) {
      ++missing;
      continue;
    }
    sum += static_cast<double>(v);
    ++count;
    minimum = std::min<double>(minimum, v);
    maximum = std::max<double>(maximum, v);
  }
}

Outputs::Entry Outputs::entry(const std::string& name, const Statistics& s) const {
  Entry entry;
  entry.name = name;
  entry.file = file(name).string();
  entry.minimum = s.minimum;
  entry.maximum = s.maximum;
  entry.missing = s.missing;
  entry.mean = s.count ? s.sum / static_cast<double>(s.count) : std::numeric_limits<double>::quiet_NaN();
  return entry;
}

bool Outputs::drawable() const { return city_.grid.rows * city_.grid.cols <= kLargestPicture; }

std::string Outputs::draw(const std::string& name, const std::vector<float>& values, const Look& look) const {
  if (options_.no_pictures) return "";
  if (!drawable()) {
    logging::info("{} is too large for a picture", name);
    return "";
  }
  io::MapPictureOptions picture;
  picture.title = look.title;
  picture.unit = look.unit;
  picture.map = look.map;
  picture.minimum = look.minimum;
  picture.maximum = look.maximum;
  picture.hide_zero = look.hide_zero;
  picture.relief = &city_.input.dsm.values;
  picture.pixel_size = city_.grid.pixel_size();
  const fs::path path = folder_ / (name + ".png");
  io::write_png(path, io::draw_map(values, city_.grid.rows, city_.grid.cols, picture));
  return path.string();
}

nlohmann::ordered_json Outputs::to_json() const {
  auto list = nlohmann::ordered_json::array();
  for (const Entry& e : entries_) {
    nlohmann::ordered_json row = {{"name", e.name}, {"file", e.file}, {"picture", e.picture}};
    const bool any = std::isfinite(e.mean);
    row["min"] = any ? nlohmann::ordered_json(e.minimum) : nlohmann::ordered_json();
    row["max"] = any ? nlohmann::ordered_json(e.maximum) : nlohmann::ordered_json();
    row["mean"] = any ? nlohmann::ordered_json(e.mean) : nlohmann::ordered_json();
    row["missing"] = e.missing;
    list.push_back(row);
  }
  return list;
}

std::string Outputs::text() const {
  std::string text;
  for (const Entry& e : entries_) {
    text += fmt::format("{:<34} {:>10.4g} to {:<10.4g} mean {:<10.5g} {}\n", e.name, e.minimum, e.maximum,
                        e.mean, e.file);
  }
  return text;
}

void add_grid(nlohmann::ordered_json& object, const City& city) {
  object["rows"] = city.grid.rows;
  object["cols"] = city.grid.cols;
  object["pixel_size"] = city.grid.pixel_size();
}

}  // namespace lockstep::cli
