// Pictures of vorticity.
#pragma once

#include <deque>
#include <filesystem>
#include <future>
#include <optional>

#include "flow/run/fields.hpp"
#include "io/pictures/png.hpp"
#include "io/pictures/video.hpp"
#include "lockstep/array.hpp"

namespace lockstep::flow {

/// Largest |w| of member 0 of (members, ny, nx), 1 where all is 0: a scale of colours.
double color_range(const Array& omega);
/// Member 0, y upwards, in colours from -range to range.
io::Image picture_of(const Array& omega, double time, double range);

/// Pictures of one scale, that of the first, drawn and written by threads of their own while the caller continues.
class PictureWriter {
 public:
  /// Writes `omega_NNNNNN.png` of the folder and returns its name at once. Throws what an earlier picture threw.
  std::filesystem::path draw(const std::filesystem::path& folder, const Array& omega, int64_t number,
                             double time);
  /// Waits for all; throws what one of them threw.
  void finish() { keep(0); }

 private:
  void keep(size_t pending);
  double range_ = 0;
  std::deque<std::future<void>> pending_;
};

/// A film of pictures of one scale, that of the first, drawn by threads of their own and encoded in order. Needs
/// io::VideoWriter's module.
class FilmWriter {
 public:
  /// About ten seconds long, at most 25 pictures a second.
  FilmWriter(std::filesystem::path file, int64_t pictures) : file_(std::move(file)), pictures_(pictures) {}
  void add(const Array& omega, double time);
  void commit();

 private:
  void keep(size_t pending);
  std::filesystem::path file_;
  int64_t pictures_;
  double range_ = 0;
  std::optional<io::VideoWriter> writer_;
  std::deque<std::future<io::Image>> pending_;
};

/// Energy and enstrophy of member 0 ring by ring, with slopes of Kraichnan's ranges for comparison, as `spectra.png`.
std::filesystem::path draw_spectra(const std::filesystem::path& folder, const BoxGrid& grid,
                                   const Spectra& spectra, double time);

/// All moments of a run as a film.
std::filesystem::path film(const Series& series, const std::filesystem::path& file);

}  // namespace lockstep::flow
