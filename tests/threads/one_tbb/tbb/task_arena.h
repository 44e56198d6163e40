// See parts.hpp.
#pragma once

namespace tbb {

struct task_arena {
  explicit task_arena(int /*count*/) {}
  template <class Work>
  void execute(const Work& work) {
    work();
  }
};

}  // namespace tbb
