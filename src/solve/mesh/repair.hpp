// Makes meshes of the wild manifold where that is possible without moving a vertex.
#pragma once

#include "solve/mesh/triangle_mesh.hpp"

namespace lockstep::solve::mesh {

struct Repair {
  TriangleMesh mesh;
  int64_t welded = 0;   // vertices that coincided with another one
  int64_t dropped = 0;  // triangles with a repeated vertex, without area, or there twice
  int64_t turned = 0;   // triangles whose orientation was against their neighbours'
  int64_t copied = 0;   // vertices that were copied where fans or more than two triangles met
  int64_t unused = 0;   // vertices without a triangle
  bool changed() const { return welded + dropped + turned + copied + unused > 0; }
};

/// Welds vertices of equal coordinates; drops triangles that are degenerate (as build_connectivity says) or there
/// twice; turns triangles so that neighbours agree, along edges of two triangles; cuts the mesh along edges
/// of more than two triangles, along those where orientations contradict each other (a Moebius strip), and at
/// vertices where fans meet, by copies of the vertices; drops vertices without a triangle. Vertices keep
/// their order; copies are appended. A mesh with positions that are not finite, or with indices out of
/// range, stays as it is: build_connectivity refuses it.
Repair repair(const TriangleMesh& mesh);

}  // namespace lockstep::solve::mesh
