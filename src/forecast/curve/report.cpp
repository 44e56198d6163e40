// Forecasts of learning curves as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/forecast/curve.hpp"
#include "lockstep/forecast/documents.hpp"
#include "lockstep/forecast/sweep.hpp"

namespace lockstep::forecast {
namespace {

using CurveJson = nlohmann::ordered_json;

CurveJson json_number(double value) { return std::isfinite(value) ? CurveJson(value) : CurveJson(nullptr); }
CurveJson json_number(const std::optional<double>& value) {
  return value ? json_number(*value) : CurveJson(nullptr);
}

}  // namespace

nlohmann::ordered_json document_of(const CurveForecast& f) {
  CurveJson j;
  j["prediction"] = CurveJson::array();
  for (const CurvePoint& p : f.prediction)
    j["prediction"].push_back({{"step", p.step},
                               {"mean", p.mean},
                               {"low", p.low},
                               {"high", p.high},
                               {"trend_low", p.trend_low},
                               {"trend_high", p.trend_high}});
  j["advice"] = {{"action", f.advice.action == Action::stop ? "stop" : "continue"},
                 {"text", f.advice.text},
                 {"expected_gain", f.advice.expected_gain},
                 {"steps_to_target", json_number(f.advice.steps_to_target)},
                 {"stop_step", json_number(f.advice.stop_step)}};
  j["rising_since"] = json_number(f.rising_since);
  j["last_step"] = f.now;
  j["level"] = f.level;
  j["noise"] = f.noise;
  j["noise_correlation"] = f.noise_correlation;
  j["widening"] = {{"below", f.widening.below}, {"above", f.widening.above}};
  j["families"] = CurveJson::array();
  for (const CurveMember& m : f.members)
    j["families"].push_back({{"family", name(m.curve.family)},
                             {"weight", m.weight},
                             {"relative_error", m.relative_error},
                             {"floor", m.curve.floor},
                             {"amplitude", m.curve.amplitude},
                             {"rate", json_number(m.curve.rate)},
                             {"exponent", json_number(m.curve.exponent)},
                             {"shift", m.curve.shift}});
  CurveJson rows = CurveJson::array();
  for (const BacktestRow& r : f.backtest.rows)
    rows.push_back(
        {{"predictor", r.predictor}, {"mean_error", r.mean_error}, {"coverage", json_number(r.coverage)}});
  j["backtest"] = {{"origins", f.backtest.origins}, {"predictors", rows}};
  return j;
}
std::string to_json(const CurveForecast& f) { return json_text(document_of(f)); }

nlohmann::ordered_json document_of(const std::vector<SweepRow>& rows) {
  CurveJson j = CurveJson::array();
  for (const SweepRow& r : rows)
    j.push_back({{"policy", r.policy},
                 {"saved", r.saved},
                 {"regret", r.regret},
                 {"stopped", r.stopped},
                 {"rightly_stopped", r.rightly_stopped},
                 {"mean_stop", r.mean_stop}});
  return j;
}
std::string to_json(const std::vector<SweepRow>& rows) { return json_text(document_of(rows)); }

}  // namespace lockstep::forecast
