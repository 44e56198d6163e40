#include "urban/pictures/looks.hpp"

#include <fmt/format.h>

#include "core/reports/log.hpp"
#include "urban/checks/findings.hpp"

namespace lockstep::urban {
namespace {

constexpr io::Rgb kPlantShade = {92, 128, 96};
io::Rgb sun_ink() { return io::color(io::ColorMap::light, 1); }
io::Rgb shade_ink() { return io::color(io::ColorMap::light, 0.12); }

}  // namespace

std::vector<NamedLook> wall_looks() {
  return {
      {"wall_height", {"Wall height", "m", io::ColorMap::heat, 0.0, {}, true}},
      {"wall_aspect", {"Direction that walls face", "° from north", io::ColorMap::cycle, 0.0, 360.0, true}}};
}

std::vector<NamedLook> shadow_looks(bool walls) {
  const auto states = [](const std::string& title, std::vector<io::MapClass> classes) {
    return Look{title, "", io::ColorMap::light, 0.0, 1.0, false, std::move(classes), true};
  };
  const std::vector<io::MapClass> sun_and_shade = {{1, "sun", sun_ink()}, {0, "shade", shade_ink()}};
  std::vector<NamedLook> looks = {
      {"shadow_buildings", states("Shadows of buildings", sun_and_shade)},
      {"shadow_vegetation", states("Shadows of plants", sun_and_shade)},
      {"shadow_vegetation_before_buildings", states("Plants before the buildings that shade a place",
                                                    {{1, "none", sun_ink()}, {0, "a plant", kPlantShade}})}};
  if (walls) {
    looks.push_back({"wall_sun", {"Sunlit part of walls", "m", io::ColorMap::heat, 0.0, {}, true}});
    looks.push_back({"wall_shadow", {"Shaded part of walls", "m", io::ColorMap::heat, 0.0, {}, true}});
  }
  return looks;
}

NamedLook shade_look() {
  Look look{"Shadows of buildings and plants", "", io::ColorMap::light, 0.0, 1.0, false};
  look.classes = {
      {1, "sun", sun_ink()}, {0.5f, "shade of plants", kPlantShade}, {0, "shade of buildings", shade_ink()}};
  return {"shadow", look};
}

std::vector<NamedLook> sky_looks() {
  std::vector<NamedLook> looks;
  for (const std::string_view name : kSkyViewNames) {
    std::string title = name.starts_with("svf_veg")    ? "Sky view past plants"
                        : name.starts_with("svf_aveg") ? "Sky view past plants before buildings"
                                                       : "Sky view factor";
    for (const char* side : {"east", "south", "west", "north"})
      if (name.ends_with(side)) title += fmt::format(", {} half", side);
    looks.push_back({std::string(name), {title, "share of sky", io::ColorMap::sky, 0.0, 1.0, false}});
  }
  return looks;
}

std::vector<NamedLook> sample_looks() {
  return {{"dsm", {"Ground and buildings", "m", io::ColorMap::terrain, {}, {}, false}},
          {"dem", {"Ground", "m", io::ColorMap::terrain, {}, {}, false}},
          {"cdsm", {"Canopy above ground", "m", io::ColorMap::canopy, 0.0, {}, true}},
          {"tdsm", {"Trunk zone above ground", "m", io::ColorMap::canopy, 0.0, {}, true}}};
}

Look ground_look() {
  Look look{"Ground that people can use: 1; roofs and water: 0", "1", io::ColorMap::light, 0.0, 1.0};
  look.classes = {{1, "ground", {214, 232, 206}}, {0, "roof or water", {228, 226, 222}}};
  look.bytes = true;
  return look;
}

std::vector<std::string> names_of(const std::vector<NamedLook>& looks) {
  std::vector<std::string> names;
  for (const NamedLook& look : looks) names.push_back(look.name);
  return names;
}

void begin(RunResult& result, const LoadedCity& city) {
  result.rows = city.grid.rows;
  result.cols = city.grid.cols;
  result.pixel_size_m = city.grid.pixel_size();
  result.projection_scale = city.scale;
  result.warnings = city.doubts;
  for (const std::string& doubt : city.doubts) say_doubt(doubt);
}

OutputOptions pictured(OutputOptions options, const LoadedCity& city) {
  if (!city.by_windows || !options.pictures) return options;
  options.pictures = false;
  logging::line("[lockstep] warning: no pictures are drawn of a city that memory does not hold");
  return options;
}

std::vector<float> relief_of(const Raster& dsm, const io::RasterGrid& grid, const OutputOptions& options) {
  if (!options.pictures || !Outputs::drawable(grid)) return {};
  return {dsm.pixels().begin(), dsm.pixels().end()};
}

void finish(RunResult& result, Outputs& outputs, const std::vector<std::string>& family,
            const std::vector<float>& relief) {
  result.outputs = outputs.commit(relief, result.ground_pixel_m());
  result.left_over = outputs.left_over(family, result.outputs);
}

}  // namespace lockstep::urban
