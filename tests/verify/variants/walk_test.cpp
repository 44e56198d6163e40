// All computations by all their variants: the same results, reasons where one does not apply, and a user's table that changes the
// choice alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "core/temporary_folder.hpp"
#include "lockstep/error.hpp"
#include "lockstep/fft.hpp"
#include "registry.hpp"

namespace lockstep::variants {
namespace {

/// The table of this process, which exists before the first choice: transforms of fewer than 1000 points by passes.
struct OwnTable {
  test::TemporaryFolder folder;
  OwnTable() {
    const std::filesystem::path file = folder / "variants.json";
    write_table(file, Table::parse(R"({"format": 1, "rows": [
      {"computation": "primitives.fft", "device": "cpu", "axis": "points", "steps": [[0, ["passes"]], [1000, ["lanes"]]]},
      {"computation": "pde.loss", "device": "cpu", "steps": [[0, ["fused"]]]},
      {"computation": "forecast.rollout", "device": "cpu", "axis": "width", "steps": [[0, ["by_rows"]]]}
    ]})",
                                   "test"));
    ::setenv("LOCKSTEP_VARIANTS", file.c_str(), 1);
  }
};
const OwnTable kOwnTable;

double largest(const Array& a) {
  double most = 0;
  const Array wide = a.packed().to(Storage::f64);
  for (const double v : wide.as<double>()) most = std::max(most, std::abs(v));
  return most;
}

void expect_agreement(const std::vector<Array>& got, const std::vector<Array>& expected, double tolerance,
                      const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t k = 0; k < got.size(); ++k) {
    const Array a = got[k].packed(), b = expected[k].packed();
    ASSERT_EQ(a.elements(), b.elements()) << what;
    if (tolerance == 0) {
      EXPECT_EQ(std::memcmp(a.data(), b.data(), size_t(a.bytes())), 0) << what << ", output " << k;
      continue;
    }
    const Array x = a.to(Storage::f64), y = b.to(Storage::f64);
    for (int64_t i = 0; i < x.elements(); ++i)
      ASSERT_NEAR(x.as<double>()[size_t(i)], y.as<double>()[size_t(i)], tolerance * largest(b))
          << what << ", output " << k;
  }
}

TEST(Variants, AgreeAndHaveReasons) {
  std::map<std::string, int> applied;
  for (const Subject& s : select_variants({})) {
    if (!s.bind) continue;
    EXPECT_FALSE(s.small.empty()) << s.computation->name();
    if (s.computation->options().exact == Agreement::bits) {
      EXPECT_EQ(s.tolerance, 0) << s.computation->name();
    }
    for (const int64_t size : s.small) {
      std::vector<Array> first;
      for (const char* where : {"cpu", "interp"}) {
        const Device device = Device::open(where);
        for (const std::string_view variant : s.computation->variants()) {
          const std::string what = std::string(s.computation->name()) + " by " + std::string(variant) +
                                   " on " + where + ", size " + std::to_string(size);
          try {
            const CaseRun run = s.bind(device, size, variant);
            for (int again = 0; again < 2; ++again) run.run();
            const std::vector<Array> outputs = run.outputs();
            if (first.empty()) first = outputs;
            ASSERT_FALSE(first.empty()) << what;
            EXPECT_GT(largest(first[0]), 0) << what;
            expect_agreement(outputs, first, s.tolerance, what);
            ++applied[std::string(s.computation->name()) + " " + std::string(variant)];
          } catch (const UnsupportedError& e) {
            EXPECT_NE(e.problem().find(' '), std::string::npos) << what << ": " << e.problem();
            EXPECT_NE(variant, s.computation->variant(0)) << "the first one applies to all: " << e.what();
          }
        }
      }
    }
  }
  // All but those of a GPU ran.
  for (const Subject& s : select_variants({})) {
    if (!s.bind) continue;
    for (const std::string_view variant : s.computation->variants()) {
      const std::string key = std::string(s.computation->name()) + " " + std::string(variant);
      const bool native = variant == "cluster" || variant == "batch" || variant == "library" ||
                          variant.starts_with("tensor-");
      EXPECT_EQ(applied[key] > 0, !native) << key;
    }
  }
}

// The table and what `tune` measures name the same computations; each has sizes and a way to run, or a sentence that says why
// not, on the host and on GPUs.
TEST(Variants, AllRowsOfTheTableAreMeasuredOrSayWhyNot) {
  std::set<std::string> of_table, of_subjects;
  for (const TableRow& row : Table::shipped().rows()) of_table.insert(row.computation);
  for (const Subject& s : select_variants({})) {
    const std::string name(s.name());
    of_subjects.insert(name);
    EXPECT_NE(s.computation == nullptr, s.numbers.empty()) << name;
    EXPECT_EQ(bool(s.measure) && s.computation, false) << name;
    EXPECT_EQ(bool(s.bind), bool(s.position)) << name;
    if (s.measure) continue;
    for (const Range* range : {&s.host, &s.gpu}) {
      if (range->sizes.empty()) {
        EXPECT_NE(range->none.find(' '), std::string::npos) << name;
        continue;
      }
      EXPECT_TRUE(s.bind) << name;
      EXPECT_TRUE(std::ranges::is_sorted(range->sizes)) << name;
      const std::vector<std::string_view>& axes = s.computation->options().axes;
      EXPECT_NE(std::ranges::find(axes, range->axis), axes.end()) << name << ": " << range->axis;
    }
    const Device device = Device::open("interp");
    if (!s.host.sizes.empty()) continue;
    const Tuned tuned = tune(device, s, 1);
    EXPECT_EQ(tuned.skipped, s.host.none) << name;
    EXPECT_TRUE(tuned.points.empty()) << name;
  }
  EXPECT_EQ(of_subjects, of_table);
}

/// Bytes that binding and running a variant allocates at most at a time.
int64_t taken_by(const Device& device, const Subject& s, int64_t size, std::string_view variant) {
  device.synchronize();
  const int64_t before = device.counters().allocated_bytes;
  Device(device).reset_peak();
  const CaseRun run = s.bind(device, size, variant);
  for (int again = 0; again < 2; ++again) run.run();
  device.synchronize();
  return device.counters().peak_bytes - before;
}

// Where memory is not rounded to classes, to the byte, but for the few buffers of fewer than 16 bytes, which have 16.
TEST(Variants, TellTheMemoryThatTheyTake) {
  const Device device = Device::open("interp");
  std::set<std::string> differ;
  for (const Subject& s : select_variants({})) {
    const std::string name(s.name());
    EXPECT_EQ(s.bind && !s.memory, !s.no_memory.empty()) << name;
    if (!s.memory) continue;
    std::set<int64_t> scratch;
    for (const std::string_view variant : s.computation->variants()) try {
        const int64_t size = s.small.back(), taken = taken_by(device, s, size, variant);
        const VariantMemory told = s.memory(device, size, variant);
        EXPECT_LE(told.given + told.scratch, taken) << name << " by " << variant << ", size " << size;
        EXPECT_LT(taken - told.given - told.scratch, 64) << name << " by " << variant << ", size " << size;
        scratch.insert(told.scratch);
      } catch (const UnsupportedError&) { continue; }
    if (scratch.size() > 1) differ.insert(name);
  }
  for (const char* name : {"primitives.matmul", "primitives.matmul.narrow", "primitives.fft", "pde.loss",
                           "pde.fused.tile", "pde.trajectory", "forecast.rollout"})
    EXPECT_TRUE(differ.contains(name)) << name;
}

// Numbers are measured, not ranked: positive ones, which are then what the table has for this device.
TEST(Variants, NumbersBecomeARowOfValues) {
  const Subject s = select_variants({"urban.check.pixel"}).at(0);
  const Device device = Device::open("cpu");
  const Tuned tuned = tune(device, s, 1);
  EXPECT_EQ(tuned.skipped, "");
  EXPECT_EQ(tuned.row.computation, "urban.check.pixel");
  EXPECT_EQ(tuned.row.device, model_of(device.info()));
  ASSERT_EQ(tuned.row.values.size(), measured("urban.check.pixel", device.info(), 2).size());
  // A step is the work of many patches, and neither takes a millisecond.
  EXPECT_GT(tuned.row.values[1], 0);
  EXPECT_GT(tuned.row.values[0], tuned.row.values[1]);
  EXPECT_LT(tuned.row.values[0], 1e-3);
}

std::vector<std::string> kernel_names(const Fft& plan) {
  std::vector<std::string> names;
  for (const Kernel& k : plan.kernels()) names.push_back(k.name());
  return names;
}

TEST(Variants, AUsersTableChangesTheChoiceAndNoBit) {
  const Device device = Device::open("cpu");
  for (const int64_t n : {16, 32}) {
    FftOptions options, passes, lanes;
    options.lengths = passes.lengths = lanes.lengths = {n, n};
    passes.variant = "passes", lanes.variant = "lanes";
    const Fft chosen(device, options), by_passes(device, passes), by_lanes(device, lanes);
    EXPECT_NE(kernel_names(by_passes), kernel_names(by_lanes));
    EXPECT_EQ(kernel_names(chosen), kernel_names(n * n < 1000 ? by_passes : by_lanes)) << n;
    std::vector<float> x(size_t(2 * n * n));
    for (size_t k = 0; k < x.size(); ++k) x[k] = float(std::sin(double(k)));
    const Buffer in = device.upload(Array::of(x, {n, n, 2}));
    std::vector<std::vector<float>> results;
    for (const Fft* plan : {&chosen, &by_passes, &by_lanes}) {
      const Buffer out = device.allocate<float>({n, n, 2});
      plan->execute(in, out);
      results.push_back(device.download<float>(out));
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

// Where a choice would change a loss's last bits, and where a row names an axis that there is not.
TEST(Variants, RowsThatMayNotChooseAreLeftOut) {
  const std::vector<Subject> subjects = select_variants({"pde.loss", "forecast.rollout"});
  const Device device = Device::open("cpu"), fast = Device::open("cpu", {.numerics = Numerics::fast});
  const Computation &loss = *subjects.front().computation, &rollout = *subjects.back().computation;
  const auto first = [](const Computation& c, const Device& d) {
    return c.variant(c.ranking(d.info(), d.numerics(), {}).front());
  };
  EXPECT_EQ(first(loss, device), "two-kernel");
  EXPECT_EQ(first(loss, fast), "fused");
  EXPECT_EQ(first(rollout, device), "one_launch");
}

}  // namespace
}  // namespace lockstep::variants
