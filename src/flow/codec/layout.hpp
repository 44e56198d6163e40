// The position of each mode in a latent and the modes of each band: all that follows from a plan.
#pragma once

#include <vector>

#include "lockstep/flow/codec.hpp"

namespace lockstep::flow {

/// A mode of the full plane, wavenumbers as whole numbers.
struct PlaneMode {
  int64_t iy = 0, ix = 0;
};

struct CodecLayout {
  int64_t nx = 0, ny = 0;
  int64_t columns = 0;  // of the half spectrum, nx / 2 + 1
  std::vector<PlaneMode>
      modes;  // coefficients in the order of the latent; v2: one half plane, the mean first
  /// classic: [Re modes, Im modes, support, E middle, E high, K, Re anchors, Im anchors].
  /// v2: [mean, Re, Im, Re, Im … of the other modes, band amplitudes].
  int64_t size = 0;
  int64_t extras = 0;  // where the four numbers of classic or the amplitudes of v2 begin

  // Bands 1, 2 … of modes that no coefficient holds; 0 for the others. Of the half spectrum, row by row:
  int64_t bands = 0;
  std::vector<int32_t> band;    // | 256 where the mode belongs to it, | 512 where its mirror does
  std::vector<float> weight;    // modes of the full plane that this one stands for: 0, 1 or 2
  std::vector<double> members;  // modes of the full plane in each band; [0] unused

  int64_t row_of(int64_t iy) const { return iy < 0 ? iy + ny : iy; }
  int64_t signed_row(int64_t row) const { return row <= (ny - 1) / 2 ? row : row - ny; }
  double points() const { return double(nx) * double(ny); }
};

/// Frames that a codec encodes and decodes at once.
int64_t frames_at_once(const BoxGrid& grid);
/// |k| in units of 2 pi / max(Lx, Ly).
double plane_wavenumber(const BoxGrid& grid, int64_t iy, int64_t ix);
/// Throws InputError for options out of range.
void check_codec(const CodecOptions& options);
/// Modes of classic's middle band in the full plane, in the order of a transform.
std::vector<int32_t> middle_modes(const CodecOptions& options);
CodecLayout codec_layout(const CodecPlan& plan);
/// Why a plan of a file, of sound options, is none that codec_layout and a codec may take; empty where it is one.
std::string plan_fault(const CodecPlan& plan);
/// Odd number of points of v2's box filter: as wide, against the cut, as classic's 11 of 64 points against 8.
int64_t box_points(const CodecOptions& options);
/// v2: the smallest |k| within which `share` of the enstrophy lies, of a half spectrum (ny, nx / 2 + 1, 2).
double cut_of_share(const CodecOptions& options, std::span<const float> spectrum);
/// The plan of options and the half spectrum (ny, nx / 2 + 1, 2) of the first frame: for v2 that of the frame, for
/// classic that of its residual. `layout`, where given, gets that of the plan.
CodecPlan plan_codec(const CodecOptions& options, std::span<const float> spectrum,
                     CodecLayout* layout = nullptr);

/// v2's scales as files have them: that of the mean, one of each ring |k| = j (1 where there is none), those of the
/// bands; and back. Throws InputError for another number of them than the options call for.
std::vector<float> ring_table(const CodecPlan& plan);
std::vector<float> scales_of_table(const CodecOptions& options, std::span<const float> table);

}  // namespace lockstep::flow
