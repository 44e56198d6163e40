// Whole commands as a program without the command line runs them: results, files, members of the JSON, refusals.
#include "lockstep/solve/run.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

using Names = std::set<std::string>;

const Names kSummary{"method",       "linear",       "linear_given",
                     "linear_used",  "precision",    "initial_cost",
                     "final_cost",   "iterations",   "linear_iterations",
                     "termination",  "converged",    "message",
                     "notes",        "gradient_max", "residuals",
                     "variables",    "kernels",      "kernels_compiled",
                     "cache_hits",   "batches",      "trace",
                     "solve_seconds"};

class Runs : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("lockstep_runs_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::string write(const char* name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return path(name);
  }
  /// The members are those of the summary and `own`; files were written where the result says so.
  void expect_members(const std::string& text, const Names& own, const RunResult& result) const {
    const auto json = nlohmann::ordered_json::parse(text);
    Names found, expected = kSummary;
    for (const auto& [name, value] : json.items()) found.insert(name);
    expected.insert(own.begin(), own.end());
    for (const auto& [what, file] : result.files) {
      expected.insert(what);
      EXPECT_EQ(json.at(what), file);
      EXPECT_GT(std::filesystem::file_size(file), 0u) << file;
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(json.at("trace").size(), size_t(result.summary.iterations));
    EXPECT_EQ(json.at("final_cost"), result.summary.final_cost);
    EXPECT_FALSE(result.host_stages.empty());
    for (const StageRecord& stage : result.host_stages) EXPECT_EQ(stage.device, "host");
  }
  Context context_{ContextOptions{.device = "cpu"}};
  std::filesystem::path folder_;
};

TEST_F(Runs, ACurve) {
  std::string table = "t,count\n";
  for (int k = 0; k < 30; ++k)
    table +=
        std::to_string(0.1 * k) + "," + std::to_string(5 * std::exp(-0.07 * k) + 1 + 0.001 * (k % 3)) + "\n";
  FitRun run;
  run.file = write("d.csv", table);
  run.model = "a*exp(-b*t) + c", run.y = "count";
  run.bounds["c"] = {1.2, 2};
  run.out = path("f.csv"), run.picture = path("f.png"), run.plot = path("p.png");
  int calls = 0;
  run.options.callback = [&](const Iteration&) { return ++calls > 0; };
  const FitRunResult result = solve::run(context_, run);
  EXPECT_EQ(calls, result.summary.iterations);
  EXPECT_EQ(result.at_bound, std::vector<std::string>{"c"});
  EXPECT_NEAR(result.values[2], 1.2, 1e-12);
  EXPECT_EQ(result.files.size(), 3u);
  expect_members(
      to_json(result),
      {"model", "rows", "parameters", "standard_errors", "initial", "covariance", "singular", "undetermined",
       "at_bound", "residual_sum_of_squares", "residual_standard_deviation", "r_squared", "chi_squared",
       "chi_squared_probability", "degrees_of_freedom", "akaike", "bayes", "runs", "normality"},
      result);
  EXPECT_NE(to_text(result).find("c        1.2 (at its bound)"), std::string::npos) << to_text(result);
  run.out = path("absent/f.csv");
  EXPECT_THROW(solve::run(context_, run), InputError);
}

// Two data sets of arrays with all statements, against the same from files.
TEST_F(Runs, CurvesOfArrays) {
  std::vector<FitTable> tables(2, FitTable{{"t", "count"}, {{}, {}}});
  std::vector<std::string> texts(2, "t,count\n");
  for (size_t k = 0; k < 2; ++k)
    for (int row = 0; row < 30; ++row) {
      const double t = 0.25 * row, count = double(5 + 3 * k) * std::exp(-0.5 * t) + 0.125 * (row % 3);
      tables[k].columns[0].push_back(t), tables[k].columns[1].push_back(count);
      texts[k] += nlohmann::ordered_json(t).dump() + "," + nlohmann::ordered_json(count).dump() + "\n";
    }
  FitRun run;
  run.model = "a*exp(-b*t) + c", run.y = "count", run.shared = {"b"}, run.constraints = {{"c_2", "c_1"}};
  run.profile = run.bands = run.correlations = true;
  run.report = path("page.html");
  FitRun of_files = run;
  of_files.file = write("one.csv", texts[0]), of_files.others = {write("two.csv", texts[1])};
  run.given = tables;
  const FitRunResult arrays = solve::run(context_, run), files = solve::run(context_, of_files);
  EXPECT_EQ(arrays.parameters, (std::vector<std::string>{"a_1", "a_2", "b", "c_1", "c_2"}));
  EXPECT_EQ(arrays.values, files.values);
  EXPECT_EQ(arrays.covariance, files.covariance);
  EXPECT_EQ(arrays.fitted.size(), 60u);
  EXPECT_EQ(arrays.bands->prediction, files.bands->prediction);
  expect_members(to_json(arrays),
                 {"model",
                  "rows",
                  "parameters",
                  "standard_errors",
                  "initial",
                  "covariance",
                  "singular",
                  "undetermined",
                  "at_bound",
                  "residual_sum_of_squares",
                  "residual_standard_deviation",
                  "r_squared",
                  "chi_squared",
                  "chi_squared_probability",
                  "degrees_of_freedom",
                  "akaike",
                  "bayes",
                  "runs",
                  "normality",
                  "rows_of_sets",
                  "constraints",
                  "correlations",
                  "profile",
                  "bands"},
                 arrays);
  run.given[1].columns[1][3] = NAN;
  EXPECT_THROW(solve::run(context_, run), InputError);
  run.given[1].columns[1].pop_back();
  EXPECT_THROW(solve::run(context_, run), InputError);
}

// Bounds are of a closed interval: from either end the constrained minimum is found, from the next number beyond it nothing is.
TEST_F(Runs, ACurveFromItsBounds) {
  for (const double slope : {1.0, 3.0, 7.0}) {
    std::string table = "x,y\n";
    for (int k = 1; k < 6; ++k) table += std::to_string(k) + "," + std::to_string(slope * k) + "\n";
    FitRun run;
    run.file = write("line.csv", table);
    run.model = "a*x", run.y = "y";
    run.bounds["a"] = {2, 5};
    for (const double start : {2.0, 4.0, 5.0}) {
      run.initial["a"] = start;
      EXPECT_NEAR(solve::run(context_, run).values[0], std::clamp(slope, 2.0, 5.0), 1e-12) << start;
    }
    for (const double start : {std::nextafter(2.0, 0.0), std::nextafter(5.0, 9.0)}) {
      run.initial["a"] = start;
      EXPECT_THROW(solve::run(context_, run), InputError) << start;
    }
  }
}

TEST_F(Runs, APoseGraphWithoutPoses) {
  PoseGraphRun run;
  run.file = write(
      "ring.g2o",
      "EDGE_SE2 0 1 1 0 1.5707963267948966 9 0 0 9 0 9\nEDGE_SE2 1 2 1 0 1.5707963267948966 9 0 0 9 0 9\n"
      "EDGE_SE2 2 3 1 0 1.5707963267948966 9 0 0 9 0 9\nEDGE_SE2 3 0 1.1 0 1.5 9 0 0 9 0 9\n");
  run.out = path("out.g2o");
  const PoseGraphResult result = solve::run(context_, run);
  EXPECT_FALSE(result.has_poses);
  EXPECT_EQ(result.start, PoseStart::tree);
  EXPECT_EQ(result.vertices, 4);
  EXPECT_LT(result.summary.final_cost, result.summary.initial_cost);
  expect_members(to_json(result), {"dimension", "vertices", "landmarks", "edges", "start", "fixed"}, result);
  EXPECT_NE(to_text(result).find("no poses in the file"), std::string::npos);
  PoseGraphRun again;
  again.file = run.out;
  again.start = PoseStart::chordal;
  const PoseGraphResult second = solve::run(context_, again);
  EXPECT_TRUE(second.has_poses);
  EXPECT_EQ(second.start, PoseStart::chordal);
  EXPECT_NEAR(second.summary.final_cost, result.summary.final_cost, 1e-9);
}

TEST_F(Runs, BundleAdjustmentOfAScene) {
  BundleRun run;
  run.synthetic = SyntheticScene{.cameras = 4, .observations = 160};
  run.out = path("o.txt"), run.ply = path("o.ply");
  const BundleResult result = solve::run(context_, run);
  EXPECT_EQ(result.observations, 160);
  ASSERT_TRUE(result.rms_px.has_value());
  EXPECT_LT(*result.rms_px, 1);
  expect_members(to_json(result), {"cameras", "points", "observations", "rms_px"}, result);
  run.file = run.out;
  EXPECT_THROW(solve::run(context_, run), InputError) << "a file and a scene";
}

TEST_F(Runs, AMesh) {
  MeshRun run;
  run.mesh = "icosphere:1";
  run.energy = "springs";
  run.rest_scale = 1.1;
  run.fix = "0";
  run.repair = true;
  run.out = path("o.ply");
  run.picture.file = path("o.png"), run.picture.width = 120, run.picture.up = UpAxis::y;
  const MeshRunResult result = solve::run(context_, run);
  EXPECT_EQ(result.vertices, 42);
  EXPECT_EQ(result.summary.method, Method::lm);
  EXPECT_LT(result.summary.final_cost, 1e-9);
  expect_members(
      to_json(result),
      {"mesh", "energy", "vertices", "edges", "triangles", "boundary_loops", "euler_characteristic", "fixed",
       "handles", "repair", "curvature_before", "curvature_after"},
      result);
  EXPECT_EQ(usual_method("cloth"), Method::newton);
  run.gravity = 3;
  EXPECT_THROW(solve::run(context_, run), InputError);
  MeshRun flat;
  flat.mesh = "dome:1", flat.energy = "parameterize", flat.out = path("flat.obj");
  const MeshRunResult map = solve::run(context_, flat);
  ASSERT_TRUE(map.flat.has_value());
  EXPECT_EQ(map.flat->turned_over, 0);
  expect_members(
      to_json(map),
      {"mesh", "energy", "vertices", "edges", "triangles", "boundary_loops", "euler_characteristic", "fixed",
       "handles", "symmetric_dirichlet", "largest_stretch", "turned_over"},
      map);
}

TEST_F(Runs, ASketch) {
  const std::string text =
      "[points]\na = { at = [0, 0], pinned = true }\nb = [4, 0.3]\n"
      "[circles]\nk = { center = 'a', radius = 1.5 }\nm = { center = 'b', radius = 0.5 }\n"
      "[[constraints]]\nname = 'width'\n"
      "kind = 'length'\nof = ['a', 'b']\nvalue = 4\n";
  SketchRun run;
  run.file = write("s.toml", text);
  run.out = path("o.svg");
  const SketchRunResult result = solve::run(context_, run);
  EXPECT_TRUE(result.satisfied);
  EXPECT_EQ(result.degrees_of_freedom, 3);  // b about a, and both radii
  ASSERT_EQ(result.points.size(), 2u);
  EXPECT_EQ(result.points[0].name, "a");
  EXPECT_NEAR(std::hypot(result.points[1].x, result.points[1].y), 4, 1e-9);
  ASSERT_EQ(result.circles.size(), 2u);
  for (const auto& [at, name, center, radius] : {std::tuple(0u, "k", "a", 1.5), {1u, "m", "b", 0.5}}) {
    EXPECT_EQ(result.circles[at].name, name);
    EXPECT_EQ(result.circles[at].center, center);
    EXPECT_NEAR(result.circles[at].radius, radius, 1e-9);
  }
  const Names own{"sketch", "satisfied", "degrees_of_freedom", "rank",      "size",
                  "points", "circles",   "constraints",        "redundant", "conflicts"};
  expect_members(to_json(result), own, result);
  SketchRun impossible;
  impossible.file = write(
      "t.toml", text + "[[constraints]]\nname = 'other'\nkind = 'length'\nof = ['a', 'b']\nvalue = 5\n");
  EXPECT_THROW(solve::run(context_, impossible), InputError);
  impossible.allow_conflicts = true;
  const SketchRunResult compromise = solve::run(context_, impossible);
  EXPECT_EQ(compromise.conflicts, (std::vector<std::vector<std::string>>{{"width", "other"}}));
  expect_members(to_json(compromise), own, compromise);
}

}  // namespace
}  // namespace lockstep::solve
