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

/// Steps that wait for the writer or are being filled.
constexpr size_t kStepsInFlight = 3;
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
  thread_ = std::thread([this] { work(); });
}

SeriesWriter::~SeriesWriter() { stop(); }

void SeriesWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

StepPlanes SeriesWriter::begin() {
  const auto start = WriteClock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return in_use_ < kStepsInFlight || failure_; });
  wait_seconds_ += seconds_of(start);
  if (failure_) std::rethrow_exception(failure_);
  ++in_use_;
  if (!free_.empty()) {
    StepPlanes planes = std::move(free_.back());
    free_.pop_back();
    return planes;
  }
  return StepPlanes(options_.outputs.size(), std::vector<float>(static_cast<size_t>(inputs_.city.pixels())));
}

void SeriesWriter::end(size_t step, StepPlanes planes) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({step, std::move(planes)});
  }
  changed_.notify_all();
}

void SeriesWriter::work() {
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || stopping_; });
      if (queue_.empty()) return;
      item = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
    }
    const auto start = WriteClock::now();
    std::exception_ptr failure;
    try {
      write(item);
    } catch (...) { failure = std::current_exception(); }
    const std::lock_guard lock(mutex_);
    write_seconds_ += seconds_of(start);
    if (failure && !failure_) failure_ = failure;
    free_.push_back(std::move(item.planes));
    --in_use_;
    busy_ = false;
    changed_.notify_all();
  }
}

void SeriesWriter::write_grid(const fs::path& stem, const float* values, SeriesFormat format) const {
  const io::RasterGrid& grid = inputs_.grid;
  fs::path file = stem;
  if (format == SeriesFormat::tif) return io::write_cog(file += ".tif", grid, values);
  const std::span<const float> cells(values, static_cast<size_t>(grid.rows * grid.cols));
  io::write_raster(file += ".npy", grid, Array::view(cells, {grid.rows, grid.cols}));
}

void SeriesWriter::write(const Item& item) {
  if (item.step == 0) summary_->clear();
  tbb::parallel_invoke([&] { write_files(item); }, [&] { summary_->add(item.planes); });
}

void SeriesWriter::write_files(const Item& item) {
  const io::RasterGrid& grid = inputs_.grid;
  if (netcdf_)
    for (size_t o = 0; o < item.planes.size(); ++o)
      netcdf_->write(o, item.step, 0, 0, grid.rows, grid.cols, item.planes[o].data());
  const std::string stamp = stamp_of(inputs_.steps[item.step].time);
  for (const SeriesFormat format : {SeriesFormat::tif, SeriesFormat::npy}) {
    if (!writes(options_, format)) continue;
    tbb::parallel_for(size_t{0}, item.planes.size(), [&](size_t o) {
      const std::string output(name(options_.outputs[o]));
      write_grid(options_.folder / output / (output + "_" + stamp), item.planes[o].data(), format);
    });
  }
  if (options_.pictures || films_) add_picture(item);
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
    changed_.wait(lock, [&] { return (queue_.empty() && !busy_) || failure_; });
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
