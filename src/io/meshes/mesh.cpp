#include "io/meshes/mesh.hpp"

#include <algorithm>
#include <cctype>

#include "io/text/parse_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
std::string mesh_suffix(const std::filesystem::path& path) {
  std::string suffix = path.extension().string();
  for (char& c : suffix) c = char(std::tolower(static_cast<unsigned char>(c)));
  if (suffix != ".obj" && suffix != ".ply" && suffix != ".stl")
    throw InputError("the name has the suffix '" + suffix + "'", path.string(), ".obj, .ply or .stl");
  return suffix;
}

TriangleMesh read_mesh(const std::filesystem::path& path) {
  constexpr const char* kExpected = "a mesh (OBJ, PLY or STL)";
  const std::string suffix = mesh_suffix(path);
  if (suffix == ".obj") return parse_text_file(path, kExpected, &parse_obj);
  return parse_file(path, kExpected, suffix == ".ply" ? &parse_ply : &parse_stl);
}

void write_mesh(const std::filesystem::path& path, const TriangleMesh& mesh) {
  const std::string suffix = mesh_suffix(path);
  if (suffix == ".obj") return write_obj(path, mesh);
  suffix == ".ply" ? write_ply(path, mesh) : write_stl(path, mesh);
}

}  // namespace lockstep::io
