// One cache and several threads that read, write and sweep.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/files/disk_cache.hpp"
#include "core/temporary_folder.hpp"

namespace lockstep {
namespace {

TEST(DiskCache, ThreadsShareIt) {
  const test::TemporaryFolder folder;
  DiskCache cache(folder / "cache", 4000);  // less than is written: it drops entries meanwhile
  const auto value = [](int key) { return std::vector<std::byte>(size_t(300 + key), std::byte(key)); };
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 40; ++k) {
        const int key = (7 * t + k) % 20;
        cache.put(fmt::format("key {}", key), value(key));
        const int other = (key + t) % 20;
        const auto got = cache.get(fmt::format("key {}", other));
        if (got && *got != value(other)) ++wrong;
        if (k % 10 == t) cache.sweep();
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.counters().writes, 160u);
  EXPECT_EQ(cache.counters().damaged, 0u);
  EXPECT_EQ(cache.counters().hits + cache.counters().misses, 160u);
}

}  // namespace
}  // namespace lockstep
