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
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/context.hpp"

namespace lockstep::urban {

/// A grid of `rows` × `cols` values, row by row from the north-west corner.
/// `nodata`: the value that marks a missing pixel; NaN and infinities are always missing.
struct Raster {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<float> values;
  std::optional<float> nodata;

  Raster() = default;
  Raster(int64_t r, int64_t c, float value = 0.0f)
      : rows(r), cols(c), values(static_cast<size_t>(r) * static_cast<size_t>(c), value) {}
  bool empty() const { return values.empty(); }
  float& at(int64_t row, int64_t col) { return values[static_cast<size_t>(row * cols + col)]; }
  float at(int64_t row, int64_t col) const { return values[static_cast<size_t>(row * cols + col)]; }
};

/// How canopy and trunk heights are given: above the ground (0 = no plant), or as absolute heights like the
/// DSM (0 = no plant).
enum class CanopyHeights { above_ground, absolute };

/// What a city is made of. All grids have the shape of `dsm`; empty ones are absent.
struct CityInput {
  Raster dsm;  ///< ground and buildings, absolute height (m). Missing pixels give missing results and cast no
               ///< shadow.
  Raster dem;  ///< ground alone, absolute height (m)
  Raster cdsm;  ///< top of the canopy (m); missing pixels mean no plant
  Raster tdsm;  ///< height up to which a plant is trunk only (m); absent: trunk_ratio · canopy height
  double pixel_size_m = 1.0;
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
/// time. Throws InputError on other text.
UtcTime parse_local_time(std::string_view text, double utc_offset_h);

enum class SkyPatches { p145, p153, p305, p609 };

/// The zenith patch. `umep`: as UMEP evaluates it (the plant on the pixel and the one a pixel north count);
/// `open`: always sky, as solweig does.
enum class ZenithRule { umep, open };

/// Edges of the annuli of the 609-patch sky: UMEP has 4.5° after the first band, solweig 4°. The other sets
/// agree.
enum class AnnulusEdges { umep, solweig };

/// Options of every function that casts rays.
struct RayOptions {
  /// Longest horizontal reach of a ray (m). A ray that is cut sees the sky from there on; with and without
  /// tiles alike.
  double max_reach_m = std::numeric_limits<double>::infinity();
};

/// Shadow grids of one direction. Missing pixels are NaN.
struct Shadows {
  Raster buildings;   ///< 1 = no building or terrain in the way
  Raster vegetation;  ///< 1 = no plant in the way (0 only where buildings is 1)
  Raster
      vegetation_before_buildings;  ///< 0 = a plant stands between the pixel and the building that shades it
};

/// Ground pixels just outside a building: height of the wall (m) beside them, and the way that wall faces
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

struct WallOptions {
  double minimum_height_m = 3.0;  ///< lower steps are no walls
};

struct SkyOptions {
  SkyPatches patches = SkyPatches::p153;
  ZenithRule zenith = ZenithRule::umep;
  AnnulusEdges edges = AnnulusEdges::umep;
  RayOptions rays;
  bool keep_states = false;  ///< return the packed sky states too
};

/// What a ray to a patch of sky meets.
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
  PackedSky states;  ///< empty unless asked for

  const Raster& operator[](std::string_view name) const;  ///< by name of kSkyViewNames; throws InputError
};

/// How a raster that does not fit the device at once is cut into tiles. Results do not depend on it, to the
/// bit.
struct TileOptions {
  int64_t side =
      0;            ///< pixels of a tile's side; 0 = by the rule of docs/urban.md from limits and free memory
  int workers = 0;  ///< tiles in flight; 0 = 2 on a GPU, 1 on the CPU
  /// Finished tiles are kept here and taken over by a later call with the same inputs; empty = nothing is
  /// kept.
  std::filesystem::path resume_folder;
  /// Called now and then, from any worker, with finished and all parts of the work.
  std::function<void(int64_t done, int64_t total)> on_progress;
};

/// What the tiles of one computation did.
struct TileReport {
  int64_t side = 0;                  ///< pixels
  int64_t tiles = 0;                 ///< of the raster
  int64_t resumed = 0;               ///< taken over from the resume folder
  int workers = 0;                   ///< the limit of tiles in flight
  int queue_depth_peak = 0;          ///< tiles that were in flight at a time
  int64_t predicted_bytes = 0;       ///< device memory, as the rule foresaw: all tiles in flight
  std::vector<double> tile_seconds;  ///< from the start of each computed tile to its result on the host
  double stitch_seconds = 0;         ///< copying cores into the whole grids
  double seconds = 0;
};

/// Shadows of one direction. Stage "urban.shadow".
/// Throws InputError for bad grids or a direction at or below the horizon.
Shadows compute_shadows(Context& context, const CityInput& city, const Direction& sun,
                        const RayOptions& rays = {}, const TileOptions& tiles = {});

/// Heights and directions of walls. Stage "urban.walls". The limit counts as published: 3 m in UMEP, 1 m in
/// solweig.
Walls compute_walls(Context& context, const CityInput& city, const WallOptions& options = {},
                    const TileOptions& tiles = {});

struct ShadowsWithWalls {
  Shadows shadows;
  WallShadows walls;
};

/// Shadows of one direction on the ground and on walls (as compute_walls gives them). Stage "urban.shadow".
ShadowsWithWalls compute_wall_shadows(Context& context, const CityInput& city, const Walls& walls,
                                      const Direction& sun, const RayOptions& rays = {},
                                      const TileOptions& tiles = {});

/// Sky view factors of the whole city. Stage "urban.svf", one run a tile. `report` receives what the tiles
/// did; a line "urban.svf.tiles" of telemetry holds the same.
SkyViewFactors compute_sky_view_factors(Context& context, const CityInput& city,
                                        const SkyOptions& options = {}, const TileOptions& tiles = {},
                                        TileReport* report = nullptr);

/// A finished part of the sky view factors, for writers that never hold the whole: rows × cols from (row,
/// col) on.
struct SkyTile {
  int64_t row = 0, col = 0, rows = 0, cols = 0;
  /// In the order of kSkyViewNames; missing pixels are NaN. Valid during the call only.
  std::array<const float*, kSkyViewGrids> grids{};
  const uint32_t* states = nullptr;  ///< (words_per_pixel, rows, cols), or null
};

/// As compute_sky_view_factors, handing tiles to `sink` as they are finished, one call at a time, in any
/// order. Memory does not grow with the raster beyond its inputs.
void stream_sky_view_factors(Context& context, const CityInput& city, const SkyOptions& options,
                             const TileOptions& tiles, const std::function<void(const SkyTile&)>& sink,
                             TileReport* report = nullptr);

}  // namespace lockstep::urban
