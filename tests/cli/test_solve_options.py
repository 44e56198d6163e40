"""Every option of every solve command changes something or is refused."""
import json
import os
import re
import tempfile
import unittest

from program import ProgramTest, later, run
from test_solve import csv_table, ring2
from test_solve_mesh import TRIANGLE

MISRA = """NIST/ITL StRD
Dataset Name:  Line            (Line.dat)

Model:         Exponential Class
               2 Parameters (b1 and b2)

               y = b1*(1-exp[-b2*x])  +  e

          Starting values                  Certified Values
        Start 1     Start 2           Parameter     Standard Deviation
  b1 =   500         250           2.3894212918E+02  2.7070075241E+00
  b2 =     0.0001      0.0005      5.5015643181E-04  7.2668688436E-06

Residual Sum of Squares:                    1.2455138894E-01
Residual Standard Deviation:                1.0187876330E-01
Degrees of Freedom:                                12
Number of Observations:                            14

Data:   y               x
      10.07E0      77.6E0
      14.73E0     114.9E0
      17.94E0     141.1E0
      23.93E0     190.8E0
      29.61E0     239.9E0
      35.18E0     289.0E0
      40.02E0     332.8E0
      44.82E0     378.4E0
      50.76E0     434.8E0
      55.05E0     477.3E0
      61.01E0     536.8E0
      66.40E0     593.1E0
      75.47E0     689.1E0
      81.78E0     760.0E0
"""

# Options of all commands: what is given with the option in both runs, and the option with its value.
FEW = ["--max-iterations", "4"]
SHARED = {
    "--method": (FEW, ["--method", "dogleg"]),
    "--linear": (FEW, ["--linear", "pcg"]),
    "--robust": (FEW, ["--robust", "huber:1e-4"]),
    "--max-iterations": ([], ["--max-iterations", "1"]),
    "--function-tolerance": (FEW, ["--function-tolerance", "0.9999999"]),
    "--gradient-tolerance": (FEW, ["--gradient-tolerance", "1e30"]),
    "--parameter-tolerance": (FEW, ["--parameter-tolerance", "1e9"]),
    "--precision": (FEW, ["--precision", "f32"]),
    "--backend": (["--max-iterations", "1", "--device", "interp"], ["--backend", "cpu"]),
    "--threshold": (FEW, ["--threshold", "5"]),  # rejected with --device cpu
    "--max-linear-iterations": (["--max-iterations", "2", "--method", "lm", "--linear", "pcg"], ["--max-linear-iterations", "1"]),
    "--initial-damping": (["--max-iterations", "2", "--method", "lm"], ["--initial-damping", "10"]),
    "--damping": (["--max-iterations", "2", "--method", "lm"], ["--damping", "identity"]),
    "--batch-size": (["--max-iterations", "1"], ["--batch-size", "1"]),
    "--learning-rate": (["--max-iterations", "2", "--method", "adam"], ["--learning-rate", "0.001"]),
    "--momentum": (["--max-iterations", "3", "--method", "sgd", "--learning-rate", "1e-7"], ["--momentum", "0.5"]),
    "--weight-decay": (["--max-iterations", "2", "--method", "adamw"], ["--weight-decay", "0.5"]),
    "--require-convergence": (["--max-iterations", "1"], ["--require-convergence"]),
    "--checkpoint": (FEW, ["--checkpoint", "c.state"]),
    "--plot": (FEW, ["--plot", "p.png"]),
    "--time-limit": (FEW, ["--time-limit", "1e-9"]),
    # A start so damped that more iterations are needed than a report shows by itself.
    "--verbose": (["--max-iterations", "14", "--method", "lm", "--initial-damping", "1e9", "--function-tolerance", "0", "--parameter-tolerance", "0",
                   "--gradient-tolerance", "0"], ["--verbose"]),
}
PICTURE = ["--max-iterations", "2", "--picture", "m.png", "--width", "160"]
CLOTH = ["--energy", "cloth", "--fix", "0", "--max-iterations", "2"]
# Of one command; a third member replaces the command's usual input.
OWN = {
    "nist": {"--start": ([], ["--start", "2"])},
    "fit": {"--model": ([], ["--model", "a*exp(-b*t)"]), "--x": ([], ["--x", "t,error"]), "--y": ([], ["--y", "error"]),
            "--sigma": ([], ["--sigma", "error"]), "--initial": (FEW, ["--initial", "a=9"]), "--bounds": ([], ["--bounds", "c=2:9"]),
            "--constraint": ([], ["--constraint", "c=0.5"]), "--absolute-sigma": (["--sigma", "error"], ["--absolute-sigma"]),
            "--shared": (["{table}", "--model", "a*exp(-b*t) + c", "--y", "count"], ["{table}", "{second}", "--model", "a*exp(-b*t) + c", "--y", "count", "--shared", "b"]),
            "--correlations": ([], ["--correlations"]), "--profile": ([], ["--profile"]), "--bands": ([], ["--bands"]),
            "--at": ([], ["--at", "{table}"]), "--curve": (["--at", "{table}"], ["--curve", "u.csv"]),
            "--report": ([], ["--report", "o.html"]),
            "--out": ([], ["--out", "o.csv"]), "--picture": ([], ["--picture", "o.png"])},
    "g2o": {"--start": (FEW, ["--start", "chordal"]), "--out": (FEW, ["--out", "o.g2o"]),
            "--residuals": (FEW, ["--residuals", "r.csv"]), "--graduate": (FEW + ["--robust", "cauchy:1e-3"], ["--graduate", "2"]), "--parts": (["--max-iterations", "2", "--linear", "pcg"], ["--parts", "3"]),
            "--order": (FEW, ["--order", "poses:2-3,poses:4"]), "--inner": (FEW, ["--inner", "auto"])},
    "bal": {"--synthetic": ([], ["--synthetic", "5,200"]), "--seed": ([], ["--seed", "9"]), "--noise": ([], ["--noise", "2"]),
            "--disturbance": ([], ["--disturbance", "0.5"]), "--out": (FEW, ["--out", "o.txt"]), "--ply": (FEW, ["--ply", "o.ply"]),
            "--residuals": (FEW, ["--residuals", "r.csv"]), "--graduate": (FEW + ["--robust", "cauchy:0.1"], ["--graduate", "2"]), "--parts": (["--max-iterations", "2", "--linear", "pcg"], ["--parts", "3"]),
            "--order": (FEW, ["--order", "cameras"]), "--inner": (FEW, ["--inner", "points"])},
    "mesh": {"--energy": (FEW, ["--energy", "smooth-cotangent"]), "--fix": (FEW, ["--fix", "0"]), "--handle": (FEW, ["--handle", "0=9,9,9"]),
             "--handles": (FEW, ["--handles", "{handles}"]), "--attach": (FEW, ["--attach", "7"]), "--stiffness": (CLOTH, ["--stiffness", "3"]),
             "--bend": (CLOTH, ["--bend", "3"]), "--gravity": (CLOTH, ["--gravity", "3"]), "--rest-scale": (CLOTH, ["--rest-scale", "3"]),
             "--iterations": ([], ["--iterations", "1"]), "--seed": (["--energy", "partition-sampled", "--iterations", "45"], ["--seed", "5"]),
             "--out": (FEW, ["--out", "o.obj"]), "--picture": (FEW, ["--picture", "m.png"]), "--color": (PICTURE, ["--color", "displacement"]),
             "--view": (PICTURE, ["--view", "0,0,1"]), "--up": (PICTURE, ["--up", "y"]), "--width": (PICTURE, ["--width", "200"]),
             "--edges": (PICTURE, ["--edges"]), "--smooth": (PICTURE, ["--smooth"]), "--compare": (PICTURE, ["--compare"]),
             "--repair": (FEW, ["--repair"])},
    "sketch": {"--out": ([], ["--out", "o.svg"]), "--allow-conflicts": (["{flat}"], ["--allow-conflicts"])},
}
# Options that must be refused: they are of something else.
REFUSED = {
    "g2o": [["--method", "lbfgs", "--linear", "pcg"], ["--method", "gn", "--damping", "identity"], ["--method", "dogleg", "--initial-damping", "1"],
            ["--learning-rate", "0.1"], ["--momentum", "0.1"], ["--method", "adam", "--weight-decay", "0.1"],
            ["--linear", "cholesky", "--max-linear-iterations", "5"], ["--threshold", "5"], ["--backend", "auto"], ["--graduate", "2"], ["--graduate", "0.5", "--robust", "huber:1"],
            ["--linear", "pcg", "--order", "poses:3"], ["--order", "points"], ["--method", "adam", "--inner", "auto"]],
    "nist": [["--robust", "huber:1"]],
    "sketch": [["--robust", "huber:1"], ["--damping", "identity"], ["--method", "adam"]],
    "bal": [["b.txt", "--seed", "3"]],
    "mesh": [["--gravity", "2"], ["--stiffness", "2"], ["--rest-scale", "2"], ["--bend", "2"], ["--seed", "2"], ["--color", "curvature"],
             ["--view", "1,0,0"], ["--up", "x"], ["--width", "200"], ["--edges"], ["--smooth"], ["--compare"],
             ["--iterations", "3", "--max-iterations", "3"], ["--energy", "midpoint", "--robust", "huber:1"],
             ["--energy", "partition-sampled", "--iterations", "30", "--seed", "2"]],
}
# Given in all runs of a command: the start that a fit finds by itself is the minimum but for rounding.
AWAY = {"fit": ["--initial", "a=3,b=0.2,c=0"]}
# A problem of one block: its preconditioner is the whole matrix, and one iteration ends.
WITHOUT_EFFECT = {("nist", "--max-linear-iterations"), ("fit", "--max-linear-iterations")}
COMMON = {"--help", "--device", "--threads", "--no-fallback", "--numerics", "--json", "--quiet", "--check", "--config", "--input-memory", "--telemetry", "--trace", "--no-record",
          "--ranks", "--share-devices", "--wait-limit"}
ASKED = {"command", "inputs", "options"}  # members that say what was requested, not what came of it
TIMES = {"seconds", "solve_seconds", "stages", "kernels_compiled", "cache_hits", "peak_device_bytes"}


class Options(ProgramTest):
    def setUp(self):
        super().setUp()
        def write(name, text):
            with open(self.path(name), "w") as file:
                file.write(text)
            return self.path(name)
        self.places = {"{table}": csv_table(self.path("d.csv")), "{second}": csv_table(self.path("s.csv")), "{flat}": write("flat.toml", TRIANGLE % 0.5), "{handles}": write("handles.txt", "0 9 9 9\n")}
        ring = ring2().replace("EDGE_SE2 3 4 ", "EDGE_SE2 3 5 ")
        self.inputs = {"nist": [write("line.dat", MISRA)], "g2o": [write("ring.g2o", ring)], "bal": ["--synthetic", "4,160"],
                       "fit": [csv_table(self.path("d.csv")), "--model", "a*exp(-b*t) + c", "--y", "count"],
                       "mesh": ["icosphere:1", "--energy", "smooth"], "sketch": [write("t.toml", TRIANGLE % 3)]}
        self.known = {}

    def outcome(self, command, arguments):
        """Exit code, result without times, report's rows, and files."""
        arguments = [self.places.get(a, a) for a in arguments]
        base = self.inputs[command]
        if arguments and not arguments[0].startswith("-"):
            base = []
        if "--device" not in arguments:
            arguments = arguments + ["--device", "cpu"]
        key = (command, *base, *arguments)
        if key in self.known:
            return self.known[key]
        with tempfile.TemporaryDirectory() as folder:
            whole = [os.path.join(folder, a) if re.fullmatch(r"[a-z]\.[a-z0-9]+", a) else a for a in arguments]
            done = run("solve", command, *later([*base, *whole]), "--json")
            result = {}
            if done.stdout:
                document = json.loads(done.stdout)
                result = {k: v for k, v in document.items() if k not in TIMES and k not in ASKED}
                if "error" not in document:
                    result["trace"] = [{k: v for k, v in row.items() if k != "seconds"} for row in document["trace"]]
                    result["stages"] = [(s["stage"], s["device"]) for s in document["stages"]]
            rows = re.findall(r"^ +\d+ +[-\d.]+e", done.stderr, re.M)
            found = (done.returncode, json.dumps(result).replace(folder, ""), len(rows), self.contents(folder), done.stderr)
        self.known[key] = found
        return found

    def options_of(self, command):
        text = run("solve", command, "--help").stdout
        return set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", text, re.M)) - COMMON

    def walk(self, command):
        table, options = {**SHARED, **OWN[command]}, self.options_of(command)
        self.assertEqual(options - set(table), set(), "options that no one tests")
        for option, (beside, with_value) in table.items():
            if option not in options or (command, option) in WITHOUT_EFFECT:
                continue
            if option not in OWN[command]:
                beside = beside + AWAY.get(command, [])
            with self.subTest(command=command, option=option):
                changed = self.outcome(command, beside + with_value)
                if changed[0] == 2:
                    self.assertIn("lockstep: error:", changed[4])
                    continue
                plain = self.outcome(command, beside)
                self.assertIn(changed[0], (0, 1), changed[4])
                self.assertNotEqual(plain[:4], changed[:4], changed[4])
        for arguments in REFUSED.get(command, []):
            with self.subTest(command=command, refused=arguments):
                self.assertEqual(self.outcome(command, arguments)[0], 2)

    def test_nist(self):
        self.walk("nist")

    def test_fit(self):
        self.walk("fit")

    def test_g2o(self):
        self.walk("g2o")

    def test_bal(self):
        self.walk("bal")

    def test_mesh(self):
        self.walk("mesh")

    def test_sketch(self):
        self.walk("sketch")


if __name__ == "__main__":
    unittest.main()
