// Shadows, walls and sky view factors of a city given as height grids.
//
// Grids have square pixels; row 0 is north and column 0 is west. Azimuths are clockwise from north, altitudes above the
// horizon, both in degrees. Heights and lengths are in metres. In results, 1 means that a pixel sees the sun (or the
// sky), 0 that it does not. Formulas, conventions and sources: docs/urban.md.
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

/// The reference of canopy and trunk heights: above the ground, or absolute like the DSM. In both, 0 means no plant.
enum class CanopyHeights { above_ground, absolute };

/// The reference of the heights of the DSM: absolute, or above the ground of the DEM.
enum class DsmHeights { absolute, above_ground };

/// The grids of a city. All have the shape of `dsm`; empty ones are absent.
struct CityInput {
  /// Ground and buildings (m), absolute unless `dsm_heights` specifies otherwise. Missing pixels are missing in
  /// results and cast no shadow.
  Raster dsm;
  Raster dem;   ///< ground without buildings, absolute height (m); added to a DSM above ground
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

/// Universal time. Hours, minutes and seconds may be outside their usual ranges, for example after an offset was
/// subtracted from local time.
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

/// Position of the sun by the Solar Position Algorithm (Reda and Andreas, NREL/TP-560-34302, uncertainty ±0.0003°).
/// Throws InputError for a latitude beyond ±90°, a year outside −2000…6000 and a date that does not exist.
SunPosition sun_position(const UtcTime& time, const Observer& observer);

/// Reads "2015-06-21T12:00" or "2015-06-21T12:00:30" as local time that is `utc_offset_h` hours ahead of universal time.
/// The text may end with its offset, "Z" or "+05:45". Throws InputError for other text, if there is no offset, and if the
/// two offsets differ.
UtcTime parse_local_time(std::string_view text, std::optional<double> utc_offset_h = {});

/// The number of patches into which the sky is divided.
enum class SkyPatches { p145, p153, p305, p609 };

/// The state of the zenith patch. `umep`: as in UMEP, where plants on the pixel and on the next pixel to the north hide
/// it. `open`: always sky, as in solweig.
enum class ZenithRule { umep, open };

/// Edges of the annuli of the 609-patch sky. `centred`: midway between the bands, every 6°. The published programs place
/// them half a band too low: UMEP at 4.5°, 9°, 15°, …, solweig at 4°, 9°, 15°, …. The edges of the other skies are the
/// same in all.
enum class AnnulusEdges { umep, solweig, centred };

/// Options of every function that casts rays.
struct RayOptions {
  /// Largest horizontal length of a ray (m). A longer ray sees the sky from there on, with and without tiles.
  double max_reach_m = std::numeric_limits<double>::infinity();
};

/// Shadow grids of one direction. Missing pixels are NaN.
struct Shadows {
  Raster buildings;                    ///< 1 = not shaded by a building or terrain
  Raster vegetation;                   ///< 1 = not shaded by a plant (0 only where `buildings` is 1)
  Raster vegetation_before_buildings;  ///< 0 = a plant is between the pixel and the building that shades it
};

/// Walls, given at the ground pixels next to buildings: height of the wall (m), and the direction that it faces (degrees
/// clockwise from north). 0 where there is no wall.
struct Walls {
  Raster height;
  Raster aspect;
};

/// Sunlit and shaded heights (m) of the wall at each wall pixel.
struct WallShadows {
  Raster sun;
  Raster shadow;
};

/// Length of the lines that determine the direction of a wall: nine metres, as in UMEP, or nine pixels, as in other
/// tools.
enum class WallFilter { metres, pixels };

/// The angle that is chosen if several adjacent angles cover the same number of wall pixels: the middle one, which is
/// unbiased, or the first, as published.
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

/// The result of a ray to a patch of sky: the sky, or the obstacles on the ray.
enum class SkyState : uint8_t { sky = 0, vegetation = 1, building = 2, vegetation_before_building = 3 };

/// The states of all patches: two bits per patch and 16 patches per word. Patch 16·w + k is in bits 2k and 2k+1 of word
/// w; unused bits are 0. `words` has the shape (words_per_pixel, rows, cols). Missing pixels have 0.
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

/// Cosine-weighted sky view factors (Johnson and Watson 1984), 0…1, for buildings, vegetation, and vegetation in front of
/// buildings, each for the whole sky and for four half skies. Missing pixels are NaN.
struct SkyViewFactors {
  std::array<Raster, kSkyViewGrids> grids;
  PackedSky states;  ///< empty unless requested

  /// The grid with a name of kSkyViewNames. Throws InputError for another name.
  const Raster& operator[](std::string_view name) const;
};

/// How a raster that exceeds the memory is split into tiles. Results are bit-identical for all options.
struct TileOptions {
  /// Side of a tile in pixels; 0 = chosen from limits and free memory by the rule of docs/urban.md.
  int64_t side = 0;
  int workers = 0;  ///< tiles in flight; 0 = 2 on a GPU, 1 on the CPU
  /// Limit of the host memory of the process in bytes; 0 = 0.8 of the free memory of the computer or container.
  int64_t memory_bytes = 0;
  /// Finished tiles are stored in this folder and reused by a later call of the same computation with the same inputs and
  /// options; empty = not stored. Only one process at a time may use it.
  std::filesystem::path resume_folder;
  /// Called repeatedly, from any worker, with the number of finished parts of the work and the number of all parts.
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
  double stitch_seconds = 0;  ///< for copying or writing the results of tiles without their margins
  double seconds = 0;         ///< of the whole computation
};

/// Shadows for one direction of the sun. Stage "urban.shadow". `report`, here and below, receives the counts and times of
/// the tiles; a line "<stage>.tiles" of the telemetry contains the same. Throws InputError for invalid grids and for a
/// direction at or below the horizon.
Shadows compute_shadows(Context& context, const CityInput& city, const Direction& sun,
                        const RayOptions& rays = {}, const TileOptions& tiles = {},
                        TileReport* report = nullptr);

/// Heights and directions of walls. Stage "urban.walls". The published programs use different minimum heights: UMEP 3 m,
/// solweig 1 m. Throws InputError for invalid grids and options.
Walls compute_walls(Context& context, const CityInput& city, const WallOptions& options = {},
                    const TileOptions& tiles = {}, TileReport* report = nullptr);

struct ShadowsWithWalls {
  Shadows shadows;
  WallShadows walls;
};

/// Shadows for one direction of the sun on the ground and on `walls`, as returned by compute_walls(). Stage
/// "urban.shadow". Throws as compute_shadows().
ShadowsWithWalls compute_wall_shadows(Context& context, const CityInput& city, const Walls& walls,
                                      const Direction& sun, const RayOptions& rays = {},
                                      const TileOptions& tiles = {}, TileReport* report = nullptr);

/// Sky view factors of the whole city. Stage "urban.svf", one run per tile. Throws InputError for invalid grids and
/// options.
SkyViewFactors compute_sky_view_factors(Context& context, const CityInput& city,
                                        const SkyOptions& options = {}, const TileOptions& tiles = {},
                                        TileReport* report = nullptr);

/// A finished part of the sky view factors, rows × cols from (row, col) on, for writers that do not store the whole.
struct SkyTile {
  int64_t row = 0, col = 0, rows = 0, cols = 0;
  /// Row-major, in the order of kSkyViewNames; missing pixels are NaN. Valid during the call only.
  std::array<const float*, kSkyViewGrids> grids{};
  const uint32_t* states = nullptr;  ///< (words_per_pixel, rows, cols), or null
};

/// As compute_sky_view_factors(), but passes tiles to `sink` as they are finished, in any order and one call at a time.
/// Only the inputs need memory in proportion to the raster.
void stream_sky_view_factors(Context& context, const CityInput& city, const SkyOptions& options,
                             const TileOptions& tiles, const std::function<void(const SkyTile&)>& sink,
                             TileReport* report = nullptr);

// ---- Complete runs that read and write files, for the command line, Python and other programs. ----

/// The rasters of a city: GeoTIFF or any format that GDAL reads, or `.npy`. All have the same grid.
struct CityFiles {
  std::filesystem::path dsm, dem, cdsm, tdsm;  ///< the DSM is required; so is the DEM for a DSM above ground
  std::optional<double> pixel_size_m;          ///< for rasters without georeference
  std::optional<int> band;                     ///< band of the DSM file, from 1; default: the first
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
  std::filesystem::path basemap;  ///< georeferenced picture: GeoTIFF, or PNG with a world file; empty: none
};

/// The folder of results. It is created if it does not exist, and locked while a run writes to it.
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
  std::optional<double> azimuth_deg,
      altitude_deg;                    ///< of the sun; azimuth clockwise from the north of the grid
  std::string time;                    ///< instead of the two: a text for parse_local_time()
  std::optional<double> utc_offset_h;  ///< of `time`, unless the text has it
  std::optional<double> latitude_deg, longitude_deg;  ///< both or none; default: the centre of the raster
  bool find_walls = false;                            ///< compute walls and their shadows
  std::filesystem::path wall_height, wall_aspect;     ///< both or none: walls from files instead
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

/// A grid that a run wrote. If all pixels are missing, minimum, maximum and mean are NaN.
struct OutputGrid {
  std::string name;
  std::filesystem::path file, picture;  ///< no picture: empty
  double minimum = 0, maximum = 0, mean = 0;
  int64_t missing = 0;  ///< number of missing pixels
};

/// Results of all runs.
struct RunResult {
  int64_t rows = 0, cols = 0;
  double pixel_size_m = 0;      ///< of the raster, on the map
  double projection_scale = 1;  ///< length on the map divided by length on the ground
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
  double convergence_deg = 0;  ///< meridian convergence: grid north, clockwise from true north
};

struct ShadowRunResult : RunResult {
  Direction sun;  ///< azimuth from grid north; if the altitude is not above 0°, all is in shade
  std::optional<SunAtTime> place;  ///< for a run with `time`
};

struct SkyRunResult : RunResult {
  int patches = 0;
  ZenithRule zenith = ZenithRule::umep;
  std::filesystem::path states;  ///< the packed sky states, if kept
};

struct SampleRunResult : RunResult {
  uint64_t seed = 0;
};

/// Read the city, compute with stages, fallback, tiles and telemetry, and write grids and pictures. All functions throw
/// InputError for invalid files and options, and UnsupportedError if a library is missing or memory is insufficient.
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
/// The options of all commands.
std::vector<NamedSchema> schemas();

}  // namespace lockstep::urban
