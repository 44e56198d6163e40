#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>

#include "core/files/atomic_file.hpp"
#include "io/meshes/mesh.hpp"
#include "io/text/seeded_hash.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr size_t kHeader = 84, kFacet = 50;

using Corner = std::array<uint64_t, 3>;
// Facets one after the other; corners with the same numbers are one vertex.
class Builder {
 public:
  explicit Builder(std::string_view where) : where_(where) {}
  template <class Fail>
  void add(const double* corners, const Fail& fail) {
    constexpr size_t kPlace = sizeof(Corner) + 40;  // of a vertex in the table
    mesh_.claim.reach(mesh_.bytes() + places_.size() * kPlace, "its mesh", where_);
    std::array<int32_t, 3> facet;
    for (size_t k = 0; k < 3; ++k) facet[k] = vertex(corners + 3 * k, fail);
    if (facet[0] == facet[1] || facet[1] == facet[2] || facet[2] == facet[0])
      fail("a facet with two corners in one place", "three different corners");
    mesh_.faces.insert(mesh_.faces.end(), facet.begin(), facet.end());
  }
  TriangleMesh finish() {
    if (mesh_.faces.empty()) throw InputError("no facets", where_, "an STL mesh");
    mesh_.claim.settle(2 * mesh_.bytes());
    return std::move(mesh_);
  }

 private:
  template <class Fail>
  int32_t vertex(const double* p, const Fail& fail) {
    Corner key;
    for (size_t k = 0; k < 3; ++k) {
      if (!std::isfinite(p[k])) fail("a corner that is not finite", "finite coordinates");
      key[k] = std::bit_cast<uint64_t>(p[k] + 0.0);  // -0 is 0
    }
    if (places_.size() == size_t(INT32_MAX)) fail("too many vertices", "fewer than 2^31");
    const auto [found, fresh] = places_.emplace(key, int32_t(places_.size()));
    if (fresh)
      for (const uint64_t part : key) mesh_.vertices.push_back(std::bit_cast<double>(part));
    return found->second;
  }

  const std::string where_;
  TriangleMesh mesh_;
  std::unordered_map<Corner, int32_t, SeededHash> places_;
};

TriangleMesh parse_binary(std::span<const std::byte> bytes, std::string_view where) {
  uint32_t count = 0;
  std::memcpy(&count, bytes.data() + 80, 4);
  if (bytes.size() != kHeader + kFacet * size_t(count))
    throw InputError(
        fmt::format("{} facets in {} bytes", count, bytes.size()), where,
        fmt::format("a binary STL of {} bytes, or an ASCII one", kHeader + kFacet * size_t(count)));
  Builder builder(where);
  for (size_t f = 0; f < count; ++f) {
    std::array<float, 9> corners;
    std::memcpy(corners.data(), bytes.data() + kHeader + kFacet * f + 12, sizeof(corners));
    std::array<double, 9> wide;
    std::copy(corners.begin(), corners.end(), wide.begin());
    builder.add(wide.data(), [&](const char* what, const char* expected) {
      throw InputError(what, fmt::format("{}, facet {}", where, f + 1), expected);
    });
  }
  return builder.finish();
}

class AsciiParser {
 public:
  AsciiParser(std::string_view text, std::string_view where)
      : scan_(text, std::string(where)), builder_(where) {}

  static bool begins(std::string_view text) {
    TextScanner scan(text, "");
    return scan.next_line() && is_word(scan.field().substr(0, 5), "solid");
  }
  TriangleMesh parse() {
    if (!scan_.next_line() || !is_word(scan_.field(), "solid")) scan_.fail("no 'solid'", "an STL mesh");
    bool open = true;
    while (scan_.next_line()) {
      const std::string_view word = scan_.field();
      // "solid" and "endsolid" are followed by the solid's name, of any words.
      if (!open) {
        if (!is_word(word, "solid"))
          scan_.fail(fmt::format("'{}'", shown(word)), "'solid' or the end of the file");
        open = true;
      } else if (is_word(word, "endsolid")) {
        open = false;
      } else {
        if (!is_word(word, "facet")) scan_.fail(fmt::format("'{}'", shown(word)), "'facet' or 'endsolid'");
        facet();
      }
    }
    if (open) scan_.fail("the file ends within the solid", "'endsolid'");
    return builder_.finish();
  }

 private:
  /// Keywords are written in small or capital letters.
  static bool is_word(std::string_view field, std::string_view word) {
    return std::equal(field.begin(), field.end(), word.begin(), word.end(),
                      [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
  }
  void expect_line(const char* first, const char* second = nullptr) {
    if (!scan_.next_line()) scan_.fail("the file ends within a facet", fmt::format("'{}'", first));
    if (const auto word = scan_.field(); !is_word(word, first))
      scan_.fail(fmt::format("'{}'", shown(word)), fmt::format("'{}'", first));
    if (second)
      if (const auto word = scan_.field(); !is_word(word, second))
        scan_.fail(fmt::format("'{}'", shown(word)), fmt::format("'{} {}'", first, second));
  }
  void end_line() { scan_.end_line("the end of the line"); }
  void facet() {
    if (const auto word = scan_.field(); !is_word(word, "normal"))
      scan_.fail(fmt::format("'{}'", shown(word)), "'facet normal'");
    // Normals are passed over: exporters leave them 0 or NaN, in many spellings, and the corners' order says the same.
    for (int k = 0; k < 3; ++k) scan_.field();
    end_line();
    expect_line("outer", "loop");
    end_line();
    std::array<double, 9> corners;
    for (size_t k = 0; k < 9; ++k) {
      if (k % 3 == 0) expect_line("vertex");
      corners[k] = scan_.number("a coordinate");
      if (k % 3 == 2) end_line();
    }
    builder_.add(corners.data(), [&](const char* what, const char* expected) { scan_.fail(what, expected); });
    for (const char* word : {"endloop", "endfacet"}) {
      expect_line(word);
      end_line();
    }
  }

  TextScanner scan_;
  Builder builder_;
};

}  // namespace

TriangleMesh parse_stl(std::span<const std::byte> bytes, std::string_view where) {
  // Some binary files start with "solid" too. Their size identifies them.
  if (bytes.size() >= kHeader) {
    uint32_t count = 0;
    std::memcpy(&count, bytes.data() + 80, 4);
    if (bytes.size() == kHeader + kFacet * size_t(count)) return parse_binary(bytes, where);
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (AsciiParser::begins(text)) return AsciiParser(text, where).parse();
  if (bytes.size() < kHeader) throw InputError(fmt::format("{} bytes", bytes.size()), where, "an STL mesh");
  return parse_binary(bytes, where);
}

void write_stl(const std::filesystem::path& path, const TriangleMesh& mesh) {
  std::vector<std::byte> bytes(kHeader + kFacet * size_t(mesh.face_count()));
  const auto count = uint32_t(mesh.face_count());
  std::memcpy(bytes.data() + 80, &count, 4);
  for (size_t f = 0; f < count; ++f) {
    std::array<std::array<double, 3>, 3> p;
    for (size_t k = 0; k < 3; ++k)
      for (size_t c = 0; c < 3; ++c) p[k][c] = mesh.vertices[3 * size_t(mesh.faces[3 * f + k]) + c];
    std::array<double, 3> normal;
    for (size_t c = 0; c < 3; ++c) {
      const size_t a = (c + 1) % 3, b = (c + 2) % 3;
      normal[c] = (p[1][a] - p[0][a]) * (p[2][b] - p[0][b]) - (p[1][b] - p[0][b]) * (p[2][a] - p[0][a]);
    }
    const double length = std::hypot(normal[0], normal[1], normal[2]);
    std::array<float, 12> facet{};
    for (size_t c = 0; c < 3; ++c) facet[c] = length > 0 ? float(normal[c] / length) : 0.0f;
    for (size_t k = 0; k < 9; ++k) facet[3 + k] = float(p[k / 3][k % 3]);
    std::memcpy(bytes.data() + kHeader + kFacet * f, facet.data(), sizeof(facet));
  }
  write_file(path, bytes);
}

}  // namespace lockstep::io
