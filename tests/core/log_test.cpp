#include "core/reports/log.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/reports/progress.hpp"

namespace {

using namespace lockstep;

struct LevelGuard {
  logging::Level before = logging::level();
  ~LevelGuard() { logging::set_level(before); }
};

TEST(Log, FallbackLineIsExactAlsoWhenQuiet) {
  LevelGuard guard;
  logging::set_level(logging::Level::error);
  testing::internal::CaptureStderr();
  logging::fallback("urban.svf", "out of memory");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[GPU] urban.svf failed: out of memory. CPU fallback.\n");
}

TEST(Log, FallbackReasonIsOneLineWithOneStop) {
  EXPECT_EQ(logging::fallback_line("s", "line one\n  line two.\n"),
            "[GPU] s failed: line one line two. CPU fallback.");
}

TEST(Log, LevelDropsLowerLines) {
  LevelGuard guard;
  logging::set_level(logging::Level::warning);
  testing::internal::CaptureStderr();
  logging::info("hidden {}", 1);
  logging::warning("shown {}", 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[lockstep] warning: shown 2\n");
}

TEST(Log, LinesOfThreadsStayWhole) {
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int k = 0; k < 100; ++k) logging::line("abcdefghijklmnopqrstuvwxyz");
    });
  }
  for (auto& thread : threads) thread.join();
  std::string expected;
  for (int k = 0; k < 400; ++k) expected += "abcdefghijklmnopqrstuvwxyz\n";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), expected);
}

TEST(Progress, CountStaysInRangeFromAnyThread) {
  Progress progress("work", 1000, "parts");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) progress.add();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(progress.done(), 800);
  progress.add(500);
  EXPECT_EQ(progress.done(), 1000);
  progress.set(-5);
  EXPECT_EQ(progress.done(), 0);
}

TEST(Progress, SilentWhereStderrIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    Progress progress("work", 3);
    progress.add(3);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, TextFitsTheTerminal) {
  for (int columns : {0, 1, 10, 20, 40, 80, 200}) {
    const std::string text = render_progress("sky view", "tiles", 30, 120, 12.0, columns);
    EXPECT_LT(static_cast<int>(text.size()), std::max(columns, 1)) << text;
  }
  EXPECT_EQ(render_progress("svf", "tiles", 30, 120, 12.0, 80),
            "svf [##########..............................]  25 % 30/120 tiles 0:36 left");
  EXPECT_NE(render_progress("svf", "", 0, 0, 1.0, 80).find("100 %"), std::string::npos);
}

}  // namespace
