// Selections and handles as texts.
#include "solve/mesh/selection.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "lockstep/error.hpp"
#include "solve/mesh/energies/mesh_problem.hpp"
#include "solve/mesh/shapes/generate.hpp"

namespace lockstep::solve::mesh {
namespace {

struct Scene {
  TriangleMesh mesh = grid(3, 3);  // x, y in -0.5, 0, 0.5; vertex = 3 row + column
  Connectivity connectivity = build_connectivity(mesh, "grid");
  std::vector<int32_t> select(const std::string& text) const {
    return select_vertices(text, mesh, connectivity, "--fix");
  }
  std::vector<Handle> handle(const std::string& text) const {
    return parse_handle(text, mesh, connectivity, "--handle");
  }
};
using List = std::vector<int32_t>;

TEST(MeshSelection, Parts) {
  const Scene s;
  EXPECT_EQ(s.select("4"), (List{4}));
  EXPECT_EQ(s.select("7, 2-4,3"), (List{2, 3, 4, 7}));
  EXPECT_EQ(s.select("boundary"), (List{0, 1, 2, 3, 5, 6, 7, 8}));
  EXPECT_EQ(s.select("boundary:0"), (List{0, 1, 2, 3, 5, 6, 7, 8}));
  EXPECT_EQ(s.select("all").size(), 9u);
  EXPECT_EQ(s.select("x<0"), (List{0, 3, 6}));
  EXPECT_EQ(s.select("x<=0"), (List{0, 1, 3, 4, 6, 7}));
  EXPECT_EQ(s.select("y>49%"), (List{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(s.select("y>=100%"), (List{6, 7, 8}));
  EXPECT_EQ(s.select("x<0&y<0"), (List{0}));
  EXPECT_EQ(s.select("x<0&y<0,x>0&y>0"), (List{0, 8}));
  EXPECT_EQ(s.select("boundary & x>-0.1 & x<0.1"), (List{1, 7}));
}

TEST(MeshSelection, Refusals) {
  const Scene s;
  for (const char* wrong :
       {"", "9", "-1", "5-2", "w<1", "x<", "x<abc", "border", "x=1", "1,,2", "x<-9", "x<0&x>0", "boundary:1",
        "boundary:x", "x<nan", "99999999999999999999", "<1", "x&y"}) {
    try {
      s.select(wrong);
      ADD_FAILURE() << "'" << wrong << "' was accepted";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("[--fix]"), std::string::npos) << error.what();
    }
  }
}

TEST(MeshSelection, Handles) {
  const Scene s;
  const auto one = s.handle("4=1,2,3");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].vertex, 4);
  EXPECT_EQ(one[0].target, (Point{1, 2, 3}));
  const auto moved = s.handle("x>=0.5+=0,0,-2");
  ASSERT_EQ(moved.size(), 3u);
  EXPECT_EQ(moved[0].target, (Point{0.5, -0.5, -2}));
  const auto turned = s.handle("x>0@0,0,2,90");
  ASSERT_EQ(turned.size(), 3u);
  // The middle is (0.5, 0, 0); (0.5, -0.5) comes to (1, 0).
  EXPECT_NEAR(turned[0].target[0], 1, 1e-15);
  EXPECT_NEAR(turned[0].target[1], 0, 1e-15);
  for (const char* wrong :
       {"4", "4=1,2", "0-1=1,2,3", "4+=1", "4@0,0,0,90", "4@0,0,1", "4=a,b,c", "4=1,2,3,4"})
    EXPECT_THROW(s.handle(wrong), InputError) << wrong;
}

TEST(MeshSelection, HandleFiles) {
  const Scene s;
  const auto path =
      std::filesystem::temp_directory_path() / ("lockstep-handles-" + std::to_string(::getpid()) + ".txt");
  std::ofstream(path) << "# two handles\n\n0 1 2 3\n 8\t-1 0.5 1e-3\n";
  const auto handles = read_handles(path, s.mesh);
  ASSERT_EQ(handles.size(), 2u);
  EXPECT_EQ(handles[1].vertex, 8);
  EXPECT_EQ(handles[1].target, (Point{-1, 0.5, 1e-3}));
  for (const char* wrong : {"0 1 2\n", "9 0 0 0\n", "a 0 0 0\n", "0 0 0 0 0\n", "0 inf 0 0\n"}) {
    std::ofstream(path) << "1 0 0 0\n" << wrong;
    try {
      read_handles(path, s.mesh);
      ADD_FAILURE() << wrong;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(":2]"), std::string::npos) << error.what();
    }
  }
  std::filesystem::remove(path);
}

TEST(MeshProblems, VerticesAreHeldOnce) {
  const Scene s;
  MeshOptions options;
  options.energy = "springs";
  options.fixed = {0};
  options.handles = {{0, {1, 1, 1}}};
  EXPECT_THROW(MeshProblem(s.mesh, s.connectivity, options), InputError);
  options.fixed.clear();
  options.handles = {{1, {1, 1, 1}}, {1, {1, 1, 1}}};
  EXPECT_THROW(MeshProblem(s.mesh, s.connectivity, options), InputError);
  options.handles.clear();
  options.energy = "elastic";
  EXPECT_THROW(MeshProblem(s.mesh, s.connectivity, options), InputError);
}

TEST(MeshProblems, EveryEnergyMakesAProblem) {
  const TriangleMesh mesh = dome(2);
  const Connectivity connectivity = build_connectivity(mesh, "dome");
  for (const std::string& energy : energy_names()) {
    MeshOptions options;
    options.energy = energy;
    MeshProblem problem(mesh, connectivity, options);
    EXPECT_GT(problem.problem().residual_count(), 0) << energy;
    EXPECT_GT(problem.problem().variable_count(), 0) << energy;
    // Stars make one batch for each valence.
    EXPECT_LE(problem.problem().batch_count(), 8) << energy;
    EXPECT_EQ(problem.result().vertex_count(), mesh.vertex_count()) << energy;
    EXPECT_EQ(problem.uv().empty(), energy != "parameterize");
  }
}

}  // namespace
}  // namespace lockstep::solve::mesh
