// A run in a process of its own that is killed on the way.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::test {

/// In the process that is to be killed: where it says that it has come far enough, and the folder it works in.
struct Victim {
  int ready;
  std::filesystem::path folder;

  /// In another process: nothing.
  static std::optional<Victim> here(const char* variable) {
    const char* text = std::getenv(variable);
    if (!text) return {};
    char* folder = nullptr;
    const int ready = int(std::strtol(text, &folder, 10));
    return Victim{ready, folder + 1};
  }
  [[noreturn]] void wait_for_the_end() const {
    EXPECT_EQ(::write(ready, "r", 1), 1);
    while (true) ::pause();
  }
};

/// Runs the disabled test `name` of this program in a process of its own, and kills it once it says that it is ready.
inline void kill_victim(const char* variable, const std::string& name, const std::filesystem::path& folder) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  ::setenv(variable, (std::to_string(ready[1]) + " " + folder.string()).c_str(), 1);
  std::string self = std::filesystem::read_symlink("/proc/self/exe").string(),
              filter = "--gtest_filter=" + name, disabled = "--gtest_also_run_disabled_tests";
  char* arguments[] = {self.data(), filter.data(), disabled.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(::posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, environ), 0);
  ::unsetenv(variable);
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the run ended before it was ready";
  ::close(ready[0]);
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace lockstep::test
