#include "urban/rays/ray_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lockstep::urban {
namespace {

int32_t bits(double value) { return std::bit_cast<int32_t>(static_cast<float>(value)); }

/// Steps that stay inside along one axis of `size` pixels: base + slope · position. One pixel generous.
struct Stay {
  double base, slope;
};
Stay stay_inside(double pixels_per_step, int64_t size) {
  const double rate = std::abs(pixels_per_step);
  if (rate < 1e-6) return {1e9, 0};  // moves less than a pixel over any raster
  if (pixels_per_step < 0) return {1 / rate, 1 / rate};
  return {static_cast<double>(size) / rate, -1 / rate};
}

int32_t corner(std::span<const RayStep> steps, int64_t pitch) {
  int64_t row = steps[0].drow, col = steps[0].dcol;
  for (const RayStep& step : steps) {
    row = std::min(row, step.drow);
    col = std::min(col, step.dcol);
  }
  return static_cast<int32_t>(row * pitch + col);
}

}  // namespace

std::vector<int32_t> pack_rays(std::span<const Ray> rays, const PaddedShape& shape, double pixel_size_m) {
  std::vector<int32_t> table(rays.size() * kRayHead, 0);
  for (size_t r = 0; r < rays.size(); ++r) {
    std::vector<RayStep> steps = rays[r].steps;
    if (steps.empty()) continue;
    while (steps.size() % kSpanSteps != 0) steps.push_back(steps.back());
    const RaySlope slope = ray_slope(rays[r].direction);
    const Stay row = stay_inside(slope.rows, shape.rows), col = stay_inside(slope.cols, shape.cols);
    int32_t* const head = &table[r * kRayHead];
    head[kFirstRecord] = static_cast<int32_t>(table.size());
    head[kSpans] = static_cast<int32_t>(steps.size() / kSpanSteps);
    head[kStepsPerMetre] = bits(1 / (slope.stride * slope.rise * pixel_size_m));
    head[kRowBase] = bits(row.base);
    head[kRowSlope] = bits(row.slope);
    head[kColBase] = bits(col.base);
    head[kColSlope] = bits(col.slope);

    for (size_t first = 0; first < steps.size(); first += kChunkSteps) {
      int32_t record[kChunkWords] = {};
      record[kCorner] = corner(std::span(steps).subspan(first, kChunkSteps), shape.pitch);
      record[kRiseBefore] = bits(first == 0 ? 0.0 : steps[first - 1].rise_m);
      if (first % kSpanSteps == 0)
        record[kSpanCorner] = corner(std::span(steps).subspan(first, kSpanSteps), shape.pitch);
      for (size_t k = 0; k < kChunkSteps; ++k) {
        const RayStep& step = steps[first + k];
        record[kOffsets + k] = static_cast<int32_t>(step.drow * shape.pitch + step.dcol);
        record[kRises + k] = bits(step.rise_m);
      }
      table.insert(table.end(), record, record + kChunkWords);
    }
  }
  return table;
}

}  // namespace lockstep::urban
