// Mutual exclusion, where there are threads. The web build has one: its locks do nothing.
#pragma once

#include <mutex>

#ifndef __wasm__
#include <condition_variable>
#include <shared_mutex>

namespace lockstep {
using Mutex = std::mutex;
using RecursiveMutex = std::recursive_mutex;
using SharedMutex = std::shared_mutex;
using ConditionVariable = std::condition_variable_any;
template <class M>
using UniqueLock = std::unique_lock<M>;
template <class M>
using SharedLock = std::shared_lock<M>;
}  // namespace lockstep

#else
#include "core/platform/web/threads.hpp"
#endif
