// The objective's value of pixels of a city with more trees, by the model of a run, window by window.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "urban/plant/objective.hpp"
#include "urban/plant/sites.hpp"
#include "urban/series/tiles.hpp"

namespace lockstep::urban {

/// Evaluates candidates, several at a time where that keeps a device busy. Each has a city of its own for it.
class PlantEvaluation {
 public:
  /// `inputs` outlives it and has grids of plants. The city counts as high as the highest tree from the start, so that the
  /// reach of rays does not depend on where trees are.
  PlantEvaluation(Context& context, const SeriesInputs& inputs, const Walls& walls,
                  const PlantObjective& objective, std::vector<CrownPixel> crown,
                  std::vector<PlantSite> sites, const PlantOptions& options);
  ~PlantEvaluation();

  /// Of each candidate next to the trees that are there.
  std::vector<double> evaluate(std::span<const size_t> candidates);
  /// Plants a tree that was evaluated next to all others.
  void plant(size_t site);

  bool changes(size_t site, size_t other) const {
    return !common_box(reaches_[site], reaches_[other]).empty();
  }
  /// Crowns share a pixel.
  bool excludes(size_t site, size_t other) const;

  const PixelRect& window(size_t site) const { return reaches_[site].box; }
  /// The objective over the whole grid, with the trees that are planted.
  double value() const { return objective_.value(values_); }
  int64_t pixels() const { return pixels_; }
  const std::vector<PlantSite>& sites() const { return sites_; }

 private:
  struct Worker;
  struct Lease;
  std::vector<float> score(Worker& worker, const PixelRect& rect);
  double evaluate(Worker& worker, size_t site);
  std::vector<float> cut(const std::vector<float>& grid, const PixelRect& rect) const;

  Context& context_;
  const SeriesInputs& inputs_;
  const PlantObjective& objective_;
  const std::vector<CrownPixel> crown_;
  const std::vector<PlantSite> sites_;
  const CanopyHeights convention_;
  std::function<void(int64_t, int64_t)> on_progress_;
  int64_t side_ = 0;  ///< of the widest tile that the device takes
  std::vector<TreeReach> reaches_;
  std::vector<float> values_;             ///< of the whole grid, with the trees that are planted
  std::vector<std::vector<float>> with_;  ///< of each site's window, with its tree too
  std::vector<PixelRect> stale_;          ///< of it, changed by trees since
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex mutex_;
  std::vector<Worker*> idle_;
  int64_t pixels_ = 0;  ///< evaluated of candidates
};

}  // namespace lockstep::urban
