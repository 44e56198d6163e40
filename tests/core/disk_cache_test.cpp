#include "core/files/disk_cache.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "core/children.hpp"
#include "core/temporary_folder.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::test;

std::vector<std::byte> bytes_of(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (auto& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

TEST(DiskCache, GivesBackWhatWasPut) {
  TemporaryFolder folder;
  DiskCache cache(folder / "cache");
  EXPECT_FALSE(cache.get("key"));
  const auto value = bytes_of(1, 10'000);
  cache.put("key", value);
  cache.put("empty", {});
  EXPECT_EQ(cache.get("key"), value);
  ASSERT_TRUE(cache.get("empty"));
  EXPECT_TRUE(cache.get("empty")->empty());
  EXPECT_FALSE(cache.get("key2"));
  cache.put("key", bytes_of(2, 50));
  EXPECT_EQ(cache.get("key"), bytes_of(2, 50));
  EXPECT_EQ(DiskCache(folder / "cache").get("key"), bytes_of(2, 50));
  EXPECT_EQ(file_count(folder / "cache"), 2u) << "no temporary file may stay";
}

TEST(DiskCache, PlaceFollowsTheEnvironment) {
  ::setenv("LOCKSTEP_CACHE_DIR", "/a/b", 1);
  EXPECT_EQ(DiskCache::default_directory(), "/a/b");
  ::unsetenv("LOCKSTEP_CACHE_DIR");
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(DiskCache::default_directory(), "/xdg/lockstep");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(DiskCache::default_directory(), "/home/someone/.cache/lockstep");
}

TEST(DiskCache, EveryTruncationIsAMissAndDeletesTheEntry) {
  TemporaryFolder folder;
  QuietLog quiet;
  DiskCache cache(folder.path());
  const auto value = bytes_of(3, 100);
  cache.put("some key", value);
  const auto path = cache.entry_path("some key");
  const std::string whole = read_text(path);
  for (size_t length = 0; length < whole.size(); ++length) {
    write_text(path, whole.substr(0, length));
    EXPECT_FALSE(cache.get("some key")) << "truncated to " << length;
    EXPECT_FALSE(std::filesystem::exists(path)) << "truncated to " << length;
  }
  write_text(path, whole + "x");
  EXPECT_FALSE(cache.get("some key"));
  cache.put("some key", value);
  EXPECT_EQ(cache.get("some key"), value);
  EXPECT_TRUE(cache.can_write());
}

TEST(DiskCache, EveryFlippedBitIsAMissAndDeletesTheEntry) {
  TemporaryFolder folder;
  QuietLog quiet;
  DiskCache cache(folder.path());
  cache.put("some key", bytes_of(4, 40));
  const auto path = cache.entry_path("some key");
  const std::string whole = read_text(path);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    write_text(path, flipped);
    EXPECT_FALSE(cache.get("some key")) << "bit " << bit;
    EXPECT_FALSE(std::filesystem::exists(path)) << "bit " << bit;
  }
  EXPECT_EQ(cache.counters().damaged, whole.size() * 8);
}

TEST(DiskCache, AnEntryUnderAnotherKeysNameIsRefused) {
  TemporaryFolder folder;
  QuietLog quiet;
  DiskCache cache(folder.path());
  cache.put("key A", bytes_of(5, 40));
  std::filesystem::rename(cache.entry_path("key A"), cache.entry_path("key B"));
  EXPECT_FALSE(cache.get("key B"));
}

// Children write and read the same few keys at once. Each value read must be whole and belong to its key.
TEST(DiskCache, ProcessesShareItAtOnce) {
  TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      DiskCache cache(folder.path(), 256 * 1024);  // Small, so that sweeps happen meanwhile.
      std::mt19937 random(static_cast<unsigned>(process));
      for (int k = 0; k < 400; ++k) {
        const uint32_t key = random() % 20;
        const auto value = bytes_of(key, 5000 + key * 1000);
        if (random() % 2) cache.put(fmt::format("key {}", key), value);
        const auto got = cache.get(fmt::format("key {}", key));
        if (got && *got != value) ::_exit(1);
      }
      ::_exit(cache.counters().damaged == 0 && cache.can_write() ? 0 : 2);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(file.path().extension(), ".entry");
  }
}

TEST(DiskCache, AKilledWriterLeavesNoDamage) {
  TemporaryFolder folder;
  for (int round = 0; round < 10; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      DiskCache cache(folder.path());
      for (uint32_t k = 0;; ++k) cache.put("key", bytes_of(k % 3, 200'000));
    }
    ::usleep(10'000);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    DiskCache cache(folder.path());
    const auto got = cache.get("key");
    EXPECT_EQ(cache.counters().damaged, 0u);
    if (got) {
      EXPECT_TRUE(*got == bytes_of(0, 200'000) || *got == bytes_of(1, 200'000) ||
                  *got == bytes_of(2, 200'000));
    }
  }
}

TEST(DiskCache, DropsTheLeastRecentlyUsedAndOldTemporaries) {
  TemporaryFolder folder;
  DiskCache cache(folder.path(), 100'000);
  for (uint32_t k = 0; k < 9; ++k) cache.put(fmt::format("key {}", k), bytes_of(k, 10'000));
  const auto hour = std::chrono::hours(1);
  const auto now = std::filesystem::file_time_type::clock::now();
  for (int k = 0; k < 9; ++k) {
    std::filesystem::last_write_time(cache.entry_path(fmt::format("key {}", k)), now - hour * (20 - k));
  }
  EXPECT_TRUE(cache.get("key 0")) << "this use makes it the youngest";
  write_text(folder / "1-1.part", "left over");
  std::filesystem::last_write_time(folder / "1-1.part", now - 2 * hour);
  write_text(folder / "1-2.part", "in use");
  cache.put("key 9", bytes_of(9, 10'000));
  cache.put("key 10", bytes_of(10, 10'000));
  cache.sweep();
  EXPECT_TRUE(cache.get("key 0"));
  EXPECT_FALSE(cache.get("key 1"));
  EXPECT_FALSE(cache.get("key 2"));
  EXPECT_TRUE(cache.get("key 10"));
  EXPECT_FALSE(std::filesystem::exists(folder / "1-1.part"));
  EXPECT_TRUE(std::filesystem::exists(folder / "1-2.part"));
  uint64_t sum = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) sum += file.file_size();
  EXPECT_LE(sum, 100'000u);
}

TEST(DiskCache, AReadOnlyFolderStillGivesEntries) {
  TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  if (::geteuid() == 0 && ::chown(folder.path().c_str(), 65534, 65534) != 0)
    GTEST_SKIP() << "may not give away";
  const int code = in_child([&] {
    QuietLog quiet;
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return 9;  // Root may write anywhere.
    DiskCache(folder / "cache").put("key", bytes_of(6, 100));
    std::filesystem::permissions(folder / "cache", std::filesystem::perms(0555));
    DiskCache cache(folder / "cache");
    if (cache.get("key") != bytes_of(6, 100)) return 1;
    cache.put("other", bytes_of(7, 100));
    if (cache.can_write() || !cache.can_read()) return 2;
    cache.put("another", bytes_of(7, 100));
    return cache.get("key") == bytes_of(6, 100) && !cache.get("other") ? 0 : 3;
  });
  std::filesystem::permissions(folder / "cache", std::filesystem::perms(0755));
  EXPECT_EQ(code, 0);
}

TEST(DiskCache, AFullDiskSwitchesWritingOffAndLeavesNoHalfEntry) {
  TemporaryFolder folder;
  const int code = in_child([&] {
    QuietLog quiet;
    DiskCache cache(folder / "cache");
    cache.put("small", bytes_of(8, 100));
    const rlimit limit{1000, 1000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 9;
    cache.put("large", bytes_of(9, 100'000));
    if (cache.can_write() || !cache.can_read()) return 1;
    return cache.get("small") == bytes_of(8, 100) && !cache.get("large") ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(file_count(folder / "cache"), 1u);
}

TEST(DiskCache, AFolderInAnEntrysPlaceIsAMissOfThatEntry) {
  TemporaryFolder folder;
  QuietLog quiet;
  DiskCache cache(folder / "cache");
  std::filesystem::create_directories(cache.entry_path("blocked") / "inside");
  EXPECT_FALSE(cache.get("blocked"));
  cache.put("blocked", bytes_of(1, 10));
  EXPECT_FALSE(cache.get("blocked"));
  EXPECT_TRUE(cache.can_write());
  cache.put("free", bytes_of(2, 10));
  EXPECT_EQ(cache.get("free"), bytes_of(2, 10));
  EXPECT_EQ(file_count(folder / "cache"), 2u);
}

TEST(DiskCache, AFullFileSystemSwitchesWritingOff) {
  TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "may not mount a tmpfs";
  const int code = in_child([&] {
    QuietLog quiet;
    DiskCache cache(folder / "cache");
    cache.put("small", bytes_of(8, 100));
    cache.put("large", bytes_of(9, 500'000));
    if (cache.can_write()) return 1;
    return cache.get("small") == bytes_of(8, 100) && !cache.get("large") ? 0 : 2;
  });
  ::umount(folder.path().c_str());
  EXPECT_EQ(code, 0);
}

TEST(DiskCache, WithoutAUsableFolderItIsOff) {
  TemporaryFolder folder;
  QuietLog quiet;
  write_text(folder / "file", "");
  DiskCache cache(folder.path() / "file" / "cache");
  EXPECT_FALSE(cache.can_read());
  cache.put("key", bytes_of(1, 10));
  EXPECT_FALSE(cache.get("key"));
}

TEST(DiskCache, AFolderThatOthersMayWriteOrARelativeOneIsOff) {
  TemporaryFolder folder;
  QuietLog quiet;
  std::filesystem::create_directories(folder / "shared");
  std::filesystem::permissions(folder / "shared", std::filesystem::perms(0777));
  EXPECT_FALSE(DiskCache(folder / "shared").can_read());
  EXPECT_FALSE(DiskCache(folder.path() / "shared" / "below").can_read());
  EXPECT_FALSE(DiskCache("relative-cache").can_read());
  EXPECT_FALSE(std::filesystem::exists("relative-cache"));
}

TEST(DiskCache, AnEntryOfAnotherKeyIsRefused) {
  TemporaryFolder folder;
  const int code = in_child([&] {
    QuietLog quiet;
    ::setenv("XDG_CONFIG_HOME", (folder / "a").c_str(), 1);
    DiskCache(folder / "cache").put("key", bytes_of(1, 100));
    if (!DiskCache(folder / "cache").get("key")) return 1;
    ::setenv("XDG_CONFIG_HOME", (folder / "b").c_str(), 1);
    return DiskCache(folder / "cache").get("key") ? 2 : 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(DiskCache, OneLogLineForManyErrors) {
  TemporaryFolder folder;
  write_text(folder / "file", "");
  testing::internal::CaptureStderr();
  DiskCache cache(folder.path() / "file" / "cache");
  for (int k = 0; k < 5; ++k) cache.put("key", bytes_of(1, 10));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

}  // namespace
