// Whole commands as a program without the command line runs them: results, files, members of the JSON, refusals.
#include "lockstep/solve/run.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/error.hpp"
#include "lockstep/solve/doctor.hpp"

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

/// A result in which every number is another one.
FitRunResult every_number() {
  FitRunResult r;
  r.model = "a * x + b";
  r.rows = 30;
  r.rows_of_sets = {10, 20};
  r.parameters = {"a", "b", "c"};
  r.constraints = {{"c", "2 * a"}};
  r.initial = {1, 2, 3}, r.values = {4, 5, 6};
  r.standard_errors = {0.5, 0.25, std::numeric_limits<double>::quiet_NaN()};
  r.covariance = {7, 8, 9};
  r.correlations = {1, 0.05, -0.2, 0.05, 1, 0.7, -0.2, 0.7, 1};
  r.at_bound = {"b"};
  r.residual_sum_of_squares = 11, r.residual_standard_deviation = 12, r.r_squared = 0.875;
  r.chi_squared = 13, r.chi_squared_probability = 0.75;
  r.degrees_of_freedom = 28;
  r.tests = {14, 15, 0.5, 16, 0.125, 17, 18};
  r.profile = {{"a", {3, 2, 1}, {5, 6, 7}}};
  r.bands = FitBands{0.95, {19}, {20}};
  return r;
}

TEST(FitDocuments, HaveEachNumberUnderItsName) {
  const FitRunResult r = every_number();
  const nlohmann::json j = nlohmann::json::parse(to_json(r));
  EXPECT_EQ(j["parameters"], (nlohmann::json{{"a", 4.0}, {"b", 5.0}, {"c", 6.0}}));
  EXPECT_EQ(j["initial"], (nlohmann::json{{"a", 1.0}, {"b", 2.0}, {"c", 3.0}}));
  EXPECT_EQ(j["standard_errors"], (nlohmann::json{{"a", 0.5}, {"b", 0.25}})) << "c has none";
  EXPECT_EQ(j["rows_of_sets"], (nlohmann::json{10, 20}));
  EXPECT_EQ(j["constraints"]["c"], "2 * a");
  EXPECT_EQ(j["at_bound"], nlohmann::json{"b"});
  EXPECT_FALSE(j["singular"]);
  const std::pair<const char*, double> numbers[] = {{"residual_sum_of_squares", 11},
                                                    {"residual_standard_deviation", 12},
                                                    {"r_squared", 0.875},
                                                    {"chi_squared", 13},
                                                    {"chi_squared_probability", 0.75},
                                                    {"degrees_of_freedom", 28},
                                                    {"akaike", 17},
                                                    {"bayes", 18}};
  for (const auto& [name, value] : numbers) EXPECT_EQ(j[name], value) << name;
  EXPECT_EQ(j["runs"], (nlohmann::json{{"found", 14}, {"expected", 15.0}, {"probability", 0.5}}));
  EXPECT_EQ(j["normality"], (nlohmann::json{{"k_squared", 16.0}, {"probability", 0.125}}));
  EXPECT_EQ(j["profile"]["parameters"]["a"]["lower"], (nlohmann::json{3.0, 2.0, 1.0}));
  EXPECT_EQ(j["profile"]["parameters"]["a"]["upper"], (nlohmann::json{5.0, 6.0, 7.0}));
  EXPECT_NEAR(j["profile"]["levels"][1].get<double>(), 0.9545, 1e-4);
  EXPECT_EQ(j["bands"]["confidence"], nlohmann::json{19.0});
  EXPECT_EQ(j["bands"]["prediction"], nlohmann::json{20.0});
}

TEST(FitDocuments, TextHasValuesErrorsAndRemarks) {
  FitRunResult r = every_number();
  std::string text = to_text(r);
  for (const char* part :
       {"  a        4 +- 0.5\n", "  b        5 +- 0.25 (at its bound)\n", "  c        6 (= 2 * a)\n",
        "  chi squared 13\n", "  probability of one as large or larger 0.75\n",
        "  information criteria Akaike 17, Bayes 18\n",
        "  runs of residuals of one sign 14, by chance 15, probability 0.5\n",
        "  normality of residuals K squared 16, probability 0.125\n",
        "  correlation of b and c: +0.7000\n  correlation of a and c: -0.2000\n  a        68.27 % within 3 "
        "and 5\n",
        "  a        99.73 % within 1 and 7\n",
        "  residual standard deviation 12, R squared 0.875, 28 degrees of freedom\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  EXPECT_EQ(text.find("correlation of a and b"), std::string::npos) << "below 0.1";
  EXPECT_EQ(text.find("no standard errors"), std::string::npos);
  r.constraints.clear(), r.at_bound.clear(), r.degrees_of_freedom = 0, r.undetermined = {"a", "c"};
  text = to_text(r);
  for (const char* part :
       {"  a        4 +- 0.5 (not determined)\n", "the data do not determine a, c: other values fit",
        "as many rows as parameters: no standard errors\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  EXPECT_TRUE(nlohmann::json::parse(to_json(r))["singular"]);
}

/// A report with a finding of each kind.
ProblemReport every_finding() {
  ProblemReport r;
  r.blocks = 9, r.held = 1, r.unknowns = 21, r.residuals = 22, r.instances = 11, r.energies = 2, r.cost = 0.5;
  r.piece_count = 2;
  r.pieces.resize(2);
  ProblemReport::Piece &loose = r.pieces[0], &weak = r.pieces[1];
  loose = {3, 6, {"poses", 4}, true, 2, false, {{"poses", 5}, {"poses", 6}}, 1, {}};
  weak = {1, 1, {"points", 7}, false, 0, false, {}, 1e-7, {{"points", 8}}};
  r.free_directions = 2;
  r.median_column = 1.5;
  r.badly_scaled = {{"points", 2, 3, 1e-9, 2e-9}};
  r.idle_count = 4;
  r.idle.resize(1), r.idle[0].terms = "idle", r.idle[0].instance = 12, r.idle[0].why = "its blocks are fixed";
  r.duplicate_count = 1;
  r.duplicates.resize(1), r.duplicates[0].terms = "twice", r.duplicates[0].instance = 13;
  r.duplicates[0].line = 14, r.duplicates[0].of = {"once", 15, 16};
  const auto influence = [](const char* terms, double from) {
    InstanceInfluence i;
    i.terms = terms, i.instance = 17, i.line = 18;
    i.leverage = from + 0.125, i.checked = 2, i.studentized = from + 0.25, i.probability = from + 0.5,
    i.cook = from + 0.75;
    return i;
  };
  r.outlier_count = 1, r.outliers = {influence("far", 1)};
  r.influential_count = 5, r.influential = {influence("moves", 2)};
  r.lever_count = 6, r.levers = {influence("lever", 3)};
  r.levers[0].checked = 0;
  r.step_gain = 0.25;
  return r;
}

TEST(DoctorDocuments, HaveEachFindingUnderItsName) {
  const ProblemReport r = every_finding();
  const nlohmann::json j = nlohmann::json::parse(to_json(r));
  const std::pair<const char*, double> numbers[] = {{"blocks", 9},        {"held", 1},
                                                    {"unknowns", 21},     {"instances", 11},
                                                    {"residuals", 22},    {"energies", 2},
                                                    {"cost", 0.5},        {"piece_count", 2},
                                                    {"idle_count", 4},    {"duplicate_count", 1},
                                                    {"outlier_count", 1}, {"influential_count", 5},
                                                    {"lever_count", 6},   {"median_column", 1.5},
                                                    {"step_gain", 0.25},  {"free_directions", 2}};
  for (const auto& [name, value] : numbers) EXPECT_EQ(j[name], value) << name;
  EXPECT_FALSE(j["well"]);
  const auto loose = j["pieces"][0], weak = j["pieces"][1];
  EXPECT_EQ(loose["blocks"], 3);
  EXPECT_EQ(loose["unknowns"], 6);
  EXPECT_EQ(loose["first"], (nlohmann::json{{"set", "poses"}, {"number", 4}}));
  EXPECT_TRUE(loose["touches_held"]);
  EXPECT_EQ(loose["free_directions"], 2);
  EXPECT_EQ(loose["carriers"][1]["number"], 6);
  EXPECT_EQ(weak["weakest"], 1e-7);
  EXPECT_EQ(weak["weak"][0]["number"], 8);
  EXPECT_FALSE(weak["touches_held"]);
  EXPECT_EQ(j["badly_scaled"][0],
            (nlohmann::json{
                {"set", "points"}, {"coordinate", 2}, {"blocks", 3}, {"shortest", 1e-9}, {"longest", 2e-9}}));
  EXPECT_EQ(j["idle"][0],
            (nlohmann::json{{"terms", "idle"}, {"instance", 12}, {"why", "its blocks are fixed"}}));
  EXPECT_EQ(j["duplicates"][0]["line"], 14);
  EXPECT_EQ(j["duplicates"][0]["of"], (nlohmann::json{{"terms", "once"}, {"instance", 15}, {"line", 16}}));
  double from = 1;
  for (const char* list : {"outliers", "influential", "levers"}) {
    const auto one = j[list][0];
    EXPECT_EQ(one["instance"], 17);
    EXPECT_EQ(one["leverage"], from + 0.125) << list;
    EXPECT_EQ(one["studentized"], from + 0.25) << list;
    EXPECT_EQ(one["probability"], from + 0.5) << list;
    EXPECT_EQ(one["cook"], from + 0.75) << list;
    from += 1;
  }
}

TEST(DoctorDocuments, TextNamesEachFinding) {
  ProblemReport r = every_finding();
  const auto expect_parts = [&](std::vector<const char*> parts) {
    const std::string text = to_text(r);
    for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    return text;
  };
  expect_parts(
      {"9 blocks, 1 of them held, with 21 unknowns; 11 instances with 22 residuals; cost 0.5\n",
       "2 pieces that no residual connects\n2 free directions\n",
       "  3 blocks from poses 4 on, 6 unknowns: 2 directions change no residual to first order, of poses 5, "
       "poses 6\n",
       "  1 block from points 7 on, 1 unknown: one direction is determined 1e+07 times worse than another, "
       "of points 8\n",
       "coordinate 2 of points: columns of J of length 1e-09 to 2e-09 in 3 blocks, the median is 1.5\n",
       "4 instances without effect\n  idle, instance 12: its blocks are fixed\n",
       "1 duplicate: blocks and data of an earlier instance\n  twice, instance 13 (line 14): as once, "
       "instance 15 (line 16)\n",
       "a step would lower the cost by 25 %", "1 instance that the others contradict",
       "  far, instance 17 (line 18): 1.25 standard deviations, leverage 1.12, Cook's distance 1.75\n",
       "5 instances without which the estimate moves", "6 instances of high leverage",
       "  lever, instance 17 (line 18): leverage 1, nothing else measures what it does\n"});
  r.step_gain = 0.01;
  r.free_directions.reset(), r.rank_note = "its size";
  r.pieces[0].gauge = true, r.pieces[0].free_directions = 1;
  std::string text =
      expect_parts({"directions that nothing holds: not computed, because of its size\n",
                    "1 direction changes no residual to first order, of all of its blocks (a gauge)"});
  EXPECT_EQ(text.find("would lower the cost"), std::string::npos) << text;
  r = {};
  r.blocks = r.piece_count = r.instances = 1, r.free_directions = 0, r.pieces.resize(1);
  r.pieces[0].free_directions = 0;
  EXPECT_TRUE(r.well());
  expect_parts({"1 block, 0 of them held", "1 instance with",
                "one piece, and its terms hold all of it: nothing to report\n"});
}

}  // namespace
}  // namespace lockstep::solve
