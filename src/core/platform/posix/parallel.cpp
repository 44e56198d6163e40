#include "core/platform/parallel.hpp"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <optional>

// oneTBB is not built with ThreadSanitizer, so neither is this file where tests/threads builds the rest with it: here
// the order that oneTBB gives is reported to it. Code before run() precedes each part, and each part its end.
#if defined(LOCKSTEP_THREAD_SANITIZER) && __has_include(<sanitizer/tsan_interface.h>)
#include <sanitizer/tsan_interface.h>
namespace {
void came_before(void* what) { __tsan_release(what); }
void comes_after(void* what) { __tsan_acquire(what); }
}  // namespace
#else
namespace {
void came_before(void* /*what*/) {}
void comes_after(void* /*what*/) {}
}  // namespace
#endif

namespace lockstep::platform {

struct ThreadArena::Arena {
  explicit Arena(int count) : arena(count) {
    // The lowest limit of all that exist holds: one is set only to allow more than oneTBB's own.
    if (count > tbb::info::default_concurrency())
      limit.emplace(tbb::global_control::max_allowed_parallelism, size_t(count));
  }
  std::optional<tbb::global_control> limit;
  tbb::task_arena arena;
};

int available_threads() { return tbb::info::default_concurrency(); }

ThreadArena::ThreadArena(int count) : count_(count > 0 ? count : available_threads()) {
  if (count_ > 1) arena_ = std::make_unique<Arena>(count_);
}
ThreadArena::~ThreadArena() = default;

void ThreadArena::run(int64_t parts, void (*body)(void*, int64_t, int64_t), void* data) const {
  if (!arena_ || parts <= 1) return body(data, 0, parts);
  char begun = 0, done = 0;
  came_before(&begun);
  arena_->arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, parts, 1),
                      [&](const tbb::blocked_range<int64_t>& range) {
                        comes_after(&begun);
                        body(data, range.begin(), range.end());
                        came_before(&done);
                      });
  });
  comes_after(&done);
}

}  // namespace lockstep::platform
