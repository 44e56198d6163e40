// Shadows, walls and sky view factors of a city given as height grids.
//
// Grids: row 0 is north, column 0 is west, square pixels. Angles: azimuth clockwise from north, altitude
// above the horizon, both in degrees. Heights and lengths in metres. 1 means "sees the sun (or the sky)", 0
// means "does not". Formulas, conventions and sources: docs/urban.md.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/context.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::urban {

/// An array with a marker for missing pixels.
struct Raster {
  Array values;                 ///< f32 (rows, cols), row by row from the north-west corner
  std::optional<float> nodata;  ///< marks a missing pixel; NaN and infinities always do

  Raster() : Raster(0, 0) {}
  Raster(int64_t rows, int64_t cols, float value = 0.0f);
  explicit Raster(Array grid) : values(std::move(grid)) {}
  bool empty() const { return values.empty(); }
  int64_t rows() const { return values.size(0); }
  int64_t cols() const { return values.size(1); }
  std::span<const float> pixels() const { return values.as<float>(); }
  std::span<float> pixels() { return values.mutate<float>(); }
  float at(int64_t row, int64_t col) const { return values.at<float>(row, col); }
  float& at(int64_t row, int64_t col) { return pixels()[static_cast<size_t>(row * cols() + col)]; }
};

/// How canopy and trunk heights are given: above the ground (0 = no plant), or as absolute heights like the
/// DSM (0 = no plant).
enum class CanopyHeights { above_ground, absolute };

/// How the heights of the DSM are given: absolute, or above the ground of the DEM.
enum class DsmHeights { absolute, above_ground };

/// The grids of a city. All have the shape of `dsm`; empty ones are absent.
struct CityInput {
  /// Ground and buildings (m), absolute unless `dsm_heights` specifies otherwise. Missing pixels are missing in
  /// results and cast no shadow.
  Raster dsm;
  Raster dem;   ///< ground alone, absolute height (m); added to a DSM above ground
  Raster cdsm;  ///< top of the canopy (m); missing pixels mean no plant
  Raster tdsm;  ///< height up to which a plant is trunk only (m); absent: trunk_ratio · canopy height
  double pixel_size_m = 1.0;
  DsmHeights dsm_heights = DsmHeights::absolute;
  CanopyHeights canopy_heights = CanopyHeights::above_ground;
  double trunk_ratio = 0.25;
};

/// Direction of the sun or of a patch of sky.
struct Direction {
  double azimuth_deg = 0.0;   ///< any real number; taken modulo 360
  double altitude_deg = 0.0;  ///< above 0, at most 90
};

/// Place and air of an observer, for the sun's position.
struct Observer {
  double latitude_deg = 0.0;   ///< north positive
  double longitude_deg = 0.0;  ///< east positive
  double elevation_m = 0.0;
  double pressure_mbar = 1010.0;  ///< yearly mean; scales refraction
  double temperature_c = 10.0;    ///< yearly mean; scales refraction
  double delta_t_s = 0.0;         ///< terrestrial time minus universal time
};

/// Universal time. Hours, minutes and seconds may lie outside their usual range (an offset subtracted from
/// local time).
struct UtcTime {
  int year = 2000, month = 1, day = 1;
  double hour = 0.0, minute = 0.0, second = 0.0;
};

struct SunPosition {
  double azimuth_deg = 0.0;             ///< 0 = north, 90 = east
  double altitude_deg = 0.0;            ///< apparent, with refraction
  double zenith_deg = 0.0;              ///< 90 − altitude_deg
  double geometric_altitude_deg = 0.0;  ///< without refraction
  double distance_au = 1.0;
};

/// The sun's place in the sky by the Solar Position Algorithm (I. Reda & A. Andreas, NREL/TP-560-34302,
/// ±0.0003°). Throws InputError for a latitude beyond ±90°, a year outside −2000…6000 or a calendar date that
/// does not exist.
SunPosition sun_position(const UtcTime& time, const Observer& observer);

/// Parses "2015-06-21T12:00" or "2015-06-21T12:00:30" as local time `utc_offset_h` hours ahead of universal
/// time. The text may end with its offset, "Z" or "+05:45". Throws InputError on other text, without any
/// offset, and where two offsets differ.
UtcTime parse_local_time(std::string_view text, std::optional<double> utc_offset_h = {});

enum class SkyPatches { p145, p153, p305, p609 };

/// The zenith patch. `umep`: as evaluated by UMEP (the plant on the pixel and the one a pixel north count); `open`:
/// always sky, as in solweig.
enum class ZenithRule { umep, open };

/// Edges of the annuli of the 609-patch sky. `centred`: midway between the bands, every 6°. The published programs
/// place them half a band too low: UMEP at 4.5°, 9°, 15°, …, solweig at 4°, 9°, 15°, …. The other skies agree.
enum class AnnulusEdges { umep, solweig, centred };

/// Options of every function that casts rays.
struct RayOptions {
  /// Longest horizontal reach of a ray (m). A ray that is cut sees the sky beyond; with and without
  /// tiles alike.
  double max_reach_m = std::numeric_limits<double>::infinity();
};

/// Shadow grids of one direction. Missing pixels are NaN.
struct Shadows {
  Raster buildings;   ///< 1 = not hidden by a building or terrain
  Raster vegetation;  ///< 1 = not hidden by a plant (0 only where buildings is 1)
  Raster
      vegetation_before_buildings;  ///< 0 = a plant is located between the pixel and the building that shades it
};

/// Ground pixels just outside a building: height of the wall (m) next to them, and the direction it faces
/// (degrees clockwise from north). 0 where there is no wall.
struct Walls {
  Raster height;
  Raster aspect;
};

/// Sunlit and shaded height (m) of the wall at each wall pixel.
struct WallShadows {
  Raster sun;
  Raster shadow;
};

/// Length of the lines that determine the direction of a wall: nine metres, as in UMEP, or nine pixels, as in other
/// tools.
enum class WallFilter { metres, pixels };

/// Which of several adjacent angles that cover equally many wall pixels is used: the middle one, which has no bias,
/// or the first, as published.
enum class WallTies { middle, first };

struct WallOptions {
  double minimum_height_m = 3.0;  ///< lower steps are not walls
  WallFilter filter = WallFilter::metres;
  WallTies ties = WallTies::middle;
};

struct SkyOptions {
  SkyPatches patches = SkyPatches::p153;
  ZenithRule zenith = ZenithRule::umep;
  AnnulusEdges edges = AnnulusEdges::centred;
  RayOptions rays;
  bool keep_states = false;  ///< also return the packed sky states
};

/// Obstacles on a ray to a patch of sky.
enum class SkyState : uint8_t { sky = 0, vegetation = 1, building = 2, vegetation_before_building = 3 };

/// Two bits a patch, 16 patches a word, patch 16·w + k in bits 2k and 2k+1 of word w; unused bits are 0.
/// `words` is (words_per_pixel, rows, cols). Missing pixels hold 0.
struct PackedSky {
  int64_t rows = 0, cols = 0;
  int patches = 0;
  std::vector<uint32_t> words;

  int words_per_pixel() const { return (patches + 15) / 16; }
  SkyState state(int patch, int64_t row, int64_t col) const {
    const size_t index = static_cast<size_t>(patch / 16) * static_cast<size_t>(rows * cols) +
                         static_cast<size_t>(row * cols + col);
    return static_cast<SkyState>(words[index] >> (2 * (patch % 16)) & 3u);
  }
};

/// The 15 grids in the order of kSkyViewNames.
inline constexpr int kSkyViewGrids = 15;
inline constexpr std::array<std::string_view, kSkyViewGrids> kSkyViewNames = {
    "svf",      "svf_east",      "svf_south",      "svf_west",      "svf_north",
    "svf_veg",  "svf_veg_east",  "svf_veg_south",  "svf_veg_west",  "svf_veg_north",
    "svf_aveg", "svf_aveg_east", "svf_aveg_south", "svf_aveg_west", "svf_aveg_north"};

/// Cosine-weighted (Johnson & Watson 1984) sky view factors: buildings, vegetation, vegetation in front of
/// buildings; each of the whole sky and of four half skies. 0…1; missing pixels are NaN.
struct SkyViewFactors {
  std::array<Raster, kSkyViewGrids> grids;
  PackedSky states;  ///< empty unless requested

  const Raster& operator[](std::string_view name) const;  ///< by name of kSkyViewNames; throws InputError
};

/// How a raster that exceeds the memory is split into tiles. Results do not depend on it, bit
/// for bit.
struct TileOptions {
  /// Pixels of a tile's side; 0 = by the rule of docs/urban.md from limits and free memory.
  int64_t side = 0;
  int workers = 0;  ///< tiles in flight; 0 = 2 on a GPU, 1 on the CPU
  /// Limit of the host memory of the process (bytes); 0 = 0.8 of the free memory of the machine or container
  /// free.
  int64_t memory_bytes = 0;
  /// Finished tiles are stored here and reused by a later call of the same computation with the same inputs and
  /// options; empty = not stored. One process at a time.
  std::filesystem::path resume_folder;
  /// Called repeatedly, from any worker, with the numbers of finished and of all parts of the work.
  std::function<void(int64_t done, int64_t total)> on_progress;
};

/// Counts, sizes and times of one computation's tiles.
struct TileReport {
  int64_t side = 0;                  ///< pixels
  int64_t tiles = 0;                 ///< of the raster
  int64_t resumed = 0;               ///< reused from the resume folder
  int workers = 0;                   ///< the limit of tiles in flight
  int queue_depth_peak = 0;          ///< highest number of tiles in flight
  int64_t predicted_bytes = 0;       ///< predicted device memory of all tiles in flight
  int64_t predicted_host_bytes = 0;  ///< predicted peak of the process's host memory
  int64_t peak_host_bytes = 0;       ///< actual peak of the process's host memory
  std::vector<double> tile_seconds;  ///< of each computed tile: copies and kernels
  std::vector<double>
      turnaround_seconds;     ///< of each computed tile: until its result is stored and delivered
  double stitch_seconds = 0;  ///< delivering cores: copying or writing them
  double seconds = 0;
};

/// Shadows of one direction. Stage "urban.shadow".
/// Throws InputError for invalid grids or a direction at or below the horizon.
Shadows compute_shadows(Context& context, const CityInput& city, const Direction& sun,
                        const RayOptions& rays = {}, const TileOptions& tiles = {},
                        TileReport* report = nullptr);

/// Heights and directions of walls. Stage "urban.walls". The limit counts as published: 3 m in UMEP, 1 m in
/// solweig.
Walls compute_walls(Context& context, const CityInput& city, const WallOptions& options = {},
                    const TileOptions& tiles = {}, TileReport* report = nullptr);

struct ShadowsWithWalls {
  Shadows shadows;
  WallShadows walls;
};

/// Shadows of one direction on the ground and on walls (as compute_walls gives them). Stage "urban.shadow".
ShadowsWithWalls compute_wall_shadows(Context& context, const CityInput& city, const Walls& walls,
                                      const Direction& sun, const RayOptions& rays = {},
                                      const TileOptions& tiles = {}, TileReport* report = nullptr);

/// Sky view factors of the whole city. Stage "urban.svf", one run per tile. `report` receives counts of the tiles,
/// here and above; a line "<stage>.tiles" of telemetry contains the same.
SkyViewFactors compute_sky_view_factors(Context& context, const CityInput& city,
                                        const SkyOptions& options = {}, const TileOptions& tiles = {},
                                        TileReport* report = nullptr);

/// A finished part of the sky view factors, for writers that do not hold the whole: rows × cols from (row,
/// col) on.
struct SkyTile {
  int64_t row = 0, col = 0, rows = 0, cols = 0;
  /// In the order of kSkyViewNames; missing pixels are NaN. Valid during the call only.
  std::array<const float*, kSkyViewGrids> grids{};
  const uint32_t* states = nullptr;  ///< (words_per_pixel, rows, cols), or null
};

/// As compute_sky_view_factors, passing tiles to `sink` as they are finished, one call at a time, in any order.
/// Memory grows with the raster by its inputs only.
void stream_sky_view_factors(Context& context, const CityInput& city, const SkyOptions& options,
                             const TileOptions& tiles, const std::function<void(const SkyTile&)>& sink,
                             TileReport* report = nullptr);

// ---- Whole runs, from files to files: what the command line, Python and other programs call. ----

/// The rasters of a city: GeoTIFF or any format that GDAL reads, or `.npy`. All on one grid.
struct CityFiles {
  std::filesystem::path dsm, dem, cdsm, tdsm;  ///< only the first is needed; the DEM for a DSM above ground
  std::optional<double> pixel_size_m;          ///< for rasters without georeference
  std::optional<int> band;                     ///< of the DSM's file, from 1 on; the first if not given
  DsmHeights dsm_heights = DsmHeights::absolute;
  CanopyHeights canopy_heights = CanopyHeights::above_ground;
  double trunk_ratio = 0.25;
};

enum class GridFormat { tif, npy };

std::span<const Choice<CanopyHeights>> choices(CanopyHeights);
std::span<const Choice<DsmHeights>> choices(DsmHeights);
std::span<const Choice<SkyPatches>> choices(SkyPatches);
std::span<const Choice<ZenithRule>> choices(ZenithRule);
std::span<const Choice<AnnulusEdges>> choices(AnnulusEdges);
std::span<const Choice<WallFilter>> choices(WallFilter);
std::span<const Choice<WallTies>> choices(WallTies);
std::span<const Choice<GridFormat>> choices(GridFormat);

/// The background picture of maps.
struct MapOptions {
  std::filesystem::path
      basemap;  ///< a georeferenced picture: GeoTIFF, or PNG with its world file; empty: none
};

/// The folder of results. It is created if missing, and locked while a run writes to it.
struct OutputOptions {
  std::filesystem::path folder;
  GridFormat format = GridFormat::tif;
  bool pictures = true;  ///< a PNG next to each grid
  MapOptions map;
};

struct WallRunOptions {
  CityFiles city;
  OutputOptions output;
  WallOptions walls;
  TileOptions tiles;
};

struct ShadowRunOptions {
  CityFiles city;
  OutputOptions output;
  std::optional<double> azimuth_deg, altitude_deg;    ///< clockwise from the grid's north; or `time`
  std::string time;                                   ///< as accepted by parse_local_time
  std::optional<double> utc_offset_h;                 ///< of `time`, unless the text has it
  std::optional<double> latitude_deg, longitude_deg;  ///< both or none: the raster's centre
  bool find_walls = false;                            ///< or from files, both or none
  std::filesystem::path wall_height, wall_aspect;
  WallOptions walls;
  RayOptions rays;
  TileOptions tiles;
};

struct SkyRunOptions {
  CityFiles city;
  OutputOptions output;
  SkyOptions sky;
  TileOptions tiles;   ///< its resume_folder is not used
  bool resume = true;  ///< keep finished tiles in the folder of results until the run ends
};

struct SampleRunOptions {
  OutputOptions output;
  int64_t rows = 512, cols = 512;
  double pixel_size_m = 1.0;
  uint64_t seed = 1;
  int epsg = 3006;  ///< of the GeoTIFFs
  std::function<void(int64_t done, int64_t total)> on_progress;
};

/// A grid that a run wrote. Without any value, minimum, maximum and mean are NaN.
struct OutputGrid {
  std::string name;
  std::filesystem::path file, picture;  ///< no picture: empty
  double minimum = 0, maximum = 0, mean = 0;
  int64_t missing = 0;
};

/// Results of all runs.
struct RunResult {
  int64_t rows = 0, cols = 0;
  double pixel_size_m = 0;      ///< as the raster has it
  double projection_scale = 1;  ///< lengths on the map over those on the ground
  double ground_pixel_m() const { return pixel_size_m / projection_scale; }
  std::vector<OutputGrid> outputs;
  std::vector<std::filesystem::path> left_over;  ///< results of an earlier run that this one did not replace
  std::vector<std::string> warnings;             ///< warnings about the inputs, as printed
  std::vector<StageRecord> host_stages;          ///< "read" and "write"; the context has the others
  TileReport tiles;
};

using WallRunResult = RunResult;

/// Position of the sun at a time and location.
struct SunAtTime {
  double latitude_deg = 0, longitude_deg = 0;
  double azimuth_deg = 0;      ///< from true north
  double convergence_deg = 0;  ///< of the grid's north, clockwise from true north
};

struct ShadowRunResult : RunResult {
  Direction sun;                   ///< azimuth from grid north; at or below 0° everything is in shade
  std::optional<SunAtTime> place;  ///< of a run by time
};

struct SkyRunResult : RunResult {
  int patches = 0;
  ZenithRule zenith = ZenithRule::umep;
  std::filesystem::path states;  ///< the packed sky states, if kept
};

struct SampleRunResult : RunResult {
  uint64_t seed = 0;
};

/// Reads the city, computes with stages, fallback, tiles and telemetry, and writes grids and pictures. All functions
/// throw InputError for invalid files and options, and UnsupportedError if a library or memory is missing.
WallRunResult run(Context& context, const WallRunOptions& options);
ShadowRunResult run(Context& context, const ShadowRunOptions& options);
SkyRunResult run(Context& context, const SkyRunOptions& options);
/// Generates the sample city; needs no device.
SampleRunResult run(const SampleRunOptions& options);

// ---- The options of urban by name: see lockstep/schema.hpp. ----

void describe(Schema<CityFiles>& s);
void describe(Schema<MapOptions>& s);
void describe(Schema<OutputOptions>& s);
void describe(Schema<TileOptions>& s);
void describe(Schema<WallOptions>& s);
void describe(Schema<RayOptions>& s);
void describe(Schema<SkyOptions>& s);
void describe(Schema<WallRunOptions>& s);
void describe(Schema<ShadowRunOptions>& s);
void describe(Schema<SkyRunOptions>& s);
void describe(Schema<SampleRunOptions>& s);
/// Of each command.
std::vector<NamedSchema> schemas();

}  // namespace lockstep::urban
