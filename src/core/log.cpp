#include "core/log.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace lockstep::logging {
namespace {

std::atomic<Level> current_level{Level::info};

// The only writer to stderr: erases the status line, writes, and draws the status line again.
class Terminal {
 public:
  void write_line(std::string_view text) {
    std::lock_guard lock(mutex_);
    std::string out;
    if (!status_.empty()) out += "\r\033[K";
    out += text;
    out += '\n';
    out += status_;
    put(out);
  }
  void set_status(std::string_view text) {
    std::lock_guard lock(mutex_);
    if (text == status_) return;
    status_ = text;
    put("\r\033[K" + status_);
  }

 private:
  static void put(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;  // Nobody can be told that stderr is gone.
      text.remove_prefix(static_cast<size_t>(written));
    }
  }
  std::mutex mutex_;
  std::string status_;
};

Terminal& terminal() {
  static auto* instance = new Terminal;  // Outlives every static destructor that may still log.
  return *instance;
}

class TerminalSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& msg) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(msg, buffer);
    std::string_view text(buffer.data(), buffer.size());
    while (text.ends_with('\n')) text.remove_suffix(1);
    terminal().write_line(text);
  }
  void flush_() override {}
};

spdlog::logger& logger() {
  static auto* instance = [] {
    auto* made = new spdlog::logger("lockstep", std::make_shared<TerminalSink>());
    made->set_level(spdlog::level::trace);
    made->set_pattern("[%n] %v");
    return made;
  }();
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

void set_level(Level level) { current_level = level; }
Level level() { return current_level; }

void message(Level level, std::string_view text) {
  if (level < current_level || level == Level::off) return;
  switch (level) {
    case Level::debug: return logger().debug("debug: {}", text);
    case Level::warning: return logger().warn("warning: {}", text);
    case Level::error: return logger().error("error: {}", text);
    default: return logger().info("{}", text);
  }
}

void line(std::string_view text) { terminal().write_line(text); }

std::string fallback_line(std::string_view stage, std::string_view reason) {
  return fmt::format("[GPU] {} failed: {}. CPU fallback.", stage, one_line(reason));
}
void fallback(std::string_view stage, std::string_view reason) { line(fallback_line(stage, reason)); }

bool is_terminal() {
  static const bool result = [] {
    const char* term = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && !(term && std::string_view(term) == "dumb");
  }();
  return result;
}

int terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void set_status(std::string_view text) {
  if (is_terminal()) terminal().set_status(text);
}

}  // namespace lockstep::logging
