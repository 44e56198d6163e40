// Meshes made from numbers.
#pragma once

#include <optional>
#include <string_view>

#include "solve/mesh/triangle_mesh.hpp"

namespace lockstep::solve::mesh {

/// The icosahedron on the unit sphere, each triangle divided into four `level` times: 10 * 4^level + 2
/// vertices. level 0 … 8 (655,362 vertices); throws InputError otherwise.
TriangleMesh icosphere(int level);
/// rows x cols vertices in the plane z = 0; the longer side has length 1, and the middle is the origin.
/// Diagonals alternate, so that no direction is stiffer.
TriangleMesh grid(int rows, int cols);
/// An open cylinder of radius 1 around z, `around` facets of `along` quads with diagonals; height 2.
TriangleMesh cylinder(int around, int along);
/// A closed bar of quads: `length` cells along z, `side` cells in x and y, cell size 1 / side; from z = 0.
TriangleMesh bar(int side, int length);
/// A dome without a bottom: the half of icosphere(level) above z = 0, an open disk.
TriangleMesh dome(int level);

/// "icosphere:4", "grid:30x40", "cylinder:24x8", "bar:4x24", "dome:3". Nothing where the text has no such
/// name; throws InputError where its numbers are wrong.
std::optional<TriangleMesh> generate(std::string_view text);

}  // namespace lockstep::solve::mesh
