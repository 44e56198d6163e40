// Names and ranges of the trainer's options.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "forecast/predict/trainer_impl.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
std::span<const Choice<Control>> choices(Control) {
  static constexpr auto kAll = std::to_array<Choice<Control>>({{"none", Control::none},
                                                               {"zero", Control::zero},
                                                               {"random", Control::random},
                                                               {"lr", Control::rate},
                                                               {"ema", Control::ema},
                                                               {"lawa", Control::lawa}});
  return kAll;
}
std::span<const Choice<Moments>> choices(Moments) {
  static constexpr auto kAll = std::to_array<Choice<Moments>>(
      {{"keep", Moments::keep}, {"decay", Moments::decay}, {"reset", Moments::reset}});
  return kAll;
}
std::span<const Choice<Directions>> choices(Directions) {
  static constexpr auto kAll =
      std::to_array<Choice<Directions>>({{"ridge", Directions::ridge}, {"mlp", Directions::mlp}});
  return kAll;
}
std::string_view name(Control control) { return name_among(choices(control), control); }
std::string_view name(Moments moments) { return name_among(choices(moments), moments); }
std::string_view name(Directions directions) { return name_among(choices(directions), directions); }
std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::warm_up: return "warm-up";
    case Phase::full: return "full";
    case Phase::predict: return "predict";
    default: return "correct";
  }
}

void describe(Schema<PredictOptions>& s) {
  constexpr double kMost = 1 << 20;
  s.of("forecast::PredictOptions");
  s.option("control", &PredictOptions::control, "control that replaces predicted jumps");
  s.option("moments", &PredictOptions::moments, "moments of the optimiser after a jump");
  s.option("horizons", &PredictOptions::horizons, "lengths of jumps, in steps").above(0).shown("K,K");
  s.option("spacing", &PredictOptions::spacing, "steps between snapshots")
      .at_least(1)
      .at_most(kMost)
      .shown("P");
  s.option("warm_up", &PredictOptions::warm_up, "steps before the first snapshot")
      .at_least(0)
      .at_most(0x1p40);
  s.option("correct", &PredictOptions::correct, "steps before a jump is assessed").at_least(1).at_most(kMost);
  s.option("directions", &PredictOptions::directions, "what predicts the next differences");
  s.option("network_units", &PredictOptions::network_units, "hidden units of the network of {directions} mlp")
      .at_least(1)
      .at_most(64);
  s.option("network_samples", &PredictOptions::network_samples, "parameters that the network is fitted to")
      .at_least(8)
      .at_most(kMost);
  s.option("rate_factor", &PredictOptions::rate_factor, "factor of the learning rate with {control} lr")
      .above(0)
      .shown("F");
  s.option("ema_decay", &PredictOptions::ema_decay, "decay of {control} ema").at_least(0).below(1).shown("D");
  s.option("snapshots", &PredictOptions::snapshots, "snapshots that a jump is fitted to")
      .at_least(2)
      .at_most(8)
      .in_shell(false);
  s.option("order", &PredictOptions::order, "differences that the next one is regressed on")
      .at_least(1)
      .at_most(8)
      .in_shell(false);
  s.option("ridge", &PredictOptions::ridge, "share of the mean diagonal that is added to it")
      .at_least(0)
      .in_shell(false);
  s.option("max_growth", &PredictOptions::max_growth,
           "largest growth of a mode within a spacing; faster ones are damped")
      .above(0)
      .in_shell(false);
  s.option("exploration", &PredictOptions::exploration, "alpha of LinUCB").at_least(0).in_shell(false);
  s.option("growth_of_doubt", &PredictOptions::growth_of_doubt, "how fast old failures fade")
      .at_least(0)
      .in_shell(false);
  s.option("moment_decay", &PredictOptions::moment_decay, "factor of {moments} decay")
      .at_least(0)
      .at_most(1)
      .in_shell(false);
  s.option("norm_every", &PredictOptions::norm_every, "steps between gradient norms; 0: never")
      .at_least(0)
      .in_shell(false);
  s.option("max_rollbacks", &PredictOptions::max_rollbacks,
           "rollbacks allowed without a calm period between them")
      .at_least(0)
      .in_shell(false);
  s.option("control_seed", &PredictOptions::seed, "seed of {control} random").member("seed").in_shell(false);
}

void check_options(const PredictOptions& o) {
  const OptionList& list = schema_of<PredictOptions>();
  list.check(&o);
  const double most = 1000 * double(o.spacing);
  if (o.horizons.empty() || *std::max_element(o.horizons.begin(), o.horizons.end()) > most)
    throw list.error({OptionError::Kind::invalid, "horizons", fmt::format("'{}'", list.text(&o, "horizons")),
                      fmt::format("one or more, none above {} (1000 times {{spacing}})", most), ""});
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
