// Forecasts of training runs: curves, rollouts, states as features, training, and what decides on jumps.
#include "arrays.hpp"
#include "documents.hpp"
#include "forecast/predict/jump/fit.hpp"
#include "forecast/predict/policy/bandit.hpp"
#include "forecast/predict/policy/corrector.hpp"
#include "forecast/predict/policy/monitor.hpp"
#include "forecast/rollout/weights/named_arrays.hpp"
#include "io/series/logs/training_log.hpp"
#include "lockstep/forecast/documents.hpp"
#include "lockstep/forecast/run.hpp"
#include "option_values.hpp"

namespace lockstep::python {
namespace {

using namespace lockstep::forecast;

using Numbers = std::vector<double>;

// ── curves and logs ──

nb::object curve(const Numbers& steps, const Numbers& losses, const std::string& title,
                 const nb::dict& arguments) {
  return from_document(with_options<CurveRunOptions>(arguments, "lockstep.forecast.curve",
                                                     [&](const CurveRunOptions& o) {
                                                       const CurveForecast found =
                                                           forecast_curve(steps, losses, o.curve, title);
                                                       if (!o.out.empty())
                                                         draw_forecast(o.out, steps, losses, found, title);
                                                       return document_of(found);
                                                     },
                                                     {}, {"log"}));
}

/// {column: (steps, values)}; columns with a flaw are left out.
nb::dict read_log(const std::string& file) {
  io::TrainingLog log = freely([&] { return io::read_training_log(file); });
  nb::dict columns;
  for (io::LogColumn& column : log.columns) {
    if (column.flaw) continue;
    const size_t rows = column.values.size();
    columns[nb::str(column.name.c_str())] =
        nb::make_tuple(to_numpy(std::move(column.steps), {rows}), to_numpy(std::move(column.values), {rows}));
  }
  return columns;
}

nb::object sweep(const Numbers& steps, const std::vector<Numbers>& losses, const nb::dict& arguments) {
  return from_document(with_options<SweepOptions>(
      arguments, "lockstep.forecast.sweep",
      [&](const SweepOptions& o) { return document_of(stop_sweep({steps, losses}, o)); }));
}

// ── states ──

SignalTable table_of(const nb::dict& columns, const std::string& loss) {
  std::vector<SignalSeries> series;
  for (const auto& [name, pair] : columns) {
    auto [steps, values] = nb::cast<std::pair<Numbers, Numbers>>(pair);
    series.push_back({nb::cast<std::string>(name), std::move(steps), std::move(values)});
  }
  return signals_of(series, loss, "lockstep.forecast.encode");
}
/// Options of states of arrays: those of the command that concern no file.
struct EncodeCall : EncodeRunOptions {};
void describe(Schema<EncodeCall>& s) {
  s.of("forecast::EncodeRunOptions");
  s.include_base<EncodeRunOptions>({"log", "column", "out", "normalised"});
}

nb::dict encode(OpenDevice& open, const nb::dict& columns, const std::string& loss,
                const nb::dict& arguments) {
  const SignalTable table = table_of(columns, loss);
  const EncodedStates states = with_options<EncodeCall>(
      arguments, "lockstep.forecast.encode",
      [&](const EncodeCall& o) { return encode_states(*open.context, table, o.history, o.precision); });
  return dict_of("step", to_numpy(table.steps, {table.steps.size()}), "features", to_numpy(states.features),
                 "normalised", to_numpy(states.normalised), "filled", table.filled);
}

void bind_encoder(nb::module_& module) {
  module.def("forecast_encode", &encode);
  module.def("forecast_signals", [] {
    nb::list all;
    for (const SignalInfo& s : signal_table())
      all.append(nb::make_tuple(std::string(s.name), std::string(s.filling)));
    return all;
  });
  module.def("forecast_features", [] {
    nb::list all;
    for (const FeatureInfo& f : feature_table())
      all.append(nb::make_tuple(std::string(f.name), std::string(f.meaning)));
    return all;
  });
  nb::class_<StateEncoder>(module, "StateEncoder")
      .def("__init__",
           [](StateEncoder* self, const OpenDevice& open, int64_t history, const std::string& precision) {
             new (self) StateEncoder(open.device(), history, storage_of(precision));
           })
      .def("push", [](StateEncoder& e, const Numbers& row) { e.push(row); })
      .def("launch", &StateEncoder::launch, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("features", &StateEncoder::features)
      .def_prop_ro("normalised", &StateEncoder::normalised)
      .def_prop_ro("rows", &StateEncoder::rows);
}

// ── rollouts ──

/// `arrays`: those of a model, or empty where the arguments tell its file or random weights.
nb::object rollout(OpenDevice& open, const nb::dict& arrays, const nb::dict& arguments) {
  constexpr auto kCall = "lockstep.forecast.rollout";
  RolloutRunOptions options;
  std::map<std::string, Array> given;
  for (const auto& [key, value] : arrays) {
    const std::string name = nb::cast<std::string>(key);
    given[name] = array_of(nb::borrow(value), "lockstep.forecast.rollout, array " + name);
  }
  if (!given.empty()) options.given = model_of(given, kCall);
  return from_document(with_options<RolloutRunOptions>(
      arguments, kCall,
      [&](const RolloutRunOptions& o) {
        if (o.given) check(*o.given, o.rollout.form, o.rollout.heads, kCall);
        return document_of(run_rollout(*open.context, o));
      },
      {}, {}, options));
}

// ── training ──

nb::object train(OpenDevice& open, const nb::dict& arguments) {
  constexpr auto kCall = "lockstep.forecast.train";
  TrainRunOptions options;
  options.train.on_progress = progress_of(arguments);
  return from_document(with_options<TrainRunOptions>(
      arguments, kCall, [&](const TrainRunOptions& o) { return document_of(run_train(*open.context, o)); },
      {"progress"}, {"out"}, options));
}

// ── what decides on jumps, for trainers of other frameworks ──

void bind_control_of_jumps(nb::module_& module) {
  module.def("fit_path", [](const Numbers& gram, int count, int order, double ridge, double max_growth) {
    PathFit fit = fit_path(gram, count, order, ridge, max_growth);
    return std::pair(std::move(fit.coefficients), fit.explained);
  });
  module.def("extrapolate", [](const Numbers& coefficients, int count, double intervals) {
    return extrapolate({coefficients, 0}, count, intervals);
  });
  nb::class_<LinearBandit>(module, "Bandit")
      .def(nb::init<int, int, double>())
      .def("choose", [](const LinearBandit& b, const Numbers& x) { return b.choose(x); })
      .def("learn",
           [](LinearBandit& b, int arm, const Numbers& x, double reward) { b.learn(arm, x, reward); })
      .def("state", [](const LinearBandit& b) { return to_numpy(b.state()); })
      .def("restore",
           [](LinearBandit& b, const nb::object& state) { b.restore(array_of(state, "a bandit's state")); });
  nb::class_<DivergenceMonitor>(module, "Monitor")
      .def(nb::init<>())
      .def("observe_loss", [](DivergenceMonitor& m, double loss) { return int(m.observe_loss(loss)); })
      .def("observe_prediction",
           [](DivergenceMonitor& m, double predicted, double measured, double before) {
             return int(m.observe_prediction(predicted, measured, before));
           })
      .def("begin_anew", &DivergenceMonitor::begin_anew)
      .def_prop_ro("calm", &DivergenceMonitor::calm)
      .def("state", [](const DivergenceMonitor& m) { return to_numpy(m.state()); })
      .def("restore", [](DivergenceMonitor& m, const nb::object& state) {
        m.restore(array_of(state, "a monitor's state"));
      });
  nb::class_<ResidualCorrector>(module, "Corrector")
      .def(nb::init<int, double>())
      .def("correction",
           [](const ResidualCorrector& c, uint64_t step, const Numbers& x) { return c.correction(step, x); })
      .def("learn", [](ResidualCorrector& c, uint64_t step, const Numbers& x,
                       double residual) { c.learn(step, x, residual); })
      .def("state", [](const ResidualCorrector& c) { return std::pair(c.entries(), c.model()); })
      .def("restore", [](ResidualCorrector& c, const std::pair<Numbers, Numbers>& state) {
        c.restore(state.first, state.second);
      });
}

}  // namespace

std::vector<NamedSchema> forecast_array_schemas() {
  return {{"forecast.compute_encode", &schema_of<EncodeCall>()},
          {"forecast.compute_sweep", &schema_of<SweepOptions>()}};
}

void bind_forecast(nb::module_& module) {
  module.def("forecast_curve", &curve);
  module.def("forecast_read_log", &read_log);
  module.def("forecast_sweep", &sweep);
  module.def("forecast_rollout", &rollout);
  module.def("forecast_train", &train);
  bind_encoder(module);
  bind_control_of_jumps(module);
}

}  // namespace lockstep::python
