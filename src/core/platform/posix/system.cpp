#include "core/platform/system.hpp"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "core/platform/host_name.hpp"

extern char** environ;

namespace lockstep::platform {

int process_id() { return ::getpid(); }

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? std::string(name) : "localhost";
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** entry = ::environ; entry && *entry; ++entry)
    names.emplace_back(*entry, std::string_view(*entry).find('='));
  return names;
}

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

namespace {

/// Pages after foreign blocks, with the number of blocks.
struct EndPages {
  std::mutex mutex;
  std::map<uintptr_t, int> users;
};
EndPages& end_pages() {
  static auto& pages = *new EndPages;  // blocks may outlive the statics
  return pages;
}

bool is_readable(const void* address) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const bool readable = ::write(ends[1], address, 1) == 1;  // EFAULT where it is not
  ::close(ends[0]);
  ::close(ends[1]);
  return readable;
}

}  // namespace

ReadableEnd keep_readable(const void* end, size_t bytes) {
  const auto size = uintptr_t(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(end);
  const uintptr_t page = (first + bytes - 1) / size * size;
  if ((first - 1) / size * size == page) return {true, nullptr};
  EndPages& pages = end_pages();
  const std::lock_guard lock(pages.mutex);
  if (!pages.users.contains(page)) {
    auto* wanted = reinterpret_cast<void*>(page);
    void* const got =
        ::mmap(wanted, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return {is_readable(wanted), nullptr};  // the heap, or another block
    if (got != wanted) {                                           // a kernel that does not know the flag
      ::munmap(got, size);
      return {};
    }
  }
  ++pages.users[page];
  return {true, std::shared_ptr<void>(reinterpret_cast<void*>(page), [size](void* own) {
            EndPages& all = end_pages();
            const std::lock_guard guard(all.mutex);
            const auto found = all.users.find(reinterpret_cast<uintptr_t>(own));
            if (--found->second > 0) return;
            ::munmap(own, size);
            all.users.erase(found);
          })};
}

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
