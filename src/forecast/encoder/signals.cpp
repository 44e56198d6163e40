// Signals out of a log's columns; what is lacking is filled by the rules of signal_table().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/forecast/encoder.hpp"

namespace lockstep::forecast {
namespace {

const SignalSeries* series_of(std::span<const SignalSeries> columns, std::string_view name) {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const SignalSeries& c) { return c.name == name; });
  return found == columns.end() || found->values.empty() ? nullptr : &*found;
}

/// Throws where a column is not a number at each of increasing steps.
void check(const SignalSeries& series, std::string_view where) {
  const auto refuse = [&](std::string what, const char* expected) {
    throw InputError(std::move(what), fmt::format("{}, column {}", where, series.name), expected);
  };
  if (series.steps.size() != series.values.size())
    refuse(fmt::format("{} steps and {} values", series.steps.size(), series.values.size()),
           "as many of both");
  for (size_t k = 0; k < series.steps.size(); ++k) {
    if (!std::isfinite(series.steps[k]) || (k > 0 && !(series.steps[k] > series.steps[k - 1])))
      refuse("steps that do not increase", "increasing steps");
    if (!std::isfinite(series.values[k]))
      refuse(fmt::format("{} at step {:.12g}", series.values[k], series.steps[k]), "finite numbers");
  }
}

/// The last value at or before each step; rows before the first one stay. Gives the first row that has a value.
size_t take(const SignalSeries& series, std::span<const double> steps, double* row, uint8_t* given) {
  const auto first = std::lower_bound(steps.begin(), steps.end(), series.steps.front());
  size_t at = 0;
  for (auto k = size_t(first - steps.begin()); k < steps.size(); ++k) {
    while (at + 1 < series.steps.size() && series.steps[at + 1] <= steps[k]) ++at;
    row[k] = series.values[at];
    given[k] = 1;
  }
  return size_t(first - steps.begin());
}

/// Rules for signals that a log lacks. The signals that a rule uses are already in the table.
class Filler {
 public:
  explicit Filler(SignalTable& table) : table_(table) {}

  void fill(Signal signal) {
    const size_t n = table_.steps.size();
    double* row = of(signal);
    const double *grad = of(Signal::grad_norm), *steps = of(Signal::step);
    double sum = 0, squares = 0;
    for (size_t k = 0; k < n; ++k) {
      sum += grad[k];
      squares += grad[k] * grad[k];
      const double mean = sum / double(k + 1), mean_square = squares / double(k + 1);
      switch (signal) {
        case Signal::step: row[k] = table_.steps[k]; break;
        case Signal::loss: throw InternalError("no loss", "state encoder", "a loss");
        case Signal::grad_norm: {
          const double* loss = of(Signal::loss);
          row[k] = k == 0 ? 0 : std::abs(loss[k] - loss[k - 1]);
          break;
        }
        case Signal::update_norm: row[k] = of(Signal::lr)[k] * grad[k]; break;
        case Signal::param_norm:
        case Signal::phase:
        case Signal::align_0: row[k] = 1; break;
        case Signal::lr: row[k] = 1e-3; break;
        case Signal::m_mean: row[k] = 0; break;
        case Signal::m_std: row[k] = mean; break;
        case Signal::v_mean: row[k] = mean_square; break;
        case Signal::v_std: row[k] = of(Signal::v_mean)[k]; break;
        case Signal::beta1_t: row[k] = std::pow(0.9, steps[k]); break;
        case Signal::beta2_t: row[k] = std::pow(0.999, steps[k]); break;
        case Signal::phase_step: row[k] = steps[k] - steps[0]; break;
        case Signal::grad_var: row[k] = std::max(mean_square - mean * mean, 0.0); break;
        case Signal::align_1:
        case Signal::align_2:
        case Signal::align_3: row[k] = of(Signal::align_0)[k]; break;
        case Signal::grad_norm_0:
        case Signal::grad_norm_1:
        case Signal::grad_norm_2:
        case Signal::grad_norm_3: row[k] = grad[k] / 2; break;
      }
    }
  }

 private:
  double* of(Signal signal) { return table_.values.data() + size_t(signal) * table_.steps.size(); }

  SignalTable& table_;
};

}  // namespace

SignalTable signals_of(std::span<const SignalSeries> columns, std::string_view loss, std::string_view where) {
  for (const SignalSeries& column : columns) check(column, where);
  const SignalSeries* losses = series_of(columns, loss);
  if (!losses) throw InputError(fmt::format("no values of '{}'", loss), where, "a column of losses");
  SignalTable table;
  table.steps = losses->steps;
  const size_t n = table.steps.size();
  table.values.resize(size_t(kSignals) * n);
  table.given.resize(size_t(kSignals) * n);
  Filler filler(table);
  // The learning rate comes first: the update's norm is filled from it.
  std::vector<int> order;
  for (int s = 0; s < kSignals; ++s)
    if (s != int(Signal::lr)) order.push_back(s);
  order.insert(order.begin(), int(Signal::lr));
  for (const int s : order) {
    const SignalInfo& info = signal_table()[size_t(s)];
    const SignalSeries* series = s == int(Signal::loss)   ? losses
                                 : s == int(Signal::step) ? nullptr
                                                          : series_of(columns, info.name);
    // A value that is logged later is not known before: until then the signal is filled as if the log lacked it.
    const bool early = series && series->steps.front() <= table.steps.front();
    if (!early) filler.fill(Signal(s));
    uint8_t* given = table.given.data() + size_t(s) * n;
    size_t first = n;
    if (series) first = take(*series, table.steps, table.values.data() + size_t(s) * n, given);
    if (s == int(Signal::step)) std::fill(given, given + n, uint8_t(1));
    if (early || s == int(Signal::step)) continue;
    const std::string until = first < n ? fmt::format(", before step {:.12g}", table.steps[first]) : "";
    table.filled.push_back(fmt::format("{}: {}{}", info.name, info.filling, until));
  }
  return table;
}

}  // namespace lockstep::forecast
