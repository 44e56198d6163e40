#include "nn/losses.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/primitives.hpp"
#include "nn/layers/common.hpp"
#include "nn/two_hot.hpp"

namespace lockstep::nn {

/// Largest of a row, and the sum of exp(x - largest) in order.
template <class T>
struct SoftmaxNumbers {
  Val<T> largest, sum;
};

namespace {

template <class T>
SoftmaxNumbers<T> softmax_numbers(const Grid<T, 2>& x, const Val<i32>& row) {
  const Val<i32> columns = x.size(1);
  Var<T> largest = x(row, 0);
  for_(1, columns, [&](Val<i32> j) { largest = max(largest, x(row, j)); });
  const Val<T> top = largest;
  Var<T> sum = T(0);
  for_(0, columns, [&](Val<i32> j) { sum += exp(x(row, j) - top); });
  return {top, sum};
}

/// log sum exp(x) - x[target]; a target that is no class gives NaN.
template <class T>
Val<T> row_loss(const Grid<T, 2>& x, const Val<i32>& row, const Val<i32>& target,
                const SoftmaxNumbers<T>& s) {
  const Val<i32> columns = x.size(1), place = clamp(target, 0, columns - 1);
  const Val<T> nll = log(s.sum) - (x(row, place) - s.largest);
  return select(place == target, nll, Val<T>(std::numeric_limits<T>::quiet_NaN()));
}

}  // namespace

template <class T>
const Kernel& cross_entropy_kernel(bool gradient) {
  static const Kernel value = kernel(
      nn_kernel_name<T>("cross_entropy"), [](At<1> at, Grid<T, 2> x, Grid<i32, 1> targets, Out<T, 1> losses) {
        const Val<i32> row = at.x;
        losses[at] = row_loss<T>(x, row, targets[at], softmax_numbers<T>(x, row));
      });
  static const Kernel both = kernel(
      nn_kernel_name<T>("cross_entropy.gradient"),
      [](At<1> at, Grid<T, 2> x, Grid<i32, 1> targets, Out<T, 1> losses, Out<T, 2> dx, Param<T> share) {
        const Val<i32> row = at.x, target = targets[at];
        const SoftmaxNumbers<T> s = softmax_numbers<T>(x, row);
        losses[at] = row_loss<T>(x, row, target, s);
        for_(0, x.size(1), [&](Val<i32> j) {
          const Val<T> p = exp(x(row, j) - s.largest) / s.sum;
          dx(row, j) = share * (p - select(j == target, T(1), T(0)));
        });
      });
  return gradient ? both : value;
}
template const Kernel& cross_entropy_kernel<f32>(bool);
template const Kernel& cross_entropy_kernel<f64>(bool);

template <class T>
const Kernel& mean_squared_kernel() {
  static const Kernel k =
      kernel(nn_kernel_name<T>("mean_squared"),
             [](At<1> at, Grid<T, 1> y, Grid<T, 1> targets, Out<T, 1> squares, Out<T, 1> dy, Param<T> share) {
               const Val<T> apart = y[at] - targets[at];
               squares[at] = apart * apart;
               dy[at] = (T(2) * share) * apart;
             });
  return k;
}
template const Kernel& mean_squared_kernel<f32>();
template const Kernel& mean_squared_kernel<f64>();

template <class T>
const Kernel& two_hot_kernel() {
  static const Kernel k =
      kernel(nn_kernel_name<T>("two_hot"),
             [](At<1> at, Grid<T, 2> x, Grid<T, 1> targets, Out<T, 1> losses, Out<T, 2> dx, Param<T> share) {
               const Val<i32> row = at.x;
               const TwoHotBins<T> bins(x.size(1));
               const SoftmaxNumbers<T> s = softmax_numbers<T>(x, row);
               const auto target = bins.pair(targets[at]);
               const Val<T> mean = fma(target.upper, x(row, target.low + 1) - s.largest,
                                       (T(1) - target.upper) * (x(row, target.low) - s.largest));
               losses[at] = log(s.sum) - mean;
               for_(0, bins.count, [&](Val<i32> j) {
                 dx(row, j) = share * (exp(x(row, j) - s.largest) / s.sum - target.weight(j));
               });
             });
  return k;
}
template const Kernel& two_hot_kernel<f32>();
template const Kernel& two_hot_kernel<f64>();

template <class T>
const Kernel& two_hot_values_kernel() {
  static const Kernel k =
      kernel(nn_kernel_name<T>("two_hot_values"), [](At<1> at, Grid<T, 2> x, Out<T, 1> values) {
        const Val<i32> row = at.x;
        const SoftmaxNumbers<T> s = softmax_numbers<T>(x, row);
        const TwoHotBins<T> bins(x.size(1));
        values[at] = bins.weighted_sum([&](const Val<i32>& j) { return exp(x(row, j) - s.largest); }) / s.sum;
      });
  return k;
}
template const Kernel& two_hot_values_kernel<f32>();
template const Kernel& two_hot_values_kernel<f64>();

void two_hot_values(const Device& device, const Buffer& outputs, const Buffer& values) {
  if (!outputs || !values || outputs.shape().rank() != 2 || outputs.shape()[1] < 2 ||
      values.elements() != outputs.shape()[0] || values.storage() != outputs.storage() ||
      (outputs.storage() != Storage::f32 && outputs.storage() != Storage::f64))
    throw InputError("outputs and values", "nn::two_hot_values",
                     "f32 or f64 (rows, bins) and (rows) with two bins or more");
  by_type(outputs.storage(), [&]<class T>(T) {
    device.launch(two_hot_values_kernel<T>(), {outputs.shape()[0]}, outputs,
                  values.reshape({outputs.shape()[0]}));
  });
}

template <class T>
const Kernel& hits_kernel() {
  static const Kernel k =
      kernel(nn_kernel_name<T>("hits"), [](At<1> at, Grid<T, 2> x, Grid<i32, 1> targets, Out<u32, 1> hits) {
        const Val<i32> row = at.x;
        Var<T> largest = x(row, 0);
        Var<i32> place = 0;
        for_(1, x.size(1), [&](Val<i32> j) {
          const Val<T> here = x(row, j);
          if_(here > largest, [&] {
            largest = here;
            place = j;
          });
        });
        hits[at] = select(place == targets[at], Val<u32>(1u), Val<u32>(0u));
      });
  return k;
}
template const Kernel& hits_kernel<f32>();
template const Kernel& hits_kernel<f64>();

LossHead::LossHead(Loss loss, const Shape& output, Storage storage)
    : loss_(loss), output_(output), storage_(storage) {
  if (loss == Loss::two_hot && output[output.rank() - 1] < 2)
    throw InputError(fmt::format("outputs {}", to_string(output)), "network", "two bins or more for two_hot");
}

int64_t LossHead::row_count(int64_t examples) const {
  return examples * (output_.elements() / output_[output_.rank() - 1]);
}
int64_t LossHead::terms(int64_t examples) const {
  return loss_ == Loss::mean_squared ? examples * output_.elements() : row_count(examples);
}

void LossHead::check(int64_t examples, const Buffer& targets) const {
  const int64_t count = terms(examples);
  const Storage storage = target_storage();
  if (!targets || targets.elements() != count || targets.storage() != storage || !targets.contiguous())
    throw InputError(
        targets
            ? fmt::format("targets {} of {} elements", lockstep::name(targets.storage()), targets.elements())
            : "no targets",
        "batch", fmt::format("{} of {} elements for {}", lockstep::name(storage), count, name(loss_)));
}

Buffer LossHead::launch(const Pass& pass, const Buffer& outputs, const Buffer& targets, const Buffer& loss,
                        bool gradient, int64_t whole) {
  const Device& device = pass.device;
  const int64_t columns = output_[output_.rank() - 1], rows = row_count(pass.examples);
  const int64_t count = terms(pass.examples);
  const Buffer losses = row_losses_.get(device, storage_, {count});
  const bool needs = gradient || loss_ != Loss::cross_entropy;
  const Buffer d = needs ? gradients_.get(device, storage_, {rows, columns}) : Buffer{};
  by_type(storage_, [&]<class T>(T) {
    const double share = double(T(1.0 / double(whole > 0 ? terms(whole) : count)));
    const Buffer y = outputs.reshape({rows, columns}), t = targets.reshape({count});
    if (loss_ == Loss::mean_squared)
      device.launch(mean_squared_kernel<T>(), {count}, y.reshape({count}), t, losses, d.reshape({count}),
                    share);
    else if (loss_ == Loss::two_hot)
      device.launch(two_hot_kernel<T>(), {rows}, y, t, losses, d, share);
    else if (gradient)
      device.launch(cross_entropy_kernel<T>(true), {rows}, y, t, losses, d, share);
    else
      device.launch(cross_entropy_kernel<T>(false), {rows}, y, t, losses);
    primitives::reduce(device, primitives::Reduce::sum, losses, loss);
    primitives::scale(device, share, loss);
  });
  return d;
}

int64_t LossHead::correct(const Pass& pass, const Buffer& outputs, const Buffer& targets) {
  if (loss_ != Loss::cross_entropy)
    throw InputError(fmt::format("accuracy of {}", name(loss_)), "network", "cross_entropy");
  const int64_t columns = output_[output_.rank() - 1], rows = row_count(pass.examples);
  const Buffer hits = hits_.get(pass.device, Storage::u32, {rows});
  by_type(storage_, [&]<class T>(T) {
    pass.device.launch(hits_kernel<T>(), {rows}, outputs.reshape({rows, columns}), targets.reshape({rows}),
                       hits);
  });
  return int64_t(primitives::sum<u32>(pass.device, hits));
}

}  // namespace lockstep::nn
