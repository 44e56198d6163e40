// Bundle adjustment as least squares: cameras and points that explain the pixels where points were seen.
#pragma once

#include <cstdint>

#include "io/meshes/mesh.hpp"
#include "io/problems/bal.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// Residual of an observation (px): slots camera (rotation vector, translation, f, k1, k2) and point X.
/// P = R X + t; p = -P.xy / P.z; f (1 + k1 |p|^2 + k2 |p|^4) p - data (Snavely's camera, looking along -z).
TermType snavely_observation(const RobustLoss& loss = {});

struct BalGraph {
  Problem problem;
  BlockSet cameras, points;
};

/// A block of 9 per camera and of 3 per point. Throws InputError for a camera or point without observation;
/// `where` names the file.
BalGraph build(const io::BalProblem& bal, std::string_view where, const RobustLoss& loss = {});

/// `bal` with the cameras and points of the problem.
io::BalProblem with_values(io::BalProblem bal, const BalGraph& graph);

/// Points in grey and cameras in red, for a viewer.
io::TriangleMesh point_cloud(const io::BalProblem& bal);

struct SyntheticBal {
  int64_t cameras = 0, observations = 0;
  uint64_t seed = 1;
  double noise_px = 0.5;  // standard deviation of the observations
  /// Of the start from the truth; 1: 0.01 rad and 5 cm of cameras, 5 cm of points, 0.5 % of f, no distortion;
  /// 0: the truth.
  double disturbance = 1;
};

/// A ring of cameras 12 m from the axis of a bumpy column of radius 5 m. A point is seen by 2 to 12 of the
/// cameras within 45 degrees of its side, spread over them; as many observations in all as requested. The
/// same seed gives the same numbers. Throws InputError for fewer than 3 cameras, fewer than 30 observations
/// per camera or more than can be indexed.
io::BalProblem synthetic_bal(const SyntheticBal& options);

}  // namespace lockstep::solve
