// A model that can be trained: a loss as a function of parameters. Parameters and gradient are one flat buffer each on a
// device.
//
//   nn::TrainableModel& model = …;
//   model.launch_gradient(batch, loss, step);            // gradient() and loss[0]; launches only
//   device.download<float>(loss);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep::nn {

/// A named tensor inside the flat buffer of parameters, row-major.
struct ParameterTensor {
  std::string name;            // "dense1.weight"
  std::vector<int64_t> shape;  // slowest first
  int64_t offset = 0, size = 0;
};

/// Examples on the device: inputs (B, …) and targets (B, …), whose meaning depends on the model.
struct Batch {
  Buffer inputs, targets;
  int64_t size = 0;  // B
  /// For a part of a batch: the position of its first example in the batch, and the size of the batch. Loss and gradient
  /// are then the contributions of the part; those of the batch are the sums over its parts. 0: the whole batch.
  int64_t first = 0, whole = 0;
};

/// Launches use the default stream and return before completion. Each function returns the same buffer in every call.
class TrainableModel {
 public:
  virtual ~TrainableModel() = default;
  virtual const Device& device() const = 0;
  /// Tensors in the order of their offsets, without gaps.
  virtual std::span<const ParameterTensor> tensors() const = 0;
  virtual Buffer parameters() const = 0;  // (n) f32 or f64
  virtual Buffer gradient() const = 0;    // (n) of the parameters' storage
  /// loss[0] = mean loss of the batch at parameters(); forward only, no dropout.
  virtual void launch_loss(const Batch& batch, const Buffer& loss) = 0;
  /// The same with dropout, and its gradient. The random draws depend on `step`: equal steps give equal bits.
  virtual void launch_gradient(const Batch& batch, const Buffer& loss, uint64_t step) = 0;
};

/// Elements of all tensors. Throws InputError if offsets overlap, leave gaps or do not match the shapes.
int64_t parameter_count(std::span<const ParameterTensor> tensors);

}  // namespace lockstep::nn
