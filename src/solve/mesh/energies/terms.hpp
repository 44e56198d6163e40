// Terms of mesh problems. Slots of three numbers are vertices; `weight` data are square roots of stiffnesses,
// so that the cost is 1/2 stiffness |misfit|^2.
#pragma once

#include "lockstep/solve.hpp"

namespace lockstep::solve::mesh {

/// Slots (a, b), data (rest length, weight): weight (|a - b| - rest).
TermType spring_term();

/// Slots (vertex, neighbours …), data (a weight per neighbour): sum over neighbours of weight (neighbour -
/// vertex), three residuals. The weights make it the umbrella or the cotangent Laplacian.
TermType laplacian_term(int neighbours);

/// Slot (vertex), data (target x, y, z, weight): weight (vertex - target).
TermType attachment_term();

/// Slots (a, b, c, d) of a hinge, data (weight): weight (n1 - n2) with the unit normals of (a, b, c) and
/// (b, a, d), each divided by sqrt(|n|^2 + 1e-12). Flat at rest.
TermType normal_difference_term();

/// Slots (a, b, c, d) of a hinge, data (rest angle, weight): weight times the signed angle between the
/// normals less the rest angle.
TermType bend_term();

/// An energy. Slot (vertex), data (weight as a force, x, y, z of the upward unit vector, height of zero):
/// force times height.
TermType gravity_term();

/// As rigid as possible (Sorkine and Alexa 2007). Slots (i, j, rotation of i as a quaternion), data (rest
/// vector from i to j, weight): weight ((j - i) - R_i rest).
TermType arap_term();

/// An energy. Slots: the corners' (u, v); data: inverse of the matrix of the rest triangle's edges in its
/// plane, row-major, and a weight: weight (|J|^2 + |J^-1|^2), infinite for a triangle that is turned over.
/// The least value is 4 weight, at an isometry (Smith and Schaefer 2015).
TermType symmetric_dirichlet_term();

}  // namespace lockstep::solve::mesh
