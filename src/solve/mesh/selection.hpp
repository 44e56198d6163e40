// Vertices chosen by a text, and where handles pull them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "solve/mesh/connectivity.hpp"

namespace lockstep::solve::mesh {

/// Vertices of `text`, ascending. Parts between commas are united:
///   12  5-9         vertices by number, from 0
///   boundary  boundary:1    all boundary loops, or one of them (0 is the longest)
///   all
///   z<0.1  x>=-2    coordinates in the file's unit
///   z<10%           the same in shares of the bounding box, 0 % its low and 100 % its high side
/// Parts joined by & must hold together: z>90%&x<0. Throws InputError that names `option` and the part for
/// anything else, and for a part that chooses nothing.
std::vector<int32_t> select_vertices(std::string_view text, const TriangleMesh& mesh,
                                     const Connectivity& connectivity, std::string_view option);

struct Handle {
  int32_t vertex;
  Point target;
};
/// Handles of `text`, in the order of their vertices:
///   SELECTION=X,Y,Z         the position of the one vertex chosen
///   SELECTION+=DX,DY,DZ     moves all vertices chosen
///   SELECTION@X,Y,Z,DEG     turns them around the axis (X, Y, Z) through their middle
/// Throws InputError that names `option` otherwise.
std::vector<Handle> parse_handle(std::string_view text, const TriangleMesh& mesh,
                                 const Connectivity& connectivity, std::string_view option);
/// One handle a line: vertex x y z; empty lines and lines that start with # are passed over. Throws
/// InputError that names file and line.
std::vector<Handle> read_handles(const std::filesystem::path& path, const TriangleMesh& mesh);

}  // namespace lockstep::solve::mesh
