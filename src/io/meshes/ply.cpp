#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

#include "core/files/atomic_file.hpp"
#include "io/meshes/mesh.hpp"
#include "io/meshes/mesh_fans.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

static_assert(std::endian::native == std::endian::little);

enum class Type : uint8_t { i8, u8, i16, u16, i32, u32, f32, f64 };
constexpr std::array<size_t, 8> kSizes = {1, 1, 2, 2, 4, 4, 4, 8};
constexpr std::array<std::array<const char*, 2>, 8> kTypeNames = {{{"char", "int8"},
                                                                   {"uchar", "uint8"},
                                                                   {"short", "int16"},
                                                                   {"ushort", "uint16"},
                                                                   {"int", "int32"},
                                                                   {"uint", "uint32"},
                                                                   {"float", "float32"},
                                                                   {"double", "float64"}}};
constexpr size_t kMostNames = 1000;  // of elements, and of properties of one

bool is_real(Type type) { return type == Type::f32 || type == Type::f64; }
size_t size_of(Type type) { return kSizes[size_t(type)]; }

struct Property {
  std::string name;
  Type type;
  std::optional<Type> count;  // of a list
};
struct Element {
  std::string name;
  int64_t count;
  std::vector<Property> properties;
  const Property* find(std::string_view wanted) const {
    for (const Property& p : properties)
      if (p.name == wanted) return &p;
    return nullptr;
  }
};

enum class Format { ascii, little, big };
struct Header {
  Format format = Format::ascii;
  std::vector<Element> elements;
  size_t size = 0;    // bytes
  int64_t lines = 0;  // of the header
};

Type type_of(std::string_view word, const TextScanner& scan) {
  for (size_t t = 0; t < kTypeNames.size(); ++t)
    if (word == kTypeNames[t][0] || word == kTypeNames[t][1]) return Type(t);
  scan.fail(fmt::format("unknown type '{}'", shown(word)),
            "char, uchar, short, ushort, int, uint, float or double");
}

Header parse_header(std::string_view text, std::string_view where) {
  // The body of a binary file must not be taken for lines, so the header is cut off first.
  const size_t end = text.find("end_header");
  const size_t stop = end == std::string_view::npos ? end : text.find('\n', end);
  if (!text.starts_with("ply") || stop == std::string_view::npos)
    throw InputError("no PLY header", where, "'ply', the elements and 'end_header'");
  Header header;
  header.size = stop + 1;
  TextScanner scan(text.substr(0, stop), std::string(where));
  scan.next_line('\0');
  if (scan.field() != "ply") scan.fail("no 'ply'", "a PLY mesh");
  bool has_format = false;
  while (scan.next_line('\0')) {
    const std::string_view word = scan.field();
    if (word == "comment" || word == "obj_info") continue;
    if (word == "end_header") {
      header.lines = scan.line();
      scan.end_line("the end of the line");
      break;
    }
    if (word == "format") {
      const std::string_view name = scan.field();
      if (name != "ascii" && name != "binary_little_endian" && name != "binary_big_endian")
        scan.fail(fmt::format("format '{}'", shown(name)),
                  "ascii, binary_little_endian or binary_big_endian");
      header.format = name == "ascii"               ? Format::ascii
                      : name == "binary_big_endian" ? Format::big
                                                    : Format::little;
      has_format = true;
    } else if (word == "element") {
      const std::string name(scan.field());
      for (const Element& e : header.elements)
        if (e.name == name)
          scan.fail(fmt::format("element '{}' is repeated", shown(name)), "each element once");
      if (header.elements.size() == kMostNames)
        scan.fail("too many elements", fmt::format("at most {}", kMostNames));
      header.elements.push_back({name, scan.integer("the number of elements", 0), {}});
      scan.end_line("the end of the line after the count");
    } else if (word == "property") {
      if (header.elements.empty()) scan.fail("a property before all elements", "'element'");
      Property p;
      std::string_view type = scan.field();
      if (type == "list") {
        p.count = type_of(scan.field(), scan);
        if (is_real(*p.count)) scan.fail("a list whose count is not whole", "an integer type");
        type = scan.field();
      }
      p.type = type_of(type, scan);
      p.name = scan.field();
      if (p.name.empty()) scan.fail("a property without a name", "a name");
      if (header.elements.back().properties.size() == kMostNames)
        scan.fail("too many properties", fmt::format("at most {}", kMostNames));
      if (header.elements.back().find(p.name))
        scan.fail(fmt::format("property '{}' is repeated", shown(p.name)), "each property once");
      scan.end_line("the end of the line after the name");
      header.elements.back().properties.push_back(std::move(p));
    } else {
      scan.fail(fmt::format("unknown word '{}'", shown(word)),
                "format, element, property, comment or end_header");
    }
  }
  if (header.lines == 0) scan.fail("'end_header' is inside a line", "it on a separate line");
  if (!has_format) scan.fail("no format line", "'format ascii 1.0' or a binary one");
  return header;
}

// Where the body's numbers come from. `place` says which element is read.
class AsciiBody {
 public:
  AsciiBody(std::string_view text, size_t skip, int64_t lines, std::string_view where)
      : scan_(text.substr(skip), std::string(where)),
        lines_(lines),
        left_(text.size() - skip),
        where_(where) {}
  // A digit and a separator for each number; the last separator may be missing.
  void expect(const Element& e) const {
    const uint64_t room = left_ + 1;
    if (uint64_t(e.count) > room / 2 / std::max<size_t>(e.properties.size(), 1))
      throw InputError(fmt::format("{} of element '{}' in {} bytes", e.count, shown(e.name), left_), where_,
                       "a complete file");
  }
  void expect_values(uint64_t count, Type) const {
    if (count > left_) fail(fmt::format("a list of {}", count), "a complete file");
  }
  double value(Type type) {
    if (scan_.at_file_end()) fail("the file ends", "as many numbers as the header announces");
    const std::string_view text = scan_.field();
    double number = 0;
    if (!parse_double(text, number) || !std::isfinite(number) ||
        (!is_real(type) && number != std::floor(number)))
      fail(fmt::format("'{}'", shown(text)), is_real(type) ? "a finite number" : "a whole number");
    return number;
  }
  void place(const Element&, int64_t) {}
  void finish() {
    if (!scan_.at_file_end()) fail(fmt::format("'{}' follows", shown(scan_.field())), "the end of the file");
  }
  [[noreturn]] void fail(std::string_view what, std::string_view expected) const {
    throw InputError(what, fmt::format("{}:{}", where_, lines_ + std::max<int64_t>(scan_.line(), 1)),
                     expected);
  }

 private:
  TextScanner scan_;
  const int64_t lines_;
  const size_t left_;
  const std::string where_;
};

class BinaryBody {
 public:
  BinaryBody(std::span<const std::byte> bytes, bool swap, std::string_view where)
      : at_(bytes.data()), end_(at_ + bytes.size()), swap_(swap), where_(where) {}
  void expect(const Element& e) const {
    size_t row = 0;
    for (const Property& p : e.properties) row += size_of(p.count.value_or(p.type));
    if (uint64_t(e.count) > left() / std::max<size_t>(row, 1))
      throw InputError(fmt::format("{} of element '{}' in {} bytes", e.count, shown(e.name), left()), where_,
                       "a complete file");
  }
  void expect_values(uint64_t count, Type type) const {
    if (count > left() / size_of(type)) fail(fmt::format("a list of {}", count), "a complete file");
  }
  double value(Type type) {
    const size_t size = size_of(type);
    if (left() < size) fail("the file ends", "as many bytes as the header announces");
    std::array<std::byte, 8> bytes{};
    std::memcpy(bytes.data(), at_, size);
    if (swap_) std::reverse(bytes.begin(), bytes.begin() + std::ptrdiff_t(size));
    at_ += size;
    switch (type) {
      case Type::i8: return as<int8_t>(bytes);
      case Type::u8: return as<uint8_t>(bytes);
      case Type::i16: return as<int16_t>(bytes);
      case Type::u16: return as<uint16_t>(bytes);
      case Type::i32: return as<int32_t>(bytes);
      case Type::u32: return as<uint32_t>(bytes);
      case Type::f32: return as<float>(bytes);
      case Type::f64: break;
    }
    return as<double>(bytes);
  }
  void place(const Element& e, int64_t number) {
    element_ = &e;
    number_ = number;
  }
  void finish() const {
    if (left() > 0)
      throw InputError(fmt::format("{} bytes follow the last element", left()), where_,
                       "the end of the file");
  }
  [[noreturn]] void fail(std::string_view what, std::string_view expected) const {
    throw InputError(what, fmt::format("{}, {} {}", where_, shown(element_->name), number_ + 1), expected);
  }

 private:
  template <class T>
  static double as(const std::array<std::byte, 8>& bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return double(value);
  }
  size_t left() const { return size_t(end_ - at_); }

  const std::byte* at_;
  const std::byte* const end_;
  const bool swap_;
  const std::string where_;
  const Element* element_ = nullptr;
  int64_t number_ = 0;
};

template <class Body>
uint64_t list_count(const Property& p, Body& body) {
  const double count = body.value(*p.count);
  if (!(count >= 0 && count <= double(UINT32_MAX)))
    body.fail(fmt::format("a list of {}", count), "0 to 2^32 - 1");
  body.expect_values(uint64_t(count), p.type);
  return uint64_t(count);
}
// A scalar; a list is passed over and gives its length.
template <class Body>
double read_property(const Property& p, Body& body) {
  if (!p.count) return body.value(p.type);
  const uint64_t count = list_count(p, body);
  for (uint64_t k = 0; k < count; ++k) body.value(p.type);
  return double(count);
}

template <class Body>
void read_vertices(const Element& e, Body& body, TriangleMesh& mesh, std::string_view where) {
  std::array<int, 3> axes{-1, -1, -1}, colors{-1, -1, -1};
  for (size_t k = 0; k < e.properties.size(); ++k) {
    const Property& p = e.properties[k];
    for (size_t c = 0; c < 3; ++c) {
      constexpr std::array kAxes = {"x", "y", "z"}, kColors = {"red", "green", "blue"};
      if (!p.count && p.name == kAxes[c]) axes[c] = int(k);
      if (!p.count && p.type == Type::u8 && p.name == kColors[c]) colors[c] = int(k);
    }
  }
  for (const int axis : axes)
    if (axis < 0) throw InputError("no x, y and z in element 'vertex'", where, "three properties");
  if (e.count >= INT32_MAX) throw InputError("too many vertices", where, "fewer than 2^31");
  const bool colored = *std::min_element(colors.begin(), colors.end()) >= 0;
  mesh.claim.reach(3 * size_t(e.count) * (sizeof(double) + (colored ? 1 : 0)), "its vertices", where);
  mesh.vertices.reserve(3 * size_t(e.count));
  std::vector<double> row(e.properties.size());
  for (int64_t v = 0; v < e.count; ++v) {
    body.place(e, v);
    for (size_t k = 0; k < row.size(); ++k) row[k] = read_property(e.properties[k], body);
    for (const int axis : axes) {
      if (!std::isfinite(row[size_t(axis)])) body.fail("a coordinate is not finite", "a finite number");
      mesh.vertices.push_back(row[size_t(axis)]);
    }
    if (!colored) continue;
    for (const int channel : colors) {
      const double c = row[size_t(channel)];
      if (c < 0 || c > 255) body.fail(fmt::format("the colour {}", c), "0 to 255");
      mesh.colors.push_back(uint8_t(c));
    }
  }
}

template <class Body>
void read_faces(const Element& e, Body& body, TriangleMesh& mesh, std::string_view where) {
  const Property* indices = e.find("vertex_indices");
  if (!indices) indices = e.find("vertex_index");
  if (!indices || !indices->count || is_real(indices->type))
    throw InputError("no list of vertex indices in element 'face'", where,
                     "'property list uchar int vertex_indices'");
  std::vector<int64_t> polygon;
  for (int64_t f = 0; f < e.count; ++f) {
    body.place(e, f);
    for (const Property& p : e.properties) {
      if (&p != indices) {
        read_property(p, body);
        continue;
      }
      const uint64_t corners = list_count(p, body);
      // The polygon and its sorted copy, and the triangles.
      mesh.claim.reach(mesh.bytes() + corners * (2 * sizeof(int64_t) + 3 * sizeof(int32_t)), "its faces",
                       where);
      polygon.resize(corners);
      // Numbers of an ASCII file may exceed every type; they are no vertices.
      for (int64_t& v : polygon) v = int64_t(std::clamp(body.value(p.type), -1.0, 4e9));
      add_fan(polygon, mesh.vertex_count(), mesh.faces,
              [&](const std::string& what, const std::string& expected) { body.fail(what, expected); });
    }
  }
}

template <class Body>
TriangleMesh read_body(const Header& header, Body& body, std::string_view where) {
  TriangleMesh mesh;
  bool has_vertices = false;
  for (const Element& e : header.elements) {
    body.expect(e);
    if (e.properties.empty() && e.count > 0)
      throw InputError(fmt::format("element '{}' has no properties", shown(e.name)), where, "properties");
    if (e.name == "vertex") {
      has_vertices = true;
      read_vertices(e, body, mesh, where);
    } else if (e.name == "face") {
      if (!has_vertices) throw InputError("faces before the vertices", where, "element 'vertex' first");
      read_faces(e, body, mesh, where);
    } else {
      for (int64_t k = 0; k < e.count; ++k) {
        body.place(e, k);
        for (const Property& p : e.properties) read_property(p, body);
      }
    }
  }
  body.finish();
  if (mesh.vertices.empty()) throw InputError("no vertices", where, "a PLY mesh");
  mesh.claim.settle(2 * mesh.bytes());
  return mesh;
}

}  // namespace

TriangleMesh parse_ply(std::span<const std::byte> bytes, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Header header = parse_header(text, where);
  if (header.format == Format::ascii) {
    AsciiBody body(text, header.size, header.lines, where);
    return read_body(header, body, where);
  }
  BinaryBody body(bytes.subspan(header.size), header.format == Format::big, where);
  return read_body(header, body, where);
}

void write_ply(const std::filesystem::path& path, const TriangleMesh& mesh, PlyEncoding encoding) {
  const bool ascii = encoding == PlyEncoding::ascii, colored = mesh.colors.size() == mesh.vertices.size();
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(
      out, "ply\nformat {} 1.0\nelement vertex {}\nproperty double x\nproperty double y\nproperty double z\n",
      ascii ? "ascii" : "binary_little_endian", mesh.vertex_count());
  if (colored) fmt::format_to(out, "property uchar red\nproperty uchar green\nproperty uchar blue\n");
  if (!mesh.faces.empty())
    fmt::format_to(out, "element face {}\nproperty list uchar int vertex_indices\n", mesh.face_count());
  fmt::format_to(out, "end_header\n");
  const auto raw = [&](const auto* values, size_t count) {
    const auto* first = reinterpret_cast<const char*>(values);
    text.append(first, first + count * sizeof(*values));
  };
  for (size_t v = 0; v < mesh.vertices.size(); v += 3) {
    if (ascii) {
      fmt::format_to(out, "{} {} {}", mesh.vertices[v], mesh.vertices[v + 1], mesh.vertices[v + 2]);
      if (colored) fmt::format_to(out, " {} {} {}", mesh.colors[v], mesh.colors[v + 1], mesh.colors[v + 2]);
      text.push_back('\n');
    } else {
      raw(&mesh.vertices[v], 3);
      if (colored) raw(&mesh.colors[v], 3);
    }
  }
  for (size_t f = 0; f < mesh.faces.size(); f += 3) {
    if (ascii) {
      fmt::format_to(out, "3 {} {} {}\n", mesh.faces[f], mesh.faces[f + 1], mesh.faces[f + 2]);
    } else {
      text.push_back(3);
      raw(&mesh.faces[f], 3);
    }
  }
  write_file(path, std::string_view(text.data(), text.size()));
}

}  // namespace lockstep::io
