// Steps of rays packed for the kernels: one buffer of i32, floats by their bits.
//
// A head of kRayHead words a ray, then its steps in chunks of 8, a record of kChunkWords words each; four
// chunks make a span of 32. The last span is filled up with copies of the last step, which change no result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "urban/rays/steps.hpp"

namespace lockstep::urban {

inline constexpr int kChunkSteps = 8;
inline constexpr int kSpanSteps = 32;
inline constexpr int kSpanChunks = kSpanSteps / kChunkSteps;

/// Words of a ray's head. A ray stays inside the window for fewer than row_base + row_slope · row steps,
/// columns alike; both are a step or two generous.
inline constexpr int kFirstRecord = 0, kSpans = 1, kStepsPerMetre = 2, kRowBase = 3, kRowSlope = 4,
                     kColBase = 5, kColSlope = 6, kRayHead = 8;

/// Words of a chunk. Corners are offsets of the north-western corner of a box of kChunkSteps² or kSpanSteps²
/// pixels that holds all pixels of the chunk, or of the span that begins with it.
inline constexpr int kCorner = 0, kRiseBefore = 1, kSpanCorner = 2, kOffsets = 4, kRises = 12,
                     kChunkWords = 20;

/// Pixels around a window that belong to no raster: rays overshoot its edge by less than that.
inline constexpr int kPad = 40;

/// Place of a window of rows × cols in a buffer with kPad pixels around it.
struct PaddedShape {
  int64_t rows = 0, cols = 0;  ///< of the window
  int64_t pitch = 0;           ///< columns of the buffer, a multiple of 16
  PaddedShape() = default;
  PaddedShape(int64_t r, int64_t c) : rows(r), cols(c), pitch((c + 2 * kPad + 15) / 16 * 16) {}
  int64_t padded_rows() const { return rows + 2 * kPad; }
  int64_t elements() const { return padded_rows() * pitch; }
  int64_t index(int64_t row, int64_t col) const { return (row + kPad) * pitch + col + kPad; }
};

struct Ray {
  Direction direction;
  std::vector<RayStep> steps;  ///< empty: a ray that always sees the sky
};

std::vector<int32_t> pack_rays(std::span<const Ray> rays, const PaddedShape& shape, double pixel_size_m);

}  // namespace lockstep::urban
