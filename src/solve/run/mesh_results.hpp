// Results and pictures of a mesh that was minimised.
#pragma once

#include "lockstep/solve/run.hpp"
#include "solve/mesh/energies/mesh_problem.hpp"

namespace lockstep::solve {

/// Curvature, developability or the quality of the flat mesh, by the energy.
void measure(const mesh::MeshProblem& problem, const io::TriangleMesh& result, MeshRunResult& out);

void write_picture(const MeshPictureRun& picture, const mesh::MeshProblem& problem,
                   const io::TriangleMesh& result);

}  // namespace lockstep::solve
