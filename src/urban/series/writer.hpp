// The files of a run hour by hour, written by a thread of its own while the next step computes.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/folder_lock.hpp"
#include "io/pictures/video.hpp"
#include "io/rasters/grid_series.hpp"
#include "lockstep/urban/series.hpp"
#include "urban/series/inputs.hpp"

namespace lockstep::urban {

/// Long name and unit of an output.
struct OutputText {
  std::string long_name, unit, standard_name;
};
OutputText text_of(SeriesOutput output);

/// "20150621T1500".
std::string stamp_of(io::CivilMinutes time);

/// A whole grid an output, of one step.
using StepPlanes = std::vector<std::vector<float>>;

class SeriesWriter {
 public:
  /// Makes the folder and holds it. Throws as `run` does.
  SeriesWriter(const SeriesOptions& options, const SeriesInputs& inputs);
  ~SeriesWriter();

  /// Room for a step. Waits while the writer is behind.
  StepPlanes begin();
  /// Hands a step over. Steps come in order of time, from 0 anew after a fallback. Throws what the writing of an
  /// earlier one threw.
  void end(size_t step, StepPlanes planes);
  /// Waits for all steps, puts NetCDF and summaries in place, tells what there is.
  void finish(SeriesResult& result);

  double write_seconds() const { return write_seconds_; }
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Item {
    size_t step;
    StepPlanes planes;
  };
  class Summary;
  void work();
  void write(const Item& item);
  void write_files(const Item& item);
  void write_grid(const std::filesystem::path& stem, const float* values, SeriesFormat format) const;
  io::Image draw(const Item& item) const;
  void add_picture(const Item& item);
  void stop();

  const SeriesOptions& options_;
  const SeriesInputs& inputs_;
  FolderLock lock_;
  std::unique_ptr<io::GridSeriesWriter> netcdf_;
  std::unique_ptr<Summary> summary_;
  std::unique_ptr<io::VideoWriter> film_;
  bool films_ = false;       // a film is wanted and can be made
  std::string no_film_why_;  // where it is wanted and cannot
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  std::vector<StepPlanes> free_;
  std::exception_ptr failure_;
  size_t in_use_ = 0;
  bool busy_ = false, stopping_ = false;
  double write_seconds_ = 0, wait_seconds_ = 0;
  std::thread thread_;
};

}  // namespace lockstep::urban
