// The folder that `urban run` left: its record, grids over time, summaries, the mask of the ground.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/rasters/raster.hpp"
#include "io/series/civil_time.hpp"

namespace lockstep::io {
class GridSeriesReader;
}

namespace lockstep::urban {

/// An option of a recorded run.
struct RecordedOption {
  std::string name, value;
  std::filesystem::path path;  ///< of one that names a file
  bool file = false, display = false;
  std::vector<std::string> hashes;  ///< of the files that it names, sorted
};

/// Of runs of the program; those of Python have neither version nor options.
struct RunRecord {
  std::string version, identity, command;
  std::vector<RecordedOption> options;

  const RecordedOption* find(std::string_view name) const;
  /// The value of an option; empty for none.
  std::string text(std::string_view name) const;
};

class RunFolder {
 public:
  /// Throws InputError where `folder` is none of a complete `urban run`.
  explicit RunFolder(const std::filesystem::path& folder);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  const RunRecord& record() const { return record_; }
  const io::RasterGrid& grid() const { return grid_; }
  /// Ground of a pixel: of the true length where the projection stretches.
  double pixel_m2() const { return pixel_m2_; }
  double pixel_size_m() const { return pixel_size_m_; }
  size_t cells() const { return static_cast<size_t>(grid_.rows * grid_.cols); }
  /// Ends of the intervals, and their length.
  const std::vector<io::CivilMinutes>& times() const { return times_; }
  int64_t step_min() const { return step_min_; }
  /// Outputs with a grid a step, and summaries.
  const std::vector<std::string>& outputs() const { return outputs_; }
  const std::vector<std::string>& summaries() const { return summaries_; }

  /// Rows of a step of an output. From any thread.
  void read_step(const std::string& output, size_t step, int64_t row, int64_t rows, float* out) const;
  std::vector<float> read_summary(const std::string& name) const;
  /// 1 where people can be; empty for runs without the mask.
  const std::vector<uint8_t>& ground() const { return ground_; }
  /// Rows that read_step() reads without reading others too.
  static constexpr int64_t kBandRows = 256;

 private:
  void read_record();
  void find_grids();
  void take_place_of_dsm();
  void find_outputs();
  std::filesystem::path step_file(const std::string& output, size_t step) const;

  const std::filesystem::path folder_;
  RunRecord record_;
  io::RasterGrid grid_;
  double pixel_size_m_ = 1, pixel_m2_ = 1;
  std::vector<io::CivilMinutes> times_;
  int64_t step_min_ = 60;
  std::vector<std::string> outputs_, summaries_;
  std::unique_ptr<io::GridSeriesReader> netcdf_;
  std::string suffix_;  // of the files of steps, where there is no NetCDF
  std::vector<uint8_t> ground_;
};

}  // namespace lockstep::urban
