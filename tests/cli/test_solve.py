"""solve nist, g2o, bal, fit."""
import csv
import gzip
import json
import math
import os
import random
import struct
import unittest

from program import ProgramTest, run

DATA = os.environ.get("LOCKSTEP_DATA") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "shared", "data")
CONTRACT = {"initial_cost", "final_cost", "iterations", "linear_iterations", "termination", "gradient_max", "residuals", "variables", "kernels",
            "trace"}
ROW = {"iteration", "cost", "cost_change", "gradient_max", "step_norm", "damping", "gain", "accepted", "linear_iterations", "seconds"}
TERMINATIONS = {"function_tolerance", "gradient_tolerance", "parameter_tolerance", "max_iterations", "stopped", "no_descent", "failure"}


def ring2(count=12, noise=0.05, seed=3):
    """A path around a circle whose poses at the start are off."""
    rand = random.Random(seed)
    step = 2 * math.pi / count
    lines = []
    for k in range(count):
        angle = (k * step + math.pi) % (2 * math.pi) - math.pi
        off = [rand.gauss(0, noise) if k else 0 for _ in range(3)]
        lines.append("VERTEX_SE2 %d %.17g %.17g %.17g" % (k, math.sin(k * step) + off[0], 1 - math.cos(k * step) + off[1], angle + off[2]))
    for k in range(count):
        lines.append("EDGE_SE2 %d %d %.17g %.17g %.17g 100 0 0 100 0 400" % (k, (k + 1) % count, math.sin(step), 1 - math.cos(step), step))
    return "\n".join(lines) + "\n"


def csv_table(path, rows=40, header="t,count,error", seed=5):
    rand = random.Random(seed)
    with open(path, "w") as file:
        file.write(header + "\n")
        for k in range(rows):
            t = 0.1 * k
            file.write("%.17g,%.17g,%.17g\n" % (t, 5 * math.exp(-0.7 * t) + 1 + rand.gauss(0, 0.01), 0.01))
    return path


class SolveTest(ProgramTest):
    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def data(self, *names):
        path = os.path.join(DATA, "solve", *names)
        if not os.path.exists(path):
            self.skipTest(path + " is absent")
        return path

    def solve(self, *arguments, code=0, env=None):
        document = self.json_of("solve", *arguments, code=code, env=env)
        self.check_summary(document)
        self.assertLessEqual(CONTRACT, set(document))
        self.assertIn(document["termination"], TERMINATIONS)
        for row in document["trace"]:
            self.assertEqual(set(row), ROW)
        if document["trace"]:
            self.assertEqual(document["trace"][-1]["iteration"], document["iterations"])
        return document


class G2o(SolveTest):
    def test_doctor_names_gauges_pieces_and_duplicates(self):
        well = self.write("ring.g2o", ring2())
        done = run("solve", "doctor", well, "--device", "cpu", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["well"])
        loose = self.write("loose.g2o", "".join("VERTEX_SE2 %d %d 0 0\n" % (k, k) for k in range(4))
                           + "EDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\n" * 2 + "EDGE_SE2 2 3 1 0 0 1 0 0 1 0 1\n")
        document = json.loads(run("solve", "doctor", loose, "--device", "cpu", "--json").stdout)
        self.assertEqual((document["well"], document["piece_count"], document["free_directions"]), (False, 2, 3))
        self.assertTrue(document["pieces"][0]["gauge"])
        self.assertEqual(document["pieces"][0]["first"], {"set": "poses", "number": 2})
        self.assertEqual(document["duplicate_count"], 1)
        text = run("solve", "doctor", loose, "--device", "cpu").stdout
        self.assertIn("3 directions change no residual to first order, of all of its blocks (a gauge)", text)
        self.refuses("solve", "doctor", self.path("none.g2o"), saying="none.g2o")

    def test_doctor_names_the_line_of_a_wrong_edge(self):
        rand, step = random.Random(4), 2 * math.pi / 12
        lines = ring2(noise=0).splitlines()
        for k in range(12):  # a second round of edges, to the pose after the next
            lines.append("EDGE_SE2 %d %d %.17g %.17g %.17g 100 0 0 100 0 400"
                         % (k, (k + 2) % 12, math.sin(2 * step), 1 - math.cos(2 * step), 2 * step))
        for k in range(12, 36):
            words = lines[k].split()
            words[3] = "%.17g" % (float(words[3]) + rand.gauss(0, 0.1) + (3 if k == 29 else 0))
            lines[k] = " ".join(words)
        solved = self.path("solved.g2o")
        self.solve("g2o", self.write("wrong.g2o", "# poses\n" + "\n".join(lines) + "\n"), "--out", solved)
        with open(solved) as file:
            rewritten = file.read().splitlines()
        wrong = next(k + 1 for k, line in enumerate(rewritten) if line.startswith("EDGE_SE2 5 7 "))
        table = self.path("influence.csv")
        document = json.loads(run("solve", "doctor", solved, "--device", "cpu", "--json", "--influence", table).stdout)
        self.assertEqual((document["outlier_count"], document["outliers"][0]["line"]), (1, wrong))
        self.assertTrue(document["well"])
        self.assertEqual(document["influence_file"], table)
        with open(table) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 24)
        self.assertAlmostEqual(sum(3 * float(r["leverage"]) for r in rows), 33, places=6)
        self.assertEqual(max(rows, key=lambda r: float(r["studentized"]))["line"], str(wrong))
        text = run("solve", "doctor", solved, "--device", "cpu").stdout
        self.assertRegex(text, r"1 instance that the others contradict .*\n  g2o.se2, instance 17 \(line %d\): " % wrong)

    def test_doctor_names_the_lines_of_all_kinds(self):
        vertices = ["VERTEX_SE2 0 0 0 0", "VERTEX_SE2 1 1 0 0", "VERTEX_XY 2 3 1", "VERTEX_XY 3 4 1", "FIX 0"]
        kinds = ["EDGE_SE2 0 1 1 0 0 1 0 0 1 0 1", "EDGE_SE2_XY 1 2 2 1 1 0 1", "EDGE_BEARING_SE2_XY 0 2 0.32 9", "EDGE_POINTXY 2 3 1 0 1 0 1",
                 "EDGE_PRIOR_SE2 1 1 0 0 1 0 0 1 0 1"]
        path = self.write("kinds.g2o", "\n".join(vertices + [line for kind in kinds for line in ("# one", kind, kind)]) + "\n")
        document = json.loads(run("solve", "doctor", path, "--device", "cpu", "--json", "--named", "9").stdout)
        self.assertEqual(document["duplicate_count"], 5)
        found = {d["terms"]: (d["of"]["line"], d["line"]) for d in document["duplicates"]}
        self.assertEqual(found, {"g2o." + name: (7 + 3 * k, 8 + 3 * k) for k, name in enumerate(("se2", "se2_xy", "bearing", "xy", "se2_prior"))})

    def test_doctor_names_the_line_of_a_wrong_pixel(self):
        solved = self.path("scene.txt")
        self.solve("bal", "--synthetic", "20,600", "--out", solved)
        with open(solved) as file:
            lines = file.read().splitlines()
        points = [line.split()[1] for line in lines[1:601]]
        wrong = next(k for k in range(60, 600) if points.count(points[k]) > 3) + 1  # others see its point, too
        words = lines[wrong].split()
        lines[wrong] = " ".join([*words[:2], "%.17g" % (float(words[2]) + 40), words[3]])
        self.solve("bal", self.write("wrong.txt", "\n".join(lines) + "\n"), "--out", solved)
        with open(solved, "rb") as plain, gzip.open(self.path("scene.gz"), "wb") as packed:
            packed.write(plain.read())
        for path in (solved, self.path("scene.gz")):
            document = json.loads(run("solve", "doctor", path, "--device", "cpu", "--json").stdout)
            self.assertEqual(document["kind"], "bal")
            self.assertEqual((document["outliers"][0]["line"], document["outliers"][0]["instance"]), (wrong + 1, wrong - 1))

    def test_a_consistent_ring_closes(self):
        path = self.write("ring.g2o", ring2())
        document = self.solve("g2o", path, "--out", self.path("out.g2o"))
        self.assertGreater(document["initial_cost"], 1)
        self.assertLess(document["final_cost"], 1e-15)
        self.assertEqual((document["residuals"], document["variables"], document["vertices"], document["edges"]), (36, 33, 12, 12))
        self.assertGreaterEqual(document["kernels"], 1)
        poses = {}
        with open(self.path("out.g2o")) as file:
            for line in file:
                words = line.split()
                if words[0] == "VERTEX_SE2":
                    poses[int(words[1])] = [float(w) for w in words[2:]]
        for k in range(12):
            self.assertAlmostEqual(poses[k][0], math.sin(k * math.pi / 6), delta=1e-7)
            self.assertAlmostEqual(poses[k][1], 1 - math.cos(k * math.pi / 6), delta=1e-7)
        again = self.solve("g2o", self.path("out.g2o"))
        self.assertLess(again["initial_cost"], 1e-15)

    def test_methods_and_linear_solvers_agree(self):
        path = self.write("ring.g2o", ring2().replace("EDGE_SE2 3 4 ", "EDGE_SE2 3 5 "))
        want = self.solve("g2o", path)["final_cost"]
        self.assertGreater(want, 1e-3)
        for more in (("--method", "dogleg"), ("--method", "gn"), ("--method", "lbfgs", "--max-iterations", "2000"), ("--linear", "dense"),
                     ("--linear", "dense-qr"), ("--linear", "cholesky"), ("--linear", "pcg"), ("--device", "interp")):
            document = self.solve("g2o", path, *more)
            self.assertAlmostEqual(document["final_cost"], want, delta=1e-6 * want, msg=str(more))

    def test_fixed_vertices_stay(self):
        path = self.write("ring.g2o", ring2() + "FIX 3 5\n")
        self.solve("g2o", path, "--out", self.path("out.g2o"))
        def poses(name, vertex):
            with open(name) as file:
                return [[float(w) for w in line.split()[2:]] for line in file if line.startswith("VERTEX_SE2 %d " % vertex)]
        for vertex in (3, 5):
            self.assertEqual(poses(path, vertex), poses(self.path("out.g2o"), vertex))
        self.assertNotEqual(poses(path, 1), poses(self.path("out.g2o"), 1))

    def test_a_tree_of_edges_replaces_lost_poses(self):
        lost = "\n".join("VERTEX_SE2 %s 5 5 2" % line.split()[1] if line.startswith("VERTEX_SE2") and not line.startswith("VERTEX_SE2 0 ") else line
                         for line in ring2().splitlines())
        path = self.write("lost.g2o", lost + "\n")
        document = self.solve("g2o", path, "--start", "tree")
        self.assertLess(document["initial_cost"], 1e-20)
        self.assertGreater(self.solve("g2o", path, "--max-iterations", "0")["initial_cost"], 100)

    def test_gates_and_limits(self):
        path = self.write("ring.g2o", ring2())
        document = self.solve("g2o", path, "--max-iterations", "1", "--require-convergence", code=1)
        self.assertEqual(document["termination"], "max_iterations")
        self.assertEqual(document["iterations"], 1)
        self.assertEqual(self.solve("g2o", path, "--max-iterations", "1")["iterations"], 1)
        self.solve("g2o", path, "--require-convergence")
        zero = self.solve("g2o", path, "--max-iterations", "0")
        self.assertEqual(zero["final_cost"], zero["initial_cost"])

    def test_robust_loss_bounds_an_outlier(self):
        path = self.write("ring.g2o", ring2().replace("EDGE_SE2 3 4 ", "EDGE_SE2 3 9 "))
        plain = self.solve("g2o", path)["final_cost"]
        for loss in ("huber:1", "cauchy:1", "tukey:5", "geman_mcclure:1", "arctan:1"):
            self.assertLess(self.solve("g2o", path, "--robust", loss)["final_cost"], plain, loss)

    def test_plot_checkpoint_telemetry_and_report(self):
        path = self.write("ring.g2o", ring2())
        done = run("solve", "g2o", path, "--plot", self.path("p.png"), "--telemetry", self.path("t.jsonl"), "--trace", self.path("t.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("12 vertices, 12 edges", done.stdout)
        self.assertIn("cost", done.stderr)
        with open(self.path("p.png"), "rb") as file:
            header = file.read(24)
        self.assertEqual(header[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", header[16:24]), (960, 720))
        with open(self.path("t.jsonl")) as file:
            events = [json.loads(line) for line in file]
        self.assertGreater(sum(e.get("event") == "solve.iteration" for e in events), 0)
        with open(self.path("t.json")) as file:
            json.load(file)
        whole = self.solve("g2o", path)
        self.solve("g2o", path, "--max-iterations", "2", "--checkpoint", self.path("c.state"))
        self.assertTrue(os.path.exists(self.path("c.state")))
        rest = self.solve("g2o", path, "--checkpoint", self.path("c.state"))
        self.assertAlmostEqual(rest["final_cost"], whole["final_cost"], delta=1e-12)
        other = self.write("other.g2o", ring2().replace("EDGE_SE2 3 4 ", "EDGE_SE2 3 5 "))
        self.refuses("solve", "g2o", other, "--checkpoint", self.path("c.state"), "--quiet", saying="c.state")

    def test_bad_files(self):
        good = ring2()
        for text, saying in ((good + "VERTEX_SE2 3 0 0 0\n", "bad.g2o:25"), (good + "EDGE_SE2 0 77 1 0 0 1 0 0 1 0 1\n", "vertex 77"),
                             (good + "EDGE_SE2 0 2 1 0 0 1 2 0 1 0 1\n", "bad.g2o:25"), (good + "EDGE_SE2 0 2 nan 0 0 1 0 0 1 0 1\n", "'nan'"),
                             (good + "WHEEL 1\n", "'WHEEL'"), ("", "no vertices"), ("VERTEX_SE3:QUAT 0 0 0 0 0 0 0 0\n", "bad.g2o:1"),
                             (good + "FIX 99\n", "bad.g2o:25")):
            path = self.write("bad.g2o", text)
            with open(self.path("out.g2o"), "w") as file:
                file.write("before")
            self.refuses("solve", "g2o", path, "--out", self.path("out.g2o"), "--quiet", saying=saying)
            with open(self.path("out.g2o")) as file:
                self.assertEqual(file.read(), "before")
        self.refuses("solve", "g2o", self.path("absent.g2o"), saying="absent.g2o")
        self.refuses("solve", "g2o", saying="FILE")

    def test_bad_options(self):
        path = self.write("ring.g2o", ring2())
        for option, values in (("--method", ("newtonian",)), ("--linear", ("magic",)), ("--precision", ("f16",)),
                               ("--robust", ("hubert", "huber:0", "huber:-1", "huber:nan", "l1:2", "huber:1x")), ("--max-iterations", ("-1", "1.5", "x")),
                               ("--function-tolerance", ("-1", "nan", "x")), ("--initial-damping", ("0", "inf"))):
            for value in values:
                self.refuses("solve", "g2o", path, option + "=" + value, saying=option)
        self.refuses("solve", saying="no command")
        self.refuses("solve", "g2o", path, "--linear", "schur-pcg", "--quiet", saying="schur")

    def test_faults(self):
        path = self.write("ring.g2o", ring2())
        done = run("solve", "g2o", path, "--device", "interp", "--no-fallback", env={"LOCKSTEP_FAULT": "solve.evaluate:launch"})
        self.assertEqual(done.returncode, 3, done.stderr)
        if not any(d["kind"] == "webgpu" and d["available"] for d in self.json_of("devices")["devices"]):
            self.skipTest("no WebGPU adapter")
        for kind in ("allocation", "compile", "launch", "device_lost"):
            document = self.solve("g2o", path, "--device", "webgpu", "--precision", "f32", env={"LOCKSTEP_FAULT": "solve.evaluate:" + kind})
            self.assertLess(document["final_cost"], 1e-6)
            self.assertEqual(document["fallbacks"].get("solve.evaluate"), 1)

    def test_public_graph(self):
        document = self.solve("g2o", self.data("g2o", "tinyGrid3D.g2o"), "--require-convergence")
        self.assertAlmostEqual(document["final_cost"], 3.363941, delta=4e-6)
        self.assertEqual((document["dimension"], document["vertices"], document["edges"]), (3, 9, 11))


class Bal(SolveTest):
    SCENE = ("--synthetic", "12,1200")

    def test_a_synthetic_scene_is_solved_to_its_noise(self):
        document = self.solve("bal", *self.SCENE, "--out", self.path("o.txt"), "--ply", self.path("o.ply"), "--require-convergence")
        self.assertEqual((document["cameras"], document["observations"], document["residuals"]), (12, 1200, 2400))
        self.assertEqual(document["variables"], 12 * 9 + 3 * document["points"])
        freedom = 2400 - document["variables"] + 7
        self.assertAlmostEqual(document["final_cost"], 0.125 * freedom, delta=0.125 * freedom * 5 * math.sqrt(2 / freedom))
        self.assertLess(document["rms_px"], 0.8)
        with open(self.path("o.ply"), "rb") as file:
            self.assertIn(b"element vertex %d\n" % (12 + document["points"]), file.read())
        again = self.solve("bal", self.path("o.txt"))
        self.assertAlmostEqual(again["initial_cost"], document["final_cost"], delta=1e-9 * document["final_cost"])

    def test_linear_solvers_agree(self):
        costs = {linear: self.solve("bal", *self.SCENE, "--linear", linear)["final_cost"] for linear in ("auto", "schur-pcg", "cholesky", "dense")}
        for linear, cost in costs.items():
            self.assertAlmostEqual(cost, costs["auto"], delta=1e-6 * cost, msg=linear)

    def test_seeds(self):
        first = [self.solve("bal", *self.SCENE, "--max-iterations", "0", "--seed", seed)["initial_cost"] for seed in ("1", "1", "2")]
        self.assertEqual(first[0], first[1])
        self.assertNotEqual(first[0], first[2])
        self.assertLess(self.solve("bal", *self.SCENE, "--noise", "0", "--disturbance", "0", "--max-iterations", "0")["initial_cost"], 1e-9)

    def test_bad_input(self):
        self.refuses("solve", "bal", saying="no input")
        self.refuses("solve", "bal", "x.txt", *self.SCENE, saying="FILE with --synthetic")
        for scene in ("12", "12,", "a,b", "12,10", "2,1000", "12.5,1000", "1,2,3"):
            self.refuses("solve", "bal", "--synthetic", scene, "--quiet", saying="synthetic")
        self.refuses("solve", "bal", "--synthetic", "1000,100000000000000", "--quiet", saying="memory [--synthetic]")
        for text, saying in (("1 1 1\n0 5 1 1\n", "b.txt:1"), ("1 1 1\n0 5 1 1\n" + "1\n" * 12, "b.txt:2"), ("", "b.txt:1"),
                             ("1 2 1\n0 1 1 1\n" + "1\n" * 15, "point 0"), ("1 1 1\n0 0 1 1\n" + "1\n" * 11, "b.txt"),
                             ("1 1 1\n0 0 1 inf\n" + "1\n" * 12, "'inf'")):
            self.refuses("solve", "bal", self.write("b.txt", text), "--quiet", saying=saying)

    def test_a_start_that_is_not_finite(self):
        # The point is in the plane of the camera's centre.
        text = "1 1 1\n0 0 1 1\n0\n0\n0\n0\n0\n0\n500\n0\n0\n1\n1\n0\n"
        self.refuses("solve", "bal", self.write("b.txt", text), "--quiet", saying="finite")


def landmarks2(off=0.2):
    """Four poses on a line that see three landmarks; the measurements are exact."""
    poses, points = [(k, 0.5 * k, 0.3 * k) for k in range(4)], [(1, 3), (2, -2), (5, 1)]
    lines = ["VERTEX_SE2 %d %.17g %.17g %.17g" % (k, x + (off if k else 0), y, a) for k, (x, y, a) in enumerate(poses)]
    lines += ["VERTEX_XY %d %.17g %.17g" % (10 + k, x + off, y - off) for k, (x, y) in enumerate(points)]
    for k, (x, y, a) in enumerate(poses):
        for m, (px, py) in enumerate(points):
            dx, dy = px - x, py - y
            lines.append("EDGE_SE2_XY %d %d %.17g %.17g 2 0.1 3" %
                         (k, 10 + m, math.cos(a) * dx + math.sin(a) * dy, math.cos(a) * dy - math.sin(a) * dx))
    return "\n".join(lines) + "\n"


class Landmarks(SolveTest):
    def test_poses_and_landmarks_are_found_and_written(self):
        path = self.write("marks.g2o", landmarks2())
        document = self.solve("g2o", path, "--out", self.path("out.g2o"))
        self.assertLess(document["final_cost"], 1e-15)
        self.assertEqual((document["vertices"], document["landmarks"], document["edges"], document["variables"]), (7, 3, 12, 15))
        with open(self.path("out.g2o")) as file:
            found = {w[1]: [float(v) for v in w[2:]] for w in map(str.split, file) if w[0] == "VERTEX_XY"}
        for k, point in enumerate([(1, 3), (2, -2), (5, 1)]):
            for got, wanted in zip(found[str(10 + k)], point):
                self.assertAlmostEqual(got, wanted, delta=1e-6)
        again = self.solve("g2o", self.path("out.g2o"))
        self.assertLess(again["initial_cost"], 1e-12)

    def test_bad_lines_are_named(self):
        for line, saying in (("EDGE_SE2_XY 10 0 1 1 1 0 1", "vertex 10 is a landmark"), ("EDGE_SE2_XY 0 77 1 1 1 0 1", "vertex 77 is not in the file"),
                             ("EDGE_SE2_XY 0 10 1 1 1 5 1", "information matrix"), ("VERTEX_XY 10 0 0", "is repeated")):
            self.refuses("solve", "g2o", self.write("bad.g2o", landmarks2() + line + "\n"), "--quiet", saying=saying)
        self.refuses("solve", "g2o", "", saying="an empty text [FILE]")


class Batches(SolveTest):
    def test_batches_give_the_same_and_telemetry_tells_of_them(self):
        path = self.write("ring.g2o", ring2(40))
        whole = self.solve("g2o", path, "--linear", "pcg", "--device", "cpu")
        split = self.solve("g2o", path, "--linear", "pcg", "--device", "cpu", "--batch-size", "7", "--telemetry", self.path("t.jsonl"))
        self.assertEqual([row["cost"] for row in whole["trace"]], [row["cost"] for row in split["trace"]])
        self.assertEqual([b["instances"] for b in split["batches"]], [7] * 5 + [5])
        self.assertEqual(split["kernels"], 1)
        with open(self.path("t.jsonl")) as file:
            rows = [json.loads(line) for line in file]
        batches = [row for row in rows if row.get("event") == "solve.batch"]
        kernels = [row for row in rows if row.get("event") == "solve.kernel"]
        self.assertEqual(len(batches), 6)
        for row in batches:
            self.assertEqual(row["residuals"], 3)
            self.assertLessEqual(row["tables_begin_s"], row["tables_end_s"])
            self.assertLessEqual(row["tables_end_s"], row["upload_begin_s"])
            self.assertLessEqual(row["upload_end_s"], row["first_launch_s"])
        self.assertEqual(len(kernels), split["kernels_compiled"] + split["cache_hits"])
        for row in kernels:
            self.assertLessEqual(row["begin_s"], row["end_s"])
            self.assertIsNone(row["occupancy"])  # of CUDA only
            self.assertGreaterEqual(row["group_lanes"], 4)
            self.assertGreaterEqual(row["groups_at_once"], 1)
        (transfers,) = [row for row in rows if row.get("event") == "solve.transfers"]
        self.assertGreater(transfers["bytes_to_device"], 0)
        self.assertGreater(transfers["bytes_from_device"], 0)

    def test_identity_damping(self):
        path = self.write("ring.g2o", ring2())
        self.assertLess(self.solve("g2o", path, "--damping", "identity")["final_cost"], 1e-15)
        self.refuses("solve", "g2o", path, "--damping", "other", saying="--damping")
        self.refuses("solve", "g2o", path, "--batch-size", "-1", saying="--batch-size")


# Age at the first word (months) and Gesell adaptive score of 21 children (Mickey, Dunn and Clark 1967).
GESELL = [(15, 95), (26, 71), (10, 83), (9, 91), (15, 102), (20, 87), (18, 93), (11, 100), (8, 104), (20, 94), (7, 113), (9, 96),
          (10, 83), (11, 84), (11, 102), (10, 100), (12, 105), (42, 57), (17, 121), (11, 86), (10, 100)]


class Fit(SolveTest):
    MODEL = ("--model", "a*exp(-b*t) + c", "--y", "count")

    def doctor(self, table, *arguments):
        done = run("solve", "doctor", table, "--device", "cpu", *arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_doctor_finds_the_child_off_the_line_and_the_one_that_holds_it(self):
        table = self.write("gesell.csv", "# months, score\nage,score\n" + "".join("%d,%d\n" % row for row in GESELL))
        document = self.doctor(table, "--model", "a + b*age", "--y", "score", "--influence", self.path("i.csv"))
        self.assertEqual(document["kind"], "fit")
        self.assertAlmostEqual(document["fit"]["parameters"]["b"], -1.12698891, places=7)
        (outlier,), (lever,) = document["outliers"], document["levers"]
        # statsmodels 0.15, OLSInfluence: hat_matrix_diag, resid_studentized_external, cooks_distance, outlier_test.
        for found, row, expected in ((outlier, 18, (0.05305029786592263, 3.606979721304393, 0.22328827363117973)),
                                     (lever, 17, (0.6516099841640903, 0.8451108615375454, 0.6781120285758366))):
            self.assertEqual((found["terms"], found["instance"], found["line"]), ("gesell.csv", row, row + 3))
            for name, value in zip(("leverage", "studentized", "cook"), expected):
                self.assertAlmostEqual(found[name], value, delta=1e-6 * value)
        self.assertAlmostEqual(21 * outlier["probability"], 0.0423288058, places=7)
        with open(self.path("i.csv")) as file:
            self.assertEqual([row["line"] for row in csv.DictReader(file)], [str(k + 3) for k in range(21)])
        text = run("solve", "doctor", table, "--model", "a + b*age", "--y", "score", "--device", "cpu").stdout
        self.assertIn("gesell.csv, instance 18 (line 21): 3.61 standard deviations, leverage 0.0531, Cook's distance 0.223", text)

    def test_doctor_names_parameters(self):
        table = csv_table(self.path("d.csv"))
        document = self.doctor(table, "--model", "a*exp(-b*(t - s)) + c", "--y", "count", "--bounds", "c=2:9")
        self.assertEqual(sorted(document["fit"]["undetermined"]), ["a", "s"])
        self.assertEqual(document["fit"]["at_bound"], ["c"])
        self.assertFalse(document["well"])
        document = self.doctor(table, "--model", "a*exp(-b*t) + c + d*1e-9*t", "--y", "count")
        self.assertEqual([(s["set"], s["coordinate"]) for s in document["badly_scaled"]], [("d", 0)])
        document = self.doctor(table, "--model", "a*exp(-b*t) + c*exp(-0.99*b*t)", "--y", "count", "--initial", "b=0.5")
        self.assertIn(("a", "c"), [(p["first"], p["second"]) for p in document["fit"]["correlated"]])
        for arguments, saying in ((["--y", "count"], "--model"), (["--model", "a*t"], "--y"), ([], "--model")):
            self.refuses("solve", "doctor", table, *arguments, "--device", "cpu", saying=saying)

    def test_parameters_and_errors(self):
        table = csv_table(self.path("d.csv"))
        document = self.solve("fit", table, *self.MODEL, "--sigma", "error", "--out", self.path("f.csv"), "--picture", self.path("f.png"))
        for name, value, tolerance in (("a", 5, 0.05), ("b", 0.7, 0.02), ("c", 1, 0.03)):
            self.assertAlmostEqual(document["parameters"][name], value, delta=tolerance)
            self.assertGreater(document["standard_errors"][name], 0)
            self.assertLess(document["standard_errors"][name], tolerance)
        self.assertEqual(document["degrees_of_freedom"], 37)
        self.assertGreater(document["r_squared"], 0.999)
        with open(self.path("f.csv")) as file:
            lines = file.read().split()
        self.assertEqual(lines[0], "t,count,error,fitted,residual")
        self.assertEqual(len(lines), 41)
        squares = sum(float(line.split(",")[4]) ** 2 for line in lines[1:])
        self.assertAlmostEqual(squares / 0.01 ** 2, document["residual_sum_of_squares"], delta=1e-6 * document["residual_sum_of_squares"])
        self.assertGreater(os.path.getsize(self.path("f.png")), 1000)

    def test_columns_of_text_that_the_fit_does_not_use(self):
        with open(csv_table(self.path("d.csv"))) as file:
            header, *rows = file.read().split()
        named = self.write("named.csv", f"station,{header},remark\n" + "".join(f"north,{row},{'' if k else 'rain'}\n" for k, row in enumerate(rows)))
        document = self.solve("fit", named, *self.MODEL, "--sigma", "error", "--out", self.path("f.csv"), "--at", named, "--curve", self.path("c.csv"))
        plain = self.solve("fit", self.path("d.csv"), *self.MODEL, "--sigma", "error")
        self.assertEqual(document["parameters"], plain["parameters"])
        for name, columns in (("f.csv", "fitted,residual"), ("c.csv", "fitted")):
            with open(self.path(name)) as file:
                self.assertEqual(file.readline().strip(), f"{header},{columns}")
        for column in ("station", "remark"):
            self.refuses("solve", "fit", named, "--model", "a*t", "--y", column, "--quiet", saying=f"column {column} is")

    def test_statements_about_the_fit(self):
        table = csv_table(self.path("d.csv"))
        document = self.solve("fit", table, *self.MODEL, "--sigma", "error", "--absolute-sigma", "--correlations", "--profile", "--bands",
                              "--out", self.path("f.csv"), "--picture", self.path("f.svg"), "--report", self.path("f.html"))
        plain = self.solve("fit", table, *self.MODEL, "--sigma", "error")
        self.assertFalse({"correlations", "profile", "bands", "constraints", "rows_of_sets"} & set(plain))
        scale = (plain["chi_squared"] / 37) ** 0.5
        for k, name in enumerate(("a", "b", "c")):
            error = document["standard_errors"][name]
            self.assertAlmostEqual(plain["standard_errors"][name], scale * error, delta=1e-9 * error)
            self.assertEqual(document["correlations"][4 * k], 1)
            ends = document["profile"]["parameters"][name]
            self.assertLess(ends["lower"][2], ends["lower"][0])
            self.assertAlmostEqual(ends["upper"][0] - ends["lower"][0], 2 * error, delta=0.02 * error)
        with open(self.path("f.csv")) as file:
            lines = file.read().split()
        self.assertEqual(lines[0], "t,count,error,fitted,residual,confidence,prediction")
        self.assertEqual([float(v) for v in lines[7].split(",")[5:]], [document["bands"][k][6] for k in ("confidence", "prediction")])
        with open(self.path("f.html")) as file:
            page = file.read()
        for text in ("<svg", "Profile likelihood", "Correlations", "chi squared", "normality of residuals", "measurements 95 %"):
            self.assertIn(text, page)
        text = run("solve", "fit", table, *self.MODEL, "--correlations", "--profile", "--quiet").stdout
        for part in ("correlation of ", "99.73 % within", "runs of residuals of one sign", "information criteria"):
            self.assertIn(part, text)

    def test_curve_at_points(self):
        table = csv_table(self.path("d.csv"))
        points = self.write("points.csv", "t\n0\n0.5\n20\n")
        document = self.solve("fit", table, *self.MODEL, "--bands", "--at", points, "--curve", self.path("curve.csv"))
        p = document["parameters"]
        self.assertEqual(document["at"]["rows"], 3)
        for t, found in zip((0, 0.5, 20), document["at"]["fitted"]):
            self.assertAlmostEqual(found, p["a"] * math.exp(-p["b"] * t) + p["c"], places=12)
        # Far out only c is left.
        self.assertAlmostEqual(document["at"]["confidence"][2], 2.0262 * document["standard_errors"]["c"], delta=2e-4 * document["standard_errors"]["c"])
        with open(self.path("curve.csv")) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(r["t"]) for r in rows], [0, 0.5, 20])
        self.assertEqual([float(r["prediction"]) for r in rows], document["at"]["prediction"])
        self.refuses("solve", "fit", table, *self.MODEL, "--at", self.write("bad.csv", "time\n1\n"), saying="no column 't' [at]")
        self.refuses("solve", "fit", table, *self.MODEL, "--curve", self.path("c.csv"), saying="--at")

    def test_data_sets_and_constraints(self):
        csv_table(self.path("d.csv")), csv_table(self.path("e.csv"))
        both = ("fit", self.path("d.csv"), self.path("e.csv"), *self.MODEL)
        document = self.solve(*both, "--shared", "b,c", "--constraint", "a_2=2*a_1 - max(a_1,0)", "--out", self.path("f.csv"), "--picture", self.path("f.svg"))
        one = self.solve("fit", self.path("d.csv"), *self.MODEL)
        self.assertEqual(list(document["parameters"]), ["a_1", "a_2", "b", "c"])
        self.assertEqual((document["rows"], document["rows_of_sets"], document["degrees_of_freedom"]), (80, [40, 40], 77))
        self.assertEqual(document["constraints"], {"a_2": "2*a_1 - max(a_1,0)"})
        for name, other in (("a_1", "a"), ("a_2", "a"), ("b", "b"), ("c", "c")):
            self.assertAlmostEqual(document["parameters"][name], one["parameters"][other], delta=1e-6)
        with open(self.path("f.csv")) as file:
            lines = file.read().split()
        self.assertEqual(lines[0], "data_set,t,count,error,fitted,residual")
        with open(self.path("f.csv.run.json")) as file:
            inputs = json.load(file)["inputs"]
        self.assertEqual([os.path.basename(entry["path"]) for entry in inputs], ["d.csv", "e.csv"])
        self.assertEqual([line[0] for line in lines[1:]], ["1"] * 40 + ["2"] * 40)
        for more, saying in ((("--shared", "z"), "z"), (("--constraint", "b"), "--constraint"), (("--constraint", "b=a=2"), "constraint of b"),
                             (("--constraint", "a=b,b=a"), "circle"), (("--absolute-sigma",), "--sigma"),
                             (("--profile", "--robust", "huber:1"), "--profile")):
            self.refuses("solve", *both, *more, "--quiet", saying=saying)
        self.refuses("solve", "fit", self.path("d.csv"), *self.MODEL, "--shared", "b", "--quiet", saying="--shared")

    def test_names_in_quotes_stay_readable(self):
        table = self.write("q.csv", 't,"count, in ""k"" "\n0,1\n1,3\n2,5\n3,7.1\n')
        more = ("--model", "a + b*t", "--y", 'count, in "k" ')
        first = self.solve("fit", table, *more, "--out", self.path("o.csv"))
        again = self.solve("fit", self.path("o.csv"), *more)
        self.assertEqual(again["parameters"], first["parameters"])
        self.assertAlmostEqual(first["parameters"]["b"], 2.03, delta=1e-6)

    def test_starts_and_bounds(self):
        table = csv_table(self.path("d.csv"))
        document = self.solve("fit", table, *self.MODEL, "--initial", "a=1,b=0.1,c=2", "--bounds", "c=1.2:inf")
        self.assertEqual(document["initial"], {"a": 1, "b": 0.1, "c": 2})
        self.assertAlmostEqual(document["parameters"]["c"], 1.2, delta=1e-9)

    def test_bad_input(self):
        table = csv_table(self.path("d.csv"))
        for more, saying in ((("--model", "a*exp(", "--y", "count"), "model"), (("--model", "a*t", "--y", "nothing"), "nothing"),
                             (("--model", "2*t", "--y", "count"), "no parameters"), ((*self.MODEL, "--initial", "z=1"), "z"),
                             ((*self.MODEL, "--initial", "a"), "--initial"), ((*self.MODEL, "--initial", "a=1,a=2"), "--initial"),
                             ((*self.MODEL, "--bounds", "a=3:1"), "--bounds"), ((*self.MODEL, "--bounds", "a=3"), "--bounds"), ((*self.MODEL, "--initial", "c=0", "--bounds", "c=1:2"), "c starts at 0"),
                             (("--model", "a*t"), "--y")):
            self.refuses("solve", "fit", table, *more, "--quiet", saying=saying)
        for row in (1, 2, 5):  # a standard deviation that is none
            rows = ["%d,%d,%s" % (t, t, "0" if t == row else "0.1") for t in range(1, 6)]
            self.refuses("solve", "fit", self.write("s.csv", "t,count,error\n" + "\n".join(rows) + "\n"), *self.MODEL, "--sigma", "error", "--quiet",
                         saying="column error, row %d" % row)
        self.refuses("solve", "fit", self.write("e.csv", "t,count\n1,x\n"), *self.MODEL, "--quiet", saying="e.csv:2")
        self.refuses("solve", "fit", self.write("e.csv", "1,2\n3,4\n"), *self.MODEL, "--quiet", saying="no header")


class Nist(SolveTest):
    def test_certified_digits(self):
        for name in ("Misra1a", "MGH09"):
            for start in ("1", "2"):
                document = self.solve("nist", self.data("nist", name + ".dat"), "--start", start)
                self.assertGreaterEqual(document["lre"], 6, name)
                self.assertEqual(len(document["parameters"]), len(document["certified"]))
                self.assertGreater(document["residual_sum_of_squares"], 0)

    def test_text_names_every_parameter(self):
        file = self.data("nist", "MGH09.dat")
        document = self.solve("nist", file)
        said = [row.split() for row in run("solve", "nist", file, "--quiet").stdout.splitlines() if " certified " in row and row.startswith("  ")]
        rows = {row[0]: (float(row[1]), float(row[3])) for row in said if len(row) == 4}
        self.assertEqual(sorted(rows), ["b1", "b2", "b3", "b4"])
        values = lambda of: [of[name] for name in sorted(of)] if isinstance(of, dict) else of
        for (found, certified), a, b in zip((rows[name] for name in sorted(rows)), values(document["parameters"]), values(document["certified"])):
            self.assertAlmostEqual(found, a, delta=1e-12 * abs(a))
            self.assertAlmostEqual(certified, b, delta=1e-9 * abs(b))

    def test_refusals(self):
        self.refuses("solve", "nist", self.path("absent.dat"), saying="absent.dat")
        self.refuses("solve", "nist", self.write("n.dat", "nothing of that kind\n"), "--quiet", saying="n.dat")
        self.refuses("solve", "nist", self.data("nist", "Misra1a.dat"), "--start", "3", saying="--start")


class Help(SolveTest):
    def test_every_command_has_an_example(self):
        for command in ("nist", "g2o", "bal", "fit"):
            text = run("solve", command, "--help").stdout
            self.assertIn("Example:\n  lockstep solve " + command, text)
            for option in ("--method", "--linear", "--robust", "--max-iterations", "--function-tolerance", "--gradient-tolerance",
                           "--parameter-tolerance", "--precision", "--require-convergence", "--checkpoint", "--plot", "--device"):
                self.assertIn(option, text)
        self.assertIn("g2o", run("completion", "bash").stdout)


if __name__ == "__main__":
    unittest.main()
