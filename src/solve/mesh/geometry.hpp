// Lengths, angles and weights of a mesh on the host, and vertices by their curvature.
#pragma once

#include <cstdint>
#include <vector>

#include "solve/mesh/connectivity.hpp"

namespace lockstep::solve::mesh {

Point normal_of(const TriangleMesh& mesh, int64_t triangle);  // unit
double area_of(const TriangleMesh& mesh, int64_t triangle);
double total_area(const TriangleMesh& mesh);
/// A third of the area of the triangles around each vertex.
std::vector<double> vertex_areas(const TriangleMesh& mesh);
std::vector<double> edge_lengths(const TriangleMesh& mesh, const Connectivity& connectivity);
double mean_edge_length(const TriangleMesh& mesh, const Connectivity& connectivity);
/// Signed angle between the normals of a hinge's triangles, -pi to pi; positive where the edge is convex.
double hinge_angle(const TriangleMesh& mesh, const Hinge& hinge);
/// Half the sum of the cotangents of the angles opposite to each edge (one or two of them).
std::vector<double> cotangent_weights(const TriangleMesh& mesh, const Connectivity& connectivity);
/// Number of edge a-b. Throws InternalError where there is none.
int64_t edge_index(const Connectivity& connectivity, int32_t a, int32_t b);
/// 2 pi minus the sum of the tip angles at inner vertices, pi minus it at boundary vertices: sums up to 2 pi
/// times the Euler characteristic.
std::vector<double> angle_defects(const TriangleMesh& mesh, const Connectivity& connectivity);

/// A vertex is a hinge where |angle defect| < 0.1 * 4 pi / V: what a developable surface may be everywhere;
/// else a seam, where curvature gathers. Vertices of the boundary carry no such curvature.
enum class Curvature : uint8_t { boundary, hinge, seam };
std::vector<Curvature> classify_curvature(const TriangleMesh& mesh, const Connectivity& connectivity);

struct Box {
  Point low, high;
};
Box bounding_box(const TriangleMesh& mesh);

}  // namespace lockstep::solve::mesh
