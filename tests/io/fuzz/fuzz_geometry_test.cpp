// Mutated pose graphs, bundle adjustment problems, meshes and tables.
#include <gtest/gtest.h>

#include <cmath>

#include "core/temporary_folder.hpp"
#include "io/fuzz/fuzz_files.hpp"
#include "io/meshes/mesh.hpp"
#include "io/packed_samples.hpp"
#include "io/problems/bal.hpp"
#include "io/problems/g2o.hpp"
#include "io/series/csv.hpp"
#include "io/text/file.hpp"
#include "io/text/unpack.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}
bool all_within(const std::vector<int32_t>& indices, int64_t count) {
  return std::all_of(indices.begin(), indices.end(), [&](int32_t i) { return i >= 0 && i < count; });
}

TEST(Fuzz, G2o) {
  const std::string edge3 = " 1 2 3 0.1 0.2 0.3 0.9 4 0 0 0 0 0 4 0 0 0 0 4 0 0 0 9 0 0 9 0 9\n";
  fuzz(
      {bytes_of(
           "# flat\nVERTEX_SE2 0 0 0 0\nVERTEX_SE2 1 1 0.5 -3e-1\nVERTEX_SE2 12 2 0 1\nFIX 0\nEDGE_SE2 0 1 1 "
           "0.5 -0.3 10 1 0 10 0 20\nEDGE_SE2 12 1 1 0 0 10 0 0 10 0 20\n"),
       bytes_of(
           "VERTEX_SE3:QUAT 0 0 0 0 0 0 0 1\r\nVERTEX_SE3:QUAT 5 1 2 3 0.1 0.2 0.3 0.9\nEDGE_SE3:QUAT 0 5" +
           edge3 + "PARAMS_SE3OFFSET 0 0 0 0 0 0 0 1\nEDGE_SE3:QUAT 5 0" + edge3),
       bytes_of("VERTEX_SE2 0 0 0 0\nVERTEX_XY 9 1 2\nVERTEX_XY 4 3 -1\nEDGE_SE2_XY 0 9 1.5 2.5 4 1 9\n"
                "EDGE_SE2_XY 0 4 3 -1 1 0 1\nEDGE_POINTXY 9 4 2 -3 5 0.5 6\nFIX 0 4\n"),
       bytes_of("EDGE_SE3_TRACKXYZ 2 7 3 0.1 0.2 0.3 4 1 0 5 0 6\nPARAMS_SE3OFFSET 3 1 2 3 0 0 0 2\n"
                "VERTEX_SE3:QUAT 2 0 0 0 0 0 0 1\nVERTEX_TRACKXYZ 7 4 5 6\n")},
      [](const Bytes& bytes) {
        const PoseGraph graph = parse_g2o(text_of(bytes), "fuzz");
        const Landmarks& l = graph.landmarks;
        const size_t d = size_t(graph.dimension);
        ASSERT_EQ(l.points.size(), l.ids.size() * d);
        ASSERT_EQ(l.seen.size(), size_t(graph.sight_count()) * d);
        ASSERT_EQ(l.information.size(), size_t(graph.sight_count()) * d * d);
        ASSERT_EQ(l.sensors.size(), d == 3 ? size_t(graph.sight_count()) : 0);
        ASSERT_EQ(l.sensor_poses.size(), l.sensor_ids.size() * 7);
        ASSERT_EQ(l.differences.size(), l.links.size());
        ASSERT_EQ(l.link_information.size(), l.links.size() * 2);
        for (size_t k = 0; k < l.sights.size(); k += 2) {
          ASSERT_LT(l.sights[k], graph.vertex_count());
          ASSERT_LT(l.sights[k + 1], graph.landmark_count());
        }
        ASSERT_TRUE(all_within(l.sensors, int64_t(l.sensor_ids.size())) &&
                    all_within(l.links, graph.landmark_count()) &&
                    all_within(l.fixed, graph.landmark_count()));
        ASSERT_TRUE(all_finite(l.points) && all_finite(l.seen) && all_finite(l.information) &&
                    all_finite(l.sensor_poses) && all_finite(l.differences));
        ASSERT_EQ(graph.poses.size(), graph.ids.size() * size_t(graph.pose_size()));
        ASSERT_EQ(graph.measurements.size(), size_t(graph.edge_count()) * size_t(graph.pose_size()));
        ASSERT_TRUE(all_within(graph.edges, graph.vertex_count()));
        ASSERT_TRUE(all_within(graph.fixed, graph.vertex_count()));
        ASSERT_TRUE(all_finite(graph.poses) && all_finite(graph.measurements) &&
                    all_finite(graph.information));
      });
}

TEST(Fuzz, Bal) {
  const std::string camera = "0.1\n-0.2\n0.3\n1\n2\n3\n5e2\n-1e-7\n1e-13\n";
  fuzz({bytes_of("2 2 3\n0 0 -332.65 262.09\n0 1 1 2\n1 1 -3 4.5\n" + camera + camera + "1\n2\n3\n4\n5\n6\n"),
        bytes_of("1 1 1\r\n0 0 1e1 +2\r\n" + camera + "1 2 3")},
       [](const Bytes& bytes) {
         const BalProblem problem = parse_bal(text_of(bytes), "fuzz");
         ASSERT_EQ(problem.observations.size(), problem.indices.size());
         ASSERT_TRUE(all_finite(problem.cameras) && all_finite(problem.points) &&
                     all_finite(problem.observations));
         for (size_t k = 0; k < problem.indices.size(); k += 2) {
           ASSERT_LT(problem.indices[k], problem.camera_count());
           ASSERT_LT(problem.indices[k + 1], problem.point_count());
         }
       });
}

TEST(Fuzz, PackedText) {
  EXPECT_THROW(unpack_text(std::string(text_of(bytes_of(kBomb))), "bomb"), InputError);
  fuzz({bytes_of(kGzip), bytes_of(kTwoMembers), bytes_of(kBzip2)}, [](const Bytes& bytes) {
    const std::string text = unpack_text(std::string(text_of(bytes)), "fuzz");
    ASSERT_LE(text.size(), (size_t{1} << 21) + 200 * bytes.size());
  });
}

TEST(Fuzz, Csv) {
  fuzz({bytes_of("# d\nx,\"y, z\"\n1,2\n3.5,-4e3\n"), bytes_of("a;b;c\n1;2;3\n4;5;6\n"),
        bytes_of("1\t2\n3\t4\n"), bytes_of("1 2 3\n 4  5 6")},
       [](const Bytes& bytes) {
         const CsvTable table = parse_csv(text_of(bytes), "fuzz");
         for (size_t c = 0; c < table.columns.size(); ++c) {
           ASSERT_EQ(table.columns[c].size(), table.rows());
           ASSERT_EQ(all_finite(table.columns[c]), !table.faults.contains(c));
         }
       });
}

void expect_sound(const TriangleMesh& mesh) {
  ASSERT_EQ(mesh.vertices.size() % 3, 0u);
  ASSERT_EQ(mesh.faces.size() % 3, 0u);
  ASSERT_TRUE(mesh.colors.empty() || mesh.colors.size() == mesh.vertices.size());
  ASSERT_TRUE(all_finite(mesh.vertices));
  ASSERT_TRUE(all_within(mesh.faces, mesh.vertex_count()));
}

const TriangleMesh kPlain{{0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0.5}, {0, 1, 2, 0, 2, 3}, {}};
const TriangleMesh kColored{kPlain.vertices, kPlain.faces, {0, 1, 2, 255, 254, 253, 10, 20, 30, 40, 50, 60}};

TEST(Fuzz, Obj) {
  TemporaryFolder folder;
  write_obj(folder / "c.obj", kColored);
  fuzz({bytes_of(
            "# o\nv 0 0 0\nv 1 0 0 1\nv 1 1 0\nv 0 1 0\nvt 0 0\nvn 0 0 1\nf 1/1/1 2//1 3/1 4\nf -1 -2 -3\n"),
        read_file(folder / "c.obj")},
       [](const Bytes& bytes) { expect_sound(parse_obj(text_of(bytes), "fuzz")); });
}

TEST(Fuzz, Ply) {
  TemporaryFolder folder;
  write_ply(folder / "b.ply", kColored);
  write_ply(folder / "p.ply", kPlain, PlyEncoding::ascii);
  const std::string header =
      "ply\nformat binary_big_endian 1.0\nelement vertex 1\nproperty uchar x\nproperty uchar y\nproperty "
      "uchar "
      "z\nelement edge 2\nproperty list uchar uchar v\nend_header\n";
  fuzz({read_file(folder / "b.ply"), read_file(folder / "p.ply"),
        bytes_of(header + std::string("\1\2\3\2\7\7\1\5", 8))},
       [](const Bytes& bytes) { expect_sound(parse_ply(bytes, "fuzz")); });
}

TEST(Fuzz, Stl) {
  TemporaryFolder folder;
  write_stl(folder / "b.stl", kPlain);
  fuzz({read_file(folder / "b.stl"),
        bytes_of("solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 "
                 "0\nendloop\nendfacet\nendsolid a\n")},
       [](const Bytes& bytes) { expect_sound(parse_stl(bytes, "fuzz")); });
}

}  // namespace
