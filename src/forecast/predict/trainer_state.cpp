// All that a trainer is, as arrays, and back.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "forecast/predict/trainer_impl.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

const Array& state_array(const TrainerState& state, const std::string& wanted) {
  for (const auto& [name, array] : state)
    if (name == wanted) return array;
  throw InputError(fmt::format("no {}", wanted), "forecast: checkpoint", "the state of a predictive trainer");
}

std::span<const double> state_numbers(const TrainerState& state, const std::string& name, size_t count) {
  const Array& array = state_array(state, name);
  if (array.storage() != Storage::f64 || (count > 0 && size_t(array.elements()) != count))
    throw InputError(fmt::format("{} of {} {}", name, array.elements(), lockstep::name(array.storage())),
                     "forecast: checkpoint", fmt::format("{} f64", count));
  return array.as<double>();
}

Array buffer_array(const Device& device, const Buffer& buffer) {
  const Array array = device.download(buffer);
  return array.storage() == Storage::bf16 ? array.to(Storage::f32) : array;  // exact; NumPy has no bf16
}

/// A counter as it was saved. Throws InputError for what its type cannot hold.
template <class X>
X counter_of(double saved) {
  constexpr double kMost = std::is_same_v<X, bool>    ? 1
                           : std::is_same_v<X, Phase> ? double(Phase::correct)
                           : sizeof(X) < 8            ? double(std::numeric_limits<int>::max())
                                                      : 0x1p53;
  constexpr double kLeast = std::is_signed_v<X> ? -kMost : 0;
  if (!std::is_floating_point_v<X> && !(saved >= kLeast && saved <= kMost))
    throw InputError(fmt::format("a counter of {}", saved), "forecast: checkpoint",
                     fmt::format("{} to {}", kLeast, kMost));
  return X(saved);
}

void expect_below(int64_t number, int64_t end, const char* what) {
  if (number < 0 || number >= end)
    throw InputError(fmt::format("{} {}", what, number), "forecast: checkpoint",
                     fmt::format("0 to {}", end - 1));
}

void restore_buffer(const Device& device, const TrainerState& state, const std::string& name,
                    const Buffer& buffer) {
  const Array& array = state_array(state, name);
  const Storage kept = buffer.storage() == Storage::bf16 ? Storage::f32 : buffer.storage();
  if (array.elements() != buffer.elements() || array.storage() != kept)
    throw InputError(fmt::format("{} of {} {}", name, array.elements(), lockstep::name(array.storage())),
                     "forecast: checkpoint", fmt::format("{} {}", buffer.elements(), lockstep::name(kept)));
  const Array whole = (buffer.storage() == kept ? array : array.to(buffer.storage())).packed();
  device.write(buffer, whole.data(), buffer.bytes());
}

}  // namespace

TrainerState PredictiveTrainer::state() const {
  Impl& t = *impl_;
  const std::string settings = settings_of(t.o, t.trainee.model());
  std::vector<double> counters;
  t.each_counter([&](auto& x) { counters.push_back(double(x)); });
  TrainerState state{{"settings", Array::of(std::vector<uint8_t>(settings.begin(), settings.end()))},
                     {"counters", Array::of(counters)},
                     {"features", Array::of(t.pending.features)},
                     {"parameters", buffer_array(t.device, t.trainee.model().parameters())},
                     {"numbers", Array::of(t.trainee.numbers())},
                     {"bandit", t.bandit.state()},
                     {"monitor", t.monitor.state()},
                     {"corrector", Array::of(t.corrector.entries())},
                     {"corrector_model", Array::of(t.corrector.model())},
                     {"ring", buffer_array(t.device, t.engine.ring())}};
  if (t.engine.network()) state.emplace_back("network", Array::of(t.engine.network()->state()));
  const std::vector<Buffer> moments = t.trainee.moments();
  for (size_t m = 0; m < moments.size(); ++m)
    state.emplace_back(fmt::format("moment_{}", m), buffer_array(t.device, moments[m]));
  if (t.average) state.emplace_back("average", buffer_array(t.device, t.average));
  if (t.anchor.parameters) {
    state.emplace_back("anchor_parameters", buffer_array(t.device, t.anchor.parameters));
    state.emplace_back("anchor_numbers", Array::of(t.anchor.numbers));
    for (size_t m = 0; m < moments.size(); ++m)
      state.emplace_back(fmt::format("anchor_moment_{}", m), buffer_array(t.device, t.anchor.moments[m]));
  }
  return state;
}

void PredictiveTrainer::restore(const TrainerState& state) {
  Impl& t = *impl_;
  const Array& saved = state_array(state, "settings");
  const std::string now = settings_of(t.o, t.trainee.model());
  const std::string had(reinterpret_cast<const char*>(saved.data()), size_t(saved.bytes()));
  if (had != now) {
    const auto differs =
        size_t(std::mismatch(had.begin(), had.end(), now.begin(), now.end()).first - had.begin());
    const size_t word = had.rfind(' ', differs) == std::string::npos ? 0 : had.rfind(' ', differs) + 1;
    const auto word_of = [&](const std::string& text) {
      return word < text.size() ? text.substr(word, text.find(' ', word) - word) : std::string("nothing");
    };
    throw InputError(fmt::format("a checkpoint of other settings: {}", word_of(had)), "forecast: checkpoint",
                     word_of(now))
        .with_hint("give another --checkpoint, or remove the file to start again");
  }
  size_t count = 0;
  t.each_counter([&](auto&) { ++count; });
  const auto counters = state_numbers(state, "counters", count);
  size_t at = 0;
  t.each_counter([&](auto& x) { x = counter_of<std::remove_reference_t<decltype(x)>>(counters[at++]); });
  expect_below(t.ring_newest, t.o.snapshots, "snapshot");
  expect_below(t.ring_count, t.o.snapshots + 1, "snapshots");
  expect_below(t.pending.arm, int64_t(t.o.horizons.size()) + 1, "arm");
  t.engine.restore(t.ring_newest, t.ring_count);
  const auto features = state_numbers(state, "features", kDecisionFeatures);
  t.pending.features.assign(features.begin(), features.end());
  restore_buffer(t.device, state, "parameters", t.trainee.model().parameters());
  t.trainee.restore_numbers(state_numbers(state, "numbers", t.trainee.numbers().size()));
  t.bandit.restore(state_array(state, "bandit"));
  t.monitor.restore(state_array(state, "monitor"));
  t.corrector.restore(state_numbers(state, "corrector", 0), state_numbers(state, "corrector_model", 0));
  restore_buffer(t.device, state, "ring", t.engine.ring());
  if (auto& network = t.engine.network())
    network->restore(state_numbers(state, "network", network->weights().size() + 1));
  const std::vector<Buffer> moments = t.trainee.moments();
  for (size_t m = 0; m < moments.size(); ++m)
    restore_buffer(t.device, state, fmt::format("moment_{}", m), moments[m]);
  if (t.average) restore_buffer(t.device, state, "average", t.average);
  if (t.anchor.parameters) {
    restore_buffer(t.device, state, "anchor_parameters", t.anchor.parameters);
    const auto numbers = state_numbers(state, "anchor_numbers", t.trainee.numbers().size());
    t.anchor.numbers.assign(numbers.begin(), numbers.end());
    for (size_t m = 0; m < moments.size(); ++m)
      restore_buffer(t.device, state, fmt::format("anchor_moment_{}", m), t.anchor.moments[m]);
  }
}

}  // namespace lockstep::forecast
