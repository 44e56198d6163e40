#include "device/variants/variants.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>

#include "core/platform/threads.hpp"
#include "core/reports/log.hpp"
#include "device/variants/table.hpp"
#include "lockstep/error.hpp"

namespace lockstep::variants {

namespace {

int place_of(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? -1 : int(found - names.begin());
}

/// How closely a row's device is this one: by model, by kind, at all; 0: it is another.
int closeness(std::string_view row, const DeviceInfo& device) {
  if (row == lockstep::name(device.kind)) return 2;
  if (row == "any") return 1;
  return device.description.starts_with(row) ? 3 : 0;  // with its model: every small product asks
}

/// The computations that there are.
struct Registry {
  Mutex mutex;
  std::vector<const Computation*> all;
};
Registry& registry() {
  static auto* instance = new Registry;  // outlives every computation
  return *instance;
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
  taken_ = std::make_unique<std::atomic<uint32_t>[]>(rows_.size() + 1);
  std::lock_guard lock(registry().mutex);
  registry().all.push_back(this);
}

Computation::~Computation() {
  std::lock_guard lock(registry().mutex);
  std::erase(registry().all, this);
}

std::vector<Chosen> chosen() {
  std::vector<Chosen> list;
  std::lock_guard lock(registry().mutex);
  for (const Computation* c : registry().all)
    for (size_t k = 0; k <= c->rows_.size(); ++k)
      for (int v = 0; v < int(c->variants().size()); ++v)
        if (c->taken_[k].load(std::memory_order_relaxed) >> v & 1)
          list.push_back(
              {std::string(c->name()), std::string(c->variant(v)),
               k == 0 ? "the call"
                      : fmt::format("the {} table for {}", c->rows_[k - 1].user ? "user's" : "shipped",
                                    c->rows_[k - 1].device)});
  std::ranges::sort(list);
  return list;
}

void forget_chosen() {
  std::lock_guard lock(registry().mutex);
  for (const Computation* c : registry().all)
    for (size_t k = 0; k <= c->rows_.size(); ++k) c->taken_[k].store(0, std::memory_order_relaxed);
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
    if (row.computation != options_.name || row.steps.empty()) continue;
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

const Computation::Row& Computation::closest(std::span<const Row> rows, const DeviceInfo& device,
                                             Numerics numerics, const Problem& problem) const {
  const Row* best = nullptr;
  int most = 0;
  for (const Row& row : rows) {
    const int close = closeness(row.device, device);
    if (close == 0 || (!row.of.empty() && row.of != problem.of)) continue;
    if (row.user && options_.exact == Agreement::bound && numerics == Numerics::exact) continue;
    if (!row.numerics.empty() && (row.numerics == "fast") != (numerics == Numerics::fast)) continue;
    const int score = 16 * row.user + 4 * close + 2 * !row.of.empty() + !row.numerics.empty();
    if (score > most) most = score, best = &row;
  }
  if (!best)
    throw InternalError(fmt::format("no row for '{}' on {}", problem.of, device.name), options_.name,
                        "one in crossovers.inc");
  return *best;
}

std::span<const int> Computation::ranking(const Row& row, const Problem& problem) {
  double value = 0;
  for (const Axis& axis : problem.axes)
    if (axis.name == row.axis) value = axis.value;
  const Step* step = &row.steps.front();
  for (const Step& next : row.steps)
    if (value >= next.from) step = &next;
  return step->ranking;
}

std::span<const int> Computation::ranking(std::span<const Row> rows, const DeviceInfo& device,
                                          Numerics numerics, const Problem& problem) const {
  return ranking(closest(rows, device, numerics, problem), problem);
}

std::span<const int> Computation::ranking(const DeviceInfo& device, Numerics numerics,
                                          const Problem& problem) const {
  return ranking(rows_, device, numerics, problem);
}

std::vector<double> measured(std::string_view name, const DeviceInfo& device, size_t count) {
  const TableRow* best = nullptr;
  int most = 0;
  for (const Table* table : {&Table::shipped(), &Table::user()})
    for (const TableRow& row : table->rows()) {
      const int close = closeness(row.device, device), score = close + 4 * (table == &Table::user());
      if (row.computation != name || row.values.size() != count || close == 0 || score <= most) continue;
      most = score, best = &row;
    }
  if (!best)
    throw InternalError(fmt::format("no {} numbers on {}", count, device.name), name,
                        "a row in crossovers.inc");
  return best->values;
}

void refuse(const Computation& computation, std::string_view variant, const std::string& reason) {
  throw UnsupportedError(fmt::format("{} by {}: {}", computation.name(), variant, reason), computation.name(),
                         "another variant, or none, which takes the fastest that applies");
}

}  // namespace lockstep::variants
