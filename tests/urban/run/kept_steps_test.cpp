// A run of one tile that is killed continues behind its last finished step, with the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/refusal.hpp"
#include "urban/run/series_case.hpp"
#include "urban/run/victim.hpp"
#include "urban/series/step_store.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
constexpr char kStepsVariable[] = "LOCKSTEP_TEST_STEPS_VICTIM";
constexpr int kSkyWords = 10;  // of 145 patches, parts of the progress before the steps

/// A day with a sunset and a night, so that the warmth of surfaces matters; the folder outlives the process.
struct KeptCase : testing::SeriesCase {
  explicit KeptCase(const fs::path& out) : SeriesCase(24) {
    options.from = "2015-06-21T15:00";
    options.to = "2015-06-22T00:00";
    options.outputs = {SeriesOutput::tmrt, SeriesOutput::utci, SeriesOutput::lup};
    options.folder = out;
    write_file(folder / "points.csv", "id,x,y\np,10.5,40.5\nq,30.5,20.5\n");
    options.points = folder / "points.csv";
  }
};

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != "run.json")
      files[fs::relative(entry.path(), folder).string()] = test::read_text(entry.path());
  return files;
}

/// Steps that a run took over: the longest stride of its progress.
int64_t computed_with_strides(KeptCase& c) {
  int64_t last = 0, stride = 0;
  c.options.tiles.on_progress = [&](int64_t done, int64_t) {
    stride = std::max(stride, done - last);
    last = done;
  };
  c.compute();
  return stride;
}

TEST(KeptStepsVictim, DISABLED_Run) {
  const auto victim = test::Victim::here(kStepsVariable);
  if (!victim) GTEST_SKIP() << "run by KeptSteps.AfterKills only";
  KeptCase c(victim->folder / "out");
  const int64_t last = std::stoll(test::read_text(victim->folder / "steps.txt"));
  c.options.tiles.on_progress = [&](int64_t done, int64_t) {
    if (done >= kSkyWords + last) victim->wait_for_the_end();
  };
  c.compute();
}

TEST(KeptSteps, AfterKills) {
  test::TemporaryFolder folder;
  std::mt19937 lots(30);
  int64_t steps = 0;
  for (int kill = 0; kill < 3; ++kill) {
    steps += 1 + static_cast<int64_t>(lots() % 3);
    write_file(folder / "steps.txt", std::to_string(steps));
    ASSERT_NO_FATAL_FAILURE(test::kill_victim(kStepsVariable, "KeptStepsVictim.DISABLED_Run", folder.path()));
    EXPECT_TRUE(StepStore::holds_steps(folder / "out/.steps"));
  }
  KeptCase resumed(folder / "out"), whole(folder / "whole");
  EXPECT_GE(computed_with_strides(resumed), steps - 1) << "the last one may not be written";
  EXPECT_EQ(computed_with_strides(whole), 1);
  const auto got = files_of(folder / "out"), expected = files_of(folder / "whole");
  ASSERT_GT(expected.size(), 30u);
  for (const auto& [name, bytes] : expected) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_TRUE(got.at(name) == bytes) << name;
  }
  EXPECT_EQ(got.size(), expected.size()) << "nothing of the killed runs is left";
}

/// A run that stops in its third step, as by Ctrl-C.
void stop_in(KeptCase& c) {
  struct Stopped {};
  c.options.tiles.on_progress = [](int64_t done, int64_t) {
    if (done >= kSkyWords + 3) throw Stopped();
  };
  EXPECT_THROW(c.compute(), Stopped);
  c.options.tiles.on_progress = {};
}

TEST(KeptSteps, OfAnotherRunAreRefusedByWhatDiffers) {
  test::TemporaryFolder folder;
  KeptCase c(folder / "out");
  stop_in(c);
  const auto refused = [&](const std::function<void(SeriesOptions&)>& change) {
    KeptCase other(folder / "out");
    change(other.options);
    return test::refusal([&] { other.compute(); });
  };
  const auto expect = [&](const char* what, const std::string& text) {
    EXPECT_NE(text.find("an unfinished run that differs in"), std::string::npos) << text;
    EXPECT_NE(text.find(what), std::string::npos) << text;
    EXPECT_NE(text.find(".steps"), std::string::npos) << text;
  };
  expect("differs in outputs [", refused([](SeriesOptions& o) { o.outputs.pop_back(); }));
  expect("substeps", refused([](SeriesOptions& o) { o.preset = Preset::umep; }));
  expect("weather, period", refused([](SeriesOptions& o) { o.to = "2015-06-21T22:00"; }));
  expect("height of the wind", refused([](SeriesOptions& o) { o.wind_height_m = 4; }));
  // The night before is in the daily mean that water has, and in nothing else.
  expect("weather, period", refused([](SeriesOptions& o) {
           std::string text = test::read_text(o.weather);
           const size_t row = text.find("2015-06-21T03:00,");
           write_file(o.weather, text.replace(text.find(',', row) + 1, 1, "2"));
         }));
  EXPECT_TRUE(StepStore::holds_steps(folder / "out/.steps")) << "a refusal keeps what is there";
  KeptCase anew(folder / "out");
  anew.options.to = "2015-06-21T22:00";
  anew.options.resume = false;
  EXPECT_EQ(computed_with_strides(anew), 1);
  EXPECT_FALSE(fs::exists(folder / "out/.steps"));
}

TEST(KeptSteps, ThatAreDamagedAreRefused) {
  test::TemporaryFolder folder;
  KeptCase c(folder / "out");
  stop_in(c);
  std::string step = test::read_text(folder / "out/.steps/000001.step");
  step[step.size() / 2] ^= 1;
  write_file(folder / "out/.steps/000001.step", step);
  const std::string text = test::refusal([&] { c.compute(); });
  EXPECT_NE(text.find("000001.step"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::urban
