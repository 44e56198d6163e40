// The choice of a variant by a table's rows.
#include <gtest/gtest.h>

#include "device/variants/table.hpp"
#include "device/variants/variants.hpp"
#include "lockstep/error.hpp"

namespace lockstep::variants {
namespace {

using Row = Computation::Row;

Computation sums(Agreement exact = Agreement::bits) {
  return Computation(
      {.name = "test.sums", .variants = {"plain", "tree", "wide"}, .axes = {"size"}, .exact = exact});
}

DeviceInfo device_of(DeviceKind kind, const std::string& model) {
  DeviceInfo info;
  info.kind = kind;
  info.description = model + ", driver 580.1";
  return info;
}
const DeviceInfo kH200 = device_of(DeviceKind::cuda, "NVIDIA H200"),
                 kOther = device_of(DeviceKind::cuda, "Other"), kCpu = device_of(DeviceKind::cpu, "Some CPU");

struct Asked {
  std::string_view of{};
  double size = 0;
  Numerics numerics = Numerics::exact;
};
std::vector<int> ranking(const Computation& c, const std::vector<Row>& rows, const DeviceInfo& device,
                         const Asked& a) {
  const Axis axis{"size", a.size};
  const std::span<const int> list = c.ranking(rows, device, a.numerics, {a.of, {&axis, 1}});
  return {list.begin(), list.end()};
}
using Order = std::vector<int>;

TEST(Ranking, TakesTheClosestRow) {
  const Computation c = sums();
  const std::vector<Row> rows = c.rows(Table::parse(R"({"format": 1, "rows": [
    {"computation": "test.sums", "device": "any", "steps": [[0, ["plain"]]]},
    {"computation": "test.sums", "device": "cuda", "steps": [[0, ["tree"]]]},
    {"computation": "test.sums", "device": "cuda", "of": "f64", "steps": [[0, ["wide", "plain"]]]},
    {"computation": "test.sums", "device": "NVIDIA H200", "steps": [[0, ["wide"]]]},
    {"computation": "test.other", "device": "NVIDIA H200", "steps": [[0, ["nothing"]]]}
  ]})",
                                                    "test"),
                                       false);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(ranking(c, rows, kCpu, {}), (Order{0, 1, 2}));
  EXPECT_EQ(ranking(c, rows, kOther, {}), (Order{1, 0, 2}));
  EXPECT_EQ(ranking(c, rows, kOther, {"f64"}), (Order{2, 0, 1}));
  EXPECT_EQ(ranking(c, rows, kOther, {"f32"}), (Order{1, 0, 2}));
  EXPECT_EQ(ranking(c, rows, kH200, {"f64"}), (Order{2, 0, 1}));
}

TEST(Ranking, StepsBeginWithTheirSize) {
  const Computation c = sums();
  const std::vector<Row> rows = c.rows(Table::parse(R"({"format": 1, "rows": [
    {"computation": "test.sums", "device": "any", "axis": "size", "steps": [[0, ["plain"]], [48, ["tree"]], [64, ["wide", "tree"]]]}
  ]})",
                                                    "test"),
                                       false);
  EXPECT_EQ(ranking(c, rows, kCpu, {{}, 47}).front(), 0);
  EXPECT_EQ(ranking(c, rows, kCpu, {{}, 48}).front(), 1);
  EXPECT_EQ(ranking(c, rows, kCpu, {{}, 63}).front(), 1);
  EXPECT_EQ(ranking(c, rows, kCpu, {{}, 1e9}), (Order{2, 1, 0}));
}

TEST(Ranking, AUsersRowWinsWhereItChangesNoBit) {
  const Table own = Table::parse(R"({"format": 1, "rows": [
    {"computation": "test.sums", "device": "any", "steps": [[0, ["tree"]]]},
    {"computation": "test.sums", "device": "any", "numerics": "fast", "steps": [[0, ["wide"]]]}
  ]})",
                                 "test");
  const Table shipped = Table::parse(R"({"format": 1, "rows": [
    {"computation": "test.sums", "device": "NVIDIA H200", "of": "f64", "steps": [[0, ["plain"]]]}
  ]})",
                                     "test");
  for (const Agreement agreement : {Agreement::bits, Agreement::bound}) {
    const Computation c = sums(agreement);
    std::vector<Row> rows = c.rows(shipped, false);
    const std::vector<Row> more = c.rows(own, true);
    rows.insert(rows.end(), more.begin(), more.end());
    EXPECT_EQ(ranking(c, rows, kH200, {"f64"}).front(), agreement == Agreement::bits ? 1 : 0);
    EXPECT_EQ(ranking(c, rows, kH200, {"f64", 0, Numerics::fast}).front(), 2);
  }
}

TEST(Ranking, UnknownNamesAreRefused) {
  const Computation c = sums();
  for (const char* row :
       {R"("steps": [[0, ["fastest"]]])", R"("axis": "width", "steps": [[0, ["plain"]]])"}) {
    const Table table = Table::parse(
        std::string(R"({"format": 1, "rows": [{"computation": "test.sums", "device": "any", )") + row + "}]}",
        "test");
    EXPECT_THROW(c.rows(table, true), InputError) << row;
  }
}

/// A computation of the shipped table.
Computation products() {
  return Computation({.name = "primitives.matmul",
                      .variants = {"columns", "packed", "tiles", "wide"},
                      .axes = {"least_side", "waves"}});
}

TEST(Choose, TakesTheFirstThatAppliesAndTellsWhy) {
  const Device device = Device::open("interp");
  const Axis axis{"least_side", 100};
  const Problem problem{{}, {&axis, 1}};
  const Computation c = products();
  const auto any = [](int) { return std::string(); };
  EXPECT_EQ(choose(c, device, problem, {}, any).variant, 1);
  EXPECT_TRUE(choose(c, device, problem, {}, any).refused.empty());
  const Choice other =
      choose(c, device, problem, {}, [](int v) { return std::string(v == 1 ? "a window" : ""); });
  EXPECT_EQ(other.variant, 0);
  EXPECT_EQ(other.reason_of(1), "a window");
  EXPECT_EQ(other.reason_of(2), "");
}

TEST(Choose, OneThatIsAskedForIsTakenOrRefused) {
  const Device device = Device::open("interp");
  const Computation c = products();
  const auto only_tiles = [](int v) { return std::string(v == 2 ? "" : "no tiles"); };
  EXPECT_EQ(choose(c, device, {}, "tiles", only_tiles).variant, 2);
  try {
    choose(c, device, {}, "wide", only_tiles);
    FAIL();
  } catch (const UnsupportedError& e) {
    EXPECT_STREQ(e.what(),
                 "primitives.matmul by wide: no tiles [primitives.matmul]: expected another variant, or "
                 "none, which takes "
                 "the fastest that applies");
  }
  try {
    choose(c, device, {}, "tile", only_tiles);
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(),
                 "variant 'tile' [primitives.matmul]: expected one of columns, packed, tiles, wide");
  }
}

}  // namespace
}  // namespace lockstep::variants
