// The ring on the device and whole logs.
#include "lockstep/forecast/encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "forecast/encoder/kernels.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

void check_encoder(int64_t history, Storage storage) {
  if (history < 1 || history > kMostHistory)
    throw InputError(fmt::format("a history of {}", history), "state encoder",
                     fmt::format("1 to {} rows", kMostHistory));
  if (storage != Storage::f32 && storage != Storage::f64)
    throw InputError("features of another type", "state encoder", "f32 or f64");
}

Buffer upload_as(const Device& device, std::vector<double> values, Sizes shape, Storage storage) {
  return device.upload(Array::of(std::move(values), std::move(shape)).to(storage));
}

Buffer zero_moments(const Device& device, Storage storage) {
  Buffer moments = device.allocate(storage, {2, kFeatures});
  device.clear(moments);
  return moments;
}

}  // namespace

StateEncoder::StateEncoder(const Device& device, int64_t history, Storage storage)
    : device_(device), history_(history), storage_(storage) {
  check_encoder(history, storage);
  ring_ = device.allocate(storage, {kSignals, kColumnsBefore + 2 * history});
  device.clear(ring_);
  decay_ = upload_as(device, decay_table(history), {kEmaScales, decay_columns(history)}, storage);
  features_ = device.allocate(storage, {1, kFeatures});
  normalised_ = device.allocate(storage, {1, kFeatures});
  moments_ = zero_moments(device, storage);
}

void StateEncoder::push(std::span<const double> row) {
  if (row.size() != size_t(kSignals))
    throw InputError(fmt::format("{} numbers", row.size()), "state encoder",
                     fmt::format("{} signals", kSignals));
  for (size_t s = 0; s < row.size(); ++s)
    if (!std::isfinite(row[s]))
      throw InputError(fmt::format("{} is {}", signal_table()[s].name, row[s]), "state encoder",
                       "a finite number");
  const Array values = Array::of(std::vector<double>(row.begin(), row.end())).to(storage_);
  if (place_ == 2 * history_) {  // the end: rows that still count go to the front
    const int64_t kept = history_ - 1;
    for (int64_t s = 0; s < kSignals && kept > 0; ++s)
      device_.copy(ring_.window({s, kColumnsBefore + place_ - kept}, {1, kept}),
                   ring_.window({s, kColumnsBefore}, {1, kept}));
    place_ = kept;
  }
  device_.write(ring_.window({0, kColumnsBefore + place_}, {kSignals, 1}), values.data(), values.bytes());
  ++place_;
  ++rows_;
}

void StateEncoder::launch() {
  if (rows_ == 0) throw InputError("no rows", "state encoder", "a row before the first state");
  device_.launch(encode_kernel(storage_), {1}, ring_, decay_, features_, kColumnsBefore + place_ - 1,
                 std::min(rows_, history_), history_);
  device_.launch(normalise_kernel(storage_), {kFeatures}, features_, normalised_, moments_, states_);
  ++states_;
}

EncodedStates encode_states(const Device& device, const SignalTable& table, int64_t history,
                            Storage storage) {
  check_encoder(history, storage);
  const int64_t rows = table.rows();
  if (rows == 0) return {Array(storage, {0, kFeatures}), Array(storage, {0, kFeatures})};
  const Buffer ring = upload_as(device, with_columns_before(table.values, kSignals),
                                {kSignals, kColumnsBefore + rows}, storage);
  const Buffer decay = upload_as(device, decay_table(history), {kEmaScales, decay_columns(history)}, storage);
  const Buffer features = device.allocate(storage, {rows, kFeatures}),
               normalised = device.allocate(storage, {rows, kFeatures}),
               moments = zero_moments(device, storage);
  device.launch(encode_kernel(storage), {rows}, ring, decay, features, kColumnsBefore, 1, history);
  device.launch(normalise_kernel(storage), {kFeatures}, features, normalised, moments, 0);
  return {device.download(features), device.download(normalised)};
}

EncodedStates encode_states(Context& context, const SignalTable& table, int64_t history, Storage storage) {
  return context.stage("forecast.encode",
                       [&](const Device& device) { return encode_states(device, table, history, storage); });
}

}  // namespace lockstep::forecast
