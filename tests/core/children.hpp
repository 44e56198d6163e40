// Parts of tests that run in processes of their own, without log lines.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "core/reports/log.hpp"

namespace lockstep::test {

/// Runs `body` in a child process and returns its exit code, or -1 if it was killed.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct QuietLog {
  logging::Level before = logging::level();
  QuietLog() { logging::set_level(logging::Level::off); }
  ~QuietLog() { logging::set_level(before); }
};

}  // namespace lockstep::test
