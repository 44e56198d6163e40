#include "core/dynamic_library.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "core/temporary_folder.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::test;

TEST(DynamicLibrary, FindsASystemLibraryByTheFirstNameThatWorks) {
  const DynamicLibrary library = LibrarySearch{{"libno-such-thing.so.9", "libm.so.6"}, {}}.load();
  ASSERT_TRUE(library);
  auto* cosine = library.function<double(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_EQ(library.symbol("no_such_symbol"), nullptr);
}

TEST(DynamicLibrary, AMissingOneGivesTheReason) {
  std::string reason;
  EXPECT_FALSE(LibrarySearch({{"libno-such-thing.so"}, {}}).load(&reason));
  EXPECT_NE(reason.find("libno-such-thing.so"), std::string::npos) << reason;
}

TEST(DynamicLibrary, ABrokenFileInTheOwnPathIsTheReason) {
  TemporaryFolder folder;
  write_text(folder / "libbroken-thing.so", "this is no library");
  ::setenv("LOCKSTEP_LIBRARY_PATH", folder.path().c_str(), 1);
  std::string reason;
  EXPECT_FALSE(LibrarySearch({{"libbroken-thing.so"}, {}}).load(&reason));
  ::unsetenv("LOCKSTEP_LIBRARY_PATH");
  EXPECT_NE(reason.find(folder.path().string()), std::string::npos) << reason;
}

TEST(DynamicLibrary, AFolderThatCannotBeUsedIsRefusedByItsVariable) {
  TemporaryFolder folder;
  write_text(folder / "file", "no folder");
  const auto search = [](const std::string& value) {
    ::setenv("LOCKSTEP_LIBRARY_PATH", value.c_str(), 1);
    std::string said;
    try {
      LibrarySearch{{"libm.so.6"}, {}}.load();
    } catch (const InputError& e) { said = e.what(); }
    ::unsetenv("LOCKSTEP_LIBRARY_PATH");
    return said;
  };
  const std::string good = folder.path().string();
  for (const std::string& bad :
       {std::string("."), std::string("lib"), (folder / "file").string(), (folder / "none").string()})
    for (const std::string& value : {bad, good + ":" + bad}) {
      const std::string said = search(value);
      EXPECT_NE(said.find("\"" + bad + "\" [LOCKSTEP_LIBRARY_PATH]"), std::string::npos)
          << value << ": " << said;
    }
  for (const std::string& value : {std::string(), good, good + ":", ":" + good, good + "::" + good})
    EXPECT_EQ(search(value), "") << value;
}

TEST(DynamicLibrary, SearchesPythonsSitePackages) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "nvidia" / "cu13" / "lib");
  ::setenv("PYTHONPATH", folder.path().c_str(), 1);
  const auto folders = LibrarySearch{{"x"}, {"nvidia/cu13/lib"}}.folders_after_system();
  ::unsetenv("PYTHONPATH");
  EXPECT_NE(std::find(folders.begin(), folders.end(), folder.path() / "nvidia" / "cu13" / "lib"),
            folders.end());
}

TEST(DynamicLibrary, ARelativeNameWithFoldersIsNeverLoaded) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "below");
  std::filesystem::copy_file(LibrarySearch{{"libm.so.6"}, {}}.load().path(), folder / "below/libown.so");
  ::setenv("LOCKSTEP_LIBRARY_PATH", folder.path().c_str(), 1);
  EXPECT_FALSE((LibrarySearch{{"below/libown.so"}, {}}.load()));
  EXPECT_FALSE((LibrarySearch{{"./below/libown.so"}, {}}.load()));
  EXPECT_TRUE((LibrarySearch{{(folder / "below/libown.so").string()}, {}}.load()));
  ::unsetenv("LOCKSTEP_LIBRARY_PATH");
}

TEST(DynamicLibrary, RelativeModulePathsOfTheEnvironmentAreRemoved) {
  const auto left = [](const char* value) {
    ::setenv("GDAL_DRIVER_PATH", value, 1);
    ::setenv("VK_ICD_FILENAMES", "/a.json:b.json:/c.json", 1);
    testing::internal::CaptureStderr();
    drop_relative_module_paths();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("VK_ICD_FILENAMES"), said.npos);
    EXPECT_STREQ(std::getenv("VK_ICD_FILENAMES"), "/a.json:/c.json");
    const char* text = std::getenv("GDAL_DRIVER_PATH");
    return std::string(text ? text : "(none)");
  };
  EXPECT_EQ(left("."), "(none)");
  EXPECT_EQ(left(""), "");
  EXPECT_EQ(left("plugins:~/plugins"), "(none)");
  EXPECT_EQ(left("/a:/b"), "/a:/b");
  EXPECT_EQ(left(":/a:"), "/a");
  EXPECT_EQ(left("./b:/a:c"), "/a");
  EXPECT_EQ(left("disable"), "disable");
  ::unsetenv("GDAL_DRIVER_PATH");
  ::unsetenv("VK_ICD_FILENAMES");
}

}  // namespace
