// `lockstep urban`: shadows, walls, sky view factors, the sample and indices of one place. The other commands have files of
// their own.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <mutex>

#include "core/reports/progress.hpp"
#include "lockstep/urban/opening.hpp"
#include "urban_call.hpp"

namespace lockstep::cli {
namespace {

/// A run whose device opens while it reads.
int run_opening(Session& session, auto options) {
  expect_few_streams();
  options.tiles.on_progress = progress_bar("rays");
  const auto result = urban::run([&]() -> Context& { return session.context(); }, options);
  show(session, result, text_of(result));
  return 0;
}

int run_walls(Session& session, urban::WallRunOptions options) {
  options.tiles.on_progress = progress_bar("rays");
  const urban::WallRunResult result = urban::run(session.context(), options);
  show(session, result, text_of(result));
  return 0;
}

std::string facade_text(const urban::FacadeResult& facades) {
  return fmt::format("{:.6g} m2 of facades, {} bands: mean {:.3g} h, without plants {:.3g} h {}\n",
                     facades.area_m2, facades.bands, facades.hours, facades.hours_buildings,
                     facades.file.string());
}

/// "-": there is nothing of that kind, and so no share of it.
std::string share_text(double percent) {
  return std::isfinite(percent) ? fmt::format("{:>5.1f} %", percent) : fmt::format("{:>7}", "-");
}

/// A line for each grade, with the shares of ground and facades, and those without plants.
std::string rule_text(const urban::RuleResult& rule, bool facades) {
  std::string text = rule.source + "\n";
  for (const urban::SunGrade& grade : rule.grades) {
    text += fmt::format("  {:<20} ground {} (without plants {})", grade.label,
                        share_text(grade.ground_percent), share_text(grade.ground_percent_buildings));
    if (facades)
      text += fmt::format(", facades {} ({})", share_text(grade.facade_percent),
                          share_text(grade.facade_percent_buildings));
    text += "\n";
  }
  return text;
}

int run_sun(Session& session, urban::SunlightOptions options) {
  options.tiles.on_progress = progress_bar("suns");
  const urban::SunlightResult result = urban::run(session.context(), options);
  std::string text = text_of(result);
  if (result.facades) text += facade_text(*result.facades);
  if (result.rule) text += rule_text(*result.rule, result.facades.has_value());
  show(session, result, text + fmt::format("{:g} h are possible in an open field", result.possible_h));
  return 0;
}

int run_umep(Session& session, const urban::UmepOptions& options) {
  const urban::UmepExchange result = urban::run(options);
  std::string text;
  for (const auto& file : result.files) text += file.string() + "\n";
  show(session, result, text);
  return 0;
}

template <class Options>
int run_index(Session& session, const Options& options) {
  const auto result = urban::run(options);
  show(session, result, fmt::format("{:.3f}", result.value));
  return 0;
}

int run_sample(Session& session, urban::SampleRunOptions options) {
  options.on_progress = progress_bar("city");
  const urban::SampleRunResult result = urban::run(options);
  show(session, result, text_of(result));
  return 0;
}

}  // namespace

std::function<void(int64_t, int64_t)> progress_bar(const std::string& title) {
  // The bar is made when the number of parts is known, and again if it changes with a fallback.
  struct Bar {
    std::mutex mutex;
    std::unique_ptr<Progress> progress;
  };
  return [title, bar = std::make_shared<Bar>()](int64_t done, int64_t total) {
    std::lock_guard lock(bar->mutex);
    if (!bar->progress || bar->progress->total() != total)
      bar->progress = std::make_unique<Progress>(title, total);
    bar->progress->set(done);
    if (done >= total) bar->progress.reset();
  };
}

std::string text_of(const urban::RunResult& result) {
  std::string text;
  for (const urban::OutputGrid& grid : result.outputs)
    text += fmt::format("{:<34} {:>10.4g} to {:<10.4g} mean {:<10.5g} {}\n", grid.name, grid.minimum,
                        grid.maximum, grid.mean, grid.file.string());
  return text;
}

void add_urban(CommandList& commands, CLI::App& root) {
  Command& group = add_command(commands, root, "urban",
                               "shadows, sky view factors, radiation and thermal comfort of a city");
  set_footer(*group.app, "Example:\n  lockstep urban svf --dsm dsm.tif --cdsm cdsm.tif --out out");
  CLI::App& urban = *group.app;
  add_call<urban::ShadowRunOptions>(
      commands, urban, "shadows", "shadows for one position of the sun",
      "lockstep urban shadows --dsm dsm.tif --cdsm cdsm.tif --at 2015-06-21T12:00+02:00 --out out",
      run_opening<urban::ShadowRunOptions>);
  add_call<urban::WallRunOptions>(commands, urban, "walls", "height and direction of walls",
                                  "lockstep urban walls --dsm dsm.tif --out out", run_walls);
  add_call<urban::SkyRunOptions>(commands, urban, "svf", "sky view factors: 15 grids",
                                 "lockstep urban svf --dsm dsm.tif --cdsm cdsm.tif --out out",
                                 run_opening<urban::SkyRunOptions>);
  add_call<urban::UmepOptions>(commands, urban, "umep",
                               "convert sky view factors from and to svfs.zip and shadowmats.npz of UMEP",
                               "lockstep urban umep svf_folder --out umep", run_umep);
  add_call<urban::SampleRunOptions>(commands, urban, "sample",
                                    "generate a sample city: streets, courtyards, a tower, trees",
                                    "lockstep urban sample --size 1024 --seed 7 --out city", run_sample);
  add_urban_stage(commands, urban);
  add_call<urban::UtciOptions>(commands, urban, "utci", "universal thermal climate index of one place",
                               "lockstep urban utci --ta 30 --rh 45 --wind 2 --tmrt 60",
                               run_index<urban::UtciOptions>);
  add_call<urban::PetOptions>(commands, urban, "pet", "physiologically equivalent temperature of one place",
                              "lockstep urban pet --ta 30 --rh 45 --wind 1 --tmrt 60",
                              run_index<urban::PetOptions>);
  add_urban_series(commands, urban);
  add_call<urban::SunlightOptions>(
      commands, urban, "sun", "hours of sun of a day or a period, without weather",
      "lockstep urban sun --dsm dsm.tif --cdsm cdsm.tif --date 2026-03-21 --out sun", run_sun);
  add_urban_results(commands, urban);
  add_urban_plant(commands, urban);
}

}  // namespace lockstep::cli
