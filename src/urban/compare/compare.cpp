// Two runs read, compared and written.
#include "lockstep/urban/compare.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>

#include "core/files/atomic_file.hpp"
#include "core/files/folder_lock.hpp"
#include "core/record/stamp.hpp"
#include "core/reports/host_stage.hpp"
#include "core/reports/log.hpp"
#include "io/pictures/map_picture.hpp"
#include "io/pictures/plot.hpp"
#include "io/rasters/gdal/cog.hpp"
#include "lockstep/error.hpp"
#include "urban/compare/changes.hpp"
#include "urban/compare/page.hpp"
#include "urban/compare/scenario.hpp"
#include "urban/pictures/map_base.hpp"
#include "urban/pictures/map_style.hpp"
#include "urban/results/percentiles.hpp"
#include "urban/results/recorded_city.hpp"
#include "urban/results/run_folder.hpp"
#include "urban/run/files/result_folder.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

OptionError unlike(const RunFolder& after, std::string what, std::string expected) {
  return schema_of<CompareOptions>().error(
      {OptionError::Kind::invalid, "", std::move(what), std::move(expected), "", after.folder().string()});
}

/// The record of a comparison has the name of a run's.
void require_own_folder(const CompareOptions& options) {
  std::error_code unknown;
  for (const fs::path* run : {&options.before, &options.after})
    if (fs::equivalent(*run, options.folder, unknown))
      throw schema_of<CompareOptions>().error({OptionError::Kind::invalid, "out",
                                               fmt::format("{} is one of the runs", options.folder.string()),
                                               "another folder", ""});
}

void require_same_steps(const RunFolder& before, const RunFolder& after, const CompareOptions& options,
                        CompareResult& result) {
  io::require_same_grid(before.grid(), before.folder().string(), after.grid(), after.folder().string());
  if (before.times().size() != after.times().size() || before.step_min() != after.step_min())
    throw unlike(after, fmt::format("{} steps of {} min", after.times().size(), after.step_min()),
                 fmt::format("{} of {} min as in {}", before.times().size(), before.step_min(),
                             before.folder().string()));
  if (before.times().front() == after.times().front()) return;
  const auto meant = [&](const char* name) {
    return std::ranges::find(options.differing, name) != options.differing.end();
  };
  const std::string first = io::civil_text(after.times().front());
  if (!meant("from") && !meant("weather"))
    throw unlike(after, "its first step is " + first,
                 fmt::format("{} as in {}, or {{differing}} from where that is meant",
                             io::civil_text(before.times().front()), before.folder().string()));
  result.warnings.push_back(fmt::format("steps are compared by their number: the first are {} and {}",
                                        io::civil_text(before.times().front()), first));
}

/// Pixels that count: ground in both runs.
std::vector<uint8_t> counted_pixels(const RunFolder& before, const RunFolder& after,
                                    const CompareOptions& options, CompareResult& result) {
  std::vector<uint8_t> counted(before.cells(), 1);
  for (const RunFolder* run : {&before, &after}) {
    if (options.include_roofs) break;
    const std::vector<uint8_t>& ground = run->ground();
    if (ground.empty())
      result.warnings.push_back(
          fmt::format("{} has no mask of the ground: roofs and water count", run->folder().string()));
    const auto m2 = static_cast<double>(std::count(ground.begin(), ground.end(), 1)) * run->pixel_m2();
    (run == &before ? result.before_ground_m2 : result.after_ground_m2) = m2;
    for (size_t p = 0; p < ground.size(); ++p) counted[p] = counted[p] && ground[p];
  }
  result.compared_m2 = static_cast<double>(std::count(counted.begin(), counted.end(), 1)) * before.pixel_m2();
  return counted;
}

/// The end of a scale even about zero that half a percent of the pixels exceed.
double scale_of(std::span<const float> change, std::span<const uint8_t> counted) {
  std::vector<float> sizes;
  for (size_t p = 0; p < change.size(); ++p)
    if (counted[p] && std::isfinite(change[p])) sizes.push_back(std::abs(change[p]));
  constexpr double shares[] = {99.5, 100};
  const std::vector<double> ends = percentiles(sizes, shares);
  return ends[0] > 0 ? ends[0] : ends[1];
}

/// Parts of maps besides the change.
struct ChangeMaps {
  MapBase after;                ///< covers are of pixels that do not count
  std::vector<uint8_t> felled;  ///< crowns of the run before alone; empty: none
  void put_into(io::MapPictureOptions& picture, bool covered) const {
    constexpr io::Rgb kFelled = {140, 80, 30};
    if (!felled.empty()) picture.outlines.push_back({&felled, "tree crown before", kFelled, true});
    after.put_into(picture, covered);
  }
};

/// Of pixels that do not count; where the rasters of a run are gone, water is only known to be possible.
std::vector<uint8_t> cover_of(const std::vector<uint8_t>& counted, const MapBase& before,
                              const MapBase& after, bool water) {
  constexpr uint8_t kRoof = 1, kEither = 3;
  const bool known = !before.cover.empty() && !after.cover.empty();
  std::vector<uint8_t> cover(counted.size());
  for (size_t p = 0; p < counted.size(); ++p) {
    if (counted[p]) continue;
    if (known)
      cover[p] = after.cover[p] ? after.cover[p] : before.cover[p];
    else
      cover[p] = water ? kEither : kRoof;
  }
  return cover;
}

ChangeMaps change_maps(const CompareOptions& options, const RunFolder& before, const RunFolder& after,
                       const std::vector<uint8_t>& counted) {
  if (!options.pictures || !Outputs::drawable(before.grid())) return {};
  io::Image under = read_map_under(options.map, before.grid());
  ChangeMaps maps{recorded_outlines(after), {}};
  maps.after.under = std::move(under);
  MapBase past = recorded_outlines(before);
  const bool water =
      !(before.record().text("land-cover").empty() && after.record().text("land-cover").empty());
  maps.after.cover = cover_of(counted, past, maps.after, water);
  if (past.crowns.empty()) return maps;
  for (size_t p = 0; p < maps.after.crowns.size(); ++p)
    past.crowns[p] = past.crowns[p] && !maps.after.crowns[p];
  maps.felled = std::move(past.crowns);
  if (std::ranges::find(maps.felled, 1) == maps.felled.end()) maps.felled.clear();
  return maps;
}

std::string change_name(const std::string& summary) { return summary + "_change"; }

/// Grids and pictures of a comparison; removed with a new folder if one of the runs turns out to be unreadable.
struct WrittenChanges {
  explicit WrittenChanges(fs::path place) : folder(std::move(place)), fresh(!fs::exists(folder)) {}
  WrittenChanges(const WrittenChanges&) = delete;
  WrittenChanges& operator=(const WrittenChanges&) = delete;
  ~WrittenChanges() {
    if (whole) return;
    std::error_code ignored;
    for (const std::string& name : names)
      for (const char* ending : {".tif", ".npy", ".qml", ".png"})
        fs::remove(folder / (change_name(name) + ending), ignored);
    if (fresh) fs::remove(folder, ignored);
  }

  const fs::path folder;
  const bool fresh;
  std::vector<std::string> names;  ///< of summaries
  bool whole = false;
};

class ChangeWriter {
 public:
  ChangeWriter(const CompareOptions& options, const RunFolder& before, const RunFolder& after,
               const std::vector<uint8_t>& counted, const ChangeMaps& maps)
      : options_(options), before_(before), after_(after), counted_(counted), maps_(maps) {}

  SummaryChange write(const std::string& name) const {
    const std::vector<float> a = before_.read_summary(name), b = after_.read_summary(name);
    SummaryChange change = summary_change(name, before_.grid(), a, b, counted_);
    const std::vector<float> difference = difference_of(a, b);
    const std::string file = change_name(name);
    change.file = options_.folder / (file + (options_.format == GridFormat::tif ? ".tif" : ".npy"));
    const io::RasterGrid& grid = before_.grid();
    const io::RasterLabels labels{
        change.title + ", change",
        change.unit,
        {{"LOCKSTEP_BEFORE", before_.record().identity}, {"LOCKSTEP_AFTER", after_.record().identity}}};
    if (options_.format == GridFormat::tif)
      io::write_cog(change.file, grid, labels, difference.data());
    else
      io::write_raster(change.file, grid,
                       Array::view(std::span<const float>(difference), {grid.rows, grid.cols}));
    const double scale = scale_of(difference, counted_);
    const double end = scale > 0 ? scale : 1;  // zero has the colour of the middle also where nothing changes
    write_style(change.file, style_of(Look{"", labels.unit, io::ColorMap::balance}, -end, end));
    // Maps of what is the same everywhere say no more than the table.
    if (options_.pictures && scale > 0) change.picture = draw(file, change, difference, scale);
    return change;
  }

 private:
  fs::path draw(const std::string& file, const SummaryChange& change, const std::vector<float>& difference,
                double scale) const {
    io::MapPictureOptions picture;
    picture.title = change.title + ": after minus before";
    picture.unit = change.unit == "degC" ? "K" : change.unit == "W m-2" ? "W/m²" : change.unit;
    picture.map = io::ColorMap::balance;
    picture.maximum = scale;
    picture.minimum = -scale;
    maps_.put_into(picture, !options_.include_roofs);
    picture.pixel_size = std::sqrt(before_.pixel_m2());
    picture.facts.date = fmt::format("{} to {}", io::civil_text(before_.times().front()),
                                     io::civil_text(before_.times().back()));
    picture.facts.crs = io::crs_title(before_.grid().crs_wkt);
    picture.facts.north_is_up = true;
    picture.facts.place = after_.record().text("place");
    picture.facts.scenario =
        fmt::format("{} compared with {}", scenario_name(after_), scenario_name(before_));
    picture.source = record::stamp().program + ", urban compare";
    const fs::path path = options_.folder / (file + ".png");
    io::write_png(path, io::draw_map(difference, before_.grid().rows, before_.grid().cols, picture));
    return path;
  }

  const CompareOptions& options_;
  const RunFolder &before_, &after_;
  const std::vector<uint8_t>& counted_;
  const ChangeMaps& maps_;
};

}  // namespace

CompareResult compare(const CompareOptions& options) { return compare(options, {}); }

CompareResult compare(const CompareOptions& options, const std::vector<RunDifference>& known) {
  schema_of<CompareOptions>().check(&options);
  require_own_folder(options);
  CompareResult result;
  std::unique_ptr<RunFolder> before, after;
  host_stage(result.host_stages, "read", [&] {
    before = std::make_unique<RunFolder>(options.before);
    after = std::make_unique<RunFolder>(options.after);
  });
  require_same_steps(*before, *after, options, result);
  result.differences = known.empty() ? scenario_of(options, *before, *after, result.warnings) : known;
  if (options.format == GridFormat::tif) require_geotiff("format npy");
  const io::RasterGrid& grid = before->grid();
  result.place = after->record().text("place");
  result.before_scenario = scenario_name(*before);
  result.after_scenario = scenario_name(*after);
  result.rows = grid.rows;
  result.cols = grid.cols;
  result.pixel_size_m = before->pixel_size_m();
  result.steps = static_cast<int64_t>(before->times().size());
  for (const io::CivilMinutes time : before->times()) result.times.push_back(io::civil_text(time));
  const std::vector<uint8_t> counted = counted_pixels(*before, *after, options, result);
  if (result.compared_m2 == 0)
    throw unlike(*after, "no pixel is ground in both runs", "ground in common, or {include_roofs}");
  const ChangeMaps maps = change_maps(options, *before, *after, counted);
  for (const std::string& warning : result.warnings) logging::warning("{}", warning);

  host_stage(result.host_stages, "compare", [&] {
    SteppedChanges changes = stepped_changes(*before, *after, counted);
    result.outputs = std::move(changes.outputs);
    result.stress = std::move(changes.stress);
  });
  host_stage(result.host_stages, "write", [&] {
    WrittenChanges written(options.folder);
    make_result_folder(options.folder);
    const FolderLock lock(options.folder);
    for (const std::string& name : before->summaries())
      if (std::ranges::find(after->summaries(), name) != after->summaries().end())
        written.names.push_back(name);
    result.summaries.resize(written.names.size());
    const ChangeWriter writer(options, *before, *after, counted, maps);
    tbb::parallel_for(size_t{0}, written.names.size(),
                      [&](size_t k) { result.summaries[k] = writer.write(written.names[k]); });
    for (const auto& [name, table] : comparison_tables(result))
      if (!table.empty()) write_file(options.folder / (name + ".csv"), table);
    result.page = options.folder / "compare.html";
    write_file(result.page, comparison_page(options, result));
    written.whole = true;
  });
  return result;
}

}  // namespace lockstep::urban
