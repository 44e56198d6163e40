"""The plugin in QGIS: each algorithm by qgis_process on a district from code, its results as QGIS opens them, bad inputs; progress,
cancel and layers without a file in QGIS's own Python. Exit code 77 where QGIS is absent."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "integrations", "qgis"))
import build  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("LOCKSTEP_PROGRAM", os.path.join(ROOT, "build", "bin", "lockstep")))
# Debian 12 wraps the program in a script that gives it an option of the other program, which it refuses.
PROCESS = shutil.which("qgis_process.bin") or shutil.which("qgis_process")
PYTHON = "/usr/bin/python3"  # Debian's python3-qgis is a package of this one
SQUARES = {"north": "POLYGON ((674004 6579980, 674024 6579980, 674024 6579996, 674004 6579996, 674004 6579980))",
           "south": "POLYGON ((674004 6579956, 674044 6579956, 674044 6579976, 674004 6579976, 674004 6579956))"}


class Qgis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.plugins = cls.path("profiles/default/python/plugins")
        os.makedirs(cls.plugins)
        build.build(cls.path("plugin.zip"))
        with zipfile.ZipFile(cls.path("plugin.zip")) as archive:
            archive.extractall(cls.plugins)
        os.makedirs(cls.path("runtime"), mode=0o700)
        # The Python inside QGIS takes its library from the first python3 in PATH, and crashes with that of another Python.
        path = os.path.dirname(PYTHON) + os.pathsep + os.environ["PATH"]
        cls.env = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QGIS_CUSTOM_CONFIG_PATH": cls.folder, "LOCKSTEP_PROGRAM": PROGRAM,
                   "XDG_RUNTIME_DIR": cls.path("runtime"), "PATH": path}
        subprocess.run([PROCESS, "plugins", "enable", "lockstep_qgis"], check=True, capture_output=True, env=cls.env)
        subprocess.run([PROGRAM, "urban", "sample", "--size", "48", "--no-pictures", "--quiet", "--out", cls.path("city")], check=True)
        with open(cls.path("weather.csv"), "w") as file:
            file.write("time,Ta,RH,wind,Kglobal\n" + "".join(f"2026-06-21T{h}:00,{20 + h / 2},45,2,780\n" for h in (12, 13, 14)))
        with open(cls.path("areas.csv"), "w") as file:
            file.write("name,wkt\n" + "".join(f'{name},"{wkt}"\n' for name, wkt in SQUARES.items()))
        cls.model = {"dsm": cls.path("city/dsm.tif"), "dem": cls.path("city/dem.tif"), "weather": cls.path("weather.csv"), "utc_offset": 1,
                     "patches": "145", "substeps": "1", "device": "cpu"}
        cls.process("run", **cls.model, pictures=False, out=cls.path("bare"))
        cls.run_said = cls.said

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def call(cls, algorithm, **parameters):
        """The command line: exit code, output, errors."""
        words = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in parameters.items()]
        return subprocess.run([PROCESS, "run", "lockstep:" + algorithm, "--", *words], capture_output=True, text=True, env=cls.env)

    @classmethod
    def process(cls, algorithm, **parameters):
        done = cls.call(algorithm, **parameters)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.said = done.stdout
        return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("RESULT:")).partition("\t")[2])

    def inside(self, *arguments):
        done = subprocess.run([PYTHON, os.path.join(HERE, "inside_qgis.py"), *arguments], capture_output=True, text=True, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def job(self, algorithm, parameters, **more):
        with open(self.path("job.json"), "w") as file:
            json.dump({"algorithm": algorithm, "parameters": parameters, **more}, file)
        return self.inside("run", self.plugins, self.path("job.json"))[0]

    def test_every_command_is_listed(self):
        listed = subprocess.run([PROCESS, "list"], capture_output=True, text=True, env=self.env).stdout
        for name in build.COMMANDS:
            self.assertIn("lockstep:" + name + "\t", listed)
            described = subprocess.run([PROCESS, "help", "lockstep:" + name], capture_output=True, text=True, env=self.env)
            self.assertEqual(described.returncode, 0, described.stderr)
            for option in build.reference()[name]:
                self.assertIn(f"\n{option['name']}: ", described.stdout)

    def test_check(self):
        self.process("check", **{name: self.model[name] for name in ("dsm", "dem", "weather", "utc_offset", "device")})
        self.assertRegex(self.said, r"ok weather: 3.0 steps 2026-06-21T12:00")

    def test_run(self):
        self.assertIn("100 - done", self.run_said)
        mean, ground, series = self.inside("look", self.path("bare/summary/utci_mean.tif"), self.path("bare/ground.tif"), self.path("bare/run.nc"))
        self.assertEqual((mean["crs"], mean["renderer"]), ("EPSG:3006", "QgsSingleBandPseudoColorRenderer"))
        self.assertGreater(mean["colours"], 8)
        self.assertEqual((ground["crs"], ground["colours"]), ("EPSG:3006", 2))
        self.assertEqual((series["valid"], series["steps"], series["time"]), (True, 3, True))
        self.assertGreaterEqual(series["groups"], 3)
        for grid in glob.glob(self.path("bare/**/*.tif"), recursive=True):
            self.assertTrue(os.path.exists(grid[:-4] + ".qml"), grid)

    def test_compare_and_stats(self):
        self.process("run", **self.model, cdsm=self.path("city/cdsm.tif"), pictures=False, out=self.path("green"))
        change = self.process("compare", before=self.path("bare"), after=self.path("green"), out=self.path("change"))
        self.assertIn("PAGE:\t" + self.path("change/compare.html"), self.said)
        grids = [summary["file"] for summary in change["summaries"]]
        self.assertGreater(len(grids), 5)
        for grid in self.inside("look", *grids):
            self.assertEqual((grid["crs"], grid["renderer"]), ("EPSG:3006", "QgsSingleBandPseudoColorRenderer"))
            self.assertEqual(grid["ends"][0], -grid["ends"][1], "a scale even about zero")
        found = self.process("stats", run=self.path("green"), areas=self.path("areas.csv"), areas_crs="EPSG:3006", out=self.path("table.gpkg"))
        self.assertEqual({row["area"] for row in found["rows"]}, set(SQUARES))
        self.assertEqual(self.inside("look", self.path("table.gpkg|layername=statistics")),
                         [{"crs": "EPSG:3006", "shapes": "MultiPolygon", "features": 2}])

    def test_sun(self):
        found = self.process("sun", dsm=self.model["dsm"], rule="en17037", facades=True, minutes=60, device="cpu", pictures=False, out=self.path("sun"))
        self.assertEqual(found["rule"]["name"], "en17037")
        hours, grade, facades = self.inside("look", self.path("sun/sun_hours.tif"), self.path("sun/sun_grade.tif"),
                                            self.path("sun/facades.gpkg|layername=facades"))
        self.assertEqual((hours["renderer"], grade["colours"]), ("QgsSingleBandPseudoColorRenderer", 4))
        self.assertEqual(facades, {"crs": "EPSG:3006", "shapes": "LineString", "features": found["facades"]["walls"]})

    def test_plant(self):
        found = self.process("plant", **self.model, start="2026-06-21T14:00", trees=2, species="10,3,6", spacing=12, objective="mean-utci",
                             pictures=False, out=self.path("trees"))
        self.assertLess(found["after"], found["before"])
        self.assertIn("PAGE:\t" + found["comparison"], self.said)
        trees, crowns = self.inside("look", self.path("trees/trees.gpkg|layername=trees"), self.path("trees/cdsm.tif"))
        self.assertEqual(trees, {"crs": "EPSG:3006", "shapes": "Point", "features": 2})
        self.assertEqual(crowns["renderer"], "QgsSingleBandPseudoColorRenderer")

    def test_progress_and_layers(self):
        """In QGIS's Python: progress rises, what is loaded opens, areas of a layer without a file count."""
        found = self.job("run", {**self.model, "pictures": False, "out": self.path("again")})
        self.assertTrue(found["well"] and found["opens"] and found["unloaded"])
        self.assertEqual(found["percent"], sorted(found["percent"]))
        self.assertEqual(found["percent"][-1:], [100])
        self.assertLessEqual({self.path("again/run.nc"), self.path("again/summary/utci_mean.tif")}, set(found["layers"]))
        areas = {"crs": "EPSG:3006", "areas": SQUARES}
        for out, layer in (("t.gpkg", "t.gpkg|layername=statistics"), ("t.csv", "t.csv")):
            found = self.job("stats", {"run": self.path("bare"), "out": self.path(out)}, areas=areas)
            self.assertTrue(found["well"] and found["opens"])
            self.assertEqual({row["area"] for row in json.loads(found["results"]["RESULT"])["rows"]}, set(SQUARES))
            self.assertEqual(list(found["layers"]), [self.path(layer)])

    def test_cancel(self):
        """Nothing is loaded, and the folder is what an interrupted run leaves: it continues."""
        with open(self.path("days.csv"), "w") as file:  # far from its end when QGIS has seen the first step
            file.write("time,Ta,RH,wind,Kglobal\n" + "".join(f"2026-06-{day}T{h:02}:00,22,45,2,0\n" for day in range(10, 30) for h in range(24)))
        model = {**self.model, "weather": self.path("days.csv"), "patches": "609", "substeps": "60", "pictures": False, "out": self.path("cancelled")}
        found = self.job("run", model, cancel_at=1)
        self.assertEqual((found["results"], found["layers"]), ({}, {}))
        self.assertEqual(found["percent"], sorted(found["percent"]))
        self.assertLess(max(found["percent"]), 100)
        self.assertFalse(os.path.exists(self.path("cancelled/run.json")))
        self.assertFalse(os.path.exists(self.path("cancelled/run.nc")))

    def test_bad_inputs(self):
        """An error of one line that names the file and what was expected; nothing is left."""
        out = self.path("no")
        with open(self.path("broken.tif"), "wb") as file:
            file.write(b"II*\0 no raster")
        run = {**self.model, "out": out}
        stats = {"run": self.path("bare"), "areas": self.path("areas.csv"), "areas_crs": "EPSG:3006", "out": out + ".csv"}
        for algorithm, parameters, texts in (
                ("sun", {"dsm": self.path("none.tif"), "date": "2026-03-21", "out": out}, ["dsm", "none.tif not found"]),
                ("sun", {"dsm": self.model["dsm"], "cdsm": self.path("none.tif"), "date": "2026-03-21", "out": out}, ["cdsm", "none.tif not found"]),
                ("sun", {"dsm": self.path("broken.tif"), "date": "2026-03-21", "out": out}, ["dsm", "broken.tif"]),
                ("sun", {"dsm": self.model["dsm"], "out": out}, ["expected", "date"]),
                ("run", {**run, "weather": self.path("none.csv")}, ["none.csv", "expected"]),
                ("run", {**run, "weather": self.path("areas.csv")}, ["areas.csv", "expected"]),
                ("run", {**run, "outputs": "heat"}, ["heat", "expected"]),
                ("stats", {**stats, "areas": self.path("none.gpkg")}, ["areas", "none.gpkg was not found"]),
                ("stats", {**stats, "areas_crs": ""}, ["areas.csv", "without a coordinate reference system", "expected"]),
                ("stats", {**stats, "areas_crs": "EPSG:4326"}, ["areas.csv", "expected"]),
                ("stats", {**stats, "areas_crs": "Stockholm"}, ["areas.csv", "Stockholm", "expected"]),
                ("stats", {**stats, "run": self.path("city")}, ["run.json", "expected"]),
                ("compare", {"before": self.path("bare"), "after": self.path("city"), "out": out}, ["run.json", "expected"]),
                ("plant", {**run, "trees": 2, "species": "10,12,6"}, ["crown from 12 m", "species", "expected"]),
                ("check", {"dsm": self.model["dsm"]}, ["weather"])):
            done = self.call(algorithm, **parameters)
            self.assertNotEqual(done.returncode, 0, (algorithm, parameters))
            error = done.stderr.partition("ERROR:")[2]
            for text in texts:
                self.assertIn(text, error, (algorithm, parameters))
            self.assertNotIn("Traceback", done.stderr)
            self.assertFalse(os.path.exists(out) or os.path.exists(out + ".csv"), (algorithm, parameters))


if __name__ == "__main__":
    why = ("qgis_process is not installed (Debian: qgis)" if not PROCESS else "" if subprocess.run(
        [PYTHON, "-c", "import qgis.core"], capture_output=True).returncode == 0
        else "qgis_process is not installed with its Python (Debian: python3-qgis)")
    if why:
        print("skipped:", why)
        sys.exit(77)
    unittest.main()
