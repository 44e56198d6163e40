#include "record/compare_files.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/numbers/parse_number.hpp"
#include "core/record/sha256.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/arrays/npy.hpp"
#include "io/pictures/png.hpp"
#include "io/rasters/raster.hpp"
#include "io/text/file.hpp"
#include "io/text/json_text.hpp"
#include "options.hpp"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Members and columns that hold times and speeds: they differ from run to run.
bool is_volatile(const std::string& name) {
  for (const char* whole :
       {"date", "started", "version", "bytes", "time_us", "metrics", "memory", "stages", "transfers", "files",
        "pictures", "gbps", "share_of_copy", "speedup_over_two_kernel"})
    if (name == whole) return true;
  for (const char* end : {"seconds", "_ms", "_s", "per_second", "_bytes", "_version"})
    if (name.ends_with(end)) return true;
  return false;
}
Json without_times(const Json& value) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) list.push_back(without_times(item));
    return list;
  }
  if (!value.is_object()) return value;
  Json rest = Json::object();
  for (const auto& [name, item] : value.items())
    if (!is_volatile(name)) rest[name] = without_times(item);
  return rest;
}

int64_t bits_between(std::span<const std::byte> a, std::span<const std::byte> b) {
  int64_t bits = 8 * static_cast<int64_t>(std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
  for (size_t k = 0; k < std::min(a.size(), b.size()); ++k)
    bits += std::popcount(static_cast<unsigned>(a[k] ^ b[k]));
  return bits;
}

void compare_arrays(const Array& first, const Array& second, double bound, FileComparison& c) {
  const Array a = first.packed(), b = second.packed();
  if (a.storage() != b.storage() || a.shape() != b.shape()) {
    c.same = c.within = false;
    c.max_abs = NAN;
    return;
  }
  const std::span<const std::byte> x(a.data(), static_cast<size_t>(a.bytes())),
      y(b.data(), static_cast<size_t>(b.bytes()));
  const int64_t bits = bits_between(x, y);
  if (bits == 0) return;
  c.same = false;
  c.differing_bits += bits;
  double largest = 0, worst = 0;
  const auto walk = [&]<class T>(T) {
    for (int64_t k = 0; k < a.elements(); ++k) {
      const double u = static_cast<double>(a.as<T>()[static_cast<size_t>(k)]),
                   v = static_cast<double>(b.as<T>()[static_cast<size_t>(k)]);
      if (std::isfinite(u)) largest = std::max(largest, std::abs(u));
      if (u == v || (std::isnan(u) && std::isnan(v))) continue;
      worst = std::isfinite(u - v) ? std::max(worst, std::abs(u - v)) : INFINITY;
    }
  };
  const bool real = a.storage() == Storage::f32 || a.storage() == Storage::f64;
  if (a.storage() == Storage::f32) walk(float{});
  if (a.storage() == Storage::f64) walk(double{});
  c.max_abs = real ? std::max(c.max_abs, worst) : NAN;
  c.within = c.within && real && worst <= bound * largest && bound > 0;
}

void compare_archives(const io::NpzArrays& a, const io::NpzArrays& b, double bound, FileComparison& c) {
  // Members of types that Lockstep does not read cannot be judged.
  if (a.size() != b.size() || !a.left_out.empty() || !b.left_out.empty()) c.same = c.within = false;
  for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
    if (a[k].first != b[k].first)
      c.same = c.within = false;
    else
      compare_arrays(a[k].second, b[k].second, bound, c);
  }
}

void compare_rasters(const io::GeoRaster& a, const io::GeoRaster& b, double bound, FileComparison& c) {
  if (a.has_transform != b.has_transform || a.transform != b.transform || a.crs_wkt != b.crs_wkt ||
      a.value_unit != b.value_unit)
    c.same = c.within = false;
  compare_arrays(a.values, b.values, bound, c);
}

/// Pictures of fields within a bound: colours change by a step here and there, texts and contours by a pixel.
void compare_pictures(const io::Image& a, const io::Image& b, double bound, FileComparison& c) {
  constexpr int kStep = 2;        // of 255
  constexpr size_t kOneIn = 100;  // values of pixels
  if (a.width != b.width || a.height != b.height) {
    c = {false, false, bits_between(std::as_bytes(std::span(a.pixels)), std::as_bytes(std::span(b.pixels))),
         NAN};
    return;
  }
  size_t far = 0;
  for (size_t k = 0; k < a.pixels.size(); ++k) {
    const int step = std::abs(a.pixels[k] - b.pixels[k]);
    c.max_abs = std::max<double>(c.max_abs, step);
    far += step > kStep;
  }
  c.differing_bits = bits_between(std::as_bytes(std::span(a.pixels)), std::as_bytes(std::span(b.pixels)));
  c.same = c.differing_bits == 0;
  c.within = c.same || (bound > 0 && far * kOneIn <= a.pixels.size());
}

/// A CSV without the columns that hold times.
std::string without_time_columns(const std::string& text) {
  std::string out;
  std::vector<bool> kept;
  for (size_t begin = 0, row = 0; begin < text.size(); ++row) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    size_t column = 0;
    for (size_t at = begin; at <= end && at <= text.size(); ++column) {
      const size_t next = std::min(text.find(',', at), end);
      const std::string cell = text.substr(at, next - at);
      if (row == 0) kept.push_back(!is_volatile(cell));
      if (column >= kept.size() || kept[column]) out += cell + ",";
      at = next + 1;
    }
    out += '\n';
    begin = end + 1;
  }
  return out;
}

std::string comparable_text(const fs::path& file) {
  const std::string text = io::read_text_file(file), suffix = file.extension().string();
  if (suffix == ".csv") return without_time_columns(text);
  if (suffix == ".json") return without_times(io::parse_ordered_json(text, file.string())).dump();
  if (suffix != ".jsonl") return text;
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    out += without_times(io::parse_ordered_json(line, file.string())).dump() + "\n";
    begin = end + 1;
  }
  return out;
}

/// The words of a text, those of one kind under one name: columns of tables, members of documents.
std::vector<std::pair<std::string, std::string>> words_of(const std::string& text, bool json) {
  constexpr auto kBetween = " \t,;\r\"'()[]{}<>:=";
  std::vector<std::pair<std::string, std::string>> words;
  if (json) {
    const Json flat = io::parse_ordered_json(text, "a result").flatten();
    for (const auto& [path, value] : flat.items()) {
      std::string name;
      for (const char c : path)
        if (c < '0' || c > '9') name += c;
      words.emplace_back(name, value.dump());
    }
    return words;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string kind;
    size_t column = 0;
    for (size_t at = text.find_first_not_of(kBetween, begin); at < end; ++column) {
      const size_t next = std::min(text.find_first_of(kBetween, at), end);
      const std::string word = text.substr(at, next - at);
      if (column == 0 && !parse_number<double>(word)) kind = word;
      words.emplace_back(kind + ' ' + std::to_string(column), word);
      at = text.find_first_not_of(kBetween, next);
    }
    begin = end + 1;
  }
  return words;
}

void compare_texts(const std::string& a, const std::string& b, bool json, double bound, FileComparison& c) {
  c.differing_bits = bits_between(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
  c.same = c.within = c.differing_bits == 0;
  if (c.same) return;
  c.max_abs = NAN;
  if (bound == 0) return;
  const auto x = words_of(a, json), y = words_of(b, json);
  if (x.size() != y.size()) return;
  std::map<std::string, double> largest;
  for (const auto& [name, word] : x)
    if (const auto number = parse_number<double>(word); number && std::isfinite(*number))
      largest[name] = std::max(largest[name], std::abs(*number));
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    if (x[k] == y[k]) continue;
    const auto u = parse_number<double>(x[k].second), v = parse_number<double>(y[k].second);
    if (x[k].first != y[k].first || !u || !v || !(std::abs(*u - *v) <= bound * largest[x[k].first])) return;
    worst = std::max(worst, std::abs(*u - *v));
  }
  c.within = true;
  c.max_abs = worst;
}

}  // namespace

FileComparison compare_files(const fs::path& a, const fs::path& b, double bound) {
  FileComparison c;
  if (record::sha256_of_file(a) == record::sha256_of_file(b)) return c;
  const std::string suffix = a.extension().string();
  if (suffix == ".npy")
    compare_arrays(io::read_npy(a), io::read_npy(b), bound, c);
  else if (suffix == ".npz")
    compare_archives(io::read_npz(a), io::read_npz(b), bound, c);
  else if (suffix == ".nc")
    compare_archives(io::read_netcdf(a), io::read_netcdf(b), bound, c);
  else if (suffix == ".tif")
    compare_rasters(io::read_raster(a), io::read_raster(b), bound, c);
  else if (suffix == ".png")
    compare_pictures(io::read_png(a, 4), io::read_png(b, 4), bound, c);
  else if (suffix == ".mp4" || suffix == ".ply")
    c.differing_bits = bits_between(io::read_file(a), io::read_file(b)), c.same = c.within = false,
    c.max_abs = NAN;
  else
    compare_texts(comparable_text(a), comparable_text(b), suffix == ".json", bound, c);
  // Arrays of other shapes, or another georeference: bits of the files.
  if (!c.same && c.differing_bits == 0) c.differing_bits = bits_between(io::read_file(a), io::read_file(b));
  return c;
}

}  // namespace lockstep::cli
