// Declarations of options: values, rules, errors in three vocabularies.
#include <gtest/gtest.h>

#include <array>

#include "core/refusal.hpp"
#include "core/schema/shell_flags.hpp"
#include "core/schema/table.hpp"
#include "core/schema_walk.hpp"

namespace lockstep::sample {

enum class Shape : uint8_t { round, square };
std::span<const Choice<Shape>> choices(Shape) {
  static constexpr auto kAll =
      std::to_array<Choice<Shape>>({{"round", Shape::round}, {"square", Shape::square}});
  return kAll;
}

struct Size {
  int64_t rows = 16, columns = 16;
};
void describe(Schema<Size>& s) {
  s.of("Size");
  s.option("rows", &Size::rows, "rows").at_least(4).shown("R");
  s.option("columns", &Size::columns, "columns").at_least(4).shown("C");
  s.group({"n", "{rows}[x{columns}]", "points", "", "", true, "{rows} x {columns} points"});
}

/// Hours and minutes.
struct Clock {
  int hours = 0, minutes = 0;
};
Clock clock_of(const std::string& text) {
  Clock c;
  if (std::sscanf(text.c_str(), "%d:%d", &c.hours, &c.minutes) != 2) throw bad_text("'" + text + "'", "");
  return c;
}
std::string clock_text(const Clock& c) { return std::to_string(c.hours) + ":" + std::to_string(c.minutes); }
/// None: an empty text.
std::optional<Clock> some_clock_of(const std::string& text) { return clock_of(text); }
std::string some_clock_text(const std::optional<Clock>& c) { return c ? clock_text(*c) : ""; }

struct Options {
  Size size;
  Shape shape = Shape::round;
  double radius = 0.25, side = 0, weight = 1;
  std::optional<double> bound;
  std::vector<int64_t> strides;
  std::string file, picture;
  bool loud = false, pictures = true;
  Clock noon{12, 0};
  std::optional<Clock> dusk;
  uint64_t seed = 0;
};
void describe(Schema<Options>& s) {
  s.of("Options");
  s.include(&Options::size);
  s.option("shape", &Options::shape, "of a cell");
  s.option("radius", &Options::radius, "of round ones").above(0).at_most(1).unit("m");
  s.option("side", &Options::side, "of square ones").above(0).off(0);
  s.option("mass", &Options::weight, "of a cell").member("weight").flag("kg").at_least(0);
  s.option("bound", &Options::bound, "on the error").at_least(0);
  s.option("strides", &Options::strides, "several").at_least(1);
  s.option("file", &Options::file, "a file").required();
  s.option("picture", &Options::picture, "of it").file(Option::Use::output_file, {".png", ".svg"});
  s.option("loud", &Options::loud, "says more").effect(Effect::display);
  s.option("pictures", &Options::pictures, "PNG a step").effect(Effect::display);
  s.option("seed", &Options::seed, "of numbers").also("random-seed").formerly("start-number");
  s.text("noon", &Options::noon, "highest sun", "H:M", &clock_text, &clock_of).example("13:5");
  s.text("dusk", &Options::dusk, "last sun", "H:M", &some_clock_text, &some_clock_of).example("21:0");
  s.group({"shape", "{shape}[:{radius}]", "a cell", "", "", false, ""});
  s.conflict("side", "bound");
  s.useless(
      "side", [](const Options& o) { return o.shape == Shape::round; }, "nothing is square",
      "{shape} square");
  s.derive([](Options& o, const Given& given) { o.seed += given.contains("loud") ? 1 : 0; });
}

/// Options that are more than a number or a name.
struct Point {
  int x = 0, y = 0;
};
struct Texts {
  Point at;
  std::optional<Shape> shape;
  int64_t most = 5, rows = 0, columns = 0;
  int level = 1;
};
std::string print_point(const Point& p) { return std::to_string(p.x) + "," + std::to_string(p.y); }
Point read_point(const std::string& text) {
  const size_t comma = text.find(',');
  if (comma == text.npos) throw InputError("no comma", "read_point", "one");
  if (text[0] == '-') throw bad_text("x below 0", "a point at the right of {shape}");
  return {std::stoi(text), std::stoi(text.substr(comma + 1))};
}
void describe(Schema<Texts>& s) {
  s.of("Texts");
  s.text("at", &Texts::at, "where", "X,Y", &print_point, &read_point).example("3,4");
  s.option("shape", &Texts::shape, "of a cell").or_else("by the level");
  s.heading("Limits");
  s.option("most", &Texts::most, "at most").at_least(1);
  s.option("level", &Texts::level, "of detail", {{"1", 1}, {"2", 2}}).in_shell(false);
  s.option("rows", &Texts::rows, "rows").at_least(1).off(0);
  s.option("columns", &Texts::columns, "columns").at_least(1).off(0);
  s.group({"size", "{rows},{columns}", "of a table", "", "", false, ""});
  s.useless(
      "most", [](const Texts& o) { return o.shape != Shape::square; }, "nothing is square", "{shape} square");
  s.prepare([](Texts& o, const Given&) {
    if (!o.shape) o.shape = o.level == 2 ? Shape::square : Shape::round;
  });
}

struct Watched {
  int64_t steps = 1;
};
void describe(Schema<Watched>& s) {
  s.of("Watched");
  s.option("steps", &Watched::steps, "steps");
  s.heading("Display");
  add_shell_flag(s, "all_rows", "rows while it runs");
  s.conflict("all_rows", "steps");
}
struct Longer : Watched {};
void describe(Schema<Longer>& s) {
  s.of("Longer");
  s.include_base<Watched>();
}

namespace {

TEST(Schema, FlagsOfTheShellAloneSetNothing) {
  const OptionList& all = schema_of<Longer>();
  const Option& flag = all.at("all_rows");
  EXPECT_TRUE(is_shell_alone(flag) && !flag.negated && flag.in_shell);
  EXPECT_EQ(flag.flag, "all-rows");
  EXPECT_EQ(flag.heading, "Display");
  EXPECT_EQ(flag.effect, Effect::display);
  Longer o;
  Given given;
  all.set(&o, "all_rows", true, given);
  EXPECT_EQ(given, Given{"all_rows"});
  EXPECT_EQ(o.steps, 1);
  EXPECT_NO_THROW(all.finish(&o, given));
  all.set_text(&o, "steps", "2", given);
  EXPECT_THROW(all.finish(&o, given), OptionError);
  EXPECT_NE(markdown_table(all).find(
                "\n| `--all-rows` |  |  | true or false | false | display | rows while it runs |\n"),
            std::string::npos)
      << markdown_table(all);
}

TEST(Schema, TextsAreReadAndPrintedByTheirOwnFunctions) {
  const OptionList& all = schema_of<Texts>();
  test::expect_refusals(all, [] { return std::make_shared<Texts>(); });
  test::expect_texts(all, [] { return std::make_shared<Texts>(); });
  const auto refusal = [&](const std::string& text) {
    Texts o;
    Given given;
    try {
      all.set_text(&o, "at", text, given);
    } catch (const OptionError& e) { return std::string(e.in(all.in_shell("program")).what()); }
    return std::string();
  };
  EXPECT_EQ(refusal("34"), "'34' [--at]: expected X,Y");
  EXPECT_EQ(refusal("-1,2"), "x below 0 [--at]: expected a point at the right of --shape");
}

TEST(Schema, AnEnumerationMayBeLeftToOthers) {
  const OptionList& all = schema_of<Texts>();
  Texts o;
  EXPECT_EQ(all.text(&o, "shape"), "");
  EXPECT_EQ(all.at("shape").choices, (std::vector<std::string>{"round", "square"}));
  // The rules see options that follow from others.
  EXPECT_THROW(all.finish(&o, {"most"}), OptionError);
  o = {};
  o.level = 2;
  EXPECT_NO_THROW(all.finish(&o, {"most"}));
  o.level = 3;
  EXPECT_THROW(all.check(&o), OptionError) << "no value of a choice";
}

TEST(Schema, WholeNumbersMayHaveAnExponent) {
  const OptionList& all = schema_of<Texts>();
  Texts o;
  Given given;
  all.set_text(&o, "most", "1e6", given);
  EXPECT_EQ(o.most, 1'000'000);
  for (const char* text : {"1e-1", "2.0", "1e400", "9e18x"})
    EXPECT_THROW(all.set_text(&o, "most", text, given), OptionError) << text;
}

TEST(Schema, HelpHasHeadingsAndNoDefaultOfNone) {
  const OptionList& all = schema_of<Texts>();
  EXPECT_EQ(all.at("at").heading, "");
  EXPECT_EQ(all.at("most").heading, "Limits");
  EXPECT_EQ(all.help_of(*all.group_of("rows"), all.in_shell("")), "of a table");
  EXPECT_EQ(all.help_of(all.at("shape"), all.in_shell("")), "of a cell (default: by the level)");
}

const OptionList& list() { return schema_of<Options>(); }
std::shared_ptr<void> made() { return std::make_shared<Options>(); }

std::string refused(const std::vector<std::pair<std::string, std::string>>& texts, const Wording& words) {
  Options o;
  Given given;
  try {
    for (const auto& [name, text] : texts) {
      const OptionGroup* group = list().find(name) ? nullptr : &list().groups().front();
      group ? list().set_group(&o, *group, text, given) : list().set_text(&o, name, text, given);
    }
    list().finish(&o, given);
  } catch (const OptionError& e) { return std::string(e.in(words).what()) + (e.in(words).hint()); }
  return "";
}

TEST(Schema, EveryOptionIsRefusedInThreeVocabularies) {
  test::expect_refusals(list(), &made);
  test::expect_texts(list(), &made);
}

TEST(Schema, ErrorsAreInTheCallersWords) {
  const Wording shell = list().in_shell("program run"), python = list().in_python("module.run");
  EXPECT_EQ(refused({{"mass", "-1"}}, shell), "'-1' [--kg]: expected a number of at least 0");
  EXPECT_EQ(refused({{"mass", "-1"}}, python),
            "'-1' [module.run, argument mass=]: expected a number of at least 0");
  EXPECT_EQ(refused({{"mass", "-1"}}, list().in_cpp()),
            "'-1' [Options::weight]: expected a number of at least 0");
  EXPECT_EQ(refused({{"mass", "1e0x"}}, shell), "'1e0x' [--kg]: expected a number of at least 0");
  EXPECT_EQ(refused({{"shape", "oval"}}, shell), "'oval' [--shape]: expected one of round|square");
  EXPECT_EQ(refused({{"side", "0"}}, shell), "'0' [--side]: expected a number above 0");
  EXPECT_EQ(refused({{"strides", "1,0"}}, shell),
            "'0' [--strides]: expected a whole number of at least 1, or several with commas between");
  EXPECT_EQ(refused({{"strides", "1,2,1"}}, shell), "1 twice [--strides]: expected each once");
  EXPECT_EQ(refused({{"n", "8x2"}}, shell), "8 x 2 points [--n]: expected a whole number of at least 4");
  EXPECT_EQ(refused({{"n", "8xy"}}, shell), "'y' [--n]: expected a whole number of at least 4");
  EXPECT_EQ(refused({{"n", "8x"}}, shell), "'8x' [--n]: expected R[xC]");
  EXPECT_EQ(refused({{"picture", "a.b/x.jpg"}, {"file", "f"}}, shell),
            "'a.b/x.jpg' ends in .jpg [--picture]: expected a name in .png or .svg");
  for (const char* name : {"x.png", "X.SVG", "a.jpg/x", ".png"})
    EXPECT_EQ(refused({{"picture", name}, {"file", "f"}}, shell), "") << name;
  EXPECT_EQ(refused({{"seed", ""}}, shell), "an empty text [--seed]: expected a whole number of at least 0");
}

// An error of a file names it in all vocabularies; what was expected of the options is in the caller's.
TEST(Schema, ErrorsOfFilesSpellTheirOptions) {
  const OptionError error = list().error(
      {OptionError::Kind::invalid, "", "no place", "{mass} or {n}", "{loud} says more", "a{b}.tif:3"});
  EXPECT_STREQ(error.what(), "no place [a{b}.tif:3]: expected Options::weight or n");
  EXPECT_STREQ(error.in(list().in_shell("program")).what(), "no place [a{b}.tif:3]: expected --kg or n");
  const OptionError python = error.in(list().in_python("module.run"));
  EXPECT_STREQ(python.what(), "no place [a{b}.tif:3]: expected mass or n");
  EXPECT_EQ(python.hint(), "loud says more");
}

TEST(Schema, RulesAreKept) {
  const Wording shell = list().in_shell("program run"), python = list().in_python("module.run");
  EXPECT_EQ(refused({}, shell), "--file is missing [program run]");
  EXPECT_EQ(refused({{"file", "f"}, {"side", "1"}}, shell),
            "nothing is square [--side]: expected --shape square");
  EXPECT_EQ(refused({{"file", "f"}, {"side", "1"}, {"bound", "1"}, {"shape", "square"}}, shell),
            "--side with --bound [program run]: expected one of them");
  EXPECT_EQ(refused({{"file", "f"}, {"side", "1"}, {"bound", "1"}, {"shape", "square"}}, python),
            "side and bound [module.run]: expected one of them");
  EXPECT_EQ(refused({{"file", "f"}, {"side", "1"}, {"shape", "square"}}, shell), "");
  Options o;
  Given given{"file", "loud"};
  list().finish(&o, given);
  EXPECT_EQ(o.seed, 1u);
}

TEST(Schema, GroupsAreTextsOfSeveral) {
  Options o;
  Given given;
  const OptionGroup &n = *list().group_of("rows"), &shape = *list().group_of("radius");
  EXPECT_EQ(list().text(&o, n), "16");
  list().set_group(&o, n, "8", given);
  EXPECT_EQ(o.size.columns, 8);
  EXPECT_EQ(given, (Given{"rows", "columns"}));
  list().set_group(&o, n, "8x32", given);
  EXPECT_EQ(list().text(&o, n), "8x32");
  EXPECT_EQ(list().text(&o, shape), "round");
  list().set_group(&o, shape, "square:0.5", given);
  EXPECT_EQ(o.radius, 0.5);
  EXPECT_EQ(list().text(&o, shape), "square:0.5");
  EXPECT_EQ(list().placeholder_of(n), "R[xC]");
}

TEST(Schema, HelpHasTheDefaultsOfTheStruct) {
  const Wording shell = list().in_shell("");
  EXPECT_EQ(list().help_of(list().at("radius"), shell), "of round ones, m (default 0.25)");
  EXPECT_EQ(list().help_of(list().at("side"), shell), "of square ones");
  EXPECT_EQ(list().help_of(*list().group_of("rows"), shell), "points (default 16)");
}

TEST(Schema, WhatIsOnByDefaultIsTurnedOffInTheShell) {
  const Option &pictures = list().at("pictures"), &loud = list().at("loud");
  EXPECT_TRUE(pictures.negated);
  EXPECT_FALSE(loud.negated);
  EXPECT_EQ(list().in_shell("").name("pictures"), "--no-pictures");
  EXPECT_EQ(list().in_python("").name("pictures"), "pictures");
  EXPECT_EQ(list().help_of(pictures, list().in_shell("")), "no PNG a step");
  EXPECT_EQ(loud.flag, "loud");
}

TEST(Schema, EarlierNamesAreFoundByFlagAndKeyword) {
  const Option* const seed = &list().at("seed");
  EXPECT_EQ(list().find_former("start-number"), seed);
  EXPECT_EQ(list().find_former("start_number"), seed);
  for (const char* name : {"seed", "random-seed", "start"}) EXPECT_EQ(list().find_former(name), nullptr);
  EXPECT_EQ(list().find("start_number"), nullptr) << "an earlier name is none of today's";
}

TEST(Schema, TextsOfAForm) {
  Options o;
  Given given;
  EXPECT_EQ(list().default_text("noon"), "12:0");
  list().set_text(&o, "noon", "13:30", given);
  EXPECT_EQ(o.noon.hours, 13);
  EXPECT_EQ(list().text(&o, "noon"), "13:30");
  EXPECT_EQ(refused({{"noon", "late"}}, list().in_shell("")), "'late' [--noon]: expected H:M");
  EXPECT_THROW(list().set(&o, "noon", std::string(), given), OptionError) << "it always has a value";
  EXPECT_EQ(refused({{"noon", ""}}, list().in_shell("")), "an empty text [--noon]: expected H:M");
  EXPECT_FALSE(list().at("noon").optional);
  EXPECT_TRUE(list().at("dusk").optional);
  list().set_text(&o, "dusk", "21:30", given);
  EXPECT_EQ(list().text(&o, "dusk"), "21:30");
  list().set(&o, "dusk", std::string(), given);
  EXPECT_FALSE(o.dusk) << "an empty text is no value";
}

TEST(Schema, TheNearestNameIsFound) {
  EXPECT_EQ(nearest_name("radios", {"rows", "radius"}), "radius");
  EXPECT_EQ(nearest_name("completely", {"rows", "radius"}), "");
}

}  // namespace
}  // namespace lockstep::sample
