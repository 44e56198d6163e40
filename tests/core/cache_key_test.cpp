// The key of the kernel cache: who may know it, and entries that others made.
#include "core/files/cache_key.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/children.hpp"
#include "core/files/disk_cache.hpp"
#include "core/temporary_folder.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

constexpr const char* kName = "cache.key";
const std::string kKnown = "sixteen bytes!!!";  // a key that an attacker knows

std::vector<std::byte> value_of(int seed) { return std::vector<std::byte>(100, std::byte(seed)); }

/// A folder of configuration and one of the cache, set in a child process.
struct Places {
  TemporaryFolder folder;
  fs::path config = folder / "config" / "lockstep", key = config / kName, cache = folder / "cache";

  Places() {
    fs::create_directories(config);
    for (const fs::path& at : {config.parent_path(), config}) fs::permissions(at, fs::perms::owner_all);
  }
  void set() const { ::setenv("XDG_CONFIG_HOME", config.parent_path().c_str(), 1); }
  void write_key(int mode) const {
    write_text(key, kKnown);
    ::chmod(key.c_str(), static_cast<mode_t>(mode));
  }

  /// 0 where a cache takes an entry that was made with the known key while that key was private, 1 where not, 2 where it
  /// is off. `change` alters the key in between.
  int takes_known(const std::function<void()>& change) const {
    return in_child([&] {
      const QuietLog quiet;
      set();
      write_key(0600);
      DiskCache(cache).put("kernel", value_of(1));
      if (DiskCache(cache).get("kernel") != value_of(1)) return 9;
      change();
      DiskCache later(cache);
      if (!later.can_read()) return 2;
      if (later.get("kernel")) return 0;
      later.put("kernel", value_of(2));
      return DiskCache(cache).get("kernel") == value_of(2) ? 1 : 8;
    });
  }
};

TEST(CacheKey, AKeyOfThisUserAloneIsUsed) {
  const Places places;
  EXPECT_EQ(places.takes_known([] {}), 0);
}

TEST(CacheKey, AKeyThatOthersMayReadOrWriteIsNotUsed) {
  for (const int mode : {0640, 0604, 0660, 0606, 0610, 0601}) {
    const Places places;
    EXPECT_EQ(places.takes_known([&] { ::chmod(places.key.c_str(), static_cast<mode_t>(mode)); }), 1) << mode;
  }
}

TEST(CacheKey, AKeyInAFolderThatOthersMayWriteToIsNotUsed) {
  for (const int mode : {0770, 0702, 01777}) {
    const Places places;
    EXPECT_EQ(places.takes_known([&] { ::chmod(places.config.c_str(), static_cast<mode_t>(mode)); }), 1);
  }
}

TEST(CacheKey, AKeyOfAnotherUserIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const Places places;
  EXPECT_EQ(places.takes_known([&] { ASSERT_EQ(::chown(places.key.c_str(), 65534, 65534), 0); }), 1);
  const Places folder;
  EXPECT_EQ(folder.takes_known([&] { ASSERT_EQ(::chown(folder.config.c_str(), 65534, 65534), 0); }), 1);
}

TEST(CacheKey, LinksInPlaceOfTheKeyAreNotFollowed) {
  const Places soft;
  EXPECT_EQ(soft.takes_known([&] {
    fs::rename(soft.key, soft.folder / "elsewhere");
    fs::create_symlink(soft.folder / "elsewhere", soft.key);
  }),
            1);
  EXPECT_EQ(read_text(soft.folder / "elsewhere"), kKnown);
  const Places hard;
  EXPECT_EQ(hard.takes_known([&] { fs::create_hard_link(hard.key, hard.folder / "elsewhere"); }), 1);
  EXPECT_EQ(read_text(hard.folder / "elsewhere"), kKnown);
  const Places dangling;
  EXPECT_EQ(dangling.takes_known([&] {
    fs::remove(dangling.key);
    fs::create_symlink(dangling.folder / "elsewhere", dangling.key);
  }),
            1);
  EXPECT_FALSE(fs::exists(dangling.folder / "elsewhere"));
}

TEST(CacheKey, WhatIsNoKeyIsNotUsed) {
  for (const char* text : {"", "short", "seventeen bytes!!"}) {
    const Places places;
    EXPECT_EQ(places.takes_known([&] { write_text(places.key, text); }), 1) << text;
  }
  const Places pipe;
  EXPECT_EQ(pipe.takes_known([&] {
    fs::remove(pipe.key);
    ::mkfifo(pipe.key.c_str(), 0600);
  }),
            1);
  const Places folder;
  EXPECT_EQ(folder.takes_known([&] {
    fs::remove(folder.key);
    fs::create_directory(folder.key);
  }),
            1);
}

TEST(CacheKey, WithoutAKeyOfThisUserAloneTheCacheIsOffWithOneLine) {
  const Places places;
  fs::create_directory(places.cache);
  ::chmod(places.cache.c_str(), 0700);
  places.write_key(0644);
  fs::copy_file(places.key, places.cache / kName);
  ::chmod((places.cache / kName).c_str(), 0644);
  testing::internal::CaptureStderr();
  const int code = in_child([&] {
    places.set();
    DiskCache cache(places.cache);
    cache.put("kernel", value_of(1));
    return cache.can_read() ? 1 : 0;
  });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 0);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_NE(text.find("no private key of this user"), text.npos) << text;
  EXPECT_EQ(file_count(places.cache), 1u);
}

TEST(CacheKey, FoldersAndFilesAreOfThisUserAloneWhateverTheUmaskIs) {
  const TemporaryFolder folder;
  const int code = in_child([&] {
    ::umask(0);
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);
    DiskCache(folder / "cache").put("kernel", value_of(1));
    return DiskCache(folder / "cache").get("kernel") == value_of(1) ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  const auto mode = [](const fs::path& path) { return static_cast<int>(fs::status(path).permissions()); };
  EXPECT_EQ(mode(folder / "config"), 0700);
  EXPECT_EQ(mode(folder.path() / "config" / "lockstep"), 0700);
  EXPECT_EQ(mode(folder.path() / "config" / "lockstep" / kName), 0600);
  EXPECT_EQ(mode(folder / "cache"), 0700);
  for (const auto& file : fs::directory_iterator(folder / "cache")) EXPECT_EQ(mode(file.path()), 0600);
}

TEST(CacheKey, ProcessesThatMakeItAtOnceUseTheSame) {
  for (int round = 0; round < 20; ++round) {
    const TemporaryFolder folder;
    constexpr int kProcesses = 6;
    int start[2];
    ASSERT_EQ(::pipe(start), 0);
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);
    std::vector<pid_t> children;
    for (int k = 0; k < kProcesses; ++k) {
      const pid_t child = ::fork();
      if (child == 0) {
        char go = 0;
        ::close(start[1]);
        if (::read(start[0], &go, 1) != 0) ::_exit(9);  // ends when the parent closes the pipe
        DiskCache(folder / "cache").put(fmt::format("kernel {}", k), value_of(k));
        ::_exit(0);
      }
      children.push_back(child);
    }
    ::close(start[0]);
    ::close(start[1]);
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    DiskCache cache(folder / "cache");
    ::unsetenv("XDG_CONFIG_HOME");
    for (int k = 0; k < kProcesses; ++k)
      EXPECT_EQ(cache.get(fmt::format("kernel {}", k)), value_of(k)) << "round " << round;
    EXPECT_EQ(cache.counters().damaged, 0u);
    EXPECT_EQ(file_count(folder.path() / "config" / "lockstep"), 1u) << "no temporary file may stay";
  }
}

TEST(CacheKey, AFullDiskLeavesNoHalfKey) {
  const Places places;
  const int code = in_child([&] {
    const QuietLog quiet;
    places.set();
    const rlimit limit{8, 8};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 9;
    return DiskCache(places.cache).can_read() ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(file_count(places.config), 0u);
  EXPECT_EQ(file_count(places.cache), 0u);
}

TEST(CacheKey, LinksInPlaceOfAnEntryOrTheFolderAreNoEntries) {
  const Places places;
  const int code = in_child([&] {
    const QuietLog quiet;
    places.set();
    fs::path entry;
    {
      DiskCache cache(places.cache);
      cache.put("kernel", value_of(1));
      cache.put("other", value_of(2));
      entry = cache.entry_path("kernel");
      fs::rename(entry, places.folder / "elsewhere");
      fs::create_symlink(places.folder / "elsewhere", entry);
      if (cache.get("kernel")) return 1;
    }
    fs::remove(entry);
    ::mkfifo(entry.c_str(), 0600);
    if (DiskCache(places.cache).get("kernel")) return 2;
    fs::remove(entry);
    {
      DiskCache cache(places.cache);  // the entry of another kernel under this name
      fs::create_hard_link(cache.entry_path("other"), entry);
      if (cache.get("kernel")) return 3;
      if (cache.get("other") != value_of(2)) return 4;
    }
    // A link to a folder that others may write to is the same as that folder.
    fs::create_directory(places.folder / "shared");
    ::chmod((places.folder / "shared").c_str(), 0777);
    fs::create_directory_symlink(places.folder / "shared", places.folder / "link");
    return DiskCache(places.folder / "link").can_read() ? 5 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(fs::exists(places.folder / "elsewhere"));
}

}  // namespace
