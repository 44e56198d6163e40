// Names and options of cities, their grids, walls, shadows and sky view factors.
#include <array>
#include <limits>

#include "core/schema/bytes.hpp"
#include "lockstep/urban/areas.hpp"
#include "lockstep/urban/comfort.hpp"
#include "lockstep/urban/compare.hpp"
#include "lockstep/urban/exchange.hpp"
#include "lockstep/urban/plant.hpp"
#include "lockstep/urban/series.hpp"
#include "lockstep/urban/stages.hpp"
#include "lockstep/urban/sunlight.hpp"

namespace lockstep::urban {

std::span<const Choice<CanopyHeights>> choices(CanopyHeights) {
  static constexpr auto kAll = std::to_array<Choice<CanopyHeights>>(
      {{"above-ground", CanopyHeights::above_ground}, {"absolute", CanopyHeights::absolute}});
  return kAll;
}
std::span<const Choice<DsmHeights>> choices(DsmHeights) {
  static constexpr auto kAll = std::to_array<Choice<DsmHeights>>(
      {{"absolute", DsmHeights::absolute}, {"above-ground", DsmHeights::above_ground}});
  return kAll;
}
std::span<const Choice<SkyPatches>> choices(SkyPatches) {
  using enum SkyPatches;
  static constexpr auto kAll =
      std::to_array<Choice<SkyPatches>>({{"145", p145}, {"153", p153}, {"305", p305}, {"609", p609}});
  return kAll;
}
std::span<const Choice<ZenithRule>> choices(ZenithRule) {
  static constexpr auto kAll =
      std::to_array<Choice<ZenithRule>>({{"umep", ZenithRule::umep}, {"open", ZenithRule::open}});
  return kAll;
}
std::span<const Choice<AnnulusEdges>> choices(AnnulusEdges) {
  using enum AnnulusEdges;
  static constexpr auto kAll =
      std::to_array<Choice<AnnulusEdges>>({{"centred", centred}, {"umep", umep}, {"solweig", solweig}});
  return kAll;
}
std::span<const Choice<WallFilter>> choices(WallFilter) {
  static constexpr auto kAll =
      std::to_array<Choice<WallFilter>>({{"9m", WallFilter::metres}, {"9px", WallFilter::pixels}});
  return kAll;
}
std::span<const Choice<WallTies>> choices(WallTies) {
  static constexpr auto kAll =
      std::to_array<Choice<WallTies>>({{"middle", WallTies::middle}, {"first", WallTies::first}});
  return kAll;
}
std::span<const Choice<GridFormat>> choices(GridFormat) {
  static constexpr auto kAll =
      std::to_array<Choice<GridFormat>>({{"tif", GridFormat::tif}, {"npy", GridFormat::npy}});
  return kAll;
}

namespace {

using Use = Option::Use;
constexpr auto kNoEffect = "an option without effect";

}  // namespace

void describe(Schema<CityFiles>& s) {
  s.of("urban::CityFiles");
  s.option("dsm", &CityFiles::dsm, "ground and buildings, heights (m): GeoTIFF, any GDAL raster, or .npy")
      .file(Use::input)
      .shown("FILE")
      .required();
  s.option("pixel_size", &CityFiles::pixel_size_m,
           "metres per pixel, for rasters without georeference (.npy)")
      .member("pixel_size_m")
      .above(0)
      .at_most(1e6)
      .shown("M");
  s.option("band", &CityFiles::band, "band of the DSM file").at_least(1).at_most(65535).or_else("the first");
  s.option("dsm_heights", &CityFiles::dsm_heights, "reference of the DSM heights");
  s.option("dem", &CityFiles::dem,
           "ground only, absolute heights (m); distinguishes ground from buildings, and is the reference of "
           "a DSM above ground")
      .file(Use::input)
      .shown("FILE");
  s.option("cdsm", &CityFiles::cdsm, "top of the canopy (m); 0 = no plant").file(Use::input).shown("FILE");
  s.option("tdsm", &CityFiles::tdsm, "height below which plants are trunk only (m)")
      .file(Use::input)
      .shown("FILE")
      .or_else("{trunk_ratio} of the canopy");
  s.option("trunk_ratio", &CityFiles::trunk_ratio, "trunk zone as a share of the canopy's height")
      .at_least(0)
      .at_most(1)
      .shown("R");
  s.option("canopy", &CityFiles::canopy_heights, "reference of the canopy heights").member("canopy_heights");
  // Without a DSM the grids are arrays.
  for (const char* name : {"trunk_ratio", "canopy"})
    s.useless(
        name, [](const CityFiles& c) { return !c.dsm.empty() && c.cdsm.empty(); }, kNoEffect, "{cdsm} too");
  s.useless(
      "trunk_ratio", [](const CityFiles& c) { return !c.tdsm.empty(); }, "trunk heights twice",
      "no {tdsm} next to it");
}

void describe(Schema<MapOptions>& s) {
  s.of("urban::MapOptions");
  s.option("basemap", &MapOptions::basemap,
           "background picture of maps: a GeoTIFF with red, green and blue, or a PNG with its world file")
      .file(Use::input)
      .shown("FILE")
      .effect(Effect::display);
}

void describe(Schema<OutputOptions>& s) {
  s.of("urban::OutputOptions");
  s.option("out", &OutputOptions::folder, "folder for the results, created if missing")
      .member("folder")
      .file(Use::output_folder)
      .shown("DIR")
      .required()
      .effect(Effect::display);
  s.option("format", &OutputOptions::format, "format of the grids").effect(Effect::display);
  s.option("pictures", &OutputOptions::pictures, "PNG next to each grid").effect(Effect::display);
  s.include(&OutputOptions::map);
}

void describe(Schema<TileOptions>& s) {
  s.of("urban::TileOptions");
  s.option("tile", &TileOptions::side, "side of a tile in pixels")
      .member("side")
      .at_least(1)
      .at_most(1 << 20)
      .off(0)
      .or_else("from the device's limits and free memory")
      .effect(Effect::speed);
  s.option("tile_workers", &TileOptions::workers, "tiles in flight")
      .member("workers")
      .formerly("workers")
      .at_least(1)
      .at_most(64)
      .off(0)
      .or_else("2 on a GPU, 1 on the CPU")
      .effect(Effect::speed);
  s.text("memory", &TileOptions::memory_bytes, "limit of the host memory of the process, such as 8G",
         kBytesForm, &print_bytes, &read_bytes)
      .example("8G")
      .member("memory_bytes")
      .shown("SIZE")
      .or_else("0.8 of the free memory")
      .effect(Effect::speed);
}

void describe(Schema<WallOptions>& s) {
  s.of("urban::WallOptions");
  s.option("minimum_height", &WallOptions::minimum_height_m, "minimum height of a wall (m)")
      .member("minimum_height_m")
      .formerly("wall-limit")
      .above(0)
      .at_most(1e4)
      .shown("M");
  s.option("wall_filter", &WallOptions::filter,
           "length of the lines that determine the direction of a wall: nine metres or nine pixels")
      .member("filter");
  s.option("wall_ties", &WallOptions::ties,
           "which of equally good directions is used: the middle one, or the first, as published")
      .member("ties");
}

void describe(Schema<RayOptions>& s) {
  s.of("urban::RayOptions");
  s.option("max_reach", &RayOptions::max_reach_m, "maximum horizontal reach of a ray")
      .member("max_reach_m")
      .above(0)
      .at_most(1e7)
      .off(std::numeric_limits<double>::infinity())
      .shown("M")
      .or_else("no limit");
}

void describe(Schema<SkyOptions>& s) {
  s.of("urban::SkyOptions");
  s.option("patches", &SkyOptions::patches, "patches of the sky");
  s.option("zenith", &SkyOptions::zenith, "zenith patch: as in UMEP, or always open");
  s.option("annuli", &SkyOptions::edges,
           "bounds of the annuli of 609 patches: midway between the bands, or as published")
      .member("edges");
  s.include(&SkyOptions::rays);
  s.option("save_patches", &SkyOptions::keep_states,
           "also write the packed 2-bit sky states (sky_states.npz)")
      .member("keep_states")
      .formerly("keep-states");
  s.useless(
      "annuli",
      [](const SkyOptions& o) { return o.patches != SkyPatches::p609 && o.edges != AnnulusEdges::centred; },
      "edges of annuli that only 609 patches have", "{patches} 609 too");
}

void describe(Schema<WallRunOptions>& s) {
  s.of("urban::WallRunOptions");
  s.include(&WallRunOptions::city, {"cdsm", "tdsm", "trunk_ratio", "canopy"});
  s.include(&WallRunOptions::walls);
  s.include(&WallRunOptions::output);
  s.include(&WallRunOptions::tiles);
}

void describe(Schema<ShadowRunOptions>& s) {
  using O = ShadowRunOptions;
  s.of("urban::ShadowRunOptions");
  s.include(&O::city);
  s.option("azimuth", &O::azimuth_deg, "azimuth of the sun, clockwise from grid north")
      .member("azimuth_deg")
      .at_least(-180)
      .at_most(360)
      .shown("DEG");
  s.option("altitude", &O::altitude_deg, "altitude of the sun above the horizon")
      .member("altitude_deg")
      .above(0)
      .at_most(90)
      .shown("DEG");
  s.option(
       "at", &O::time,
       "local time instead of angles, with or without its offset (Z, +02:00), at the location of the raster")
      .member("time")
      .shown("YYYY-MM-DDTHH:MM");
  s.option("utc_offset", &O::utc_offset_h, "hours by which local time is ahead of universal time")
      .member("utc_offset_h")
      .at_least(-14)
      .at_most(14)
      .shown("H");
  s.option("latitude", &O::latitude_deg, "latitude for {at} if the raster has no georeference")
      .member("latitude_deg")
      .at_least(-90)
      .at_most(90)
      .shown("DEG");
  s.option("longitude", &O::longitude_deg, "longitude, east positive")
      .member("longitude_deg")
      .at_least(-180)
      .at_most(180)
      .shown("DEG");
  s.option("walls", &O::find_walls, "also compute the walls and their sunlit and shaded heights")
      .member("find_walls");
  s.include(&O::walls);
  s.option("wall_height", &O::wall_height, "wall heights (m) from a file").file(Use::input).shown("FILE");
  s.option("wall_aspect", &O::wall_aspect, "directions that walls face (degrees) from a file")
      .file(Use::input)
      .shown("FILE");
  s.include(&O::rays);
  s.include(&O::output);
  s.include(&O::tiles);
  for (const char* name : {"minimum_height", "wall_filter", "wall_ties"})
    s.useless(name, [](const O& o) { return !o.find_walls; }, kNoEffect, "{walls} too");
}

void describe(Schema<SkyRunOptions>& s) {
  s.of("urban::SkyRunOptions");
  s.include(&SkyRunOptions::city);
  s.include(&SkyRunOptions::sky);
  s.option("resume", &SkyRunOptions::resume,
           "reuse of finished tiles of a killed run (tiles that are faster to compute than to write, such as "
           "large ones on a GPU, are always recomputed)")
      .effect(Effect::speed);
  s.include(&SkyRunOptions::output);
  s.include(&SkyRunOptions::tiles);
}

void describe(Schema<SampleRunOptions>& s) {
  using O = SampleRunOptions;
  s.of("urban::SampleRunOptions");
  s.include(&O::output);
  s.option("rows", &O::rows, "pixels from north to south").at_least(1).at_most(32768);
  s.option("cols", &O::cols, "pixels from west to east").at_least(1).at_most(32768);
  s.option("pixel_size", &O::pixel_size_m, "metres per pixel")
      .member("pixel_size_m")
      .at_least(0.05)
      .at_most(50)
      .shown("M");
  s.option("seed", &O::seed, "seed of the city");
  s.option("epsg", &O::epsg, "CRS of the GeoTIFFs").at_least(1024).at_most(999999).shown("CODE");
  OptionGroup size{"size",
                   "{rows}[x{cols}]",
                   "pixels of both sides, or ROWSxCOLS",
                   "N",
                   "N or ROWSxCOLS, each from 1 to 32768",
                   true};
  size.apart = true;
  s.group(size);
}

std::vector<NamedSchema> schemas() {
  return {{"urban.shadows", &schema_of<ShadowRunOptions>()},
          {"urban.walls", &schema_of<WallRunOptions>()},
          {"urban.svf", &schema_of<SkyRunOptions>()},
          {"urban.sun", &schema_of<SunlightOptions>()},
          {"urban.sample", &schema_of<SampleRunOptions>()},
          {"urban.run", &schema_of<SeriesOptions>()},
          {"urban.check", &schema_of<CheckOptions>()},
          {"urban.validate", &schema_of<ValidationOptions>()},
          {"urban.gates", &schema_of<GateOptions>()},
          {"urban.umep", &schema_of<UmepOptions>()},
          {"urban.plant", &schema_of<PlantOptions>()},
          {"urban.compare", &schema_of<CompareOptions>()},
          {"urban.stats", &schema_of<AreaStatisticsOptions>()},
          {"urban.stage", &schema_of<StageOptions>()},
          {"urban.utci", &schema_of<UtciOptions>()},
          {"urban.pet", &schema_of<PetOptions>()}};
}

}  // namespace lockstep::urban
