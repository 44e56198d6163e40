// Declarations of flow's options: what holds of each of them, and the tables of docs/flow.md.
#include <gtest/gtest.h>

#include "core/schema/table.hpp"
#include "core/schema_walk.hpp"
#include "flow/run/checkpoint.hpp"
#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {
namespace {

template <class Options>
void walk() {
  const OptionList& list = schema_of<Options>();
  test::expect_refusals(list, [] { return std::make_shared<Options>(); });
  test::expect_texts(list, [] { return std::make_shared<Options>(); });
}

TEST(FlowOptions, EveryOptionIsRefusedInThreeVocabularies) {
  walk<SolverOptions>();
  walk<RunOptions>();
  walk<EncodeRunOptions>();
  walk<DecodeRunOptions>();
  walk<LearnRunOptions>();
  walk<RolloutRunOptions>();
  walk<PipelineSweep>();
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

// An enumeration's table has all of its values: one without a name would print as "?".
TEST(FlowOptions, EnumerationsAreComplete) {
  const auto count = [](auto value) {
    using E = decltype(value);
    int k = 0;
    while (k < 64 && name(E(k)) != "?") ++k;
    return size_t(k) == choices(value).size();
  };
  EXPECT_TRUE(count(Integrator{}) && count(Dealias{}) && count(Closure{}) && count(ClosureForm{}));
  EXPECT_TRUE(count(Averaging{}) && count(Advection{}) && count(ForcingKind{}) && count(Initial{}));
  EXPECT_TRUE(count(CodecKind{}) && count(Decoder{}) && count(Anchors{}) && count(SurrogateMethod{}));
  EXPECT_TRUE(count(RolloutMode{}) && count(Place{}) && count(RunOptions::Format{}));
}

TEST(FlowOptions, TheTablesOfTheGuideAreCurrent) {
  for (const NamedSchema& schema : schemas())
    test::expect_committed(LOCKSTEP_SOURCE_DIR "/docs/flow.md", "options " + schema.command,
                           markdown_table(*schema.options));
}

}  // namespace
}  // namespace lockstep::flow
