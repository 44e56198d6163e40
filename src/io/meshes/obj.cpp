#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string>

#include "core/files/atomic_file.hpp"
#include "io/meshes/mesh.hpp"
#include "io/meshes/mesh_fans.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

// Statements without a meaning for the surface, and those of free-form geometry, which would be lost.
constexpr std::array kPassedOver = {"vt",     "vn", "vp", "g",   "o",     "s",        "mtllib",
                                    "usemtl", "l",  "p",  "lod", "bevel", "c_interp", "d_interp"};
constexpr std::array kFreeForm = {"cstype", "deg",  "curv", "curv2", "surf", "bmat",
                                  "step",   "parm", "trim", "hole",  "end"};

class ObjParser {
 public:
  ObjParser(std::string_view text, std::string_view where)
      : scan_(text, std::string(where), {.trailing_comments = true, .continued_lines = true}),
        where_(where) {}

  TriangleMesh parse() {
    while (scan_.next_line()) {
      claim();
      const std::string_view word = scan_.field();
      if (word == "v") {
        vertex();
      } else if (word == "f") {
        face();
      } else if (std::find(kFreeForm.begin(), kFreeForm.end(), word) != kFreeForm.end()) {
        scan_.fail(fmt::format("free-form geometry ('{}')", word), "vertices (v) and faces (f)");
      } else if (std::find(kPassedOver.begin(), kPassedOver.end(), word) == kPassedOver.end()) {
        scan_.fail(fmt::format("unknown statement '{}'", shown(word)), "a statement of an OBJ mesh");
      }
    }
    if (mesh_.vertices.empty()) throw InputError("no vertices", where_, "an OBJ mesh");
    for (const Postponed& face : postponed_) {
      claim();
      add(face.polygon, face.line);
    }
    mesh_.claim.settle(2 * mesh_.bytes());
    if (mesh_.colors.size() != mesh_.vertices.size()) mesh_.colors.clear();
    return std::move(mesh_);
  }

 private:
  void claim() { mesh_.claim.reach(mesh_.bytes() + postponed_bytes_, "its mesh", where_); }
  void vertex() {
    if (mesh_.vertex_count() == INT32_MAX) scan_.fail("too many vertices", "fewer than 2^31");
    for (const char* what : {"x", "y", "z"}) mesh_.vertices.push_back(scan_.number(what));
    std::array<double, 3> more;
    size_t count = 0;
    for (; !scan_.at_line_end(); ++count) {
      if (count == 3) scan_.fail("a vertex of more than 6 numbers", "x y z, then a weight or a colour");
      more[count] = scan_.number("a number of a vertex");
    }
    if (count == 2) scan_.fail("a vertex of 5 numbers", "x y z, then a weight or a colour");
    if (count == 3)
      for (const double c : more) mesh_.colors.push_back(uint8_t(std::lround(255 * std::clamp(c, 0.0, 1.0))));
  }

  // An index as written: from 1, or negative from the end of the elements above.
  int64_t index(std::string_view text) const {
    int64_t value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || at != text.data() + text.size() || error != std::errc() || value == 0)
      scan_.fail(fmt::format("a face has the index '{}'", shown(text)), "a whole number other than 0");
    return value > 0 ? value - 1 : mesh_.vertex_count() + value;
  }

  void face() {
    polygon_.clear();
    while (!scan_.at_line_end()) {
      const std::string_view corner = scan_.field();
      const size_t slash = corner.find('/');
      polygon_.push_back(index(corner.substr(0, slash)));
      if (slash == std::string_view::npos) continue;
      const std::string_view rest = corner.substr(slash + 1);
      const size_t second = rest.find('/');
      // The texture may be left out only before a normal.
      if (second == std::string_view::npos || second > 0) index(rest.substr(0, second));
      if (second != std::string_view::npos) index(rest.substr(second + 1));
    }
    // Faces stay in the order of the file, also where their vertices follow them.
    const int64_t known = mesh_.vertex_count();
    if (postponed_.empty() &&
        std::all_of(polygon_.begin(), polygon_.end(), [&](int64_t v) { return v < known; }))
      add(polygon_, scan_.line());
    else {
      postponed_bytes_ += sizeof(Postponed) + 16 + polygon_.size() * sizeof(int64_t);
      postponed_.push_back({polygon_, scan_.line()});
    }
  }

  void add(const std::vector<int64_t>& polygon, int64_t line) {
    add_fan(polygon, mesh_.vertex_count(), mesh_.faces,
            [&](const std::string& what, const std::string& expected) {
              throw InputError(what, fmt::format("{}:{}", where_, line), expected);
            });
  }

  struct Postponed {
    std::vector<int64_t> polygon;
    int64_t line;
  };

  TextScanner scan_;
  const std::string where_;
  TriangleMesh mesh_;
  std::vector<int64_t> polygon_;
  std::vector<Postponed> postponed_;
  size_t postponed_bytes_ = 0;
};

}  // namespace

TriangleMesh parse_obj(std::string_view text, std::string_view where) {
  return ObjParser(text, where).parse();
}

void write_obj(const std::filesystem::path& path, const TriangleMesh& mesh) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  const bool colored = mesh.colors.size() == mesh.vertices.size();
  for (size_t v = 0; v < mesh.vertices.size(); v += 3) {
    fmt::format_to(out, "v {} {} {}", mesh.vertices[v], mesh.vertices[v + 1], mesh.vertices[v + 2]);
    if (colored)
      fmt::format_to(out, " {:.4f} {:.4f} {:.4f}", mesh.colors[v] / 255.0, mesh.colors[v + 1] / 255.0,
                     mesh.colors[v + 2] / 255.0);
    text.push_back('\n');
  }
  for (size_t f = 0; f < mesh.faces.size(); f += 3)
    fmt::format_to(out, "f {} {} {}\n", mesh.faces[f] + 1, mesh.faces[f + 1] + 1, mesh.faces[f + 2] + 1);
  write_file(path, std::string_view(text.data(), text.size()));
}

}  // namespace lockstep::io
