// OBJ, PLY and STL: what is read, what is refused and where.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "core/temporary_folder.hpp"
#include "io/checks.hpp"
#include "io/meshes/mesh.hpp"
#include "io/test_data.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

TriangleMesh ply(const std::string& text) { return parse_ply(bytes_of(text), "m.ply"); }
TriangleMesh stl(const std::string& text) { return parse_stl(bytes_of(text), "m.stl"); }

const std::vector<double> kSquare = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0};
const std::vector<int32_t> kTwoFaces = {0, 1, 2, 0, 2, 3};
TriangleMesh sample_square(bool colored = false) {
  TriangleMesh mesh{kSquare, kTwoFaces, {}};
  if (colored) mesh.colors = {0, 1, 2, 255, 254, 253, 10, 20, 30, 40, 50, 60};
  return mesh;
}

TEST(Obj, EveryKindOfFace) {
  const std::string vertices =
      "# a square\nmtllib x.mtl\no s\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvn 0 0 1\n";
  for (const char* face : {"f 1 2 3 4", "f 1/1 2/1 3/1 4/1", "f 1//1 2//1 3//1 4//1",
                           "f 1/1/1 2/1/1 3/1/1 4/1/1", "f -4 -3 -2 -1", "f -4/-1/-1 2 3//1 -1/1"}) {
    const TriangleMesh mesh = parse_obj(vertices + face + "\ns off\n", "m.obj");
    EXPECT_EQ(mesh.vertices, kSquare) << face;
    EXPECT_EQ(mesh.faces, kTwoFaces) << face;
  }
  const TriangleMesh colored = parse_obj("v 0 0 0 0 0.5 1\nv 1 0 0 1 1 1\n", "m.obj");
  EXPECT_EQ(colored.colors, (std::vector<uint8_t>{0, 128, 255, 255, 255, 255}));
  EXPECT_TRUE(parse_obj("v 0 0 0 0 0.5 1\nv 1 0 0 1\n", "m.obj").colors.empty());
}

TEST(Obj, CommentsContinuedLinesAndFacesBeforeTheirVertices) {
  const std::string vertices = "v 0 0 0\nv 1 0 0 # the second\nv 1 1 \\\r\n  0\nv 0 1 0\n";
  for (const std::string& text : {vertices + "f 1 2 3 4 # all\n", vertices + "f 1 2\\\n 3 4\n",
                                  "\xef\xbb\xbf" + vertices + "f 1 2 3 4\n", "f 1 2 3 4\n" + vertices,
                                  "g a \\\n b\n" + vertices + "f 1 2 3 4"}) {
    const TriangleMesh mesh = parse_obj(text, "m.obj");
    EXPECT_EQ(mesh.vertices, kSquare) << text;
    EXPECT_EQ(mesh.faces, kTwoFaces) << text;
  }
  // The order of faces is the file's; lines are counted through joined ones.
  EXPECT_EQ(parse_obj("v 0 0 0\nv 1 0 0\nf 1 2 3\nv 1 1 0\nf 3 2 1\n", "m").faces,
            (std::vector<int32_t>{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(error_of([] { parse_obj("v 0 0 \\\n0\nf 1 2 3\nv 1 0 0\n", "m.obj"); }),
            "a face names vertex 3 [m.obj:3]: expected one of 2, counted from 1");
}

TEST(Obj, RefusesWithTheLine) {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { parse_obj("v 0 0 0\nv 1 0 0\nv 0 1 0\n" + text, "m.obj"); });
  };
  EXPECT_EQ(refusal("f 1 2 4\n"), "a face names vertex 4 [m.obj:4]: expected one of 3, counted from 1");
  EXPECT_EQ(refusal("f 1 2 -4\n"), "a face names vertex 0 [m.obj:4]: expected one of 3, counted from 1");
  EXPECT_EQ(refusal("f 1 2 0\n"), "a face has the index '0' [m.obj:4]: expected a whole number other than 0");
  EXPECT_EQ(refusal("f 1 2 3/\n"), "a face has the index '' [m.obj:4]: expected a whole number other than 0");
  EXPECT_EQ(refusal("f 1 2 3/1/\n"),
            "a face has the index '' [m.obj:4]: expected a whole number other than 0");
  EXPECT_EQ(refusal("f 1 2 x\n"), "a face has the index 'x' [m.obj:4]: expected a whole number other than 0");
  EXPECT_EQ(refusal("f 1 2\n"), "a face of 2 vertices [m.obj:4]: expected three or more");
  EXPECT_EQ(refusal("f 1 2 1\n"), "a face names vertex 1 twice [m.obj:4]: expected different vertices");
  EXPECT_EQ(refusal("v 1 2\n"), "z is missing [m.obj:4]: expected a number");
  EXPECT_EQ(refusal("v 1 2 nan\n"), "z is 'nan' [m.obj:4]: expected a finite number");
  EXPECT_EQ(refusal("v 1 2 3 4 5\n"),
            "a vertex of 5 numbers [m.obj:4]: expected x y z, then a weight or a colour");
  EXPECT_EQ(refusal("\nwobble\n"),
            "unknown statement 'wobble' [m.obj:5]: expected a statement of an OBJ mesh");
  EXPECT_EQ(refusal("curv 0 1 1 2\n"),
            "free-form geometry ('curv') [m.obj:4]: expected vertices (v) and faces (f)");
  EXPECT_EQ(error_of([] { parse_obj("# nothing\n", "m.obj"); }), "no vertices [m.obj]: expected an OBJ mesh");
}

TEST(Meshes, WriteWhatTheyRead) {
  TemporaryFolder folder;
  for (const bool colored : {false, true}) {
    const TriangleMesh mesh = sample_square(colored);
    write_mesh(folder / "m.obj", mesh);
    write_mesh(folder / "m.PLY", mesh);
    write_ply(folder / "a.ply", mesh, PlyEncoding::ascii);
    for (const char* name : {"m.obj", "m.PLY", "a.ply"}) {
      const TriangleMesh back = read_mesh(folder / name);
      EXPECT_EQ(back.vertices, mesh.vertices) << name;
      EXPECT_EQ(back.faces, mesh.faces) << name;
      EXPECT_EQ(back.colors, mesh.colors) << name;
    }
  }
  write_mesh(folder / "m.stl", sample_square());
  const TriangleMesh back = read_mesh(folder / "m.stl");
  EXPECT_EQ(back.vertices, kSquare);
  EXPECT_EQ(back.faces, kTwoFaces);
  TriangleMesh cloud{{0.1, 0.2, 0.3}, {}, {1, 2, 3}};
  write_mesh(folder / "c.ply", cloud);
  EXPECT_EQ(read_mesh(folder / "c.ply").vertices, cloud.vertices);
  EXPECT_EQ(
      error_of([&] { read_mesh(folder / "m.off"); }),
      "the name has the suffix '.off' [" + (folder / "m.off").string() + "]: expected .obj, .ply or .stl");
}

TEST(Meshes, SuffixesInCapitals) {
  TemporaryFolder folder;
  for (const char* name : {"m.STL", "m.Obj", "m.PLY"}) {
    write_mesh(folder / name, sample_square());
    EXPECT_EQ(read_mesh(folder / name).faces, kTwoFaces) << name;
  }
  EXPECT_EQ(mesh_suffix("a/B.STL"), ".stl");
}

TEST(Ply, BothByteOrdersAndOtherProperties) {
  const std::string head =
      "comment by hand\nelement material 1\nproperty list uchar short codes\nelement vertex 3\nproperty "
      "float y\n"
      "property double x\nproperty list ushort char extra\nproperty short z\nproperty uchar red\nproperty "
      "uchar "
      "green\nproperty uchar blue\nelement face 1\nproperty uchar flags\nproperty list uint32 int16 "
      "vertex_index\nend_header\n";
  std::string big = "ply\nformat binary_big_endian 1.0\n" + head,
              small = "ply\nformat binary_little_endian 1.0\n" + head;
  const auto put = [&](auto value) {
    std::array<char, sizeof(value)> bytes;
    std::memcpy(bytes.data(), &value, sizeof(value));
    small.append(bytes.begin(), bytes.end());
    big.append(bytes.rbegin(), bytes.rend());
  };
  put(uint8_t(2));
  put(int16_t(-5));
  put(int16_t(6));
  for (int v = 0; v < 3; ++v) {
    put(0.5f * float(v));
    put(0.1 * v);
    put(uint16_t(v));
    for (int k = 0; k < v; ++k) put(int8_t(k));
    put(int16_t(-300 * v));
    for (int c = 0; c < 3; ++c) put(uint8_t(10 * v + c));
  }
  put(uint8_t(0));
  put(uint32_t(3));
  for (const int16_t corner : {2, 1, 0}) put(corner);
  const std::string ascii = "ply\r\nformat ascii 1.0\r\n" + head +
                            "2 -5 6\n0 0 0 0 0 1 2\n.5 .1 1 0 -300 10 11 12\n1 .2 2 0 1 -600 20 21 "
                            "22\n0 3 2 1 0\n";
  for (const std::string& text : {small, big, ascii}) {
    const TriangleMesh mesh = ply(text);
    EXPECT_EQ(mesh.vertices, (std::vector<double>{0, 0, 0, 0.1, 0.5, -300, 0.2, 1, -600}));
    EXPECT_EQ(mesh.faces, (std::vector<int32_t>{2, 1, 0}));
    EXPECT_EQ(mesh.colors, (std::vector<uint8_t>{0, 1, 2, 10, 11, 12, 20, 21, 22}));
  }
  EXPECT_EQ(error_of([&] { ply(small.substr(0, small.size() - 1)); }),
            "a list of 3 [m.ply, face 1]: expected a complete file");
  EXPECT_EQ(error_of([&] { ply(small + "x"); }),
            "1 bytes follow the last element [m.ply]: expected the end of the file");
}

TEST(Ply, RefusesWithThePlace) {
  const std::string head = "ply\nformat ascii 1.0\n";
  const std::string xyz = "property float x\nproperty float y\nproperty float z\n";
  const std::string faces = "property list uchar int vertex_indices\n";
  const auto refusal = [](const std::string& text) { return error_of([&] { ply(text); }); };
  EXPECT_EQ(refusal("plx"), "no PLY header [m.ply]: expected 'ply', the elements and 'end_header'");
  EXPECT_EQ(refusal("ply\nformat utf8 1.0\nend_header\n"),
            "format 'utf8' [m.ply:2]: expected ascii, binary_little_endian or binary_big_endian");
  EXPECT_EQ(refusal(head + "element vertex 1\nproperty real x\nend_header\n"),
            "unknown type 'real' [m.ply:4]: expected char, uchar, short, ushort, int, uint, float or double");
  EXPECT_EQ(refusal(head + "element vertex 99999999999\n" + xyz + "end_header\n0 0 0\n"),
            "99999999999 of element 'vertex' in 6 bytes [m.ply]: expected a complete file");
  EXPECT_EQ(refusal(head + "element vertex 1\nproperty float x\nend_header\n0\n"),
            "no x, y and z in element 'vertex' [m.ply]: expected three properties");
  EXPECT_EQ(refusal(head + "element vertex 2\n" + xyz + "end_header\n0 0 0\n0 nan 0\n"),
            "'nan' [m.ply:9]: expected a finite number");
  EXPECT_EQ(refusal(head + "element vertex 1\n" + xyz + "element face 1\n" + faces +
                    "end_header\n0 0 0\n3 0 0 1\n"),
            "a face names vertex 2 [m.ply:11]: expected one of 1, counted from 1");
  EXPECT_EQ(refusal(head + "element face 0\n" + faces + "element vertex 1\n" + xyz + "end_header\n0 0 0\n"),
            "faces before the vertices [m.ply]: expected element 'vertex' first");
  EXPECT_EQ(refusal(head + "element vertex 9\nend_header\n0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"),
            "element 'vertex' has no properties [m.ply]: expected properties");
}

TEST(Stl, CornersMergeExactly) {
  const std::string text =
      "solid part of a roof\nfacet normal 0 0 1\n outer loop\n  vertex 0 0 0\n  vertex 1 0 0\n  vertex 1 1 "
      "0\n "
      "endloop\nendfacet\nfacet normal nan 0 0\nouter loop\nvertex -0 0 0\nvertex 1 1 0\nvertex 0 1 "
      "0\nendloop\nendfacet\nendsolid part\n";
  const TriangleMesh mesh = stl(text);
  EXPECT_EQ(mesh.vertices, kSquare);
  EXPECT_EQ(mesh.faces, kTwoFaces);
}

TEST(Stl, CapitalLettersAndJunk) {
  const std::string facet =
      "FACET NORMAL 0 0 -nan(ind)\nOUTER LOOP\nVERTEX 0 0 0\nVERTEX 1 0 0\nVERTEX 0 1 0\nENDLOOP\nENDFACET\n";
  EXPECT_EQ(stl("SOLID a name\n" + facet + "ENDSOLID a name\n").faces, (std::vector<int32_t>{0, 1, 2}));
  for (const auto& [line, place] : {std::pair("VERTEX 1 0 0", "m.stl:5"),
                                    {"OUTER LOOP", "m.stl:3"},
                                    {"ENDLOOP", "m.stl:7"},
                                    {"ENDFACET", "m.stl:8"},
                                    {"-nan(ind)", "m.stl:2"}}) {
    std::string text = facet;
    text.insert(text.find(line) + std::strlen(line), " junk");
    EXPECT_EQ(error_of([&] { stl("solid\n" + text + "endsolid\n"); }),
              fmt::format("'junk' follows [{}]: expected the end of the line", place));
  }
}

TEST(Stl, RefusesWithThePlace) {
  const auto facet = [](const std::string& corner) {
    return "solid\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex " + corner +
           "\nendloop\nendfacet\nendsolid\n";
  };
  const auto refusal = [](const std::string& text) { return error_of([&] { stl(text); }); };
  EXPECT_EQ(refusal(facet("1 0 0")),
            "a facet with two corners in one place [m.stl:6]: expected three different corners");
  EXPECT_EQ(refusal(facet("1 x 0")), "a coordinate is 'x' [m.stl:6]: expected a number");
  EXPECT_EQ(refusal("solid\nendsolid\n"), "no facets [m.stl]: expected an STL mesh");
  EXPECT_EQ(refusal("solid\nfacet normal 0 0 1\nloop\n"), "'loop' [m.stl:3]: expected 'outer'");
  EXPECT_EQ(refusal("tiny"), "4 bytes [m.stl]: expected an STL mesh");
  TemporaryFolder folder;
  write_stl(folder / "m.stl", sample_square());
  std::string binary = read_text(folder / "m.stl");
  EXPECT_EQ(refusal(binary.substr(0, 100)),
            "2 facets in 100 bytes [m.stl]: expected a binary STL of 184 bytes, or an ASCII one");
  const float nan = std::bit_cast<float>(0x7fc00000u);
  std::memcpy(binary.data() + 84 + 50 + 12, &nan, 4);
  EXPECT_EQ(refusal(binary), "a corner that is not finite [m.stl, facet 2]: expected finite coordinates");
}

TEST(Meshes, PublicMeshes) {
  const auto folder = data_folder() / "solve" / "meshes";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  struct Known {
    const char* name;
    int64_t vertices, faces;
  };
  for (const Known& k : {Known{"bunnyhead", 1550, 3000}, Known{"cow", 2903, 5804}, Known{"cloth", 900, 1682},
                         Known{"spot", 2930, 5856}}) {
    const TriangleMesh mesh = read_mesh(folder / (std::string(k.name) + ".obj"));
    EXPECT_EQ(mesh.vertex_count(), k.vertices) << k.name;
    EXPECT_EQ(mesh.face_count(), k.faces) << k.name;
  }
}

}  // namespace
