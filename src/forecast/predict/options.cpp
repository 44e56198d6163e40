// Names and ranges of the trainer's options.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "forecast/predict/trainer_impl.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

constexpr std::array<std::pair<Control, std::string_view>, 6> kControls{{{Control::none, "none"},
                                                                         {Control::zero, "zero"},
                                                                         {Control::random, "random"},
                                                                         {Control::rate, "lr"},
                                                                         {Control::ema, "ema"},
                                                                         {Control::lawa, "lawa"}}};
constexpr std::array<std::pair<Moments, std::string_view>, 3> kMomentRules{
    {{Moments::keep, "keep"}, {Moments::decay, "decay"}, {Moments::reset, "reset"}}};
constexpr std::array<std::pair<Directions, std::string_view>, 2> kDirections{
    {{Directions::ridge, "ridge"}, {Directions::mlp, "mlp"}}};

template <class E, size_t N>
std::string_view name_in(const std::array<std::pair<E, std::string_view>, N>& names, E wanted) {
  for (const auto& [value, text] : names)
    if (value == wanted) return text;
  return "";
}

template <class E, size_t N>
E parse_in(const std::array<std::pair<E, std::string_view>, N>& names, std::string_view wanted,
           const char* where) {
  std::string all;
  for (const auto& [value, text] : names) {
    if (text == wanted) return value;
    all += fmt::format("{}{}", all.empty() ? "" : ", ", text);
  }
  throw InputError(fmt::format("\"{}\"", wanted), where, all);
}

}  // namespace

std::string_view name(Control control) { return name_in(kControls, control); }
Control parse_control(std::string_view text) { return parse_in(kControls, text, "control"); }
std::string_view name(Moments moments) { return name_in(kMomentRules, moments); }
Moments parse_moments(std::string_view text) { return parse_in(kMomentRules, text, "moments"); }
std::string_view name(Directions directions) { return name_in(kDirections, directions); }
Directions parse_directions(std::string_view text) { return parse_in(kDirections, text, "directions"); }
std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::warm_up: return "warm-up";
    case Phase::full: return "full";
    case Phase::predict: return "predict";
    default: return "correct";
  }
}

void check_options(const PredictOptions& o) {
  const auto require = [](bool good, const char* what, double value, const char* expected) {
    if (!good) throw InputError(fmt::format("{} {}", what, value), "forecast: predictive trainer", expected);
  };
  require(o.spacing >= 1, "spacing", double(o.spacing), "1 step or more");
  require(o.warm_up >= 0, "warm-up", double(o.warm_up), "0 steps or more");
  require(o.correct >= 1, "correct", double(o.correct), "1 step or more");
  require(!o.horizons.empty(), "horizons", 0, "one or more");
  for (const double k : o.horizons)
    require(k > 0 && std::isfinite(k) && k <= 1000 * double(o.spacing), "horizon", k,
            "more than 0, to 1000 spacings");
  require(o.exploration >= 0, "exploration", o.exploration, "0 or more");
  require(o.growth_of_doubt >= 0, "growth_of_doubt", o.growth_of_doubt, "0 or more");
  require(o.moment_decay >= 0 && o.moment_decay <= 1, "moment decay", o.moment_decay, "0 to 1");
  require(o.norm_every >= 0, "norm_every", double(o.norm_every), "0 or more");
  require(o.max_rollbacks >= 0, "max_rollbacks", o.max_rollbacks, "0 or more");
  require(o.rate_factor > 0 && std::isfinite(o.rate_factor), "rate factor", o.rate_factor, "more than 0");
  require(o.ema_decay >= 0 && o.ema_decay < 1, "EMA decay", o.ema_decay, "0 to less than 1");
}

std::string settings_of(const PredictOptions& o, nn::TrainableModel& model) {
  std::string text = fmt::format(
      "control={} snapshots={} spacing={} bf16={} order={} ridge={} growth={} warm-up={} correct={} "
      "exploration={} "
      "doubt={} moments={} decay={} norm-every={} rollbacks={} rate={} ema={} seed={} horizons=",
      name(o.control), o.snapshots, o.spacing, o.bf16_snapshots, o.order, o.ridge, o.max_growth, o.warm_up,
      o.correct, o.exploration, o.growth_of_doubt, name(o.moments), o.moment_decay, o.norm_every,
      o.max_rollbacks, o.rate_factor, o.ema_decay, o.seed);
  for (const double k : o.horizons) text += fmt::format("{},", k);
  if (o.directions == Directions::mlp)
    text += fmt::format(" directions=mlp units={} samples={}", o.network_units, o.network_samples);
  text += fmt::format(" parameters={}", name(model.parameters().storage()));
  for (const nn::ParameterTensor& t : model.tensors()) {
    text += fmt::format(" {}(", t.name);
    for (const int64_t extent : t.shape) text += fmt::format("{},", extent);
    text += ")";
  }
  return text;
}

}  // namespace lockstep::forecast
