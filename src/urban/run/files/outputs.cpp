#include "urban/run/files/outputs.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/reports/log.hpp"
#include "core/reports/trace.hpp"
#include "lockstep/error.hpp"
#include "urban/pictures/map_base.hpp"
#include "urban/pictures/map_style.hpp"
#include "urban/run/files/result_folder.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

/// Grids above this size get no picture.
constexpr int64_t kLargestPicture = int64_t{1} << 27;
/// Up to here (cells) grids are drawn several at a time.
constexpr int64_t kManyAtATime = int64_t{1} << 24;

FolderLock hold(const OutputOptions& options) {
  make_result_folder(options.folder);
  if (options.format != GridFormat::npy) require_geotiff("format npy");
  return FolderLock(options.folder);
}

}  // namespace

Outputs::Outputs(const OutputOptions& options, const io::RasterGrid& grid, std::vector<NamedLook> grids)
    : options_(options),
      grid_(grid),
      grids_(std::move(grids)),
      under_(options.pictures ? read_map_under(options.map, grid) : io::Image()),
      lock_(hold(options)) {
  facts_.crs = io::crs_title(grid.crs_wkt);
  facts_.north_is_up = true;  // as azimuths are counted, with a georeference or without
  open_files();
}

void Outputs::open_files() {
  writers_.clear();
  statistics_.assign(grids_.size(), {});
  for (const NamedLook& named : grids_) {
    io::RasterLabels labels{named.look.title, named.look.unit, {}};
    labels.bytes = named.look.bytes;
    if (!facts_.date.empty()) labels.facts.push_back({"LOCKSTEP_TIME", facts_.date});
    if (facts_.sun) {
      labels.facts.push_back({"LOCKSTEP_SUN_AZIMUTH", fmt::format("{:.6g}", facts_.sun->azimuth_deg)});
      labels.facts.push_back({"LOCKSTEP_SUN_ALTITUDE", fmt::format("{:.6g}", facts_.sun->altitude_deg)});
    }
    writers_.push_back(io::create_labelled_raster(file(named.name), grid_, labels));
  }
}

fs::path Outputs::file(std::string_view name) const {
  return options_.folder / fmt::format("{}.{}", name, options_.format == GridFormat::npy ? "npy" : "tif");
}

void Outputs::take(const Tile& tile, const TileResult& result) {
  write(tile, result);
  count(tile, result, 0, tile.rows, {});
}

void Outputs::write(const Tile& tile, const TileResult& result) {
  tbb::parallel_for(size_t{0}, result.planes(), [&](size_t k) {
    writers_[k]->write(tile.row, tile.col, tile.rows, tile.cols, result.plane(k));
  });
}

void Outputs::count(const Tile& tile, const TileResult& result, int64_t row, int64_t rows,
                    std::span<const uint8_t> counted) {
  tbb::parallel_for(size_t{0}, result.planes(), [&](size_t k) {
    statistics_[k].take(std::span(result.plane(k) + row * tile.cols, static_cast<size_t>(rows * tile.cols)),
                        counted);
  });
}

void Outputs::take(size_t k, const Tile& tile, int64_t row, int64_t rows, std::span<const float> values) {
  writers_[k]->write(tile.row + row, tile.col, rows, tile.cols, values.data());
  statistics_[k].take(values);
}

void Outputs::set_map(MapBase base, std::string source) {
  base_ = std::move(base);
  source_ = std::move(source);
}

void Outputs::take(size_t k, std::span<const float> values) {
  writers_[k]->write(0, 0, grid_.rows, grid_.cols, values.data());
  statistics_[k].take(values);
}

void Outputs::set_moment(const std::string& date, const io::MapSun& sun) {
  facts_.date = date;
  facts_.sun = sun;
  open_files();
}

std::vector<float> Outputs::read(std::string_view name) const {
  std::vector<float> values(static_cast<size_t>(grid_.rows * grid_.cols));
  io::RasterReader::open(file(name))->read(0, 0, grid_.rows, grid_.cols, values.data());
  return values;
}

std::vector<OutputGrid> Outputs::commit(const std::vector<float>& relief, double pixel_size_m) {
  {
    const TimedScope trace{"flush"};
    tbb::parallel_for(size_t{0}, writers_.size(), [&](size_t k) { writers_[k]->commit(); });
    writers_.clear();
  }
  const TimedScope trace{"describe"};
  std::vector<OutputGrid> described(grids_.size());
  const auto describe_one = [&](size_t k) { described[k] = describe(k, relief, pixel_size_m); };
  if (grid_.rows * grid_.cols <= kManyAtATime)
    tbb::parallel_for(size_t{0}, grids_.size(), describe_one);
  else
    for (size_t k = 0; k < grids_.size(); ++k) describe_one(k);
  return described;
}

OutputGrid Outputs::describe(size_t k, const std::vector<float>& relief, double pixel_size_m) const {
  const NamedLook& named = grids_[k];
  OutputGrid out;
  out.name = named.name;
  out.file = file(named.name);
  statistics_[k].fill(out);
  write_style(out.file, style_of(named.look, out.minimum, out.maximum));
  if (options_.pictures && drawable(grid_))
    out.picture = draw(named, read(named.name), relief, pixel_size_m);
  else if (options_.pictures)
    logging::info("{} is too large for a picture", named.name);
  return out;
}

bool Outputs::drawable(const io::RasterGrid& grid) { return grid.rows * grid.cols <= kLargestPicture; }

fs::path Outputs::draw(const NamedLook& named, const std::vector<float>& values,
                       const std::vector<float>& relief, double pixel_size_m) const {
  io::MapPictureOptions picture;
  picture.title = named.look.title;
  picture.unit = named.look.unit;
  picture.map = named.look.map;
  picture.minimum = named.look.minimum;
  picture.maximum = named.look.maximum;
  picture.hide_zero = named.look.hide_zero;
  picture.classes = named.look.classes;
  picture.facts = facts_;
  if (!relief.empty()) picture.relief = &relief;
  if (base_) base_->put_into(picture, true);
  if (!under_.pixels.empty()) picture.under = &under_;
  picture.source = source_;
  picture.pixel_size = pixel_size_m;
  const fs::path path = options_.folder / (named.name + ".png");
  io::write_png(path, io::draw_map(values, grid_.rows, grid_.cols, picture));
  return path;
}

std::vector<fs::path> Outputs::left_over(const std::vector<std::string>& family,
                                         const std::vector<OutputGrid>& written) const {
  std::vector<fs::path> found;
  std::string names;
  for (const std::string& name : family) {
    const auto ours = std::find_if(written.begin(), written.end(),
                                   [&](const OutputGrid& grid) { return grid.name == name; });
    for (const char* suffix : {".tif", ".npy", ".npz", ".png", ".qml", ".gpkg"}) {
      const fs::path path = options_.folder / (name + suffix);
      const bool style =
          path.extension() == ".qml" && ours != written.end() && ours->file.extension() == ".tif";
      if (ours != written.end() && (style || path == ours->file || path == ours->picture)) continue;
      std::error_code ignored;
      if (!fs::exists(path, ignored)) continue;
      found.push_back(path);
      names += (names.empty() ? "" : ", ") + path.filename().string();
    }
  }
  if (!found.empty())  // also under --quiet: they look like results of this run
    logging::line(
        fmt::format("[lockstep] warning: {} in {} are of an earlier run", names, options_.folder.string()));
  return found;
}

}  // namespace lockstep::urban
