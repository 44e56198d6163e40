// Pose graphs as least squares: relative poses between vertices, whitened by their information.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/problems/g2o.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// Residual of an edge between poses (x, y, angle): W e with Omega = W^T W and e = (R(Z)^T (R(Xi)^T (tj - ti)
/// - tz), angle of Z^-1 Xi^-1 Xj in [-pi, pi)). Data: tz, angle, cos and sin of it, the upper triangle of W.
TermType se2_edge(const RobustLoss& loss = {});
/// Residual of an edge between poses (t, quaternion): W e with e = (translation, vec q) of Z^-1 Xi^-1 Xj,
/// the quaternion with w >= 0. Data: tz, qz, the upper triangle of W by rows.
TermType se3_edge(const RobustLoss& loss = {});
/// Residual of a landmark seen from a pose (x, y, angle): W e with e = R(X)^T (l - t) - z. Data: z, the upper
/// triangle of W.
TermType se2_sight(const RobustLoss& loss = {});
/// Residual of a landmark seen by a sensor with pose O on a pose X (t, quaternion): W e with e = (X O)^-1 l -
/// z. Data: translation and quaternion of O, z, the upper triangle of W.
TermType se3_sight(const RobustLoss& loss = {});
/// Residual of two landmarks in the plane: W (b - a - z). Data: z, the upper triangle of W.
TermType point_link(const RobustLoss& loss = {});
/// Residual of the direction in which a landmark is seen from a pose in the plane: w times (angle of l in the
/// pose's frame - z), in [-pi, pi). Data: z, w.
TermType se2_bearing(const RobustLoss& loss = {});
/// Residuals of a pose that was measured by itself: W e with e = (translation, angle or vec q) of Z^-1 X, in 3-D of
/// Z^-1 X O. Data: tz, angle, its cosine and sine, W; or pose of the sensor O, Z, W.
TermType se2_prior(const RobustLoss& loss = {});
TermType se3_prior(const RobustLoss& loss = {});
/// Data of all edges between poses: (m, 11) or (m, 28).
std::vector<double> edge_data(const io::PoseGraph& graph);

/// Data of all sights: (m, 5) or (m, 16); of all links (l, 5).
std::vector<double> sight_data(const io::PoseGraph& graph);
std::vector<double> link_data(const io::PoseGraph& graph);
/// Data of all bearings (b, 2), and of all priors (k, 11) or (k, 35).
std::vector<double> bearing_data(const io::PoseGraph& graph);
std::vector<double> prior_data(const io::PoseGraph& graph);

struct PoseGraphProblem {
  Problem problem;
  BlockSet poses, landmarks;                          // id -1 where there are none
  std::map<std::string, std::vector<int64_t>> lines;  // by term type: of its instances in the file
};

/// A block per vertex; the vertices of FIX lines are held, or the first pose (else the first landmark) where
/// there is none and no prior. A vertex without edges stays where it is.
PoseGraphProblem build(const io::PoseGraph& graph, const RobustLoss& loss = {});

/// `graph` with the poses and landmarks of the problem.
io::PoseGraph with_poses(io::PoseGraph graph, const PoseGraphProblem& problem);

}  // namespace lockstep::solve
