// Maps of a disk to the plane.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "solve/mesh/connectivity.hpp"

namespace lockstep::solve::mesh {

/// Throws InputError that names `where` unless the mesh is one piece with one boundary loop and no handles.
void check_disk(const Connectivity& connectivity, std::string_view where);

/// Tutte's embedding (1963): the boundary on a circle whose area is that of the mesh, spaced by edge lengths;
/// every inner vertex the mean of its neighbours. (n, 2); no triangle is turned over.
std::vector<double> tutte_embedding(const TriangleMesh& mesh, const Connectivity& connectivity);

/// Five numbers a triangle, as symmetric_dirichlet_term() wants them: the inverse of the matrix whose columns
/// are the triangle's edges in its own plane, row-major, and its share of the total area.
std::vector<double> rest_frames(const TriangleMesh& mesh);

/// Singular values (larger, smaller; negative where turned over) of the map of each triangle. (m, 2)
std::vector<double> stretches(const TriangleMesh& mesh, const std::vector<double>& uv);
/// Share-weighted sum over triangles of |J|^2 + |J^-1|^2: 4 for an isometry.
double symmetric_dirichlet(const TriangleMesh& mesh, const std::vector<double>& uv);
int64_t turned_over(const TriangleMesh& mesh, const std::vector<double>& uv);

/// OBJ with the mesh's positions and (u, v) as texture coordinates.
std::string obj_with_uv(const TriangleMesh& mesh, const std::vector<double>& uv);

}  // namespace lockstep::solve::mesh
