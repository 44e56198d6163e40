// A progress bar with a fixed range, drawn on stderr only if that is a terminal and the work lasts over a
// second.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/platform/threads.hpp"

namespace lockstep {

/// Counts finished parts of a task. All members may be called from any thread.
class Progress {
 public:
  /// `total` parts of `unit` ("tiles", "patches"); negative totals count as 0.
  Progress(std::string title, int64_t total, std::string unit = "");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The count stays within 0 … total.
  void add(int64_t parts = 1);
  void set(int64_t done);
  int64_t done() const { return done_.load(); }
  int64_t total() const { return total_; }

  /// `--quiet` and `--json` switch all bars off.
  static void enable(bool on);

 private:
  void draw();
  const std::string title_, unit_;
  const int64_t total_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> next_draw_us_{1'000'000};
  Mutex drawing_;
  bool drawn_ = false;
};

/// The bar's text for `columns` columns: title, bar, per cent, count, time left.
std::string render_progress(std::string_view title, std::string_view unit, int64_t done, int64_t total,
                            double seconds, int columns);

}  // namespace lockstep
