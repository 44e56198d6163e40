// Forecasts of training runs: curves, rollouts, states as features, training, and what decides on jumps.
#include "forecast/predict/jump/fit.hpp"
#include "forecast/predict/policy/bandit.hpp"
#include "forecast/predict/policy/corrector.hpp"
#include "forecast/predict/policy/monitor.hpp"
#include "io/series/logs/training_log.hpp"
#include "keywords.hpp"
#include "lockstep/forecast/curve.hpp"
#include "lockstep/forecast/encoder.hpp"
#include "lockstep/forecast/rollout.hpp"
#include "lockstep/forecast/sweep.hpp"
#include "lockstep/forecast/train.hpp"

namespace lockstep::python {
namespace {

using namespace lockstep::forecast;

using Numbers = std::vector<double>;

// ── curves and logs ──

nb::object curve(const Numbers& steps, const Numbers& losses, const nb::dict& given) {
  Keywords k(given, "lockstep.forecast.curve");
  CurveOptions o;
  std::string title = "loss";
  std::filesystem::path out;
  k.take("horizon", o.horizon)
      .take("points", o.points)
      .take("coverage", o.coverage)
      .take("target", o.target)
      .take("least_gain", o.least_gain)
      .take("out", out)
      .take("where", title)
      .done();
  return from_json(freely([&] {
    const CurveForecast found = forecast_curve(steps, losses, o, title);
    if (!out.empty()) draw_forecast(out, steps, losses, found, title);
    return to_json(found);
  }));
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

nb::object sweep(const Numbers& steps, const std::vector<Numbers>& losses, double check_every,
                 double first_check) {
  return from_json(freely([&] { return to_json(stop_sweep({steps, losses}, {check_every, first_check})); }));
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
nb::dict encode(OpenDevice& open, const nb::dict& columns, const std::string& loss, int64_t history,
                const std::string& precision) {
  const SignalTable table = table_of(columns, loss);
  EncodedStates states;
  {
    const nb::gil_scoped_release free;
    states = encode_states(*open.context, table, history, storage_of(precision));
  }
  nb::dict d;
  d["step"] = to_numpy(table.steps, {table.steps.size()});
  d["features"] = to_numpy(states.features);
  d["normalised"] = to_numpy(states.normalised);
  d["filled"] = nb::cast(table.filled);
  return d;
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

/// By the names of MODEL.npz.
RolloutModel model_of(const nb::dict& arrays) {
  RolloutModel model;
  for (const auto& [key, value] : arrays) {
    const std::string name = nb::cast<std::string>(key);
    const Array array = array_of(nb::borrow(value), "lockstep.forecast.rollout, array " + name);
    const auto gate = [&](char letter) { return letter == 'z' ? 0u : letter == 'r' ? 1u : 2u; };
    const bool gated = name.size() >= 3 && name[name.size() - 2] == '_' &&
                       std::string("zrh").find(name.back()) != std::string::npos;
    const std::string family = gated ? name.substr(0, name.size() - 2) : name;
    if (gated && family == "W")
      model.w[gate(name.back())] = array;
    else if (gated && family == "U")
      model.u[gate(name.back())] = array;
    else if (gated && family == "b")
      model.b[gate(name.back())] = array;
    else if (gated && family == "rb")
      model.rb[gate(name.back())] = array;
    else if (name == "w")
      model.head = array;
    else if (name == "features")
      model.features = array;
    else if (name == "h0")
      model.h0 = array;
    else if (name == "P")
      model.projection = array;
    else if (name == "P_b")
      model.projection_bias = array;
    else if (name == "V")
      model.bins = array;
    else if (name == "V_b")
      model.bins_bias = array;
    else
      throw InputError("array " + name, "lockstep.forecast.rollout",
                       "W_z W_r W_h U_… b_… w features [h0 rb_… P P_b V V_b]");
  }
  return model;
}

nb::object rollout(OpenDevice& open, const nb::object& model, const nb::dict& given) {
  Keywords k(given, "lockstep.forecast.rollout");
  RolloutOptions o;
  RandomModelOptions random;
  Storage precision = Storage::f32;
  k.choose("gru", o.form, {GruForm::reset_before, GruForm::reset_after})
      .choose("heads", o.heads, {Heads::classic, Heads::two_hot})
      .choose("weights", o.weights, {WeightType::f32, WeightType::bf16, WeightType::fp8})
      .take("steps", o.steps)
      .take("seed", o.seed);
  const bool own = !model.is_none();
  if (!own)
    k.take("hidden", random.hidden)
        .take("members", random.members)
        .take("features", random.features)
        .take("batch", random.batch)
        .choose("precision", precision, {{"f32", Storage::f32}, {"f64", Storage::f64}});
  k.done();
  random.seed = o.seed;
  random.storage = precision;
  RolloutModel weights;
  if (nb::isinstance<nb::dict>(model)) weights = model_of(nb::cast<nb::dict>(model));
  const std::string file =
      own && !nb::isinstance<nb::dict>(model) ? nb::cast<std::string>(model) : std::string();
  return from_json(freely([&] {
    if (!file.empty()) weights = load_rollout_model(file, o.heads);
    if (!own) weights = random_rollout_model(random);
    check(weights, o.form, o.heads, "lockstep.forecast.rollout");
    return to_json(run_rollout(*open.context, weights, o));
  }));
}

// ── training ──

void take_predict(Keywords& k, PredictOptions& p) {
  k.choose("control", p.control,
           {Control::none, Control::zero, Control::random, Control::rate, Control::ema, Control::lawa})
      .choose("moments", p.moments, {Moments::keep, Moments::decay, Moments::reset})
      .take("horizons", p.horizons)
      .take("spacing", p.spacing)
      .take("snapshots", p.snapshots)
      .take("order", p.order)
      .take("warm_up", p.warm_up)
      .take("correct", p.correct)
      .take("rate_factor", p.rate_factor)
      .take("ema_decay", p.ema_decay)
      .take("max_rollbacks", p.max_rollbacks);
}

nb::object train(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.forecast.train");
  TrainOptions o;
  PredictOptions predict;
  std::string decay;
  k.take("task", o.task)
      .take("model", o.model)
      .take("data", o.data)
      .take("out", o.folder)
      .take("checkpoint", o.checkpoint)
      .take("seeds", o.seeds)
      .take("seed", o.first_seed)
      .take("steps", o.steps)
      .take("batch", o.batch)
      .take("evaluate_every", o.evaluate_every)
      .take("schedule", decay)
      .take("rate", o.rate)
      .take("target_loss", o.target_loss)
      .choose("precision", o.precision, {{"f32", Storage::f32}, {"f64", Storage::f64}})
      .choose("trainer", o.trainer,
              {{"plain", std::string("plain")}, {"predictive", std::string("predictive")}})
      .progress("progress", o.on_progress);
  take_predict(k, predict);
  k.done();
  if (!decay.empty()) o.decay = nn::parse_decay(decay);
  if (o.trainer == "predictive") o.policy = predictive_policy(predict);
  return from_json(freely([&] { return to_json(forecast::train(*open.context, o)); }));
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
      .def("observe_norm", [](DivergenceMonitor& m, double norm) { return int(m.observe_norm(norm)); })
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

void bind_forecast(nb::module_& module) {
  module.def("forecast_curve", &curve);
  module.def("forecast_read_log", &read_log);
  module.def("forecast_sweep", &sweep);
  module.def("forecast_rollout", &rollout, nb::arg("device"), nb::arg("model").none(), nb::arg("options"));
  module.def("forecast_train", &train);
  bind_encoder(module);
  bind_control_of_jumps(module);
}

}  // namespace lockstep::python
