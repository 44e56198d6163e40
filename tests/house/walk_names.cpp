// The rows of the guides to models in options, help and messages. test_walks_models.py builds it in a scratch copy.
#include <gtest/gtest.h>

#include "lockstep/flow.hpp"
#include "lockstep/pde.hpp"
#include "lockstep/solve.hpp"
#include "lockstep/urban/series.hpp"

namespace lockstep {
namespace {

TEST(Names, RowsReachTheOptions) {
  EXPECT_EQ(choices(solve::Method{}).back().value, solve::Method::lion);
  EXPECT_EQ(name(solve::Method::lion), "lion");
  EXPECT_EQ(name(solve::Method::adamw), "adamw");
  EXPECT_EQ(name(flow::Closure::vorticity), "vorticity");
  EXPECT_EQ(choices(urban::SkyModel{}).back().name, "overcast");
  EXPECT_TRUE(pde::boundary_rules().ends_with("one_sided2, node_odd"));
  EXPECT_EQ(pde::BoundaryConditions::parse("x=node_odd").text(), "x=node_odd,y=periodic,z=periodic");
}

// A method that has decay, a closure that has a constant.
TEST(Names, RowsReachTheRules) {
  const auto refused = [](auto options, std::vector<std::string> given) {
    const OptionList& list = schema_of<decltype(options)>();
    Given names;
    for (const std::string& name : given) names.insert(name);
    list.finish(&options, names);
  };
  solve::Options lion;
  lion.method = solve::Method::lion;
  EXPECT_NO_THROW(refused(lion, {"method", "weight_decay", "learning_rate"}));
  EXPECT_THROW(refused(lion, {"method", "momentum"}), OptionError);
  flow::Model model;
  model.closure = flow::Closure::vorticity;
  EXPECT_NO_THROW(refused(model, {"closure", "constant"}));
  EXPECT_THROW(refused(model, {"closure", "averaging"}), OptionError);
}

}  // namespace
}  // namespace lockstep
