// Memory of the machine and of the control groups around this process, versions 1 and 2.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/platform/system.hpp"

namespace lockstep::platform {

namespace fs = std::filesystem;

namespace {

/// -1 where the file is missing or holds no number ("max").
int64_t number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

/// Sum of the named lines of a memory.stat.
int64_t stat_of(const fs::path& path, std::string_view active, std::string_view inactive) {
  std::ifstream file(path);
  std::string key;
  int64_t sum = 0;
  for (int64_t value; file >> key >> value;)
    if (key == active || key == inactive) sum += value;
  return sum;
}

void lower_to(SystemMemory& memory, int64_t limit, int64_t used) {
  if (limit <= 0) return;
  memory.total_bytes = std::min(memory.total_bytes, limit);
  memory.free_bytes = std::min(memory.free_bytes, std::max<int64_t>(limit - std::max<int64_t>(used, 0), 0));
}

/// The group of the process in the hierarchy of `controller`: "" for version 2.
std::string group_of(const fs::path& proc, std::string_view controller) {
  std::ifstream file(proc / "self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controller.empty() ? controllers == ",,"
                           : controllers.find("," + std::string(controller) + ",") != std::string::npos)
      return line.substr(second + 1);
  }
  return "/";
}

struct Names {
  const char *limit, *used, *active, *inactive;
};

/// Each group from the process's own up to the root; a container sees its own as the root.
void lower_to_groups(SystemMemory& memory, const fs::path& root, const std::string& group,
                     const Names& names) {
  const fs::path relative = fs::path(group).relative_path();
  for (fs::path part = relative;; part = part.parent_path()) {
    const fs::path folder = root / part;
    const int64_t cached = stat_of(folder / "memory.stat", names.active, names.inactive);
    lower_to(memory, number_in(folder / names.limit), number_in(folder / names.used) - cached);
    if (part.empty()) break;
  }
}

}  // namespace

SystemMemory system_memory(const std::string& proc, const std::string& cgroups) {
  SystemMemory memory;
  std::ifstream file(proc + "/meminfo");
  std::string key, unit;
  for (int64_t value; file >> key >> value;) {
    if (key == "MemTotal:") memory.total_bytes = value * 1024;
    if (key == "MemAvailable:") memory.free_bytes = value * 1024;
    std::getline(file, unit);
  }
  lower_to_groups(memory, cgroups, group_of(proc, ""),
                  {"memory.max", "memory.current", "active_file", "inactive_file"});
  lower_to_groups(
      memory, fs::path(cgroups) / "memory", group_of(proc, "memory"),
      {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file", "total_inactive_file"});
  return memory;
}

SystemMemory system_memory() { return system_memory("/proc", "/sys/fs/cgroup"); }

}  // namespace lockstep::platform
