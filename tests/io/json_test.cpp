// The reader of JSON: what it refuses, and errors that name the path of a value.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "io/checks.hpp"
#include "io/text/input_memory.hpp"
#include "io/text/json_text.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

std::string error_in(const std::string& text) {
  return error_of([&] { parse_json(text, "a.json"); });
}

TEST(Json, WhatIsNoDocumentIsRefused) {
  EXPECT_EQ(error_in("{\n\"a\": tru}"), "text that is not JSON [a.json:2]: expected JSON");
  EXPECT_EQ(error_in(""), "text that is not JSON [a.json:1]: expected JSON");
  EXPECT_TRUE(has(error_in("[1e999]"), "too large"));
  EXPECT_TRUE(has(error_in("{\"a\": {\"b\": 1, \"c\": 2, \"b\": 3}}"), "the name 'b' is repeated [a.json]"));
  EXPECT_EQ(error_in("[{\"a\": 1}, {\"a\": {\"a\": 2}}]"), "no InputError");
}

TEST(Json, DepthIsBounded) {
  const auto nested = [](int levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(error_in(nested(200)), "no InputError");
  EXPECT_TRUE(has(error_in(nested(201)), "JSON of at most 200 levels"));
  EXPECT_EQ(error_in("\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\""),
            "no InputError");
}

TEST(Json, OrderIsKeptForFewMembers) {
  EXPECT_EQ(parse_ordered_json("{\"b\": 1, \"a\": 2}", "a.json").dump(), "{\"b\":1,\"a\":2}");
  std::string text = "{";
  for (int k = 0; k < 1001; ++k) text += "\"" + std::to_string(k) + "\": 0,";
  text.back() = '}';
  EXPECT_TRUE(has(error_of([&] { parse_ordered_json(text, "a.json"); }), "more than 1000 members"));
  EXPECT_EQ(parse_json(text, "a.json").size(), 1001u);
}

TEST(Json, ErrorsNameThePath) {
  const JsonValue j = JsonValue::parse(
      R"({"results": [{"ms": 1.5}, {"ms": "x", "n": 7, "big": 18446744073709551615, "on": true}], "none": null})",
      "a.json");
  const JsonValue second = j.at("results").items().at(1);
  EXPECT_EQ(error_of([&] { second.at("ms").number(); }),
            "results[1].ms is a string [a.json]: expected a number");
  EXPECT_EQ(error_of([&] { second.at("s"); }),
            "results[1] has no member 's' [a.json]: expected one of that name");
  EXPECT_EQ(error_of([&] { second.at("n").integer(0, 5); }), "results[1].n is 7 [a.json]: expected 0 to 5");
  EXPECT_TRUE(has(error_of([&] { second.at("big").integer(0, 5); }), "is 18446744073709551615"));
  EXPECT_EQ(second.at("big").bits(), ~uint64_t{0});
  EXPECT_EQ(error_of([&] { j.at("none").members(); }), "none is null [a.json]: expected an object");
  EXPECT_EQ(error_of([&] { j.items(); }), "the document is an object [a.json]: expected an array");
  EXPECT_TRUE(has(error_of([&] { j.at("results").items(3); }), "results has 2 items"));
  EXPECT_TRUE(has(error_of([&] { second.at("on").text(); }), "results[1].on is a boolean"));
  EXPECT_TRUE(second.at("on").boolean());
  EXPECT_FALSE(second.find("other").has_value());
  EXPECT_EQ(second.at("n").integer(7, 7), 7);
  EXPECT_EQ(second.at("ms").text(), "x");
}

TEST(Json, DocumentsCountInTheBudget) {
  const std::string text = "[" + std::string(1 << 20, ' ') + "]";
  set_input_memory(int64_t{80} << 20);
  {
    const JsonValue held = JsonValue::parse(text, "a.json");
    EXPECT_TRUE(has(error_of([&] { JsonValue::parse(text, "b.json"); }), "[b.json]"));
  }
  EXPECT_EQ(JsonValue::parse(text, "b.json").items().size(), 0u);
  set_input_memory(0);
}

}  // namespace
