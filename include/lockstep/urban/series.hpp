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

/// Grids of each time step. Temperatures in °C, fluxes in W/m², `shadow` 0 … 1 (1 = sun), `gvf` a share of 0 … 1. The
/// last eight are the fluxes on vertical planes that face a direction.
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

/// umep: UMEP-processing 2025a. solweig: the Rust solweig 0.1.0b84. corrected: the cited papers.
enum class Preset { umep, solweig, corrected };
std::span<const Choice<Preset>> choices(Preset);
inline std::string_view name(Preset preset) { return name_among(choices(preset), preset); }

enum class SkyModel { isotropic, anisotropic };
enum class Body { cylinder, box };
enum class Posture { standing, sitting };
std::span<const Choice<SkyModel>> choices(SkyModel);
std::span<const Choice<Body>> choices(Body);
std::span<const Choice<Posture>> choices(Posture);

/// A point whose values are written as one row per step.
struct SeriesPoint {
  std::string id;
  double x = 0, y = 0;       ///< in the raster's coordinates
  int64_t row = 0, col = 0;  ///< the pixel
};

/// The part of the interval that a time of the weather denotes: its start, middle or end.
enum class IntervalLabel { start, middle, end };
std::span<const Choice<IntervalLabel>> choices(IntervalLabel);

/// The wind of each pixel, as computed by URock and CFD programs: one band, or step of a NetCDF dimension, per wind
/// direction.
struct WindFieldOptions {
  std::filesystem::path file;  ///< of the raster's grid; empty: the weather's wind everywhere
  std::vector<double>
      directions_deg;  ///< of its bands, clockwise from north, where the wind comes from; else the file's
  bool speeds =
      false;  ///< values are speeds (m/s) for a wind of `reference_speed_m_s`, else shares of the wind
  std::optional<double> reference_speed_m_s;
  double height_m = 1.5;           ///< of its values above the ground
  double reference_height_m = 10;  ///< of the reference wind of its values
};

/// The air temperature of each pixel: one band for all steps, one band per step of the run, or bands with times.
struct AirFieldOptions {
  std::filesystem::path file;  ///< of the raster's grid; empty: the weather's air everywhere
  bool absolute = false;       ///< °C, else K above the weather's air
};

/// Days of the year, 1 … 366, both included.
struct LeafDays {
  int first = 1, last = 366;
};

/// Range of the colours of a picture.
struct PictureRange {
  double low = 0, high = 1;
};

struct SeriesOptions {
  CityFiles city;  ///< the DSM is sufficient: its lowest pixel is then the ground, and a line reports this
  std::filesystem::path land_cover;                ///< classes of the parameters' table
  std::filesystem::path wall_height, wall_aspect;  ///< both or none: computed
  std::filesystem::path svf_folder;                ///< folder of `urban svf --save-patches`; empty: computed
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
  bool nearest_cell = false;  ///< of gridded weather (ERA5); else interpolated between the four nearest
  WindFieldOptions wind_field;
  AirFieldOptions air_field;
  /// First and last day of the year with leaves, across the end of the year if the first is later; default: those of
  /// the parameters, else by preset and latitude (docs/urban-runs.md).
  std::optional<LeafDays> leaf_days;
  bool evergreen = false;     ///< leaves on all days
  bool trees_follow = false;  ///< warn about leaves although the city has no plants yet

  std::vector<SeriesOutput> outputs = {SeriesOutput::tmrt, SeriesOutput::utci, SeriesOutput::shadow};
  std::vector<SeriesFormat> formats = {SeriesFormat::nc};
  std::vector<std::string> thresholds;  ///< of outputs, whose hours the summary has in addition: "utci>35"
  std::optional<HourWindow> hours;      ///< hours of the day that the summary covers; default: all
  std::filesystem::path folder;         ///< of results
  bool pictures = true;                 ///< a PNG a step
  bool video = true;                    ///< day.mp4, one frame per step; a warning without FFmpeg
  bool include_roofs = false;   ///< in statistics and pictures; default: only the ground, as in ground.tif
  std::string place, scenario;  ///< names on pictures and in the report
  MapOptions map;
  std::optional<PictureRange>
      picture_range;  ///< of outputs without classes; default: the range of each picture
  std::optional<double>
      daylight_saving_h;  ///< added to the weather's clock in pictures; default: by date and place

  Preset preset = Preset::corrected;
  /// Parts of an interval, each with its own position of the sun; results are means over them. 0: parts of about 10
  /// minutes; one in the presets umep and solweig.
  int substeps = 0;
  SkyModel sky = SkyModel::anisotropic;
  Body body = Body::cylinder;
  std::optional<Posture> posture;  ///< else as the parameters specify, else standing
  SkyPatches patches = SkyPatches::p153;
  RayOptions rays;
  WallOptions walls;
  TileOptions tiles;  ///< its resume_folder is not used
  /// Number of rows assembled together if NetCDF is the only format, a multiple of 256; 0: all, or as many as fit the
  /// memory. Parts of the rows have no pictures and no film.
  int64_t rows_at_a_time = 0;
  bool resume = true;  ///< reuse finished tiles of a killed run
  Wording words;       ///< spelling of options in warnings and rows of check(); default: as in C++
};

/// Mean and upper tail of times.
struct SeriesTimes {
  double timestep_wall_time_s = 0;  ///< mean
  double timestep_wall_time_p95_s = 0;
  double tile_turnaround_ms = 0, tile_turnaround_p95_ms = 0;
  /// Time of the stages, over all tiles: "shadow", "gvf", "radiation", "sky", "comfort"; and of that on a GPU.
  std::map<std::string, double> stage_time_ms, gpu_stage_time_ms;
  double stitch_ms = 0;  ///< assembling tiles
  double copy_ms = 0;    ///< device to host
  double write_ms = 0;   ///< of the writing thread
  double wait_ms = 0;    ///< waiting of the computation for the writer
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
  std::vector<StressArea> stress;  ///< classes that occur, the hottest first; none for grids written in bands
  /// By the columns of poi.csv: a value per point and step (point by point).
  std::map<std::string, std::vector<double>> point_values;
  SeriesTimes metrics;
};

/// Reads, computes with stages ("urban.walls", "urban.svf", "urban.step"), fallback, tiles and telemetry, and writes.
/// Throws InputError for invalid files and options, naming file, line or pixel, and UnsupportedError if a library or
/// memory is missing.
SeriesResult run(Context& context, const SeriesOptions& options);
/// Every rank of the group calls it with its own context and the same options; the folder and the inputs are the same
/// files for all. Tiles are distributed over the ranks, and rank 0 writes the results, which are bit-identical to
/// those of one rank. The results of the other ranks are empty.
SeriesResult run(Context& context, const SeriesOptions& options, const parallel::Group& group);

enum class Verdict { ok, warning, error };

/// A finding about an input. A run prints its warnings and fails with the first error; `check` lists all.
struct InputCheck {
  std::string check;  ///< "calm hours"
  std::optional<double> value;
  std::string unit;
  Verdict verdict = Verdict::ok;
  std::string text;
};

/// As `run`, without a folder for results.
struct CheckOptions : SeriesOptions {};

/// Reads and checks the inputs of `run` without computing or writing. Errors of inputs are rows of the result.
std::vector<InputCheck> check(Context& context, const SeriesOptions& options);

struct ValidationOptions {
  SeriesOptions series;  ///< with one point
  /// CSV with `time` (or `hour`, of the series' day) and columns Tmrt, Kdown, Kup, Kside (or Kn Ke Ks Kw),
  /// Ldown, Lup, Lside (or Ln Le Ls Lw).
  std::filesystem::path measured;
  std::optional<double> measured_utc_offset_h;  ///< of its clock; default: the weather's
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
  double mean_abs_diff = 0, max_abs_diff = 0;  ///< of common values, in the units of the outputs
  double finite_equal_percent = 100;           ///< values that are finite in both or in neither
};

struct Gate {
  std::string gate;
  double value = 0, limit = 0;
  bool pass = false;
  std::string unit, note;
  std::optional<GridDifference> difference;  ///< if the gate compares values
};
/// As `run`, without results and required inputs: the default city is the sample.
struct GateOptions : SeriesOptions {};

/// The acceptance gates on the user's own city, or on the sample where `options.city.dsm` is empty: parity with
/// the CPU, tiled = untiled, a domain of more groups than one dispatch holds, tiles in flight, worker scaling.
std::vector<Gate> run_gates(Context& context, const SeriesOptions& options);

/// Effect of a difference between the presets on the mean radiant temperature (K), all pixels and steps.
struct QuirkEffect {
  std::string quirk, value;                 ///< the setting that was changed in `corrected`
  double mean_day_k = 0, mean_night_k = 0;  ///< mean change by day and at night
  double mean_abs_k = 0, max_abs_k = 0;
};
/// Effects of all settings, each changed alone, and of the whole presets, on the user's own city and weather, or, if
/// `options.city.dsm` is empty, on the sample and a clear day. The preset and outputs of the options are not used.
std::vector<QuirkEffect> quirk_effects(Context& context, const SeriesOptions& options);

void describe(Schema<WindFieldOptions>& s);
void describe(Schema<AirFieldOptions>& s);
void describe(Schema<SeriesOptions>& s);
void describe(Schema<CheckOptions>& s);
void describe(Schema<ValidationOptions>& s);
void describe(Schema<GateOptions>& s);

}  // namespace lockstep::urban
