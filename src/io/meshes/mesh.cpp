#include "io/meshes/mesh.hpp"

#include <algorithm>
#include <cctype>

#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
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
  const std::string suffix = mesh_suffix(path);
  return within_memory(path.string(), [&] {
    const std::vector<std::byte> bytes = read_file(path, "a mesh (OBJ, PLY or STL)");
    if (suffix == ".obj")
      return parse_obj({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
    return suffix == ".ply" ? parse_ply(bytes, path.string()) : parse_stl(bytes, path.string());
  });
}

void write_mesh(const std::filesystem::path& path, const TriangleMesh& mesh) {
  const std::string suffix = mesh_suffix(path);
  if (suffix == ".obj") {
    write_obj(path, mesh);
  } else if (suffix == ".ply") {
    write_ply(path, mesh);
  } else {
    write_stl(path, mesh);
  }
}

}  // namespace lockstep::io
