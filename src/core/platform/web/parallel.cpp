// The page has one thread for the core.
#include "core/platform/parallel.hpp"

namespace lockstep::platform {

struct ThreadArena::Arena {};

int available_threads() { return 1; }
ThreadArena::ThreadArena(int) : count_(1) {}
ThreadArena::~ThreadArena() = default;
void ThreadArena::run(int64_t parts, void (*body)(void*, int64_t, int64_t), void* data) const {
  body(data, 0, parts);
}

}  // namespace lockstep::platform
