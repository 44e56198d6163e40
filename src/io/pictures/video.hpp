// Films: pictures in sequence, encoded by FFmpeg's libraries. They are behind a module of its own
// (lockstep_video.so), which is built where their headers are and loaded when a film is begun.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "core/files/atomic_file.hpp"
#include "io/pictures/png.hpp"

namespace lockstep::io {

/// Why no film can be made here, naming the packages that are wanting; empty where one can.
std::string video_unavailable_reason();

/// Throws InputError for a name with an ending that no film has here.
void check_video_name(const std::filesystem::path& path);

/// Writes H.264 if the libraries have an encoder for it, else MPEG-4 part 2, into MP4 or the container of the suffix
/// (.mkv, .mov, .avi). The film is a temporary file next to its target until commit(); without it, nothing is left.
class VideoWriter {
 public:
  /// Size in pixels; the film's is even, an odd side grows by one. Throws UnsupportedError where the module or an
  /// encoder is absent, InputError where the file or the size cannot be.
  VideoWriter(std::filesystem::path path, int width, int height, double frames_per_second);
  ~VideoWriter();

  /// Rows of RGB from the top, 3 · width · height bytes. Throws InputError for another number.
  void add(std::span<const uint8_t> rgb);
  /// A picture of three channels: one of another size is cut, or filled up with white, at its right and lower side.
  void add(const Image& picture);
  /// Finishes the film and puts it in its place.
  void commit();

  int frames() const { return frames_; }
  /// "libx264", as FFmpeg names it.
  const std::string& encoder() const { return encoder_; }

  struct Module;

 private:
  void check(int status) const;

  std::shared_ptr<const Module> module_;
  void* film_ = nullptr;
  AtomicPath path_;
  int width_, height_, frames_ = 0;
  std::string encoder_;
  mutable std::string message_;
};

}  // namespace lockstep::io
