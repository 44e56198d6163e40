#include "urban/series/outputs/writer.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/record/stamp.hpp"
#include "core/reports/log.hpp"
#include "io/arrays/npy.hpp"
#include "io/pictures/png.hpp"
#include "io/rasters/gdal/cog.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "lockstep/error.hpp"
#include "urban/pictures/clock.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/pictures/map_style.hpp"
#include "urban/run/files/result_folder.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using WriteClock = std::chrono::steady_clock;

constexpr size_t kFewestSteps = 3, kMostSteps = 16;
/// Memory that steps in flight may take where they are more than the fewest.
constexpr size_t kStepBytes = size_t{64} << 20;
/// Files written at a time, to hide how long a disk takes to flush one; of formats that copy the grid fewer.
constexpr size_t kFileThreads = 8;
constexpr size_t kFileBytes = size_t{512} << 20;
constexpr int64_t kBandPixels = int64_t{1} << 23;
constexpr double kFramesPerSecond = 4;

double seconds_of(WriteClock::time_point start) {
  return std::chrono::duration<double>(WriteClock::now() - start).count();
}

bool writes(const SeriesOptions& options, SeriesFormat format) {
  return std::find(options.formats.begin(), options.formats.end(), format) != options.formats.end();
}

FolderLock hold_folder(const SeriesOptions& options) {
  make_result_folder(options.folder);
  if (writes(options, SeriesFormat::tif)) require_geotiff("format nc or npy");
  if (writes(options, SeriesFormat::nc)) io::require_netcdf("format nc");
  FolderLock lock(options.folder);
  // Those below are taken for a moment, which removes what a killed run left under way in them.
  std::vector<std::string_view> below = {"pictures", "summary"};
  for (const SeriesOutput output : options.outputs) below.push_back(name(output));
  std::error_code ignored;
  for (const std::string_view folder : below)
    if (fs::is_directory(options.folder / folder, ignored)) FolderLock(options.folder / folder);
  return lock;
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
  d.source = fmt::format("lockstep urban run, preset {}, {} sky, weather {}", name(options.preset),
                         name_among(choices(options.sky), options.sky), options.weather.filename().string());
  d.history = fmt::format("computed by lockstep from {}", options.city.dsm.filename().string());
  return d;
}

/// The output that pictures show: the most informative of those requested.
size_t shown_output(const std::vector<SeriesOutput>& outputs) {
  size_t shown = 0;
  for (const SeriesOutput best : {SeriesOutput::pet, SeriesOutput::tmrt, SeriesOutput::utci})
    for (size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o] == best) shown = o;
  return shown;
}

/// "2015-06-21T15:00 (UTC+2)", the end of the interval.
std::string time_text(const SeriesInputs& inputs, size_t step) {
  return fmt::format("{} (UTC{:+g})", io::civil_text(inputs.steps[step].time), inputs.site.utc_offset_h);
}

/// Program, rules and files that a picture was made with.
std::string source_text(const SeriesOptions& options) {
  std::string text = fmt::format("{}, urban run, preset {}, {} sky", record::stamp().program,
                                 name(options.preset), name_among(choices(options.sky), options.sky));
  const auto add = [&](const char* what, const fs::path& file) {
    if (!file.empty()) text += fmt::format("; {} {}", what, file.filename().string());
  };
  add("weather", options.weather);
  add("heights", options.city.dsm);
  add("plants", options.city.cdsm);
  return text;
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

namespace {
/// Steps that wait for the writer or are being filled: more of small grids, whose files cost a flush of the disk each.
size_t steps_in_flight(size_t outputs, int64_t pixels) {
  const size_t step = outputs * sizeof(float) * static_cast<size_t>(pixels);
  return std::clamp(kStepBytes / step, kFewestSteps, kMostSteps);
}
}  // namespace

uint64_t writer_bytes(const SeriesOptions& options, const io::RasterGrid& grid, int64_t rows) {
  const uint64_t outputs = options.outputs.size();
  const uint64_t steps = steps_in_flight(outputs, rows * grid.cols);
  return static_cast<uint64_t>(rows * grid.cols) *
         (steps * outputs * sizeof(float) + SeriesSummary::bytes_of_pixel(options));
}

int64_t band_rows(const SeriesOptions& options, const io::RasterGrid& grid, uint64_t memory_bytes) {
  constexpr int64_t granule = io::GridSeriesWriter::kRows;
  const bool netcdf_alone = options.formats == std::vector{SeriesFormat::nc};
  const int64_t wanted = options.rows_at_a_time;
  if (wanted < 0 || wanted % granule != 0 || (wanted > 0 && !netcdf_alone))
    throw InputError(fmt::format("{} rows at a time", wanted), "rows at a time",
                     fmt::format("a multiple of {}, with NetCDF only", granule));
  if (wanted > 0) return std::min(wanted, grid.rows);
  if (!netcdf_alone || writer_bytes(options, grid, grid.rows) <= memory_bytes / 2) return grid.rows;
  return std::min(grid.rows, std::max<int64_t>(1, kBandPixels / grid.cols / granule) * granule);
}

std::string stamp_of(io::CivilMinutes time) {
  const io::CivilTime t = io::civil_time(time);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}", t.year, t.month, t.day, t.hour, t.minute);
}

class SeriesWriter::Summary : public SeriesSummary {
 public:
  Summary(const SeriesOptions& options, const SeriesInputs& inputs, int64_t rows)
      : SeriesSummary(options.outputs, static_cast<size_t>(rows * inputs.grid.cols),
                      static_cast<double>(inputs.weather.step_min) / 60, inputs.radiation.substeps,
                      own_bounds(options)),
        steps(summary_steps(inputs)) {}
  const std::vector<SummaryStep> steps;
};

bool SeriesWriter::has_files(const SeriesOptions& options) {
  return writes(options, SeriesFormat::tif) || writes(options, SeriesFormat::npy);
}

SeriesWriter::SeriesWriter(const SeriesOptions& options, const SeriesInputs& inputs, int64_t rows,
                           FileShare share)
    : options_(options),
      inputs_(inputs),
      share_(share),
      under_(share.rank == 0 && (options.pictures || options.video) ? read_map_under(options.map, inputs.grid)
                                                                    : io::Image()),
      lock_(share.rank == 0 ? hold_folder(options) : FolderLock()),
      rows_(rows) {
  limit_ = steps_in_flight(options.outputs.size(), rows * inputs.grid.cols);
  if (share.rank > 0) {
    start_threads();
    return;
  }
  if (writes(options, SeriesFormat::nc))
    netcdf_ =
        std::make_unique<io::GridSeriesWriter>(options.folder / "run.nc", description_of(options, inputs));
  summary_ = std::make_unique<Summary>(options, inputs, rows);
  if (!whole() && (options.pictures || options.video))
    logging::info("the grids are assembled in bands of {} rows: no pictures and no film", rows);
  if (options.video && inputs.steps.size() > 1 && whole()) {
    no_film_why_ = io::video_unavailable_reason();
    films_ = no_film_why_.empty();
  }
  if (whole() && (options.pictures || films_) && Outputs::drawable(inputs.grid)) {
    base_ = map_base(inputs.city, inputs.land_cover, inputs.ground);
    base_->under = std::move(under_);
  }
  start_threads();
}

void SeriesWriter::start_threads() {
  threads_.emplace_back([this] { work_in_order(); });
  if (!has_files(options_)) return;
  const bool tif = writes(options_, SeriesFormat::tif);
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
  threads_.clear();  // joins them
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
  return StepPlanes(options_.outputs.size(),
                    std::vector<float>(static_cast<size_t>(rows_ * inputs_.grid.cols)));
}

void SeriesWriter::end(size_t step, StepPlanes planes, int64_t row) {
  {
    std::unique_lock lock(mutex_);
    // After a fallback the files of the first run must not come behind those of the second.
    if (step == 0) freed_.wait(lock, [&] { return in_use_ == 1 || failure_; });
    const Shared item = std::make_shared<Item>(Item{step, row, std::move(planes)});
    item->parts = 1;
    queue_.push_back(item);
    add_files(item);
  }
  ordered_.notify_one();
}

/// With the lock held.
void SeriesWriter::add_files(const Shared& item) {
  if (!share_.has(item->step)) return;
  const std::string stamp = stamp_of(inputs_.steps[item->step].time);
  for (const SeriesFormat format : {SeriesFormat::tif, SeriesFormat::npy}) {
    if (!writes(options_, format)) continue;
    for (size_t o = 0; o < item->planes.size(); ++o) {
      const std::string output(name(options_.outputs[o]));
      const fs::path stem = options_.folder / output / (output + "_" + stamp);
      const float* const values = item->planes[o].data();
      const OutputText text = text_of(options_.outputs[o]);
      const io::RasterLabels labels{
          text.long_name, text.unit, {{"LOCKSTEP_TIME", time_text(inputs_, item->step)}}};
      files_.emplace_back(item, [this, stem, output, labels, values, format] {
        write_grid(stem, output, labels, values, format);
      });
      ++item->parts;
      ++file_count_;
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

void SeriesWriter::write_grid(const fs::path& stem, std::string_view look, const io::RasterLabels& labels,
                              const float* values, SeriesFormat format) const {
  const io::RasterGrid& grid = inputs_.grid;
  fs::path file = stem;
  const std::span<const float> cells(values, static_cast<size_t>(grid.rows * grid.cols));
  if (format == SeriesFormat::tif) {
    const io::ColorRange range = io::color_range(cells, io::ColorMap::sky, {}, {});
    io::write_cog(file += ".tif", grid, labels, values);
    return write_style(file, style_of(look, range.low, range.high));
  }
  io::write_raster(file += ".npy", grid, Array::view(cells, {grid.rows, grid.cols}));
}

void SeriesWriter::write_in_order(const Item& item) {
  if (!summary_) return;  // of rank 0
  const int64_t rows = std::min(rows_, inputs_.grid.rows - item.row);
  if (item.step == 0) summary_->clear();
  tbb::parallel_invoke(
      [&] {
        for (size_t o = 0; netcdf_ && o < item.planes.size(); ++o)
          netcdf_->write(o, item.step, item.row, rows, item.planes[o].data());
      },
      [&] {
        if (base_) add_picture(item);
      },
      [&] {
        if (!options_.hours || options_.hours->holds(inputs_.steps[item.step].time, inputs_.weather.step_min))
          summary_->add(item.planes, summary_->steps[item.step]);
      });
  if (!whole() && item.step + 1 == inputs_.steps.size()) add_band(item.row);
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

StepPicture SeriesWriter::picture_of(std::string_view grid, const std::vector<float>& values) const {
  StepPicture picture;
  picture.output = grid;
  picture.values = &values;
  picture.rows = inputs_.grid.rows;
  picture.cols = inputs_.grid.cols;
  picture.pixel_size_m = inputs_.city.pixel_size_m;
  picture.facts.crs = io::crs_title(inputs_.grid.crs_wkt);
  picture.facts.north_is_up = true;
  picture.facts.place = options_.place;
  picture.facts.scenario = options_.scenario;
  picture.base = &*base_;
  picture.covered = !options_.include_roofs;
  picture.source = source_text(options_);
  return picture;
}

io::Image SeriesWriter::draw(const Item& item) const {
  const size_t shown = shown_output(options_.outputs);
  const WeatherStep& step = inputs_.steps[item.step];
  StepPicture picture = picture_of(name(options_.outputs[shown]), item.planes[shown]);
  picture.facts.date = clock_text(inputs_.site, step.time, options_.daylight_saving_h);
  if (step.forcing.day()) picture.facts.sun = {step.forcing.sun_azimuth_deg, step.forcing.sun_altitude_deg};
  if (options_.picture_range) {
    picture.minimum = options_.picture_range->low;
    picture.maximum = options_.picture_range->high;
  }
  return draw_step_picture(picture);
}

fs::path SeriesWriter::draw_summary(const SummaryGrid& grid) const {
  if (!base_ || !options_.pictures) return {};
  StepPicture picture = picture_of(grid.name, grid.values);
  picture.title = grid.title;
  picture.facts.date = fmt::format("{} to {}", clock_text(inputs_.site, inputs_.steps.front().time, 0),
                                   clock_text(inputs_.site, inputs_.steps.back().time, 0));
  const fs::path file = options_.folder / "summary" / (grid.name + ".png");
  io::write_png(file, draw_step_picture(picture));
  return file;
}

void SeriesWriter::wait() {
  {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return in_use_ == 0 || failure_; });
  }
  stop();
  if (failure_) std::rethrow_exception(failure_);
}

void SeriesWriter::finish(SeriesResult& result) {
  wait();
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
  result.outputs = whole() ? write_summary(result.stress) : finish_bands();
  result.outputs.push_back(write_ground());
}

/// Summaries are GeoTIFF where that can be, else .npy.
SeriesFormat SeriesWriter::summary_format() const {
  const bool tif = writes(options_, SeriesFormat::tif) ||
                   (!writes(options_, SeriesFormat::npy) && io::gdal_unavailable_reason().empty());
  return tif ? SeriesFormat::tif : SeriesFormat::npy;
}

OutputGrid SeriesWriter::summary_grid(const std::string& grid_name) const {
  OutputGrid out;
  out.name = grid_name;
  out.file =
      options_.folder / "summary" / (grid_name + (summary_format() == SeriesFormat::tif ? ".tif" : ".npy"));
  return out;
}

/// Of the ground that counts, the hottest class first.
std::vector<StressArea> SeriesWriter::stress_of(const SummaryGrid& grid) const {
  const auto index = grid.name.find("_hours_") == grid.name.npos ? index_of(grid.name) : std::nullopt;
  if (!index) return {};
  const auto classes = stress_classes(*index);
  const std::span<const uint8_t> counts = counted(0, inputs_.grid.rows);
  std::vector<int64_t> pixels(classes.size());
  int64_t all = 0;
  for (size_t p = 0; p < grid.values.size(); ++p) {
    if ((!counts.empty() && !counts[p]) || std::isnan(grid.values[p])) continue;
    ++pixels[static_cast<size_t>(stress_class(*index, static_cast<double>(grid.values[p])))];
    ++all;
  }
  std::vector<StressArea> areas;
  const double pixel_m2 = inputs_.city.pixel_size_m * inputs_.city.pixel_size_m;
  for (size_t k = classes.size(); k-- > 0;)
    if (pixels[k] > 0)
      areas.push_back({grid.name, std::string(classes[k].name), double(pixels[k]) * pixel_m2,
                       100 * double(pixels[k]) / double(all)});
  return areas;
}

std::vector<OutputGrid> SeriesWriter::write_summary(std::vector<StressArea>& stress) const {
  const std::vector<SummaryGrid> grids = summary_->grids();
  std::vector<OutputGrid> outputs(grids.size());
  tbb::parallel_for(size_t{0}, grids.size(), [&](size_t k) {
    const SummaryGrid& grid = grids[k];
    outputs[k] = summary_grid(grid.name);
    write_grid(options_.folder / "summary" / grid.name, grid.name, {grid.title, grid.unit, {}},
               grid.values.data(), summary_format());
    GridStatistics statistics;
    statistics.take(grid.values, counted(0, inputs_.grid.rows));
    statistics.fill(outputs[k]);
    outputs[k].picture = draw_summary(grid);
  });
  for (const SummaryGrid& grid : grids)
    for (StressArea& area : stress_of(grid)) stress.push_back(std::move(area));
  return outputs;
}

std::span<const uint8_t> SeriesWriter::counted(int64_t row, int64_t rows) const {
  if (options_.include_roofs) return {};
  const int64_t cols = inputs_.grid.cols;
  return std::span(inputs_.ground).subspan(size_t(row * cols), size_t(rows * cols));
}

OutputGrid SeriesWriter::write_ground() const {
  std::vector<float> values(inputs_.ground.begin(), inputs_.ground.end());
  for (size_t p = 0; p < values.size(); ++p)
    if (inputs_.city.is_missing(int64_t(p))) values[p] = std::numeric_limits<float>::quiet_NaN();
  OutputGrid ground;
  ground.name = "ground";
  const bool tif = summary_format() == SeriesFormat::tif;
  ground.file = options_.folder / (tif ? "ground.tif" : "ground.npy");
  const Look look = ground_look();
  io::RasterLabels labels{look.title, look.unit, {}};
  labels.bytes = look.bytes;
  const auto file = io::create_labelled_raster(ground.file, inputs_.grid, labels);
  file->write(0, 0, inputs_.grid.rows, inputs_.grid.cols, values.data());
  file->commit();
  GridStatistics statistics;
  statistics.take(values);
  statistics.fill(ground);
  write_style(ground.file, style_of(look, 0, 1));
  return ground;
}

void SeriesWriter::add_band(int64_t row) {
  const std::vector<SummaryGrid> grids = summary_->grids();
  const int64_t rows = std::min(rows_, inputs_.grid.rows - row);
  for (size_t k = bands_.size(); k < grids.size(); ++k) {
    OutputGrid grid = summary_grid(grids[k].name);
    auto writer = io::create_labelled_raster(grid.file, inputs_.grid, {grids[k].title, grids[k].unit, {}});
    bands_.push_back({std::move(grid), {}, std::move(writer)});
  }
  tbb::parallel_for(size_t{0}, grids.size(), [&](size_t k) {
    bands_[k].writer->write(row, 0, rows, inputs_.grid.cols, grids[k].values.data());
    bands_[k].statistics.take(
        std::span(grids[k].values.data(), static_cast<size_t>(rows * inputs_.grid.cols)), counted(row, rows));
  });
}

std::vector<OutputGrid> SeriesWriter::finish_bands() {
  std::vector<OutputGrid> outputs;
  for (BandGrid& band : bands_) {
    band.writer->commit();
    band.statistics.fill(band.grid);
    write_style(band.grid.file, style_of(band.grid.name, band.grid.minimum, band.grid.maximum));
    outputs.push_back(std::move(band.grid));
  }
  bands_.clear();
  return outputs;
}

}  // namespace lockstep::urban
