#include "subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {
std::vector<std::string> own_words;
}

void set_own_command(std::vector<std::string> words) { own_words = std::move(words); }

std::vector<std::string> own_command() {
  if (!own_words.empty()) return own_words;
  return {std::filesystem::read_symlink("/proc/self/exe").string()};
}

bool runs_alone() { return own_words.empty(); }

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::vector<std::pair<std::string, std::string>>& environment, bool quiet) {
  const std::string& program = arguments.front();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw InputError(fmt::format("no pipe: {}", std::strerror(errno)), program, "free file descriptors");
  std::vector<char*> words;
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    if (quiet) {
      const int nowhere = ::open("/dev/null", O_WRONLY);
      if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
    }
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(program.c_str(), words.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw InputError(fmt::format("cannot start it: {}", std::strerror(errno)), program,
                     "room for one more process");
  }
  ProgramResult result;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(ends[0], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    result.output.append(buffer, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 127) {
    throw InputError("the program did not run to its end", program, "a program that starts on this machine");
  }
  result.exit_code = WEXITSTATUS(status);
  return result;
}

}  // namespace lockstep::cli
