// Summary of a series: mean, maximum, hours of sun, hours above thresholds, a grid each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/urban/series.hpp"

namespace lockstep::urban {

struct SummaryGrid {
  std::string name;  ///< "utci_hours_above_32"
  std::string title, unit;
  std::vector<float> values;
};

/// Hours above these count: of UTCI and PET the bounds of heat stress, of Tmrt those of heat-related mortality (S. Thorsson et al. 2014).
std::vector<double> thresholds_of(SeriesOutput output);

class SeriesSummary {
 public:
  /// Host memory of a pixel.
  static uint64_t bytes_of_pixel(const std::vector<SeriesOutput>& outputs);

  SeriesSummary(std::vector<SeriesOutput> outputs, size_t pixels, double step_hours);
  /// Begins anew.
  void clear();
  /// A step: a grid an output. Missing pixels are NaN.
  void add(const std::vector<std::vector<float>>& planes);
  std::vector<SummaryGrid> grids() const;

 private:
  /// Not initialised: the first step writes them.
  struct Sums {
    std::unique_ptr<double[]> sum;
    std::unique_ptr<float[]> highest;
    std::vector<double> bounds;
    std::vector<std::unique_ptr<int32_t[]>> above;  // a grid a bound
  };
  void add_block(size_t output, const float* values, size_t first, size_t last);
  const std::vector<SeriesOutput> outputs_;
  const size_t pixels_;
  const double step_hours_;
  int64_t steps_ = 0;
  std::vector<Sums> sums_;  // an output
};

}  // namespace lockstep::urban
