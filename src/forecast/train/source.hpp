// Batches of a data set on a device.
#pragma once

#include <vector>

#include "forecast/train/task.hpp"

namespace lockstep::forecast {

/// The examples of a step, by number. Epochs are permutations, each by itself; windows of a text begin anywhere. They
/// follow from seed and step alone, so that a run can continue in the middle.
class Sampler {
 public:
  Sampler(const Dataset& data, uint64_t seed, int64_t batch);
  std::vector<i32> examples(int64_t step);

 private:
  const std::vector<i32>& epoch(int64_t number);
  int64_t count_, starts_ = 0, batch_;  // starts of windows, of a text
  uint64_t seed_;
  int64_t epoch_number_ = -1;
  std::vector<i32> order_;
};

/// A data set in device memory, and a batch gathered from it.
class ExampleSource {
 public:
  /// `storage` of inputs and targets that are not whole numbers.
  ExampleSource(const Device& device, const Dataset& data, Storage storage);
  /// Examples by number; of a text by their first token. The buffers are overwritten by the next call.
  nn::Batch gather(const std::vector<i32>& examples);

 private:
  Device device_;
  int64_t window_ = 0, width_ = 0, target_width_ = 0;
  Buffer inputs_, targets_, numbers_;
  Buffer batch_inputs_, batch_targets_;
};

/// to[b, j] = from[rows[b], j].
template <class T>
const Kernel& take_rows_kernel();
/// inputs[b, t] = text[starts[b] + t], targets[b, t] the token behind it.
const Kernel& take_windows_kernel();

}  // namespace lockstep::forecast
