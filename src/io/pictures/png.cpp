#include "io/pictures/png.hpp"

#include <fmt/format.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>

#include "core/files/atomic_file.hpp"
#include "core/record/stamp.hpp"
#include "io/text/parse_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr uint64_t kMaximumBytes = uint64_t{1} << 31;

png_uint_32 format_of(int channels, std::string_view where) {
  switch (channels) {
    case 1: return PNG_FORMAT_GRAY;
    case 3: return PNG_FORMAT_RGB;
    case 4: return PNG_FORMAT_RGBA;
    default: throw InternalError(fmt::format("{} channels", channels), where, "1, 3 or 4");
  }
}

constexpr size_t kBehindHeader = 8 + 25;  // signature, IHDR

/// tEXt, or iTXt (not compressed, of no language) for what is not ASCII.
std::string text_chunk(const std::string& keyword, const std::string& text) {
  const bool ascii = std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) > 126; });
  const std::string content = (ascii ? "tEXt" : "iTXt") + keyword + std::string(ascii ? 1 : 5, '\0') + text;
  const auto number = [](uint64_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
    return bytes;
  };
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  return number(content.size() - 4) + content + number(crc);
}

struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

}  // namespace

void write_png(const std::filesystem::path& path, const Image& image) {
  const std::string where = path.string();
  const auto wanted = static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height) *
                      static_cast<uint64_t>(image.channels);
  if (image.width < 1 || image.height < 1 || image.pixels.size() != wanted) {
    throw InternalError(fmt::format("{} bytes for {} x {}", image.pixels.size(), image.width, image.height),
                        where, "a picture with pixels");
  }
  PngImage png;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = format_of(image.channels, where);
  png.flags = PNG_IMAGE_FLAG_FAST;  // fifteen pictures a run: speed before size
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::vector<std::byte> bytes(size);
  if (!png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr)) {
    throw InputError(fmt::format("cannot encode the picture: {}", png.message), where,
                     "a picture that PNG can hold");
  }
  const auto all = std::as_bytes(std::span(bytes)).first(size);
  AtomicFile file(path);
  file.write(all.first(kBehindHeader));
  for (const auto& [keyword, text] : image.texts) file.write(text_chunk(keyword, text));
  const record::Stamp stamp = record::stamp();
  file.write(text_chunk("Software", stamp.program));
  if (!stamp.run.empty()) file.write(text_chunk(record::kRunName, stamp.run));
  file.write(all.subspan(kBehindHeader));
  file.commit();
}

Image parse_png(std::span<const std::byte> bytes, std::string_view where, int channels) {
  PngImage png;
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size())) {
    throw InputError(fmt::format("not a readable PNG: {}", png.message), where, "a PNG picture");
  }
  png.format = format_of(channels, where);
  const uint64_t size = uint64_t{png.width} * png.height * static_cast<uint64_t>(channels);
  // Deflate cannot hold more than about 1032 bytes a byte, so larger claims are damage.
  if (size > kMaximumBytes || size / 4096 > bytes.size()) {
    throw InputError(fmt::format("a picture of {} x {}", png.width, png.height), where,
                     "a picture below 2 GiB");
  }
  const InputClaim claim(static_cast<double>(size), "the picture", where);
  Image image(static_cast<int>(png.width), static_cast<int>(png.height), channels);
  const png_color background = {255, 255, 255};
  if (!png_image_finish_read(&png, &background, image.pixels.data(), 0, nullptr)) {
    throw InputError(fmt::format("damaged PNG: {}", png.message), where, "a whole PNG picture");
  }
  return image;
}

Image read_png(const std::filesystem::path& path, int channels) {
  return parse_file(path, "a PNG picture",
                    [&](const auto& bytes, const auto& where) { return parse_png(bytes, where, channels); });
}

}  // namespace lockstep::io
