// Reading runs again: percentiles against sorting, NetCDF against what was written.
#include "urban/results/run_folder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/numbers/statistics.hpp"
#include "core/temporary_folder.hpp"
#include "io/rasters/netcdf/grid_series.hpp"
#include "io/rasters/netcdf/grid_series_reader.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "lockstep/error.hpp"
#include "urban/results/percentiles.hpp"

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

}  // namespace
}  // namespace lockstep::urban
