// The published 400 × 400 arrays of Athens, where the test data is present.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/urban.hpp"

namespace lockstep::urban::testing {

inline std::filesystem::path data_folder() {
  if (const char* folder = std::getenv("LOCKSTEP_DATA")) return folder;
  return LOCKSTEP_TEST_DATA;
}

/// A 2-D .npy of f32 or f64, as f64.
inline std::optional<std::vector<double>> read_athens(const std::string& name) {
  std::ifstream file(data_folder() / "urban/athens400" / (name + ".npy"), std::ios::binary);
  if (!file) return std::nullopt;
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const size_t start = 10 + static_cast<uint8_t>(bytes[8]) + 256u * static_cast<uint8_t>(bytes[9]);
  const bool single =
      std::string(bytes.begin(), bytes.begin() + static_cast<long>(start)).find("'<f4'") != std::string::npos;
  std::vector<double> values((bytes.size() - start) / (single ? 4 : 8));
  for (size_t k = 0; k < values.size(); ++k) {
    if (single) {
      float v;
      std::memcpy(&v, &bytes[start + 4 * k], 4);
      values[k] = static_cast<double>(v);
    } else {
      std::memcpy(&values[k], &bytes[start + 8 * k], 8);
    }
  }
  return values;
}

inline Raster athens_raster(const std::string& name) {
  Raster raster;
  if (const auto values = read_athens(name)) {
    raster = Raster(400, 400);
    std::ranges::transform(*values, raster.pixels().begin(), [](double v) { return static_cast<float>(v); });
  }
  return raster;
}

inline CityInput athens_city() {
  CityInput city;
  city.dsm = athens_raster("input_dsm");
  city.cdsm = athens_raster("input_cdsm");
  city.tdsm = athens_raster("input_tdsm");
  city.canopy_heights = CanopyHeights::absolute;
  return city;
}

}  // namespace lockstep::urban::testing
