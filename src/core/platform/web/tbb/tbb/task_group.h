#pragma once

namespace tbb {

class task_group {
 public:
  template <class Work>
  void run(const Work& work) {
    work();
  }
  void wait() {}
};

}  // namespace tbb
