#include "flow/run/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "flow/modes.hpp"
#include "io/pictures/map_picture.hpp"
#include "io/pictures/plot.hpp"

namespace lockstep::flow {

namespace {

/// Pictures in the making: they are drawn faster than films are encoded.
size_t most_pending() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8); }

}  // namespace

double color_range(const Array& omega) {
  const Array field = omega[0].to(Storage::f64).packed();
  double range = 0;
  for (const double w : field.as<double>()) range = std::max(range, std::abs(w));
  return range > 0 ? range : 1;
}

io::Image picture_of(const Array& omega, double time, double range) {
  const Array field = omega[0].to(Storage::f32).packed();
  const int64_t ny = field.size(0), nx = field.size(1);
  std::vector<float> values;
  for (int64_t j = ny; j-- > 0;)
    for (int64_t i = 0; i < nx; ++i) values.push_back(field.at<float>(j, i));
  io::MapPictureOptions options;
  options.title = "vorticity";
  options.map = io::ColorMap::balance;
  options.minimum = -range;
  options.maximum = range;
  options.pixel_size = 0;
  options.facts.date = fmt::format("t = {:.6g}", time);
  return io::draw_map(values, ny, nx, options);
}

std::filesystem::path PictureWriter::draw(const std::filesystem::path& folder, const Array& omega,
                                          int64_t number, double time) {
  if (range_ == 0) range_ = color_range(omega);
  const auto file = folder / fmt::format("omega_{:06}.png", number);
  keep(most_pending() - 1);
  pending_.push_back(std::async(std::launch::async, [omega, time, file, range = range_] {
    io::write_png(file, picture_of(omega, time, range));
  }));
  return file;
}
void PictureWriter::keep(size_t pending) {
  while (pending_.size() > pending) {
    std::future<void> first = std::move(pending_.front());
    pending_.pop_front();
    first.get();
  }
}

void FilmWriter::add(const Array& omega, double time) {
  if (range_ == 0) range_ = color_range(omega);
  keep(most_pending() - 1);
  pending_.push_back(std::async(std::launch::async,
                                [omega, time, range = range_] { return picture_of(omega, time, range); }));
}
void FilmWriter::keep(size_t pending) {
  while (pending_.size() > pending) {
    const io::Image picture = pending_.front().get();
    pending_.pop_front();
    if (!writer_)
      writer_.emplace(file_, picture.width, picture.height, std::clamp(double(pictures_) / 10, 2.0, 25.0));
    writer_->add(picture);
  }
}
void FilmWriter::commit() {
  keep(0);
  if (writer_) writer_->commit();
}

namespace {

constexpr double kShown = 1e-12;  // of a spectrum's largest ring

io::PlotSeries spectrum_curve(const std::string& title, const std::vector<double>& rings, double unit) {
  io::PlotSeries curve;
  curve.name = title;
  curve.marker = false;
  const double most = *std::max_element(rings.begin(), rings.end());
  for (size_t j = 1; j < rings.size(); ++j)
    if (rings[j] > kShown * most) {
      curve.x.push_back(double(j) * unit);
      curve.y.push_back(rings[j]);
    }
  return curve;
}

/// k^slope through twice the largest value of a curve, from there on as far as it stays in sight.
io::PlotSeries slope_line(const io::PlotSeries& of, const std::string& title, double slope) {
  io::PlotSeries line;
  line.name = title;
  line.marker = false;
  line.dashed = true;
  const auto top = size_t(std::max_element(of.y.begin(), of.y.end()) - of.y.begin());
  const double least = *std::min_element(of.y.begin(), of.y.end());
  for (size_t j = top; j < of.x.size(); ++j) {
    const double value = 2 * of.y[top] * std::pow(of.x[j] / of.x[top], slope);
    if (value < least) break;
    line.x.push_back(of.x[j]);
    line.y.push_back(value);
  }
  return line;
}

}  // namespace

std::filesystem::path draw_spectra(const std::filesystem::path& folder, const BoxGrid& grid,
                                   const Spectra& spectra, double time) {
  const double unit = 2 * kPi / std::max(grid.lx, grid.ly);
  std::vector<io::PlotSeries> curves{spectrum_curve("E(k)", spectra.energy, unit),
                                     spectrum_curve("Z(k)", spectra.enstrophy, unit)};
  if (!curves[0].x.empty()) {
    curves.push_back(slope_line(curves[0], "k^-5/3", -5.0 / 3));
    curves.push_back(slope_line(curves[0], "k^-3", -3));
    curves.push_back(slope_line(curves[1], "k^-1", -1));
  }
  io::PlotOptions options;
  options.title = fmt::format("spectra, t = {:.6g}", time);
  options.x_label = "k";
  options.y_label = "of rings of wavenumbers";
  options.log_x = options.log_y = true;
  const auto file = folder / "spectra.png";
  io::write_png(file, io::draw_plot(curves, options).image());
  return file;
}

std::filesystem::path film(const Series& series, const std::filesystem::path& file) {
  FilmWriter writer(file, series.size());
  for (int64_t k = 0; k < series.size(); ++k) writer.add(series.field(k), series.moment(k).time.front());
  writer.commit();
  return file;
}

}  // namespace lockstep::flow
