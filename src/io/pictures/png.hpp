// 8-bit PNG pictures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::io {

/// Rows from the top, `channels` bytes a pixel: 1 grey, 3 RGB, 4 RGBA (not premultiplied).
struct Image {
  int width = 0, height = 0, channels = 3;
  std::vector<uint8_t> pixels;
  std::vector<std::pair<std::string, std::string>> texts;  ///< of its PNG, by keyword: Title, Unit, Time

  Image() = default;
  Image(int w, int h, int c, uint8_t value = 0)
      : width(w),
        height(h),
        channels(c),
        pixels(static_cast<size_t>(w) * static_cast<size_t>(h) * static_cast<size_t>(c), value) {}
  uint8_t* at(int x, int y) {
    return &pixels[(static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) *
                   static_cast<size_t>(channels)];
  }
};

/// With its texts, the program and the run. Throws InputError if the file cannot be written.
void write_png(const std::filesystem::path& path, const Image& image);
/// Any PNG, converted to `channels`. Throws InputError.
Image read_png(const std::filesystem::path& path, int channels = 3);
Image parse_png(std::span<const std::byte> bytes, std::string_view where, int channels = 3);

}  // namespace lockstep::io
