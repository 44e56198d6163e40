#include "device/cached_kernel.hpp"

namespace lockstep {

Kernel cached_kernel(const std::string& key, const std::function<Kernel()>& make) {
  static Memo<std::string, Kernel> kernels;
  return kernels.get(key, make);
}

}  // namespace lockstep
