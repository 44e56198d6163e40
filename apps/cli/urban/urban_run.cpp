// `lockstep urban run`, `urban validate` and `urban gates`: radiation and comfort hour by hour.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "series_options.hpp"
#include "urban/run/report.hpp"

namespace lockstep::cli {
namespace {

int run_series(const CommonOptions& common, const SeriesArguments& arguments) {
  const urban::SeriesOptions options = series_options(arguments);
  Session session(common);
  const urban::SeriesResult result = urban::run(session.context(), options);
  finish(session, result, urban::to_json(result));
  return 0;
}

struct ValidateArguments {
  SeriesArguments series;
  std::string measured;
  std::optional<double> measured_utc_offset;
};

int run_validation(const CommonOptions& common, const ValidateArguments& arguments) {
  urban::ValidationOptions options;
  options.series = series_options(arguments.series);
  options.measured = arguments.measured;
  options.measured_utc_offset_h = arguments.measured_utc_offset;
  Session session(common);
  const urban::ValidationResult result = urban::validate(session.context(), options);
  for (const StageRecord& stage : result.series.host_stages) session.note(stage);
  std::string text =
      fmt::format("{:<8} {:>4} {:>10} {:>10} {:>8} {:>8}\n", "", "n", "RMSE", "MBE", "R2", "d");
  for (const auto& [variable, a] : result.variables)
    text += fmt::format("{:<8} {:>4} {:>10.3f} {:>10.3f} {:>8.3f} {:>8.3f}\n", variable, a.n, a.rmse, a.mbe,
                        a.r2, a.d);
  session.finish(urban::to_json(result), text + result.plot.string());
  return 0;
}

/// Gates write nothing, and the sample has its own city, weather and place.
void check_gate_options(const CLI::App& app, const SeriesArguments& arguments) {
  refuse_given(app, {"--out", "--format", "--poi", "--no-pictures", "--no-video", "--no-resume"},
               "gates keep no results", "urban run for them");
  if (arguments.city.dsm.empty())
    refuse_given(app,
                 {"--dem", "--cdsm", "--tdsm", "--pixel-size", "--band", "--dsm-heights", "--trunk-ratio",
                  "--canopy", "--land-cover", "--wall-height", "--wall-aspect", "--svf", "--weather",
                  "--latitude", "--longitude", "--utc-offset"},
                 "of a city, beside the sample", "--dsm too");
  else
    expect_beside(app, "--dsm", "--weather");
}

int run_quirks(const CommonOptions& common, const SeriesArguments& arguments) {
  Session session(common);
  const auto effects = urban::quirk_effects(session.context(), series_options(arguments));
  std::string text = fmt::format("{:>9} {:>9} {:>9} {:>9}  {}\n", "day", "night", "mean |Δ|", "max |Δ|",
                                 "change of Tmrt (K) by, instead of the corrected preset");
  for (const urban::QuirkEffect& e : effects)
    text += fmt::format("{:>9.4f} {:>9.4f} {:>9.4f} {:>9.4f}  {}: {}\n", e.mean_day_k, e.mean_night_k,
                        e.mean_abs_k, e.max_abs_k, e.quirk, e.value);
  text.pop_back();
  session.finish(urban::to_json(effects), text);
  return 0;
}

int run_all_gates(const CommonOptions& common, const SeriesArguments& arguments) {
  const urban::SeriesOptions options = series_options(arguments);
  Session session(common);
  const std::vector<urban::Gate> gates = urban::run_gates(session.context(), options);
  std::string text = fmt::format("{:<4}  {:<34} {:>12} {:>8}  {}\n", "", "gate", "value", "limit", "of");
  bool pass = true;
  for (const urban::Gate& g : gates) {
    text += fmt::format("{:<4}  {:<34} {:>12.4g} {:>8g}  {} ({})\n", g.pass ? "ok" : "FAIL", g.gate, g.value,
                        g.limit, g.unit, g.note);
    pass = pass && g.pass;
  }
  session.finish(urban::to_json(gates), text + (pass ? "all gates passed" : "FAILED"));
  return pass ? 0 : 1;
}

int run_check(const CommonOptions& common, const SeriesArguments& arguments, bool strict) {
  const urban::SeriesOptions options = series_options(arguments);
  Session session(common);
  const std::vector<urban::InputCheck> checks = urban::check(session.context(), options);
  std::string text;
  bool fine = true;
  for (const urban::InputCheck& c : checks) {
    const bool ok = c.verdict == urban::Verdict::ok;
    fine = fine && ok;
    text += fmt::format("{:<8} {:<16} {:>11} {:<13} {}\n",
                        ok                                     ? "ok"
                        : c.verdict == urban::Verdict::warning ? "WARNING"
                                                               : "ERROR",
                        c.check, c.value && std::isfinite(*c.value) ? fmt::format("{:.5g}", *c.value) : "",
                        c.unit, c.text);
  }
  session.finish(urban::to_json(checks), text + (fine ? "nothing is doubted" : "some inputs are doubted"));
  return strict && !fine ? 1 : 0;
}

}  // namespace

void add_urban_check(CommandList& commands, CLI::App& urban) {
  Command& command =
      add_command(commands, urban, "check", "the inputs of 'urban run' as one table, without computing");
  auto arguments = std::make_shared<SeriesArguments>();
  auto strict = std::make_shared<bool>(false);
  add_series_options(*command.app, *arguments, SeriesNeeds::inputs);
  add_flag(*command.app, "--strict", *strict, "exit code 1 where a verdict is not ok");
  add_common(command, "lockstep urban check --dsm dsm.tif --dem dem.tif --weather met.txt --utc-offset 1");
  command.run = [&command, arguments, strict] {
    check_series_options(*command.app, *arguments);
    return run_check(command.common, *arguments, *strict);
  };
}

void add_urban_run(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "run", "radiation and thermal comfort hour by hour");
  auto arguments = std::make_shared<SeriesArguments>();
  add_series_options(*command.app, *arguments, SeriesNeeds::all);
  add_common(command,
             "lockstep urban run --dsm dsm.tif --dem dem.tif --cdsm cdsm.tif --weather met.txt --utc-offset "
             "1 --out day");
  command.run = [&command, arguments] {
    check_series_options(*command.app, *arguments);
    return run_series(command.common, *arguments);
  };
}

void add_urban_validate(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "validate", "a run against measurements at a point");
  auto arguments = std::make_shared<ValidateArguments>();
  add_file(*command.app, "--measured", arguments->measured,
           "CSV: time or hour, and Tmrt, Kdown, Kup, Kside, Ldown, Lup, Lside");
  require(*command.app, "--measured");
  add_number(*command.app, "--measured-utc-offset", arguments->measured_utc_offset,
             "of the measurements' clock (default: the weather's)", "H", {-14, 14});
  add_series_options(*command.app, arguments->series, SeriesNeeds::all);
  add_common(command,
             "lockstep urban validate --dsm dsm.tif --dem dem.tif --weather met.txt --utc-offset 0 --poi "
             "site.csv --measured site_measured.csv --out day");
  command.run = [&command, arguments] {
    check_series_options(*command.app, arguments->series);
    return run_validation(command.common, *arguments);
  };
}

void add_urban_gates(CommandList& commands, CLI::App& urban) {
  Command& command =
      add_command(commands, urban, "gates", "the acceptance gates on your own city, or on the sample");
  auto arguments = std::make_shared<SeriesArguments>();
  auto quirks = std::make_shared<bool>(false);
  add_flag(*command.app, "--quirks", *quirks,
           "instead: what each point where the presets differ does to Tmrt, toggled alone");
  add_series_options(*command.app, *arguments, SeriesNeeds::nothing);
  add_common(command, "lockstep urban gates --dsm dsm.tif --cdsm cdsm.tif --weather met.txt --utc-offset 1");
  command.run = [&command, arguments, quirks] {
    check_series_options(*command.app, *arguments);
    check_gate_options(*command.app, *arguments);
    return *quirks ? run_quirks(command.common, *arguments) : run_all_gates(command.common, *arguments);
  };
}

}  // namespace lockstep::cli
