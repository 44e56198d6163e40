// Values by key, each made when it is first requested: kernels of a family by their parameters, derivations by their text.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/platform/threads.hpp"

namespace lockstep {

/// Hash of numbers, enumerators, texts, pointers, and of pairs and tuples of these.
struct KeyHash {
  template <class T>
  size_t operator()(const T& key) const {
    if constexpr (requires { std::tuple_size<T>::value; })
      return std::apply(
          [](const auto&... part) {
            size_t hash = 0;
            ((hash = (hash ^ KeyHash()(part)) * size_t(0x9e3779b97f4a7c15ull), hash ^= hash >> 29), ...);
            return hash;
          },
          key);
    else
      return std::hash<T>()(key);
  }
};

/// Thread-safe. No lock is held while a value is made, so making one may ask for others. Threads that ask for the same
/// missing key at the same time all make it; the first value is kept and all of them get it. If `make` throws, nothing
/// is kept. Values are handles: copies are cheap and outlive the memo.
template <class Key, class Value>
class Memo {
 public:
  /// Where `most` values are kept, the next one replaces them all. Without a bound, the number of keys must be small:
  /// no value is released before the memo is.
  explicit Memo(size_t most = std::numeric_limits<size_t>::max()) : most_(most) {}

  template <class Make>
  Value get(const Key& key, Make&& make) {
    {
      const std::lock_guard lock(guard_);
      if (const auto found = values_.find(key); found != values_.end()) return found->second;
    }
    Value made = make();
    Values replaced;  // destroyed after the lock is released
    const std::lock_guard lock(guard_);
    if (values_.size() >= most_) replaced.swap(values_);
    return values_.try_emplace(key, std::move(made)).first->second;
  }

 private:
  using Values = std::unordered_map<Key, Value, KeyHash>;
  const size_t most_;
  Mutex guard_;
  Values values_;
};

}  // namespace lockstep
