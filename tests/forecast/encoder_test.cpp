// The state encoder: every feature against the plain reference, ring = log, normaliser, filling, documentation.
#include "lockstep/forecast/encoder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "device/devices.hpp"
#include "forecast/encoder/reference.hpp"
#include "io/checks.hpp"
#include "io/series/logs/training_log.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::forecast;
using lockstep::test::error_of;
using lockstep::test::has;

SignalTable real_run() {
  const io::TrainingLog log = io::read_training_log(std::string(LOCKSTEP_FORECAST_DATA) + "/full_log.csv");
  std::vector<SignalSeries> columns;
  for (const io::LogColumn& c : log.columns) columns.push_back({c.name, c.steps, c.values});
  return signals_of(columns, "loss", "full_log.csv");
}

std::vector<std::array<double, kFeatures>> reference_states(const SignalTable& t, int64_t history) {
  std::vector<std::array<double, kFeatures>> states;
  for (int64_t row = 0; row < t.rows(); ++row) {
    const int64_t begin = std::max<int64_t>(row + 1 - history, 0);
    std::vector<std::vector<double>> signals;
    for (int s = 0; s < kSignals; ++s)
      signals.emplace_back(t.values.begin() + s * t.rows() + begin,
                           t.values.begin() + s * t.rows() + row + 1);
    states.push_back(reference::encode(signals));
  }
  return states;
}

SignalTable first_rows(const SignalTable& t, int64_t rows) {
  SignalTable part;
  part.steps.assign(t.steps.begin(), t.steps.begin() + rows);
  for (int s = 0; s < kSignals; ++s)
    part.values.insert(part.values.end(), t.values.begin() + s * t.rows(),
                       t.values.begin() + s * t.rows() + rows);
  return part;
}

TEST(StateEncoder, EveryFeatureIsTheReferencesOnEveryDevice) {
  const SignalTable table = first_rows(real_run(), 90);
  const auto expected = reference_states(table, 70);
  for (const std::string& name : host_devices()) {
    const EncodedStates got = encode_states(test_device(name), table, 70, Storage::f64);
    for (int64_t row = 0; row < table.rows(); ++row)
      for (int64_t f = 0; f < kFeatures; ++f) {
        const double e = expected[size_t(row)][size_t(f)];
        EXPECT_NEAR(got.features.at<double>(row, f), e, 1e-11 * (1 + std::abs(e)))
            << name << " row " << row << " " << feature_table()[size_t(f)].name;
      }
  }
}

TEST(StateEncoder, F32IsNearTheReferenceAndTheSameBitsEverywhere) {
  const SignalTable table = first_rows(real_run(), 60);
  SignalTable rounded = table;
  for (double& v : rounded.values) v = double(float(v));
  const auto expected = reference_states(rounded, 1000);
  std::vector<float> bits;
  for (const std::string& name : host_devices()) {
    const EncodedStates got = encode_states(test_device(name), table, 1000, Storage::f32);
    for (int64_t row = 0; row < table.rows(); ++row)
      for (int64_t f = 0; f < kFeatures; ++f) {
        const double e = expected[size_t(row)][size_t(f)];
        EXPECT_NEAR(double(got.features.at<float>(row, f)), e, 2e-4 * (1 + std::abs(e)))
            << name << " row " << row << " " << feature_table()[size_t(f)].name;
      }
    const auto values = got.features.as<float>();
    if (bits.empty()) bits.assign(values.begin(), values.end());
    EXPECT_TRUE(std::equal(bits.begin(), bits.end(), values.begin())) << name;
  }
}

TEST(StateEncoder, EveryFeatureVariesInARealRun) {
  const SignalTable table = real_run();
  EXPECT_TRUE(table.filled.empty());
  const auto states = reference_states(table, kMostHistory);
  for (size_t f = 0; f < kFeatures; ++f) {
    std::set<double> values;
    for (const auto& state : states) {
      ASSERT_TRUE(std::isfinite(state[f])) << feature_table()[f].name;
      values.insert(state[f]);
    }
    EXPECT_GE(values.size(), feature_table()[f].name == "phase" ? 2u : 5u) << feature_table()[f].name;
  }
}

// Rows go round the ring while states are requested now and then.
TEST(StateEncoder, RingGivesTheSameBitsAsTheLog) {
  const SignalTable table = first_rows(real_run(), 75);
  const Device& device = test_device(host_devices().back());
  const EncodedStates log = encode_states(device, table, 32);
  StateEncoder encoder(device, 32);
  EXPECT_TRUE(has(error_of([&] { encoder.launch(); }), "no rows [state encoder]"));
  for (int64_t row = 0; row < table.rows(); ++row) {
    std::vector<double> values;
    for (int s = 0; s < kSignals; ++s) values.push_back(table.values[size_t(s * table.rows() + row)]);
    encoder.push(values);
    encoder.launch();
    const Array features = device.download(encoder.features()),
                normalised = device.download(encoder.normalised());
    for (int64_t f = 0; f < kFeatures; ++f) {
      ASSERT_EQ(features.at<float>(0, f), log.features.at<float>(row, f)) << row << " " << f;
      ASSERT_EQ(normalised.at<float>(0, f), log.normalised.at<float>(row, f)) << row << " " << f;
    }
  }
}

TEST(StateEncoder, NormaliserHasTheMomentsOfAllStatesSoFar) {
  const SignalTable table = first_rows(real_run(), 50);
  const EncodedStates got = encode_states(test_device(host_devices().back()), table, 1000, Storage::f64);
  const auto expected = reference::normalise(reference_states(table, 1000));
  for (int64_t row = 0; row < table.rows(); ++row)
    for (int64_t f = 0; f < kFeatures; ++f)
      EXPECT_NEAR(got.normalised.at<double>(row, f), expected[size_t(row)][size_t(f)], 1e-6)
          << row << " " << f;
}

TEST(StateEncoder, WhatALogLacksIsSaidAndFilledByTheRules) {
  const SignalTable t = signals_of(
      std::vector<SignalSeries>{{"loss", {1, 2, 4}, {2, 1.5, 1.75}}, {"lr", {2}, {0.5}}}, "loss", "a.csv");
  EXPECT_EQ(t.filled.size(), size_t(kSignals) - 2);
  EXPECT_EQ(t.filled[1], "grad_norm: |change of the loss| since the row before; 0 in the first");
  const auto row = [&](Signal s) {
    return std::vector<double>(t.values.begin() + int(s) * 3, t.values.begin() + int(s) * 3 + 3);
  };
  EXPECT_EQ(row(Signal::step), (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(row(Signal::lr), (std::vector<double>{1e-3, 0.5, 0.5}));
  EXPECT_TRUE(std::find(t.filled.begin(), t.filled.end(), "lr: 0.001, before step 2") != t.filled.end());
  EXPECT_EQ(
      std::vector<uint8_t>(t.given.begin() + int(Signal::lr) * 3, t.given.begin() + int(Signal::lr) * 3 + 3),
      (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(t.given[size_t(Signal::loss) * 3], 1);
  EXPECT_EQ(t.given[size_t(Signal::grad_norm) * 3 + 2], 0);
  EXPECT_EQ(row(Signal::grad_norm), (std::vector<double>{0, 0.5, 0.25}));
  EXPECT_EQ(row(Signal::update_norm), (std::vector<double>{0, 0.25, 0.125}));
  EXPECT_EQ(row(Signal::phase_step), (std::vector<double>{0, 1, 3}));
  EXPECT_NEAR(row(Signal::beta2_t)[2], std::pow(0.999, 4), 1e-15);
  EXPECT_TRUE(has(error_of([] { signals_of({}, "loss", "a.csv"); }), "no values of 'loss' [a.csv]"));
  const auto refusal = [](SignalSeries lr) {
    return error_of(
        [&] { signals_of(std::vector<SignalSeries>{{"loss", {1, 2}, {1, 1}}, lr}, "loss", "a.csv"); });
  };
  EXPECT_TRUE(has(refusal({"lr", {1}, {1, 2}}), "1 steps and 2 values [a.csv, column lr]"));
  EXPECT_TRUE(has(refusal({"lr", {2, 1}, {1, 2}}), "steps that do not increase [a.csv, column lr]"));
  EXPECT_TRUE(has(refusal({"lr", {1, NAN}, {1, 2}}), "steps that do not increase"));
  EXPECT_TRUE(has(refusal({"lr", {1, 2}, {1, INFINITY}}), "inf at step 2 [a.csv, column lr]"));
  StateEncoder encoder(test_device("interp"), 4);
  std::vector<double> bad(kSignals, 1.0);
  bad[int(Signal::lr)] = NAN;
  EXPECT_EQ(error_of([&] { encoder.push(bad); }), "lr is nan [state encoder]: expected a finite number");
  EXPECT_TRUE(has(error_of([] { StateEncoder(test_device("interp"), 1001); }), "a history of 1001"));
}

// A row is the same regardless of later rows of the log.
TEST(StateEncoder, StatesKnowNothingOfLaterRows) {
  std::vector<SignalSeries> log{{"loss", {}, {}}, {"lr", {}, {}}, {"grad_norm", {}, {}}};
  for (int k = 1; k <= 12; ++k) {
    log[0].steps.push_back(k), log[0].values.push_back(2.0 / k);
    if (k >= 5) log[1].steps.push_back(k), log[1].values.push_back(0.5 / k);
    if (k >= 8) log[2].steps.push_back(k), log[2].values.push_back(3.0 + k);
  }
  const SignalTable whole = signals_of(log, "loss", "a.csv");
  for (size_t rows : {4u, 6u, 9u}) {
    std::vector<SignalSeries> part;
    for (SignalSeries series : log) {
      const auto end = std::upper_bound(series.steps.begin(), series.steps.end(), double(rows));
      series.values.resize(size_t(end - series.steps.begin()));
      series.steps.erase(end, series.steps.end());
      part.push_back(series);
    }
    const SignalTable early = signals_of(part, "loss", "a.csv");
    for (size_t s = 0; s < size_t(kSignals); ++s)
      for (size_t row = 0; row < rows; ++row)
        EXPECT_EQ(early.values[s * rows + row], whole.values[s * 12 + row])
            << signal_table()[s].name << " row " << row << " of " << rows;
  }
}

TEST(StateEncoder, TheDocumentHasEveryFeatureAndSignal) {
  std::ifstream file(LOCKSTEP_FORECAST_DOCUMENT);
  std::stringstream text;
  text << file.rdbuf();
  for (size_t f = 0; f < kFeatures; ++f) {
    const FeatureInfo& info = feature_table()[f];
    const std::string line = "| " + std::to_string(f) + " | `" + std::string(info.name) + "` | " +
                             std::string(info.meaning) + " |";
    EXPECT_TRUE(has(text.str(), line)) << "docs/forecast.md lacks\n" << line;
  }
  for (const SignalInfo& info : signal_table()) {
    const std::string line = "| `" + std::string(info.name) + "` | " + std::string(info.filling) + " |";
    EXPECT_TRUE(has(text.str(), line)) << "docs/forecast.md lacks\n" << line;
  }
}

}  // namespace
