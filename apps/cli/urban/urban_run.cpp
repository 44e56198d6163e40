// `lockstep urban run`, `check`, `validate` and `gates`: radiation and comfort hour by hour.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <exception>
#include <utility>

#include "core/reports/log.hpp"
#include "urban_call.hpp"

namespace lockstep::cli {
namespace {

/// Progress and warnings of a run, in the words of the shell.
void attend(urban::SeriesOptions& options, const char* command) {
  options.tiles.on_progress = progress_bar("parts");
  options.words = schema_of<urban::SeriesOptions>().in_shell(command);
}

/// Ctrl-C as long as this lives: the first lets the step in progress end, the second ends the program. Where it is ignored, as
/// in the background of a script, it stays so.
class Interrupt {
 public:
  Interrupt() : before_(std::signal(SIGINT, &note)) {
    noted_ = 0;
    if (before_ == SIG_IGN) std::signal(SIGINT, SIG_IGN);
  }
  ~Interrupt() { std::signal(SIGINT, before_); }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  static bool noted() { return noted_ != 0; }

 private:
  static void note(int) {
    noted_ = 1;
    std::signal(SIGINT, SIG_DFL);
  }
  void (*before_)(int);
  static volatile std::sig_atomic_t noted_;
};
volatile std::sig_atomic_t Interrupt::noted_ = 0;

struct Interrupted : std::exception {};

int run_series(Session& session, urban::SeriesOptions options) {
  attend(options, "lockstep urban run");
  const bool resume = options.resume;
  return until_interrupted(
      options.tiles.on_progress,
      [&] {
        const auto result = session.on_lead([&](Context& context, const parallel::Group& group) {
          return urban::run(context, options, group);
        });
        if (result) show(session, *result, text_of(*result));
      },
      resume ? "the same command resumes from there" : "without --no-resume a run resumes");
}

int run_validation(Session& session, urban::ValidationOptions options) {
  attend(options.series, "lockstep urban validate");
  const urban::ValidationResult result = urban::validate(session.context(), options);
  for (const StageRecord& stage : result.series.host_stages) session.note(stage);
  std::string text =
      fmt::format("{:<8} {:>4} {:>10} {:>10} {:>8} {:>8}\n", "", "n", "RMSE", "MBE", "R2", "d");
  for (const auto& [variable, a] : result.variables)
    text += fmt::format("{:<8} {:>4} {:>10.3f} {:>10.3f} {:>8.3f} {:>8.3f}\n", variable, a.n, a.rmse, a.mbe,
                        a.r2, a.d);
  show(session, result, text + result.plot.string());
  return 0;
}

int run_quirks(Session& session, const urban::GateOptions& options) {
  const auto effects = urban::quirk_effects(session.context(), options);
  std::string text = fmt::format("{:>9} {:>9} {:>9} {:>9}  {}\n", "day", "night", "mean |Δ|", "max |Δ|",
                                 "change of Tmrt (K) by, instead of the corrected preset");
  for (const urban::QuirkEffect& e : effects)
    text += fmt::format("{:>9.4f} {:>9.4f} {:>9.4f} {:>9.4f}  {}: {}\n", e.mean_day_k, e.mean_night_k,
                        e.mean_abs_k, e.max_abs_k, e.quirk, e.value);
  text.pop_back();
  show(session, effects, text);
  return 0;
}

int run_all_gates(Session& session, const urban::GateOptions& options) {
  const std::vector<urban::Gate> gates = urban::run_gates(session.context(), options);
  std::string text = fmt::format("{:<4}  {:<34} {:>12} {:>8}  {}\n", "", "gate", "value", "limit", "of");
  bool pass = true;
  for (const urban::Gate& g : gates) {
    text += fmt::format("{:<4}  {:<34} {:>12.4g} {:>8g}  {} ({})\n", g.pass ? "ok" : "FAIL", g.gate, g.value,
                        g.limit, g.unit, g.note);
    pass = pass && g.pass;
  }
  show(session, gates, text + (pass ? "all gates passed" : "FAILED"));
  return pass ? 0 : 1;
}

int run_check(Command& command, Session& session, urban::CheckOptions options) {
  attend(options, "lockstep urban check");
  const std::vector<urban::InputCheck> checks = urban::check(session.context(), options);
  std::string text;
  bool fine = true, usable = true;
  for (const urban::InputCheck& c : checks) {
    const bool ok = c.verdict == urban::Verdict::ok;
    fine = fine && ok;
    usable = usable && (ok || c.verdict == urban::Verdict::warning);
    text += fmt::format("{:<8} {:<16} {:>11} {:<13} {}\n",
                        ok                                     ? "ok"
                        : c.verdict == urban::Verdict::warning ? "WARNING"
                                                               : "ERROR",
                        c.check, c.value && std::isfinite(*c.value) ? fmt::format("{:.5g}", *c.value) : "",
                        c.unit, c.text);
  }
  show(session, checks,
       text + (fine     ? "no warnings"
               : usable ? "some inputs have warnings"
                        : "some inputs have errors: they cannot be used"));
  return asked(command, "strict") && !fine ? 1 : 0;
}

}  // namespace

int until_interrupted(std::function<void(int64_t, int64_t)>& on_progress, const std::function<void()>& work,
                      const char* next) {
  std::atomic<int64_t> done = 0, total = 0;  // several threads may report
  on_progress = [&, shown = on_progress](int64_t now, int64_t all) {
    if (shown) shown(now, all);
    done = now;
    total = all;
    if (Interrupt::noted()) throw Interrupted();
  };
  try {
    const Interrupt interrupt;
    work();
    return 0;
  } catch (const Interrupted&) {
    logging::warning("stopped after {} of {} parts; {}", done.load(), total.load(), next);
  }
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);  // for the caller, who sees how the program ended
  return 0;
}

void add_urban_series(CommandList& commands, CLI::App& urban) {
  add_call<urban::SeriesOptions>(
      commands, urban, "run", "radiation and thermal comfort hour by hour",
      "lockstep urban run --dsm dsm.tif --dem dem.tif --cdsm cdsm.tif --weather met.txt --utc-offset "
      "1 --out day",
      run_series, Ranks::several);
  add_call<urban::CheckOptions>(
      commands, urban, "check", "check the inputs of 'urban run' without computing",
      "lockstep urban check --dsm dsm.tif --dem dem.tif --weather met.txt --utc-offset 1", run_check);
  add_call<urban::ValidationOptions>(
      commands, urban, "validate", "compare a run with measurements at a point",
      "lockstep urban validate --dsm dsm.tif --dem dem.tif --weather met.txt --utc-offset 0 --poi "
      "site.csv --measured site_measured.csv --out day",
      run_validation);
  add_call<urban::GateOptions>(
      commands, urban, "gates", "run the acceptance tests on your own city, or on the sample",
      "lockstep urban gates --dsm dsm.tif --cdsm cdsm.tif --weather met.txt --utc-offset 1",
      [](Command& command, Session& session, urban::GateOptions options) {
        attend(options, "lockstep urban gates");
        return asked(command, "quirks") ? run_quirks(session, options) : run_all_gates(session, options);
      });
}

}  // namespace lockstep::cli
