#include "io/series/logs/training_log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "io/series/logs/log_builder.hpp"
#include "io/text/file.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr size_t kMostColumns = 10'000;
constexpr std::string_view kStepNames[] = {"step", "global_step", "iteration", "iter", "epoch"};
constexpr std::string_view kLossNames[] = {"loss",       "train_loss",    "train/loss", "train.loss",
                                           "Loss/train", "training_loss", "train-loss", "val_loss"};

std::vector<std::string> names_of(const TrainingLog& log, bool usable) {
  std::vector<std::string> names;
  for (const LogColumn& c : log.columns) {
    if (usable && (c.flaw || c.values.empty())) continue;
    if (names.size() == 20) {
      names.emplace_back("…");
      break;
    }
    names.push_back(shown(c.name));
  }
  return names;
}

}  // namespace

std::string_view step_name_of(const std::vector<std::string>& names) {
  for (const std::string_view known : kStepNames)
    if (std::find(names.begin(), names.end(), known) != names.end()) return known;
  return {};
}

LogColumn& LogBuilder::column_of(std::string_view name) {
  if (const auto found = numbers_.find(name); found != numbers_.end()) return log_.columns[found->second];
  if (log_.columns.size() == kMostColumns)
    throw InputError("too many columns", log_.where, fmt::format("at most {}", kMostColumns));
  numbers_.emplace(std::string(name), log_.columns.size());
  log_.columns.push_back(
      {.name = std::string(name), .steps = {}, .values = {}, .flaw = {}, .diverged = false});
  return log_.columns.back();
}

void LogBuilder::add(std::string_view name, double step, double value, int64_t place) {
  LogColumn& c = column_of(name);
  if (c.flaw) return;
  if (!std::isfinite(value)) {
    c.diverged = true;
    return add_flaw(name, fmt::format("column '{}' is '{}'", shown(name), value), "a finite number", place);
  }
  if (!c.steps.empty() && !(step > c.steps.back()))
    return add_flaw(
        name,
        step == c.steps.back()
            ? fmt::format("step {:.12g} of '{}' is repeated", step, shown(name))
            : fmt::format("step {:.12g} of '{}' after step {:.12g}", step, shown(name), c.steps.back()),
        "increasing steps", place);
  bytes_ += 2 * sizeof(double);
  log_.claim.reach(bytes_, "its numbers", log_.where);
  c.steps.push_back(step);
  c.values.push_back(value);
}

void LogBuilder::add_flaw(std::string_view name, std::string what, std::string expected, int64_t place) {
  LogColumn& c = column_of(name);
  if (!c.flaw) c.flaw = LogColumn::Flaw{std::move(what), place_name(place), std::move(expected)};
}

TrainingLog LogBuilder::finish(std::string step_name) {
  log_.step_name = std::move(step_name);
  if (std::all_of(log_.columns.begin(), log_.columns.end(),
                  [](const LogColumn& c) { return c.values.empty() && !c.flaw; }))
    throw InputError("no values", log_.where, "steps with numbers such as a loss");
  return std::move(log_);
}

const LogColumn* TrainingLog::find(std::string_view name) const {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const LogColumn& c) { return c.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

const LogColumn& TrainingLog::column(std::string_view name) const {
  const LogColumn* found = find(name);
  if (!found)
    throw InputError(fmt::format("no column '{}'", shown(name)), where,
                     fmt::format("one of {}", fmt::join(names_of(*this, false), ", ")));
  if (found->flaw) throw InputError(found->flaw->what, found->flaw->where, found->flaw->expected);
  if (found->values.empty())
    throw InputError(fmt::format("column '{}' has no values", shown(name)), where, "a column of numbers");
  return *found;
}

const LogColumn& TrainingLog::loss() const {
  for (const std::string_view name : kLossNames)
    if (find(name)) return column(name);
  const std::vector<std::string> usable = names_of(*this, true);
  if (usable.size() == 1)
    return *std::find_if(columns.begin(), columns.end(),
                         [](const LogColumn& c) { return !c.flaw && !c.values.empty(); });
  if (usable.empty()) return column(columns.front().name);  // its flaw
  throw InputError("no column 'loss'", where,
                   fmt::format("a choice by --column of {}", fmt::join(usable, ", ")));
}

namespace {

constexpr const char* kTrainingLog = "a log of a training run (.csv, .jsonl or tfevents)";

using Parse = TrainingLog (*)(std::string_view text, std::string_view where);
Parse parser_of(const std::filesystem::path& path) {
  const std::string file = path.filename().string(), extension = path.extension().string();
  if (file.find("tfevents") != std::string::npos)
    return [](std::string_view text, std::string_view where) {
      return parse_tfevents_log(std::as_bytes(std::span(text)), where);
    };
  if (extension == ".csv" || extension == ".tsv" || extension == ".txt") return &parse_csv_log;
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") return &parse_json_lines_log;
  throw InputError(fmt::format("a file named '{}'", shown(file)), path.string(), kTrainingLog);
}

}  // namespace

TrainingLog parse_training_log(std::string_view content, const std::filesystem::path& path) {
  const std::string where = path.string();
  return within_memory(where, [&] { return parser_of(path)(content, where); });
}
TrainingLog read_training_log(const std::filesystem::path& path) {
  const std::string where = path.string();
  return within_memory(where, [&] {
    const Parse parse = parser_of(path);
    return parse(read_text_file(path, kTrainingLog), where);
  });
}

}  // namespace lockstep::io
