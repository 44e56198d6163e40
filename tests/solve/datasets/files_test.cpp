// Files of other programs, read, solved and written.
#include "lockstep/solve/files.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <utility>

#include "core/refusal.hpp"
#include "core/temporary_folder.hpp"
#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

using lockstep::test::refusal;

class Files : public testing::Test {
 protected:
  std::filesystem::path write(const char* name, const std::string& text) {
    const std::filesystem::path file = folder.path() / name;
    std::ofstream(file) << text;
    return file;
  }
  lockstep::test::TemporaryFolder folder;
};

TEST_F(Files, TrajectoriesComeBack) {
  const auto file = write("t.txt", "# a comment\n1305031102.25 1 2 3 0 0 2 0\n1305031103.5 0 0 -1 0 0 0 1\n");
  const Trajectory t = read_tum(file);
  ASSERT_EQ(t.seconds.size(), 2u);
  EXPECT_EQ(t.seconds[1], 1305031103.5);
  EXPECT_EQ(t.poses[3], 0);  // w
  EXPECT_EQ(t.poses[6], 1);  // z, of unit length
  write_tum(folder.path() / "u.txt", t);
  const Trajectory again = read_tum(folder.path() / "u.txt");
  EXPECT_EQ(again.seconds, t.seconds);
  EXPECT_EQ(again.poses, t.poses);
  EXPECT_NE(refusal([&] { read_tum(write("b.txt", "1 2 3 4 0 0 0 1\n2 1 1 1 0 0 0 0\n")); }).find("b.txt:2"),
            std::string::npos);
  EXPECT_NE(refusal([&] { read_tum(write("b.txt", "# nothing\n")); }).find("no poses"), std::string::npos);
}

TEST_F(Files, PoseGraphsAndBundlesAreProblems) {
  const PoseGraphFile graph = read_pose_graph(write("g.g2o",
                                                    "EDGE_SE2 7 8 1 0 0 1 0 0 1 0 1\n"
                                                    "EDGE_SE2 8 9 1 0 0.5 1 0 0 1 0 1\n"));
  EXPECT_EQ(graph.pose_ids, (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(graph.problem.values(graph.poses)[6], 2);  // by the tree of the edges
  const BundleFile bundle =
      read_bundle(write("b.txt", "1 1 1\n0 0 1 2\n0\n0\n0\n0\n0\n-5\n500\n0\n0\n0.1\n0.2\n0\n"));
  EXPECT_EQ(bundle.problem.residual_count(), 2);
  EXPECT_EQ(bundle.problem.block_count(bundle.cameras), 1);
}

/// A model of three images by cameras of all kinds, with exact pixels.
ColmapModel model_of(const std::string& name, std::vector<double> parameters) {
  ColmapModel model;
  model.cameras.push_back({4, name, 640, 480, std::move(parameters)});
  for (int p = 0; p < 12; ++p)
    model.points.push_back({100 + p, {std::sin(3.0 * p), std::cos(2.0 * p), 0.2 * p}, {p, 2 * p, 3}, -1});
  for (int i = 0; i < 3; ++i) {
    ColmapModel::Image& image = model.images.emplace_back();
    const double half = 0.1 * i;
    image.id = i + 1, image.name = "image " + std::to_string(i) + ".jpg";
    image.pose = {0.3 * i, -0.1 * i, 6, std::cos(half), 0, std::sin(half), 0};
    if (i == 2) image.pixels = {5, 6}, image.points = {-1};
    const double s = std::sin(2 * half), c = std::cos(2 * half);
    for (int p = 0; p < 12; ++p) {
      const auto& x = model.points[size_t(p)].position;
      const double X = c * x[0] + s * x[2] + image.pose[0], Y = x[1] + image.pose[1],
                   Z = c * x[2] - s * x[0] + 6;
      const std::vector<double>& k = model.cameras[0].parameters;
      const double u = X / Z, v = Y / Z, r2 = u * u + v * v;
      double grown = 1;
      if (name == "SIMPLE_RADIAL") grown += k[3] * r2;
      if (name == "OPENCV_FISHEYE") {
        const double r = std::sqrt(r2), t = std::atan(r);
        grown = t * (1 + k[4] * t * t + k[5] * t * t * t * t) / r;
      }
      const bool two = name == "PINHOLE" || name == "OPENCV_FISHEYE";
      image.pixels.push_back(k[0] * grown * u + k[two ? 2 : 1]);
      image.pixels.push_back(k[two ? 1 : 0] * grown * v + k[two ? 3 : 2]);
      image.points.push_back(p);
    }
  }
  return model;
}

TEST_F(Files, ColmapModelsAreReadSolvedAndWritten) {
  ContextOptions interp;
  interp.device = "interp";
  Context context(interp);
  for (ColmapModel model :
       {model_of("SIMPLE_RADIAL", {500, 320, 240, -0.1}), model_of("PINHOLE", {500, 510, 320, 240}),
        model_of("OPENCV_FISHEYE", {400, 410, 320, 240, 0.05, -0.01, 0, 0})}) {
    write_colmap(folder.path(), model);
    const ColmapModel read = read_colmap(folder.path());
    EXPECT_EQ(read.images[1].name, "image 1.jpg");
    EXPECT_EQ(read.images[2].points[0], -1);
    EXPECT_EQ(read.points[3].color, model.points[3].color);
    Reconstruction r = build(read);
    EXPECT_TRUE(r.problem.fixed(r.poses, 0));
    Options options;
    options.max_iterations = 0;
    EXPECT_LT(minimize(r.problem, context, options).initial_cost, 1e-18) << model.cameras[0].model;
    // Points moved away are found again; what the camera's model lacks stays 0.
    for (double& x : r.problem.values(r.points)) x += 0.01;
    options.max_iterations = 20;
    EXPECT_LT(minimize(r.problem, context, options).final_cost, 1e-10);
    if (model.cameras[0].model == "SIMPLE_RADIAL") { EXPECT_EQ(r.problem.values(r.cameras[0])[4], 0); }
    const ColmapModel solved = with_values(read, r);
    EXPECT_EQ(solved.images[0].pose, read.images[0].pose);
  }
  write("cameras.txt", "1 WIDE 1 1 1\n");
  EXPECT_NE(refusal([&] { read_colmap(folder.path()); }).find("camera model 'WIDE'"), std::string::npos);
  write("cameras.txt", "4 PINHOLE 640 480 1 1 1 1\n");
  write("images.txt", "1 1 0 0 0 0 0 0 4 a.jpg\n\n2 1 0 0 0 0 0 0 9 b.jpg\n\n");
  EXPECT_NE(refusal([&] { read_colmap(folder.path()); }).find("camera 9"), std::string::npos);
  write("images.txt", "1 1 0 0 0 0 0 0 4 a.jpg\n\n2 1 0 0 0 0 0 0 4 b.jpg\n1 2 9999\n");
  EXPECT_NE(refusal([&] { read_colmap(folder.path()); }).find("point 9999"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::solve
