// Declarations of pde's options: what holds of each of them, and the tables of docs/pde-options.md.
#include <gtest/gtest.h>

#include "core/schema/table.hpp"
#include "core/schema_walk.hpp"
#include "lockstep/pde/commands.hpp"

namespace lockstep::pde {
namespace {

TEST(PdeOptions, EveryOptionIsRefusedInThreeVocabularies) {
  test::walk<LossRunOptions>();
  test::walk<TrajectoryRunOptions>();
  test::walk<CheckRunOptions>();
  test::walk<StudyOptions>();
  test::walk<ExampleOptions>();
  test::walk<ConvergenceOptions>();
}

TEST(PdeOptions, DefaultsPassTheirOwnChecks) {
  for (const NamedSchema& schema : schemas())
    EXPECT_NO_THROW(schema.options->check(schema.options->defaults())) << schema.command;
}

TEST(PdeOptions, EnumerationsAreComplete) {
  EXPECT_TRUE(test::is_complete<Path>() && test::is_complete<Gradients>());
}

/// The error of options by their names, or empty.
template <class Run>
std::string refusal(Run& run, const std::vector<std::pair<std::string, std::string>>& texts) {
  return test::refusal(run, {"input", "spacing", "dt"}, texts);
}
template <class Run>
std::string refusal(const std::vector<std::pair<std::string, std::string>>& texts) {
  Run run;
  return refusal(run, texts);
}

TEST(PdeOptions, TermsAreAList) {
  const auto terms = [](const std::string& text) {
    LossRunOptions o;
    o.run.terms.weight_u = 3;
    EXPECT_EQ(refusal(o, {{"terms", text}}), "");
    EXPECT_EQ(o.run.terms.weight_u, 3) << "weights are options of their own";
    return o.run.terms;
  };
  EXPECT_FALSE(terms("momentum").sigma_transport);
  EXPECT_TRUE(terms("transport,compression").sigma_divergence);
  EXPECT_FALSE(terms("transport").sigma_divergence);
  EXPECT_TRUE(terms("all,upwind").upwind);
  EXPECT_EQ(terms("all,viscosity:0.25").viscosity, 0.25);
  EXPECT_EQ(terms("divergence:2").weight_divergence, 2);
  for (const auto& [text, what] :
       {std::pair("gravity", "unknown term 'gravity' [--terms]: expected all, transport"),
        {"compression", "compression without transport"},
        {"transport,pressure", "without momentum"},
        {"upwind", "no term of the loss"},
        {"all,viscosity", "term 'viscosity' [--terms]: expected viscosity:NUMBER of 0 or more"},
        {"all,viscosity:-1", "viscosity:NUMBER"},
        {"all:2", "unknown term"},
        {"all,viscosity:1,viscosity:2", "term 'viscosity' twice [--terms]: expected each term once"},
        {"momentum:2", "momentum without a number"},
        {"all,", "values between commas"}})
    EXPECT_NE(refusal<LossRunOptions>({{"terms", text}}).find(what), std::string::npos)
        << text << ": " << refusal<LossRunOptions>({{"terms", text}});
}

TEST(PdeOptions, BoundariesOfFieldsAreOptionsOfTheirOwn) {
  LossRunOptions o;
  EXPECT_EQ(refusal(o, {{"boundary_ux", "x=clamp"}, {"boundary", "clamp"}}), "");
  ASSERT_EQ(o.run.boundaries.size(), 1u);
  EXPECT_EQ(o.run.boundaries.at("ux").text(), BoundaryConditions::parse("x=clamp").text());
  EXPECT_EQ(refusal<LossRunOptions>({{"boundary_uy", "x=wall"}}).substr(0, 40),
            "unknown boundary \"wall\" [--boundary-uy]:");
  EXPECT_NE(refusal<LossRunOptions>({{"boundary_p", "clamp"}}), "");
  EXPECT_EQ(refusal<LossRunOptions>({{"boundary_p", "clamp"}, {"terms", "all,pressure"}}), "");
  EXPECT_NE(refusal<LossRunOptions>({{"boundary_sigma", "clamp"}, {"terms", "momentum"}}), "");
  try {
    BoundaryConditions::parse("x-=clamp");
    ADD_FAILURE();
  } catch (const InputError& e) {
    EXPECT_STREQ(
        e.what(),
        "one side of x is periodic [boundary x-=clamp]: expected both sides of an axis periodic, or none");
  }
}

TEST(PdeOptions, CommandsHaveTheKernelsThatTheyCan) {
  LossRunOptions loss;
  EXPECT_EQ(refusal(loss, {{"kernel", "reference"}}), "");
  EXPECT_TRUE(loss.run.reference);
  EXPECT_EQ(refusal(loss, {{"kernel", "two-sweep"}}), "");
  EXPECT_EQ(loss.run.path, Path::two_sweep);
  EXPECT_FALSE(loss.run.reference);
  EXPECT_EQ(refusal<TrajectoryRunOptions>({{"kernel", "reference"}}),
            "'reference' [--kernel]: expected one of auto|fused|two-kernel");
  EXPECT_NE(refusal<TrajectoryRunOptions>({{"gradients", "t1"}}), "");
  EXPECT_NE(refusal<CheckRunOptions>({{"kernel", "reference"}}), "");
  EXPECT_NE(refusal<LossRunOptions>({{"out", "g.npz"}, {"gradients", "none"}}), "");
}

TEST(PdeOptions, AStudysOptionsNeedTheirKernel) {
  EXPECT_NE(refusal<StudyOptions>({{"levels", "8"}}), "");
  EXPECT_EQ(refusal<StudyOptions>({{"levels", "8"}, {"kernels", "fused,trajectory"}}), "");
  EXPECT_NE(refusal<StudyOptions>({{"tiles", "32x4x1"}, {"kernels", "two-kernel"}}), "");
  StudyOptions o;
  EXPECT_EQ(refusal(o, {{"boundaries", "clamp;x=clamp,y=periodic"}, {"orders", "2,8"}, {"system", "flow"}}),
            "");
  EXPECT_EQ(o.boundaries, (std::vector<std::string>{"clamp", "x=clamp,y=periodic"}));
  EXPECT_EQ(o.orders, (std::vector<int>{2, 8}));
  EXPECT_TRUE(o.flow);
  EXPECT_NE(refusal<StudyOptions>({{"boundaries", "clamp;wall"}}), "");
}

TEST(PdeOptions, StudiesAsJson) {
  StudyResult study;
  study.flow = true;
  study.copy_gbps = 8;
  study.csv = "s.csv";
  StudyRow& row = study.rows.emplace_back();
  row.size = "8x8x8", row.boundary = "clamp", row.kernel = "fused", row.gradients = "all", row.order = 4;
  row.ms = {1, 2}, row.skipped = "no room";
  EXPECT_EQ(to_json(study),
            R"({"system":"flow","copy_gbps":8.0,"csv":"s.csv","results":[{"size":"8x8x8","boundary":"clamp",)"
            R"("kernel":"fused","tile":"","gradients":"all","order":4,"mean_ms":0.0,"median_ms":0.0,)"
            R"("p95_ms":0.0,"iterations":2,"bytes":0.0,"gbps":0.0,"share_of_copy":0.0,)"
            R"("speedup_over_two_kernel":0.0,"skipped":"no room"}]})");
  EXPECT_EQ(to_json(ConvergenceResult{{{"wave", 2, 10, 0.5}}, {{"wave", 2, 1.75}}, "", "p.svg"}),
            R"({"results":[{"field":"wave","order":2,"cells":10,"residual":0.5}],)"
            R"("observed":[{"field":"wave","order":2,"observed":1.75}],"csv":"","out":"p.svg"})");
}

TEST(PdeOptions, TheTablesAreCurrent) {
  for (const NamedSchema& schema : schemas())
    test::expect_committed(LOCKSTEP_SOURCE_DIR "/docs/pde-options.md", "options " + schema.command,
                           markdown_table(*schema.options));
}

}  // namespace
}  // namespace lockstep::pde
