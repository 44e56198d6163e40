#include "io/text/toml.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;

const TomlValue& at(const TomlTable& table, std::string_view key) {
  const TomlValue* value = find(table, key);
  if (!value) throw std::out_of_range(std::string(key));
  return *value;
}

TEST(Toml, ValuesOfEveryKind) {
  const TomlTable doc = parse_toml(R"(# a comment
title = "a \"quoted\" \u00e9\tname"   # another
path = 'C:\dir'
count = 1_000
negative = -17
hex = 0xff
oct = 0o17
bin = 0b101
pi = 3.141_5
tiny = -1e-3
whole = 2E6
inf = -inf
yes = true
no = false
list = [ 1, 2.5, "x", [true],
  # inside
]
point = { x = 1, y.z = 2 }
text = """
first \
   second
third"""
raw = '''a\b'''
"quoted key" = 1
)",
                                   "t.toml");
  EXPECT_EQ(at(doc, "title").text("t"), "a \"quoted\" \xc3\xa9\tname");
  EXPECT_EQ(at(doc, "path").text("t"), "C:\\dir");
  EXPECT_EQ(at(doc, "count").integer("t"), 1000);
  EXPECT_EQ(at(doc, "negative").integer("t"), -17);
  EXPECT_EQ(at(doc, "hex").integer("t"), 255);
  EXPECT_EQ(at(doc, "oct").integer("t"), 15);
  EXPECT_EQ(at(doc, "bin").integer("t"), 5);
  EXPECT_EQ(at(doc, "pi").number("t"), 3.1415);
  EXPECT_EQ(at(doc, "tiny").number("t"), -1e-3);
  EXPECT_EQ(at(doc, "whole").number("t"), 2e6);
  EXPECT_EQ(at(doc, "inf").number("t"), -INFINITY);
  EXPECT_TRUE(at(doc, "yes").boolean("t"));
  EXPECT_FALSE(at(doc, "no").boolean("t"));
  ASSERT_EQ(at(doc, "list").array("t").size(), 4u);
  EXPECT_EQ(at(doc, "list").array("t")[1].number("t"), 2.5);
  EXPECT_TRUE(at(doc, "list").array("t")[3].array("t")[0].boolean("t"));
  EXPECT_EQ(at(at(at(doc, "point").table("t"), "y").table("t"), "z").integer("t"), 2);
  EXPECT_EQ(at(doc, "text").text("t"), "first second\nthird");
  EXPECT_EQ(at(doc, "raw").text("t"), "a\\b");
  EXPECT_EQ(at(doc, "quoted key").integer("t"), 1);
}

TEST(Toml, TablesAndArraysOfTables) {
  const TomlTable doc = parse_toml(R"([a.b]
x = 1
[a]
y = 2
[[point]]
name = "p"
[point.at]
x = 0.5
[[point]]
name = "q"
[c]
d.e = 1
d.f = 2
)",
                                   "t.toml");
  EXPECT_EQ(at(at(at(doc, "a").table("t"), "b").table("t"), "x").integer("t"), 1);
  EXPECT_EQ(at(at(doc, "a").table("t"), "y").integer("t"), 2);
  const TomlArray& points = at(doc, "point").array("t");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(at(at(points[0].table("t"), "at").table("t"), "x").number("t"), 0.5);
  EXPECT_EQ(at(points[1].table("t"), "name").text("t"), "q");
  EXPECT_EQ(points[1].line(), 9);
  EXPECT_EQ(at(at(at(doc, "c").table("t"), "d").table("t"), "f").integer("t"), 2);
}

TEST(Toml, EmptyAndUnusualLineEnds) {
  EXPECT_TRUE(parse_toml("", "t").empty());
  EXPECT_TRUE(parse_toml("\xef\xbb\xbf# only a comment", "t").empty());
  EXPECT_EQ(at(parse_toml("a = 1\r\nb = \"x\"\r\n", "t"), "b").line(), 2);
}

TEST(Toml, MistakesNameTheLine) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"a = 1\nb = \n", "a value is missing [t.toml:2]: expected a value"},
      {"a = 1\na = 2\n", "'a' stands here twice [t.toml:2]: expected each key once"},
      {"[a]\n[a]\n", "'a' exists already [t.toml:2]: expected each table once"},
      {"a = 1\n[a]\n", "'a' exists already [t.toml:2]: expected each table once"},
      {"a = 1\n[a.b]\n", "'a' is no table [t.toml:2]: expected a table"},
      {"a = \"x\n", "the string is not closed [t.toml:1]: expected \""},
      {"a = [1, 2\n", "the array is not closed [t.toml:2]: expected , or ]"},
      {"a = {x = 1\n}", "the inline table is not closed [t.toml:1]: expected , or }"},
      {"a = 01\n", "'01' is no value [t.toml:1]: expected a string in quotes, a number, true or false"},
      {"a = 1__0\n", "'1__0' is no value [t.toml:1]: expected a string in quotes, a number, true or false"},
      {"a = 1. \n", "'1.' is no value [t.toml:1]: expected a string in quotes, a number, true or false"},
      {"a = 2015-06-21\n",
       "'2015-06-21' is no value [t.toml:1]: expected a string in quotes, a number, true or false"},
      {"a = 99999999999999999999\n",
       "the integer 99999999999999999999 is too large [t.toml:1]: expected an integer of 64 bits"},
      {"a = 1 b = 2\n", "unexpected 'b' [t.toml:1]: expected the end of the line"},
      {"a 1\n", "'a' has no value [t.toml:1]: expected ="},
      {"[a\n", "the header is not closed [t.toml:1]: expected ]"},
      {"[[a]\n", "the header is not closed [t.toml:1]: expected ]]"},
      {"= 1\n", "unexpected '=' [t.toml:1]: expected a key"},
      {"a = \"\\q\"\n",
       "an unknown escape [t.toml:1]: expected \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX or \\UXXXXXXXX"},
      {"a = \"\\ud800\"\n",
       "a malformed Unicode escape [t.toml:1]: expected \\uXXXX or \\UXXXXXXXX of a character"},
      {"a = 1\n\xff = 2\n", "the text is not UTF-8 [t.toml:1]: expected UTF-8"},
      {"a.b = 1\na = 2\n", "'a' stands here twice [t.toml:2]: expected each key once"},
      {"a = {b = 1}\na.c = 2\n", "'a' exists already [t.toml:2]: expected a name that is free"},
      {"a = {b.c = 1}\n[a.b]\n", "'a' is no table [t.toml:2]: expected a table"},
      {"a = [1]\n[[a]]\n",
       "'a' exists already [t.toml:2]: expected a new name, or more of an array of tables"},
  };
  for (const auto& c : kCases) {
    try {
      parse_toml(c.text, "t.toml");
      ADD_FAILURE() << "accepted: " << c.text;
    } catch (const InputError& e) { EXPECT_STREQ(e.what(), c.message) << c.text; }
  }
}

TEST(Toml, DeepNestingIsAnErrorAndNoCrash) {
  EXPECT_THROW(parse_toml("a = " + std::string(100'000, '['), "t"), InputError);
  std::string tables = "a = ";
  for (int k = 0; k < 100'000; ++k) tables += "{a=";
  EXPECT_THROW(parse_toml(tables, "t"), InputError);
  std::string key = "a";
  for (int k = 0; k < 100'000; ++k) key += ".a";
  EXPECT_THROW(parse_toml(key + " = 1", "t"), InputError);
}

TEST(Toml, WrongKindNamesTheLine) {
  const TomlTable doc = parse_toml("\na = \"x\"", "t.toml");
  try {
    at(doc, "a").number("t.toml");
    FAIL();
  } catch (const InputError& e) { EXPECT_STREQ(e.what(), "a string found [t.toml:2]: expected a number"); }
}

}  // namespace
