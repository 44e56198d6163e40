#include "io/rasters/gdal/vrt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "io/pictures/drawing.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMosaic = "a mosaic as gdalbuildvrt makes it, of rasters in and below its own folder";
constexpr size_t kLargest = size_t{64} << 20;

/// Elements that name no file but by SourceFilename.
constexpr std::string_view kElements[] = {"VRTDataset",
                                          "SRS",
                                          "GeoTransform",
                                          "VRTRasterBand",
                                          "ColorInterp",
                                          "NoDataValue",
                                          "Description",
                                          "UnitType",
                                          "Offset",
                                          "Scale",
                                          "HideNoDataValue",
                                          "SimpleSource",
                                          "ComplexSource",
                                          "AveragedSource",
                                          "SourceFilename",
                                          "SourceBand",
                                          "SourceProperties",
                                          "SrcRect",
                                          "DstRect",
                                          "NODATA",
                                          "ScaleOffset",
                                          "ScaleRatio",
                                          "UseMaskBand",
                                          "MaskBand",
                                          "BlockXSize",
                                          "BlockYSize",
                                          "Resampling",
                                          "ColorTable",
                                          "Entry"};

class VrtText {
 public:
  VrtText(const fs::path& file, std::string text)
      : file_(file), folder_(fs::canonical(file).parent_path()), text_(std::move(text)) {}

  std::string checked() {
    std::string out;
    while (true) {
      const size_t open = text_.find('<', at_);
      out += text_.substr(at_, open == text_.npos ? open : open - at_);
      if (open == text_.npos) return out;
      const size_t close = text_.find('>', open);
      if (close == text_.npos) fail("an element without end");
      const std::string_view tag = std::string_view(text_).substr(open + 1, close - open - 1);
      at_ = close + 1;
      if (!tag.starts_with('?')) check_name(tag);
      if (!tag.starts_with("SourceFilename") || tag.ends_with('/')) {
        out += fmt::format("<{}>", tag);
        continue;
      }
      const size_t end = text_.find("</SourceFilename>", at_);
      if (end == text_.npos) fail("an element without end");
      const std::string source = source_of(tag, trimmed(text_.substr(at_, end - at_)));
      out += fmt::format("<SourceFilename relativeToVRT=\"0\">{}</SourceFilename>", xml_escaped(source));
      at_ = end + std::string_view("</SourceFilename>").size();
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, file_.string(), kMosaic); }

  static std::string trimmed(std::string text) {
    const size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
    return first == text.npos ? std::string() : text.substr(first, last - first + 1);
  }

  void check_name(std::string_view tag) const {
    if (tag.starts_with('/')) tag.remove_prefix(1);
    const std::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n/"));
    if (std::find(std::begin(kElements), std::end(kElements), name) == std::end(kElements))
      fail(fmt::format("an element '{}'", name));
    if (tag.find("subClass") != tag.npos) fail(fmt::format("a special '{}'", name));
  }

  std::string source_of(std::string_view tag, const std::string& name) const {
    if (name.empty() || name.find_first_of("&<:\"") != name.npos || name.starts_with("/vsi"))
      fail(fmt::format("a source '{}'", name));
    const bool relative =
        tag.find("relativeToVRT=\"1\"") != tag.npos || tag.find("relativeToVRT='1'") != tag.npos;
    std::error_code error;
    const fs::path source = fs::canonical(relative ? folder_ / name : fs::path(name), error);
    if (error || !fs::is_regular_file(source)) fail(fmt::format("a source '{}', which is not a file", name));
    const auto [at, rest] = std::mismatch(folder_.begin(), folder_.end(), source.begin(), source.end());
    if (at != folder_.end() || rest == source.end())
      fail(fmt::format("a source '{}' outside of its folder", name));
    std::string begin(16, ' ');
    const InputFile opened(source, kMosaic);
    const size_t count = std::min<size_t>(begin.size(), opened.size());
    if (!read_at(opened.descriptor(), 0, std::as_writable_bytes(std::span(begin).first(count))))
      fail(fmt::format("a source '{}', which cannot be read", name));
    const std::string head = trimmed(begin);
    if (head.starts_with('<') || head.starts_with('{') || head.starts_with("\xef\xbb\xbf"))
      fail(fmt::format("a source '{}', which is itself a text", name));
    return source.string();
  }

  const fs::path& file_;
  const fs::path folder_;
  const std::string text_;
  size_t at_ = 0;
};

}  // namespace

std::string checked_vrt(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kLargest)
    throw InputError("no file of a virtual raster", file.string(), kMosaic);
  std::string text = VrtText(file, read_text_file(file, kMosaic)).checked();
  const size_t first = text.find('<');
  if (first == text.npos) throw InputError("no XML", file.string(), kMosaic);
  // GDAL knows a document by its first element.
  const size_t root = text.find("<VRTDataset");
  if (root == text.npos) throw InputError("no VRTDataset", file.string(), kMosaic);
  return text.substr(root);
}

}  // namespace lockstep::io
