// Reading runs again: percentiles against sorting, NetCDF against what was written.
#include "urban/results/run_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/files/atomic_file.hpp"
#include "core/numbers/statistics.hpp"
#include "core/refusal.hpp"
#include "core/temporary_folder.hpp"
#include "io/rasters/netcdf/grid_series.hpp"
#include "io/rasters/netcdf/grid_series_reader.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"
#include "urban/results/percentiles.hpp"
#include "urban/results/written_run.hpp"

namespace lockstep::urban {
namespace {

using lockstep::test::TemporaryFolder;

/// Numbers of both signs with ties, from a fixed rule.
std::vector<float> mixed_numbers(size_t count) {
  std::vector<float> values;
  uint32_t state = 12345;
  for (size_t k = 0; k < count; ++k) {
    state = state * 1664525u + 1013904223u;
    values.push_back(k % 7 == 0 ? -2.5f : static_cast<float>(static_cast<int32_t>(state) >> 12) * 1e-3f);
  }
  values[3] = -0.0f;
  values[4] = 0.0f;
  return values;
}

TEST(Percentiles, AreThoseOfTheSortedValues) {
  for (const size_t count : {5u, 6u, 1000u, 4097u}) {
    const std::vector<float> values = mixed_numbers(count);
    const std::vector<double> shares = {0, 1, 5, 25, 50, 75, 95, 99, 100};
    const std::vector<double> found = percentiles(values, shares);
    for (size_t k = 0; k < shares.size(); ++k)
      EXPECT_EQ(found[k], percentile(std::vector<double>(values.begin(), values.end()), shares[k] / 100))
          << count << " values, " << shares[k] << " %";
  }
  EXPECT_EQ(percentiles(std::vector<float>{4}, kShares), std::vector<double>(kShares.size(), 4));
  for (const double v : percentiles({}, kShares)) EXPECT_TRUE(std::isnan(v));
}

TEST(GridSeriesReader, ReadsWhatTheWriterWrote) {
  if (const std::string reason = io::netcdf_unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  constexpr int64_t rows = 300, cols = 257;
  io::SeriesDescription d;
  d.grid.rows = rows;
  d.grid.cols = cols;
  d.grid.place(1);
  d.times = {60, 120};
  d.variables = {{"tmrt", "", "degC", ""}, {"utci", "", "degC", ""}};
  const auto value = [](size_t variable, size_t step, size_t cell) {
    return cell % 11 == 3 ? std::numeric_limits<float>::quiet_NaN()
                          : static_cast<float>(cell) * 0.37f - static_cast<float>(1000 * step + variable);
  };
  {
    io::GridSeriesWriter writer(folder / "run.nc", d);
    std::vector<float> plane(static_cast<size_t>(rows * cols));
    for (size_t v = 0; v < 2; ++v)
      for (size_t k = 0; k < 2; ++k) {
        for (size_t p = 0; p < plane.size(); ++p) plane[p] = value(v, k, p);
        writer.write(v, k, 0, rows, plane.data());
      }
    writer.commit();
  }
  const io::GridSeriesReader reader(folder / "run.nc", 2, rows, cols);
  ASSERT_EQ(reader.names(), (std::vector<std::string>{"tmrt", "utci"}));
  for (const auto& [row, count] : {std::pair<int64_t, int64_t>{0, rows}, {250, 30}, {256, 44}}) {
    std::vector<float> part(static_cast<size_t>(count * cols));
    reader.read(1, 1, row, count, part.data());
    int64_t wrong = 0;
    for (size_t p = 0; p < part.size(); ++p) {
      const float expected = value(1, 1, p + static_cast<size_t>(row * cols));
      wrong += std::isnan(expected) ? !std::isnan(part[p]) : part[p] != expected;
    }
    EXPECT_EQ(wrong, 0) << "rows from " << row;
  }
  EXPECT_THROW(io::GridSeriesReader(folder / "run.nc", 3, rows, cols), InputError);
  EXPECT_THROW(io::GridSeriesReader(folder / "none.nc", 2, rows, cols), InputError);
}

// A record as a run writes it, with one part that is another one.
TEST(RunFolder, RecordsThatAreNoRuns) {
  testing::WrittenRun run;
  run.outputs["utci"] = [](size_t, int64_t, int64_t) { return 1.0f; };
  run.summaries["utci_mean"] = [](int64_t, int64_t) { return 1.0f; };
  run.times = {"2015-06-21T14:00", "2015-06-21T15:00", "2015-06-21T16:00"};
  const TemporaryFolder folder;
  run.write(folder.path());
  const std::string record = io::read_text_file(folder / "run.json");
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = record;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write_file(folder / "run.json", text.replace(at, from.size(), to));
    return lockstep::test::refusal([&] { RunFolder{folder.path()}; });
  };
  EXPECT_EQ(refused("\"rows\": 4", "\"rows\": 4"), "");
  const RunFolder whole(folder.path());
  EXPECT_EQ(whole.step_min(), 60);
  EXPECT_EQ(whole.pixel_m2(), 4);
  const auto expect = [&](const char* part, const std::string& from, const std::string& to) {
    const std::string said = refused(from, to);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  for (const char* name : {"rows", "cols", "pixel_size", "steps", "from", "to", "outputs"})
    expect(fmt::format("a record without '{}'", name).c_str(), fmt::format("\"{}\":", name), "\"other\":");
  expect("a record of 'lockstep urban svf'", "lockstep urban run", "lockstep urban svf");
  expect("rows", "\"rows\": 4", "\"rows\": 0");
  expect("is not a length", "\"pixel_size\": 2", "\"pixel_size\": 0");
  expect("is not a length", "\"pixel_size\": 2", "\"pixel_size\": -2");
  expect("is not a time", "2015-06-21T14:00", "noon");
  expect("3 steps between 'from' and 'to'", "2015-06-21T16:00", "2015-06-21T16:01");
  expect("3 steps between 'from' and 'to'", "2015-06-21T16:00", "2015-06-21T14:00");
  expect("4 x 6 pixels", "\"cols\": 6", "\"cols\": 5");
  expect("no summary/other.tif or .npy", "summary/utci_mean.npy", "summary/other.npy");
}

}  // namespace
}  // namespace lockstep::urban
