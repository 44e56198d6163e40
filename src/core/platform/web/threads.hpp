// The locks of a program with one thread.
#pragma once

#include <cstdlib>

namespace lockstep {

struct Mutex {
  void lock() {}
  bool try_lock() { return true; }
  void unlock() {}
  void lock_shared() {}
  void unlock_shared() {}
};
using RecursiveMutex = Mutex;
using SharedMutex = Mutex;

template <class M>
struct UniqueLock {
  explicit UniqueLock(M&) {}
  void lock() {}
  void unlock() {}
};
template <class M>
using SharedLock = UniqueLock<M>;

struct ConditionVariable {
  template <class Lock, class Condition>
  void wait(Lock&, Condition holds) {
    if (!holds()) std::abort();  // nobody else could make it true
  }
  void notify_all() {}
  void notify_one() {}
};

}  // namespace lockstep
