// Edges, hinges, stars and boundary loops of an oriented manifold triangle mesh.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "solve/mesh/triangle_mesh.hpp"

namespace lockstep::solve::mesh {

/// An inner edge a-b with its triangles (a, b, c) and (b, a, d).
struct Hinge {
  int32_t a, b, c, d;
};

struct Connectivity {
  int64_t vertices = 0, triangles = 0;
  std::vector<std::array<int32_t, 2>> edges;  // a < b, ascending
  std::vector<Hinge> hinges;                  // in the order of their edges; a < b
  /// Neighbours of vertex v, counter-clockwise: ring[star_begin[v]] … ring[star_begin[v + 1] - 1]. The star
  /// of an inner vertex closes; that of a boundary vertex runs from one boundary edge to the other.
  std::vector<int64_t> star_begin;
  std::vector<int32_t> ring;
  std::vector<uint8_t> on_boundary;                  // by vertex
  std::vector<std::vector<int32_t>> boundary_loops;  // each with the surface on its left, longest first
  int64_t components = 0;                            // connected pieces

  std::span<const int32_t> star(int64_t v) const {
    return std::span(ring).subspan(size_t(star_begin[size_t(v)]),
                                   size_t(star_begin[size_t(v) + 1] - star_begin[size_t(v)]));
  }
  int64_t euler_characteristic() const { return vertices - int64_t(edges.size()) + triangles; }
};

/// Whether twice the triangle's area is below 1e-13 of its longest side squared.
bool degenerate(const Point& p, const Point& q, const Point& r);

/// Throws InputError that names `where`, the element and what is wrong for: an empty mesh, positions that are
/// not finite, indices out of range, triangles with a repeated vertex or without area, edges with more than
/// two triangles, neighbours that run the same way along their edge, vertices where two fans meet, vertices
/// without a triangle. Vertices and triangles are counted from 0.
Connectivity build_connectivity(const TriangleMesh& mesh, std::string_view where);

}  // namespace lockstep::solve::mesh
