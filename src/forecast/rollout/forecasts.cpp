// Forecasts from a rollout: statistics over members and steps, in f64.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/forecast/documents.hpp"
#include "lockstep/forecast/rollout.hpp"

namespace lockstep::forecast {

namespace {

double mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return v.empty() ? 0 : sum / double(v.size());
}

double variance(const std::vector<double>& v) {
  const double m = mean(v);
  double sum = 0;
  for (const double x : v) sum += (x - m) * (x - m);
  return v.empty() ? 0 : sum / double(v.size());
}

double smoothness(const std::vector<double>& deltas) {
  std::vector<double> sizes, turns;
  for (size_t t = 0; t < deltas.size(); ++t) {
    sizes.push_back(std::abs(deltas[t]));
    if (t > 0) turns.push_back(std::abs(deltas[t] - deltas[t - 1]));
  }
  const double size = mean(sizes);
  return turns.empty() || !(size > 0) ? 1 : 1 / (1 + mean(turns) / size);
}

std::vector<double> row_of(const Array& all, int64_t m, int64_t b) {
  const Array row = all[m][b].packed().to(Storage::f64);
  return {row.as<double>().begin(), row.as<double>().end()};
}

/// Deviation of the members after step t, from 0; under two-hot heads with the mean of their own variances.
double sigma_at(const Forecast& f, const std::vector<std::vector<double>>& variances, Heads heads, size_t t) {
  std::vector<double> losses;
  for (const MemberForecast& m : f.members) losses.push_back(m.trajectory[t]);
  if (heads == Heads::classic) return std::sqrt(variance(losses)) * (1 + 0.1 * std::sqrt(double(t + 1)));
  double own = 0;
  for (const std::vector<double>& of_member : variances) own += of_member[t] / double(variances.size());
  return std::sqrt(variance(losses) + own);
}

nlohmann::ordered_json json_of(const Forecast& f) {
  nlohmann::ordered_json j{{"trajectory", f.trajectory},
                           {"final", f.final},
                           {"sigma", f.sigma},
                           {"sigmas", f.sigmas},
                           {"aleatoric", f.aleatoric},
                           {"epistemic", f.epistemic},
                           {"entropy", f.entropy},
                           {"confidence", f.confidence},
                           {"members", nlohmann::ordered_json::array()}};
  for (const MemberForecast& m : f.members)
    j["members"].push_back({{"trajectory", m.trajectory},
                            {"step_deltas", m.step_deltas},
                            {"hidden_norms", m.hidden_norms},
                            {"loss_variance", m.loss_variance},
                            {"trajectory_smoothness", m.trajectory_smoothness}});
  return j;
}

}  // namespace

std::vector<Forecast> forecasts_of(const std::vector<Array>& raw, const RolloutModel& model,
                                   const RolloutOptions& options) {
  const int64_t members = model.members(), batch = model.batch(), steps = options.steps;
  const Array features = model.features.packed().reshape({batch, model.inputs()}).to(Storage::f64);
  std::vector<Forecast> forecasts(static_cast<size_t>(batch));
  for (int64_t b = 0; b < batch; ++b) {
    Forecast& f = forecasts[size_t(b)];
    f.trajectory.assign(size_t(steps), 0);
    std::vector<double> finals, entropies, variances;
    std::vector<std::vector<double>> own;  // variances of each member's head
    for (int64_t m = 0; m < members; ++m) {
      MemberForecast one;
      one.trajectory = row_of(raw[0], m, b);
      one.hidden_norms = row_of(raw[1], m, b);
      double before = features.at<double>(b, 0);
      for (size_t t = 0; t < one.trajectory.size(); ++t) {
        one.step_deltas.push_back(one.trajectory[t] - before);
        before = one.trajectory[t];
        f.trajectory[t] += one.trajectory[t] / double(members);
      }
      finals.push_back(before);
      one.loss_variance = variance(one.trajectory);
      one.trajectory_smoothness = smoothness(one.step_deltas);
      entropies.push_back(mean(row_of(raw[2], m, b)));
      if (options.heads == Heads::two_hot && steps > 0) {
        own.push_back(row_of(raw[4], m, b));
        variances.push_back(own.back().back());
      }
      f.members.push_back(std::move(one));
    }
    f.final = mean(finals);
    f.entropy = mean(entropies);
    if (options.heads == Heads::two_hot) {
      f.epistemic = variance(finals);
      f.aleatoric = mean(variances);
      f.sigma = std::sqrt(f.epistemic + f.aleatoric);
    } else {
      f.sigma = std::sqrt(variance(finals)) * (1 + 0.1 * std::sqrt(double(steps)));
      f.aleatoric = f.epistemic = f.sigma / 2;
    }
    for (int64_t t = 0; t < steps; ++t) f.sigmas.push_back(sigma_at(f, own, options.heads, size_t(t)));
    f.confidence = 1 / (1 + f.sigma);
  }
  return forecasts;
}

nlohmann::ordered_json document_of(const RolloutRun& run) {
  nlohmann::ordered_json j = json_of(run.forecasts.front());
  if (run.forecasts.size() > 1) {
    j["batch"] = nlohmann::ordered_json::array();
    for (const Forecast& f : run.forecasts) j["batch"].push_back(json_of(f));
  }
  j["path"] = run.path;
  if (!run.no_cluster.empty()) j["no_cluster"] = run.no_cluster;
  if (!run.no_batch.empty()) j["no_batch"] = run.no_batch;
  j["state"] = run.state_place;
  j["memory"] = {{"weights", run.memory.weights}, {"state", run.memory.state},
                 {"outputs", run.memory.outputs}, {"predicted", run.memory.total()},
                 {"used", run.used_bytes},        {"shared_per_group", run.memory.shared_per_group}};
  return j;
}
std::string to_json(const RolloutRun& run) { return json_text(document_of(run)); }

}  // namespace lockstep::forecast
