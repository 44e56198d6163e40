// A run killed in the middle loses no finished tile.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "urban/scenes.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
constexpr char kFolderVariable[] = "LOCKSTEP_TEST_TILE_FOLDER";

CityInput city() { return random_city(160, 160, 77); }

SkyOptions sky() {
  SkyOptions options;
  options.patches = SkyPatches::p145;
  return options;
}

TileOptions tiles(const fs::path& folder) {
  TileOptions options;
  options.side = 32;
  options.workers = 1;
  options.resume_folder = folder;
  return options;
}

int finished(const fs::path& folder) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    count += at->path().extension() == ".tile";
  return count;
}

/// The run that is killed: a process of its own, slow enough to be caught.
TEST(ResumeVictim, DISABLED_Run) {
  const char* folder = std::getenv(kFolderVariable);
  if (!folder) GTEST_SKIP() << "run by Resume.AfterKill only";
  Context context(ContextOptions{.device = "cpu"});
  TileOptions options = tiles(folder);
  options.on_progress = [](int64_t, int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  compute_sky_view_factors(context, city(), sky(), options);
}

TEST(Resume, AfterKill) {
  std::unique_ptr<Context> opened;
  try {
    opened = std::make_unique<Context>(ContextOptions{.device = "cpu"});
  } catch (const UnsupportedError& error) { GTEST_SKIP() << error.what(); }
  const fs::path folder = fs::temp_directory_path() / ("lockstep-killed-" + std::to_string(::getpid()));
  fs::remove_all(folder);

  ::setenv(kFolderVariable, folder.c_str(), 1);
  std::string self = fs::read_symlink("/proc/self/exe").string(),
              filter = "--gtest_filter=ResumeVictim.DISABLED_Run",
              disabled = "--gtest_also_run_disabled_tests";
  char* arguments[] = {self.data(), filter.data(), disabled.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(::posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, environ), 0);
  ::unsetenv(kFolderVariable);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (finished(folder) < 3 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the run was over before it was killed";

  const int kept = finished(folder);
  EXPECT_GE(kept, 3);
  EXPECT_LT(kept, 25);
  TileReport report;
  const SkyViewFactors resumed = compute_sky_view_factors(*opened, city(), sky(), tiles(folder), &report);
  EXPECT_EQ(report.resumed, kept);
  EXPECT_EQ(report.tiles, 25);
  const SkyViewFactors whole = compute_sky_view_factors(*opened, city(), sky());
  for (size_t g = 0; g < kSkyViewGrids; ++g) EXPECT_EQ(resumed.grids[g].values, whole.grids[g].values);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::urban
