// The choice of a variant by a table's rows.
#include <gtest/gtest.h>

#include "device/variants/memory.hpp"
#include "device/variants/table.hpp"
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

TEST(Measured, TakesTheClosestRowOfThatManyNumbers) {
  const auto pixel = [](const DeviceInfo& device) { return measured("urban.check.pixel", device, 2)[0]; };
  EXPECT_EQ(pixel(kCpu), 8e-7);
  EXPECT_EQ(pixel(kH200), 6e-9);
  EXPECT_EQ(pixel(device_of(DeviceKind::webgpu, "Other")), 3e-8);
  EXPECT_THROW(measured("urban.check.pixel", kCpu, 3), InternalError);
  EXPECT_THROW(measured("nothing", kCpu, 2), InternalError);
}

/// Of this computation; others of the process choose too.
std::vector<Chosen> chosen_of(std::string_view name) {
  std::vector<Chosen> list = chosen();
  std::erase_if(list, [&](const Chosen& c) { return c.computation != name; });
  return list;
}

TEST(Chosen, NamesEachVariantAndItsRowOnce) {
  const Computation solver(
      {.name = "solve.factor", .variants = {"cholesky", "device_cholesky"}, .axes = {"residuals"}});
  const auto take = [&](const DeviceInfo& device, double residuals, std::string_view asked = {}) {
    const Axis axis{"residuals", residuals};
    choose(solver, device, Numerics::exact, {{}, {&axis, 1}}, asked);
  };
  forget_chosen();
  EXPECT_TRUE(chosen_of("solve.factor").empty());
  for (int again = 0; again < 2; ++again) take(kH200, 19999), take(kH200, 20000), take(kCpu, 1e9);
  take(kCpu, 1, "device_cholesky");
  const std::string cuda = "the shipped table for cuda";
  EXPECT_EQ(chosen_of("solve.factor"),
            (std::vector<Chosen>{{"solve.factor", "cholesky", "the shipped table for any"},
                                 {"solve.factor", "cholesky", cuda},
                                 {"solve.factor", "device_cholesky", "the call"},
                                 {"solve.factor", "device_cholesky", cuda}}));
  forget_chosen();
  EXPECT_TRUE(chosen_of("solve.factor").empty());
}

TEST(Chosen, HasTheVariantThatAppliesRatherThanTheFastest) {
  const Computation solver(
      {.name = "solve.factor", .variants = {"cholesky", "device_cholesky"}, .axes = {"residuals"}});
  const Axis axis{"residuals", 1e9};
  forget_chosen();
  const Choice choice = choose(solver, kH200, Numerics::exact, {{}, {&axis, 1}}, {},
                               [](int v) { return std::string(v == 1 ? "too large" : ""); });
  EXPECT_EQ(choice.reason_of(1), "too large");
  ASSERT_EQ(chosen_of("solve.factor").size(), 1u);
  EXPECT_EQ(chosen_of("solve.factor")[0].variant, "cholesky");
}

// A variant whose scratch memory is more than what is free gives way to the next; one that the call names is refused.
TEST(Choose, TakesWhatTheFreeMemoryHolds) {
  EXPECT_EQ(no_memory(100, 100), "");
  EXPECT_EQ(no_memory(int64_t(3) << 30, int64_t(1) << 30),
            "3.00 GiB of scratch memory, where 1.00 GiB are free");
  const Device device = Device::open("interp");
  const Computation computation(
      {.name = "primitives.fft", .variants = {"passes", "blocks", "lanes"}, .axes = {"points"}});
  const auto applies = [](int v) { return std::string(v == 1 ? "no blocks" : ""); };
  const auto chosen = [&](std::string_view asked, int64_t of_passes) {
    const auto scratch = [=](int v) {
      EXPECT_NE(v, 1) << "asked of one that does not apply";
      return v == 0 ? of_passes : 0;
    };
    return choose(computation, device, {}, asked, with_memory(computation, device, applies, scratch));
  };
  EXPECT_EQ(chosen("", int64_t(64) << 20).variant, 0);
  const Choice other = chosen("", int64_t(1) << 60);
  EXPECT_EQ(other.variant, 2);
  EXPECT_NE(other.reason_of(0).find("1.00 EiB of scratch memory"), std::string::npos) << other.reason_of(0);
  EXPECT_EQ(other.reason_of(1), "no blocks");
  EXPECT_THROW(chosen("passes", int64_t(1) << 60), UnsupportedError);
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
                      .variants = {"columns", "packed", "tiles", "wide", "wide-64", "tensor-64", "tensor-128",
                                   "slim", "slim-wide"},
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
                 "variant 'tile' [primitives.matmul]: expected one of columns, packed, tiles, wide, wide-64, "
                 "tensor-64, "
                 "tensor-128, slim, slim-wide");
  }
}

}  // namespace
}  // namespace lockstep::variants
