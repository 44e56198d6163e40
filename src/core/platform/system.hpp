// The machine and the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::platform {

int process_id();
/// Names of the environment variables that are set.
std::vector<std::string> environment_names();
/// "AMD EPYC 9R14"; "CPU" where the system does not report it.
std::string processor_description();
/// Size of the last cache level as one thread sees it; 0: not known.
int64_t last_level_cache_bytes();
/// Whether the system shows a graphics device at all.
bool graphics_node_present();

struct SystemMemory {
  int64_t total_bytes = 0, free_bytes = 0;
};
/// Memory of the machine, or of the tightest control group around this process where that is less. The page
/// cache counts as free: the kernel gives it up on demand.
SystemMemory system_memory();
/// The same read from other places than /proc and /sys/fs/cgroup, for tests.
SystemMemory system_memory(const std::string& proc, const std::string& cgroups);
/// Requests huge pages behind a block that begins and ends on their bounds.
void prefer_huge_pages(void* memory, size_t bytes);
/// Keeps the bytes after a block of foreign memory readable. Usually they are in the page of its last byte, else an
/// empty page is mapped after it as long as the result lives. `readable` is false if neither is possible.
struct ReadableEnd {
  bool readable = false;
  std::shared_ptr<void> page;
};
ReadableEnd keep_readable(const void* end, size_t bytes);

/// Writes to stderr. Failures cannot be reported.
void write_stderr(std::string_view text);
/// True if stderr is a terminal that can redraw a line.
bool stderr_is_terminal();
/// Columns of that terminal, 80 if unknown.
int terminal_columns();

}  // namespace lockstep::platform
