#include "device/cuda/libraries/driver.hpp"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lockstep::device::cuda {

namespace {

constexpr int kOldestDriver = 11040;  // graphs with flags, stream-ordered pools

struct Found {
  Driver driver;
  std::string why;
  bool ok = false;
};

Found* load() {
  auto* found = new Found;  // never freed: the driver must outlive every static object
  Driver& d = found->driver;
  std::vector<std::string> names = {"libcuda.so.1", "libcuda.so"};
  for (const char* file : {"/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"}) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) names.emplace_back(file);
  }
  const LibrarySearch search{names, {}};
  d.library = search.load();
  if (!d.library) {
    found->why = "no CUDA driver (libcuda.so.1)";
    return found;
  }
  const char* missing = nullptr;
#define LOCKSTEP_CUDA_RESOLVE(member, symbol_name, parameters)                     \
  d.member = reinterpret_cast<decltype(d.member)>(d.library.symbol(#symbol_name)); \
  if (!d.member && !missing) missing = #symbol_name;
  LOCKSTEP_CUDA_DRIVER(LOCKSTEP_CUDA_RESOLVE)
#undef LOCKSTEP_CUDA_RESOLVE
  if (d.driver_version) d.driver_version(&d.version);
  if (missing || d.version < kOldestDriver) {
    found->why =
        fmt::format("the CUDA driver is too old (CUDA {}.{}{}): 11.4 or later is needed", d.version / 1000,
                    d.version % 1000 / 10, missing ? fmt::format(", without {}", missing) : "");
    return found;
  }
  if (const Result result = d.init(0); result != kSuccess) {
    found->why = fmt::format("the CUDA driver found no usable device ({})", d.describe(result));
    return found;
  }
  int count = 0;
  if (d.device_count(&count) != kSuccess || count == 0) {
    found->why = "the CUDA driver found no device";
    return found;
  }
  found->ok = true;
  return found;
}

}  // namespace

const Driver* Driver::find(std::string* reason) {
  static const Found* const found = load();
  if (!found->ok && reason) *reason = found->why;
  return found->ok ? &found->driver : nullptr;
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name) error_name(result, &name);
  if (error_string) error_string(result, &text);
  return name && text ? fmt::format("{}: {}", name, text) : fmt::format("CUDA error {}", result);
}

std::string driver_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line, word;
  if (!std::getline(file, line)) return {};
  std::istringstream words(line);
  while (words >> word)
    if (std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos) return word;
  return {};
}

}  // namespace lockstep::device::cuda
