// Reports of problems whose faults are known.
#include "lockstep/solve/doctor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/solve/factors.hpp"

namespace lockstep::solve {
namespace {

Context& doctors_context() {
  static Context context(ContextOptions{.device = "cpu"});
  return context;
}

/// Poses of space in a row, each with edges to the next and the one after that.
struct Row {
  Problem problem;
  BlockSet poses;
  std::vector<double> data;
  explicit Row(int count, bool fixed) {
    std::vector<double> values;
    for (int k = 0; k < count; ++k) {
      const double a = 0.1 * k;
      for (const double v :
           {1.0 * k, 0.3 * std::sin(a), 0.2 * std::cos(a), std::cos(a / 2), 0.0, std::sin(a / 2), 0.0})
        values.push_back(v);
    }
    poses = problem.add_blocks("poses", se3(), values);
    const std::vector<double> w = w_from_standard_deviations(std::vector<double>(6, 0.1));
    std::vector<int32_t> edges;
    for (int k = 0; k < count; ++k)
      for (const int to : {k + 1, k + 2}) {
        if (to >= count) continue;
        edges.insert(edges.end(), {k, to});
        const double turn = 0.1 * (to - k);
        const std::vector<double> z{1.0 * (to - k), 0, 0, std::cos(turn / 2), 0, std::sin(turn / 2), 0};
        const std::vector<double> row = se3_between_log_data(z, w);
        data.insert(data.end(), row.begin(), row.end());
      }
    problem.add_terms(se3_between_log(), {poses, poses}, edges, data);
    if (fixed) problem.fix(poses, 0);
  }
};

TEST(Doctor, HasNothingToReportOfAProblemThatIsHeld) {
  Row row(8, true);
  const ProblemReport r = diagnose(row.problem, doctors_context());
  EXPECT_TRUE(r.well()) << to_text(r);
  EXPECT_EQ(r.blocks, 8);
  EXPECT_EQ(r.held, 1);
  EXPECT_EQ(r.unknowns, 42);
  EXPECT_EQ(r.instances, 13);
  EXPECT_EQ(r.residuals, 78);
  EXPECT_EQ(r.piece_count, 1);
  EXPECT_TRUE(r.pieces[0].touches_held);
  EXPECT_NE(to_text(r).find("nothing to report"), std::string::npos);
}

/// Few poses by dense algebra, many by a sparse factorisation: both find the six directions.
TEST(Doctor, FindsAGaugeOfFewAndOfManyBlocks) {
  for (const int count : {8, 400}) {
    Row row(count, false);
    const ProblemReport r = diagnose(row.problem, doctors_context());
    EXPECT_FALSE(r.well());
    ASSERT_TRUE(r.free_directions.has_value()) << r.rank_note;
    EXPECT_EQ(*r.free_directions, 6) << count;
    ASSERT_EQ(r.pieces.size(), 1u);
    EXPECT_TRUE(r.pieces[0].gauge);
    EXPECT_FALSE(r.pieces[0].touches_held);
    EXPECT_TRUE(r.pieces[0].carriers.empty());
    EXPECT_NE(
        to_text(r).find("6 directions change no residual to first order, of all of its blocks (a gauge)"),
        std::string::npos)
        << to_text(r);
  }
}

TEST(Doctor, NamesThePieceThatFloatsAndTheBlocksThatCarryDirections) {
  Row row(6, true);
  // Two poses of their own, and a mark that one range holds: two directions of it are free.
  const BlockSet apart =
      row.problem.add_blocks("apart", se3(), std::vector<double>{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0});
  row.problem.add_terms(se3_between_log(), {apart, apart}, std::vector<int32_t>{0, 1},
                        std::span(row.data).first(28));
  const BlockSet marks = row.problem.add_blocks("marks", euclidean(3), std::vector<double>{9, 9, 9, 2, 3, 4});
  row.problem.add_terms(range_to(3), {row.poses, marks}, std::vector<int32_t>{2, 1},
                        std::vector<double>{4, 0.1});
  const ProblemReport r = diagnose(row.problem, doctors_context());
  EXPECT_EQ(r.piece_count, 3);  // with the mark that has no term
  ASSERT_EQ(r.pieces.size(), 3u);
  EXPECT_EQ(*r.free_directions, 3 + 6 + 2);
  EXPECT_EQ(r.pieces[0].first.set, "marks");
  EXPECT_EQ(r.pieces[0].first.number, 0);
  EXPECT_EQ(*r.pieces[0].free_directions, 3);
  EXPECT_EQ(r.pieces[1].first.set, "apart");
  EXPECT_TRUE(r.pieces[1].gauge);
  EXPECT_EQ(*r.pieces[1].free_directions, 6);
  EXPECT_EQ(*r.pieces[2].free_directions, 2);
  EXPECT_FALSE(r.pieces[2].gauge);
  ASSERT_EQ(r.pieces[2].carriers.size(), 1u);
  EXPECT_EQ(r.pieces[2].carriers[0].set, "marks");
  EXPECT_EQ(r.pieces[2].carriers[0].number, 1);
}

TermType scaled_value() {
  return {"value", {2}, 2, [](const TermArguments& a) {
            return std::vector<Value>{a.x(0, 0) - a.data(0), a.data(1) * a.x(0, 1)};
          }};
}

TEST(Doctor, NamesTheBlocksOfAWeakDirection) {
  Context context(ContextOptions{.device = "cpu", .threads = 2});
  for (const double weight : {1.0, 1e-4, 1e-7, 1e-10}) {
    Problem problem;
    const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{1, 2, 3});
    const std::vector<Value> v{problem.variable(x, 0), problem.variable(x, 1), problem.variable(x, 2)};
    for (const double seen : {0.1, 0.2, 0.4})
      problem.add_residuals(std::vector<Value>{v[0] + v[1] - seen, v[2] + v[1] + v[0] - 2 * seen});
    problem.add_residuals(std::vector<Value>{weight * (v[0] - v[1] - 0.5)});
    const ProblemReport report = diagnose(problem, context);
    EXPECT_EQ(report.free_directions, 0);
    ASSERT_EQ(report.pieces.size(), 1u);
    // x 0 - x 1, in units of columns of length sqrt(6): the sum of squares of the others' is of order 1.
    EXPECT_GT(report.pieces[0].weakest, 0.1 * weight);
    EXPECT_LT(report.pieces[0].weakest, weight);
    EXPECT_EQ(report.well(), weight > 1e-5);
    ASSERT_EQ(report.pieces[0].weak.size(), weight > 1e-5 ? 0u : 2u);
    if (report.well()) continue;
    EXPECT_EQ(report.pieces[0].weak[0].number + report.pieces[0].weak[1].number, 1);
    EXPECT_NE(to_text(report).find("one direction is determined"), std::string::npos) << to_text(report);
  }
}

TEST(Doctor, FindsNoOutliersWhereNothingIsChecked) {
  Context context(ContextOptions{.device = "cpu", .threads = 2});
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{1, 2});
  for (int k = 0; k < 2; ++k) problem.add_residuals(std::vector<Value>{problem.variable(x, k) - 5.0 * k});
  const ProblemReport report = diagnose(problem, context);
  EXPECT_EQ(report.outlier_count, 0);
  EXPECT_EQ(report.lever_count, 2);
}

TEST(Doctor, FindsColumnsIdleAndDoubleInstances) {
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(2), std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  const TermSet terms = problem.add_terms(scaled_value(), {x}, std::vector<int32_t>{0, 1, 2, 1, 3, 3},
                                          std::vector<double>{1, 1, 2, 1, 3, 1e-9, 2, 1, 5, 1, 6, 1});
  problem.fix(x, 3);
  problem.enable(terms, 4, false);
  ProblemReport r = diagnose(problem, doctors_context());
  ASSERT_EQ(r.badly_scaled.size(), 1u);
  EXPECT_EQ(r.badly_scaled[0].set, "x");
  EXPECT_EQ(r.badly_scaled[0].coordinate, 1);
  EXPECT_EQ(r.badly_scaled[0].blocks, 1);
  EXPECT_DOUBLE_EQ(r.badly_scaled[0].longest, 1e-9);
  EXPECT_EQ(r.duplicate_count, 1);
  ASSERT_EQ(r.duplicates.size(), 1u);
  EXPECT_EQ(r.duplicates[0].instance, 3);
  EXPECT_EQ(r.duplicates[0].of.instance, 1);
  EXPECT_EQ(r.instances, 5);
  EXPECT_EQ(r.idle_count, 1);  // the disabled one does not count
  ASSERT_EQ(r.idle.size(), 1u);
  EXPECT_EQ(r.idle[0].instance, 5);
  EXPECT_EQ(r.idle[0].why, "all of its blocks are held");
  EXPECT_EQ(*r.free_directions, 0);

  problem.weigh(terms, std::vector<double>{1, 1, 1, 0, 1, 1});
  r = diagnose(problem, doctors_context());
  EXPECT_EQ(r.idle_count, 2);
  EXPECT_EQ(r.idle[0].why, "its weight is 0");
}

TEST(Doctor, AnOutlierThatItsLossDropsIsIdle) {
  Problem problem;
  TermType value = scaled_value();
  value.loss = {RobustLoss::Kind::tukey, 1};
  const BlockSet x = problem.add_blocks("x", euclidean(2), std::vector<double>{1, 0});
  problem.add_terms(value, {x}, std::vector<int32_t>{0, 0}, std::vector<double>{0.9, 1, 50, 1});
  const ProblemReport r = diagnose(problem, doctors_context());
  ASSERT_EQ(r.idle.size(), 1u);
  EXPECT_EQ(r.idle[0].instance, 1);
  EXPECT_NE(r.idle[0].why.find("its loss leaves nothing"), std::string::npos);
}

TEST(Doctor, SaysWhyDirectionsAreNotKnown) {
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{1});
  problem.add_terms(TermType{"bowl",
                             {1},
                             0,
                             [](const TermArguments& a) { return std::vector<Value>{a.x(0) * a.x(0)}; },
                             {},
                             true},
                    {x}, std::vector<int32_t>{0}, {});
  const ProblemReport r = diagnose(problem, doctors_context());
  EXPECT_FALSE(r.free_directions.has_value());
  EXPECT_NE(r.rank_note.find("energies"), std::string::npos);
  EXPECT_FALSE(r.well());
  EXPECT_NE(to_text(r).find("not computed, because of energies"), std::string::npos);
}

TEST(Doctor, JsonHasWhatTheReportHas) {
  Row row(4, false);
  const ProblemReport r = diagnose(row.problem, doctors_context());
  const auto json = nlohmann::json::parse(to_json(r));
  EXPECT_EQ(json.at("free_directions"), 6);
  EXPECT_EQ(json.at("pieces").at(0).at("gauge"), true);
  EXPECT_EQ(json.at("pieces").at(0).at("first").at("set"), "poses");
  EXPECT_EQ(json.at("well"), false);
  EXPECT_EQ(json.at("duplicate_count"), 0);
}

}  // namespace
}  // namespace lockstep::solve
