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

/// Grids of each time step: temperatures in °C, fluxes in W/m², `shadow` from 0 (shade) to 1 (sun), `gvf` (ground view
/// factor) from 0 to 1. The last eight are the fluxes on vertical planes that face a direction.
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

/// The variant of the model. umep: UMEP-processing 2025a. solweig: the Rust program solweig 0.1.0b84. corrected: the cited
/// papers, without the errors of both programs.
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

/// The wind of each pixel, as computed by URock and CFD programs. The file has one band, or one step of a NetCDF
/// dimension, per wind direction.
struct WindFieldOptions {
  std::filesystem::path file;  ///< on the grid of the raster; empty: the wind of the weather everywhere
  /// Directions of the bands, from which the wind comes, clockwise from north; empty: those in the file.
  std::vector<double> directions_deg;
  bool speeds = false;  ///< true: values are speeds (m/s) at the reference speed; false: shares of the wind
  std::optional<double> reference_speed_m_s;
  double height_m = 1.5;           ///< height of the values above the ground
  double reference_height_m = 10;  ///< height of the reference wind above the ground
};

/// The air temperature of each pixel: one band for all steps, one band per step of the run, or bands with times.
struct AirFieldOptions {
  std::filesystem::path
      file;               ///< on the grid of the raster; empty: the air temperature of the weather everywhere
  bool absolute = false;  ///< true: °C; false: difference (K) from the air temperature of the weather
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
  CityFiles
      city;  ///< the DSM is sufficient; without a DEM, the lowest pixel is the ground, and a line reports this
  std::filesystem::path land_cover;                ///< classes as in the table of the parameters
  std::filesystem::path wall_height, wall_aspect;  ///< both or none; default: computed
  std::filesystem::path svf_folder;                ///< folder of `urban svf --save-patches`; empty: computed
  std::filesystem::path parameters;  ///< UMEP's parameter file (JSON); empty: the standard values
  std::filesystem::path weather;     ///< EPW, UMEP's 24 columns, CSV, or ERA5's NetCDF
  std::filesystem::path points;      ///< CSV with id,x,y or id,lat,lon, or GeoJSON; empty: none
  /// First and last interval end, local time "2015-06-21T15:00"; empty: the whole file.
  std::string from, to;
  std::optional<double> utc_offset_h;  ///< default: that of the weather; an error without any
  std::optional<double> latitude_deg,
      longitude_deg;                  ///< default: the centre of the raster, or those of the weather
  std::optional<double> elevation_m;  ///< of the ground above sea level
  IntervalLabel interval =
      IntervalLabel::end;               ///< of the times of the weather; results have the ends of intervals
  bool horizontal_direct = false;       ///< direct radiation is that on a horizontal plane (ERA5's fdir)
  std::optional<double> wind_height_m;  ///< of the sensor; default: that of the parameters, or 10
  bool nearest_cell = false;  ///< of gridded weather (ERA5); default: interpolated between the four nearest
  WindFieldOptions wind_field;
  AirFieldOptions air_field;
  /// First and last day of the year with leaves. If the first is later, the period includes the end of the year. Default:
  /// those of the parameters, or by preset and latitude (docs/urban-runs.md).
  std::optional<LeafDays> leaf_days;
  bool evergreen = false;     ///< leaves on all days
  bool trees_follow = false;  ///< plants will be added: warn about leaves even if the city has no plants

  std::vector<SeriesOutput> outputs = {SeriesOutput::tmrt, SeriesOutput::utci, SeriesOutput::shadow};
  std::vector<SeriesFormat> formats = {SeriesFormat::nc};
  std::vector<std::string> thresholds;  ///< "utci>35": the summary also contains the hours beyond them
  std::optional<HourWindow> hours;      ///< hours of the day that the summary covers; default: all
  std::filesystem::path folder;         ///< of results
  bool pictures = true;                 ///< a PNG per step
  bool video = true;                    ///< day.mp4, one frame per step; without FFmpeg: a warning instead
  bool include_roofs = false;   ///< in statistics and pictures; default: only the ground, as in ground.tif
  std::string place, scenario;  ///< names on pictures and in the report
  MapOptions map;
  std::optional<PictureRange>
      picture_range;  ///< of outputs without classes; default: the range of each picture
  std::optional<double> daylight_saving_h;  ///< added to the times in pictures; default: by date and location

  Preset preset = Preset::corrected;
  /// Number of parts of an interval, each with its own position of the sun; results are means over the parts. 0: parts of
  /// about 10 minutes, or one part in the presets umep and solweig.
  int substeps = 0;
  SkyModel sky = SkyModel::anisotropic;
  Body body = Body::cylinder;
  std::optional<Posture> posture;  ///< default: that of the parameters, else standing
  SkyPatches patches = SkyPatches::p153;
  RayOptions rays;
  WallOptions walls;
  TileOptions tiles;  ///< its resume_folder is not used
  /// If NetCDF is the only format: number of rows that are written at a time, a multiple of 256; 0: all rows, or as many
  /// as fit the memory. A run that writes rows in parts has no pictures and no video.
  int64_t rows_at_a_time = 0;
  bool resume = true;  ///< reuse finished tiles of an interrupted run
  Wording words;       ///< spelling of options in warnings and in the rows of check(); default: that of C++
};

/// Times of a run: means and 95th percentiles.
struct SeriesTimes {
  double timestep_wall_time_s = 0;  ///< mean
  double timestep_wall_time_p95_s = 0;
  double tile_turnaround_ms = 0, tile_turnaround_p95_ms = 0;
  /// Times of the stages "shadow", "gvf", "radiation", "sky" and "comfort", summed over all tiles, and the part on a GPU.
  std::map<std::string, double> stage_time_ms, gpu_stage_time_ms;
  double stitch_ms = 0;  ///< assembling tiles
  double copy_ms = 0;    ///< device to host
  double write_ms = 0;   ///< of the thread that writes
  double wait_ms = 0;    ///< that the computation waits for this thread
};

/// The area of ground in a class of thermal stress, for a mean or a maximum over the run.
struct StressArea {
  std::string grid, name;  ///< "utci_mean", "strong heat stress"
  double m2 = 0, percent = 0;
};

struct SeriesResult : RunResult {
  std::vector<std::string> times;  ///< interval ends
  int64_t steps = 0, day_steps = 0;
  int64_t step_min = 60;  ///< minutes of an interval
  int substeps = 1;       ///< parts of an interval
  double latitude_deg = 0, longitude_deg = 0, utc_offset_h = 0;
  std::filesystem::path netcdf, points_file, report, video;
  std::vector<SeriesPoint> points;
  std::vector<StressArea> stress;  ///< classes that occur, hottest first; empty if rows are written in parts
  /// By column of poi.csv: a value per point and step, point by point.
  std::map<std::string, std::vector<double>> point_values;
  SeriesTimes metrics;
};

/// Reads the inputs, computes with stages ("urban.walls", "urban.svf", "urban.step"), fallback, tiles and telemetry, and
/// writes the results. Throws InputError for invalid files and options, naming file, line or pixel, and UnsupportedError if
/// a library is missing or memory is insufficient.
SeriesResult run(Context& context, const SeriesOptions& options);
/// The same over ranks. Every rank calls it with its own context and the same options; all ranks use the same input files
/// and the same folder. Tiles are distributed over the ranks, and rank 0 writes the results, which are bit-identical to
/// those of one rank. The results of the other ranks are empty.
SeriesResult run(Context& context, const SeriesOptions& options, const parallel::Group& group);

enum class Verdict { ok, warning, error };

/// A finding about an input. A run prints its warnings and fails with the first error; check() lists all findings.
struct InputCheck {
  std::string check;  ///< "calm hours"
  std::optional<double> value;
  std::string unit;
  Verdict verdict = Verdict::ok;
  std::string text;
};

/// The options of `run`; the folder of results is not required.
struct CheckOptions : SeriesOptions {};

/// Reads and checks the inputs of `run` without computing or writing. Errors of inputs are rows of the result.
std::vector<InputCheck> check(Context& context, const SeriesOptions& options);

struct ValidationOptions {
  SeriesOptions series;  ///< with one point
  /// CSV with `time` (or `hour`, of the series' day) and columns Tmrt, Kdown, Kup, Kside (or Kn Ke Ks Kw),
  /// Ldown, Lup, Lside (or Ln Le Ls Lw).
  std::filesystem::path measured;
  std::optional<double> measured_utc_offset_h;  ///< of its times; default: that of the weather
};

/// Agreement of computed with measured values.
struct Agreement {
  int64_t n = 0;    ///< number of pairs
  double rmse = 0;  ///< root mean square error
  double mbe = 0;   ///< mean bias error: mean of computed minus measured
  double r2 = 0;    ///< square of the correlation
  double d = 0;     ///< index of agreement (Willmott 1981), 0 … 1
};
Agreement agreement_of(const std::vector<double>& computed, const std::vector<double>& measured);

struct ValidationResult {
  SeriesResult series;
  std::vector<std::pair<std::string, Agreement>> variables;
  std::filesystem::path plot;
};
/// Runs the series and compares the values at its point with measurements. Throws as run(), and InputError for an invalid
/// file of measurements.
ValidationResult validate(Context& context, const ValidationOptions& options);

/// Differences between two runs of the same series over all outputs, steps and pixels.
struct GridDifference {
  double mean_abs_diff = 0,
         max_abs_diff = 0;            ///< over values that are finite in both, in the units of the outputs
  double finite_equal_percent = 100;  ///< percentage of values that are finite in both or in neither
};

struct Gate {
  std::string gate;
  double value = 0, limit = 0;
  bool pass = false;
  std::string unit, note;
  std::optional<GridDifference> difference;  ///< if the gate compares values
};
/// The options of `run`. No input and no folder is required: the default city is the sample.
struct GateOptions : SeriesOptions {};

/// The acceptance tests on the user's own city, or on the sample if `options.city.dsm` is empty: agreement with the CPU,
/// agreement with and without tiles, a domain of more groups than one dispatch can launch, tiles in flight, scaling with
/// workers.
std::vector<Gate> run_gates(Context& context, const SeriesOptions& options);

/// Effect of a difference between the presets on the mean radiant temperature (K), over all pixels and steps.
struct QuirkEffect {
  std::string quirk, value;  ///< the setting of `corrected` that is changed, and its changed value
  double mean_day_k = 0, mean_night_k = 0;  ///< mean change by day and at night
  double mean_abs_k = 0, max_abs_k = 0;
};
/// Effects of all settings, each changed separately, and of the presets umep and solweig as a whole, on the user's own
/// city and weather, or on the sample and a clear day if `options.city.dsm` is empty. The preset and the outputs of the
/// options are not used.
std::vector<QuirkEffect> quirk_effects(Context& context, const SeriesOptions& options);

void describe(Schema<WindFieldOptions>& s);
void describe(Schema<AirFieldOptions>& s);
void describe(Schema<SeriesOptions>& s);
void describe(Schema<CheckOptions>& s);
void describe(Schema<ValidationOptions>& s);
void describe(Schema<GateOptions>& s);

}  // namespace lockstep::urban
