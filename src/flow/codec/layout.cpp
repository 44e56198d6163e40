#include "flow/codec/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "flow/box.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace {

constexpr int64_t kFramesAtOnce = 64, kPointsAtOnce = 1 << 20;
constexpr double kRingSlack = 1 + 1e-12;  // |k| = cut counts as inside
constexpr double kLeastCut = 1e-6;        // the octaves beyond it have numbers of eight bits
constexpr double kLeastScale = 1e-6;      // of the field's root mean square
constexpr double kLeastBand = 1e-3;       // the same for amplitudes of bands

void require_codec(bool good, const char* option, const std::string& what, const char* expected) {
  if (!good) throw schema_of<CodecOptions>().error({OptionError::Kind::invalid, option, what, expected, ""});
}

/// Highest wavenumber along an axis that has a partner of other sign.
int64_t paired(int64_t n) { return (n - 1) / 2; }

/// f(row, column, iy, ix) of the half spectrum.
template <class F>
void each_half_mode(int64_t ny, int64_t nx, F f) {
  for (int64_t row = 0; row < ny; ++row)
    for (int64_t column = 0; column <= nx / 2; ++column)
      f(row, column, row <= (ny - 1) / 2 ? row : row - ny, column);
}

/// How many modes of the full plane a column of the half spectrum stands for.
double weight_of(int64_t nx, int64_t column) { return column == 0 || 2 * column == nx ? 1 : 2; }

/// f(place, iy, ix, |k|) of all modes of the plane.
template <class F>
void each_plane_mode(const BoxGrid& grid, F f) {
  for (int64_t row = 0; row < grid.ny; ++row)
    for (int64_t column = 0; column < grid.nx; ++column) {
      const int64_t iy = row <= paired(grid.ny) ? row : row - grid.ny,
                    ix = column <= paired(grid.nx) ? column : column - grid.nx;
      f(row * grid.nx + column, iy, ix, plane_wavenumber(grid, iy, ix));
    }
}

std::vector<PlaneMode> disc_modes(const CodecOptions& o) {
  std::vector<PlaneMode> modes;
  each_plane_mode(o.grid, [&](int64_t, int64_t iy, int64_t ix, double k) {
    if (k <= o.low * kRingSlack) modes.push_back({iy, ix});
  });
  return modes;
}

/// Pairs of |k| and a value, sorted, a ring of |k| at a time: all f(pair) in that order until it says true.
template <class Value, class F>
void each_by_wavenumber(const std::vector<std::pair<double, Value>>& all, F f) {
  std::vector<size_t> end;  // of each ring; first its count
  for (const auto& [k, value] : all) {
    if (end.size() <= size_t(k)) end.resize(size_t(k) + 1);
    ++end[size_t(k)];
  }
  std::inclusive_scan(end.begin(), end.end(), end.begin());
  std::vector<std::pair<double, Value>> rings(all.size());
  std::vector<size_t> at = end;
  for (const auto& one : all) rings[--at[size_t(one.first)]] = one;
  for (size_t ring = 0; ring < end.size(); ++ring) {
    const auto first = rings.begin() + int64_t(at[ring]), last = rings.begin() + int64_t(end[ring]);
    std::sort(first, last);
    if (std::any_of(first, last, f)) return;
  }
}

std::vector<PlaneMode> half_plane_modes(const CodecOptions& o) {
  std::vector<PlaneMode> inside, modes;
  std::vector<std::pair<double, int32_t>> places;
  for (int64_t iy = -paired(o.grid.ny); iy <= paired(o.grid.ny); ++iy)
    for (int64_t ix = 0; ix <= paired(o.grid.nx); ++ix) {
      const double k = plane_wavenumber(o.grid, iy, ix);
      if ((ix == 0 && iy < 0) || k > o.cut * kRingSlack) continue;
      places.emplace_back(k, int32_t(inside.size()));
      inside.push_back({iy, ix});
    }
  modes.reserve(inside.size());
  each_by_wavenumber(places, [&](const auto& place) {
    modes.push_back(inside[size_t(place.second)]);
    return false;
  });
  return modes;
}

/// Octaves beyond the cut; a mode without a partner within the cut belongs to the first.
int octave(double k, double cut) {
  int band = 1;
  for (double edge = 2 * cut; k > edge * kRingSlack; edge *= 2) ++band;
  return band;
}

void lay_classic_bands(const CodecPlan& plan, CodecLayout& l) {
  const CodecOptions& o = plan.options;
  l.bands = 2;
  std::vector<char> is_anchor(size_t(l.nx * l.ny), 0);
  for (const int32_t a : plan.anchors) is_anchor[size_t(a)] = 1;
  each_half_mode(l.ny, l.nx, [&](int64_t row, int64_t column, int64_t iy, int64_t ix) {
    const double k = plane_wavenumber(o.grid, iy, ix);
    const int32_t band = k <= o.low * kRingSlack ? 0 : k <= o.middle * kRingSlack ? 1 : 2;
    const int64_t mirror = (l.ny - row) % l.ny * l.nx + (l.nx - column) % l.nx;
    const bool self = band > 0 && is_anchor[size_t(row * l.nx + column)] == 0,
               other = band > 0 && is_anchor[size_t(mirror)] == 0;
    l.band.push_back(band | (self ? 256 : 0) | (other ? 512 : 0));
    l.weight.push_back(float(self) + (weight_of(l.nx, column) == 2 ? float(other) : 0));
  });
}

void lay_octaves(const CodecPlan& plan, CodecLayout& l) {
  const CodecOptions& o = plan.options;
  each_half_mode(l.ny, l.nx, [&](int64_t row, int64_t column, int64_t iy, int64_t ix) {
    const double k = plane_wavenumber(o.grid, iy, ix);
    const bool alone = 2 * row == l.ny || 2 * column == l.nx;
    const int32_t band = k <= o.cut * kRingSlack && !alone ? 0 : octave(k, o.cut);
    l.bands = std::max<int64_t>(l.bands, band);
    l.band.push_back(band | (band > 0 ? 256 | 512 : 0));
    l.weight.push_back(band > 0 ? float(weight_of(l.nx, column)) : 0.0f);
  });
}

/// Root mean square of the parts of the modes of rings of width 1 about |k|.
std::vector<double> ring_scales(const CodecOptions& o, std::span<const float> spectrum) {
  std::vector<double> sum, count;
  size_t at = 0;
  const double points = double(o.grid.points());
  each_half_mode(o.grid.ny, o.grid.nx, [&](int64_t, int64_t column, int64_t iy, int64_t ix) {
    const size_t ring = size_t(std::lround(plane_wavenumber(o.grid, iy, ix)));
    if (sum.size() <= ring) sum.resize(ring + 1), count.resize(ring + 1);
    const double re = spectrum[2 * at] / points, im = spectrum[2 * at + 1] / points,
                 weight = weight_of(o.grid.nx, column);
    sum[ring] += weight * (re * re + im * im);
    count[ring] += 2 * weight;
    ++at;
  });
  for (size_t ring = 0; ring < sum.size(); ++ring)
    sum[ring] = count[ring] > 0 ? std::sqrt(sum[ring] / count[ring]) : 0;
  return sum;
}

/// A mode of the half spectrum; `place` of its real part there.
struct RingMode {
  double wavenumber = 0, weight = 1;
  size_t place = 0;
};

/// Modes of ring <= |k| < ring + 1, by |k|.
std::vector<RingMode> modes_of_ring(const BoxGrid& grid, int64_t ring) {
  std::vector<RingMode> modes;
  const double longest = std::max(grid.lx, grid.ly), unit_x = longest / grid.lx, unit_y = longest / grid.ly;
  const int64_t columns = grid.nx / 2 + 1;
  for (int64_t row = 0; row < grid.ny; ++row) {
    const int64_t iy = row <= paired(grid.ny) ? row : row - grid.ny;
    const auto column = [&](double k) {
      const double kx2 = k * k - unit_y * unit_y * double(iy * iy);
      return kx2 > 0 ? int64_t(std::sqrt(kx2) / unit_x) : 0;
    };
    if (unit_y * std::abs(double(iy)) >= double(ring + 1)) continue;
    const int64_t end = std::min(column(double(ring + 1)) + 2, columns);
    for (int64_t ix = std::max<int64_t>(column(double(ring)) - 1, 0); ix < end; ++ix)
      if (const double k = plane_wavenumber(grid, iy, ix); int64_t(k) == ring)
        modes.push_back({k, weight_of(grid.nx, ix), size_t(2 * (row * columns + ix))});
  }
  std::sort(modes.begin(), modes.end(), [](const RingMode& a, const RingMode& b) {
    return std::pair(a.wavenumber, a.place) < std::pair(b.wavenumber, b.place);
  });
  return modes;
}

}  // namespace

// By sums over rings, then the modes of one ring.
double cut_of_share(const CodecOptions& o, std::span<const float> spectrum) {
  std::vector<double> rings;
  size_t at = 0;
  each_half_mode(o.grid.ny, o.grid.nx, [&](int64_t, int64_t column, int64_t iy, int64_t ix) {
    const double re = spectrum[2 * at], im = spectrum[2 * at + 1];
    ++at;
    if (iy == 0 && ix == 0) return;
    const auto ring = size_t(plane_wavenumber(o.grid, iy, ix));
    if (rings.size() <= ring) rings.resize(ring + 1);
    rings[ring] += weight_of(o.grid.nx, column) * (re * re + im * im);
  });
  const double share = o.share * std::accumulate(rings.begin(), rings.end(), 0.0);
  double sum = 0, cut = 0;
  size_t ring = 0;
  while (ring + 1 < rings.size() && sum + rings[ring] < share) sum += rings[ring++];
  for (const RingMode& mode : modes_of_ring(o.grid, int64_t(ring))) {
    const double re = spectrum[mode.place], im = spectrum[mode.place + 1];
    cut = mode.wavenumber;
    sum += mode.weight * (re * re + im * im);
    if (sum >= share) break;
  }
  return std::max(cut, 1.0);
}

namespace {}  // namespace

int64_t frames_at_once(const BoxGrid& grid) {
  return std::clamp<int64_t>(kPointsAtOnce / grid.points(), 1, kFramesAtOnce);
}

double plane_wavenumber(const BoxGrid& grid, int64_t iy, int64_t ix) {
  const double longest = std::max(grid.lx, grid.ly);
  const double kx = longest / grid.lx * double(ix), ky = longest / grid.ly * double(iy);
  return std::sqrt(kx * kx + ky * ky);
}

std::vector<int32_t> middle_modes(const CodecOptions& o) {
  std::vector<int32_t> modes;
  each_plane_mode(o.grid, [&](int64_t place, int64_t, int64_t, double k) {
    if (k > o.low * kRingSlack && k <= o.middle * kRingSlack) modes.push_back(int32_t(place));
  });
  return modes;
}

void check_codec(const CodecOptions& o) {
  const BoxGrid& g = o.grid;
  if (g.nx < 4 || g.ny < 4 || g.nx > 32768 || g.ny > 32768)
    throw InputError(fmt::format("{} x {} points", g.ny, g.nx), "flow codec", "4 to 32768 along each axis");
  if (!is_sound_box(g))
    throw InputError(fmt::format("a box of {} x {}", g.lx, g.ly), "flow codec", kSoundBox);
  schema_of<CodecOptions>().check(&o);
  if (o.kind == CodecKind::v2) return;
  require_codec(o.low < o.middle, "middle", fmt::format("low {} and middle {}", o.low, o.middle),
                "{low} below {middle}");
  const double longest = std::max(g.lx, g.ly);
  const double reach = std::min(longest / g.lx * double(paired(g.nx)), longest / g.ly * double(paired(g.ny)));
  require_codec(o.middle <= reach, "middle",
                fmt::format("a middle band to |k| = {} on {} x {} points", o.middle, g.ny, g.nx),
                "a finer grid, or a smaller {low} and {middle}");
  require_codec(o.box % 2 == 1 && o.box <= std::min(g.nx, g.ny), "box_points",
                fmt::format("a box filter of {} points", o.box), "an odd number, at most the grid's");
}

int64_t box_points(const CodecOptions& o) {
  if (o.kind == CodecKind::classic) return o.box;
  const double length = 11.0 / 64 * 8 * std::max(o.grid.lx, o.grid.ly) / std::max(o.cut, 1.0);
  const int64_t points = 2 * int64_t(std::lround((length / std::max(o.grid.dx(), o.grid.dy()) - 1) / 2)) + 1;
  return std::clamp<int64_t>(points, 3, paired(std::min(o.grid.nx, o.grid.ny)) * 2 + 1);
}

CodecLayout codec_layout(const CodecPlan& plan) {
  const CodecOptions& o = plan.options;
  CodecLayout l;
  l.nx = o.grid.nx;
  l.ny = o.grid.ny;
  l.columns = l.nx / 2 + 1;
  if (o.kind == CodecKind::classic) {
    l.modes = disc_modes(o);
    lay_classic_bands(plan, l);
    l.extras = 2 * int64_t(l.modes.size());
    l.size = l.extras + 4 + 2 * int64_t(plan.anchors.size());
  } else {
    l.modes = half_plane_modes(o);
    lay_octaves(plan, l);
    l.extras = 2 * int64_t(l.modes.size()) - 1;
    l.size = l.extras + l.bands;
  }
  l.members.assign(size_t(l.bands) + 1, 0);
  for (size_t at = 0; at < l.band.size(); ++at) l.members[size_t(l.band[at] & 255)] += l.weight[at];
  return l;
}

std::string plan_fault(const CodecPlan& plan) {
  const CodecOptions& o = plan.options;
  for (const int32_t a : plan.anchors)
    if (a < 0 || a >= o.grid.points()) return fmt::format("an anchor at {}", a);
  for (const float s : plan.scales)
    if (!(s > 0) || !std::isfinite(s)) return fmt::format("a scale of {}", s);
  if (o.kind == CodecKind::classic) return "";
  if (o.cut == 0) return "no cut";
  if (const int64_t size = codec_layout(plan).size; int64_t(plan.scales.size()) != size)
    return fmt::format("{} scales for {} numbers of a latent", plan.scales.size(), size);
  return "";
}

CodecPlan plan_codec(const CodecOptions& options, std::span<const float> spectrum, CodecLayout* layout) {
  CodecPlan plan{options, {}, {}};
  CodecOptions& o = plan.options;
  if (const auto bad =
          std::find_if(spectrum.begin(), spectrum.end(), [](float v) { return !std::isfinite(v); });
      bad != spectrum.end())
    throw InputError("a first frame that is not finite, or whose transform overflows", "flow codec",
                     "finite numbers");
  if (o.kind == CodecKind::classic) {
    plan.anchors = middle_modes(o);
    const auto size = [&](int32_t mode) {
      int64_t row = mode / o.grid.nx, column = mode % o.grid.nx;
      if (column > o.grid.nx / 2) row = (o.grid.ny - row) % o.grid.ny, column = o.grid.nx - column;
      const size_t at = 2 * size_t(row * (o.grid.nx / 2 + 1) + column);
      return double(spectrum[at]) * spectrum[at] + double(spectrum[at + 1]) * spectrum[at + 1];
    };
    std::stable_sort(plan.anchors.begin(), plan.anchors.end(),
                     [&](int32_t a, int32_t b) { return size(a) > size(b); });
    plan.anchors.resize(std::min(plan.anchors.size(), size_t(o.anchor_count)));
    if (layout) *layout = codec_layout(plan);
    return plan;
  }
  if (o.cut == 0) o.cut = cut_of_share(o, spectrum);
  CodecLayout l = codec_layout(plan);
  const std::vector<double> rings = ring_scales(o, spectrum);
  double square = 0;
  std::vector<double> bands(size_t(l.bands), 0.0);
  for (size_t at = 0; at < l.band.size(); ++at) {
    const double re = spectrum[2 * at] / l.points(), im = spectrum[2 * at + 1] / l.points();
    const double part = weight_of(l.nx, int64_t(at) % l.columns) * (re * re + im * im);
    square += part;
    if (const int band = l.band[at] & 255; band > 0) bands[size_t(band) - 1] += part;
  }
  plan.scales.reserve(size_t(l.size));
  const double whole = square > 0 ? std::sqrt(square) : 1;
  const auto push = [&](double scale) {
    plan.scales.push_back(float(std::clamp(std::max(scale, kLeastScale * whole), 1e-30, 1e30)));
  };
  push(whole);
  for (size_t m = 1; m < l.modes.size(); ++m)
    for (int part = 0; part < 2; ++part)
      push(rings[size_t(std::lround(plane_wavenumber(o.grid, l.modes[m].iy, l.modes[m].ix)))]);
  for (const double band : bands) push(std::max(std::sqrt(band), kLeastBand * whole));
  if (layout) *layout = std::move(l);
  return plan;
}

namespace {

size_t ring_of(const CodecOptions& o, const PlaneMode& mode) {
  return size_t(std::lround(plane_wavenumber(o.grid, mode.iy, mode.ix)));
}

}  // namespace

std::vector<float> ring_table(const CodecPlan& plan) {
  const CodecLayout l = codec_layout(plan);
  std::vector<float> rings(ring_of(plan.options, l.modes.back()) + 1, 1.0f), table{plan.scales[0]};
  for (size_t m = 1; m < l.modes.size(); ++m) rings[ring_of(plan.options, l.modes[m])] = plan.scales[2 * m];
  table.insert(table.end(), rings.begin(), rings.end());
  table.insert(table.end(), plan.scales.end() - l.bands, plan.scales.end());
  return table;
}

std::vector<float> scales_of_table(const CodecOptions& options, std::span<const float> table) {
  const CodecLayout l = codec_layout({options, {}, {}});
  const size_t rings = ring_of(options, l.modes.back()) + 1, bands = size_t(l.bands);
  if (table.size() != 1 + rings + bands)
    throw InputError(fmt::format("{} scales", table.size()), "flow codec",
                     fmt::format("{}", 1 + rings + bands));
  std::vector<float> scales{table[0]};
  for (size_t m = 1; m < l.modes.size(); ++m)
    scales.insert(scales.end(), 2, table[1 + ring_of(options, l.modes[m])]);
  scales.insert(scales.end(), table.end() - int64_t(bands), table.end());
  return scales;
}

}  // namespace lockstep::flow
