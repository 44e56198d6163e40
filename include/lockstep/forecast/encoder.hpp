// The state of a training as 64 numbers, the features: input of a recurrent forecaster, a bandit or a monitor.
//
//   forecast::StateEncoder encoder(device, 1000);
//   encoder.push(signals);                               // the kSignals numbers of a training step
//   encoder.launch();                                    // features() and normalised(), on the device
//
// The first 26 features are those of tzervas/hybrid-predict-trainer-rs (src/state.rs), with the summary of the optimiser
// filled in. The others are averages at several scales, slopes, curvatures, noise and alignments. docs/forecast.md has a
// table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/context.hpp"
#include "lockstep/device.hpp"

namespace lockstep::forecast {

inline constexpr int kFeatures = 64, kSignals = 23, kParameterGroups = 4;
inline constexpr int64_t kMostHistory = 1000;

/// Signals of a training step, in the order of the numbers. Logs have columns with these names.
enum class Signal : uint8_t {
  step,
  loss,
  grad_norm,
  update_norm,
  param_norm,
  lr,
  m_mean,
  m_std,
  v_mean,
  v_std,
  beta1_t,
  beta2_t,
  phase,       ///< 0 warm-up, 1 full, 2 predict, 3 correct
  phase_step,  ///< steps since the start of the phase
  grad_var,    ///< trace of the covariance of the gradients of single examples
  align_0,
  align_1,
  align_2,
  align_3,  ///< cosine between update and negative gradient, by parameter group
  grad_norm_0,
  grad_norm_1,
  grad_norm_2,
  grad_norm_3,  ///< by parameter group
};
struct SignalInfo {
  std::string_view name;
  std::string_view filling;  ///< replacement if a log lacks the signal
};
std::span<const SignalInfo> signal_table();  // kSignals

struct FeatureInfo {
  std::string_view name, meaning;
};
std::span<const FeatureInfo> feature_table();  // kFeatures

/// Computes the features of a training from its last `history` rows, which are on the device, in f32 or f64.
class StateEncoder {
 public:
  /// Throws InputError for a history outside 1 … kMostHistory and other storage types.
  StateEncoder(const Device& device, int64_t history = kMostHistory, Storage storage = Storage::f32);
  /// Appends a row of kSignals finite numbers; throws InputError for others, naming the signal.
  void push(std::span<const double> row);
  /// Launches the computation of the features after the last row, and one update of the running normaliser. Throws
  /// InputError before the first row.
  void launch();
  Buffer features() const { return features_; }  ///< (1, kFeatures)
  /// (1, kFeatures): (x - mean) / sqrt(variance + 1e-8), with Welford's running moments over all states so far.
  Buffer normalised() const { return normalised_; }
  int64_t rows() const { return rows_; }

 private:
  Device device_;
  int64_t history_, rows_ = 0, states_ = 0, place_ = 0;  // place_: position of the next row in the ring
  Storage storage_;
  Buffer ring_, decay_, features_, normalised_, moments_;
};

/// One quantity of a log; steps increase.
struct SignalSeries {
  std::string name;
  std::vector<double> steps, values;
};
/// All signals at the steps of the loss.
struct SignalTable {
  std::vector<double> steps;
  std::vector<double> values;       ///< (kSignals, rows)
  std::vector<uint8_t> given;       ///< (kSignals, rows): 1 if the log has the value, 0 if it is filled
  std::vector<std::string> filled;  ///< "lr: …": missing signals and their replacements
  int64_t rows() const { return int64_t(steps.size()); }
};
/// The signals at the rows of the column `loss`. Other columns keep their last value between their steps and are filled
/// before their first one, so no row depends on later rows of the log. Throws InputError if the column `loss` is missing
/// or empty, and for a column that is not a finite number at each of increasing steps; `where` names the log.
SignalTable signals_of(std::span<const SignalSeries> columns, std::string_view loss, std::string_view where);

struct EncodedStates {
  Array features, normalised;  ///< (rows, kFeatures)
};
/// The features after each row, by one launch for all rows and one for the normaliser. Throws as StateEncoder.
EncodedStates encode_states(const Device& device, const SignalTable& table, int64_t history = kMostHistory,
                            Storage storage = Storage::f32);
/// The same as the stage "forecast.encode".
EncodedStates encode_states(Context& context, const SignalTable& table, int64_t history = kMostHistory,
                            Storage storage = Storage::f32);

}  // namespace lockstep::forecast
