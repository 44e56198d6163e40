// `lockstep solve` for programs: a file in, a minimisation, files out, with stages, CPU fallback and telemetry.
// to_json() returns the members of the program's JSON, to_text() its text.
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
  RobustLoss loss;   // of every residual; none of NIST's datasets and of sketches
  std::string plot;  // picture of cost and gradient over the iterations; empty: none
};
void describe(Schema<RunOptions>& schema);

/// Results of all runs.
struct RunResult {
  Summary summary;
  std::vector<StageRecord> host_stages;                    // reading, building, writing
  std::vector<std::pair<std::string, std::string>> files;  // written: "out", "picture", "plot", "ply"
};
/// Members of every result: costs, counts, termination, linear solver given and used, batches, trace.
std::string to_json(const Summary& summary);
/// report(summary), which shows ten iterations, with at most `rows` of them: the first and the last ones.
std::string report(const Summary& summary, int rows);

// ── reference datasets of NIST ──

struct NistRun : RunOptions {
  NistRun();  // tolerances of rounding, dense QR
  std::string file;
  int start = 1;  // 1 or 2
};
void describe(Schema<NistRun>& schema);
struct NistRunResult : RunResult {
  std::string name;
  int start = 1;
  std::vector<std::string> names;  // of the parameters
  std::vector<double> parameters, certified;
  double lre = 0;  // agreeing digits, least of all parameters
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
  std::vector<std::string> others;  // further data sets
  std::vector<FitTable> given;      // all data sets, instead of files
  std::string model;                // over columns and parameters
  std::string y, sigma;
  std::vector<std::string> x;  // columns in the model; empty: all of them
  std::map<std::string, double> initial;
  std::map<std::string, std::pair<double, double>> bounds;
  std::map<std::string, std::string> constraints;  // parameters as formulas of others
  std::vector<std::string> shared;                 // parameters that all data sets have in common
};
struct FitRun : RunOptions, FitModel {
  bool absolute_sigma = false;  // sigma is absolute: errors are not scaled
  bool correlations = false, profile = false, bands = false;
  std::string at;  // CSV with the columns of x: points at which curve and bands are evaluated
  std::optional<FitTable> at_given;  // instead of a file
  std::string curve;                 // CSV: these points with the curve and its bands
  std::string out;                   // CSV: the table, fitted values, residuals
  std::string picture;               // data and model
  std::string report;                // HTML: parameters, statistics, picture
};
void describe(Schema<FitRun>& schema);

/// Tests of weighted residuals.
struct FitResidualTests {
  int64_t runs = 0;          // of equal signs along the first column of x (Wald and Wolfowitz 1940)
  double runs_expected = 0;  // expected if signs are independent
  std::optional<double> runs_probability;                  // of a number of runs as far from the expected one
  std::optional<double> normality, normality_probability;  // D'Agostino and Pearson 1973; from 20 rows on
  std::optional<double> akaike, bayes;  // n log(S / n) + 2 p, and + p log(n); no loss, S above 0
};
/// Probabilities of one, two and three standard deviations of a normal number.
std::array<double, 3> profile_levels();
/// Limits at which the least sum of squares with this parameter fixed fails an F test at profile_levels() (with
/// absolute sigma a chi-squared test); infinite if there is none.
struct FitProfile {
  std::string parameter;
  std::array<double, 3> lower{}, upper{};
};
/// Half widths by row, of the curve and of a further measurement, at the probability `level`.
struct FitBands {
  double level = 0.95;
  std::vector<double> confidence, prediction;
};
/// The model of each data set at the `rows` requested points, data set after data set; half widths are empty if no
/// bands are known, those of measurements also if the data have a sigma and the points do not.
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
  std::string residuals;  // CSV by instance at the end: term, instance, norm, weight
};
void describe(Schema<PoseGraphRun>& schema);
struct PoseGraphResult : RunResult {
  int dimension = 3;
  int64_t vertices = 0, landmarks = 0, edges = 0, fixed = 0;
  PoseStart start = PoseStart::file;  // used
  bool has_poses = true;              // in the file
};
PoseGraphResult run(Context& context, const PoseGraphRun& options);
std::string to_json(const PoseGraphResult& result);
std::string to_text(const PoseGraphResult& result);

// ── bundle adjustment ──

/// A ring of cameras around a column, with known truth; no cameras: none.
struct SyntheticScene {
  int64_t cameras = 0, observations = 0;
  uint64_t seed = 1;
  double noise_px = 0.5, disturbance = 1;
};
struct BundleRun : RunOptions {
  BundleRun();               // function tolerance 1e-6, as is usual
  std::string file;          // BAL's text format, or
  SyntheticScene synthetic;  // this scene
  std::string out, ply;
  std::string residuals;  // as PoseGraphRun::residuals
};
void describe(Schema<SyntheticScene>& schema);
void describe(Schema<BundleRun>& schema);
struct BundleResult : RunResult {
  int64_t cameras = 0, points = 0, observations = 0;
  std::optional<double> rms_px;  // without a robust loss
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
  std::optional<std::array<double, 3>> view;  // from the mesh to the eye; default from the right and above
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
  std::optional<Method> method;            // default by the energy
  std::optional<int> iterations;           // default by the energy
  std::string fix, handles, handles_file;  // texts of selection.hpp, and a file of handles
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
  std::optional<double> developability_before, developability_after;  // of its energies
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
