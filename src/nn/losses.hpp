// Losses of outputs (rows, columns) and their gradients.
#pragma once

#include "lockstep/device.hpp"
#include "lockstep/nn/network.hpp"
#include "nn/layers/layer.hpp"

namespace lockstep::nn {

class LossHead {
 public:
  LossHead(Loss loss, const Shape& output, Storage storage);

  /// loss[0] = sum of the losses over `whole` examples' terms; with `gradient` also the gradient by the outputs, in memory
  /// of the head's. whole 0: those of the pass, so that the loss is their mean.
  Buffer launch(const Pass& pass, const Buffer& outputs, const Buffer& targets, const Buffer& loss,
                bool gradient, int64_t whole = 0);
  /// How many rows have their largest output at the target's place; waits.
  int64_t correct(const Pass& pass, const Buffer& outputs, const Buffer& targets);
  /// Throws InputError for targets of other storage or count.
  void check(int64_t examples, const Buffer& targets) const;
  int64_t row_count(int64_t examples) const;
  Storage target_storage() const { return loss_ == Loss::cross_entropy ? Storage::i32 : storage_; }

 private:
  /// Terms of the mean: rows, or elements of mean_squared.
  int64_t terms(int64_t examples) const;
  Loss loss_;
  Shape output_;
  Storage storage_;
  Scratch row_losses_, gradients_, hits_, count_;
};

template <class T>
const Kernel& cross_entropy_kernel(bool gradient);
template <class T>
const Kernel& mean_squared_kernel();
template <class T>
const Kernel& two_hot_kernel();
template <class T>
const Kernel& two_hot_values_kernel();
template <class T>
const Kernel& hits_kernel();

}  // namespace lockstep::nn
