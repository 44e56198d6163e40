// The table of environment variables: what its kinds refuse.
#include "core/environment/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "core/refusal.hpp"

namespace lockstep::environment {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A variable for the length of a test.
class Set {
 public:
  Set(const char* name, const char* value) : name_(name) {
    if (const char* now = std::getenv(name)) before_ = now;
    ::setenv(name, value, 1);
  }
  ~Set() { before_.empty() ? ::unsetenv(name_) : ::setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

std::string refused(const char* name, const char* value) {
  const Set set(name, value);
  EXPECT_EQ(test::refusal([&] { (void)text(name); }), test::refusal([] { check(); })) << name;
  return test::refusal([&] { (void)text(name); });
}

TEST(Environment, NamesAreThereOnce) {
  std::set<std::string> names;
  for (const Variable& v : variables()) {
    EXPECT_TRUE(names.insert(v.name).second) << v.name;
    EXPECT_FALSE(v.effect.empty()) << v.name;
    EXPECT_EQ(std::string(v.name).starts_with("LOCKSTEP_"), v.readers != Readers::system) << v.name;
  }
}

TEST(Environment, ValuesThatCannotBeUsedAreRefusedByName) {
  for (const char* value : {"-1", "all", "1.5", "1 ", "99999999999999999999"})
    EXPECT_THAT(refused("LOCKSTEP_CHECK", value), AllOf(HasSubstr(value), HasSubstr("LOCKSTEP_CHECK")));
  EXPECT_THAT(refused("LOCKSTEP_CPU_CODE", "slow"), HasSubstr("fast or quick"));
  EXPECT_THAT(refused("LOCKSTEP_DUMP_PASSES", "/nonexistent"), HasSubstr("a folder that exists"));
  EXPECT_THAT(refused("LOCKSTEP_DATA", "/dev/null"), HasSubstr("a folder that exists"));
  EXPECT_THAT(refused("LOCKSTEP_LIBRARY_PATH", "/a:b"), HasSubstr("absolute folders"));
  for (const char* value : {"x", "x:", "x:melt", ":launch", "x:launch:0", "x:launch:1:1", "x:launch:"})
    EXPECT_THAT(refused("LOCKSTEP_FAULT", value), HasSubstr("<stage>")) << value;
}

TEST(Environment, ValuesThatCanBeUsedAreGiven) {
  const std::vector<std::pair<const char*, const char*>> all = {{"LOCKSTEP_CHECK", "10"},
                                                                {"LOCKSTEP_CPU_CODE", "quick"},
                                                                {"LOCKSTEP_SKIP_PASSES", "cse,licm,"},
                                                                {"LOCKSTEP_DUMP_PASSES", "/"},
                                                                {"LOCKSTEP_LIBRARY_PATH", "/usr::/tmp"},
                                                                {"LOCKSTEP_FAULT", "a.b:launch:3"}};
  for (const auto& [name, value] : all) {
    const Set set(name, value);
    EXPECT_STREQ(text(name), value);
    const Set empty(name, "");
    EXPECT_EQ(text(name), nullptr) << name;
  }
}

TEST(Environment, OtherNamesAreFaultsOfTheCaller) {
  EXPECT_THROW((void)text("LOCKSTEP_OTHER"), InternalError);
}

}  // namespace
}  // namespace lockstep::environment
