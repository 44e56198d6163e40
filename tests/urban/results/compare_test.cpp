// Comparisons of runs whose numbers are known, and what is no comparison.
#include "lockstep/urban/compare.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/refusal.hpp"
#include "core/temporary_folder.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/compare/changes.hpp"
#include "urban/results/written_run.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using lockstep::test::TemporaryFolder;
using testing::WrittenRun;

/// A street next to a roof (column 5), at 30 °C and at 40 °C an hour later.
WrittenRun street() {
  WrittenRun run;
  run.ground = [](int64_t, int64_t col) { return col != 5; };
  run.outputs["utci"] = [](size_t step, int64_t, int64_t) { return step == 0 ? 30.0f : 40.0f; };
  run.outputs["shadow"] = [](size_t, int64_t, int64_t) { return 1.0f; };
  run.summaries["utci_mean"] = [](int64_t, int64_t) { return 35.0f; };
  run.summaries["utci_hours_above_38"] = [](int64_t, int64_t) { return 1.0f; };
  return run;
}

/// The same with a tree over the first column, and a roof that is far hotter, which nobody notices.
WrittenRun planted() {
  WrittenRun run = street();
  run.files["cdsm"] = "3";
  run.outputs["utci"] = [](size_t step, int64_t row, int64_t col) {
    if (col == 5) return 90.0f;
    if (col == 0) return step == 0 ? 29.0f : row == 2 ? 31.0f : 33.0f;
    return step == 0 ? 30.0f : 40.0f;
  };
  run.summaries["utci_mean"] = [](int64_t row, int64_t col) {
    return col == 5 ? 90.0f : col == 0 ? (row == 2 ? 30.0f : 31.0f) : 35.0f;
  };
  run.summaries["utci_hours_above_38"] = [](int64_t, int64_t col) { return col == 0 ? 0.0f : 1.0f; };
  return run;
}

struct Pair {
  TemporaryFolder folder;
  CompareOptions options;
  Pair(const WrittenRun& before, const WrittenRun& after) {
    before.write(folder / "before");
    after.write(folder / "after");
    options.before = folder / "before";
    options.after = folder / "after";
    options.folder = folder / "change";
    options.format = GridFormat::npy;
  }
  std::string refusal() const {
    try {
      compare(options);
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(options.folder)) << "nothing half-written remains";
      return error.what();
    }
    return "nothing was thrown";
  }
};

void expect_part(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

const SummaryChange& summary(const CompareResult& result, const std::string& name) {
  for (const SummaryChange& s : result.summaries)
    if (s.name == name) return s;
  throw InternalError("no summary " + name, "test", "one");
}

TEST(UrbanCompare, EqualRunsDifferNowhere) {
  const Pair pair(street(), street());
  const CompareResult result = compare(pair.options);
  EXPECT_TRUE(result.differences.empty());
  EXPECT_TRUE(result.warnings.empty());
  ASSERT_EQ(result.summaries.size(), 2u);
  for (const SummaryChange& s : result.summaries) {
    EXPECT_EQ(s.mean_change, 0);
    EXPECT_EQ(s.highest.after - s.highest.before, 0);
    for (const double v : s.change) EXPECT_EQ(v, 0);
    EXPECT_TRUE(s.picture.empty()) << "a map of no change";
    EXPECT_TRUE(fs::exists(s.file));
  }
  for (const OutputChange& o : result.outputs) EXPECT_EQ(o.before_mean, o.after_mean);
  for (const ClassChange& c : result.stress.at(0).classes) EXPECT_EQ(c.before_m2, c.after_m2);
}

TEST(UrbanCompare, SummariesHaveTitlesAndUnitsOfTheirOwn) {
  const auto text = [](const char* name) {
    return summary_text(name).first + " [" + summary_text(name).second + "]";
  };
  EXPECT_EQ(text("utci_mean"), "Universal thermal climate index, mean [degC]");
  EXPECT_EQ(text("lup_max"), "Longwave from below, highest [W m-2]");
  EXPECT_EQ(text("sun_hours"), "Hours of sunshine, beam of 120 W/m² or more [h]");
  EXPECT_EQ(text("tmrt_hours_above_60"), "Mean radiant temperature, hours above 60 °C [h]");
  EXPECT_EQ(text("kdown_hours_above_600"), "Shortwave from above, hours above 600 W/m² [h]");
  EXPECT_EQ(text("utci_hours_below_9"), "Universal thermal climate index, hours below 9 °C [h]");
  EXPECT_EQ(text("pet_hours_at_most_23"),
            "Physiologically equivalent temperature, hours of at most 23 °C [h]");
  EXPECT_EQ(text("utci_hours_outside_fit"),
            "Universal thermal climate index, hours outside of the polynomial's fit [h]");
}

TEST(UrbanCompare, ATreeCoolsItsColumn) {
  const Pair pair(street(), planted());
  const CompareResult result = compare(pair.options);
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].option, "cdsm");
  EXPECT_EQ(result.compared_m2, 20 * 4) << "20 pixels of ground, 2 m wide";
  const SummaryChange& mean = summary(result, "utci_mean");
  EXPECT_EQ(mean.pixels, 20);
  EXPECT_DOUBLE_EQ(mean.before_mean, 35);
  EXPECT_DOUBLE_EQ(mean.after_mean, (16 * 35 + 3 * 31 + 30) / 20.0);
  EXPECT_DOUBLE_EQ(mean.mean_change, mean.after_mean - 35);
  EXPECT_EQ(mean.change[3], 0) << "the median pixel is not under the tree";
  EXPECT_EQ(mean.lowest.row, 2);
  EXPECT_EQ(mean.lowest.col, 0);
  EXPECT_EQ(mean.lowest.after - mean.lowest.before, -5);
  EXPECT_EQ(mean.lowest.x, 1);
  EXPECT_EQ(mean.lowest.y, 3) << "the lower left corner of a grid without a place is the origin";
  EXPECT_TRUE(fs::exists(mean.picture));
  const OutputChange* utci = nullptr;
  for (const OutputChange& o : result.outputs)
    if (o.name == "utci") utci = &o;
  ASSERT_TRUE(utci);
  EXPECT_EQ(utci->before_mean, (std::vector<double>{30, 40}));
  EXPECT_DOUBLE_EQ(utci->after_mean[1], (16 * 40 + 3 * 33 + 31) / 20.0);
  EXPECT_EQ(utci->lowest.time, "2015-06-21T15:00");
  EXPECT_EQ(utci->lowest.row, 2);
  EXPECT_EQ(utci->highest.after, utci->highest.before) << "the roof's 90 °C do not count";
  expect_part("\"hottest\":\"2015-06-21T15:00\"", to_json(result));
}

// 26 to 32 moderate, 32 to 38 strong, 38 to 46 very strong: a mean over both hours, and the hotter one by itself.
TEST(UrbanCompare, AreasByClassOfStress) {
  const Pair pair(street(), planted());
  const CompareResult result = compare(pair.options);
  ASSERT_EQ(result.stress.size(), 1u);
  EXPECT_EQ(result.stress[0].hottest, "2015-06-21T15:00");
  const std::vector<ClassChange>& c = result.stress[0].classes;
  EXPECT_EQ(c[6].before_m2, 40);
  EXPECT_EQ(c[6].after_m2, 40 + 2);
  EXPECT_EQ(c[7].before_m2, 0);
  EXPECT_EQ(c[7].after_m2, 3 * 4 / 2);
  EXPECT_EQ(c[8].before_m2, 40);
  EXPECT_EQ(c[8].after_m2, 16 * 4 / 2);
  EXPECT_EQ(c[8].before_percent, 50);
  EXPECT_EQ(c[8].after_percent, 40);
  EXPECT_EQ(c[8].hottest_before_m2, 80);
  EXPECT_EQ(c[8].hottest_after_m2, 64);
  EXPECT_EQ(c[9].after_m2, 0) << "the roof";
  CompareOptions all = pair.options;
  all.include_roofs = true;
  EXPECT_EQ(compare(all).stress[0].classes[9].after_m2, 4 * 4) << "both hours";
}

TEST(UrbanCompare, ThePageHoldsEverything) {
  const Pair pair(street(), planted());
  const std::string page = io::read_text_file(compare(pair.options).page);
  for (const char* part :
       {"Area by class of UTCI", "very strong heat stress", "differs: cdsm", "Largest changes",
        "data:image/png;base64,", "<svg", "2015-06-21T14:00 to 2015-06-21T15:00"})
    expect_part(part, page);
  EXPECT_EQ(page.find("http"), std::string::npos);
}

// Every number of the document and of the tables is that of the result, whose numbers the tests above know.
TEST(UrbanCompare, DocumentAndTablesAreTheResult) {
  Pair pair(street(), planted());
  const CompareResult result = compare(pair.options);
  const auto document = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(document["rows"], 4);
  EXPECT_EQ(document["cols"], 6);
  EXPECT_EQ(document["pixel_size"], 2);
  EXPECT_EQ(document["steps"], 2);
  EXPECT_EQ(document["times"], (nlohmann::json{"2015-06-21T14:00", "2015-06-21T15:00"}));
  EXPECT_EQ(document["compared_m2"], 80);
  EXPECT_EQ(document["before_ground_m2"], 80);
  EXPECT_EQ(document["after_ground_m2"], 80);
  const auto mean = document["summaries"][size_t(&summary(result, "utci_mean") - result.summaries.data())];
  EXPECT_EQ(mean["before_mean"], 35);
  EXPECT_NEAR(mean["mean_change"].get<double>(), (3 * -4 - 5) / 20.0, 1e-12);
  // Of 20 changes -5 is one, -4 are three, and the others 0: 5 % lie 0.95 of the way from the first to the second.
  EXPECT_EQ(mean["before_percentiles"].size(), 7u);
  EXPECT_NEAR(mean["change_percentiles"]["1"].get<double>(), -5 + 0.19, 1e-6);
  EXPECT_NEAR(mean["change_percentiles"]["5"].get<double>(), -5 + 0.95, 1e-6);
  EXPECT_EQ(mean["change_percentiles"]["99"], 0);
  EXPECT_NEAR(mean["after_percentiles"]["5"].get<double>(), 30.95, 1e-6);
  EXPECT_EQ(mean["lowest"]["change"], -5);
  EXPECT_EQ(mean["lowest"]["y"], 3);
  EXPECT_EQ(mean["highest"]["row"], 0);
  const auto classes = document["stress"][0]["classes"];
  ASSERT_EQ(classes.size(), 10u);
  EXPECT_EQ(classes[8]["upper"], 46);
  EXPECT_EQ(classes[8]["before_percent"], 50);
  EXPECT_EQ(classes[8]["hottest_after_m2"], 64);
  EXPECT_TRUE(classes[9]["upper"].is_null());
  const auto table = [&](const std::string& name) {  // without its quotes
    std::string text = io::read_text_file(pair.options.folder / (name + ".csv"));
    std::erase(text, '"');
    return text;
  };
  EXPECT_EQ(table("classes"),
            "index,class,before m²,before %,after m²,after %,change m²,hottest before m²,hottest after m²\n"
            "UTCI,very strong heat stress,40,50.0,32,40.0,-8,80,64\n"
            "UTCI,strong heat stress,0,0.0,6,7.5,6,0,12\n"
            "UTCI,moderate heat stress,40,50.0,42,52.5,2,0,4\n");
  EXPECT_EQ(table("summaries"),
            "summary,unit,before,after,change,lowest,highest\n"
            "Universal thermal climate index, hours above 38 °C,h,1.00,0.80,-0.20,-1.00,0.00\n"
            "Universal thermal climate index, mean,°C,35.00,34.15,-0.85,-5.00,0.00\n");
  const std::string places = table("largest_changes");
  expect_part("Universal thermal climate index,°C,-9.00,40.00,31.00,2015-06-21T15:00,1.0,3.0\n", places);
  const std::string page = io::read_text_file(result.page);
  for (const char* part :
       {"Course of the means", "Distribution of the change", "4 × 6 pixels of 2 m", "80 m² of ground"})
    expect_part(part, page);
  EXPECT_EQ(
      io::read_text_file(compare(Pair(street(), street()).options).page).find("Distribution of the change"),
      std::string::npos)
      << "of no change";
}

TEST(UrbanCompare, RefusesWhatIsNoScenario) {
  WrittenRun other = planted();
  other.options["preset"] = "umep";
  other.files["weather"] = "9";
  Pair pair(street(), other);
  const std::string text = pair.refusal();
  expect_part("the runs differ in preset (corrected and umep), weather", text);
  expect_part("differing preset,weather if that is intended", text);
  pair.options.differing = {"preset"};
  expect_part("the runs differ in weather", pair.refusal());
  pair.options.differing = {"preset", "wether"};
  expect_part("no option 'wether'", pair.refusal());
  pair.options.differing = {"preset", "weather"};
  EXPECT_EQ(compare(pair.options).differences.size(), 3u);
}

// run.json of the comparison would replace that of the run, which could not be read again.
TEST(UrbanCompare, RefusesTheFolderOfARun) {
  Pair pair(street(), planted());
  for (const fs::path& folder : {pair.options.before, pair.options.after / "." / ""}) {
    pair.options.folder = folder;
    const std::string text = test::refusal([&] { compare(pair.options); });
    EXPECT_NE(text.find("is one of the runs"), std::string::npos) << text;
  }
}

TEST(UrbanCompare, RefusesOtherGridsAndSteps) {
  WrittenRun wide = street();
  wide.cols = 7;
  expect_part("4 x 7", Pair(street(), wide).refusal());
  WrittenRun coarse = street();
  coarse.pixel_size = 3;
  EXPECT_NE(Pair(street(), coarse).refusal(), "nothing was thrown");
  WrittenRun late = street();
  late.times = {"2015-06-21T15:00", "2015-06-21T16:00"};
  expect_part("its first step is 2015-06-21T15:00", Pair(street(), late).refusal());
  WrittenRun longer = street();
  longer.times.push_back("2015-06-21T16:00");
  longer.times[1] = "2015-06-21T15:00";
  expect_part("3 steps of 60 min", Pair(street(), longer).refusal());
  Pair none(street(), street());
  none.options.after = none.folder / "nowhere";
  expect_part("no run.json", none.refusal());
  WrittenRun roofs = street();
  roofs.ground = [](int64_t, int64_t) { return false; };
  expect_part("no pixel is ground in both runs", Pair(street(), roofs).refusal());
}

TEST(UrbanCompare, ATornSummaryLeavesNothing) {
  const Pair pair(street(), planted());
  fs::resize_file(pair.options.after / "summary" / "utci_mean.npy", 140);
  expect_part("utci_mean.npy", pair.refusal());
}

TEST(UrbanCompare, WarnsOfWhatItCannotKnow) {
  WrittenRun old = street();
  old.version = "0.0.9";
  old.with_mask = false;
  const CompareResult result = compare(Pair(street(), old).options);
  ASSERT_EQ(result.warnings.size(), 2u);
  expect_part("0.1.0 and 0.0.9", result.warnings[0]);
  expect_part("has no mask of the ground", result.warnings[1]);
}

TEST(UrbanCompare, MissingPixelsCountInNeitherRun) {
  WrittenRun holed = planted();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  holed.summaries["utci_mean"] = [](int64_t row, int64_t col) { return row == 0 && col < 3 ? nan : 20.0f; };
  const CompareResult result = compare(Pair(street(), holed).options);
  EXPECT_EQ(summary(result, "utci_mean").pixels, 17);
  EXPECT_EQ(summary(result, "utci_mean").mean_change, -15);
}

// Changes of the first pixel and of the first step are as good as any.
TEST(UrbanCompare, TheLargestChangeMayBeAtTheFirstPixel) {
  WrittenRun warmer = street();
  warmer.outputs["utci"] = [](size_t step, int64_t row, int64_t col) {
    return (step == 0 ? 30.0f : 40.0f) + (row == 0 && col == 0 ? 2.0f - float(step) : 0.0f);
  };
  for (const OutputChange& o : compare(Pair(street(), warmer).options).outputs) {
    if (o.name != "utci") continue;
    EXPECT_EQ(o.highest.after - o.highest.before, 2);
    EXPECT_EQ(o.highest.time, "2015-06-21T14:00");
    EXPECT_EQ(o.highest.row + o.highest.col, 0);
    EXPECT_EQ(o.lowest.after - o.lowest.before, 0);
    EXPECT_EQ(o.lowest.col, 1) << "the first of equal ones";
  }
}

// Steps of more than a day, however few, are numbered: hours of the day would come several times.
TEST(UrbanCompare, TheCourseOfDaysIsByStep) {
  WrittenRun days = street();
  days.times.clear();
  for (int day = 21; day < 24; ++day)
    for (int hour = 0; hour < 24; hour += 6)
      days.times.push_back(fmt::format("2015-06-{}T{:02}:00", day, hour));
  const Pair pair(days, days);
  compare(pair.options);
  const std::string page = io::read_text_file(pair.options.folder / "compare.html");
  EXPECT_EQ(page.find("hour (end of the interval)"), std::string::npos);
  EXPECT_NE(page.find(">step<"), std::string::npos);
  const Pair two(street(), planted());
  compare(two.options);
  EXPECT_NE(io::read_text_file(two.options.folder / "compare.html").find("hour (end of the interval)"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::urban
