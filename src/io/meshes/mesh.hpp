// Triangle meshes and point clouds in OBJ, PLY and STL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "io/text/input_memory.hpp"

namespace lockstep::io {

struct TriangleMesh {
  std::vector<double> vertices;  // (n, 3)
  std::vector<int32_t> faces;    // (m, 3), counter-clockwise seen from outside; empty for a point cloud
  std::vector<uint8_t> colors;   // (n, 3) RGB, or empty
  InputClaim claim = {};

  size_t bytes() const {
    return vertices.size() * sizeof(double) + faces.size() * sizeof(int32_t) + colors.size();
  }
  int64_t vertex_count() const { return int64_t(vertices.size()) / 3; }
  int64_t face_count() const { return int64_t(faces.size()) / 3; }
};

/// ".obj", ".ply" or ".stl", however the name writes it. Throws InputError for other names.
std::string mesh_suffix(const std::filesystem::path& path);

/// By the suffix: .obj, .ply or .stl. Throws InputError that names file and line (or the facet of a binary
/// file). Polygons become fans of triangles. A face that names a vertex twice or a vertex that does not exist
/// is refused; so is a file without vertices.
TriangleMesh read_mesh(const std::filesystem::path& path);
/// By the suffix; .ply is binary. Numbers of .obj and .ply keep all their digits; .stl holds f32. Appears
/// whole or not at all.
void write_mesh(const std::filesystem::path& path, const TriangleMesh& mesh);

/// v with 3, 4 or 6 numbers (a weight is passed over, a colour 0 … 1 is kept where all vertices have one), f
/// with v, v/vt, v//vn and v/vt/vn, indices from 1 or from the end; vertices may follow their faces. Other known
/// statements and comments are passed over; a '\\' at the end of a line joins the next one to it.
TriangleMesh parse_obj(std::string_view text, std::string_view where);
/// ASCII and binary of both byte orders. x, y, z of any type; red, green, blue as uchar; faces in
/// vertex_indices or vertex_index. Other properties and elements are passed over.
TriangleMesh parse_ply(std::span<const std::byte> bytes, std::string_view where);
/// ASCII and binary. Corners with the same numbers become one vertex, in the order of first use.
TriangleMesh parse_stl(std::span<const std::byte> bytes, std::string_view where);

enum class PlyEncoding { binary_little_endian, ascii };
void write_obj(const std::filesystem::path& path, const TriangleMesh& mesh);
void write_ply(const std::filesystem::path& path, const TriangleMesh& mesh,
               PlyEncoding encoding = PlyEncoding::binary_little_endian);
void write_stl(const std::filesystem::path& path, const TriangleMesh& mesh);

}  // namespace lockstep::io
