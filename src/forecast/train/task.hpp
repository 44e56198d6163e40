// The task of a training: data, network, loss, optimiser, and how long.
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/array.hpp"
#include "lockstep/forecast/train.hpp"
#include "lockstep/nn/network.hpp"

namespace lockstep::forecast {

/// Examples on the host: inputs and targets (n, …), or, with `window` above 0, a text of tokens (inputs, i32) whose
/// examples are windows with the tokens that follow as targets.
struct Dataset {
  Array inputs, targets;
  int64_t window = 0;
  /// Examples; of a text those that do not overlap.
  int64_t count() const { return window > 0 ? (inputs.elements() - 1) / window : inputs.size(0); }
};

struct Task {
  std::string name, model;
  nn::NetworkSpec network;
  Dataset train, held, validation;
  int64_t batch = 32, steps = 1000, evaluate_every = 100;
  int64_t validation_examples = 0;  // evaluated, evenly spaced; 0: all
  nn::OptimizerOptions optimizer;
  bool classes() const { return network.loss == nn::Loss::cross_entropy; }
};

/// The task of the options, with their steps, batch and rate. Throws InputError.
Task make_task(const TrainOptions& options);
/// A task as specified by a .toml file; docs/forecast.md has the keys.
Task read_task(const std::filesystem::path& file, const std::filesystem::path& data);
/// Rows [first, first + count) of both arrays.
Dataset part(const Dataset& all, int64_t first, int64_t count);

}  // namespace lockstep::forecast
