#include "core/files/atomic_file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files/folder_lock.hpp"
#include "core/files/output_files.hpp"
#include "core/temporary_folder.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::test;

TEST(AtomicFile, AppearsOnlyOnCommit) {
  TemporaryFolder folder;
  write_text(folder / "a.txt", "earlier");
  {
    AtomicFile file(folder / "a.txt");
    file.write("half");
    EXPECT_EQ(read_text(folder / "a.txt"), "earlier");
  }
  EXPECT_EQ(read_text(folder / "a.txt"), "earlier");
  EXPECT_EQ(file_count(folder.path()), 1u) << "the temporary file must go";
  write_file(folder / "a.txt", std::string_view("later"));
  EXPECT_EQ(read_text(folder / "a.txt"), "later");
  EXPECT_EQ(file_count(folder.path()), 1u);
}

TEST(AtomicFile, MakesMissingFolders) {
  TemporaryFolder folder;
  write_file(folder.path() / "x" / "y" / "b.txt", std::string_view("text"));
  EXPECT_EQ(read_text(folder.path() / "x" / "y" / "b.txt"), "text");
}

TEST(AtomicFile, NothingIsWrittenOverAnInput) {
  TemporaryFolder folder;
  write_text(folder / "in.txt", "input");
  std::filesystem::create_symlink(folder / "in.txt", folder / "link.txt");
  keep_whole(folder / "in.txt");
  for (const char* name : {"in.txt", "link.txt"}) {
    EXPECT_THROW(check_output_file(folder / name), InputError);
    EXPECT_THROW(write_file(folder / name, std::string_view("output")), InputError);
  }
  EXPECT_EQ(read_text(folder / "in.txt"), "input");
  write_file(folder / "out.txt", std::string_view("output"));
}

TEST(AtomicFile, WhatCannotBeWrittenIsToldBefore) {
  TemporaryFolder folder;
  write_text(folder / "file", "");
  check_output_file(folder / "new" / "below" / "a.txt");
  check_output_folder(folder / "new" / "below");
  check_output_file("/dev/null");
  check_output_folder(folder.path());
  EXPECT_EQ(file_count(folder.path()), 1u) << "nothing is made";
  for (const auto& path : {folder.path(), folder / "file" / "a.txt", folder / "file" / "b" / "a.txt"})
    EXPECT_THROW(check_output_file(path), InputError) << path;
  for (const auto& path : {folder / "file", folder / "file" / "a"})
    EXPECT_THROW(check_output_folder(path), InputError) << path;
}

TEST(AtomicFile, RefusesAFolderAndAnEmptyName) {
  TemporaryFolder folder;
  EXPECT_THROW(AtomicFile{folder.path()}, InputError);
  EXPECT_THROW(AtomicFile{""}, InputError);
  EXPECT_THROW(AtomicFile{folder.path() / ""}, InputError);
  write_text(folder / "plain", "");
  EXPECT_THROW(AtomicFile{folder.path() / "plain" / "child"}, InputError);
}

TEST(AtomicFile, ALinkIsReplacedAndWhatItLeadsToStays) {
  TemporaryFolder folder;
  write_text(folder / "real.txt", "old");
  std::filesystem::create_symlink(folder / "real.txt", folder / "link.txt");
  write_file(folder / "link.txt", std::string_view("new"));
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "link.txt"));
  EXPECT_EQ(read_text(folder / "link.txt"), "new");
  EXPECT_EQ(read_text(folder / "real.txt"), "old");
}

TEST(AtomicFile, NoLinkIsFollowedBelowAnOutputFolder) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "elsewhere");
  make_output_folder(folder / "out");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder.path() / "out" / "pictures");
  EXPECT_THROW(write_file(folder.path() / "out" / "pictures" / "a.png", std::string_view("x")), InputError);
  EXPECT_EQ(file_count(folder / "elsewhere"), 0u);
  forget_output_folders();
}

TEST(FolderLock, APlantedLinkIsRefusedAndItsTargetStays) {
  TemporaryFolder folder;
  for (const bool hard : {false, true}) {
    write_text(folder / "victim", "kept");
    const auto out = folder / (hard ? "hard" : "soft");
    std::filesystem::create_directories(out);
    if (hard)
      std::filesystem::create_hard_link(folder / "victim", out / ".lockstep.lock");
    else
      std::filesystem::create_symlink(folder / "victim", out / ".lockstep.lock");
    EXPECT_THROW(FolderLock{out}, InputError);
    EXPECT_EQ(read_text(folder / "victim"), "kept");
  }
}

TEST(AtomicFile, WritesToADeviceDirectly) {
  EXPECT_NO_THROW(write_file("/dev/null", std::string_view("gone")));
}

TEST(AtomicFile, AKilledProcessLeavesTheEarlierFileWhole) {
  TemporaryFolder folder;
  write_text(folder / "a.txt", "earlier");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder / "a.txt");
    file.write("half");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_text(folder / "a.txt"), "earlier");
}

TEST(AtomicFile, AFullDiskIsAnErrorThatLeavesTheEarlierFileWhole) {
  TemporaryFolder folder;
  write_text(folder / "a.txt", "earlier");
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{1024, 1024};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    try {
      write_file(folder / "a.txt", std::string_view(std::string(100'000, 'x')));
      ::_exit(1);
    } catch (const InputError&) { ::_exit(0); }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_text(folder / "a.txt"), "earlier");
  EXPECT_EQ(file_count(folder.path()), 1u);
}

}  // namespace
