// Declarations of solve's options: what holds of each of them, and the tables of docs/solve-options.md.
#include <gtest/gtest.h>

#include "core/schema/table.hpp"
#include "core/schema_walk.hpp"
#include "lockstep/solve/doctor.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::solve {
namespace {

TEST(SolveOptions, EveryOptionIsRefusedInThreeVocabularies) {
  test::walk<Options>();
  test::walk<NistRun>();
  test::walk<FitRun>();
  test::walk<PoseGraphRun>();
  test::walk<BundleRun>();
  test::walk<MeshRun>();
  test::walk<SketchRun>();
  test::walk<DoctorRun>();
}

TEST(SolveOptions, DefaultsPassTheirOwnChecks) {
  for (const NamedSchema& schema : schemas())
    if (schema.command != "solve.mesh") {  // whose energy has no default
      EXPECT_NO_THROW(schema.options->check(schema.options->defaults())) << schema.command;
    }
}

TEST(SolveOptions, EnumerationsAreComplete) {
  EXPECT_TRUE(test::is_complete<Method>() && test::is_complete<Linear>() && test::is_complete<Precision>() &&
              test::is_complete<Placement>());
  EXPECT_TRUE(test::is_complete<Damping>() && test::is_complete<Termination>() &&
              test::is_complete<PoseStart>() && test::is_complete<MeshColor>() &&
              test::is_complete<UpAxis>());
}

/// The error of options by their names, or empty.
template <class Run>
std::string refusal(const std::vector<std::pair<std::string, std::string>>& texts) {
  Run run;
  return test::refusal(run, {"file", "mesh", "model", "y"}, texts);
}

TEST(SolveOptions, WhatAMethodDoesNotReadIsRefused) {
  EXPECT_EQ(refusal<PoseGraphRun>({{"method", "adam"}, {"linear", "pcg"}}),
            "it has no effect with this --method [--linear]: expected --method lm, gn, dogleg or newton");
  EXPECT_NE(refusal<PoseGraphRun>({{"linear", "cholesky"}, {"max_linear_iterations", "5"}}), "");
  EXPECT_EQ(refusal<PoseGraphRun>({{"linear", "schur-pcg"}, {"max_linear_iterations", "5"}}), "");
  for (const auto& [option, method] : {std::pair("damping", "gn"),
                                       {"initial_damping", "dogleg"},
                                       {"initial_radius", "lm"},
                                       {"lbfgs_history", "gn"},
                                       {"learning_rate", "lm"},
                                       {"momentum", "adam"},
                                       {"weight_decay", "sgd"}}) {
    const std::string value = std::string(option) == "damping" ? "identity" : "2";
    EXPECT_NE(refusal<PoseGraphRun>({{"method", method}, {option, value}}), "") << option;
  }
  EXPECT_EQ(refusal<PoseGraphRun>({{"method", "sgd"}, {"momentum", "0.5"}, {"learning_rate", "1"}}), "");
  EXPECT_NE(refusal<PoseGraphRun>({{"threshold", "5"}}), "");
  EXPECT_EQ(refusal<PoseGraphRun>({{"threshold", "5"}, {"backend", "auto"}}), "");
  EXPECT_NE(refusal<PoseGraphRun>({{"graduation", "2"}}), "") << "a loss without a scale";
  EXPECT_EQ(refusal<PoseGraphRun>({{"graduation", "2"}, {"loss", "huber:1"}}), "");
  EXPECT_NE(refusal<PoseGraphRun>({{"graduation_iterations", "2"}, {"loss", "huber:1"}}), "");
}

// A mesh's energy has a method of its own, by which options count.
TEST(SolveOptions, AnEnergysMethodCounts) {
  EXPECT_EQ(refusal<MeshRun>({{"energy", "springs"}, {"initial_damping", "2"}}), "");
  EXPECT_NE(refusal<MeshRun>({{"energy", "cloth"}, {"initial_damping", "2"}}), "") << "newton";
  EXPECT_EQ(refusal<MeshRun>({{"energy", "cloth"}, {"initial_damping", "2"}, {"method", "lm"}}), "");
  EXPECT_EQ(refusal<MeshRun>({{"energy", "cloth"}, {"iterations", "2"}, {"max_iterations", "3"}}),
            "--iterations with --max-iterations [lockstep command]: expected one of them");
  EXPECT_EQ(refusal<MeshRun>({{"energy", "cloth"}, {"width", "200"}}),
            "nothing shows it [--width]: expected --picture too");
}

TEST(SolveOptions, AScenesOptionsNeedTheScene) {
  EXPECT_NE(refusal<BundleRun>({{"noise", "2"}}), "");
  EXPECT_NE(refusal<BundleRun>({{"cameras", "2"}, {"observations", "20"}}), "") << "and a file";
}

TEST(SolveOptions, LossesHaveTexts) {
  for (const char* text : {"none", "huber:1.5", "geman_mcclure:0.25"})
    EXPECT_EQ(to_text(parse_robust_loss(text)), text);
  EXPECT_EQ(to_text(parse_robust_loss("tolerant:1,0.5")), "expression");
}

TEST(SolveOptions, TheTablesOfTheGuideAreCurrent) {
  for (const NamedSchema& schema : schemas())
    test::expect_committed(LOCKSTEP_SOURCE_DIR "/docs/solve-options.md", "options " + schema.command,
                           markdown_table(*schema.options));
}

}  // namespace
}  // namespace lockstep::solve
