// The files of a run hour by hour, written while the next steps compute: a thread takes the steps in order (NetCDF, film,
// summary), others write the files that stand for themselves.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/files/folder_lock.hpp"
#include "io/pictures/video.hpp"
#include "io/rasters/netcdf/grid_series.hpp"
#include "io/rasters/raster_labels.hpp"
#include "lockstep/urban/series.hpp"
#include "urban/pictures/step_picture.hpp"
#include "urban/run/grid_statistics.hpp"
#include "urban/series/inputs/inputs.hpp"
#include "urban/series/outputs/summary.hpp"

namespace lockstep::urban {

/// Long name and unit of an output.
struct OutputText {
  std::string long_name, unit, standard_name;
};
OutputText text_of(SeriesOutput output);

/// "20150621T1500".
std::string stamp_of(io::CivilMinutes time);

/// A grid an output, of one step: whole, or a band of its rows.
using StepPlanes = std::vector<std::vector<float>>;

/// Rows that are written at a time: all, or fewer where `memory_bytes` do not hold twice what whole grids take.
int64_t band_rows(const SeriesOptions& options, const io::RasterGrid& grid, uint64_t memory_bytes);
/// Host memory that a writer takes for this many rows.
uint64_t writer_bytes(const SeriesOptions& options, const io::RasterGrid& grid, int64_t rows);

/// The files of single steps that a rank writes.
struct FileShare {
  int64_t rank = 0, ranks = 1;
  bool has(size_t step) const { return static_cast<int64_t>(step) % ranks == rank; }
};

class SeriesWriter {
 public:
  /// Makes the folder and holds it. `rows` as band_rows gives it. Throws as `run` does. Of several ranks those other than 0
  /// write files of single steps alone, into a folder that is there.
  SeriesWriter(const SeriesOptions& options, const SeriesInputs& inputs, int64_t rows, FileShare share = {});
  ~SeriesWriter();

  /// Whether files of single steps are among the formats.
  static bool has_files(const SeriesOptions& options);
  /// Whether the step is needed: rank 0 needs all, for summaries.
  bool needs(size_t step) const { return share_.rank == 0 || share_.has(step); }
  /// Files of single steps so far.
  int64_t files() const { return file_count_; }
  /// Rows of a band.
  int64_t rows() const { return rows_; }
  /// Room for a step. Waits while the writer is behind.
  StepPlanes begin();
  /// Hands a step of the band that begins at this row over. Steps come in order of time, from 0 again after a fallback;
  /// a band with all its steps before the next. Throws what the writing of an earlier one threw.
  void end(size_t step, StepPlanes planes, int64_t row = 0);
  /// Waits for all steps.
  void wait();
  /// Waits for all steps, puts NetCDF and summaries in place, reports the results.
  void finish(SeriesResult& result);

  /// While anything was written; while a step waited for the writer.
  double write_seconds() const { return write_seconds_; }
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Item {
    size_t step;
    int64_t row;  // where the band begins
    StepPlanes planes;
    size_t parts = 0;  // that are not written yet
  };
  using Shared = std::shared_ptr<Item>;
  using Task = std::function<void()>;
  class Summary;

  void start_threads();
  void work_in_order();
  void work_on_files();
  /// Runs one part of a step and takes its failure down; the last part frees the step's memory.
  void run_part(const Shared& item, const Task& part);
  void write_in_order(const Item& item);
  bool whole() const { return rows_ == inputs_.grid.rows; }
  /// The summary of a band whose last step was added.
  void add_band(int64_t row);
  std::vector<OutputGrid> finish_bands();
  SeriesFormat summary_format() const;
  OutputGrid summary_grid(const std::string& grid_name) const;
  std::vector<OutputGrid> write_summary(std::vector<StressArea>& stress) const;
  std::vector<StressArea> stress_of(const SummaryGrid& grid) const;
  /// 1 for pixels of these rows that count in statistics; empty: all do.
  std::span<const uint8_t> counted(int64_t row, int64_t rows) const;
  OutputGrid write_ground() const;
  void add_files(const Shared& item);
  void write_grid(const std::filesystem::path& stem, std::string_view look, const io::RasterLabels& labels,
                  const float* values, SeriesFormat format) const;
  StepPicture picture_of(std::string_view grid, const std::vector<float>& values) const;
  io::Image draw(const Item& item) const;
  std::filesystem::path draw_summary(const SummaryGrid& grid) const;
  void add_picture(const Item& item);
  void stop();

  const SeriesOptions& options_;
  const SeriesInputs& inputs_;
  const FileShare share_;
  io::Image under_;  // of pictures; empty: none. Read before the folder is made
  FolderLock lock_;
  std::unique_ptr<io::GridSeriesWriter> netcdf_;
  const int64_t rows_;
  std::optional<MapBase> base_;  // of pictures; none where none is drawn
  std::unique_ptr<Summary> summary_;
  struct BandGrid {
    OutputGrid grid;
    GridStatistics statistics;
    std::unique_ptr<io::RasterWriter> writer;
  };
  std::vector<BandGrid> bands_;  // grids of the summary that is written by bands
  std::unique_ptr<io::VideoWriter> film_;
  bool films_ = false;       // a film is requested and can be made
  std::string no_film_why_;  // if it is requested and cannot be made
  std::mutex mutex_;
  std::condition_variable ordered_, filed_, freed_;  // a step in order, a file, a step that is written
  std::deque<Shared> queue_;                         // in order
  std::deque<std::pair<Shared, Task>> files_;        // in any order
  std::vector<StepPlanes> free_;
  std::exception_ptr failure_;
  size_t in_use_ = 0, limit_ = 0;
  size_t writing_ = 0;  // parts
  bool stopping_ = false;
  std::chrono::steady_clock::time_point writing_since_;
  double write_seconds_ = 0, wait_seconds_ = 0;
  int64_t file_count_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace lockstep::urban
