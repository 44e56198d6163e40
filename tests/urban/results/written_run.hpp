// Folders as `urban run` leaves them, of numbers that a test chooses.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/files/atomic_file.hpp"
#include "core/record/sha256.hpp"
#include "io/rasters/raster.hpp"
#include "io/series/civil_time.hpp"

namespace lockstep::urban::testing {

struct WrittenRun {
  int64_t rows = 4, cols = 6;
  double pixel_size = 2;
  int step_minutes = 60;
  std::vector<std::string> times = {"2015-06-21T14:00", "2015-06-21T15:00"};
  /// The value of a pixel, by output and step.
  std::map<std::string, std::function<float(size_t step, int64_t row, int64_t col)>> outputs;
  std::map<std::string, std::function<float(int64_t row, int64_t col)>> summaries;
  std::function<bool(int64_t row, int64_t col)> ground = [](int64_t, int64_t) { return true; };
  bool with_mask = true;
  std::map<std::string, std::string> options = {{"preset", "corrected"}};       ///< by name
  std::map<std::string, std::string> files = {{"dsm", "1"}, {"weather", "2"}};  ///< content by option
  std::map<std::string, std::filesystem::path> places = {};  ///< files that exist, by option
  std::string version = "0.1.0";

  template <class Value>
  void write_grid(const std::filesystem::path& file, Value value) const {
    std::vector<float> values;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) values.push_back(static_cast<float>(value(r, c)));
    io::RasterGrid grid;
    grid.rows = rows;
    grid.cols = cols;
    std::filesystem::create_directories(file.parent_path());
    io::write_raster(file, grid, Array::of(std::move(values), {rows, cols}));
  }

  std::string record() const {
    std::string written, given, inputs;
    for (const auto& [name, value] : summaries)
      for (const char* suffix : {"npy", "png", "qml"})
        written += fmt::format("{}{{\"path\": \"summary/{}.{}\", \"bytes\": 1, \"sha256\": \"0\"}}",
                               written.empty() ? "" : ", ", name, suffix);
    for (const auto& [name, value] : options)
      given += fmt::format("{}\"{}\": {{\"value\": \"{}\", \"given\": true}}", given.empty() ? "" : ", ",
                           name, value);
    for (const auto& [name, content] : files) {
      given += fmt::format("{}\"{}\": {{\"value\": \"{}.tif\", \"given\": true, \"file\": true}}",
                           given.empty() ? "" : ", ", name, name);
      inputs += fmt::format("{}{{\"path\": \"/city/{}.tif\", \"bytes\": 1, \"sha256\": \"{}\"}}",
                            inputs.empty() ? "" : ", ", name, content);
    }
    for (const auto& [name, file] : places) {
      given += fmt::format(R"(, "{}": {{"value": "{}", "given": true, "file": true}})", name, file.string());
      inputs += fmt::format(R"(, {{"path": "{}", "bytes": 1, "sha256": "{}"}})", file.string(),
                            record::sha256_of_file(file));
    }
    return fmt::format(
        R"({{"program": {{"version": "{}"}}, "command": "lockstep urban run", "identity": "abc", "directory": "/city",
"options": {{{}}}, "inputs": [{}], "rows": {}, "cols": {}, "pixel_size": {}, "steps": {}, "step_minutes": {}, "from": "{}", "to": "{}", "outputs": [{}]}})",
        version, given, inputs, rows, cols, pixel_size, times.size(), step_minutes, times.front(),
        times.back(), written);
  }

  void write(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    for (const auto& [name, value] : summaries) write_grid(folder / "summary" / (name + ".npy"), value);
    for (const auto& [name, value] : outputs)
      for (size_t k = 0; k < times.size(); ++k) {
        std::string stamp = times[k];
        std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
        write_grid(folder / name / (name + "_" + stamp + ".npy"),
                   [&](int64_t r, int64_t c) { return value(k, r, c); });
      }
    if (with_mask)
      write_grid(folder / "ground.npy", [&](int64_t r, int64_t c) { return ground(r, c) ? 1 : 0; });
    write_file(folder / "run.json", record());
  }
};

}  // namespace lockstep::urban::testing
