// A district of a few pixels with hours of a hot day, as files.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/files/atomic_file.hpp"
#include "core/temporary_folder.hpp"
#include "io/arrays/npy.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/urban/plant.hpp"

namespace lockstep::urban::testing {

struct SmallDistrict {
  lockstep::test::TemporaryFolder folder;
  int64_t rows, cols;
  double pixel_m;
  PlantOptions options;
  using Height = std::function<double(int64_t row, int64_t col)>;

  /// `above`: buildings over `ground`.
  SmallDistrict(int64_t side, double pixel, const Height& ground, const Height& above, const Height& canopy)
      : rows(side), cols(side), pixel_m(pixel) {
    options.city.dsm = write("dsm", [&](int64_t r, int64_t c) { return ground(r, c) + above(r, c); });
    options.city.dem = write("dem", ground);
    options.city.cdsm = write("cdsm", canopy);
    options.city.pixel_size_m = pixel;
    options.weather = folder / "weather.csv";
    weather({12, 13, 14});
    options.latitude_deg = 45;
    options.longitude_deg = 9;
    options.utc_offset_h = 1;
    options.patches = SkyPatches::p145;
    options.substeps = 1;
    options.pictures = false;
    options.formats = {SeriesFormat::npy};
    options.folder = folder / "out";
  }

  std::filesystem::path write(const std::string& name, const Height& height) const {
    std::vector<float> values;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) values.push_back(static_cast<float>(height(r, c)));
    io::RasterGrid grid;
    grid.rows = rows;
    grid.cols = cols;
    const std::filesystem::path file = folder / (name + ".npy");
    io::write_raster(file, grid, Array::of(std::move(values), {rows, cols}));
    return file;
  }
  std::vector<float> read(const std::filesystem::path& file) const {
    const Array values = io::read_raster(file, {pixel_m, {}, false}).values;
    const auto span = values.as<float>();
    return {span.begin(), span.end()};
  }
  void weather(const std::vector<int>& hours) const {
    std::string text = "time,Ta,RH,wind,Kglobal\n";
    for (const int hour : hours)
      text += fmt::format("2015-07-01T{:02}:00,33,35,1.5,{:.0f}\n", hour,
                          900 * std::sin((hour - 5) / 15.0 * 3.14159));
    write_file(options.weather, text);
  }
};

/// Flat, with a block in a corner and a tree.
inline SmallDistrict small_square(int64_t side) {
  return {side, 1.0, [](int64_t, int64_t) { return 12.0; },
          [](int64_t r, int64_t c) { return r < 8 && c < 14 ? 15.0 : 0.0; },
          [side](int64_t r, int64_t c) {
            return std::hypot(double(r - side + 6), double(c - 7)) < 3 ? 7.0 : 0.0;
          }};
}

}  // namespace lockstep::urban::testing
