// Spheres of triangles.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace lockstep::solve {

/// A sphere of triangles: an icosahedron, each triangle cut in four `subdivisions` times. 10 4^s + 2
/// vertices.
struct Icosphere {
  std::vector<double> vertices;               // (n, 3), unit length
  std::vector<std::array<int32_t, 3>> faces;  // outward
  std::vector<std::array<int32_t, 4>>
      hinges;  // an edge (a, b) and the corners opposite to it: (a, b, c), (b, a, d)
};
Icosphere icosphere(int subdivisions);

}  // namespace lockstep::solve
