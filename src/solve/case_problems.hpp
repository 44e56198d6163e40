// Problems that cases and tests measure and compare.
#pragma once

#include <vector>

#include "lockstep/solve.hpp"
#include "solve/mesh/shapes/icosphere.hpp"

namespace lockstep::solve {

/// |a - b| - L of two points; L is the datum.
TermType spring_term();
/// 0.3 (n1 - n2), n1 and n2 the unit normals of the triangles (a, b, c) and (b, a, d).
TermType dihedral_term();
/// Both of one edge, as four residuals.
TermType hinge_term();

/// Springs and dihedrals of an icosphere whose vertices are moved along their radius by up to 10 %; rest
/// lengths are those of the sphere. `joined`: hinge_term(), else two terms.
Problem mesh_problem(int subdivisions, bool joined, uint64_t seed);

/// Reprojection in pixels of a point (3) by a camera (9): rotation vector, translation, focal length, two
/// radial distortions; two data: the pixel. The model of the BAL data sets.
TermType reprojection_term(RobustLoss loss = {});
/// Cameras on a ring around random points; each point is seen by `views` neighbouring cameras, pixels are
/// those of the exact scene with noise, and the start is moved away from it.
Problem bundle_problem(int cameras, int points, int views, uint64_t seed);

/// Terms between random blocks, some of which are in many: `terms` instances of each of three topologies
/// over `blocks` blocks of 3 and 2 numbers, every 17th block fixed.
Problem random_problem(int blocks, int terms, uint64_t seed);

/// Two residuals an instance that use all numbers of a block, exp(data . x) - datum among them: three blocks
/// of `width` numbers, the first with almost all instances, the second fixed.
Problem wide_problem(int width, int instances, uint64_t seed);

}  // namespace lockstep::solve
