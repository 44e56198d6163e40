#include "core/dynamic_library.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "core/temporary_folder.hpp"

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

TEST(DynamicLibrary, SearchesPythonsSitePackages) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "nvidia" / "cu13" / "lib");
  ::setenv("PYTHONPATH", folder.path().c_str(), 1);
  const auto folders = LibrarySearch{{"x"}, {"nvidia/cu13/lib"}}.folders_after_system();
  ::unsetenv("PYTHONPATH");
  EXPECT_NE(std::find(folders.begin(), folders.end(), folder.path() / "nvidia" / "cu13" / "lib"),
            folders.end());
}

}  // namespace
