#include "core/platform/system.hpp"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep::platform {

int process_id() { return ::getpid(); }

std::string processor_description() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "CPU";
}

int64_t last_level_cache_bytes() { return std::max<int64_t>(::sysconf(_SC_LEVEL3_CACHE_SIZE), 0); }

bool graphics_node_present() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/dri", ignored))
    if (entry.path().filename().string().starts_with("renderD")) return true;
  for (const char* node : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kfd"})
    if (::access(node, F_OK) == 0) return true;
  return false;
}

void prefer_huge_pages(void* memory, size_t bytes) { ::madvise(memory, bytes, MADV_HUGEPAGE); }

void write_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

bool stderr_is_terminal() {
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

}  // namespace lockstep::platform
