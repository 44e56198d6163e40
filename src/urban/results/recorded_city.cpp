#include "urban/results/recorded_city.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/record/sha256.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/weather/parameters.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

struct RecordedFiles {
  CityFiles city;
  fs::path land_cover, parameters;
};

/// None where a file is no longer what it was.
std::optional<RecordedFiles> files_of(const RunFolder& run) {
  RecordedFiles files;
  Given given;
  const auto& schema = schema_of<CityFiles>();
  for (const RecordedOption& option : run.record().options) {
    std::string name = option.name;
    std::ranges::replace(name, '-', '_');
    fs::path* const layer = name == "land_cover"   ? &files.land_cover
                            : name == "parameters" ? &files.parameters
                                                   : nullptr;
    if (!(layer || schema.find(name)) || option.value.empty() || name == "tdsm") continue;
    if (option.file && !is_unchanged(option)) {
      logging::info("{} is not the file that {} was computed with: maps show neither buildings nor crowns",
                    option.path.string(), run.folder().string());
      return {};
    }
    if (layer)
      *layer = option.path;
    else
      schema.set_text(&files.city, name, option.file ? option.path.string() : option.value, given);
  }
  if (files.city.dsm.empty()) return {};
  return files;
}

}  // namespace

bool is_unchanged(const RecordedOption& file) {
  std::error_code ignored;
  return fs::is_regular_file(file.path, ignored) &&
         std::ranges::find(file.hashes, record::sha256_of_file(file.path)) != file.hashes.end();
}

MapBase recorded_outlines(const RunFolder& run) try {
  const std::optional<RecordedFiles> files = files_of(run);
  if (!files) return {};
  const bool without_dem = files->city.dem.empty();
  LoadedCity loaded = read_city(files->city, without_dem ? GroundUse::none : GroundUse::counted);
  if (loaded.grid.rows != run.grid().rows || loaded.grid.cols != run.grid().cols) return {};
  Raster cover;
  if (!files->land_cover.empty())
    cover = read_layer(files->land_cover, files->city, loaded, LayerValues::numbers);
  const City city = take_city(loaded);
  std::vector<int32_t> codes;
  if (!files->land_cover.empty())
    codes = land_cover_codes(
        cover, files->parameters.empty() ? ModelParameters{} : read_parameters(files->parameters), city,
        files->land_cover.string());
  const bool masked = !run.ground().empty();
  MapBase base = map_base(city, codes, masked ? run.ground() : std::vector<uint8_t>(run.cells(), 1));
  if (without_dem && codes.empty()) base.buildings.clear();
  return base;
} catch (const Error& error) {
  logging::info("maps show neither buildings nor crowns: {}", error.what());
  return {};
}

}  // namespace lockstep::urban
