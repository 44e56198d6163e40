// The page has one thread for the core. Workers run kernels only (compile/native/native.hpp).
#include "core/platform/parallel.hpp"

#include <algorithm>

extern "C" {
/// Threads of kernels, this one included.
[[clang::import_module("lockstep"), clang::import_name("threads")]] uint32_t lockstep_threads();
}

namespace lockstep::platform {

struct ThreadArena::Arena {};

int available_threads() { return int(lockstep_threads()); }
ThreadArena::ThreadArena(int count)
    : count_(count > 0 ? std::min(count, available_threads()) : available_threads()) {}
ThreadArena::~ThreadArena() = default;
void ThreadArena::run(int64_t parts, void (*body)(void*, int64_t, int64_t), void* data) const {
  body(data, 0, parts);
}

}  // namespace lockstep::platform
