#pragma once

namespace tbb::this_task_arena {

template <class Work>
auto isolate(const Work& work) {
  return work();
}

}  // namespace tbb::this_task_arena
