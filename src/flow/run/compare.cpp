// How two saved runs differ.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "flow/reference.hpp"
#include "flow/run/fields.hpp"
#include "io/arrays/frames.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace {

/// A run as saved: fields (time, ny, nx), read one by one, and their times.
struct Saved {
  std::filesystem::path file;
  Sizes shape;  // (time, [member,] y, x) or (y, x)
  std::optional<io::FrameFile> frames;
  Array omega;  // where it has no frames
  std::vector<double> time{0};
  BoxGrid grid;
  bool sized = false;  // has axes, from which the lengths of its box follow

  /// The first member's.
  Array field(int64_t moment) const {
    Array one = !frames ? omega : frames->frame(moment);
    if (!frames && shape.size() > 2) one = omega[moment];
    if (shape.size() == 4) one = one[0];
    return one.to(Storage::f64).packed();
  }
};

/// The box of axes x and y: spacing times the number of points.
void take_lengths(const io::NpzArrays& arrays, Saved& s) {
  for (const auto& [name, array] : arrays) {
    if ((name != "x" && name != "y") || array.rank() != 1 || array.elements() < 2) continue;
    const Array at = array.to(Storage::f64).packed();
    const double spacing = at.at<double>(1) - at.at<double>(0);
    if (!(spacing > 0) || !std::isfinite(spacing))
      throw InputError(
          fmt::format("an axis {} that begins with {} and {}", name, at.at<double>(0), at.at<double>(1)),
          s.file.string(), "increasing coordinates");
    (name == "x" ? s.grid.lx : s.grid.ly) = spacing * double(name == "x" ? s.grid.nx : s.grid.ny);
    s.sized = true;
  }
}

/// Energies and rings of a spectrum are those of a box: both runs get one. A file without axes is of the other's.
void expect_one_box(Saved& a, Saved& b) {
  constexpr double kRounding = 1e-4;  // of axes in f32
  if (!a.sized) a.grid = b.grid;
  if (b.sized &&
      (std::abs(b.grid.lx / a.grid.lx - 1) > kRounding || std::abs(b.grid.ly / a.grid.ly - 1) > kRounding))
    throw InputError(fmt::format("a box of {:g} x {:g} (x, y)", b.grid.lx, b.grid.ly), b.file.string(),
                     fmt::format("{:g} x {:g} as in {}", a.grid.lx, a.grid.ly, a.file.string()));
  b.grid = a.grid;
}

Saved read_saved(const std::filesystem::path& path) {
  Saved s;
  s.file = path;
  if (has_frames(path)) s.frames.emplace(path, "omega");
  if (!s.frames || s.frames->shape().size() < 3) {
    s.frames.reset();
    s.omega = read_vorticity(path);
  }
  s.shape = s.frames ? s.frames->shape() : s.omega.shape();
  const size_t rank = s.shape.size();
  const bool some = std::all_of(s.shape.begin(), s.shape.end(), [](int64_t n) { return n > 0; });
  if (rank < 2 || rank > 4 || !some)
    throw InputError(fmt::format("vorticity of shape {}", to_string(s.shape)), path.string(),
                     "(time, y, x) or (y, x)");
  const int64_t moments = rank > 2 ? s.shape[0] : 1;
  s.grid = {s.shape[rank - 1], s.shape[rank - 2]};
  s.time.assign(size_t(moments), 0);
  if (path.extension() != ".npz" && path.extension() != ".nc") return s;
  const io::NpzArrays arrays = read_run(path, {"time", "x", "y"});
  take_lengths(arrays, s);
  for (const auto& [key, array] : arrays)
    if (key == "time" && array.rank() >= 1 && array.size(0) == moments && !array.empty()) {
      const Array times = array.to(Storage::f64);
      for (int64_t k = 0; k < array.size(0); ++k)
        s.time[size_t(k)] = times.rank() == 1 ? times.at<double>(k) : times.at<double>(k, 0);
    }
  for (size_t k = 0; k < s.time.size(); ++k)
    if (!std::isfinite(s.time[k]) || (k > 0 && s.time[k] < s.time[k - 1]))
      throw InputError(fmt::format("time {} at moment {}", s.time[k], k), path.string(),
                       "finite times that do not decrease");
  return s;
}

reference::Flow flow_of(const BoxGrid& grid, const Array& field) {
  reference::Flow flow({.grid = grid, .dealias = Dealias::none}, {});
  flow.set_vorticity(field.as<double>());
  return flow;
}

Comparison2d::Row row_of(const Saved& a, int64_t at_a, const Saved& b, int64_t at_b) {
  const Array fa = a.field(at_a), fb = b.field(at_b);
  const auto x = fa.as<double>(), y = fb.as<double>();
  double mean_x = 0, mean_y = 0, difference = 0, size = 0, xx = 0, yy = 0, xy = 0;
  for (size_t k = 0; k < x.size(); ++k) mean_x += x[k] / double(x.size()), mean_y += y[k] / double(x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    difference += (x[k] - y[k]) * (x[k] - y[k]);
    size += x[k] * x[k];
    xx += (x[k] - mean_x) * (x[k] - mean_x);
    yy += (y[k] - mean_y) * (y[k] - mean_y);
    xy += (x[k] - mean_x) * (y[k] - mean_y);
  }
  const Budget ba = flow_of(a.grid, fa).budget(), bb = flow_of(b.grid, fb).budget();
  return {a.time[size_t(at_a)],
          size > 0 ? std::sqrt(difference / size) : std::sqrt(difference),
          xx * yy > 0 ? xy / std::sqrt(xx * yy) : 0,
          ba.energy,
          bb.energy,
          ba.enstrophy,
          bb.enstrophy};
}

double drift(double a, double b) { return a != 0 ? b / a - 1 : b; }

}  // namespace

Comparison2d compare_runs(const std::filesystem::path& path_a, const std::filesystem::path& path_b) {
  Saved a = read_saved(path_a), b = read_saved(path_b);
  if (a.grid.nx != b.grid.nx || a.grid.ny != b.grid.ny)
    throw InputError(fmt::format("{} x {} points", b.grid.ny, b.grid.nx), path_b.string(),
                     fmt::format("{} x {} as in {}", a.grid.ny, a.grid.nx, path_a.string()));
  expect_one_box(a, b);
  Comparison2d c;
  int64_t last_a = -1, last_b = -1;
  int64_t l = 0;
  for (int64_t k = 0; k < int64_t(a.time.size()); ++k) {
    const double t = a.time[size_t(k)], near = 1e-9 * std::max(1.0, std::abs(t));
    while (l < int64_t(b.time.size()) && b.time[size_t(l)] < t - near) ++l;
    if (l == int64_t(b.time.size())) break;
    if (b.time[size_t(l)] > t + near) continue;
    c.rows.push_back(row_of(a, k, b, l));
    last_a = k;
    last_b = l++;
  }
  if (c.rows.empty())
    throw InputError("no time that both runs saved", path_b.string(),
                     fmt::format("times of {}", path_a.string()));
  c.energy_drift = drift(c.rows.back().energy_a, c.rows.back().energy_b);
  c.enstrophy_drift = drift(c.rows.back().enstrophy_a, c.rows.back().enstrophy_b);
  c.spectrum_a = flow_of(a.grid, a.field(last_a)).spectra().energy;
  c.spectrum_b = flow_of(b.grid, b.field(last_b)).spectra().energy;
  double sum = 0;
  for (const double e : c.spectrum_a) sum += e;
  for (size_t j = 0; j < c.spectrum_a.size(); ++j)
    if (c.spectrum_a[j] > 1e-12 * sum)
      c.spectrum_error = std::max(c.spectrum_error, std::abs(std::log10(c.spectrum_b[j] / c.spectrum_a[j])));
  return c;
}

}  // namespace lockstep::flow
