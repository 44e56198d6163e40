// Measured crossovers of a device.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/numbers/statistics.hpp"
#include "lockstep/error.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep::variants {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNoise = 0.97;
constexpr double kHopeless = 8;  // times the fastest: measured once
constexpr int kMostRounds = 15, kFewestRounds = 3, kFirstSamples = 3;
constexpr double kLong = 0.1;     // seconds of a sample that is not repeated at first
constexpr double kSample = 2e-3;  // seconds that a sample takes at least

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Runs repeated to a sample, and its samples.
struct Contender {
  int variant;
  CaseRun run;
  int64_t repeats = 1;
  std::vector<double> samples;

  double sample(const Device& device) const {
    const double seconds = device.seconds([&] {
      for (int64_t k = 0; k < repeats; ++k) run.run();
    });
    return seconds / double(repeats);
  }
};

/// Binds and warms what applies; the others have their reasons in `timings`.
std::vector<Contender> contenders(const Device& device, const Subject& subject, Point& point) {
  std::vector<Contender> all;
  for (int v = 0; v < int(subject.computation->variants().size()); ++v) {
    point.timings.push_back({v, 0, -1, {}});
    try {
      Contender c{v, subject.bind(device, point.size, subject.computation->variant(v)), 1, {}};
      c.run.run();
      device.synchronize();
      const double once = c.sample(device);
      c.repeats = std::clamp<int64_t>(int64_t(kSample / std::max(once, 1e-9)), 1, 1000);
      c.samples.push_back(once);
      for (int k = 1; k < kFirstSamples && once < kLong; ++k) c.samples.push_back(c.sample(device));
      all.push_back(std::move(c));
      if (subject.memory)
        point.timings.back().scratch =
            subject.memory(device, point.size, subject.computation->variant(v)).scratch;
    } catch (const UnsupportedError& e) {
      point.timings.back().refusal = e.problem();
    } catch (const DeviceError& e) { point.timings.back().refusal = e.what(); }
  }
  return all;
}

void measure(const Device& device, const Subject& subject, Point& point, double seconds) {
  const Clock::time_point start = Clock::now();
  std::vector<Contender> all = contenders(device, subject, point);
  const auto first = [](const Contender& c) { return *std::ranges::min_element(c.samples); };
  double least = INFINITY;
  for (const Contender& c : all) least = std::min(least, first(c));
  std::vector<Contender*> close;
  for (Contender& c : all)
    if (first(c) < kHopeless * least) close.push_back(&c);
  for (Contender* c : close) c->samples.clear();
  for (int round = 0; round < kMostRounds; ++round) {
    if (round >= kFewestRounds && seconds_since(start) > seconds) break;
    for (size_t k = 0; k < close.size(); ++k) {  // in alternating order
      Contender& c = *close[round % 2 ? close.size() - 1 - k : k];
      c.samples.push_back(c.sample(device));
    }
  }
  for (const Contender& c : all) point.timings[size_t(c.variant)].seconds = median(c.samples);
}

int first_that_applies(const std::vector<int>& order, const std::vector<Timing>& timings) {
  for (const int v : order)
    if (timings[size_t(v)].refusal.empty()) return v;
  return 0;
}

}  // namespace

std::vector<int> rank(std::vector<int> order, const std::vector<Timing>& timings) {
  const auto known = [&](int v) { return timings[size_t(v)].seconds > 0; };
  std::vector<int> ranked;
  for (const int v : order) {
    if (!known(v)) continue;
    auto at = ranked.end();
    while (at != ranked.begin() && timings[size_t(v)].seconds < kNoise * timings[size_t(*(at - 1))].seconds)
      --at;
    ranked.insert(at, v);
  }
  for (const int v : order)
    if (!known(v)) ranked.push_back(v);
  return ranked;
}

Tuned tune(const Device& device, const Subject& subject, double seconds) {
  Tuned tuned{&subject, {}, {}, {}};
  const Range& range = subject.range(device);
  if (subject.measure) {
    tuned.row.computation = subject.numbers;
    tuned.row.device = model_of(device.info());
    tuned.row.values = subject.measure(device);
    return tuned;
  }
  if (range.sizes.empty()) return tuned.skipped = range.none, tuned;
  const Computation& computation = *subject.computation;
  const bool exact = device.numerics() == Numerics::exact;
  if (exact && (subject.fast_only || computation.options().exact == Agreement::bound)) {
    tuned.skipped = "its variants differ in rounding: a table chooses in fast numerics only";
    return tuned;
  }
  TableRow row{
      std::string(computation.name()), std::string(model_of(device.info())), subject.of, range.axis, {}, {}};
  if (computation.options().by_numerics || computation.options().exact == Agreement::bound)
    row.numerics = exact ? "exact" : "fast";
  const Clock::time_point start = Clock::now();
  std::vector<std::vector<int>> shipped, orders;  // by point
  for (const int64_t size : range.sizes) {
    const double left = seconds - seconds_since(start);
    if (left <= 0) {
      tuned.skipped = "the time was up before all sizes were measured";
      return tuned;
    }
    Point point{size, subject.position(device, size), {}, 0, 0};
    measure(device, subject, point, left / double(range.sizes.size() - tuned.points.size()));
    const Axis axis{range.axis, point.position};
    const std::span<const int> now =
        computation.ranking(device.info(), device.numerics(), {subject.of, {&axis, 1}});
    shipped.emplace_back(now.begin(), now.end());
    orders.push_back(rank(shipped.back(), point.timings));
    tuned.points.push_back(std::move(point));
  }
  // An order of one size alone is noise.
  for (size_t k = 1; k + 1 < orders.size(); ++k)
    if (orders[k - 1] == orders[k + 1]) orders[k] = orders[k - 1];
  for (size_t k = 0; k < orders.size(); ++k) {
    Point& point = tuned.points[k];
    point.before = first_that_applies(shipped[k], point.timings);
    point.after = first_that_applies(orders[k], point.timings);
    if (k > 0 && orders[k] == orders[k - 1]) continue;
    TableStep step{k == 0 ? 0 : point.position, {}};
    for (const int v : orders[k]) step.ranking.emplace_back(computation.variant(v));
    row.steps.push_back(std::move(step));
  }
  tuned.row = std::move(row);
  return tuned;
}

}  // namespace lockstep::variants
