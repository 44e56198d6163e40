#include "forecast/train/source.hpp"

#include <numeric>

#include "core/numbers/random.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::forecast {

namespace {

constexpr uint64_t kOrderUse = uint64_t(2) << 40, kWindowUse = uint64_t(3) << 40;

/// In [0, below).
int64_t draw_below(uint64_t counter, uint32_t key, int64_t below) {
  return int64_t((uint64_t(philox(uint32_t(counter), uint32_t(counter >> 32), key)) * uint64_t(below)) >> 32);
}

Buffer upload_numbers(const Device& device, const Array& array, Storage storage) {
  const int64_t rows = array.size(0);
  const Shape shape{rows, array.elements() / rows};
  if (array.storage() == Storage::i32)
    return device.upload(std::span(reinterpret_cast<const i32*>(array.data()), size_t(array.elements())),
                         shape);
  const auto* numbers = reinterpret_cast<const f32*>(array.data());
  if (storage == Storage::f32) return device.upload(std::span(numbers, size_t(array.elements())), shape);
  return device.upload(std::span<const f64>(std::vector<f64>(numbers, numbers + array.elements())), shape);
}

}  // namespace

template <class T>
const Kernel& take_rows_kernel() {
  static const Kernel k = kernel("forecast.take_rows." + std::string(name(lockstep::detail::kType<T>)),
                                 [](At<2> at, Grid<T, 2> from, Grid<i32, 1> rows, Out<T, 2> to) {
                                   to[at] = from(rows[at.y], Val<i32>(at.x));
                                 });
  return k;
}
template const Kernel& take_rows_kernel<f32>();
template const Kernel& take_rows_kernel<f64>();
template const Kernel& take_rows_kernel<i32>();

const Kernel& take_windows_kernel() {
  static const Kernel k = kernel("forecast.take_windows", [](At<2> at, Grid<i32, 1> text, Grid<i32, 1> starts,
                                                             Out<i32, 2> inputs, Out<i32, 2> targets) {
    const Val<i32> place = starts[at.y] + Val<i32>(at.x);
    inputs[at] = text[place];
    targets[at] = text[place + 1];
  });
  return k;
}

Sampler::Sampler(const Dataset& data, uint64_t seed, int64_t batch)
    : count_(data.count()), batch_(batch), seed_(seed) {
  if (data.window > 0) starts_ = data.inputs.elements() - data.window;
}

const std::vector<i32>& Sampler::epoch(int64_t number) {
  if (number == epoch_number_) return order_;
  epoch_number_ = number;
  order_.resize(size_t(count_));
  std::iota(order_.begin(), order_.end(), 0);
  const uint32_t key = random_key(seed_, kOrderUse + uint64_t(number));
  for (int64_t i = count_ - 1; i > 0; --i)
    std::swap(order_[size_t(i)], order_[size_t(draw_below(uint64_t(i), key, i + 1))]);
  return order_;
}

std::vector<i32> Sampler::examples(int64_t step) {
  std::vector<i32> numbers;
  for (int64_t k = 0; k < batch_; ++k) {
    const int64_t place = step * batch_ + k;
    if (starts_ > 0)
      numbers.push_back(i32(draw_below(uint64_t(place), random_key(seed_, kWindowUse), starts_)));
    else
      numbers.push_back(epoch(place / count_)[size_t(place % count_)]);
  }
  return numbers;
}

ExampleSource::ExampleSource(const Device& device, const Dataset& data, Storage storage)
    : device_(device), window_(data.window) {
  inputs_ = upload_numbers(device, data.inputs, storage);
  if (window_ > 0) {
    inputs_ = inputs_.reshape({inputs_.elements()});
    return;
  }
  targets_ = upload_numbers(device, data.targets, storage);
  width_ = inputs_.shape()[1];
  target_width_ = targets_.shape()[1];
}

nn::Batch ExampleSource::gather(const std::vector<i32>& examples) {
  const int64_t n = int64_t(examples.size());
  if (!numbers_ || numbers_.elements() != n) {
    numbers_ = device_.allocate<i32>({n});
    batch_inputs_ = device_.allocate(inputs_.storage(), {n, window_ > 0 ? window_ : width_});
    batch_targets_ = device_.allocate(window_ > 0 ? Storage::i32 : targets_.storage(),
                                      {n, window_ > 0 ? window_ : target_width_});
  }
  device_.write(numbers_, examples.data(), numbers_.bytes());
  if (window_ > 0) {
    device_.launch(take_windows_kernel(), batch_inputs_.shape(), inputs_, numbers_, batch_inputs_,
                   batch_targets_);
  } else {
    const auto take = [&](const Buffer& from, const Buffer& to) {
      const Kernel& k = from.storage() == Storage::i32   ? take_rows_kernel<i32>()
                        : from.storage() == Storage::f64 ? take_rows_kernel<f64>()
                                                         : take_rows_kernel<f32>();
      device_.launch(k, to.shape(), from, numbers_, to);
    };
    take(inputs_, batch_inputs_);
    take(targets_, batch_targets_);
  }
  return {batch_inputs_, batch_targets_, n};
}

}  // namespace lockstep::forecast
