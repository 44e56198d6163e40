#include "device/variants/variants.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/reports/log.hpp"
#include "device/variants/table.hpp"
#include "lockstep/error.hpp"

namespace lockstep::variants {

namespace {

int place_of(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? -1 : int(found - names.begin());
}

/// How closely a row fits a device: by model, by kind, at all; 0: it does not.
int closeness(const Computation::Row& row, const DeviceInfo& device) {
  if (row.device == lockstep::name(device.kind)) return 2;
  if (row.device == "any") return 1;
  return device.description.starts_with(row.device) ? 3 : 0;  // with its model: every small product asks
}

}  // namespace

Computation::Computation(ComputationOptions options) : options_(std::move(options)) {
  rows_ = rows(Table::shipped(), false);
  try {
    const std::vector<Row> own = rows(Table::user(), true);
    rows_.insert(rows_.end(), own.begin(), own.end());
  } catch (const InputError& e) {
    logging::warning("{}: {}; the shipped table chooses its variants", user_file().string(), e.what());
  }
}

int Computation::number(std::string_view variant) const {
  const int at = place_of(options_.variants, variant);
  if (at < 0)
    throw InputError(fmt::format("variant '{}'", variant), options_.name,
                     fmt::format("one of {}", fmt::join(options_.variants, ", ")));
  return at;
}

std::vector<Computation::Row> Computation::rows(const Table& table, bool user) const {
  std::vector<Row> rows;
  for (const TableRow& row : table.rows()) {
    if (row.computation != options_.name) continue;
    if (!row.axis.empty() && place_of(options_.axes, row.axis) < 0)
      throw InputError(fmt::format("axis '{}'", row.axis), options_.name,
                       fmt::format("one of {}", fmt::join(options_.axes, ", ")));
    Row made{row.device, row.of, row.axis, row.numerics, user, {}};
    for (const TableStep& step : row.steps) {
      Step ranked{step.from, {}};
      for (const std::string& variant : step.ranking) ranked.ranking.push_back(number(variant));
      for (int v = 0; v < int(options_.variants.size()); ++v)
        if (std::ranges::find(ranked.ranking, v) == ranked.ranking.end()) ranked.ranking.push_back(v);
      made.steps.push_back(std::move(ranked));
    }
    rows.push_back(std::move(made));
  }
  return rows;
}

std::span<const int> Computation::ranking(std::span<const Row> rows, const DeviceInfo& device,
                                          Numerics numerics, const Problem& problem) const {
  const Row* best = nullptr;
  int most = 0;
  for (const Row& row : rows) {
    const int close = closeness(row, device);
    if (close == 0 || (!row.of.empty() && row.of != problem.of)) continue;
    if (row.user && options_.exact == Agreement::bound && numerics == Numerics::exact) continue;
    if (!row.numerics.empty() && (row.numerics == "fast") != (numerics == Numerics::fast)) continue;
    const int score = 16 * row.user + 4 * close + 2 * !row.of.empty() + !row.numerics.empty();
    if (score > most) most = score, best = &row;
  }
  if (!best)
    throw InternalError(fmt::format("no row for '{}' on {}", problem.of, device.name), options_.name,
                        "one in crossovers.inc");
  double value = 0;
  for (const Axis& axis : problem.axes)
    if (axis.name == best->axis) value = axis.value;
  const Step* step = &best->steps.front();
  for (const Step& next : best->steps)
    if (value >= next.from) step = &next;
  return step->ranking;
}

std::span<const int> Computation::ranking(const DeviceInfo& device, Numerics numerics,
                                          const Problem& problem) const {
  return ranking(rows_, device, numerics, problem);
}

void refuse(const Computation& computation, std::string_view variant, const std::string& reason) {
  throw UnsupportedError(fmt::format("{} by {}: {}", computation.name(), variant, reason), computation.name(),
                         "another variant, or none, which takes the fastest that applies");
}

}  // namespace lockstep::variants
