// Problems from common file formats: pose graphs (g2o), bundle adjustment (BAL), models (COLMAP), trajectories (TUM).
// Files may be compressed by gzip or bzip2. Reading throws InputError for an invalid file, naming file and line. Files
// are written atomically.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lockstep/solve.hpp"
#include "lockstep/solve/factors.hpp"

namespace lockstep::solve {

/// A g2o file as a problem: poses are blocks of se2() or se3(), landmarks are Euclidean. docs/solve.md lists the tags and
/// errors. If the file has no poses, the start is computed along a spanning tree of its edges.
struct PoseGraphFile {
  int dimension = 3;
  std::vector<int64_t> pose_ids, landmark_ids;  // ids in the file, block by block
  Problem problem;
  BlockSet poses, landmarks;  // id -1 if there are none
  std::map<std::string, std::vector<int64_t>>
      lines;  // by term type: lines of its instances in the file, from 1
};
PoseGraphFile read_pose_graph(const std::filesystem::path& file, const RobustLoss& loss = {});

/// A BAL file as a problem: cameras of 9 numbers (rotation vector, translation, f, k1, k2), points of 3.
struct BundleFile {
  Problem problem;
  BlockSet cameras, points;
  std::map<std::string, std::vector<int64_t>> lines;  // as PoseGraphFile::lines
};
BundleFile read_bundle(const std::filesystem::path& file, const RobustLoss& loss = {});

/// Poses over time in the format of the TUM RGB-D benchmark, with lines "seconds tx ty tz qx qy qz qw".
struct Trajectory {
  std::vector<double> seconds;
  std::vector<double> poses;  // (n, 7): translation, unit quaternion (w, x, y, z)
};
Trajectory read_tum(const std::filesystem::path& file);
void write_tum(const std::filesystem::path& file, const Trajectory& trajectory);

/// A sparse model in COLMAP's text format: cameras.txt, images.txt and points3D.txt of a folder.
struct ColmapModel {
  struct Camera {
    int64_t id = 0;
    std::string model;  // SIMPLE_PINHOLE, PINHOLE, SIMPLE_RADIAL, RADIAL, OPENCV or OPENCV_FISHEYE
    int64_t width = 0, height = 0;
    std::vector<double> parameters;
  };
  struct Image {
    int64_t id = 0;
    std::array<double, 7> pose =
        {};              // world in the frame of the camera: translation, quaternion (w, x, y, z)
    int32_t camera = 0;  // index in `cameras`
    std::string name;
    std::vector<double> pixels;   // (k, 2)
    std::vector<int32_t> points;  // (k): index in `points`, -1 for none
  };
  struct Point {
    int64_t id = 0;
    std::array<double, 3> position = {};
    std::array<int, 3> color = {};
    double error = 0;  // mean reprojection error in pixels, as in the file
  };
  std::vector<Camera> cameras;
  std::vector<Image> images;
  std::vector<Point> points;
};
ColmapModel read_colmap(const std::filesystem::path& folder);
/// Writes a model to an existing folder. The tracks of points follow from the images.
void write_colmap(const std::filesystem::path& folder, const ColmapModel& model);

/// The bundle adjustment of the model: residuals in pixels, poses se3(), a set of intrinsics for each camera.
/// Parameters that the camera model does not have are fixed at 0. The first image is fixed, and so are blocks without
/// residuals.
struct Reconstruction {
  Problem problem;
  BlockSet poses, points;
  std::vector<BlockSet> cameras;
};
Reconstruction build(const ColmapModel& model, const RobustLoss& loss = {});
/// The model with the values of its problem.
ColmapModel with_values(ColmapModel model, const Reconstruction& reconstruction);

}  // namespace lockstep::solve
