// Declarations of flow's options: what holds of each of them, and the tables of docs/flow.md.
#include <gtest/gtest.h>

#include "core/schema/table.hpp"
#include "core/schema_walk.hpp"
#include "flow/run/checkpoint.hpp"
#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {
namespace {

TEST(FlowOptions, EveryOptionIsRefusedInThreeVocabularies) {
  test::walk<SolverOptions>();
  test::walk<RunOptions>();
  test::walk<EncodeRunOptions>();
  test::walk<DecodeRunOptions>();
  test::walk<LearnRunOptions>();
  test::walk<RolloutRunOptions>();
  test::walk<PipelineSweep>();
}

TEST(FlowOptions, DefaultsPassTheirOwnChecks) {
  for (const NamedSchema& schema : schemas())
    if (schema.command != "flow.rollout") {  // whose number of steps has no default
      EXPECT_NO_THROW(schema.options->check(schema.options->defaults())) << schema.command;
    }
}

/// Options that change the numbers, and no others, change the identity that a checkpoint compares.
TEST(FlowOptions, TheIdentityIsOfWhatChangesTheResult) {
  const OptionList& list = schema_of<RunOptions>();
  const Array field = initial_field({16, 16}, Initial::taylor_green);
  RunOptions plain;
  plain.model.closure = Closure::smagorinsky;
  const std::string hash = identity_of(plain, field).hash();
  for (const Option& option : list.options()) {
    RunOptions changed = plain;
    Given given;
    list.set(&changed, option.name, test::other_value(option, list.value(&plain, option.name)), given);
    const bool same = identity_of(changed, field).hash() == hash;
    EXPECT_EQ(same, option.effect != Effect::result) << option.name;
  }
}

TEST(FlowOptions, AConstantThatIsTheDefaultIsTheSameRun) {
  RunOptions plain, given;
  plain.model.closure = given.model.closure = Closure::smagorinsky;
  given.model.constant = 0.17;
  EXPECT_EQ(identity_of(plain, {}).hash(), identity_of(given, {}).hash());
}

TEST(FlowOptions, EnumerationsAreComplete) {
  EXPECT_TRUE(test::is_complete<Integrator>() && test::is_complete<Dealias>() &&
              test::is_complete<Closure>() && test::is_complete<ClosureForm>());
  EXPECT_TRUE(test::is_complete<Averaging>() && test::is_complete<Advection>() &&
              test::is_complete<ForcingKind>() && test::is_complete<Initial>());
  EXPECT_TRUE(test::is_complete<CodecKind>() && test::is_complete<Decoder>() &&
              test::is_complete<Anchors>() && test::is_complete<SurrogateMethod>());
  EXPECT_TRUE(test::is_complete<RolloutMode>() && test::is_complete<Place>() &&
              test::is_complete<RunOptions::Format>());
}

TEST(FlowOptions, TheTablesOfTheGuideAreCurrent) {
  for (const NamedSchema& schema : schemas())
    test::expect_committed(LOCKSTEP_SOURCE_DIR "/docs/flow.md", "options " + schema.command,
                           markdown_table(*schema.options));
}

}  // namespace
}  // namespace lockstep::flow
