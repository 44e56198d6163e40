#include "flow/run/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "io/pictures/map_picture.hpp"
#include "io/pictures/video.hpp"

namespace lockstep::flow {

io::Image picture_of(const Array& omega, double time, double& range) {
  const Array field = omega[0].to(Storage::f32).packed();
  const int64_t ny = field.size(0), nx = field.size(1);
  std::vector<float> values;
  for (int64_t j = ny; j-- > 0;)
    for (int64_t i = 0; i < nx; ++i) values.push_back(field.at<float>(j, i));
  if (range == 0)
    for (const float w : values) range = std::max(range, double(std::abs(w)));
  if (range == 0) range = 1;
  io::MapPictureOptions options;
  options.title = "vorticity";
  options.map = io::ColorMap::balance;
  options.minimum = -range;
  options.maximum = range;
  options.pixel_size = 0;
  options.facts.date = fmt::format("t = {:.6g}", time);
  return io::draw_map(values, ny, nx, options);
}

std::filesystem::path draw_vorticity(const std::filesystem::path& folder, const Array& omega, int64_t number,
                                     double time, double& range) {
  const auto file = folder / fmt::format("omega_{:06}.png", number);
  io::write_png(file, picture_of(omega, time, range));
  return file;
}

std::filesystem::path film(const Series& series, const std::filesystem::path& file) {
  double range = 0;
  std::optional<io::VideoWriter> writer;
  for (int64_t k = 0; k < series.size(); ++k) {
    const io::Image picture = picture_of(series.field(k), series.moment(k).time.front(), range);
    if (!writer)
      writer.emplace(file, picture.width, picture.height, std::clamp(double(series.size()) / 10, 2.0, 25.0));
    writer->add(picture);
  }
  if (writer) writer->commit();
  return file;
}

}  // namespace lockstep::flow
