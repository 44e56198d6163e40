"""solve mesh and solve sketch."""
import math
import os
import re
import struct
import unittest
import zlib

from program import ProgramTest, run

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SKETCHES = os.path.join(ROOT, "examples", "sketches")
DATA = os.environ.get("LOCKSTEP_DATA") or os.path.join(ROOT, "..", "shared", "data")
CONTRACT = {"initial_cost", "final_cost", "iterations", "linear_iterations", "termination", "gradient_max", "residuals", "variables", "kernels",
            "trace"}


def read_obj(path):
    vertices, texture, faces = [], [], []
    with open(path) as file:
        for line in file:
            words = line.split()
            if words and words[0] == "v":
                vertices.append(tuple(map(float, words[1:4])))
            elif words and words[0] == "vt":
                texture.append(tuple(map(float, words[1:3])))
            elif words and words[0] == "f":
                faces.append(tuple(int(word.split("/")[0]) - 1 for word in words[1:]))
    return vertices, texture, faces


def read_png(path):
    """Width, height and rows of RGB bytes; filters undone."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, width, height = 8, b"", 0, 0
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert (depth, color) == (8, 2)
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    raw, stride, rows = zlib.decompress(packed), 3 * width, []
    before = bytes(stride)
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for k in range(stride):
            left = row[k - 3] if k >= 3 else 0
            corner = before[k - 3] if k >= 3 else 0
            if kind == 1:
                row[k] = (row[k] + left) & 255
            elif kind == 2:
                row[k] = (row[k] + before[k]) & 255
            elif kind == 3:
                row[k] = (row[k] + (left + before[k]) // 2) & 255
            elif kind == 4:
                p = left + before[k] - corner
                nearest = min((abs(p - left), 0, left), (abs(p - before[k]), 1, before[k]), (abs(p - corner), 2, corner))[2]
                row[k] = (row[k] + nearest) & 255
        rows.append(bytes(row))
        before = bytes(row)
    return width, height, rows


class SolveCase(ProgramTest):
    def solve(self, *arguments, code=0):
        document = self.json_of("solve", *arguments, "--device", "cpu", code=code)
        self.check_summary(document)
        self.assertLessEqual(CONTRACT, set(document))
        self.assertEqual(len(document["trace"]), document["iterations"])
        return document

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)


class MeshTest(SolveCase):
    def test_deformation_with_handles(self):
        out, picture = self.path("bar.obj"), self.path("bar.png")
        document = self.solve("mesh", "bar:2x8", "--energy", "arap", "--fix", "z<=0", "--handle", "z>=100%@0,0,1,90", "--out", out,
                              "--picture", picture, "--width", "200")
        self.assertEqual(document["fixed"], 9)
        self.assertEqual(document["handles"], 9)
        self.assertLess(document["final_cost"], document["initial_cost"])
        vertices, _, faces = read_obj(out)
        self.assertEqual(len(vertices), document["vertices"])
        self.assertEqual(len(faces), document["triangles"])
        # The square on top has turned by a quarter: its corners have changed places.
        top = {(round(x, 9), round(y, 9)) for x, y, z in vertices if abs(z - 4) < 1e-12}
        self.assertEqual(top, {(x, y) for x in (-0.5, 0, 0.5) for y in (-0.5, 0, 0.5)})
        width, height, rows = read_png(picture)
        self.assertEqual((width, height), (200, 160))
        self.assertGreater(len({row[3 * 100:3 * 101] for row in rows}), 20)

    def test_every_energy_runs_and_does_not_rise(self):
        for energy in ("smooth", "smooth-cotangent", "springs", "bend", "cloth", "developable", "developable-max", "partition", "midpoint",
                       "bimodal", "ridge", "covariance-grid", "great-circle", "plane-alignment"):
            with self.subTest(energy=energy):
                document = self.solve("mesh", "dome:2", "--energy", energy, "--fix", "boundary", "--iterations", "8")
                self.assertLessEqual(document["final_cost"], document["initial_cost"] * (1 + 1e-12))
                self.assertLessEqual(document["iterations"], 8)

    def test_developable(self):
        document = self.solve("mesh", "icosphere:2", "--energy", "developable", "--iterations", "60")
        self.assertEqual(document["method"], "lbfgs")
        self.assertLess(document["developability_after"], 0.3 * document["developability_before"])
        self.assertAlmostEqual(document["developability_after"], document["final_cost"], delta=1e-9)
        self.assertEqual(document["curvature_before"]["hinges"], 0)
        self.assertGreater(document["curvature_after"]["hinges"], 20)

    def test_parameterization(self):
        out, picture = self.path("dome.obj"), self.path("dome.png")
        document = self.solve("mesh", "dome:3", "--energy", "parameterize", "--out", out, "--picture", picture, "--width", "200")
        self.assertEqual(document["turned_over"], 0)
        self.assertAlmostEqual(document["symmetric_dirichlet"], document["final_cost"], delta=1e-9)
        self.assertGreater(document["symmetric_dirichlet"], 4)
        vertices, texture, faces = read_obj(out)
        self.assertEqual(len(texture), len(vertices))
        for a, b, c in faces:
            (ax, ay), (bx, by), (cx, cy) = texture[a], texture[b], texture[c]
            self.assertGreater((bx - ax) * (cy - ay) - (by - ay) * (cx - ax), 0)
        self.assertEqual(read_png(picture)[:2], (400, 160))

    def test_files_in_and_out(self):
        first, second = self.path("ball.ply"), self.path("ball.stl")
        self.solve("mesh", "icosphere:1", "--energy", "springs", "--rest-scale", "2", "--out", first)
        document = self.solve("mesh", first, "--energy", "springs", "--out", second)
        self.assertEqual(document["vertices"], 42)
        self.assertLess(document["initial_cost"], 1e-20, "the file keeps all digits")
        handles = self.write("handles.txt", "# vertex x y z\n0 -1 2 0.5\n")
        moved = self.path("moved.obj")
        self.solve("mesh", first, "--energy", "arap", "--fix", "3", "--handles", handles, "--out", moved)
        self.assertEqual(read_obj(moved)[0][0], (-1, 2, 0.5))

    def test_real_mesh(self):
        path = os.path.join(DATA, "solve", "meshes", "spot.obj")
        if not os.path.exists(path):
            self.skipTest(path + " is absent")
        document = self.solve("mesh", path, "--energy", "smooth", "--iterations", "5")
        self.assertEqual((document["vertices"], document["euler_characteristic"]), (2930, 2))
        self.assertLess(document["final_cost"], 0.5 * document["initial_cost"])

    def test_same_bits_for_any_number_of_threads(self):
        outs = []
        for threads in ("1", "2"):
            outs.append(self.path(threads + ".ply"))
            self.solve("mesh", "dome:3", "--energy", "developable", "--iterations", "15", "--threads", threads, "--out", outs[-1])
        with open(outs[0], "rb") as one, open(outs[1], "rb") as two:
            self.assertEqual(one.read(), two.read())

    def test_the_interpreter_gives_the_same_bits(self):
        for arguments in (("icosphere:1", "--energy", "developable", "--iterations", "5"), ("dome:1", "--energy", "parameterize")):
            outs = []
            for device in ("cpu", "interp"):
                outs.append(self.path(device + ".ply"))
                self.json_of("solve", "mesh", *arguments, "--device", device, "--out", outs[-1])
            with open(outs[0], "rb") as one, open(outs[1], "rb") as two:
                self.assertEqual(one.read(), two.read())

    def test_single_precision(self):
        for arguments in (("icosphere:2", "--energy", "developable", "--iterations", "20"), ("dome:2", "--energy", "parameterize"),
                          ("bar:2x6", "--energy", "arap", "--fix", "z<=0", "--handle", "z>=100%@0,0,1,60")):
            exact = self.solve("mesh", *arguments)
            single = self.solve("mesh", *arguments, "--precision", "f32")
            self.assertAlmostEqual(single["initial_cost"], exact["initial_cost"], delta=1e-5 * exact["initial_cost"])
            self.assertAlmostEqual(single["final_cost"], exact["final_cost"], delta=0.05 * exact["initial_cost"])

    def test_sampled_partition_repeats(self):
        ends = []
        for seed in (1, 1, 2):
            document = self.solve("mesh", "icosphere:2", "--energy", "partition-sampled", "--iterations", "50", "--seed", seed)
            self.assertLess(document["developability_after"], 0.8 * document["developability_before"])
            ends.append(document["developability_after"])
        self.assertEqual(ends[0], ends[1])
        self.assertNotEqual(ends[0], ends[2])

    def test_repair_makes_a_book_of_three_pages_manifold(self):
        book = self.write("book.obj", "v 9 9 9\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 0 -1 0\nf 2 3 4\nf 3 2 5\nf 2 3 6\n")
        document = self.solve("mesh", book, "--energy", "springs", "--rest-scale", "1.1", "--repair")
        self.assertEqual(document["repair"], {"welded": 0, "dropped": 0, "turned": 0, "copied": 4, "unused": 1})
        self.assertEqual(document["vertices"], 9)
        self.assertEqual(document["boundary_loops"], 3)
        self.assertLess(document["final_cost"], 1e-12)
        done = self.refuses("solve", "mesh", book, "--energy", "springs", saying="edge 1-2 has 3 triangles")
        self.assertIn("hint: --repair fixes such a mesh", done.stderr)

    def test_bad_input(self):
        energy = ("--energy", "smooth")
        self.refuses("solve", "mesh", "icosphere:1", saying="--energy is missing")
        self.refuses("solve", "mesh", "icosphere:9", *energy, saying="size 9 [icosphere]")
        self.refuses("solve", "mesh", "grid:3", *energy, saying="grid:AxB")
        self.refuses("solve", "mesh", self.path("absent.obj"), *energy, saying="absent.obj")
        self.refuses("solve", "mesh", "grid:3x3", *energy, "--fix", "w<1", saying="[--fix]")
        self.refuses("solve", "mesh", "grid:3x3", *energy, "--handle", "12=1,2,3", saying="vertex 12 [--handle]")
        self.refuses("solve", "mesh", "grid:3x3", *energy, "--fix", "4", "--handle", "4=1,2,3", saying="vertex 4 is fixed and has a handle")
        self.refuses("solve", "mesh", "grid:3x3", *energy, "--out", self.path("x.xyz"), saying=".obj or .ply or .stl")
        self.refuses("solve", "mesh", "grid:3x3", *energy, "--picture", self.path("x.png"), "--view", "0,0,0", saying="[--view]")
        self.refuses("solve", "mesh", "icosphere:1", "--energy", "parameterize", saying="0 boundary loops")
        flat = self.write("flat.obj", "v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n")
        self.refuses("solve", "mesh", flat, *energy, saying="triangle 0 (0, 1, 2) has no area [" + flat + "]")
        fan = self.write("fan.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 0 -1 0\nf 1 2 3\nf 2 1 4\nf 1 2 5\n")
        self.refuses("solve", "mesh", fan, *energy, saying="edge 0-1 has 3 triangles")
        self.assertEqual(sorted(os.listdir(self.folder)), ["fan.obj", "flat.obj"])


TRIANGLE = """
[points]
a = { at = [0, 0], pinned = true }
b = [4, 0.3]
c = [2, 3]
[lines]
ab = ["a", "b"]
bc = ["b", "c"]
ca = ["c", "a"]
[[constraints]]
name = "level"
kind = "horizontal"
of = ["ab"]
[[constraints]]
name = "width"
kind = "length"
of = ["ab"]
value = 4
[[constraints]]
name = "left"
kind = "length"
of = ["ca"]
value = 3
[[constraints]]
name = "right"
kind = "length"
of = ["bc"]
value = %s
"""


class SketchTest(SolveCase):
    def test_solved_and_written(self):
        source, out = self.write("triangle.toml", TRIANGLE % 3), self.path("solved.toml")
        document = self.solve("sketch", source, "--out", out)
        self.assertTrue(document["satisfied"])
        self.assertEqual(document["degrees_of_freedom"], 0)
        self.assertEqual(document["redundant"], [])
        x, y = document["points"]["c"]["at"]
        self.assertAlmostEqual(x, 2, delta=1e-8)
        self.assertAlmostEqual(y, math.sqrt(5), delta=1e-8)
        for constraint in document["constraints"]:
            self.assertLess(constraint["residual"], 1e-8)
        again = self.solve("sketch", out)
        self.assertLess(again["initial_cost"], 1e-16)
        self.assertEqual([c["name"] for c in again["constraints"]], ["level", "width", "left", "right"])

    def test_drawing(self):
        out = self.path("triangle.svg")
        done = run("solve", "sketch", self.write("t.toml", TRIANGLE % 3), "--out", out, "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("fully constrained", done.stdout)
        with open(out) as file:
            svg = file.read()
        self.assertEqual(len(re.findall(r">4</text>", svg)), 1)
        self.assertEqual(len(re.findall(r">3</text>", svg)), 2)
        for number in re.findall(r' (?:x|y|cx|cy|r)="([^"%]+)"', svg):
            self.assertTrue(math.isfinite(float(number)))
        painted = self.path("triangle.png")
        done = run("solve", "sketch", self.write("t.toml", TRIANGLE % 3), "--out", painted, "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(painted, "rb") as file:
            self.assertTrue(file.read().startswith(b"\x89PNG"))

    def test_contradictions_are_named(self):
        source, out = self.write("flat.toml", TRIANGLE % 0.5), self.path("flat.svg")
        done = self.refuses("solve", "sketch", source, "--out", out, saying="constraints 'width', 'left' and 'right' contradict each other")
        self.assertIn(source, done.stderr)
        self.assertFalse(os.path.exists(out))
        document = self.solve("sketch", source, "--out", out, "--allow-conflicts")
        self.assertFalse(document["satisfied"])
        self.assertEqual(document["conflicts"], [["width", "left", "right"]])
        with open(out) as file:
            self.assertIn("contradictory", file.read())

    def test_redundancy_and_freedom(self):
        source = self.write("free.toml", TRIANGLE.split("[[constraints]]\nname = \"left\"")[0] +
                            "[[constraints]]\nname = 'again'\nkind = 'length'\nof = ['a', 'b']\nvalue = 4\n")
        document = self.solve("sketch", source)
        self.assertEqual(document["degrees_of_freedom"], 2)
        self.assertEqual([r["name"] for r in document["redundant"]], ["again"])
        self.assertIn("width", document["redundant"][0]["follows_from"])
        self.assertFalse(document["points"]["c"]["determined"])
        self.assertTrue(document["points"]["b"]["determined"])

    def test_examples(self):
        for name in os.listdir(SKETCHES):
            document = self.solve("sketch", os.path.join(SKETCHES, name))
            self.assertTrue(document["satisfied"], name)
            self.assertEqual(document["degrees_of_freedom"], 0, name)

    def test_bad_input(self):
        source = self.write("bad.toml", TRIANGLE % 3 + "[[constraints]]\nkind = 'glued'\nof = ['a', 'b']\n")
        self.refuses("solve", "sketch", source, saying="unknown kind 'glued' [" + source + ":30]")
        good = self.write("good.toml", TRIANGLE % 3)
        self.refuses("solve", "sketch", good, "--out", self.path("x.pdf"), saying=".svg or .png or .toml")
        self.refuses("solve", "sketch", good, "--robust", "huber:1", saying="--robust")
        self.refuses("solve", "sketch", self.path("absent.toml"), saying="absent.toml")


if __name__ == "__main__":
    unittest.main()
