#include "forecast/predict/jump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "forecast/predict/jump_kernels.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

constexpr std::array<double, 4> kTaus{0, 0.5, 1, 2};

std::vector<double> numbers_of(const Device& device, const Buffer& buffer) {
  if (buffer.storage() == Storage::f64) return device.download<double>(buffer);
  const std::vector<float> narrow = device.download<float>(buffer);
  return {narrow.begin(), narrow.end()};
}

Buffer upload_numbers(const Device& device, const std::vector<double>& numbers, Storage storage,
                      Shape shape) {
  if (storage == Storage::f64) return device.upload(std::span<const double>(numbers), shape);
  const std::vector<float> narrow(numbers.begin(), numbers.end());
  return device.upload(std::span<const float>(narrow), shape);
}

void check_jump(const JumpOptions& o, Storage parameters) {
  const auto refuse = [](const std::string& what, const std::string& expected) {
    throw InputError(what, "forecast: jumps", expected);
  };
  if (o.snapshots < 2 || o.snapshots > kMostSnapshots)
    refuse(fmt::format("{} snapshots", o.snapshots), fmt::format("2 to {}", kMostSnapshots));
  if (o.order < 1) refuse(fmt::format("order {}", o.order), "1 or more");
  if (!(o.ridge >= 0)) refuse(fmt::format("ridge {}", o.ridge), "0 or more");
  if (!(o.max_growth > 0)) refuse(fmt::format("max_growth {}", o.max_growth), "more than 0");
  if (o.bf16_snapshots && parameters != Storage::f32)
    refuse(fmt::format("bf16 snapshots of {} parameters", name(parameters)), "f32 parameters");
}

}  // namespace

double fit_cost(int snapshots, double batch) {
  const double differences = snapshots - 1;
  return (differences * (differences + 1) + 2 * 4 * differences) / (6 * batch);
}

JumpEngine::JumpEngine(nn::TrainableModel& model, const JumpOptions& options)
    : model_(model), options_(options) {
  const Storage storage = model.parameters().storage();
  check_jump(options, storage);
  ring_storage_ = options.bf16_snapshots ? Storage::bf16 : storage;
  const int64_t n = nn::parameter_count(model.tensors());
  const Device& device = model.device();
  const std::vector<int32_t> chunks = jump_chunks(model.tensors());
  chunks_ = device.upload(std::span<const int32_t>(chunks), {int64_t(chunks.size()) / 3, 3});
  ring_ = device.allocate(ring_storage_, {options.snapshots, n});
  device.clear(ring_);
  saved_ = device.allocate(storage, {n});
  losses_ = device.allocate(storage, {int64_t(kTaus.size())});
}

void JumpEngine::push() {
  newest_ = count_ == 0 ? 0 : (newest_ + 1) % options_.snapshots;
  count_ = std::min(count_ + 1, options_.snapshots);
  const Buffer parameters = model_.parameters();
  const int64_t n = parameters.elements();
  if (n > 0)
    model_.device().launch(snapshot_kernel(parameters.storage(), ring_storage_), {n}, parameters,
                           ring_.rows(newest_, 1).reshape({n}));
}

PathShape JumpEngine::fit() {
  const Device& device = model_.device();
  const auto tensors = model_.tensors();
  const int count = differences();
  fits_.assign(tensors.size(), {});
  grams_.assign(tensors.size(), std::vector<double>(size_t(std::max(count * count, 0)), 0.0));
  PathShape shape;
  const int64_t chunks = chunks_.shape()[0];
  if (count < 1 || chunks == 0) return shape;
  const int pairs = gram_pairs(count);
  const Buffer partial = device.allocate(value_storage(ring_storage_), {chunks, pairs});
  device.launch(gram_kernel(ring_storage_, count_), {chunks}, ring_, chunks_, partial, newest_);
  const std::vector<double> parts = numbers_of(device, partial);
  const std::vector<int32_t> table = jump_chunks(tensors);
  for (int64_t c = 0; c < chunks; ++c) {
    std::vector<double>& gram = grams_[size_t(table[size_t(c) * 3])];
    for (int i = 0, q = 0; i < count; ++i)
      for (int j = i; j < count; ++j, ++q) {
        gram[size_t(i * count + j)] += parts[size_t(c * pairs + q)];
        if (i != j) gram[size_t(j * count + i)] += parts[size_t(c * pairs + q)];
      }
  }
  double energy = 0, older = 0, both = 0;
  for (size_t t = 0; t < fits_.size(); ++t) {
    const std::vector<double>& gram = grams_[t];
    fits_[t] = fit_path(gram, count, options_.order, options_.ridge, options_.max_growth);
    energy += gram[0];
    shape.explained += gram[0] * fits_[t].explained;
    if (count > 1) both += gram[1], older += gram[size_t(count) + 1];
  }
  if (energy > 0) shape.explained /= energy;
  if (energy > 0 && older > 0) shape.cosine = both / std::sqrt(energy * older);
  return shape;
}

std::vector<double> JumpEngine::lengths(double intervals) const {
  std::vector<double> found;
  const int count = differences();
  for (size_t t = 0; t < fits_.size(); ++t) {
    const std::vector<double> a = extrapolate(fits_[t], count, intervals);
    double square = 0;
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < count; ++j)
        square += a[size_t(i)] * a[size_t(j)] * grams_[t][size_t(i * count + j)];
    found.push_back(std::sqrt(std::max(square, 0.0)));
  }
  return found;
}

Buffer JumpEngine::factors_of(double intervals) const {
  std::vector<double> factors;
  for (const PathFit& fit : fits_)
    for (const double a : extrapolate(fit, differences(), intervals)) factors.push_back(a);
  return upload_numbers(model_.device(), factors, value_storage(ring_storage_),
                        {int64_t(fits_.size()), differences()});
}

void JumpEngine::launch_move(double intervals, Direction direction, uint32_t draw, uint32_t key) {
  const Device& device = model_.device();
  const Buffer parameters = model_.parameters();
  const Storage value = value_storage(ring_storage_);
  if (direction == Direction::nowhere) {
    device.copy(saved_, parameters);
  } else if (direction == Direction::path) {
    device.launch(move_kernel(ring_storage_, count_), {chunks_.shape()[0]}, ring_, chunks_, saved_,
                  factors_of(intervals), parameters, newest_);
  } else {
    // A tensor of n signs of size s has the length s sqrt(n).
    std::vector<double> sizes = lengths(intervals);
    const auto tensors = model_.tensors();
    for (size_t t = 0; t < sizes.size(); ++t)
      sizes[t] /= std::sqrt(double(std::max<int64_t>(tensors[t].size, 1)));
    device.launch(scatter_kernel(value), {chunks_.shape()[0]}, chunks_, saved_,
                  upload_numbers(device, sizes, value, {int64_t(sizes.size())}), parameters, draw, key);
  }
}

SearchResult JumpEngine::search(double intervals, Direction direction, uint32_t draw, uint32_t key,
                                const std::function<void(const Buffer&)>& launch_loss,
                                const std::function<bool(const SearchResult&)>& accept) {
  const Device& device = model_.device();
  const Buffer parameters = model_.parameters();
  device.copy(parameters, saved_);
  SearchResult result;
  if (differences() < 1 || parameters.elements() == 0) return result;
  const bool nowhere = direction == Direction::nowhere;
  std::vector<double> taus(kTaus.begin(), kTaus.end());
  if (nowhere) taus = {0, 1};
  for (size_t c = 0; c < taus.size(); ++c) {
    if (taus[c] > 0) launch_move(taus[c] * intervals, direction, draw, key);
    launch_loss(losses_.rows(int64_t(c), 1));
  }
  result.forwards = int(taus.size());
  const std::vector<double> losses = numbers_of(device, losses_.rows(0, int64_t(taus.size())));
  result.before = result.after = losses[0];
  for (size_t c = 1; c < taus.size(); ++c) {
    const bool better = nowhere || losses[c] < result.after || !std::isfinite(result.after);
    if (std::isfinite(losses[c]) && better) result.after = losses[c], result.tau = taus[c];
  }
  if (result.tau > 0 && accept(result)) {
    if (result.tau != taus.back()) launch_move(result.tau * intervals, direction, draw, key);
  } else {
    device.copy(saved_, parameters);
    result.tau = 0;
    result.after = result.before;
  }
  return result;
}

void JumpEngine::average(const Buffer& to) const {
  if (count_ > 0 && to.elements() > 0)
    model_.device().launch(average_kernel(ring_storage_, count_), {to.elements()}, ring_, to, newest_);
}

}  // namespace lockstep::forecast
