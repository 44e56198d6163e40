#pragma once

namespace tbb {

template <class... Work>
void parallel_invoke(const Work&... work) {
  (work(), ...);
}

}  // namespace tbb
