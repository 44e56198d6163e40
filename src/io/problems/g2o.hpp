// Pose graphs in g2o's text format: VERTEX_SE2, VERTEX_SE3:QUAT, EDGE_SE2, EDGE_SE3:QUAT, FIX; landmarks by
// VERTEX_XY, EDGE_SE2_XY, EDGE_BEARING_SE2_XY, EDGE_POINTXY, VERTEX_TRACKXYZ, EDGE_SE3_TRACKXYZ, PARAMS_SE3OFFSET;
// priors by EDGE_PRIOR_SE2 and EDGE_SE3_PRIOR.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "io/text/input_memory.hpp"

namespace lockstep::io {

/// Points that are seen from poses. d is the graph's dimension.
struct Landmarks {
  std::vector<int64_t> ids;
  std::vector<double> points;             // (n, d)
  std::vector<int32_t> fixed;             // of FIX lines, ascending, by their place
  std::vector<int32_t> sights;            // (m, 2): pose, landmark
  std::vector<double> seen;               // (m, d): the landmark in the frame of the pose, or of its sensor
  std::vector<double> information;        // (m, d, d)
  std::vector<int32_t> sensors;           // (m): place in sensor_ids; 3-D only
  std::vector<int64_t> sensor_ids;        // 3-D only
  std::vector<double> sensor_poses;       // (k, 7): in the frame of the robot's pose
  std::vector<int32_t> links;             // (l, 2): landmarks; 2-D only
  std::vector<double> differences;        // (l, 2): second minus first
  std::vector<double> link_information;   // (l, 2, 2)
  std::vector<int32_t> bearings;          // (b, 2): pose, landmark; 2-D only
  std::vector<double> angles;             // (b): of the landmark, in the frame of the pose
  std::vector<double> angle_information;  // (b)
};

/// Poses that were measured by themselves.
struct PosePriors {
  std::vector<int32_t> poses;        // (k)
  std::vector<double> measurements;  // (k, 3) or (k, 7)
  std::vector<double> information;   // (k, 3, 3) or (k, 6, 6)
  std::vector<int32_t> sensors;      // (k): place in Landmarks::sensor_ids, whose pose was measured; 3-D only
};

/// Lines of the text, from 1, in the order of the lists; empty for graphs that are made.
struct GraphLines {
  std::vector<int64_t> edges, sights, links, bearings, priors;
};

/// A graph of poses in 2 or 3 dimensions. Angles are radians; quaternions are (w, x, y, z) of unit length,
/// regardless of their length and order in the file. Information matrices are positive semidefinite.
struct PoseGraph {
  int dimension = 3;
  bool has_poses = true;       // false: no VERTEX lines; vertices are those of the edges, at 0, unturned
  std::vector<int64_t> ids;    // of the vertices, in the file's order
  std::vector<double> poses;   // (n, 3): x, y, angle; or (n, 7): x, y, z, quaternion
  std::vector<int32_t> edges;  // (m, 2): vertices by their place in `ids`
  std::vector<double> measurements;  // (m, 3) or (m, 7): pose of the second vertex seen from the first
  std::vector<double> information;   // (m, 3, 3) or (m, 6, 6): of translation, then of angle or vec(q)
  std::vector<int32_t> fixed;        // vertices of FIX lines, ascending, by their place
  InputClaim claim = {};
  Landmarks landmarks;
  PosePriors priors;
  GraphLines lines;

  int pose_size() const { return dimension == 2 ? 3 : 7; }
  int error_size() const { return dimension == 2 ? 3 : 6; }
  int64_t vertex_count() const { return int64_t(ids.size()); }      // poses
  int64_t edge_count() const { return int64_t(edges.size()) / 2; }  // between poses
  int64_t landmark_count() const { return int64_t(landmarks.ids.size()); }
  int64_t sight_count() const { return int64_t(landmarks.sights.size()) / 2; }
  int64_t link_count() const { return int64_t(landmarks.links.size()) / 2; }
  int64_t bearing_count() const { return int64_t(landmarks.bearings.size()) / 2; }
  int64_t prior_count() const { return int64_t(priors.poses.size()); }
};

/// Throws InputError that names file and line: unknown tags, both dimensions, vertices or sensors twice,
/// edges to unknown vertices, to vertices of the other kind or to themselves, unknown sensors, numbers that
/// are not finite, zero quaternions, information that is not positive semidefinite, a graph without vertices or
/// edges, and FIX lines of more than one vertex, priors or bearings in a file without VERTEX lines.
PoseGraph parse_g2o(std::string_view text, std::string_view where);
/// The file may be packed by gzip or bzip2.
PoseGraph read_g2o(const std::filesystem::path& path);
/// Numbers keep all their digits. Appears whole or not at all.
void write_g2o(const std::filesystem::path& path, const PoseGraph& graph);

/// Upper triangular W with A = W^T W of a symmetric (n, n) matrix, with rows of zeros where A is singular; false
/// where A is not positive semidefinite.
bool whitening_factor(const double* matrix, int n, double* factor);

}  // namespace lockstep::io
