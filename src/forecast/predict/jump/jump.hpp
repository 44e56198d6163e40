// Jumps along the path of a model's parameters: a ring of snapshots, a fit for each tensor, a line search by forward
// passes, and the way back.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "forecast/predict/jump/fit.hpp"
#include "forecast/predict/jump/network.hpp"
#include "lockstep/device.hpp"
#include "lockstep/forecast/predict.hpp"
#include "lockstep/nn/model.hpp"

namespace lockstep::forecast {

struct JumpOptions {
  int snapshots = 5;  // 2 to 8
  bool bf16_snapshots = false;
  int order = 2;
  double ridge = 1e-4, max_growth = 1;
  Directions directions = Directions::ridge;
  int64_t network_units = 8, network_samples = 512;
};

enum class Direction : uint8_t { path, nowhere, random };

/// Result of a line search. The losses are those of the held-out examples.
struct SearchResult {
  double before = 0, after = 0;
  double tau = 0;  // 0: the parameters are as they were, bit for bit
  int forwards = 0;
  double work = 0;  // multiplications of the network's moves, a parameter
};

/// Shape of the path over all tensors, weighted by the squares of their moves.
struct PathShape {
  double explained = 0;  // by the fits
  double cosine = 0;     // of the last two differences
};

class JumpEngine {
 public:
  /// Buffers of the model's device: snapshots, a copy of the parameters, tables. Throws InputError for options out of
  /// range and for bf16 snapshots of f64 parameters.
  JumpEngine(nn::TrainableModel& model, const JumpOptions& options);

  /// The parameters become the newest snapshot. Launches only.
  void push();
  void clear() { count_ = 0; }
  int count() const { return count_; }
  bool full() const { return count_ == options_.snapshots; }

  /// Fits the snapshots there are, tensor by tensor, and the network to parameters drawn by `draw` and `key`. Waits.
  PathShape fit(uint32_t draw = 0, uint32_t key = 0);
  /// Tries moves over tau * intervals spacings for tau = 0, 1/2, 1, 2 (for Direction::nowhere: 0 and 1, which is then
  /// taken) and leaves the parameters at the best one; a loss that is not finite is never the best. Needs fit() of the
  /// present snapshots, the newest of which is the parameters. `accept` may refuse the best move by its result.
  SearchResult search(double intervals, Direction direction, uint32_t draw, uint32_t key,
                      const std::function<void(const Buffer& loss)>& launch_loss,
                      const std::function<bool(const SearchResult&)>& accept);

  /// to (n) = mean of the snapshots there are, at least one. Launches only.
  void average(const Buffer& to) const;
  /// Euclidean length of the fitted move of each tensor.
  std::vector<double> lengths(double intervals) const;
  const std::vector<PathFit>& fits() const { return fits_; }
  /// Multiplications of a fit of the network; 0 where there is none.
  double network_work() const;

  // For checkpoints: the ring (snapshots, n) and the row of its newest snapshot.
  const Buffer& ring() const { return ring_; }
  int newest() const { return newest_; }
  void restore(int newest, int count) { newest_ = newest, count_ = count; }
  std::optional<DirectionNetwork>& network() { return network_; }

 private:
  int differences() const { return count_ - 1; }
  bool by_network() const { return network_ && differences() > network_->taps(); }
  int64_t sampled() const;
  double fit_network(uint32_t draw, uint32_t key);
  Buffer factors_of(double intervals) const;
  void launch_follow(double intervals) const;
  void launch_move(double intervals, Direction direction, uint32_t draw, uint32_t key);

  nn::TrainableModel& model_;
  JumpOptions options_;
  Storage ring_storage_;
  Buffer ring_, saved_, chunks_, losses_;
  int newest_ = 0, count_ = 0;
  std::vector<PathFit> fits_;               // one a tensor
  std::vector<std::vector<double>> grams_;  // (differences x differences) of each tensor
  std::optional<DirectionNetwork> network_;
  std::vector<double> scales_;  // root mean squares of the differences of each tensor
};

/// Multiplications of a fit and its moves over those of a gradient step of a dense network with `batch` examples, which
/// takes 6 a parameter and example.
double fit_cost(int snapshots, double batch);

}  // namespace lockstep::forecast
