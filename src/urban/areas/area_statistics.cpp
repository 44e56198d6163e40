// Statistics of a run by areas, from files to a file.
#include <fmt/ranges.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "core/files/atomic_file.hpp"
#include "core/reports/host_stage.hpp"
#include "core/reports/log.hpp"
#include "io/series/csv.hpp"
#include "io/vectors/geopackage.hpp"
#include "lockstep/error.hpp"
#include "urban/areas/area_shapes.hpp"
#include "urban/areas/area_table.hpp"
#include "urban/areas/coverage.hpp"
#include "urban/options/hours.hpp"
#include "urban/results/recorded_city.hpp"
#include "urban/results/run_folder.hpp"
#include "urban/weather/parameters.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

OptionError choice_error(const char* option, std::string what, std::string expected) {
  return schema_of<AreaStatisticsOptions>().error(
      {OptionError::Kind::invalid, option, std::move(what), std::move(expected), ""});
}

bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Throws where the table would replace a result or an input of the run.
void check_file(const AreaStatisticsOptions& options, const RunFolder& run) {
  const auto check = [&](const fs::path& file) {
    std::error_code error;
    if (fs::equivalent(options.file, file, error))
      throw choice_error("out", fmt::format("{} is a file of the run", options.file.string()),
                         "another file");
  };
  check(run.folder() / "poi.csv");
  for (const RecordedOption& option : run.record().options)
    if (option.file) check(option.path);
}

void choose_outputs(const AreaStatisticsOptions& options, const RunFolder& run, AreaPlan& plan) {
  for (const std::string& text : options.thresholds) {
    plan.thresholds.push_back(parse_threshold(text));
    if (!has_name(run.outputs(), plan.thresholds.back().output))
      throw choice_error("threshold", fmt::format("no output '{}' in the run", plan.thresholds.back().output),
                         fmt::format("one of {}", fmt::join(run.outputs(), ", ")));
  }
  std::vector<std::string> wanted = options.outputs.empty() ? run.outputs() : options.outputs;
  for (const Threshold& t : plan.thresholds)
    if (!has_name(wanted, t.output)) wanted.push_back(t.output);
  if (options.groups == AreaGroups::stress && options.outputs.empty())
    std::erase_if(wanted, [](const std::string& name) { return name != "utci" && name != "pet"; });
  for (const std::string& name : wanted) {
    const bool stepped = has_name(run.outputs(), name);
    if (!stepped && !has_name(run.summaries(), name))
      throw choice_error(
          "outputs", fmt::format("no '{}' in the run", name),
          fmt::format("of {}, {}", fmt::join(run.outputs(), ", "), fmt::join(run.summaries(), ", ")));
    if (options.groups == AreaGroups::stress && name != "utci" && name != "pet")
      throw choice_error("outputs", fmt::format("classes of thermal stress of '{}'", name), "utci or pet");
    (stepped ? plan.outputs : plan.summaries).push_back(name);
  }
  if (wanted.empty())
    throw choice_error("by", "classes of thermal stress of a run without them", "a run with utci or pet");
}

void choose_steps(const AreaStatisticsOptions& options, const RunFolder& run, AreaPlan& plan) {
  for (size_t k = 0; k < run.times().size(); ++k)
    if (!options.hours || options.hours->holds(run.times()[k], run.step_min())) plan.steps.push_back(k);
  if (plan.steps.empty()) throw no_step_error(*options.hours, run.step_min());
}

/// The file that the run read as an option; empty: none. Throws if it has changed.
fs::path recorded_file(const RunFolder& run, std::string_view option, const char* expected) {
  const RecordedOption* file = run.record().find(option);
  if (!file || file->value.empty()) return {};
  if (!is_unchanged(*file))
    throw choice_error("by", fmt::format("{} is gone or has changed since the run", file->path.string()),
                       expected);
  return file->path;
}

/// Classes of the ground by pixel; no codes if areas are not divided by land cover.
struct LandCover {
  std::vector<float> codes;
  ModelParameters table;  ///< has their names
};

LandCover land_cover_of(const AreaStatisticsOptions& options, const RunFolder& run) {
  if (options.groups != AreaGroups::land_cover) return {};
  constexpr const char* kExpected = "{land_cover}, the classes of the ground";
  const fs::path file =
      options.land_cover.empty() ? recorded_file(run, "land-cover", kExpected) : options.land_cover;
  if (file.empty()) throw choice_error("by", "a run that names no land cover", kExpected);
  LandCover cover;
  if (const fs::path table = recorded_file(run, "parameters", "the parameters of the run"); !table.empty())
    cover.table = read_parameters(table);
  const auto reader = io::RasterReader::open(file, {run.pixel_size_m(), {}, false});
  io::require_same_grid(run.grid(), run.folder().string(), reader->grid(), file.string());
  cover.codes.resize(run.cells());
  reader->read(0, 0, run.grid().rows, run.grid().cols, cover.codes.data());
  for (size_t p = 0; p < cover.codes.size(); ++p)
    if (const float code = cover.codes[p]; !std::isnan(code) && code != std::floor(code))
      throw InputError(
          fmt::format("land cover {:g} at row {}, column {}", code, p / static_cast<size_t>(run.grid().cols),
                      p % static_cast<size_t>(run.grid().cols)),
          file.string(), "classes, which are whole numbers");
  return cover;
}

/// Zones of an area: itself, or one a land cover.
std::vector<Zone> zones_of(size_t area, const Coverage& coverage, const std::vector<uint8_t>& ground,
                           const LandCover& cover) {
  const std::vector<float>& codes = cover.codes;
  std::map<float, Zone> zones;
  if (codes.empty()) zones[0].area = area;
  for (size_t k = 0; k < coverage.pixels.size(); ++k) {
    const uint32_t p = coverage.pixels[k];
    if ((!ground.empty() && ground[p] == 0) || (!codes.empty() && std::isnan(codes[p]))) continue;
    Zone& zone = zones[codes.empty() ? 0 : codes[p]];
    zone.area = area;
    if (!codes.empty() && zone.group.empty()) zone.group = cover.table.class_title(codes[p]);
    zone.pixels.push_back(p);
    zone.shares.push_back(coverage.shares[k]);
  }
  std::vector<Zone> list;
  for (auto& [code, zone] : zones) list.push_back(std::move(zone));
  return list;
}

void lay_zones(const AreaStatisticsOptions& options, const RunFolder& run,
               const std::vector<AreaShape>& shapes, AreaPlan& plan, AreaStatisticsResult& result) {
  const LandCover cover = land_cover_of(options, run);
  const std::vector<uint8_t> ground = options.include_roofs ? std::vector<uint8_t>() : run.ground();
  if (!options.include_roofs && ground.empty())
    result.warnings.push_back("the run has no mask of the ground: roofs and water count");
  std::vector<std::vector<Zone>> zones(shapes.size());
  std::vector<int> place(shapes.size());  // 0 outside, 1 partly, 2 inside
  tbb::parallel_for(size_t{0}, shapes.size(), [&](size_t k) {
    const Coverage coverage = coverage_of(shapes[k], run.grid());
    zones[k] = zones_of(k, coverage, ground, cover);
    place[k] = coverage.inside == 0 ? 0 : coverage.inside < coverage.whole * (1 - 1e-9) ? 1 : 2;
  });
  for (size_t k = 0; k < shapes.size(); ++k) {
    plan.names.push_back(shapes[k].name);
    std::ranges::move(zones[k], std::back_inserter(plan.zones));
  }
  result.areas = static_cast<int64_t>(shapes.size());
  result.outside = std::ranges::count(place, 0);
  result.partly = std::ranges::count(place, 1);
  if (result.outside == result.areas) throw outside_error(shapes, run.grid(), options.areas);
  if (result.outside > 0)
    result.warnings.push_back(
        fmt::format("{} of {} areas lie outside of the raster", result.outside, result.areas));
  if (result.partly > 0)
    result.warnings.push_back(fmt::format(
        "{} of {} areas lie outside with a part of them, which does not count", result.partly, result.areas));
}

std::string cell(double value) { return std::isfinite(value) ? fmt::format("{:.9g}", value) : ""; }

std::string csv_of(const AreaStatisticsResult& result, bool groups) {
  std::string text =
      groups ? "area,group,output,unit,time,m2,mean,sd,min,max" : "area,output,unit,time,m2,mean,sd,min,max";
  for (const double p : result.percentiles) text += fmt::format(",p{:g}", p);
  for (const std::string& t : result.thresholds)
    text += "," + io::csv_field(t + " m2") + "," + io::csv_field(t + " h");
  text += "\n";
  for (const AreaRow& r : result.rows) {
    text += io::csv_field(r.area) + ",";
    if (groups) text += io::csv_field(r.group) + ",";
    text += fmt::format("{},{},{},{},{},{},{},{}", r.output, io::csv_field(r.unit), r.time, cell(r.m2),
                        cell(r.mean), cell(r.deviation), cell(r.minimum), cell(r.maximum));
    for (const double p : r.percentiles) text += "," + cell(p);
    for (size_t t = 0; t < result.thresholds.size(); ++t)
      text += "," + cell(r.threshold_m2[t]) + "," + cell(r.threshold_hours[t]);
    text += "\n";
  }
  return text;
}

/// A feature a row of the table that has the same area, group and time, with a column an output and statistic.
io::FeatureLayer layer_of(const AreaStatisticsResult& result, const std::vector<AreaShape>& shapes,
                          bool groups) {
  io::FeatureLayer layer{"statistics", io::Feature::Kind::area, {}, {}};
  std::map<std::string, const std::vector<Ring>*> rings;
  for (const AreaShape& shape : shapes) rings[shape.name] = &shape.rings;
  std::map<std::array<std::string, 3>, size_t> numbers;
  std::vector<std::string> area, group, time;
  std::map<std::string, size_t> places;
  std::vector<std::pair<std::string, std::vector<double>>> columns;
  const auto put = [&](size_t number, const std::string& name, double value) {
    const auto [place, fresh] = places.try_emplace(name, columns.size());
    if (fresh) columns.emplace_back(name, std::vector<double>());
    std::vector<double>& values = columns[place->second].second;
    values.resize(std::max(values.size(), number + 1), std::numeric_limits<double>::quiet_NaN());
    values[number] = value;
  };
  for (const AreaRow& r : result.rows) {
    const auto [feature, fresh] = numbers.try_emplace({r.area, r.group, r.time}, numbers.size());
    if (fresh) {
      layer.shapes.push_back(*rings.at(r.area));
      area.push_back(r.area);
      group.push_back(r.group);
      time.push_back(r.time);
    }
    for (const auto& [name, value] : {std::pair("m2", r.m2),
                                      {"mean", r.mean},
                                      {"sd", r.deviation},
                                      {"min", r.minimum},
                                      {"max", r.maximum}})
      put(feature->second, r.output + "_" + name, value);
    for (size_t p = 0; p < result.percentiles.size(); ++p)
      put(feature->second, fmt::format("{}_p{:g}", r.output, result.percentiles[p]), r.percentiles[p]);
    for (size_t t = 0; t < result.thresholds.size(); ++t) {
      if (parse_threshold(result.thresholds[t]).output != r.output) continue;
      put(feature->second, result.thresholds[t] + " m2", r.threshold_m2[t]);
      put(feature->second, result.thresholds[t] + " h", r.threshold_hours[t]);
    }
  }
  layer.columns = {{"area", area}, {"time", time}};
  if (groups) layer.columns.insert(layer.columns.begin() + 1, {"group", group});
  for (auto& [name, values] : columns) {
    values.resize(area.size(), std::numeric_limits<double>::quiet_NaN());
    layer.columns.push_back({name, std::move(values)});
  }
  return layer;
}

void write_table(const AreaStatisticsOptions& options, const AreaStatisticsResult& result,
                 const std::vector<AreaShape>& shapes, const io::RasterGrid& grid) {
  const bool groups = options.groups != AreaGroups::none;
  if (options.file.extension() == ".gpkg")
    io::write_geopackage(options.file, grid.crs_wkt, std::vector{layer_of(result, shapes, groups)});
  else
    write_file(options.file, csv_of(result, groups));
}

}  // namespace

AreaStatisticsResult area_statistics(const AreaStatisticsOptions& options) {
  schema_of<AreaStatisticsOptions>().check(&options);
  AreaStatisticsResult result;
  result.percentiles = options.percentiles;
  result.thresholds = options.thresholds;
  AreaPlan plan;
  std::unique_ptr<RunFolder> run;
  std::vector<AreaShape> shapes;
  host_stage(result.host_stages, "read", [&] {
    run = std::make_unique<RunFolder>(options.run);
    check_file(options, *run);
    choose_outputs(options, *run, plan);
    choose_steps(options, *run, plan);
    shapes = read_area_shapes(options, run->grid());
  });
  plan.run = run.get();
  plan.periods = options.periods;
  plan.percentiles = options.percentiles;
  plan.by_stress = options.groups == AreaGroups::stress;
  result.steps = static_cast<int64_t>(plan.steps.size());
  host_stage(result.host_stages, "areas", [&] {
    lay_zones(options, *run, shapes, plan, result);
    for (const std::string& warning : result.warnings) logging::warning("{}", warning);
    result.rows = area_rows(plan);
  });
  host_stage(result.host_stages, "write", [&] {
    if (options.file.empty()) return;
    write_table(options, result, shapes, run->grid());
    result.file = options.file;
  });
  return result;
}

}  // namespace lockstep::urban
