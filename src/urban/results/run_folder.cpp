#include "urban/results/run_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/record/journal.hpp"
#include "io/rasters/netcdf/grid_series_reader.hpp"
#include "io/text/file.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/series.hpp"
#include "urban/series/outputs/writer.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
constexpr const char* kRunExpected = "the folder of a complete 'lockstep urban run'";
constexpr int64_t kMostRunSide = int64_t{1} << 24, kMostRunSteps = int64_t{1} << 24;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// A grid of a folder by its name: GeoTIFF, else .npy; empty where it is absent.
fs::path grid_file(const fs::path& stem) {
  for (const char* suffix : {".tif", ".npy"})
    if (const fs::path file = fs::path(stem) += suffix; is_file(file)) return file;
  return {};
}

/// Whether a file of the record is what an option names: itself, one below it, or one that belongs to it (.prj, .aux.xml).
bool belongs_to(const fs::path& file, const fs::path& option) {
  if (file == option || (file.parent_path() == option.parent_path() && file.stem() == option.stem()))
    return true;
  const fs::path inside = file.lexically_relative(option);
  return !inside.empty() && *inside.begin() != ".." && inside != ".";
}

std::vector<RecordedOption> options_in(const io::JsonValue& record) {
  std::vector<RecordedOption> options;
  const auto members = record.find("options");
  if (!members) return options;
  const auto directory = record.find("directory");
  const fs::path base = directory ? fs::path(directory->text()) : fs::path();
  for (const auto& [name, member] : members->members()) {
    RecordedOption o;
    o.name = name;
    o.value = member.at("value").text();
    if (const auto file = member.find("file")) o.file = file->boolean();
    if (const auto effect = member.find("effect")) o.display = effect->text() == "display";
    if (const auto output = member.find("output")) o.display |= output->boolean();
    if (!o.value.empty()) o.path = (base / o.value).lexically_normal();
    if (!o.display && !o.value.empty())
      for (const io::JsonValue& input : record.at("inputs").items())
        if (belongs_to(input.at("path").text(), o.path)) o.hashes.push_back(input.at("sha256").text());
    std::sort(o.hashes.begin(), o.hashes.end());
    options.push_back(std::move(o));
  }
  return options;
}

}  // namespace

const RecordedOption* RunRecord::find(std::string_view name) const {
  const auto found = std::ranges::find(options, name, &RecordedOption::name);
  return found == options.end() ? nullptr : &*found;
}

std::string RunRecord::text(std::string_view name) const {
  const RecordedOption* option = find(name);
  return option ? option->value : std::string();
}

RunFolder::RunFolder(const fs::path& folder) : folder_(folder) {
  read_record();
  find_grids();
  find_outputs();
}
RunFolder::~RunFolder() = default;

void RunFolder::read_record() {
  const fs::path file = folder_ / "run.json";
  if (!is_file(file)) throw InputError("no run.json", folder_.string(), kRunExpected);
  const std::string where = file.string();
  const io::JsonValue record = io::JsonValue::parse(io::read_text_file(file, kRunExpected), where);
  for (const char* name : {"rows", "cols", "pixel_size", "steps", "from", "to", "outputs"})
    if (!record.find(name)) throw InputError(fmt::format("a record without '{}'", name), where, kRunExpected);
  if (const auto command = record.find("command"); command && command->text() != "lockstep urban run")
    throw InputError(fmt::format("a record of '{}'", io::shown(command->text())), where, kRunExpected);
  grid_.rows = record.at("rows").integer(1, kMostRunSide);
  grid_.cols = record.at("cols").integer(1, kMostRunSide);
  pixel_size_m_ = record.at("pixel_size").number();
  const auto scale = record.find("projection_scale");
  const double side = pixel_size_m_ / (scale ? scale->number() : 1);
  if (!(side > 0 && std::isfinite(side))) record.at("pixel_size").fail("is not a length", "metres");
  pixel_m2_ = side * side;
  const int64_t steps = record.at("steps").integer(1, kMostRunSteps);
  const auto time_of = [&](const char* name) {
    const auto time = io::parse_iso_time(record.at(name).text());
    if (!time) record.at(name).fail("is not a time", "such as 2015-06-21T15:00");
    return time->minutes;
  };
  const io::CivilMinutes from = time_of("from"), to = time_of("to");
  if (const auto minutes = record.find("step_minutes")) step_min_ = minutes->integer(1, io::kMinutesPerDay);
  if (steps > 1) {
    step_min_ = (to - from) / (steps - 1);
    if (step_min_ <= 0 || step_min_ * (steps - 1) != to - from)
      throw InputError(fmt::format("{} steps between 'from' and 'to'", steps), where,
                       "steps of equal length");
  }
  for (int64_t k = 0; k < steps; ++k) times_.push_back(from + k * step_min_);
  // The program's record lists files, also pictures and styles of grids; the library's alone lists grids.
  for (const io::JsonValue& output : record.at("outputs").items()) {
    const auto path = output.find("path");
    const fs::path written = path ? fs::path(path->text()) : fs::path("summary") / output.at("name").text();
    if (path && written.extension() != ".tif" && written.extension() != ".npy") continue;
    const std::string name = path ? written.stem().string() : written.filename().string();
    if (written.parent_path() == "summary" && name != "ground") summaries_.push_back(name);
  }
  if (const auto program = record.find("program")) record_.version = program->at("version").text();
  if (const auto identity = record.find("identity")) record_.identity = identity->text();
  if (const auto command = record.find("command")) record_.command = command->text();
  record_.options = options_in(record);
}

void RunFolder::find_grids() {
  // Noted before any of them is read: files of results name the run by all its inputs.
  for (const std::string& name : summaries_) {
    const fs::path file = grid_file(folder_ / "summary" / name);
    if (file.empty())
      throw InputError(fmt::format("no summary/{}.tif or .npy", name), folder_.string(), kRunExpected);
    journal::input(file);
  }
  const fs::path mask = grid_file(folder_ / "ground");
  const fs::path any = !mask.empty()        ? mask
                       : summaries_.empty() ? fs::path()
                                            : grid_file(folder_ / "summary" / summaries_.front());
  if (any.empty()) throw InputError("no grid", folder_.string(), kRunExpected);
  const auto reader = io::RasterReader::open(any);
  const io::RasterGrid found = reader->grid();
  if (found.rows != grid_.rows || found.cols != grid_.cols)
    throw InputError(fmt::format("{} x {} pixels", found.rows, found.cols), any.string(),
                     fmt::format("{} x {} as in run.json", grid_.rows, grid_.cols));
  grid_ = found;
  if (!grid_.has_transform) take_place_of_dsm();
  if (!grid_.has_transform) grid_.place(pixel_size_m_);
  if (mask.empty()) return;
  std::vector<float> values(cells());
  reader->read(0, 0, grid_.rows, grid_.cols, values.data());
  journal::input(mask);
  ground_.resize(values.size());
  for (size_t p = 0; p < values.size(); ++p) ground_[p] = values[p] == 1;
}

/// Grids as .npy have no place; that of the run is its DSM's, as long as the file is there.
void RunFolder::take_place_of_dsm() {
  const RecordedOption* dsm = record_.find("dsm");
  if (!dsm || !is_file(dsm->path)) return;
  const io::RasterGrid grid = io::RasterReader::open(dsm->path)->grid();
  if (grid.rows == grid_.rows && grid.cols == grid_.cols) grid_ = grid;
}

void RunFolder::find_outputs() {
  const fs::path netcdf = folder_ / "run.nc";
  if (is_file(netcdf)) {
    netcdf_ = std::make_unique<io::GridSeriesReader>(netcdf, static_cast<int64_t>(times_.size()), grid_.rows,
                                                     grid_.cols);
    outputs_ = netcdf_->names();
    return;
  }
  for (const auto& output : choices(SeriesOutput{})) {
    const std::string name(output.name);
    const fs::path file = grid_file(folder_ / name / (name + "_" + stamp_of(times_.front())));
    if (file.empty()) continue;
    outputs_.push_back(name);
    suffix_ = file.extension().string();
  }
}

fs::path RunFolder::step_file(const std::string& output, size_t step) const {
  return folder_ / output / (output + "_" + stamp_of(times_[step]) + suffix_);
}

void RunFolder::read_step(const std::string& output, size_t step, int64_t row, int64_t rows,
                          float* out) const {
  if (netcdf_) {
    const auto& names = netcdf_->names();
    const auto k = static_cast<size_t>(std::ranges::find(names, output) - names.begin());
    return netcdf_->read(k, step, row, rows, out);
  }
  const fs::path file = step_file(output, step);
  const auto reader = io::RasterReader::open(file, {pixel_size_m_, {}, false});
  if (reader->grid().rows != grid_.rows || reader->grid().cols != grid_.cols)
    throw InputError("a grid of another size", file.string(), fmt::format("{} x {}", grid_.rows, grid_.cols));
  reader->read(row, 0, rows, grid_.cols, out);
}

std::vector<float> RunFolder::read_summary(const std::string& name) const {
  const fs::path file = grid_file(folder_ / "summary" / name);
  const auto reader = io::RasterReader::open(file, {pixel_size_m_, {}, false});
  if (reader->grid().rows != grid_.rows || reader->grid().cols != grid_.cols)
    throw InputError("a grid of another size", file.string(), fmt::format("{} x {}", grid_.rows, grid_.cols));
  std::vector<float> values(cells());
  reader->read(0, 0, grid_.rows, grid_.cols, values.data());
  return values;
}

}  // namespace lockstep::urban
