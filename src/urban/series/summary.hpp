// What remains of a series: mean, maximum, hours of sun, hours above thresholds, a grid each.
#pragma once

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
  SeriesSummary(std::vector<SeriesOutput> outputs, size_t pixels, double step_hours);
  /// Begins anew.
  void clear();
  /// A step: a grid an output. Missing pixels are NaN.
  void add(const std::vector<std::vector<float>>& planes);
  std::vector<SummaryGrid> grids() const;

 private:
  struct Sums {
    std::vector<double> sum;
    std::vector<float> highest;
    std::vector<std::vector<int32_t>> above;  // a grid a threshold
  };
  const std::vector<SeriesOutput> outputs_;
  const size_t pixels_;
  const double step_hours_;
  int64_t steps_ = 0;
  std::vector<Sums> sums_;
};

}  // namespace lockstep::urban
