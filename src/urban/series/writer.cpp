#include "urban/series/writer.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/log.hpp"
#include "io/arrays/npy.hpp"
#include "io/pictures/png.hpp"
#include "io/rasters/cog.hpp"
#include "io/rasters/netcdf_api.hpp"
#include "lockstep/error.hpp"
#include "urban/pictures/step_picture.hpp"
#include "urban/series/summary.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using WriteClock = std::chrono::steady_clock;

constexpr size_t kFewestSteps = 3, kMostSteps = 16;
constexpr size_t kStepBytes = size_t{64}
                              << 20;  // that steps in flight may take where more than the fewest do
/// Files written at a time, to hide how long a disk takes to flush one; of formats that copy the grid fewer.
constexpr size_t kFileThreads = 8;
constexpr size_t kFileBytes = size_t{512} << 20;
constexpr double kFramesPerSecond = 4;
constexpr double kCoolestTmrt = -10, kHottestTmrt = 80;  // of pictures

double seconds_of(WriteClock::time_point start) {
  return std::chrono::duration<double>(WriteClock::now() - start).count();
}

bool writes(const SeriesOptions& options, SeriesFormat format) {
  return std::find(options.formats.begin(), options.formats.end(), format) != options.formats.end();
}

FolderLock hold_folder(const SeriesOptions& options) {
  const std::string where = options.folder.string();
  std::error_code error;
  if (fs::exists(options.folder, error) && !fs::is_directory(options.folder, error))
    throw InputError("a file stands in the way", where, "a folder, or a name that is free");
  fs::create_directories(options.folder, error);
  if (error)
    throw InputError("cannot make the folder: " + error.message(), where, "a place that can be written");
  if (writes(options, SeriesFormat::tif))
    if (const std::string reason = io::gdal_unavailable_reason(); !reason.empty())
      throw UnsupportedError(fmt::format("GeoTIFF needs GDAL ({})", reason), "--format tif",
                             "GDAL (Debian 12: apt install libgdal32), or --format nc or npy");
  if (writes(options, SeriesFormat::nc)) io::require_netcdf("--format nc");
  return FolderLock(options.folder);
}

io::SeriesDescription description_of(const SeriesOptions& options, const SeriesInputs& inputs) {
  io::SeriesDescription d;
  d.grid = inputs.grid;
  for (const WeatherStep& step : inputs.steps) d.times.push_back(step.time);
  d.step_min = inputs.weather.step_min;
  d.utc_offset_h = inputs.site.utc_offset_h;
  for (const SeriesOutput output : options.outputs) {
    const OutputText text = text_of(output);
    d.variables.push_back({std::string(name(output)), text.long_name, text.unit, text.standard_name});
  }
  d.title = "Radiation and thermal comfort of a city";
  d.source = fmt::format("lockstep urban run, preset {}, {} sky, weather {}", options.preset, options.sky,
                         options.weather.filename().string());
  d.history = fmt::format("computed by lockstep from {}", options.city.dsm.filename().string());
  return d;
}

/// The output that pictures show: the one that says most of those wanted.
size_t shown_output(const std::vector<SeriesOutput>& outputs) {
  size_t shown = 0;
  for (const SeriesOutput best : {SeriesOutput::pet, SeriesOutput::tmrt, SeriesOutput::utci})
    for (size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o] == best) shown = o;
  return shown;
}

}  // namespace

OutputText text_of(SeriesOutput output) {
  switch (output) {
    case SeriesOutput::tmrt: return {"Mean radiant temperature", "degC", ""};
    case SeriesOutput::utci: return {"Universal thermal climate index", "degC", ""};
    case SeriesOutput::pet: return {"Physiologically equivalent temperature", "degC", ""};
    case SeriesOutput::shadow: return {"Share of the direct sun", "1", ""};
    case SeriesOutput::kdown:
      return {"Shortwave from above", "W m-2", "surface_downwelling_shortwave_flux_in_air"};
    case SeriesOutput::kup:
      return {"Shortwave from below", "W m-2", "surface_upwelling_shortwave_flux_in_air"};
    case SeriesOutput::kside: return {"Shortwave on the sides of a body", "W m-2", ""};
    case SeriesOutput::ldown:
      return {"Longwave from above", "W m-2", "surface_downwelling_longwave_flux_in_air"};
    case SeriesOutput::lup: return {"Longwave from below", "W m-2", "surface_upwelling_longwave_flux_in_air"};
    case SeriesOutput::lside: return {"Longwave on the sides of a body", "W m-2", ""};
    case SeriesOutput::gvf: return {"Share of sunlit surface in view", "1", ""};
    default: break;
  }
  const std::string text(name(output));  // "kside_east"
  return {fmt::format("{} on a vertical plane that faces {}", text[0] == 'k' ? "Shortwave" : "Longwave",
                      text.substr(text.find('_') + 1)),
          "W m-2", ""};
}

size_t steps_in_flight(size_t outputs, int64_t pixels) {
  const size_t step = outputs * sizeof(float) * static_cast<size_t>(pixels);
  return std::clamp(kStepBytes / step, kFewestSteps, kMostSteps);
}

std::string stamp_of(io::CivilMinutes time) {
  const io::CivilTime t = io::civil_time(time);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}", t.year, t.month, t.day, t.hour, t.minute);
}

class SeriesWriter::Summary : public SeriesSummary {
 public:
  using SeriesSummary::SeriesSummary;
};

SeriesWriter::SeriesWriter(const SeriesOptions& options, const SeriesInputs& inputs)
    : options_(options), inputs_(inputs), lock_(hold_folder(options)) {
  if (writes(options, SeriesFormat::nc))
    netcdf_ =
        std::make_unique<io::GridSeriesWriter>(options.folder / "run.nc", description_of(options, inputs));
  summary_ = std::make_unique<Summary>(options.outputs, static_cast<size_t>(inputs.city.pixels()),
                                       static_cast<double>(inputs.weather.step_min) / 60);
  if (options.video && inputs.steps.size() > 1) {
    no_film_why_ = io::video_unavailable_reason();
    films_ = no_film_why_.empty();
  }
  limit_ = steps_in_flight(options.outputs.size(), inputs.city.pixels());
  start_threads();
}

void SeriesWriter::start_threads() {
  threads_.emplace_back([this] { work_in_order(); });
  const bool tif = writes(options_, SeriesFormat::tif);
  if (!tif && !writes(options_, SeriesFormat::npy)) return;
  const size_t copies = 2 * sizeof(float) * static_cast<size_t>(inputs_.city.pixels());
  const size_t count = tif ? std::clamp<size_t>(kFileBytes / copies, 1, kFileThreads) : kFileThreads;
  for (size_t k = 0; k < count; ++k) threads_.emplace_back([this] { work_on_files(); });
}

SeriesWriter::~SeriesWriter() { stop(); }

void SeriesWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ordered_.notify_all();
  filed_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

StepPlanes SeriesWriter::begin() {
  const auto start = WriteClock::now();
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return in_use_ < limit_ || failure_; });
  wait_seconds_ += seconds_of(start);
  if (failure_) std::rethrow_exception(failure_);
  ++in_use_;
  if (!free_.empty()) {
    StepPlanes planes = std::move(free_.back());
    free_.pop_back();
    return planes;
  }
  lock.unlock();
  return StepPlanes(options_.outputs.size(), std::vector<float>(static_cast<size_t>(inputs_.city.pixels())));
}

void SeriesWriter::end(size_t step, StepPlanes planes) {
  {
    std::unique_lock lock(mutex_);
    // After a fallback the files of the first run must not come behind those of the second.
    if (step == 0) freed_.wait(lock, [&] { return in_use_ == 1 || failure_; });
    const Shared item = std::make_shared<Item>(Item{step, std::move(planes)});
    item->parts = 1;
    queue_.push_back(item);
    add_files(item);
  }
  ordered_.notify_one();
}

/// With the lock held.
void SeriesWriter::add_files(const Shared& item) {
  const std::string stamp = stamp_of(inputs_.steps[item->step].time);
  for (const SeriesFormat format : {SeriesFormat::tif, SeriesFormat::npy}) {
    if (!writes(options_, format)) continue;
    for (size_t o = 0; o < item->planes.size(); ++o) {
      const std::string output(name(options_.outputs[o]));
      const fs::path stem = options_.folder / output / (output + "_" + stamp);
      const float* const values = item->planes[o].data();
      files_.emplace_back(item, [this, stem, values, format] { write_grid(stem, values, format); });
      ++item->parts;
      filed_.notify_one();
    }
  }
}

void SeriesWriter::run_part(const Shared& item, const Task& part) {
  {
    const std::lock_guard lock(mutex_);
    if (writing_++ == 0) writing_since_ = WriteClock::now();
  }
  std::exception_ptr failure;
  try {
    part();
  } catch (...) { failure = std::current_exception(); }
  {
    const std::lock_guard lock(mutex_);
    if (--writing_ == 0) write_seconds_ += seconds_of(writing_since_);
    if (failure && !failure_) failure_ = failure;
    if (--item->parts == 0) {
      free_.push_back(std::move(item->planes));
      --in_use_;
    }
    if (item->parts > 0 && !failure) return;
  }
  freed_.notify_all();
}

void SeriesWriter::work_in_order() {
  while (true) {
    Shared item;
    {
      std::unique_lock lock(mutex_);
      ordered_.wait(lock, [&] { return !queue_.empty() || stopping_; });
      if (queue_.empty()) return;
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    run_part(item, [&] { write_in_order(*item); });
  }
}

void SeriesWriter::work_on_files() {
  while (true) {
    std::pair<Shared, Task> file;
    {
      std::unique_lock lock(mutex_);
      filed_.wait(lock, [&] { return !files_.empty() || stopping_; });
      if (files_.empty()) return;
      file = std::move(files_.front());
      files_.pop_front();
    }
    run_part(file.first, file.second);
  }
}

void SeriesWriter::write_grid(const fs::path& stem, const float* values, SeriesFormat format) const {
  const io::RasterGrid& grid = inputs_.grid;
  fs::path file = stem;
  if (format == SeriesFormat::tif) return io::write_cog(file += ".tif", grid, values);
  const std::span<const float> cells(values, static_cast<size_t>(grid.rows * grid.cols));
  io::write_raster(file += ".npy", grid, Array::view(cells, {grid.rows, grid.cols}));
}

void SeriesWriter::write_in_order(const Item& item) {
  if (item.step == 0) summary_->clear();
  tbb::parallel_invoke(
      [&] {
        for (size_t o = 0; netcdf_ && o < item.planes.size(); ++o)
          netcdf_->write(o, item.step, item.planes[o].data());
      },
      [&] {
        if (options_.pictures || films_) add_picture(item);
      },
      [&] { summary_->add(item.planes); });
}

/// A PNG of the step, and a frame of the film.
void SeriesWriter::add_picture(const Item& item) {
  const io::Image picture = draw(item);
  if (options_.pictures) {
    const SeriesOutput output = options_.outputs[shown_output(options_.outputs)];
    const std::string file = fmt::format("{}_{}.png", name(output), stamp_of(inputs_.steps[item.step].time));
    io::write_png(options_.folder / "pictures" / file, picture);
  }
  if (!films_) return;
  if (item.step == 0)  // also after a fallback
    film_ = std::make_unique<io::VideoWriter>(options_.folder / "day.mp4", int(picture.width),
                                              int(picture.height), kFramesPerSecond);
  film_->add(picture);
}

io::Image SeriesWriter::draw(const Item& item) const {
  const size_t shown = shown_output(options_.outputs);
  const SeriesOutput output = options_.outputs[shown];
  const WeatherStep& step = inputs_.steps[item.step];
  StepPicture picture;
  picture.output = name(output);
  picture.values = &item.planes[shown];
  picture.rows = inputs_.grid.rows;
  picture.cols = inputs_.grid.cols;
  picture.pixel_size_m = inputs_.city.pixel_size_m;
  picture.facts.date = fmt::format("{} (UTC{:+g})", io::civil_text(step.time), inputs_.site.utc_offset_h);
  picture.facts.crs = io::crs_title(inputs_.grid.crs_wkt);
  picture.facts.north_is_up = true;
  if (step.forcing.day()) picture.facts.sun = {step.forcing.sun_azimuth_deg, step.forcing.sun_altitude_deg};
  if (!inputs_.relief.empty()) picture.relief = &inputs_.relief;
  if (output == SeriesOutput::tmrt) {
    // One scale for the day, so that pictures can be laid beside each other.
    picture.minimum = kCoolestTmrt;
    picture.maximum = kHottestTmrt;
  }
  return draw_step_picture(picture);
}

void SeriesWriter::finish(SeriesResult& result) {
  {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return in_use_ == 0 || failure_; });
  }
  stop();
  if (failure_) std::rethrow_exception(failure_);
  if (netcdf_) {
    netcdf_->commit();
    result.netcdf = options_.folder / "run.nc";
  }
  if (film_) {
    film_->commit();
    result.video = options_.folder / "day.mp4";
  } else if (!no_film_why_.empty()) {
    logging::warning("no film of the day: {}", no_film_why_);
  }
  const bool tif = writes(options_, SeriesFormat::tif) ||
                   (!writes(options_, SeriesFormat::npy) && io::gdal_unavailable_reason().empty());
  const std::vector<SummaryGrid> grids = summary_->grids();
  result.outputs.resize(grids.size());
  tbb::parallel_for(size_t{0}, grids.size(), [&](size_t k) {
    const SummaryGrid& grid = grids[k];
    OutputGrid& out = result.outputs[k];
    out.name = grid.name;
    out.file = options_.folder / "summary" / (grid.name + (tif ? ".tif" : ".npy"));
    write_grid(options_.folder / "summary" / grid.name, grid.values.data(),
               tif ? SeriesFormat::tif : SeriesFormat::npy);
    double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    int64_t count = 0;
    for (const float v : grid.values) {
      if (std::isnan(v)) {
        ++out.missing;
        continue;
      }
      sum += static_cast<double>(v);
      low = std::min<double>(low, v);
      high = std::max<double>(high, v);
      ++count;
    }
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    out.minimum = count ? low : none;
    out.maximum = count ? high : none;
    out.mean = count ? sum / static_cast<double>(count) : none;
  });
}

}  // namespace lockstep::urban
