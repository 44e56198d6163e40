// `lockstep tune`: measures the variants of computations on a device and writes the user's table of crossovers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "bound_options.hpp"
#include "commands.hpp"
#include "core/reports/progress.hpp"
#include "core/reports/summary.hpp"
#include "device/variants/table.hpp"
#include "lockstep/error.hpp"
#include "registry.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;
using variants::Tuned;

struct TuneOptions {
  std::vector<std::string> computations;
  std::string out;
  double minutes = 5;
};

void describe(Schema<TuneOptions>& s) {
  using O = TuneOptions;
  s.of("cli::TuneOptions");
  s.option("computation", &O::computations,
           "computations or prefixes of them, such as pde or primitives.fft; all if none is given")
      .flag("COMPUTATION")
      .positional();
  s.option("out", &O::out, "the table")
      .file(Option::Use::output_file, {".json"})
      .shown("FILE")
      .or_else("$LOCKSTEP_VARIANTS, else variants.json in the folder of settings");
  s.option("minutes", &O::minutes, "approximate duration of the measurement")
      .at_least(0.01)
      .at_most(600)
      .shown("M");
}

ordered_json to_json(const Tuned& tuned) {
  ordered_json points = ordered_json::array();
  for (const variants::Point& point : tuned.points) {
    const variants::Computation& computation = *tuned.subject->computation;
    ordered_json timings = ordered_json::object();
    for (const variants::Timing& t : point.timings) {
      const std::string name(computation.variant(t.variant));
      if (t.refusal.empty())
        timings[name] = {{"ms", t.seconds * 1e3},
                         {"scratch_bytes", t.scratch < 0 ? ordered_json() : ordered_json(t.scratch)}};
      else
        timings[name] = {{"refused", t.refusal}};
    }
    points.push_back({{"size", point.size},
                      {"position", point.position},
                      {"variants", timings},
                      {"before", computation.variant(point.before)},
                      {"after", computation.variant(point.after)}});
  }
  ordered_json document = {{"computation", tuned.subject->name()},
                           {"of", tuned.subject->of},
                           {"axis", tuned.row.axis},
                           {"points", points},
                           {"skipped", tuned.skipped}};
  if (!tuned.row.values.empty()) document["values"] = tuned.row.values;
  return document;
}

std::string to_text(const Tuned& tuned) {
  const variants::Subject& subject = *tuned.subject;
  std::string text = fmt::format("{}{}{}\n", subject.name(), subject.of.empty() ? "" : ": ", subject.of);
  if (!tuned.skipped.empty()) text += fmt::format("  not stored: {}\n", tuned.skipped);
  if (!tuned.row.values.empty()) text += fmt::format("  {:.4g}\n", fmt::join(tuned.row.values, ", "));
  std::vector<std::string> refused;
  for (const variants::Point& point : tuned.points) {
    const variants::Computation& computation = *subject.computation;
    text += fmt::format("  {:>10.6g} {:<12}", point.position, tuned.row.axis);
    for (const variants::Timing& t : point.timings) {
      const std::string_view name = computation.variant(t.variant);
      if (t.refusal.empty())
        text += fmt::format(" {} {:.4f} ms{}", name, t.seconds * 1e3,
                            t.scratch > 0 ? " + " + human_bytes(uint64_t(t.scratch)) : "");
      else if (std::string line = fmt::format("  {}: {}\n", name, t.refusal);
               std::ranges::find(refused, line) == refused.end())
        refused.push_back(std::move(line));
    }
    text += fmt::format("  -> {}", computation.variant(point.after));
    if (point.after != point.before) text += fmt::format(", was {}", computation.variant(point.before));
    text += '\n';
  }
  return text + fmt::format("{}", fmt::join(refused, ""));
}

int run(const CommonOptions& common, const TuneOptions& options) {
  using Clock = std::chrono::steady_clock;
  const std::vector<variants::Subject> subjects = select_variants(options.computations);
  const std::filesystem::path file =
      options.out.empty() ? variants::user_file() : std::filesystem::path(options.out);
  if (file.empty()) throw InputError("no home folder for the table", "tune", "--out FILE");
  variants::Table table = variants::read_table(file);
  Session session(common);
  const Device device = session.open_device();
  Progress progress("tune", int64_t(subjects.size()), "computations");
  const Clock::time_point start = Clock::now();
  ordered_json all = ordered_json::array();
  std::string text;
  int64_t changed = 0, stored = 0;
  for (size_t k = 0; k < subjects.size(); ++k) {
    const double left = 60 * options.minutes - std::chrono::duration<double>(Clock::now() - start).count();
    Tuned tuned = variants::tune(device, subjects[k], left / double(subjects.size() - k));
    progress.add();
    all.push_back(to_json(tuned));
    text += to_text(tuned);
    if (tuned.row.steps.empty() && tuned.row.values.empty()) continue;
    for (const variants::Point& point : tuned.points) changed += point.after != point.before;
    ++stored;
    table.put(std::move(tuned.row));
  }
  if (stored > 0) variants::write_table(file, table);
  text +=
      stored > 0
          ? fmt::format("{} rows for {} in {}, which change {} choices", stored, model_of(device.info()),
                        file.string(), changed)
          : fmt::format("nothing to store: no computation was measured in {:g} minutes, or none has a choice",
                        options.minutes);
  session.finish({{"device", device.info().name},
                  {"model", model_of(device.info())},
                  {"file", file.string()},
                  {"stored", stored},
                  {"changed", changed},
                  {"computations", all}},
                 text);
  return 0;
}

}  // namespace

void add_tune(CommandList& commands, CLI::App& root) {
  Command& command =
      add_command(commands, root, "tune", "measure which variant of each computation is fastest on a device");
  const TuneOptions& options = add_options<TuneOptions>(command);
  add_common(command, "lockstep tune primitives --device cuda --minutes 2");
  command.run = [&command, &options] { return run(command.common, options); };
}

}  // namespace lockstep::cli
