// Statistics of the values of a grid in a zone, weighted by the share of each pixel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/urban/areas.hpp"

namespace lockstep::urban {

/// Pixels with their shares.
struct Zone {
  size_t area = 0;  ///< its number
  std::string group;
  std::vector<uint32_t> pixels;
  std::vector<double> shares;
};

struct ZonalStatistics {
  double weight = 0;  ///< pixels
  double mean = 0, deviation = 0, minimum = 0, maximum = 0;
  std::vector<double> percentiles;
};

/// Values of a zone that are not missing, with their weights.
struct ZoneValues {
  std::vector<float> values;
  std::vector<double> weights;

  void take(const Zone& zone, std::span<const float> grid);
  /// A share (percent) of the weight has values of at most its percentile. NaN where nothing has a weight.
  ZonalStatistics statistics(std::span<const double> shares) const;
  /// Weight of the values for which `holds` is true.
  template <class Holds>
  double weight_where(Holds holds) const {
    double sum = 0;
    for (size_t k = 0; k < values.size(); ++k)
      if (holds(static_cast<double>(values[k]))) sum += weights[k];
    return sum;
  }
};

}  // namespace lockstep::urban
