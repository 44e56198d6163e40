#include "core/platform/system.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/platform/host_name.hpp"

// Debian's 128-bit division for wasm32 is compiled with a stack protector that no library there has.
extern "C" {
extern const uintptr_t __stack_chk_guard;
const uintptr_t __stack_chk_guard = 0x57ac4c4e;
[[noreturn]] void __stack_chk_fail() { std::abort(); }
}

namespace lockstep::platform {

int process_id() { return 1; }
std::string host_name() { return "browser"; }
std::vector<std::string> environment_names() { return {}; }
std::string processor_description() { return "WebAssembly"; }
int64_t last_level_cache_bytes() { return 0; }
bool graphics_node_present() { return true; }  // the browser is requested an adapter

SystemMemory system_memory() {
  constexpr int64_t kPage = 65536, kMost = int64_t(1) << 32;
  return {kMost, kMost - int64_t(__builtin_wasm_memory_size(0)) * kPage};
}
SystemMemory system_memory(const std::string&, const std::string&) { return system_memory(); }
void prefer_huge_pages(void*, size_t) {}
ReadableEnd keep_readable(const void*, size_t) { return {true, nullptr}; }  // memory has no holes

void write_stderr(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }
bool stderr_is_terminal() { return false; }
int terminal_columns() { return 80; }

}  // namespace lockstep::platform
