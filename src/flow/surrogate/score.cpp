// Errors of rollouts compared with baselines that cost nothing, and models as arrays.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "flow/surrogate/kernels.hpp"
#include "lockstep/error.hpp"
#include "lockstep/flow/surrogate.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::flow {

namespace {

constexpr int kSumLanes = 128;

using NamedArrays = std::vector<std::pair<std::string, Array>>;

/// Sums of squares: of differences and of the truth, frame by frame.
struct Distance {
  double difference = 0, truth = 0;
  void add(double got, double want) {
    difference += (got - want) * (got - want);
    truth += want * want;
  }
  void add(const Distance& other) {
    difference += other.difference;
    truth += other.truth;
  }
  double relative() const {
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    return truth > 0 ? std::sqrt(difference / truth) : std::sqrt(difference);
  }
};

Array in_doubles(const Array& a) { return a.to(Storage::f64).packed(); }

/// sums[row, chunk] = |got - want|^2, |want|^2; one row of got for all of want, or one each.
template <class T>
const Kernel& distance_sums() {
  static const Kernel made =
      kernel(fmt::format("flow.surrogate.distance.{}", name(detail::kType<T>)),
             [](Group<2> g, Parameters& p) {
               const auto got = p.read<T, 2>("got"), want = p.read<T, 2>("want");
               const auto sums = p.write<T, 3>("sums");
               const Val<i32> row = g.id(1), chunk = g.id(0), from = min(row, got.size(0) - 1);
               Var<T> difference = T(0), truth = T(0);
               for_(chunk * int(kScoreChunk) + g.lane(), min((chunk + 1) * int(kScoreChunk), want.size(1)),
                    kSumLanes, [&](Val<i32> k) {
                      const Val<T> w = want(row, k), d = got(from, k) - w;
                      difference = fma(d, d, Val<T>(difference));
                      truth = fma(w, w, Val<T>(truth));
                    });
               const Val<T> differences = group_sum(Val<T>(difference)), truths = group_sum(Val<T>(truth));
               if_(g.lane() == 0, [&] {
                 sums(row, chunk, 0) = differences;
                 sums(row, chunk, 1) = truths;
               });
             },
             {{kSumLanes, 1, 1}, 0});
  return made;
}

/// Row by row, on the device; `got` may be one row for all.
std::vector<Distance> distances(const Device& device, const Buffer& got, const Buffer& want) {
  const int64_t rows = want.shape()[0], chunks = (want.shape()[1] + kScoreChunk - 1) / kScoreChunk;
  const Buffer sums = device.allocate(want.storage(), {rows, chunks, 2});
  device.launch(want.storage() == Storage::f64 ? distance_sums<f64>() : distance_sums<f32>(), {rows, chunks},
                Arguments().set("got", got).set("want", want).set("sums", sums));
  const Array read = in_doubles(device.download(sums));
  std::vector<Distance> all(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < chunks; ++c)
      all[size_t(r)].add(Distance{read.at<double>(r, c, 0), read.at<double>(r, c, 1)});
  return all;
}

double mean_error(const std::vector<Distance>& rows) {
  double sum = 0;
  for (const Distance& d : rows) sum += d.relative();
  return sum / double(rows.size());
}

RolloutScore scored(const std::vector<Distance>& surrogate, const std::vector<Distance>& persistence,
                    const std::vector<Distance>& climatology) {
  RolloutScore s;
  const auto filled = [](const std::vector<Distance>& rows, std::vector<double>& by_frame) {
    Distance all;
    for (const Distance& d : rows) {
      by_frame.push_back(d.relative());
      all.add(d);
    }
    return all.relative();
  };
  s.surrogate_all = filled(surrogate, s.surrogate);
  s.persistence_all = filled(persistence, s.persistence);
  s.climatology_all = filled(climatology, s.climatology);
  while (s.lost() && s.surrogate[size_t(s.horizon)] < s.persistence[size_t(s.horizon)]) ++s.horizon;
  return s;
}

/// Rollouts of one surrogate over parts of one series.
class Scorer {
 public:
  Scorer(Rollout& rollout, const Surrogate& model, const Buffer& latents, const Buffer& climatology,
         RolloutMode mode)
      : rollout_(rollout), model_(model), latents_(latents), climatology_(climatology), mode_(mode) {}

  /// From the frames before `first`, `count` frames.
  RolloutScore rolled_out(int64_t first, int64_t count, Buffer& out) const {
    const Device& device = rollout_.device();
    const int64_t delays = model_.options.delays;
    rollout_.start(latents_.rows(first - delays, delays));
    out = device.allocate(latents_.storage(), {count, model_.latent_size});
    rollout_.run(out, mode_);
    const Buffer truth = latents_.rows(first, count);
    return scored(distances(device, out, truth), distances(device, latents_.rows(first - 1, 1), truth),
                  distances(device, climatology_, truth));
  }

  /// Mean relative error of the frames first … first + count - 1, each from the true ones before it.
  double one_step(int64_t first, int64_t count) const {
    const int64_t delays = model_.options.delays, width = model_.latent_size;
    const Device& device = rollout_.device();
    const Buffer starts = device.allocate(latents_.storage(), {count * delays, width});
    const Buffer out = device.allocate(latents_.storage(), {count, width});
    for (int64_t k = 0; k < count; ++k)
      device.copy(latents_.rows(first + k - delays, delays), starts.rows(k * delays, delays));
    rollout_.start(starts);
    rollout_.run(out);
    return mean_error(distances(device, out, latents_.rows(first, count)));
  }
  double persistence(int64_t first, int64_t count) const {
    return mean_error(
        distances(rollout_.device(), latents_.rows(first - 1, count), latents_.rows(first, count)));
  }

 private:
  Rollout& rollout_;
  const Surrogate& model_;
  const Buffer &latents_, &climatology_;
  RolloutMode mode_;
};

}  // namespace

RolloutScore score_rollout(const Array& predicted, const Array& truth, const Array& start,
                           const Array& climatology) {
  const Sizes row{truth.rank() == 2 ? truth.size(1) : -1};
  if (truth.rank() != 2 || predicted.shape() != truth.shape() || start.shape() != row ||
      climatology.shape() != row)
    throw InputError(
        fmt::format("frames of shape {} and {}", to_string(predicted.shape()), to_string(truth.shape())),
        "flow score", "two of one shape (n, D), and two frames (D)");
  const Array got = in_doubles(predicted), want = in_doubles(truth), first = in_doubles(start),
              mean = in_doubles(climatology);
  std::vector<Distance> rows[3];
  for (int64_t k = 0; k < want.size(0); ++k) {
    Distance one[3];
    for (int64_t j = 0; j < want.size(1); ++j) {
      const double w = want.at<double>(k, j);
      one[0].add(got.at<double>(k, j), w);
      one[1].add(first.at<double>(j), w);
      one[2].add(mean.at<double>(j), w);
    }
    for (int c = 0; c < 3; ++c) rows[c].push_back(one[c]);
  }
  return scored(rows[0], rows[1], rows[2]);
}

std::vector<Kernel> scoring_kernels() { return {distance_sums<f64>()}; }

SurrogateScores score(Rollout& rollout, const Surrogate& model, const Buffer& latents,
                      const Buffer& climatology, RolloutMode mode) {
  const int64_t frames = latents.shape().rank() == 2 ? latents.shape()[0] : 0;
  if (frames <= model.train_frames || latents.shape()[1] != model.latent_size ||
      climatology.shape() != Shape{1, model.latent_size} || climatology.storage() != latents.storage())
    throw InputError(fmt::format("latents of shape {}", to_string(Sizes(latents.shape()))), "flow score",
                     fmt::format("the series that was learnt from: over {} frames of {} numbers",
                                 model.train_frames, model.latent_size));
  const Scorer scorer(rollout, model, latents, climatology, mode);
  const int64_t delays = model.options.delays, train = model.train_frames, rest = frames - train;
  SurrogateScores s;
  s.in_sample = scorer.rolled_out(delays, train - delays, s.predicted_in_sample);
  s.held_out = scorer.rolled_out(train, rest, s.predicted_held_out);
  s.one_step_in_sample = scorer.one_step(delays, train - delays);
  s.one_step_held_out = scorer.one_step(train, rest);
  s.one_step_persistence = scorer.persistence(train, rest);
  return s;
}

SurrogateScores score(const Device& device, const Surrogate& model, const Array& latents, Storage precision,
                      RolloutMode mode) {
  Rollout rollout(device, model, precision);
  const Buffer climatology = device.upload(model.climatology.reshape({1, model.latent_size}).to(precision));
  return score(rollout, model, device.upload(latents.to(precision).packed()), climatology, mode);
}

NamedArrays to_arrays(const Surrogate& m) {
  const SurrogateOptions& o = m.options;
  return {{"surrogate",
           Array::of(std::vector<double>{double(o.method), o.train_share, double(o.delays), double(o.rank),
                                         o.share, o.lambda, double(m.train_frames)})},
          {"basis", m.basis},
          {"step", m.step},
          {"climatology", m.climatology},
          {"last", m.last}};
}

Surrogate surrogate_from(const NamedArrays& arrays, std::string_view where) {
  const auto take = [&](const char* name, int rank) {
    for (const auto& [key, array] : arrays)
      if (key == name && array.rank() == rank && !first_not_finite(array.to(Storage::f64).packed()))
        return in_doubles(array);
    throw InputError(fmt::format("no finite array {} of {} axes", name, rank), std::string(where),
                     "a model that `lockstep flow learn` wrote");
  };
  const auto expect = [&](bool good, const char* what) {
    if (!good)
      throw InputError(fmt::format("{} that do not fit each other", what), std::string(where),
                       "a model that `lockstep flow learn` wrote");
  };
  Surrogate m;
  const Array numbers = take("surrogate", 1);
  expect(numbers.elements() == 7, "settings");
  const auto n = numbers.as<double>();
  expect((n[0] == 0 || n[0] == 1) && n[2] >= 1 && n[2] <= 64 && n[3] >= 0 && n[3] < 1e15 && n[6] >= 0 &&
             n[6] < 1e15,
         "settings");
  m.options = {SurrogateMethod(int(n[0])), n[1], int64_t(n[2]), int64_t(n[3]), n[4], n[5]};
  m.train_frames = int64_t(n[6]);
  m.basis = take("basis", 2);
  m.step = take("step", 2);
  m.climatology = take("climatology", 1);
  m.last = take("last", 2);
  m.rank = m.basis.size(0);
  m.latent_size = m.basis.size(1);
  const int64_t size = m.state_size();
  expect(m.rank >= 1 && m.latent_size >= 1 && m.latent_size <= kMaxLatent && size <= kMaxLatent, "sizes");
  expect(m.step.shape() == Sizes{size, size} && m.climatology.size(0) == m.latent_size &&
             m.last.shape() == Sizes{m.options.delays, m.latent_size},
         "arrays");
  return m;
}

}  // namespace lockstep::flow
