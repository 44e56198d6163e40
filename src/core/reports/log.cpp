#include "core/reports/log.hpp"

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <utility>

#include "core/platform/system.hpp"
#include "core/platform/threads.hpp"
#include "core/record/journal.hpp"
#include "core/reports/quiet_thread.hpp"

namespace lockstep::logging {
namespace {

std::atomic<Level> current_level{Level::info};
thread_local bool quiet_thread = false;

// The only writer to stderr: erases the status line, writes, and draws the status line again.
class Terminal {
 public:
  void write_line(std::string_view text) {
    std::lock_guard lock(mutex_);
    std::string out;
    if (!status_.empty()) out += "\r\033[K";
    out += printable(text);
    out += '\n';
    out += status_;
    platform::write_stderr(out);
  }
  void set_status(std::string_view text) {
    std::lock_guard lock(mutex_);
    if (text == status_) return;
    status_ = text;
    platform::write_stderr("\r\033[K" + status_);
  }

 private:
  Mutex mutex_;
  std::string status_;
};

Terminal& terminal() {
  static auto* instance = new Terminal;  // Outlives every static destructor that may still log.
  return *instance;
}

std::string one_line(std::string_view text) {
  std::string out;
  for (char c : text) {
    const bool blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (blank && (out.empty() || out.back() == ' ')) continue;
    out += blank ? ' ' : c;
  }
  while (!out.empty() && (out.back() == ' ' || out.back() == '.')) out.pop_back();
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out(text);
  for (size_t k = 0; k < out.size(); ++k) {
    const auto c = static_cast<unsigned char>(out[k]);
    const bool control = (c < 32 && c != '\n' && c != '\t') || c == 127;
    // Those of Latin-1 are two bytes in UTF-8.
    const bool second = k > 0 && static_cast<unsigned char>(text[k - 1]) == 0xc2 && c >= 0x80 && c < 0xa0;
    if (control || second) out[k] = '?';
    if (second) out[k - 1] = '?';
  }
  return out;
}

void set_level(Level level) { current_level = level; }
Level level() { return current_level; }

QuietThread::QuietThread(bool quiet) : before_(std::exchange(quiet_thread, quiet_thread || quiet)) {}
QuietThread::~QuietThread() { quiet_thread = before_; }

void message(Level level, std::string_view text) {
  if (quiet_thread && level < Level::error) return;
  if (level == Level::warning) journal::warning(text);
  if (level < current_level || level == Level::off) return;
  const std::string_view mark = level == Level::debug     ? "debug: "
                                : level == Level::warning ? "warning: "
                                : level == Level::error   ? "error: "
                                                          : "";
  terminal().write_line(fmt::format("[lockstep] {}{}", mark, text));
}

void line(std::string_view text) {
  if (!quiet_thread) terminal().write_line(text);
}
void line_of_any_thread(std::string_view text) { terminal().write_line(text); }

std::string fallback_line(std::string_view stage, std::string_view reason) {
  return fmt::format("[GPU] {} failed: {}. CPU fallback.", stage, one_line(reason));
}
void fallback(std::string_view stage, std::string_view reason) { line(fallback_line(stage, reason)); }

bool is_terminal() { return platform::stderr_is_terminal(); }
int terminal_columns() { return platform::terminal_columns(); }

void set_status(std::string_view text) {
  if (is_terminal()) terminal().set_status(text);
}

}  // namespace lockstep::logging
