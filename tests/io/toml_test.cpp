#include "io/text/toml.hpp"

#include <fmt/format.h>
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
      {"a = 1\nb = \n", "'\\n' found in key-value pair [t.toml:2]: expected value"},
      {"a = 1\na = 2\n",
       "key-value pair: cannot redefine existing integer 'a' [t.toml:2]: expected valid TOML"},
      {"[a]\n[a]\n", "table header: cannot redefine existing table 'a' [t.toml:2]: expected valid TOML"},
      {"a = 1\n[a]\n",
       "table header: cannot redefine existing integer 'a' as table [t.toml:2]: expected valid TOML"},
      {"a = 1\n[a.b]\n",
       "table header: cannot redefine existing integer 'a.b' as table [t.toml:2]: expected valid TOML"},
      {"a = \"x\n",
       "string: unescaped control characters other than TAB (U+0009) are explicitly prohibited [t.toml:1]: "
       "expected valid TOML"},
      {"a = [1, 2\n", "array: encountered end-of-file [t.toml:1]: expected valid TOML"},
      {"a = {x = 1\n}", "'\\n' found in inline table [t.toml:1]: expected key or closing '}'"},
      {"a = 01\n", "decimal integer: leading zeroes are prohibited [t.toml:1]: expected valid TOML"},
      {"a = 1__0\n", "decimal integer: underscores may only follow digits [t.toml:1]: expected valid TOML"},
      {"a = 1. \n", "' ' found in floating-point [t.toml:1]: expected decimal digit"},
      {"b = 1\na = 2015-06-21\n",
       "a date or time found [t.toml:2]: expected a string in quotes, a number, true or false"},
      {"a = 99999999999999999999\n",
       "decimal integer: '99999999999999999999' is not representable in 64 bits [t.toml:1]: expected valid "
       "TOML"},
      {"a = 1 b = 2\n", "'b' found in key-value pair [t.toml:1]: expected a comment or whitespace"},
      {"a 1\n", "'1' found in key-value pair [t.toml:1]: expected '='"},
      {"[a\n", "'\\n' found in table header [t.toml:1]: expected ']'"},
      {"[[a]\n", "'\\n' found in table header [t.toml:1]: expected ']'"},
      {"= 1\n", "'=' found in root table [t.toml:1]: expected keys, tables, whitespace or comments"},
      {"a = \"\\q\"\n", "string: unknown escape sequence '\\q' [t.toml:1]: expected valid TOML"},
      {"a = \"\\ud800\"\n",
       "unicode scalar sequence: unicode surrogates (U+D800 - U+DFFF) are explicitly prohibited [t.toml:1]: "
       "expected valid TOML"},
      {"a = 1\nb = \"\xff\"\n", "Encountered invalid utf-8 sequence [t.toml:2]: expected valid TOML"},
      {"a.b = 1\na = 2\n",
       "key-value pair: cannot redefine existing table 'a' [t.toml:2]: expected valid TOML"},
      {"a = {b = 1}\na.c = 2\n",
       "key-value pair: cannot redefine existing table as dotted key-value pair [t.toml:2]: expected valid "
       "TOML"},
      {"a = {b.c = 1}\n[a.b]\n",
       "table header: cannot insert 'a.b' into existing inline table [t.toml:2]: expected valid TOML"},
      {"a = [1]\n[[a]]\n",
       "table header: cannot redefine existing array 'a' as array-of-tables [t.toml:2]: expected valid TOML"},
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
  // Dots that are no key.
  std::string prose = "# " + std::string(300, '.');
  for (int k = 0; k < 300; ++k) prose += " a sentence.";
  EXPECT_TRUE(parse_toml(prose, "t").empty());
}

// Where toml++ looks for white space beyond ASCII; -fsanitize=undefined ends the program without the tables of toml.cpp.
TEST(Toml, LettersBeyondAsciiWhereWhiteSpaceMayBe) {
  for (const char* letter : {"\u00e9", "\u0101", "\u0499", "\u3001", "\ufe00"}) {
    for (const char* form : {"x = 1{}", "{} = 1", "x{} = 1", "x ={} 1", "[a{}]", "x = [1{}, 2]"})
      EXPECT_THROW(parse_toml(fmt::format(fmt::runtime(form), letter), "t.toml"), InputError)
          << form << letter;
    for (const char* form : {"x = '{}' # {}", "x = \"\"\"\\\n  {}\"\"\"", "\"{}\" = 1", "x = \"{}\\u00e9\""})
      EXPECT_EQ(parse_toml(fmt::format(fmt::runtime(form), letter, letter), "t.toml").size(), 1u)
          << form << letter;
  }
}

TEST(Toml, MembersStandInTheFilesOrder) {
  const TomlTable doc = parse_toml("z = 1\nb.y = 2\na = 3\nb.c = 4\n[t]\n[d]\nq = 1\nc = 2\n", "t.toml");
  std::string order;
  for (const auto& [name, value] : doc) order += name;
  EXPECT_EQ(order, "zbatd");
  EXPECT_EQ(at(doc, "b").table("t").front().first, "y");
  EXPECT_EQ(at(doc, "d").table("t").front().first, "q");
}

TEST(Toml, WrongKindNamesTheLine) {
  const TomlTable doc = parse_toml("\na = \"x\"", "t.toml");
  try {
    at(doc, "a").number("t.toml");
    FAIL();
  } catch (const InputError& e) { EXPECT_STREQ(e.what(), "a string found [t.toml:2]: expected a number"); }
}

}  // namespace
