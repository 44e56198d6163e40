#include "core/reports/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/reports/log.hpp"

namespace lockstep {
namespace {

std::atomic<bool> enabled{true};
constexpr int64_t kRedrawUs = 100'000;

std::string clock_text(double seconds) {
  const auto whole = int64_t{std::llround(std::clamp(seconds, 0.0, 359999.0))};
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string render_progress(std::string_view title, std::string_view unit, int64_t done, int64_t total,
                            double seconds, int columns) {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  const double left = share > 0 ? seconds * (1 - share) / share : 0;
  const std::string tail = fmt::format(" {:3.0f} % {}/{}{}{} {} left", share * 100, done, total,
                                       unit.empty() ? "" : " ", unit, clock_text(left));
  const int room = columns - 1 - static_cast<int>(title.size() + 1 + tail.size());
  if (room < 5)
    return fmt::format("{}{}", title, tail).substr(0, static_cast<size_t>(std::max(columns - 1, 0)));
  const int width = std::min(room - 2, 40);
  const int filled = static_cast<int>(share * width);
  return fmt::format("{} [{}{}]{}", title, std::string(static_cast<size_t>(filled), '#'),
                     std::string(static_cast<size_t>(width - filled), '.'), tail);
}

Progress::Progress(std::string title, int64_t total, std::string unit)
    : title_(std::move(title)),
      unit_(std::move(unit)),
      total_(std::max<int64_t>(total, 0)),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (drawn_) logging::set_status("");
}

void Progress::enable(bool on) { enabled = on; }

void Progress::add(int64_t parts) {
  int64_t before = done_.load();
  while (!done_.compare_exchange_weak(before, std::clamp(before + parts, int64_t{0}, total_))) {}
  draw();
}

void Progress::set(int64_t done) {
  done_ = std::clamp(done, int64_t{0}, total_);
  draw();
}

void Progress::draw() {
  if (!enabled || !logging::is_terminal()) return;
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start_);
  if (elapsed.count() < next_draw_us_.load()) return;
  if (!drawing_.try_lock()) return;
  const std::lock_guard lock(drawing_, std::adopt_lock);
  next_draw_us_ = elapsed.count() + kRedrawUs;
  drawn_ = true;
  logging::set_status(render_progress(title_, unit_, done_.load(), total_,
                                      static_cast<double>(elapsed.count()) * 1e-6,
                                      logging::terminal_columns()));
}

}  // namespace lockstep
