// Pictures of meshes: what is in front, light, colours, frames, refusals.
#include "io/pictures/mesh_picture.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

TriangleMesh square(double z) { return {{-1, -1, z, 1, -1, z, 1, 1, z, -1, 1, z}, {0, 1, 2, 0, 2, 3}, {}}; }

MeshPictureOptions from_above() {
  MeshPictureOptions options;
  options.width = options.height = 100;
  options.view = {0, 0, 1};
  options.up = {0, 1, 0};
  return options;
}

std::array<int, 3> pixel(Image& image, int x, int y) {
  const uint8_t* p = image.at(x, y);
  return {p[0], p[1], p[2]};
}

TEST(MeshPicture, FitsTheFrame) {
  MeshPictureOptions options = from_above();
  options.perspective = false;
  Image image = draw_mesh(square(0), options);
  ASSERT_EQ(image.width, 100);
  ASSERT_EQ(image.pixels.size(), 30000u);
  const auto inside = pixel(image, 50, 50), paper = pixel(image, 2, 50);
  EXPECT_NE(inside, paper);
  EXPECT_EQ(pixel(image, 10, 10), inside) << "a flat square has one tone";
  EXPECT_EQ(pixel(image, 90, 90), inside);
  EXPECT_NE(pixel(image, 5, 50), inside) << "the margin";
  EXPECT_NE(pixel(image, 95, 50), inside);
}

TEST(MeshPicture, NearerSurfacesHideFurtherOnes) {
  MeshPictureOptions options = from_above();
  for (const bool perspective : {false, true}) {
    options.perspective = perspective;
    for (const bool first : {false, true}) {
      // A small square above a large one, in both orders of their triangles.
      TriangleMesh mesh = square(0);
      for (double& x : mesh.vertices) x *= 2;
      TriangleMesh above = square(0.5);
      const int32_t offset = int32_t(mesh.vertex_count());
      mesh.vertices.insert(mesh.vertices.end(), above.vertices.begin(), above.vertices.end());
      for (int32_t& v : above.faces) v += offset;
      mesh.faces.insert(first ? mesh.faces.begin() : mesh.faces.end(), above.faces.begin(),
                        above.faces.end());
      options.values = {0, 0, 0, 0, 1, 1, 1, 1};
      Image image = draw_mesh(mesh, options);
      const Rgb low = color(options.map, 0), high = color(options.map, 1);
      const auto middle = pixel(image, 50, 50), rim = pixel(image, 12, 50);
      // The light changes the tone, not which colour is the darker one.
      EXPECT_EQ(middle[1] < rim[1], high[1] < low[1]);
    }
  }
}

// Units and place do not matter: powers of two, next to which nothing rounds.
TEST(MeshPicture, OfAnySizeIsTheSame) {
  TriangleMesh mesh = square(0);
  const TriangleMesh above = square(2);
  mesh.vertices.insert(mesh.vertices.end(), above.vertices.begin(), above.vertices.end());
  for (const int32_t v : above.faces) mesh.faces.push_back(v + 4);
  MeshPictureOptions options;
  options.width = options.height = 80;
  for (const bool perspective : {false, true}) {
    options.perspective = perspective;
    const Image plain = draw_mesh(mesh, options);
    for (const double scale : {0x1p-9, 8.0, 0x1p20}) {
      TriangleMesh scaled = mesh;
      for (double& x : scaled.vertices) x = scale * (x + 16);
      EXPECT_EQ(draw_mesh(scaled, options).pixels, plain.pixels)
          << scale << (perspective ? "" : ", parallel");
    }
  }
}

TEST(MeshPicture, BacksHaveAnotherTone) {
  MeshPictureOptions options = from_above();
  Image front = draw_mesh(square(0), options);
  TriangleMesh turned = square(0);
  for (size_t f = 0; f < turned.faces.size(); f += 3) std::swap(turned.faces[f], turned.faces[f + 1]);
  Image back = draw_mesh(turned, options);
  EXPECT_NE(pixel(front, 50, 50), pixel(back, 50, 50));
  EXPECT_GT(pixel(back, 50, 50)[2], pixel(back, 50, 50)[0]) << "bluish";
}

TEST(MeshPicture, EdgesAndChecks) {
  MeshPictureOptions options = from_above();
  options.edges = true;
  Image edges = draw_mesh(square(0), options);
  // The diagonal runs from the lower left to the upper right.
  EXPECT_LT(pixel(edges, 40, 59)[0] + 20, pixel(edges, 30, 60)[0]);
  EXPECT_EQ(pixel(edges, 70, 60), pixel(edges, 30, 60));
  options.edges = false;
  options.uv = {0, 0, 1, 0, 1, 1, 0, 1};
  options.checks = 4;
  Image checks = draw_mesh(square(0), options);
  std::set<std::array<int, 3>> tones;
  for (int k = 0; k < 4; ++k) tones.insert(pixel(checks, 18 + 21 * k, 18));
  EXPECT_EQ(tones.size(), 2u);
  EXPECT_NE(pixel(checks, 18, 18), pixel(checks, 39, 18));
  EXPECT_EQ(pixel(checks, 18, 18), pixel(checks, 39, 39));
}

TEST(MeshPicture, SmoothLightVaries) {
  MeshPictureOptions options = from_above();
  const TriangleMesh roof{
      {-1, -1, 0, 0, -1, 1, 0, 1, 1, -1, 1, 0, 1, -1, 0, 1, 1, 0}, {0, 1, 2, 0, 2, 3, 1, 4, 5, 1, 5, 2}, {}};
  Image flat = draw_mesh(roof, options);
  EXPECT_EQ(pixel(flat, 25, 50), pixel(flat, 40, 50));
  EXPECT_NE(pixel(flat, 25, 50), pixel(flat, 75, 50));
  options.smooth = true;
  Image smooth = draw_mesh(roof, options);
  EXPECT_NE(pixel(smooth, 15, 50), pixel(smooth, 45, 50));
}

TEST(MeshPicture, LayoutsAndJoints) {
  MeshPictureOptions options = from_above();
  Image layout = draw_uv_layout(square(0), {0, 0, 1, 0, 1, 1, 0, 1}, {0, 1}, options);
  EXPECT_NE(pixel(layout, 70, 80), pixel(layout, 30, 20));
  const Image both = join_images({layout, draw_mesh(square(0), options)});
  EXPECT_EQ(both.width, 200);
  EXPECT_EQ(both.height, 100);
}

TEST(MeshPicture, Refusals) {
  const MeshPictureOptions options = from_above();
  EXPECT_THROW(draw_mesh({}, options), InputError);
  TriangleMesh wrong = square(0);
  wrong.faces[0] = 4;
  EXPECT_THROW(draw_mesh(wrong, options), InputError);
  wrong = square(NAN);
  EXPECT_THROW(draw_mesh(wrong, options), InputError);
  MeshPictureOptions along = options;
  along.up = {0, 0, 2};
  EXPECT_THROW(draw_mesh(square(0), along), InputError);
  MeshPictureOptions values = options;
  values.values = {1, 2};
  EXPECT_THROW(draw_mesh(square(0), values), InputError);
  EXPECT_THROW(draw_uv_layout(square(0), {0, 0}, {}, options), InputError);
}

}  // namespace
}  // namespace lockstep::io
