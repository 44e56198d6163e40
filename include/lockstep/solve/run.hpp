// The commands `lockstep solve` as functions: they read a file, minimise and write files, with stages, CPU fallback and
// telemetry. to_json() returns the JSON of the program, to_text() its text.
//
//   Context context;
//   solve::PoseGraphRun run;
//   run.file = "sphere2500.g2o", run.out = "solved.g2o";
//   const solve::PoseGraphResult result = solve::run(context, run);
//
// All functions throw InputError for invalid files and options before anything is written.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// Options of all runs. Folders of output files must exist.
struct RunOptions {
  Options options;
  RobustLoss loss;   // of every residual; not used for NIST datasets and sketches
  std::string plot;  // file for a picture of cost and gradient over the iterations; empty: none
};
void describe(Schema<RunOptions>& schema);

/// Results of all runs.
struct RunResult {
  Summary summary;
  std::vector<StageRecord> host_stages;  // reading, building, writing
  std::vector<std::pair<std::string, std::string>>
      files;  // written files by kind: "out", "picture", "plot", "ply"
};
/// Members of every result: costs, counts, termination, linear solver given and used, batches, trace.
std::string to_json(const Summary& summary);
/// As report(summary), which shows up to ten iterations, with at most `rows`: the first and the last ones.
std::string report(const Summary& summary, int rows);

// ── reference datasets of NIST ──

struct NistRun : RunOptions {
  NistRun();  // tolerances at rounding level, dense QR
  std::string file;
  int start = 1;  // starting values 1 or 2 of the file
};
void describe(Schema<NistRun>& schema);
struct NistRunResult : RunResult {
  std::string name;
  int start = 1;
  std::vector<std::string> names;  // of the parameters
  std::vector<double> parameters, certified;
  double lre = 0;  // log relative error: number of correct digits, smallest over the parameters
  double residual_sum_of_squares = 0, certified_residual_sum_of_squares = 0;
};
NistRunResult run(Context& context, const NistRun& options);
std::string to_json(const NistRunResult& result);
std::string to_text(const NistRunResult& result);

// ── curves ──

/// Columns of numbers with their names, of equal length.
struct FitTable {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;
};
/// A model and the data to which it is fitted.
struct FitModel {
  std::string file;                 // CSV with a header
  std::vector<std::string> others;  // files of further data sets
  std::vector<FitTable> given;      // all data sets, instead of files
  std::string model;                // an expression of columns and parameters
  std::string y, sigma;        // columns of the measured values and, if any, of their standard deviations
  std::vector<std::string> x;  // columns that the model uses; empty: all that it contains
  std::map<std::string, double> initial;
  std::map<std::string, std::pair<double, double>> bounds;
  std::map<std::string, std::string> constraints;  // parameters as formulas of others
  std::vector<std::string> shared;                 // parameters that all data sets have in common
};
struct FitRun : RunOptions, FitModel {
  bool absolute_sigma = false;  // sigma is absolute: standard errors are not scaled by the residuals
  bool correlations = false, profile = false, bands = false;
  std::string at;  // CSV file with the columns of x: points at which curve and bands are evaluated
  std::optional<FitTable> at_given;  // these points, instead of a file
  std::string curve;                 // CSV file for these points with the curve and its bands
  std::string out;                   // CSV file for the table with fitted values and residuals
  std::string picture;               // file for a picture of data and model
  std::string report;                // HTML file for parameters, statistics and picture
};
void describe(Schema<FitRun>& schema);

/// Tests of weighted residuals.
struct FitResidualTests {
  int64_t runs = 0;          // runs of equal signs along the first column of x (Wald and Wolfowitz 1940)
  double runs_expected = 0;  // number of runs that is expected for independent signs
  std::optional<double> runs_probability;  // of a number of runs at least as far from the expected number
  std::optional<double> normality, normality_probability;  // D'Agostino and Pearson 1973; for 20 rows or more
  /// n log(S / n) + 2 p (AIC) and n log(S / n) + p log(n) (BIC) for n rows, p parameters and the sum of squares S > 0; not
  /// set with a robust loss.
  std::optional<double> akaike, bayes;
};
/// Probabilities that a normal number is within one, two and three standard deviations.
std::array<double, 3> profile_levels();
/// Limits of a parameter from its profile: the values at which the least sum of squares with the parameter fixed fails an
/// F test at profile_levels(), or a chi-squared test with absolute sigma. Infinite: there is no limit.
struct FitProfile {
  std::string parameter;
  std::array<double, 3> lower{}, upper{};
};
/// Half widths of the bands at each row, at the probability `level`: of the curve (confidence) and of a further
/// measurement (prediction).
struct FitBands {
  double level = 0.95;
  std::vector<double> confidence, prediction;
};
/// The model of each data set at the `rows` requested points, data set after data set. The half widths are empty if no
/// bands are known. Those of measurements are also empty if the data have a sigma and the points do not.
struct FitCurve {
  int64_t rows = 0;
  std::vector<double> fitted, confidence, prediction;
};
struct FitRunResult : RunResult {
  std::string model;
  int64_t rows = 0;
  std::vector<int64_t> rows_of_sets;  // by data set
  std::vector<std::string> parameters;
  std::map<std::string, std::string> constraints;  // of `parameters`, as they were resolved
  std::vector<double> initial, values, fitted;
  std::vector<double> standard_errors, covariance;  // as FitResult has them
  std::vector<double> correlations;                 // (parameters, parameters), if requested and known
  std::vector<std::string> at_bound, undetermined;
  double residual_sum_of_squares = 0, residual_standard_deviation = 0, r_squared = 0;
  std::optional<double> chi_squared, chi_squared_probability;  // as FitResult has them
  int64_t degrees_of_freedom = 0;
  FitResidualTests tests;
  std::vector<FitProfile> profile;
  std::optional<FitBands> bands;
  std::optional<FitCurve> at;
};
FitRunResult run(Context& context, const FitRun& options);
std::string to_json(const FitRunResult& result);
std::string to_text(const FitRunResult& result);

// ── pose graphs ──

enum class PoseStart : uint8_t { file, tree, chordal };
std::span<const Choice<PoseStart>> choices(PoseStart);

struct PoseGraphRun : RunOptions {
  PoseGraphRun();  // 500 iterations: noisy odometry starts far from the minimum, and steps are cheap
  std::string file;
  PoseStart start = PoseStart::file;  // tree if the file has no poses
  std::string out;
  std::string residuals;  // CSV file with a row per instance at the end: term, instance, norm, weight
};
void describe(Schema<PoseGraphRun>& schema);
struct PoseGraphResult : RunResult {
  int dimension = 3;
  int64_t vertices = 0, landmarks = 0, edges = 0, fixed = 0;
  PoseStart start = PoseStart::file;  // the start that was used
  bool has_poses = true;              // in the file
};
PoseGraphResult run(Context& context, const PoseGraphRun& options);
std::string to_json(const PoseGraphResult& result);
std::string to_text(const PoseGraphResult& result);

// ── bundle adjustment ──

/// A synthetic scene with known truth: a ring of cameras around a column. `cameras` 0: no scene.
struct SyntheticScene {
  int64_t cameras = 0, observations = 0;
  uint64_t seed = 1;
  double noise_px = 0.5, disturbance = 1;
};
struct BundleRun : RunOptions {
  BundleRun();               // function tolerance 1e-6, as is usual for bundle adjustment
  std::string file;          // in BAL's text format
  SyntheticScene synthetic;  // instead of a file
  std::string out, ply;
  std::string residuals;  // as PoseGraphRun::residuals
};
void describe(Schema<SyntheticScene>& schema);
void describe(Schema<BundleRun>& schema);
struct BundleResult : RunResult {
  int64_t cameras = 0, points = 0, observations = 0;
  std::optional<double> rms_px;  // root mean square error in pixels; not set with a robust loss
};
BundleResult run(Context& context, const BundleRun& options);
std::string to_json(const BundleResult& result);
std::string to_text(const BundleResult& result);

// ── meshes ──

enum class MeshColor : uint8_t { plain, displacement, curvature };
enum class UpAxis : uint8_t { x, y, z };
std::span<const Choice<MeshColor>> choices(MeshColor);
std::span<const Choice<UpAxis>> choices(UpAxis);

struct MeshPictureRun {
  std::string file;
  MeshColor color = MeshColor::plain;
  std::optional<std::array<double, 3>>
      view;  // direction from the mesh to the eye; default: from the right and above
  UpAxis up = UpAxis::z;
  int width = 900;  // pixels
  bool edges = false, smooth = false, compare = false;
};
void describe(Schema<MeshPictureRun>& schema);

struct MeshArrays {
  Array vertices;   // (n, 3) f64
  Array triangles;  // (m, 3) i32, counter-clockwise seen from outside
};

struct MeshRun : RunOptions {
  std::string mesh;                 // a file, or a generated mesh such as "icosphere:4"
  std::optional<MeshArrays> given;  // instead of `mesh`
  std::string energy;
  std::optional<Method> method;            // default: that of the energy
  std::optional<int> iterations;           // default: that of the energy
  std::string fix, handles, handles_file;  // selections of vertices (docs/mesh.md), and a file of handles
  std::optional<double> attach, stiffness, bend, gravity, rest_scale;
  std::optional<uint64_t> seed;
  bool repair = false;
  std::string out;  // .obj, .ply or .stl
  MeshPictureRun picture;
};
void describe(Schema<MeshRun>& schema);
/// Names of MeshRun::energy.
std::vector<std::string> mesh_energies();
Method usual_method(const std::string& energy);

struct MeshRunResult : RunResult {
  std::string mesh, energy;
  int64_t vertices = 0, edges = 0, triangles = 0, boundary_loops = 0, euler_characteristic = 0, fixed = 0,
          handles = 0;
  struct Repaired {
    int64_t welded = 0, dropped = 0, turned = 0, copied = 0, unused = 0;
  };
  std::optional<Repaired> repaired;
  struct Curvature {
    int64_t hinges = 0, seams = 0, boundary = 0;
  };
  std::optional<Curvature> curvature_before, curvature_after;         // except for parameterize
  std::optional<double> developability_before, developability_after;  // for the developability energies
  struct Flat {
    double symmetric_dirichlet = 0, largest_stretch = 1;
    int64_t turned_over = 0;
  };
  std::optional<Flat> flat;  // of parameterize
  MeshArrays found;          // not part of the JSON
};
MeshRunResult run(Context& context, const MeshRun& options);
std::string to_json(const MeshRunResult& result);
std::string to_text(const MeshRunResult& result);

// ── sketches ──

struct SketchRun : RunOptions {
  SketchRun();  // function tolerance 1e-12
  std::string file;
  bool allow_conflicts = false;  // otherwise contradicting constraints throw InputError
  std::string out;               // a drawing, or .toml: the solved sketch
};
void describe(Schema<SketchRun>& schema);
struct SketchRunResult : RunResult {
  std::string name;
  bool satisfied = false;
  int64_t degrees_of_freedom = 0, rank = 0, lines = 0;
  double size = 1;
  struct Point {
    std::string name;
    double x = 0, y = 0;
    bool pinned = false, determined = false;
  };
  struct Circle {
    std::string name, center;
    double radius = 0;
    bool determined = false;
  };
  struct Constraint {
    std::string name, kind;
    bool implied = false;
    double residual = 0;
  };
  struct Redundant {
    std::string name;
    int equations = 0, redundant_equations = 0;
    std::vector<std::string> follows_from;
  };
  std::vector<Point> points;
  std::vector<Circle> circles;
  std::vector<Constraint> constraints;
  std::vector<Redundant> redundant;
  std::vector<std::vector<std::string>> conflicts;
};
SketchRunResult run(Context& context, const SketchRun& options);
std::string to_json(const SketchRunResult& result);
std::string to_text(const SketchRunResult& result);

/// The options of all commands, and of minimize() as "solve.minimize".
std::vector<NamedSchema> schemas();

}  // namespace lockstep::solve
