// The state of a training as 64 numbers: the input of a recurrent forecaster, a bandit or a monitor.
//
//   forecast::StateEncoder encoder(device, 1000);
//   encoder.push(signals);                               // one row of the training, kSignals numbers
//   encoder.launch();                                    // features() and normalised(), on the device
//
// The first 26 follow tzervas/hybrid-predict-trainer-rs (src/state.rs) with the optimiser's summary supplied; the others
// are averages at several scales, slopes, curvatures, noise and alignments. Table: docs/forecast.md.
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

/// Signals of a training step, in this order; logs have columns of these names.
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
  phase_step,  ///< since the start of the phase
  grad_var,    ///< trace of the covariance of single examples' gradients
  align_0,
  align_1,
  align_2,
  align_3,  ///< cosine of update and negative gradient, by parameter group
  grad_norm_0,
  grad_norm_1,
  grad_norm_2,
  grad_norm_3,  ///< by parameter group
};
struct SignalInfo {
  std::string_view name;
  std::string_view filling;  ///< replacement if a log lacks it
};
std::span<const SignalInfo> signal_table();  // kSignals

struct FeatureInfo {
  std::string_view name, meaning;
};
std::span<const FeatureInfo> feature_table();  // kFeatures

/// Features of a training whose last `history` rows are stored on the device. Storage f32 or f64.
class StateEncoder {
 public:
  /// Throws InputError for a history outside 1 … kMostHistory and other storage types.
  StateEncoder(const Device& device, int64_t history = kMostHistory, Storage storage = Storage::f32);
  /// Appends a row of kSignals finite numbers; throws InputError for others, naming the signal.
  void push(std::span<const double> row);
  /// Launches the computation of the features after the last row and one step of the running normaliser. Throws
  /// InputError before the first row.
  void launch();
  Buffer features() const { return features_; }  ///< (1, kFeatures)
  /// (1, kFeatures): (x - mean) / sqrt(variance + 1e-8) by Welford's running moments of all states so far.
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
/// Rows of the column `loss`. Other columns keep their last value between their steps and are filled before their
/// first one, so no row depends on later rows of the log. Throws InputError if the column is missing or empty.
SignalTable signals_of(std::span<const SignalSeries> columns, std::string_view loss, std::string_view where);

struct EncodedStates {
  Array features, normalised;  ///< (rows, kFeatures)
};
/// The states after each row, in one launch and one of the normaliser.
EncodedStates encode_states(const Device& device, const SignalTable& table, int64_t history = kMostHistory,
                            Storage storage = Storage::f32);
/// The same as the stage "forecast.encode".
EncodedStates encode_states(Context& context, const SignalTable& table, int64_t history = kMostHistory,
                            Storage storage = Storage::f32);

}  // namespace lockstep::forecast
