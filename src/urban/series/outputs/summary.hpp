// Summary of a series: mean, maximum, hours of sun, hours above thresholds, a grid each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/urban/series.hpp"
#include "urban/series/inputs/inputs.hpp"

namespace lockstep::urban {

struct SummaryGrid {
  std::string name;  ///< "utci_hours_above_32"
  std::string title, unit;
  std::vector<float> values;
};

/// Hours above these count: of UTCI and PET the bounds of heat stress, of Tmrt those of heat-related mortality (S. Thorsson et al. 2014).
std::vector<double> thresholds_of(SeriesOutput output);

/// The weather of a step, as far as its summary needs it.
struct SummaryStep {
  bool sunshine = true;  ///< the beam makes sunshine, see kSunshine
  /// Tmrt within which UTCI is fitted; none where the first is the higher.
  double fitted_from_c = -1e30, fitted_to_c = 1e30;
};
/// Beam on a plane that faces the sun from which it counts as sunshine (W/m²; WMO Guide No. 8).
inline constexpr double kSunshine = 120;
std::vector<SummaryStep> summary_steps(const SeriesInputs& inputs);

/// Bounds of an output that a summary counts the hours of: those of thresholds_of(), and the caller's own.
std::vector<Threshold> bounds_of(SeriesOutput output, const std::vector<Threshold>& own);
/// Throws OptionError for a bound of an output that is none of `outputs`.
std::vector<Threshold> own_bounds(const SeriesOptions& options);
/// Throws OptionError for such bounds, and for hours without a step.
void check_summary(const SeriesOptions& options, const SeriesInputs& inputs);

/// The title of a grid of a summary, by its name: "utci_hours_above_32"; other names as they are.
std::string summary_title(std::string_view grid);

class SeriesSummary {
 public:
  /// Host memory of a pixel.
  static uint64_t bytes_of_pixel(const SeriesOptions& options);

  /// `parts`: of a step, over which its shadow is a mean.
  SeriesSummary(std::vector<SeriesOutput> outputs, size_t pixels, double step_hours, int parts = 1,
                const std::vector<Threshold>& own = {});
  /// Begins again.
  void clear();
  /// A step: a grid an output. Missing pixels are NaN.
  void add(const std::vector<std::vector<float>>& planes, const SummaryStep& step = {});
  std::vector<SummaryGrid> grids() const;

 private:
  /// Not initialised: the first step writes them.
  struct Sums {
    std::unique_ptr<double[]> sum;
    std::unique_ptr<float[]> highest;
    std::vector<Threshold> bounds;
    std::vector<std::unique_ptr<int32_t[]>> beyond;  // a grid a bound
    std::unique_ptr<int32_t[]> outside;              // of UTCI: steps outside of its fit
  };
  void add_block(size_t output, const std::vector<std::vector<float>>& planes, const SummaryStep& step,
                 size_t first, size_t last);
  const std::vector<SeriesOutput> outputs_;
  const size_t pixels_;
  const double step_hours_;
  const float parts_;
  int64_t steps_ = 0;
  std::vector<Sums> sums_;  // an output
};

}  // namespace lockstep::urban
