// Where the search for a pose graph's poses begins.
#pragma once

#include "io/problems/g2o.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::solve {

/// Replaces the poses by those that the measurements give, breadth first along the edges (in the file's
/// order) from the fixed vertices, or from the first one; and landmarks by where they were first seen from.
/// Vertices that no path reaches keep theirs.
void start_from_tree(io::PoseGraph& graph);

/// Replaces the poses by those of a chordal relaxation (Martinec and Pajdla 2007; Carlone, Tron, Daniilidis and
/// Dellaert 2015): least squares of R_i Z = R_j over all matrices, weighed by the edges' information, then
/// the nearest rotations, then the translations by least squares. Fixed vertices stay, as does the first one of
/// every piece without any. Landmarks are placed at their first observation. Two sparse Cholesky factors on
/// the host.
void start_chordal(io::PoseGraph& graph);

/// Gives what was done: poses that are not in the file cannot be taken from it, so `file` is `tree` there.
PoseStart start_poses(io::PoseGraph& graph, PoseStart start);

}  // namespace lockstep::solve
