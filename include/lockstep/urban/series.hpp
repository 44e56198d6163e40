// Radiation and thermal comfort of a city hour by hour: from rasters and weather to grids over time.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/urban.hpp"
#include "lockstep/urban/thresholds.hpp"

namespace lockstep::parallel {
class Group;
}

namespace lockstep::urban {

/// A grid a time step. Temperatures in °C, fluxes in W/m², `shadow` 0 … 1 (1 = sun), `gvf` a share of 0 … 1. The last
/// eight are what vertical planes that face a side receive.
enum class SeriesOutput {
  tmrt,
  utci,
  pet,
  shadow,
  kdown,
  kup,
  kside,
  ldown,
  lup,
  lside,
  gvf,
  kside_east,
  kside_south,
  kside_west,
  kside_north,
  lside_east,
  lside_south,
  lside_west,
  lside_north
};
inline constexpr int kSeriesOutputs = 19;
inline constexpr int kMostSubsteps = 60;
std::span<const Choice<SeriesOutput>> choices(SeriesOutput);
inline std::string_view name(SeriesOutput output) { return name_among(choices(output), output); }

enum class SeriesFormat { nc, tif, npy };
std::span<const Choice<SeriesFormat>> choices(SeriesFormat);

/// umep: UMEP-processing 2025a. solweig: the Rust solweig 0.1.0b84. corrected: what the cited papers say.
enum class Preset { umep, solweig, corrected };
std::span<const Choice<Preset>> choices(Preset);
inline std::string_view name(Preset preset) { return name_among(choices(preset), preset); }

enum class SkyModel { isotropic, anisotropic };
enum class Body { cylinder, box };
enum class Posture { standing, sitting };
std::span<const Choice<SkyModel>> choices(SkyModel);
std::span<const Choice<Body>> choices(Body);
std::span<const Choice<Posture>> choices(Posture);

/// A place whose values are written as a row a step.
struct SeriesPoint {
  std::string id;
  double x = 0, y = 0;       ///< in the raster's coordinates
  int64_t row = 0, col = 0;  ///< the pixel
};

/// The moment that a time of the weather names: the start, the middle or the end of its interval.
enum class IntervalLabel { start, middle, end };
std::span<const Choice<IntervalLabel>> choices(IntervalLabel);

/// The wind of each pixel, as URock and CFD programs give it: a band, or a step of a NetCDF dimension, a direction of the wind.
struct WindFieldOptions {
  std::filesystem::path file;  ///< of the raster's grid; empty: the weather's wind everywhere
  std::vector<double>
      directions_deg;  ///< of its bands, clockwise from north, where the wind comes from; else the file's
  bool speeds =
      false;  ///< values are speeds (m/s) in a wind of `reference_speed_m_s`, else shares of the wind
  std::optional<double> reference_speed_m_s;
  double height_m = 1.5;           ///< of its values above the ground
  double reference_height_m = 10;  ///< of the wind that its values are shares of
};

/// The air temperature of each pixel: one band for all steps, a band a step of the run, or bands of named times.
struct AirFieldOptions {
  std::filesystem::path file;  ///< of the raster's grid; empty: the weather's air everywhere
  bool absolute = false;       ///< °C, else K above the weather's air
};

/// Days of the year, 1 … 366, both included.
struct LeafDays {
  int first = 1, last = 366;
};

/// Ends of the colours of a picture.
struct PictureRange {
  double low = 0, high = 1;
};

struct SeriesOptions {
  CityFiles city;  ///< the DSM alone is enough: its lowest pixel is then the ground, and a line says so
  std::filesystem::path land_cover;                ///< classes of the parameters' table
  std::filesystem::path wall_height, wall_aspect;  ///< both or none: found
  std::filesystem::path svf_folder;                ///< what `urban svf --save-patches` left; empty: computed
  std::filesystem::path parameters;  ///< UMEP's parameter file (JSON); empty: the standard values
  std::filesystem::path weather;     ///< EPW, UMEP's 24 columns, CSV, or ERA5's NetCDF
  std::filesystem::path points;      ///< CSV with id,x,y or id,lat,lon, or GeoJSON; empty: none
  /// First and last interval end, local time "2015-06-21T15:00"; empty: the whole file.
  std::string from, to;
  std::optional<double> utc_offset_h;                 ///< else the weather's, else an error
  std::optional<double> latitude_deg, longitude_deg;  ///< else the raster's centre, else the weather's
  std::optional<double> elevation_m;
  IntervalLabel interval = IntervalLabel::end;  ///< of the weather's times; results name the interval's end
  bool horizontal_direct = false;               ///< Kdirect is the beam on the horizontal (ERA5's fdir)
  std::optional<double> wind_height_m;          ///< of the sensor; else the parameters', else 10
  bool nearest_cell = false;  ///< of gridded weather (ERA5); else between the four around the place
  WindFieldOptions wind_field;
  AirFieldOptions air_field;
  /// First and last day of the year with leaves, over the turn of the year where the first is the later; else the
  /// parameters', else by preset and latitude (docs/urban.md).
  std::optional<LeafDays> leaf_days;
  bool evergreen = false;     ///< leaves on all days
  bool trees_follow = false;  ///< leaves matter although the city has no plants yet

  std::vector<SeriesOutput> outputs = {SeriesOutput::tmrt, SeriesOutput::utci, SeriesOutput::shadow};
  std::vector<SeriesFormat> formats = {SeriesFormat::nc};
  std::vector<std::string> thresholds;  ///< bounds of outputs whose hours the summary has besides: "utci>35"
  std::optional<HourWindow> hours;      ///< of the day that the summary counts; none: all
  std::filesystem::path folder;         ///< of results
  bool pictures = true;                 ///< a PNG a step
  bool video = true;                    ///< day.mp4, a frame a step; where FFmpeg is absent a warning
  bool include_roofs = false;   ///< in statistics and pictures; else the ground alone, as ground.tif has it
  std::string place, scenario;  ///< names on pictures and in the report
  MapOptions map;
  std::optional<PictureRange>
      picture_range;  ///< of outputs that have no classes; else that of each picture's values
  std::optional<double>
      daylight_saving_h;  ///< that pictures add to the weather's clock; else by date and place

  Preset preset = Preset::corrected;
  /// Parts of an interval, each with its own position of the sun; results are means over them. 0: as many as give parts of
  /// about 10 minutes, and one in the presets umep and solweig.
  int substeps = 0;
  SkyModel sky = SkyModel::anisotropic;
  Body body = Body::cylinder;
  std::optional<Posture> posture;  ///< else as the parameters specify, else standing
  SkyPatches patches = SkyPatches::p153;
  RayOptions rays;
  WallOptions walls;
  TileOptions tiles;  ///< its resume_folder is not used
  /// Rows that are put together at a time where NetCDF is the only format, a multiple of 256; 0: all, or as many as
  /// memory holds. Parts of the rows get no pictures and no film.
  int64_t rows_at_a_time = 0;
  bool resume = true;  ///< take over finished tiles of a killed run
  Wording words;       ///< how warnings and the rows of check() name options; without functions: as C++ does
};

/// Mean and upper tail of what was timed.
struct SeriesTimes {
  double timestep_wall_time_s = 0;  ///< mean
  double timestep_wall_time_p95_s = 0;
  double tile_turnaround_ms = 0, tile_turnaround_p95_ms = 0;
  /// Time of the stages, over all tiles: "shadow", "gvf", "radiation", "sky", "comfort"; and of that on a GPU.
  std::map<std::string, double> stage_time_ms, gpu_stage_time_ms;
  double stitch_ms = 0;  ///< putting tiles together
  double copy_ms = 0;    ///< device to host
  double write_ms = 0;   ///< of the writing thread
  double wait_ms = 0;    ///< computation that waited for the writer
};

/// Ground in a class of thermal stress, of a mean or a maximum over the run.
struct StressArea {
  std::string grid, name;  ///< "utci_mean", "strong heat stress"
  double m2 = 0, percent = 0;
};

struct SeriesResult : RunResult {
  std::vector<std::string> times;  ///< interval ends
  int64_t steps = 0, day_steps = 0;
  int64_t step_min = 60;  ///< of an interval
  int substeps = 1;       ///< its parts
  double latitude_deg = 0, longitude_deg = 0, utc_offset_h = 0;
  std::filesystem::path netcdf, points_file, report, video;
  std::vector<SeriesPoint> points;
  std::vector<StressArea> stress;  ///< classes that occur, the hottest first; none of grids written by bands
  /// By the columns of poi.csv: a value a point and step (point by point).
  std::map<std::string, std::vector<double>> point_values;
  SeriesTimes metrics;
};

/// Reads, computes with stages ("urban.walls", "urban.svf", "urban.step"), fallback, tiles and telemetry
/// inside, and writes. Throws InputError for bad files and options, naming file, line or pixel, and
/// UnsupportedError where a module or memory is wanting.
SeriesResult run(Context& context, const SeriesOptions& options);
/// Each rank of the group calls it with its own context and the same options; the folder and the inputs are the same files for
/// all. Tiles are handed out to the ranks, and rank 0 writes the results, whose bits are those of one rank. The results of
/// the other ranks are empty.
SeriesResult run(Context& context, const SeriesOptions& options, const parallel::Group& group);

enum class Verdict { ok, warning, error };

/// A finding about an input. A run says its warnings and refuses the first error; `check` lists all.
struct InputCheck {
  std::string check;  ///< "calm hours"
  std::optional<double> value;
  std::string unit;
  Verdict verdict = Verdict::ok;
  std::string text;
};

/// As `run`, but that no folder for results is needed.
struct CheckOptions : SeriesOptions {};

/// Reads and doubts the inputs of `run` without computing or writing anything. Errors of inputs are rows of the result.
std::vector<InputCheck> check(Context& context, const SeriesOptions& options);

struct ValidationOptions {
  SeriesOptions series;  ///< with one point
  /// CSV with `time` (or `hour`, of the series' day) and columns Tmrt, Kdown, Kup, Kside (or Kn Ke Ks Kw),
  /// Ldown, Lup, Lside (or Ln Le Ls Lw).
  std::filesystem::path measured;
  std::optional<double> measured_utc_offset_h;  ///< of its clock; else the weather's
};

/// Agreement of computed with measured values.
struct Agreement {
  int64_t n = 0;
  double rmse = 0, mbe = 0;  ///< computed minus measured
  double r2 = 0;             ///< square of the correlation
  double d = 0;              ///< C. Willmott's (1981) index of agreement, 0 … 1
};
Agreement agreement_of(const std::vector<double>& computed, const std::vector<double>& measured);

struct ValidationResult {
  SeriesResult series;
  std::vector<std::pair<std::string, Agreement>> variables;
  std::filesystem::path plot;
};
ValidationResult validate(Context& context, const ValidationOptions& options);

/// Two runs of the same series, value by value over all outputs and steps.
struct GridDifference {
  double mean_abs_diff = 0, max_abs_diff = 0;  ///< of the values that both have; in the outputs' units
  double finite_equal_percent = 100;           ///< values that are finite in both or in neither
};

struct Gate {
  std::string gate;
  double value = 0, limit = 0;
  bool pass = false;
  std::string unit, note;
  std::optional<GridDifference> difference;  ///< where the gate compares values
};
/// As `run`, but that nothing is kept, and nothing is needed: without a city it is the sample.
struct GateOptions : SeriesOptions {};

/// The acceptance gates on the user's own city, or on the sample where `options.city.dsm` is empty: parity with
/// the CPU, tiled = untiled, a domain of more groups than one dispatch holds, tiles in flight, worker scaling.
std::vector<Gate> run_gates(Context& context, const SeriesOptions& options);

/// Effect of a point where the presets differ on the mean radiant temperature (K), all pixels and steps.
struct QuirkEffect {
  std::string quirk, value;                 ///< what was set in `corrected`, alone
  double mean_day_k = 0, mean_night_k = 0;  ///< mean change, sun up and down
  double mean_abs_k = 0, max_abs_k = 0;
};
/// Each of them toggled alone, last whole presets, on the user's own city and weather, or where `options.city.dsm`
/// is empty on the sample and a clear day. The preset and outputs of the options are not used.
std::vector<QuirkEffect> quirk_effects(Context& context, const SeriesOptions& options);

void describe(Schema<WindFieldOptions>& s);
void describe(Schema<AirFieldOptions>& s);
void describe(Schema<SeriesOptions>& s);
void describe(Schema<CheckOptions>& s);
void describe(Schema<ValidationOptions>& s);
void describe(Schema<GateOptions>& s);

}  // namespace lockstep::urban
