// The table of points: a row a point and step, of weather, sun, fluxes and indices.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "urban/series/inputs/inputs.hpp"

namespace lockstep::urban {

class SeriesPointTable {
 public:
  explicit SeriesPointTable(const SeriesInputs& inputs);

  /// kPointValues of point number `point` at a step.
  void take(size_t point, size_t step, const float* values);
  /// Writes the file; an empty path where there are no points.
  std::filesystem::path write(const std::filesystem::path& file) const;
  /// The columns by name: point by point, step by step.
  void fill(std::map<std::string, std::vector<double>>& columns) const;

 private:
  size_t rows() const { return ids_.size() * times_.size(); }
  std::vector<std::string> ids_, times_;
  bool own_air_, own_wind_;  // each point has its own, which takes the place of the weather's
  std::vector<std::pair<std::string, std::vector<double>>> columns_;
  size_t first_value_ = 0;  // of the columns that take() fills
};

}  // namespace lockstep::urban
