#include "urban/checks/sky_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.hpp"
#include "core/files/folder.hpp"
#include "core/record/identity.hpp"
#include "io/text/file.hpp"
#include "io/text/json_text.hpp"
#include "urban/options/errors.hpp"
#include "urban/tiles/run_tiles.hpp"

namespace lockstep::urban {
namespace {

constexpr const char* kFile = "sky_inputs.json";
constexpr std::array<const char*, 3> kContents = {"ground and buildings", "canopy", "trunk zone"};

record::Identity identity_of(const City& city) {
  record::Identity identity("urban svf");
  identity.option("pixel size", city.pixel_size_m);
  const auto hashes = content_hashes(city);
  for (size_t k = 0; k < kContents.size(); ++k) identity.option(kContents[k], hashes[k]);
  return identity;
}

}  // namespace

void write_sky_record(const std::filesystem::path& folder, const City& city) {
  write_file(folder / kFile, identity_of(city).to_json() + "\n");
}

void check_stored_sky(const std::filesystem::path& folder, const City& city, const Raster& plant_view,
                      Findings& findings) {
  const std::filesystem::path file = folder / kFile;
  std::error_code ignored;
  if (std::filesystem::exists(InputFolder::name_of(file), ignored)) {
    const auto stored = record::Identity::from_json(
        io::parse_json(io::read_text_file(file, "a record of view factors"), file.string()), file.string());
    const auto now = identity_of(city);
    std::vector<std::string> others;
    for (const record::Option& option : now.options()) {
      const auto same = std::find_if(
          stored.options().begin(), stored.options().end(),
          [&](const record::Option& s) { return s.name == option.name && s.value == option.value; });
      if (same == stored.options().end()) others.push_back(option.name);
    }
    if (others.empty()) return findings.ok("view factors", {}, "", "computed from these heights and plants");
    return findings.refuse(
        "view factors",
        InputError(fmt::format("view factors of another city: {} differ", fmt::join(others, ", ")),
                   folder.string(), "those of this DSM, CDSM and TDSM")
            .with_hint("'lockstep urban svf --save-patches' recomputes them"));
  }
  const auto values = plant_view.pixels();
  const bool plants = std::any_of(values.begin(), values.end(), [](float v) { return v < 1; });
  if (plants != city.has_vegetation())
    return findings.refuse("view factors",
                           file_error(plants ? "view factors with plants, and no canopy"
                                             : "view factors without plants next to a canopy",
                                      folder.string(), plants ? "{cdsm} too" : "those of this CDSM"));
  findings.ok("view factors", {}, "", "of unknown heights: the folder has no record of them");
}

}  // namespace lockstep::urban
