#include "forecast/predict/jump/jump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/numbers/random.hpp"
#include "forecast/predict/jump/jump_kernels.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

constexpr std::array<double, 4> kTaus{0, 0.5, 1, 2};
constexpr double kLeastScale = 1e-30;  // of tensors that do not move
constexpr int kMostUnits = 64, kMostSamples = 1 << 20;

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
  if (o.directions == Directions::ridge) return;
  if (o.snapshots < 3) refuse(fmt::format("{} snapshots", o.snapshots), "3 or more for --directions mlp");
  if (o.network_units < 1 || o.network_units > kMostUnits)
    refuse(fmt::format("a network of {} units", o.network_units), fmt::format("1 to {}", kMostUnits));
  if (o.network_samples < 8 || o.network_samples > kMostSamples)
    refuse(fmt::format("a network fitted to {} parameters", o.network_samples),
           fmt::format("8 to {}", kMostSamples));
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
  if (options.directions == Directions::mlp)
    network_.emplace(std::min(options.order, options.snapshots - 2), int(options.network_units),
                     options.ridge);
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

PathShape JumpEngine::fit(uint32_t draw, uint32_t key) {
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
  scales_.clear();
  if (by_network() && energy > 0) shape.explained = fit_network(draw, key);
  return shape;
}

int64_t JumpEngine::sampled() const {
  return std::min<int64_t>(options_.network_samples, model_.parameters().elements());
}

/// To all parameters where they are few, else to some drawn at random, in units of their tensors' differences.
double JumpEngine::fit_network(uint32_t draw, uint32_t key) {
  const Device& device = model_.device();
  const auto tensors = model_.tensors();
  const int count = differences();
  for (size_t t = 0; t < tensors.size(); ++t) {
    double squares = 0;
    for (int j = 0; j < count; ++j) squares += grams_[t][size_t(j) * size_t(count + 1)];
    scales_.push_back(std::sqrt(squares / count / double(std::max<int64_t>(tensors[t].size, 1))));
  }
  const int64_t n = model_.parameters().elements(), samples = sampled();
  std::vector<int32_t> places;
  for (int64_t k = 0; k < samples; ++k)
    places.push_back(n == samples ? int32_t(k)
                                  : int32_t(multiply_high(philox(uint32_t(k), draw, key), uint32_t(n))));
  std::sort(places.begin(), places.end());
  const Buffer found = device.allocate(value_storage(ring_storage_), {samples, count});
  device.launch(sample_kernel(ring_storage_, count_), {samples}, ring_, device.upload(places), found,
                newest_);
  const std::vector<double> d = numbers_of(device, found);
  std::vector<double> x, y;
  const int taps = network_->taps();
  size_t t = 0;
  for (size_t k = 0; k < places.size(); ++k) {
    while (places[k] >= tensors[t].offset + tensors[t].size) ++t;
    const double unit = std::max(scales_[t], kLeastScale);
    for (int first = 0; first + taps < count; ++first) {
      const double* row = d.data() + k * size_t(count) + size_t(first);
      y.push_back(row[0] / unit);
      for (int j = 1; j <= taps; ++j) x.push_back(row[j] / unit);
    }
  }
  return network_->fit(x, y);
}

double JumpEngine::network_work() const {
  if (!by_network()) return 0;
  const int taps = network_->taps();
  return network_fit_work(taps, network_->units(), double(sampled() * (differences() - taps)));
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

void JumpEngine::launch_follow(double intervals) const {
  const Device& device = model_.device();
  const Storage value = value_storage(ring_storage_);
  std::vector<double> scales = scales_;
  for (double& scale : scales) scale = std::max(scale, kLeastScale);
  const std::vector<double>& w = network_->weights();
  const Buffer units = upload_numbers(device, scales, value, {int64_t(scales.size())}),
               weights = upload_numbers(device, w, value, {int64_t(w.size())});
  const double count = std::ceil(intervals), last = intervals - count + 1;
  device.launch(follow_kernel(ring_storage_, network_->taps()), {chunks_.shape()[0]}, ring_, chunks_, saved_,
                units, weights, model_.parameters(), newest_, network_->units(), int(count), last,
                options_.max_growth);
}

void JumpEngine::launch_move(double intervals, Direction direction, uint32_t draw, uint32_t key) {
  const Device& device = model_.device();
  const Buffer parameters = model_.parameters();
  const Storage value = value_storage(ring_storage_);
  if (direction == Direction::nowhere) {
    device.copy(saved_, parameters);
  } else if (direction == Direction::path && by_network() && !scales_.empty()) {
    launch_follow(intervals);
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
  const auto move = [&](double tau) {
    launch_move(tau * intervals, direction, draw, key);
    if (direction == Direction::path && by_network())
      result.work += std::ceil(tau * intervals) * network_value_work(network_->taps(), network_->units());
  };
  for (size_t c = 0; c < taus.size(); ++c) {
    if (taus[c] > 0) move(taus[c]);
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
    if (result.tau != taus.back()) move(result.tau);
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
