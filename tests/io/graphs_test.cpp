// g2o, BAL and CSV: what is read, what is refused and with which line.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/temporary_folder.hpp"
#include "io/checks.hpp"
#include "io/packed_samples.hpp"
#include "io/problems/bal.hpp"
#include "io/problems/g2o.hpp"
#include "io/series/csv.hpp"
#include "io/test_data.hpp"
#include "io/text/text_scanner.hpp"
#include "io/text/unpack.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

const std::string kIdentity6 = "1 0 0 0 0 0 1 0 0 0 0 1 0 0 0 1 0 0 1 0 1";
const std::string kIdentity3 = "1 0 0 1 0 1";
std::string g2o_refusal(const std::string& text) {
  return error_of([&] { parse_g2o(text, "p.g2o"); });
}

TEST(G2o, SemidefiniteInformationHasAFactorWithRowsOfZeros) {
  for (const auto& a : {std::array<double, 9>{0, 0, 0, 0, 4, 2, 0, 2, 1},
                        {1, 1, 0, 1, 1, 0, 0, 0, 1},
                        {0, 0, 0, 0, 0, 0, 0, 0, 0}}) {
    std::array<double, 9> w;
    ASSERT_TRUE(whitening_factor(a.data(), 3, w.data()));
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j) {
        double sum = 0;
        for (size_t k = 0; k < 3; ++k) sum += w[k * 3 + i] * w[k * 3 + j];
        EXPECT_NEAR(sum, a[i * 3 + j], 1e-15);
      }
  }
}

TEST(G2o, ReadsThreeDimensions) {
  const PoseGraph graph = parse_g2o(
      "# made by hand\r\nEDGE_SE3:QUAT 7 3 1 2 3 0 0 0 -2 4 2 0 0 0 0 5 0 0 0 0 6 0 0 0 7 0 0 8 0 9\r\n\n"
      "PARAMS_SE3OFFSET 0 0 0 0 0 0 0 1\n  VERTEX_SE3:QUAT 3 +1e0 2 3 0 0 3 4 \nVERTEX_SE3:QUAT 7 0 0 0 0 0 "
      "0 "
      "1\nFIX 7 7\n",
      "p.g2o");
  EXPECT_EQ(graph.dimension, 3);
  EXPECT_EQ(graph.ids, (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(graph.edges, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(graph.fixed, (std::vector<int32_t>{1}));
  EXPECT_EQ(std::vector<double>(graph.poses.begin(), graph.poses.begin() + 7),
            (std::vector<double>{1, 2, 3, 0.8, 0, 0, 0.6}));
  EXPECT_EQ(graph.measurements, (std::vector<double>{1, 2, 3, -1, 0, 0, 0}));
  EXPECT_EQ(graph.information[0], 4);
  EXPECT_EQ(graph.information[1], 2);
  EXPECT_EQ(graph.information[6], 2);
  for (size_t k = 1; k < 6; ++k) EXPECT_EQ(graph.information[7 * k], double(k + 4));
}

TEST(G2o, WritesWhatItReads) {
  TemporaryFolder folder;
  for (const std::string& text :
       {"VERTEX_SE2 5 0.1 0.2 0.3\nVERTEX_SE2 6 1 1e-300 -3\nFIX 6\nEDGE_SE2 5 6 1 2 0.5 " + kIdentity3 +
            "\n",
        "VERTEX_SE3:QUAT 0 0 0 0 1 2 3 4\nVERTEX_SE3:QUAT 1 0.1 0 0 0 0 0 1\nEDGE_SE3:QUAT 0 1 1 2 3 1 1 1 "
        "1 " +
            kIdentity6 + "\n"}) {
    const PoseGraph graph = parse_g2o(text, "p.g2o");
    write_g2o(folder / "out.g2o", graph);
    const PoseGraph back = read_g2o(folder / "out.g2o");
    EXPECT_EQ(back.ids, graph.ids);
    EXPECT_EQ(back.edges, graph.edges);
    EXPECT_EQ(back.information, graph.information);
    EXPECT_EQ(back.fixed, graph.fixed);
    // Quaternions are of unit length to the last place only, so reading them again may turn that place.
    for (size_t k = 0; k < graph.poses.size(); ++k) EXPECT_NEAR(back.poses[k], graph.poses[k], 2e-16);
    for (size_t k = 0; k < graph.measurements.size(); ++k)
      EXPECT_NEAR(back.measurements[k], graph.measurements[k], 2e-16);
  }
}

TEST(G2o, RefusesWithTheLine) {
  const std::string two = "VERTEX_SE2 0 0 0 0\nVERTEX_SE2 1 1 0 0\n";
  const auto edge = [&](const std::string& rest) { return two + "EDGE_SE2 " + rest + "\n"; };
  EXPECT_EQ(
      g2o_refusal("VERTEX_SE2 0 0 0 0\nVERTEX_CAM 1 0 0 0\n"),
      "unknown tag 'VERTEX_CAM' [p.g2o:2]: expected VERTEX_SE2, VERTEX_XY, VERTEX_SE3:QUAT, VERTEX_TRACKXYZ, "
      "EDGE_SE2, EDGE_SE2_XY, EDGE_BEARING_SE2_XY, EDGE_POINTXY, EDGE_PRIOR_SE2, EDGE_SE3:QUAT, "
      "EDGE_SE3_TRACKXYZ, EDGE_SE3_PRIOR, PARAMS_SE3OFFSET or FIX");
  EXPECT_EQ(g2o_refusal(two + "VERTEX_SE2 1 5 5 5\n"),
            "vertex 1 is repeated [p.g2o:3]: expected each vertex once");
  EXPECT_EQ(g2o_refusal("\n" + edge("0 9 1 0 0 " + kIdentity3)),
            "vertex 9 is not in the file [p.g2o:4]: expected the id of a VERTEX line");
  EXPECT_EQ(g2o_refusal(edge("1 1 1 0 0 " + kIdentity3)),
            "an edge from vertex 1 to itself [p.g2o:3]: expected two different vertices");
  for (const char* matrix :
       {"0 1 0 1 0 1", "1 0 0 -1 0 1", "1 2 0 1 0 1", "1 1 0 1 1 1", "1e300 1e300 0 1 0 1"})
    EXPECT_EQ(g2o_refusal(edge(std::string("0 1 1 0 0 ") + matrix)),
              "the information matrix of edge 0 1 [p.g2o:3]: expected a positive semidefinite matrix")
        << matrix;
  EXPECT_EQ(g2o_refusal(edge("0 1 nan 0 0 " + kIdentity3)), "x is 'nan' [p.g2o:3]: expected a finite number");
  EXPECT_EQ(g2o_refusal(edge("0 1 1 1e999 0 " + kIdentity3)),
            "y is '1e999' [p.g2o:3]: expected a finite number");
  EXPECT_EQ(g2o_refusal(edge("0 1 1 0 zero " + kIdentity3)),
            "the angle is 'zero' [p.g2o:3]: expected a number");
  EXPECT_EQ(g2o_refusal(edge("0 1 1 0 0 1 0 0 1 0")),
            "an entry of the information matrix is missing [p.g2o:3]: expected a number");
  EXPECT_EQ(g2o_refusal(edge("0 1 1 0 0 " + kIdentity3 + " 5")),
            "'5' follows [p.g2o:3]: expected the end of the line after the information matrix");
  EXPECT_EQ(g2o_refusal("VERTEX_SE2 -1 0 0 0\n"),
            "the vertex id is '-1' [p.g2o:1]: expected a whole number of at least 0");
  EXPECT_EQ(g2o_refusal("VERTEX_SE2 1.5 0 0 0\n"),
            "the vertex id is '1.5' [p.g2o:1]: expected a whole number of at least 0");
  EXPECT_EQ(g2o_refusal("VERTEX_SE3:QUAT 0 0 0 0 0 0 0 0\n"),
            "a zero quaternion [p.g2o:1]: expected a rotation");
  EXPECT_EQ(g2o_refusal(two + "VERTEX_SE3:QUAT 2 0 0 0 0 0 0 1\n"),
            "VERTEX_SE3:QUAT in a graph of 2 dimensions [p.g2o:3]: expected poses of one dimension only");
  EXPECT_EQ(g2o_refusal(two + "FIX\n"),
            "the id of the fixed vertex is missing [p.g2o:3]: expected a whole number of at least 0");
  EXPECT_EQ(g2o_refusal(edge("0 1 1 0 0 " + kIdentity3) + "FIX 8\n"),
            "vertex 8 is not in the file [p.g2o:4]: expected the id of a VERTEX line");
  EXPECT_EQ(g2o_refusal(""), "no vertices [p.g2o]: expected a pose graph in g2o's text format");
  EXPECT_EQ(g2o_refusal(two), "no edges [p.g2o]: expected a pose graph in g2o's text format");
}

const std::string kFlatMarks =
    "VERTEX_SE2 0 0 0 0\nVERTEX_XY 9 1 2\nVERTEX_XY 4 3 -1\nEDGE_SE2_XY 0 9 1.5 2.5 4 1 9\n"
    "EDGE_SE2_XY 0 4 3 -1 1 0 1\nEDGE_POINTXY 9 4 2 -3 5 0.5 6\nFIX 0 4\n";
const std::string kSpaceMarks =
    "EDGE_SE3_TRACKXYZ 2 7 3 0.1 0.2 0.3 4 1 0 5 0 6\nPARAMS_SE3OFFSET 3 1 2 3 0 0 0 2\n"
    "VERTEX_SE3:QUAT 2 0 0 0 0 0 0 1\nVERTEX_TRACKXYZ 7 4 5 6\n";

TEST(G2o, ReadsLandmarks) {
  const PoseGraph flat = parse_g2o(kFlatMarks, "p.g2o");
  EXPECT_EQ(flat.dimension, 2);
  EXPECT_EQ(flat.ids, std::vector<int64_t>{0});
  EXPECT_EQ(flat.fixed, std::vector<int32_t>{0});
  const Landmarks& l = flat.landmarks;
  EXPECT_EQ(l.ids, (std::vector<int64_t>{9, 4}));
  EXPECT_EQ(l.points, (std::vector<double>{1, 2, 3, -1}));
  EXPECT_EQ(l.fixed, std::vector<int32_t>{1});
  EXPECT_EQ(l.sights, (std::vector<int32_t>{0, 0, 0, 1}));
  EXPECT_EQ(l.seen, (std::vector<double>{1.5, 2.5, 3, -1}));
  EXPECT_EQ(l.information, (std::vector<double>{4, 1, 1, 9, 1, 0, 0, 1}));
  EXPECT_EQ(l.links, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(l.differences, (std::vector<double>{2, -3}));
  EXPECT_EQ(l.link_information, (std::vector<double>{5, 0.5, 0.5, 6}));

  const PoseGraph space = parse_g2o(kSpaceMarks, "p.g2o");
  EXPECT_EQ(space.dimension, 3);
  EXPECT_EQ(space.landmarks.sensor_ids, std::vector<int64_t>{3});
  EXPECT_EQ(space.landmarks.sensor_poses, (std::vector<double>{1, 2, 3, 1, 0, 0, 0}));
  EXPECT_EQ(space.landmarks.sensors, std::vector<int32_t>{0});
  EXPECT_EQ(space.landmarks.points, (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(space.landmarks.information, (std::vector<double>{4, 1, 0, 1, 5, 0, 0, 0, 6}));
}

TEST(G2o, WritesLandmarks) {
  TemporaryFolder folder;
  for (const std::string& text : {kFlatMarks, kSpaceMarks}) {
    const PoseGraph graph = parse_g2o(text, "p.g2o");
    write_g2o(folder / "out.g2o", graph);
    const PoseGraph back = read_g2o(folder / "out.g2o");
    const Landmarks &got = back.landmarks, &want = graph.landmarks;
    EXPECT_EQ(got.ids, want.ids);
    EXPECT_EQ(got.points, want.points);
    EXPECT_EQ(got.fixed, want.fixed);
    EXPECT_EQ(got.sights, want.sights);
    EXPECT_EQ(got.seen, want.seen);
    EXPECT_EQ(got.information, want.information);
    EXPECT_EQ(got.sensors, want.sensors);
    EXPECT_EQ(got.sensor_ids, want.sensor_ids);
    EXPECT_EQ(got.sensor_poses, want.sensor_poses);
    EXPECT_EQ(got.links, want.links);
    EXPECT_EQ(got.differences, want.differences);
    EXPECT_EQ(got.link_information, want.link_information);
  }
}

TEST(G2o, RefusesLandmarksWithTheLine) {
  const std::string flat = "VERTEX_SE2 0 0 0 0\nVERTEX_XY 1 1 0\n", unit = " 1 0 1\n";
  EXPECT_EQ(g2o_refusal(flat + "VERTEX_XY 0 5 5\n"),
            "vertex 0 is repeated [p.g2o:3]: expected each vertex once");
  EXPECT_EQ(g2o_refusal(flat + "EDGE_SE2_XY 1 0 1 0" + unit),
            "vertex 1 is a landmark [p.g2o:3]: expected a pose");
  EXPECT_EQ(g2o_refusal(flat + "EDGE_POINTXY 1 0 1 0" + unit),
            "vertex 0 is a pose [p.g2o:3]: expected a landmark");
  EXPECT_EQ(g2o_refusal(flat + "EDGE_SE2 0 1 1 0 0 " + kIdentity3 + "\n"),
            "vertex 1 is a landmark [p.g2o:3]: expected a pose");
  EXPECT_EQ(g2o_refusal(flat + "EDGE_SE2_XY 0 8 1 0" + unit),
            "vertex 8 is not in the file [p.g2o:3]: expected the id of a VERTEX line");
  EXPECT_EQ(g2o_refusal(flat + "EDGE_SE2_XY 0 1 1 0 1 2 1\n"),
            "the information matrix of edge 0 1 [p.g2o:3]: expected a positive semidefinite matrix");
  EXPECT_EQ(g2o_refusal(flat + "VERTEX_XY 3 1\n"), "y is missing [p.g2o:3]: expected a number");
  EXPECT_EQ(g2o_refusal(flat + "VERTEX_TRACKXYZ 3 1 2 3\n"),
            "VERTEX_TRACKXYZ in a graph of 2 dimensions [p.g2o:3]: expected poses of one dimension only");
  const std::string space = "VERTEX_SE3:QUAT 0 0 0 0 0 0 0 1\nVERTEX_TRACKXYZ 1 1 2 3\n";
  EXPECT_EQ(g2o_refusal(space + "EDGE_SE3_TRACKXYZ 0 1 5 1 2 3 1 0 0 1 0 1\n"),
            "sensor 5 is not in the file [p.g2o:3]: expected the id of a PARAMS_SE3OFFSET line");
  EXPECT_EQ(g2o_refusal(space + "PARAMS_SE3OFFSET 0 0 0 0 0 0 0 1\nPARAMS_SE3OFFSET 0 0 0 0 0 0 0 1\n"),
            "sensor 0 is repeated [p.g2o:4]: expected each sensor once");
  EXPECT_EQ(g2o_refusal(space + "PARAMS_SE3OFFSET 0 0 0 0 0 0 0 0\n"),
            "a zero quaternion [p.g2o:3]: expected a rotation");
}

TEST(G2o, WhiteningFactor) {
  const double matrix[9] = {4, 2, -1, 2, 5, 0.5, -1, 0.5, 3};
  double w[9];
  ASSERT_TRUE(whitening_factor(matrix, 3, w));
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 3; ++c) {
      double sum = 0;
      for (int k = 0; k < 3; ++k) sum += w[k * 3 + r] * w[k * 3 + c];
      EXPECT_NEAR(sum, matrix[r * 3 + c], 1e-15);
      EXPECT_TRUE(c >= r || w[r * 3 + c] == 0);
    }
}

TEST(G2o, PublicGraphs) {
  const auto folder = data_folder() / "solve" / "g2o";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  struct Known {
    const char* name;
    int dimension;
    int64_t vertices, edges;
  };
  for (const Known& k : {Known{"sphere2500", 3, 2500, 4949}, Known{"parking-garage", 3, 1661, 6275},
                         Known{"intel", 2, 1728, 2512}, Known{"MIT", 2, 808, 827},
                         Known{"smallGrid3D", 3, 125, 297}, Known{"tinyGrid3D", 3, 9, 11}}) {
    const PoseGraph graph = read_g2o(folder / (std::string(k.name) + ".g2o"));
    EXPECT_EQ(graph.dimension, k.dimension) << k.name;
    EXPECT_EQ(graph.vertex_count(), k.vertices) << k.name;
    EXPECT_EQ(graph.edge_count(), k.edges) << k.name;
  }
}

const std::string kBal =
    "2 1 2\n0 0 1.5 -2\n1 0 3 4e0\n"
    "1\n2\n3\n4\n5\n6\n500\n0.1\n0.2\n.1\n.2\n.3\n.4\n.5\n.6\n600\n-0.1\n0\n7 8 9\n\n";
std::string bal_refusal(const std::string& text) {
  return error_of([&] { parse_bal(text, "b.txt"); });
}

TEST(Bal, ReadsAndWrites) {
  TemporaryFolder folder;
  const BalProblem problem = parse_bal(kBal, "b.txt");
  EXPECT_EQ(problem.camera_count(), 2);
  EXPECT_EQ(problem.points, (std::vector<double>{7, 8, 9}));
  EXPECT_EQ(problem.indices, (std::vector<int32_t>{0, 0, 1, 0}));
  EXPECT_EQ(problem.observations, (std::vector<double>{1.5, -2, 3, 4}));
  EXPECT_EQ(problem.cameras[6], 500);
  EXPECT_EQ(problem.cameras[9], 0.1);
  write_bal(folder / "out.txt", problem);
  const BalProblem back = read_bal(folder / "out.txt");
  EXPECT_EQ(back.cameras, problem.cameras);
  EXPECT_EQ(back.points, problem.points);
  EXPECT_EQ(back.indices, problem.indices);
  EXPECT_EQ(back.observations, problem.observations);
}

TEST(Bal, RefusesWithTheLine) {
  EXPECT_EQ(bal_refusal(""), "the file ends before the number of cameras [b.txt:1]: expected a whole number");
  EXPECT_EQ(bal_refusal("0 1 1\n"),
            "the number of cameras is '0' [b.txt:1]: expected a whole number from 1 to 2147483647");
  EXPECT_EQ(bal_refusal("2000000 5 100000000000\n0 0 1 1\n"),
            "2000000 cameras, 5 points and 100000000000 observations in 31 bytes [b.txt:1]: expected as many "
            "numbers "
            "as the first line announces");
  std::string text = kBal;
  EXPECT_EQ(bal_refusal(text.replace(text.find("1 0 3"), 5, "2 0 3")),
            "the camera of an observation is '2' [b.txt:3]: expected a whole number from 0 to 1");
  text = kBal;
  EXPECT_EQ(bal_refusal(text.replace(text.find("1 0 3"), 5, "1 1 3")),
            "the point of an observation is '1' [b.txt:3]: expected a whole number from 0 to 0");
  text = kBal;
  EXPECT_EQ(bal_refusal(text.replace(text.find("500"), 3, "inf")),
            "a number of a camera is 'inf' [b.txt:10]: expected a finite number");
  EXPECT_EQ(bal_refusal(kBal.substr(0, kBal.size() - 4)),
            "the file ends before a coordinate of a point [b.txt:22]: expected a number");
  EXPECT_EQ(bal_refusal(kBal + "1\n"), "'1' follows the last point [b.txt:24]: expected the end of the file");
}

TEST(Bal, ReadsPackedFiles) {
  TemporaryFolder folder;
  const BalProblem plain = parse_bal(kBalText, "p.txt");
  for (const std::string& packed : {kGzip, kTwoMembers, kBzip2, "\xef\xbb\xbf" + kBalText}) {
    write_text(folder / "problem.bin", packed);
    const BalProblem problem = read_bal(folder / "problem.bin");
    EXPECT_EQ(problem.cameras, plain.cameras);
    EXPECT_EQ(problem.points, (std::vector<double>{7, 8, 9}));
  }
}

TEST(Unpack, RefusesDamage) {
  for (const std::string& packed : {kGzip, kBzip2}) {
    EXPECT_EQ(unpack_text(packed, "p"), kBalText);
    EXPECT_EQ(error_of([&] { unpack_text(packed.substr(0, packed.size() - 3), "p.bz2"); }),
              "the packed data ends too early [p.bz2]: expected a whole gzip or bzip2 file");
    std::string flipped = packed;
    flipped[packed.size() / 2] = char(flipped[packed.size() / 2] ^ 16);
    EXPECT_NE(error_of([&] { unpack_text(flipped, "p"); }).find("damaged"), std::string::npos);
    EXPECT_NE(error_of([&] { unpack_text(packed + "x", "p"); }), "no InputError");
  }
  EXPECT_EQ(error_of([] { unpack_text(kBomb, "p"); }),
            "more than 200 times its size when unpacked [p]: expected a whole gzip or bzip2 file");
}

TEST(G2o, ByteOrderMarksAndTrailingComments) {
  const PoseGraph graph =
      parse_g2o("\xef\xbb\xbfVERTEX_SE2 0 0 0 0 # the start\nVERTEX_SE2 1 1 0 0\t#\nEDGE_SE2 0 1 1 0 0 " +
                    kIdentity3 + " # odometry\nFIX 0 # held\n",
                "p.g2o");
  EXPECT_EQ(graph.ids, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(graph.fixed, (std::vector<int32_t>{0}));
  EXPECT_NE(g2o_refusal("VERTEX_SE2 0 0 0#1 0\n").find("y is '0#1'"), std::string::npos)
      << "no comment within a field";
}

TEST(Bal, Ladybug) {
  const auto path = data_folder() / "solve" / "bal" / "problem-49-7776-pre.txt";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const BalProblem problem = read_bal(path);
  EXPECT_EQ(problem.camera_count(), 49);
  EXPECT_EQ(problem.point_count(), 7776);
  EXPECT_EQ(problem.observation_count(), 31843);
  EXPECT_EQ(problem.observations[0], -332.65);
}

TEST(Csv, Layouts) {
  const CsvTable comma = parse_csv("\xef\xbb\xbf# data\nx, \"a, \"\"b\"\"\"\n1,2\n\n3.5e0 ,-4\n", "t.csv");
  EXPECT_EQ(comma.names, (std::vector<std::string>{"x", "a, \"b\""}));
  EXPECT_EQ(comma.columns, (std::vector<std::vector<double>>{{1, 3.5}, {2, -4}}));
  EXPECT_EQ(comma.column("x", "t.csv"), 0u);
  EXPECT_EQ(comma.column("2", "t.csv"), 1u);
  EXPECT_EQ(error_of([&] { comma.column("z", "t.csv"); }),
            "no column 'z' [t.csv]: expected one of x, a, \"b\"");
  for (const char* text : {"1;2\n3;4\n", "1\t2\r\n3\t4", " 1   2 \n3 4"})
    EXPECT_EQ(parse_csv(text, "t.csv").columns, (std::vector<std::vector<double>>{{1, 3}, {2, 4}})) << text;
}

TEST(Csv, WrittenNamesComeBack) {
  for (const std::string& name : {"a,b", "a;b", "a\tb", "say \"a\"", "=1+1", "-2+3", "+x", "@f", "'=1",
                                  "''=1", "'a", "#a", " a ", "a b", "-1e3"}) {
    const std::string field = csv_field(name);
    EXPECT_EQ(parse_csv("x," + field + "\n1,2\n", "t.csv").column(name, "t.csv"), 1u) << field;
    const bool number = name == "-1e3";
    EXPECT_EQ(std::string("=+-@").find(field[field[0] == '"']) != std::string::npos, number) << field;
  }
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a\r\nb"), "\"a  b\"");
  EXPECT_EQ(csv_field(std::string("a\0b", 3)), "\"a b\"") << "texts have no NUL";
  // Separators in quotes are no separators.
  EXPECT_EQ(parse_csv("\"a;b\",\"c\td\"\n1,2\n", "t.csv").names, (std::vector<std::string>{"a;b", "c\td"}));
}

TEST(Csv, RefusesWithTheLine) {
  const auto refusal = [](const char* text) { return error_of([&] { parse_csv(text, "t.csv"); }); };
  EXPECT_EQ(refusal("x,y\n1,2\n1,2,3\n"), "3 fields [t.csv:3]: expected 2 as above");
  EXPECT_EQ(refusal("1,2\n1,nan\n"), "column 2 is 'nan' [t.csv:2]: expected a finite number");
  EXPECT_EQ(refusal("1,2\n,3\n"), "column 1 is empty [t.csv:2]: expected a finite number");
  EXPECT_EQ(refusal("x,x\n1,2\n"), "column 'x' is repeated [t.csv:1]: expected each name once");
  EXPECT_EQ(refusal("x,y\n"), "no rows of numbers [t.csv]: expected a table of numbers (CSV)");
  EXPECT_EQ(refusal("\"x,y\n"), "a quote is not closed [t.csv:1]: expected a closing quote on the same line");
}

// Stations, comments and gaps in columns that nobody uses are no fault of the others.
TEST(Csv, ColumnsOfTexts) {
  const CsvTable table = parse_csv("x,station,y,z\n1,north,2,\n3,5,4,6\n", "t.csv");
  EXPECT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.columns[table.column("x", "t.csv")], (std::vector<double>{1, 3}));
  EXPECT_EQ(table.columns[table.column("3", "t.csv")], (std::vector<double>{2, 4}));
  for (const auto& [column, message] :
       {std::pair("station", "column station is 'north' [t.csv:2]"),
        std::pair("2", "column station is 'north' [t.csv:2]"), std::pair("z", "column z is empty [t.csv:2]")})
    EXPECT_EQ(error_of([&] { table.column(column, "t.csv"); }),
              std::string(message) + ": expected a finite number");
}

TEST(TextScanner, Numbers) {
  double v = 0;
  EXPECT_TRUE(parse_double("+2.5", v));
  EXPECT_EQ(v, 2.5);
  EXPECT_TRUE(parse_double("1e-400", v));
  EXPECT_EQ(v, 0);
  EXPECT_TRUE(parse_double("-1e400", v));
  EXPECT_EQ(v, -INFINITY);
  for (const char* bad : {"", "+", "+-1", "1x", "0x1p3", "1,5", "--1"})
    EXPECT_FALSE(parse_double(bad, v)) << bad;
  EXPECT_EQ(shown(std::string("a\x01\xff") + std::string(50, 'b')), "a??" + std::string(37, 'b') + "…");
}

}  // namespace
