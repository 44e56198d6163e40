#include "optimize/kernel_cache.hpp"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace lockstep::optimize {

Kernel cached_kernel(const std::string& key, const std::function<Kernel()>& make) {
  struct Entry {
    std::once_flag traced;
    Kernel kernel;
  };
  static std::mutex guard;
  static std::unordered_map<std::string, std::shared_ptr<Entry>> kernels;
  std::shared_ptr<Entry> entry;
  {
    const std::scoped_lock lock(guard);
    auto& slot = kernels[key];
    if (!slot) slot = std::make_shared<Entry>();
    entry = slot;
  }
  std::call_once(entry->traced, [&] { entry->kernel = make(); });
  return entry->kernel;
}

}  // namespace lockstep::optimize
