#include "urban/results/recorded_city.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/record/sha256.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "urban/run/files/city_files.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

/// None where a file is no longer what it was.
std::optional<CityFiles> files_of(const RunFolder& run) {
  CityFiles files;
  Given given;
  const auto& schema = schema_of<CityFiles>();
  for (const RecordedOption& option : run.record().options) {
    std::string name = option.name;
    std::ranges::replace(name, '-', '_');
    if (!schema.find(name) || option.value.empty() || name == "tdsm") continue;
    if (option.file) {
      std::error_code ignored;
      if (!fs::is_regular_file(option.path, ignored) ||
          std::ranges::find(option.hashes, record::sha256_of_file(option.path)) == option.hashes.end()) {
        logging::info("{} is not the file that {} was computed with: maps show neither buildings nor crowns",
                      option.path.string(), run.folder().string());
        return {};
      }
      schema.set_text(&files, name, option.path.string(), given);
    } else {
      schema.set_text(&files, name, option.value, given);
    }
  }
  if (files.dsm.empty()) return {};
  return files;
}

}  // namespace

MapBase recorded_outlines(const RunFolder& run) try {
  const std::optional<CityFiles> files = files_of(run);
  if (!files) return {};
  LoadedCity loaded = read_city(*files, files->dem.empty() ? GroundUse::none : GroundUse::counted);
  if (loaded.grid.rows != run.grid().rows || loaded.grid.cols != run.grid().cols) return {};
  const City city = take_city(loaded);
  MapBase base = map_base(city, {}, std::vector<uint8_t>(run.cells(), 1));
  if (files->dem.empty()) base.buildings.clear();
  base.cover.clear();
  return base;
} catch (const Error& error) {
  logging::info("maps show neither buildings nor crowns: {}", error.what());
  return {};
}

}  // namespace lockstep::urban
