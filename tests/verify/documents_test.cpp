// Results as trees of JSON: the numbers themselves, and the trees that their texts describe.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lockstep/lockstep.hpp"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

/// A number that has no short text, the smallest one, a negative zero.
constexpr double kThird = 1.0 / 3, kTiny = std::numeric_limits<double>::denorm_min();

void expect_bits(const ordered_json& member, double expected) {
  ASSERT_TRUE(member.is_number_float()) << member;
  EXPECT_EQ(std::bit_cast<uint64_t>(member.get<double>()), std::bit_cast<uint64_t>(expected));
}

/// The tree of the text, and the tree: alike in names, order, types and numbers, where those are finite.
template <class Result>
ordered_json same_as_text(const Result& result) {
  ordered_json document = document_of(result);
  EXPECT_EQ(document.dump(), ordered_json::parse(to_json(result)).dump());
  return document;
}

TEST(Documents, HaveTheNumbersOfTheResult) {
  const ordered_json d = same_as_text(
      pde::ConvergenceResult{{{"u", 2, 10, kThird}, {"v", 4, 20, kTiny}}, {{"u", 2, -0.0}}, "", ""});
  expect_bits(d["results"][0]["residual"], kThird);
  expect_bits(d["results"][1]["residual"], kTiny);
  expect_bits(d["observed"][0]["observed"], -0.0);
  EXPECT_TRUE(d["results"][0]["order"].is_number_integer());
}

// A text has null for them, as JSON has no such numbers.
TEST(Documents, KeepWhatATextCannotHold) {
  const pde::ConvergenceResult result{{{"u", 2, 10, NAN}}, {}, "", ""};
  EXPECT_TRUE(std::isnan(document_of(result)["results"][0]["residual"].get<double>()));
  EXPECT_TRUE(ordered_json::parse(to_json(result))["results"][0]["residual"].is_null());
}

// Documents that contain others have them as they are.
TEST(Documents, ContainDocuments) {
  pde::FileRun file;
  file.result.loss = kThird;
  file.out = "a.npz";
  ordered_json d = same_as_text(file);
  expect_bits(d["loss"], kThird);
  EXPECT_EQ(d["out"], "a.npz");

  forecast::SweepRun sweep;
  sweep.rows.push_back({});
  sweep.rows.back().saved = kThird;
  sweep.sweeps = 3;
  d = same_as_text(sweep);
  EXPECT_EQ(d["policies"].dump(), document_of(sweep.rows).dump());
  expect_bits(d["policies"][0]["saved"], kThird);

  flow::SweepResult runs;
  runs.files = {"b.json"};
  d = same_as_text(runs);
  EXPECT_EQ(d.dump(), R"({"runs":[],"files":["b.json"]})");

  urban::ValidationResult validation;
  validation.variables.emplace_back("Tmrt", urban::Agreement{.n = 2, .rmse = kThird});
  validation.series.latitude_deg = kThird;
  d = same_as_text(validation);
  EXPECT_EQ(d["run"].dump(), document_of(validation.series).dump());
  expect_bits(d["variables"]["Tmrt"]["rmse"], kThird);
  expect_bits(d["run"]["place"]["latitude"], kThird);

  solve::NistRunResult fit;
  fit.parameters = {kThird};
  fit.summary.final_cost = kTiny;
  fit.files.emplace_back("plot", "c.svg");
  d = same_as_text(fit);
  expect_bits(d["parameters"][0], kThird);
  expect_bits(d["final_cost"], kTiny);
  EXPECT_EQ(d["plot"], "c.svg");
}

}  // namespace
}  // namespace lockstep
