// Threads whose log lines are dropped.
#pragma once

#include <string_view>

namespace lockstep::logging {

/// As long as this lives its thread logs errors alone: of several ranks the first reports.
class QuietThread {
 public:
  explicit QuietThread(bool quiet);
  ~QuietThread();
  QuietThread(const QuietThread&) = delete;

 private:
  const bool before_;
};

/// logging::line() that quiet threads print too: fallbacks are never silent.
void line_of_any_thread(std::string_view text);

}  // namespace lockstep::logging
