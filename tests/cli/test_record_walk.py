"""Every command that writes results: its record, the run again, and what the files say of the run."""
import json
import os
import re
import shutil
import struct
import unittest
import zipfile

from program import ProgramTest, npy, run
from test_record import digest
from test_solve import csv_table, ring2
from test_solve_options import MISRA

TOML = '''[points]
o = { at = [0, 0], pinned = true }
p = [4, 0]
q = [1, 3]
[lines]
a = ["o", "p"]
b = ["p", "q"]
[[constraints]]
kind = "horizontal"
of = ["a"]
[[constraints]]
kind = "length"
of = ["a"]
value = 5
[[constraints]]
kind = "length"
of = ["b"]
value = 4
'''
STAGE = {"year": 2015, "month": 6, "day": 21, "hour": 12, "minute": 0, "second": 0, "utc_offset": 1, "lat": 57, "lon": 12, "elevation": 0}
DSM = ("--dsm", "{in}/dsm.npy", "--pixel-size", "1")
CITY = (*DSM, "--weather", "{in}/weather.csv", "--latitude", "57", "--longitude", "12", "--utc-offset", "1", "--patches", "145")
PDE = ("--spacing", "0.1,0.1,0.1", "--dt", "0.1")
# Files that each command writes, by the options that name them, and the rest. The first file, or the folder, has the record.
COMMANDS = {
    "urban sample": ({"out": ""}, "--size", "16"),
    "urban walls": ({"out": ""}, *DSM),
    "urban shadows": ({"out": ""}, *DSM, "--at", "2015-06-21T12:00", "--utc-offset", "1", "--latitude", "57", "--longitude", "12"),
    "urban svf": ({"out": ""}, *DSM, "--patches", "145", "--save-patches"),
    "urban umep": ({"out": ""}, "{in}/svf"),
    "urban run": ({"out": ""}, *CITY, "--outputs", "tmrt,utci", "--format", "nc,tif,npy", "--poi", "{in}/poi.csv", "--svf", "{in}/svf"),
    "urban validate": ({"out": ""}, *CITY, "--measured", "{in}/measured.csv", "--poi", "{in}/poi.csv"),
    "urban sun": ({"out": ""}, *DSM, "--rule", "en17037", "--facades", "--minutes", "60", "--latitude", "57", "--longitude", "12"),
    "urban plant": ({"out": ""}, *CITY, "--trees", "1", "--species", "3,1,2", "--spacing", "4", "--objective", "mean-utci", "--substeps", "1"),
    "urban compare": ({"out": ""}, "{in}/day", "{in}/green"),
    "urban stats": ({"out": "areas.csv"}, "{in}/day", "--areas", "{in}/areas.csv", "--threshold", "utci>20"),
    "urban stage": ({"out": "sun.npz"}, "sun", "{in}/stage.npz"),
    "pde loss": ({"out": "gradients.npz", "residuals": "residuals.npz"}, "{in}/pde.npz", *PDE),
    "pde trajectory": ({"out": "gradients.npz"}, "{in}/trajectory.npz", *PDE),
    "pde study": ({"csv": "study.csv"}, "--sizes", "8", "--kernels", "two-kernel", "--boundaries", "periodic", "--iterations", "2"),
    "pde convergence": ({"out": "orders.png", "csv": "orders.csv"}, "--sizes", "10,16"),
    "pde example": ({"out": ""}, "heat", "--cells", "16", "--windows", "1"),
    "solve nist": ({"plot": "costs.png"}, "{in}/line.dat"),
    "solve g2o": ({"out": "solved.g2o", "residuals": "residuals.csv", "plot": "costs.svg"}, "{in}/ring.g2o"),
    "solve doctor": ({"influence": "influence.csv"}, "{in}/ring.g2o"),
    "solve bal": ({"out": "solved.txt", "ply": "points.ply"}, "--synthetic", "4,160", "--max-iterations", "3"),
    "solve fit": ({"out": "fitted.csv", "picture": "fit.png", "report": "fit.html"}, "{in}/decay.csv", "--model", "a*exp(-b*t)+c", "--y=count", "--initial", "a=4,b=1,c=0"),
    "solve mesh": ({"out": "moved.obj", "picture": "mesh.png"}, "{in}/mesh.obj", "--energy", "springs", "--iterations", "2"),
    "solve sketch": ({"out": "sketch.svg"}, "{in}/sketch.toml"),
    "flow run": ({"out": "", "checkpoint": "c.npz"}, "--n", "16", "--steps", "4", "--save-every", "2", "--dt", "0.01", "--pictures"),
    "flow encode": ({"out": "z.npz"}, "{in}/flow/run.nc"),
    "flow decode": ({"out": "fields.nc"}, "{in}/z.npz"),
    "flow learn": ({"out": "model.npz"}, "{in}/z.npz"),
    "flow rollout": ({"out": "later.npz"}, "{in}/model.npz", "--steps", "3"),
    "flow pipeline": ({"out": ""}, "--n", "16", "--steps", "40", "--strides", "2", "--rank", "0.9", "--dt", "0.01", "--pictures"),
    "forecast curve": ({"out": "curve.png"}, "{in}/log.csv"),
    "forecast encode": ({"out": "features.npz"}, "{in}/log.csv"),
    "forecast observe": ({"out": "model.npz"}, "{in}/log.csv", "--hidden", "8"),
    "forecast rollout": ({"plot": "members.png"}, "--hidden", "8", "--members", "2", "--features", "16", "--steps", "4"),
    "forecast train": ({"out": "", "checkpoint": "c"}, "xor", "--steps", "20"),
}
WEBGPU = any(device["kind"] == "webgpu" and device["available"] for device in json.loads(run("devices", "--json").stdout)["devices"])
MEMBERS = {"program": dict, "command": str, "options": dict, "inputs": list, "device": str, "driver": str, "numerics": str, "environment": dict,
           "started": str, "seconds": float, "stages": list, "variants": list, "fallbacks": dict, "warnings": list, "outputs": list, "identity": str, "directory": str,
           "seal": str}


def npz(path, arrays):
    """Writes float64 arrays, by name (shape, values), without NumPy."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (shape, values) in arrays.items():
            header = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }" % "".join(f"{n}," for n in shape)
            header += " " * ((64 - (len(header) + 11) % 64) % 64) + "\n"
            archive.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%dd" % len(values), *values))


def texts_of(path):
    """tEXt and iTXt of a PNG."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 8, {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at:at + 4])
        kind, content = data[at + 4:at + 8], data[at + 8:at + 8 + length]
        if kind in (b"tEXt", b"iTXt"):
            keyword, text = content.split(b"\0", 1)
            found[keyword.decode()] = text.removeprefix(b"\0" * 4 if kind == b"iTXt" else b"").decode()
        at += 12 + length
    return found


class Walk(ProgramTest):
    @classmethod
    def setUpClass(cls):
        import tempfile
        cls.inputs = tempfile.mkdtemp(prefix="lockstep-walk-")
        cls.addClassCleanup(shutil.rmtree, cls.inputs)

        def write(name, text):
            with open(os.path.join(cls.inputs, name), "w") as file:
                file.write(text)
        place = lambda name: os.path.join(cls.inputs, name)
        npy(place("dsm.npy"), [[9.0 if 4 <= r < 8 and 5 <= c < 9 else 0.0 for c in range(16)] for r in range(16)])
        write("weather.csv", "time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,22,50,2,700\n2015-06-21T13:00,23,50,2,700\n")
        write("measured.csv", "hour,Tmrt\n12,50\n13,52\n")
        write("areas.csv", 'name,wkt\nyard,"POLYGON ((1 1, 14.5 2, 9 15, 1 1))"\n')
        npy(place("cdsm.npy"), [[6.0 if 10 <= r < 13 else 0.0 for c in range(16)] for r in range(16)])
        write("poi.csv", "id,x,y\nsite,12,3\n")
        write("log.csv", "step,loss\n" + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(80)))
        write("mesh.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n")
        write("ring.g2o", ring2())
        write("sketch.toml", TOML)
        csv_table(place("decay.csv"))
        write("line.dat", MISRA)
        npz(place("stage.npz"), {name: ((), [value]) for name, value in STAGE.items()})
        wave = lambda n: [((7 * k) % 11 - 5) / 10 for k in range(n)]
        npz(place("pde.npz"), {**{f"sigma{k}": ((2, 8, 8), wave(128)) for k in range(3)}, **{f"u{k}": ((3, 2, 8, 8), wave(384)) for k in range(3)}})
        npz(place("trajectory.npz"), {"sigma": ((4, 2, 8, 8), wave(512)), "u": ((4, 3, 2, 8, 8), wave(1536))})
        for words in (("urban", "svf", "--dsm", place("dsm.npy"), "--pixel-size", "1", "--patches", "145", "--save-patches", "--format", "npy", "--no-pictures",
                       "--out", place("svf")),
                      *(("urban", "run", *(word.replace("{in}", cls.inputs) for word in CITY), "--sky", "isotropic", "--format", "npy", "--no-pictures", *trees,
                         "--out", place(name)) for name, trees in (("day", ()), ("green", ("--cdsm", place("cdsm.npy"))))),
                      ("flow", "run", "--n", "16", "--steps", "20", "--save-every", "2", "--dt", "0.01", "--out", place("flow")),
                      ("flow", "encode", place("flow/run.nc"), "--out", place("z.npz")), ("flow", "learn", place("z.npz"), "--out", place("model.npz"))):
            done = run(*words, "--device", "cpu", "--quiet", env={"LOCKSTEP_CPU_CODE": "quick"})
            assert done.returncode == 0, done.stderr

    def words(self, name, folder, device):
        writes, *rest = COMMANDS[name]
        outputs = [f"--{option}={os.path.join(folder, file) if file else folder}" for option, file in writes.items()]
        return [*name.split(), *(word.replace("{in}", self.inputs) for word in rest), *outputs, "--device", device, "--quiet"]

    def runs(self, name, folder, device="cpu", env=None):
        """Gives the record of the run."""
        os.makedirs(folder)
        done = run(*self.words(name, folder, device), env={"LOCKSTEP_CPU_CODE": "quick", **(env or {})})
        self.assertIn(done.returncode, (0, 1), done.stderr)
        with open(self.record_of(name, folder), encoding="utf-8") as file:
            return json.load(file)

    def results(self, name, folder):
        first = next(iter(COMMANDS[name][0].values()))
        return os.path.join(folder, first) if first else folder

    def record_of(self, name, folder):
        results = self.results(name, folder)
        return os.path.join(results, "run.json") if results == folder else results + ".run.json"

    def test_the_table_has_every_command_that_writes(self):
        script = run("completion", "bash").stdout
        writing = {name for name, words in re.findall(r'^    "((?:urban|pde|solve|flow|forecast) [a-z0-9]+)"\) below="" flags="(.*)" ;;', script, re.M)
                   if "--out" in words.split() or "--no-record" in words.split()}
        self.assertEqual(writing, set(COMMANDS))

    def test_every_command_has_a_record_and_runs_again(self):
        for name in COMMANDS:
            with self.subTest(command=name):
                folder = self.path(name.replace(" ", "-"))
                record = self.runs(name, folder)
                self.check_record(name, folder, record)
                self.check_stamps(folder, record)
                before = self.all_digests(folder)
                found = self.reproduces(name, folder)
                self.assertEqual((found["different"], found["since"]), (0, []))
                self.assertGreater(found["identical"], 0)
                self.assertEqual(self.all_digests(folder), before)

    def reproduces(self, name, folder, *more):
        again = run("reproduce", self.results(name, folder), "--json", "--quiet", *more, env={"LOCKSTEP_CPU_CODE": "quick"})
        self.assertEqual(again.returncode, 0, again.stderr + again.stdout)
        return json.loads(again.stdout)

    def test_after_a_fallback(self):
        """On a device that may fail; the record has the CPU's numbers, as those of a run on it."""
        if not WEBGPU:
            self.skipTest("no WebGPU here, and the interpreter falls back to nothing")
        for name, stage in {"urban svf": "urban.svf", "flow run": "flow.steps", "forecast rollout": "forecast.rollout"}.items():
            with self.subTest(command=name):
                folder = self.path(name.replace(" ", "-"))
                record = self.runs(name, folder, "webgpu", {"LOCKSTEP_FAULT": stage + ":launch"})
                self.assertEqual(record["fallbacks"][stage], 1)
                self.assertEqual({row["device"]: row["fallbacks"] for row in record["stages"] if row["stage"] == stage}.get("cpu"), 1)
                self.assertEqual(record["environment"]["LOCKSTEP_FAULT"], stage + ":launch")
                found = self.reproduces(name, folder)
                self.assertEqual(found["different"], 0)
                self.assertTrue([line for line in found["since"] if line.startswith("fallbacks: ")])
                self.assertTrue([line for line in found["since"] if line.startswith("environment: ")])

    def test_inputs_in_an_archive(self):
        """UMEP's archive and the matrices next to it are inputs of the run that the first grid names."""
        self.runs("urban umep", self.path("umep"))
        done = run("urban", "umep", self.path("umep", "svfs.zip"), "--device", "cpu", "--quiet", "--out", self.path("back"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("back", "run.json"), encoding="utf-8") as file:
            record = json.load(file)
        self.assertEqual([entry["path"] for entry in record["inputs"]], [self.path("umep", "shadowmats.npz"), self.path("umep", "svfs.zip")])
        self.check_stamps(self.path("back"), record)

    def test_again_on_webgpu(self):
        """Within the bound, one command of each application and more; those of 64-bit numbers fall back."""
        if not WEBGPU:
            self.skipTest("no WebGPU here")
        for name in ("urban svf", "urban run", "flow run", "flow encode", "forecast rollout", "forecast train", "pde loss", "pde example", "solve g2o", "solve mesh"):
            with self.subTest(command=name):
                folder = self.path(name.replace(" ", "-"))
                self.runs(name, folder)
                found = self.reproduces(name, folder, "--device", "webgpu")
                self.assertTrue(found["since"][0].startswith("device: cpu → webgpu"))
                self.assertGreater(len(found["files"]), 0)
                self.assertLessEqual({row["verdict"] for row in found["files"]}, {"identical", "within bound"})

    def test_a_city_that_goes_on_has_the_record_of_one_that_never_stopped(self):
        words = ["urban", "svf", *(word.replace("{in}", self.inputs) for word in DSM), "--patches", "145", "--tile", "16", "--save-patches", "--format", "npy",
                 "--no-pictures", "--max-reach", "4", "--device", "cpu", "--quiet", "--out"]
        words[3] = npy(self.path("dsm.npy"), [[9.0 if 4 <= r < 8 and 5 <= c < 9 else 0.0 for c in range(40)] for r in range(40)])
        self.assertEqual(run(*words, self.path("whole")).returncode, 0)
        stopped = run(*words, self.path("part"), "--no-fallback", env={"LOCKSTEP_FAULT": "urban.svf:launch:4"})
        self.assertEqual((stopped.returncode, os.path.exists(self.path("part", "run.json"))), (3, False), stopped.stderr)
        self.assertEqual(run(*words, self.path("part")).returncode, 0)
        records = []
        for name in ("whole", "part"):
            with open(self.path(name, "run.json"), encoding="utf-8") as file:
                records.append(json.load(file))
        for member in ("identity", "inputs", "outputs"):
            self.assertEqual(records[0][member], records[1][member])

    @staticmethod
    def all_digests(folder):
        return {os.path.relpath(os.path.join(base, name), folder): digest(os.path.join(base, name)) for base, _, names in os.walk(folder) for name in names}

    def check_record(self, name, folder, record):
        self.assertEqual({member: type(record.get(member)) for member in MEMBERS}, MEMBERS)
        self.assertEqual(record["command"], "lockstep " + name)
        self.assertEqual(record["environment"]["LOCKSTEP_CPU_CODE"], "quick")
        self.assertGreater(len(record["stages"]), 0)
        for stage in record["stages"]:
            self.assertIn("device", stage)
        if COMMANDS[name][1:] and any("{in}" in word for word in COMMANDS[name][1:]):
            self.assertGreater(len(record["inputs"]), 0)
        for entry in record["inputs"]:
            self.assertTrue(entry["path"].startswith(self.inputs), entry)
            self.assertEqual((entry["bytes"], entry["sha256"]), (os.path.getsize(entry["path"]), digest(entry["path"])))
        there = {path for path in self.all_digests(folder) if not path.endswith("run.json") and os.path.basename(path) != ".lockstep.lock"}
        self.assertEqual({entry["path"] for entry in record["outputs"]}, there)
        for entry in record["outputs"]:
            path = os.path.join(folder, entry["path"])
            self.assertEqual((entry["bytes"], entry["sha256"]), (os.path.getsize(path), digest(path)))
        named = {entry["option"]: entry["path"] for entry in record["outputs"] if "option" in entry and ".fields" not in entry["path"]}
        self.assertEqual(named, {option: file for option, file in COMMANDS[name][0].items() if file})

    def check_stamps(self, folder, record):
        """Program, run and title in each GeoTIFF, NetCDF, archive and picture."""
        for entry in record["outputs"]:
            path, kind = os.path.join(folder, entry["path"]), os.path.splitext(entry["path"])[1]
            if entry.get("option") == "checkpoint" or kind not in (".tif", ".nc", ".npz", ".png"):
                continue
            with self.subTest(file=entry["path"]), open(path, "rb") as file:
                data = file.read()
                self.assertIn(record["identity"].encode(), data)
                self.assertIn(b"Lockstep " + record["program"]["version"].encode(), data)
                if kind == ".npz":
                    with zipfile.ZipFile(path) as archive:
                        comment = json.loads(archive.comment)
                        self.assertEqual({name[-4:] for name in archive.namelist()}, {".npy"})
                    self.assertEqual(comment["lockstep_run"], record["identity"])
                    self.assertTrue(comment["title"])
                if kind == ".png":
                    texts = texts_of(path)
                    self.assertEqual((texts["lockstep_run"], texts["Software"]), (record["identity"], "Lockstep " + record["program"]["version"]))
                    self.assertTrue(texts["Title"])
                if kind == ".nc":
                    self.assertIn(b"title", data)


if __name__ == "__main__":
    unittest.main()
