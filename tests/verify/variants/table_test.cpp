// Tables as texts and files: what is refused, and what is left whole.
#include "device/variants/table.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/temporary_folder.hpp"
#include "lockstep/error.hpp"

namespace lockstep::variants {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGood =
    R"({"format": 1, "rows": [{"computation": "a.b", "device": "cpu", "axis": "n", "steps": [[0, ["x"]], [8, ["y", "x"]]]}]})";

std::string refusal_of(const std::string& text) {
  try {
    Table::parse(text, "here");
    return {};
  } catch (const InputError& e) { return e.what(); }
}

TEST(Table, RefusesWhatIsNoTable) {
  const auto row = [](const std::string& members) {
    return fmt::format(R"({{"format": 1, "rows": [{{"computation": "a.b", {}}}]}})", members);
  };
  struct Bad {
    std::string text;
    const char* why;
  };
  for (const Bad& bad : {
           Bad{"", "no JSON"},
           {"[]", "no rows"},
           {R"({"format": 2, "rows": []})", "no rows"},
           {R"({"format": 1, "rows": {}})", "no rows"},
           {R"({"format": 1, "rows": [3]})", "a row that is not an object"},
           {row(R"("steps": [[0, ["x"]]])"), "no text 'device'"},
           {row(R"("device": "", "steps": [[0, ["x"]]])"), "without device or steps"},
           {row(R"("device": "cpu")"), "without device or steps"},
           {row(R"("device": "cpu", "steps": [])"), "without device or steps"},
           {row(R"("device": "cpu", "of": 3, "steps": [[0, ["x"]]])"), "no text 'of'"},
           {row(R"("device": "cpu", "numerics": "quick", "steps": [[0, ["x"]]])"), "numerics 'quick'"},
           {row(R"("device": "cpu", "steps": [["x", ["x"]]])"), "not a pair"},
           {row(R"("device": "cpu", "steps": [[0, []]])"), "not a pair"},
           {row(R"("device": "cpu", "steps": [[0, [1]]])"), "a variant that is not a text"},
           {row(R"("device": "cpu", "axis": "n", "steps": [[1, ["x"]]])"), "do not ascend from 0"},
           {row(R"("device": "cpu", "axis": "n", "steps": [[0, ["x"]], [0, ["y"]]])"),
            "do not ascend from 0"},
           {row(R"("device": "cpu", "steps": [[0, ["x"]], [1, ["y"]]])"), "without an axis"},
           {row(R"("device": "cpu", "values": [])"), "without device or positive numbers"},
           {row(R"("device": "cpu", "values": [1, 0])"), "without device or positive numbers"},
           {row(R"("device": "cpu", "values": ["x"])"), "without device or positive numbers"},
           {row(R"("device": "", "values": [1])"), "without device or positive numbers"},
       }) {
    const std::string what = refusal_of(bad.text);
    EXPECT_NE(what.find(bad.why), std::string::npos) << bad.text << ": " << what;
    EXPECT_NE(what.find("[here]: expected a table of variants, format 1"), std::string::npos) << what;
  }
  EXPECT_EQ(refusal_of(kGood), "");
}

TEST(Table, PutReplacesARowOfTheSameProblems) {
  Table table = Table::parse(kGood, "here");
  TableRow row = table.rows().front();
  row.steps.pop_back();
  table.put(row);
  EXPECT_EQ(table.rows().size(), 1u);
  EXPECT_EQ(table.rows().front().steps.size(), 1u);
  for (std::string TableRow::* member :
       {&TableRow::computation, &TableRow::device, &TableRow::of, &TableRow::numerics}) {
    TableRow other = row;
    other.*member = "fast";
    table.put(other);
  }
  EXPECT_EQ(table.rows().size(), 5u);
  // As a text and back.
  const Table again = Table::parse(table.text(), "again");
  EXPECT_EQ(again.text(), table.text());
  EXPECT_EQ(again.rows().size(), 5u);
}

TEST(Table, FilesAreThisUsersAlone) {
  const test::TemporaryFolder folder;
  const fs::path file = folder / "deep" / "variants.json";
  EXPECT_TRUE(read_table(file).rows().empty());  // none yet
  write_table(file, Table::parse(kGood, "here"));
  struct stat status{};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(file.parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(read_table(file).rows().size(), 1u);

  const auto refused = [&](const fs::path& name, const char* why) {
    try {
      read_table(name);
      ADD_FAILURE() << name;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  ::chmod(file.c_str(), 0644);
  EXPECT_EQ(read_table(file).rows().size(), 1u);
  ::chmod(file.c_str(), 0620);
  refused(file, "others can write to it");
  ::chmod(file.c_str(), 0600);
  const fs::path link = folder / "link.json";
  fs::create_symlink(file, link);
  refused(link, "not a regular file");
  fs::remove(link);
  fs::create_hard_link(file, link);
  refused(link, "others can write to it");
  fs::remove(link);
  ::chmod(file.parent_path().c_str(), 0777);
  refused(file, "others may write to");
  ::chmod(file.parent_path().c_str(), 0700);
  test::write_text(file, std::string(2 << 20, ' '));
  ::chmod(file.c_str(), 0600);
  refused(file, "bytes, more than");
  test::write_text(file, "{");
  refused(file, "no JSON");
}

}  // namespace
}  // namespace lockstep::variants
