// The platform's memory figures and loops.
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <atomic>
#include <vector>

#include "core/platform/parallel.hpp"
#include "core/platform/system.hpp"
#include "temporary_folder.hpp"

namespace lockstep::platform {
namespace {

constexpr int64_t kGiB = int64_t(1) << 30;

/// A machine of 64 GiB, 48 of them available, as the kernel shows it.
class Groups : public testing::Test {
 protected:
  Groups() {
    write("proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   50331648 kB\n");
  }
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    test::write_text(path, text);
  }
  SystemMemory memory() { return system_memory((folder_ / "proc").string(), (folder_ / "cgroup").string()); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(Groups, WithoutLimitsTheMachineCounts) {
  write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(memory().total_bytes, 64 * kGiB);
  EXPECT_EQ(memory().free_bytes, 48 * kGiB);
}

TEST_F(Groups, ThePageCacheOfAContainerIsFree) {
  write("proc/self/cgroup", "0::/\n");
  write("cgroup/memory.max", std::to_string(8 * kGiB));
  write("cgroup/memory.current", std::to_string(7 * kGiB));
  write("cgroup/memory.stat",
        "anon 1073741824\nfile 6442450944\ninactive_file 4294967296\nactive_file 2147483648\n");
  EXPECT_EQ(memory().total_bytes, 8 * kGiB);
  EXPECT_EQ(memory().free_bytes, 7 * kGiB);
}

TEST_F(Groups, OuterGroupsCountToo) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("cgroup/outer/inner/memory.max", "max");
  write("cgroup/outer/inner/memory.current", std::to_string(kGiB));
  write("cgroup/outer/memory.max", std::to_string(16 * kGiB));
  write("cgroup/outer/memory.current", std::to_string(12 * kGiB));
  EXPECT_EQ(memory().total_bytes, 16 * kGiB);
  EXPECT_EQ(memory().free_bytes, 4 * kGiB);
}

TEST_F(Groups, TheFirstVersionOfGroups) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/jobs\n4:memory:/jobs/1\n");
  write("cgroup/memory/jobs/1/memory.limit_in_bytes", std::to_string(4 * kGiB));
  write("cgroup/memory/jobs/1/memory.usage_in_bytes", std::to_string(3 * kGiB));
  write("cgroup/memory/jobs/1/memory.stat", "total_inactive_file 1073741824\ntotal_active_file 1073741824\n");
  EXPECT_EQ(memory().total_bytes, 4 * kGiB);
  EXPECT_EQ(memory().free_bytes, 3 * kGiB);
}

TEST(System, TellsOfThisMachine) {
  const SystemMemory memory = system_memory();
  EXPECT_GT(memory.total_bytes, 0);
  EXPECT_GE(memory.total_bytes, memory.free_bytes);
  EXPECT_FALSE(processor_description().empty());
  EXPECT_GT(process_id(), 0);
}

TEST(ThreadArena, EveryPartRunsOnce) {
  for (const int threads : {1, 2, 5}) {
    const ThreadArena arena(threads);
    EXPECT_EQ(arena.count(), threads);
    for (const int64_t parts : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(parts));
      arena.for_parts(parts, [&](int64_t first, int64_t last) {
        for (int64_t k = first; k < last; ++k) ++seen[size_t(k)];
      });
      for (const auto& count : seen) EXPECT_EQ(count, 1);
    }
  }
}

// A loop of few threads inside of one of many takes none from it.
TEST(ThreadArena, AnArenaOfFewLeavesTheLimitOfOneOfMany) {
  const ThreadArena many(available_threads() + 3);
  const auto allowed = [] {
    return tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  };
  EXPECT_GE(allowed(), size_t(available_threads() + 3));
  const ThreadArena few;
  EXPECT_GE(allowed(), size_t(available_threads() + 3));
}

}  // namespace
}  // namespace lockstep::platform
