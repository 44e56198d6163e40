"""The plugin of QGIS as its zip has it, with a stand-in for qgis.core, and with QGIS itself where it is installed."""
import glob
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "integrations", "qgis")]
import build  # noqa: E402
import qgis_stand_in  # noqa: E402

PROGRAM = os.environ.get("LOCKSTEP_PROGRAM", os.path.join(ROOT, "build", "bin", "lockstep"))

FAKE = """#!{python}
import json, signal, sys, time
mode = {mode!r}
if mode == "fail":
    print(json.dumps({{"error": {{"code": 2, "what": "no such file", "where": "--dsm", "expected": "a raster"}}}}))
    sys.exit(2)
def stop(*_):
    open({folder!r} + "/interrupted", "w").close()
    sys.exit(130)
signal.signal(signal.SIGINT, stop)
for done in (10, 55, 100):
    sys.stderr.write("\\rparts [##..] %3d %% %d/100 0:00 left" % (done, done))
    sys.stderr.flush()
sys.stderr.write("\\n[lockstep] warning: a doubt\\n")
sys.stderr.flush()
if mode == "wait":
    time.sleep(60)
print(json.dumps({{"argv": sys.argv[1:], "terminal": sys.stderr.isatty(),
                  "outputs": [{{"name": "utci_mean", "file": "o/utci_mean.tif"}}, {{"name": "w", "file": "o/w.npy"}}],
                  "netcdf": "o/run.nc"}}))
"""


# How QGIS opens layers: system, and the renderer of the style next to a grid with its colours, or the shapes.
LOOK = """
import sys
from qgis.core import QgsApplication, QgsRasterLayer, QgsVectorLayer, QgsWkbTypes
application = QgsApplication([], False)
application.initQgis()
for path in sys.argv[1:]:
    if "|" in path:
        layer = QgsVectorLayer(path, "", "ogr")
        print(layer.crs().authid(), QgsWkbTypes.displayString(layer.wkbType()), layer.featureCount())
    else:
        layer = QgsRasterLayer(path)
        print(layer.crs().authid(), type(layer.renderer()).__name__, len(layer.renderer().shader().rasterShaderFunction().colorRampItemList()))
"""


class Feedback:
    def __init__(self, cancel_after=None):
        self.percent, self.lines, self.start, self.cancel_after = [], [], time.monotonic(), cancel_after

    def setProgress(self, percent):  # noqa: N802
        self.percent.append(percent)

    def pushInfo(self, line):  # noqa: N802
        self.lines.append(line)

    def isCanceled(self):  # noqa: N802
        return self.cancel_after is not None and bool(self.percent) and time.monotonic() - self.start > self.cancel_after


class Plugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.zip = os.path.join(cls.folder, "plugin.zip")
        build.build(cls.zip)
        with zipfile.ZipFile(cls.zip) as archive:
            archive.extractall(cls.folder)
        registry = qgis_stand_in.install()
        sys.path.insert(0, cls.folder)
        import lockstep_qgis

        cls.plugin = lockstep_qgis.classFactory(None)
        cls.plugin.initProcessing()
        cls.registry = registry
        cls.algorithms = {a.name(): a for a in registry.providers[0].algorithms}
        for algorithm in cls.algorithms.values():
            algorithm.initAlgorithm()

    def fake(self, mode=""):
        path = os.path.join(self.folder, "fake_" + mode)
        with open(path, "w") as file:
            file.write(FAKE.format(python=sys.executable, mode=mode, folder=self.folder))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        before = os.environ.get("LOCKSTEP_PROGRAM")
        os.environ["LOCKSTEP_PROGRAM"] = path
        self.addCleanup(lambda: os.environ.pop("LOCKSTEP_PROGRAM") if before is None
                        else os.environ.update(LOCKSTEP_PROGRAM=before))

    def test_zip_is_a_plugin(self):
        with zipfile.ZipFile(self.zip) as archive:
            names = archive.namelist()
            metadata = archive.read("lockstep_qgis/metadata.txt").decode()
        self.assertTrue(all(name.startswith("lockstep_qgis/") for name in names))
        for key in ("name=", "qgisMinimumVersion=", "description=", "version=", "author=", "hasProcessingProvider=yes"):
            self.assertIn(key, metadata)
        self.assertNotIn("@", metadata)

    def test_every_command_has_its_options(self):
        """Parameters are those of the reference, with kinds, bounds, defaults and what must be given."""
        self.assertLessEqual({"check", "run", "sun", "compare", "stats"}, set(self.algorithms))
        for name, algorithm in self.algorithms.items():
            wanted = [option["name"] for option in build.reference()[name]] + ["device"]
            self.assertEqual(list(algorithm.parameters), wanted, name)
        run = self.algorithms["run"].parameters
        kinds = {name: type(p).__name__.removeprefix("QgsProcessingParameter") for name, p in run.items()}
        self.assertEqual([kinds[n] for n in ("dsm", "weather", "out", "poi", "preset", "latitude", "evergreen", "outputs")],
                         ["RasterLayer", "File", "FolderDestination", "VectorLayer", "Enum", "Number", "Boolean", "String"])
        self.assertEqual([run[n].options["optional"] for n in ("dsm", "weather", "out", "cdsm")], [False, False, False, True])
        self.assertEqual(run["preset"].options["options"], ["umep", "solweig", "corrected"])
        self.assertEqual(run["preset"].options["defaultValue"], "corrected")
        self.assertEqual(run["latitude"].bounds, {"low": -90, "high": 90})
        self.assertTrue(run["memory"].flags())
        self.assertFalse(run["dsm"].flags())

    def test_command_line(self):
        """Only what differs from the defaults is said; positionals come last; the layer of a file is an option."""
        self.fake()
        context, feedback = qgis_stand_in.Context(), Feedback()
        results = self.algorithms["run"].processAlgorithm(
            {"dsm": "d.tif", "weather": "w.csv", "out": "o", "preset": "umep", "sky": "anisotropic", "evergreen": True,
             "video": False, "pictures": True, "utc_offset": 1.0, "start": "2015-06-21", "place": "Rue d'Été",
             "cdsm": None}, context, feedback)
        found = json.loads(results["RESULT"])
        self.assertEqual(found["argv"], ["urban", "run", "--dsm=d.tif", "--weather=w.csv", "--from=2015-06-21",
                                         "--utc-offset=1.0", "--evergreen", "--preset=umep", "--no-video",
                                         "--place=Rue d'Été", "--out=o", "--json"])
        self.assertEqual(results["out"], "o")
        self.assertEqual({path: layer.hint for path, layer in context.layers.items()}, {"o/utci_mean.tif": 2, "o/run.nc": 3})
        self.assertTrue(found["terminal"], "the program draws progress on terminals alone")
        self.assertEqual(feedback.percent, [10, 55, 100])
        self.assertEqual(feedback.lines, ["[lockstep] warning: a doubt"])
        stats = self.algorithms["stats"].processAlgorithm(
            {"run": "day", "areas": "a.gpkg|layername=yards", "out": "t.csv"}, context, Feedback())
        self.assertEqual(json.loads(stats["RESULT"])["argv"],
                         ["urban", "stats", "--areas=a.gpkg", "--layer=yards", "--out=t.csv", "day", "--json"])

    def test_errors_and_cancel(self):
        self.fake("fail")
        with self.assertRaises(qgis_stand_in.ProcessingError) as caught:
            self.algorithms["sun"].processAlgorithm({"dsm": "d.tif", "out": "o"}, qgis_stand_in.Context(), Feedback())
        self.assertEqual(str(caught.exception), "no such file [--dsm]: expected a raster")
        self.fake("wait")
        feedback, context = Feedback(cancel_after=0.2), qgis_stand_in.Context()
        self.assertEqual(self.algorithms["sun"].processAlgorithm({"dsm": "d.tif", "out": "o"}, context, feedback), {})
        self.assertLess(time.monotonic() - feedback.start, 30)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "interrupted")), "ended as Ctrl-C does")
        self.assertEqual(context.layers, {})

    def test_the_program_itself(self):
        """A city of the program: hours of sun, with grids to load and a style next to each."""
        os.environ["LOCKSTEP_PROGRAM"] = PROGRAM
        city, out = os.path.join(self.folder, "city"), os.path.join(self.folder, "sun")
        subprocess.run([PROGRAM, "urban", "sample", "--size", "48", "--out", city, "--quiet"], check=True)
        context = qgis_stand_in.Context()
        self.algorithms["sun"].processAlgorithm(
            {"dsm": city + "/dsm.tif", "cdsm": city + "/cdsm.tif", "date": "2026-03-21", "minutes": 60, "out": out,
             "device": "cpu"}, context, Feedback())
        self.assertEqual(set(context.layers), set(glob.glob(out + "/*.tif")))
        for layer in context.layers:
            self.assertTrue(os.path.exists(layer[:-4] + ".qml"), layer)

    def test_qgis_itself(self):
        # Debian 12 wraps the program in a script that gives it an option of the other program, which it refuses.
        process = shutil.which("qgis_process.bin") or shutil.which("qgis_process")
        if not process:
            self.skipTest("qgis_process is not installed (Debian: qgis)")
        home = os.path.join(self.folder, "home")
        plugins = os.path.join(home, "QGIS/QGIS3/profiles/default/python/plugins")
        os.makedirs(plugins)
        with zipfile.ZipFile(self.zip) as archive:
            archive.extractall(plugins)
        env = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QGIS_CUSTOM_CONFIG_PATH": os.path.join(home, "QGIS/QGIS3"),
               "LOCKSTEP_PROGRAM": PROGRAM}
        enabled = subprocess.run([process, "plugins", "enable", "lockstep_qgis"], capture_output=True, text=True, env=env)
        self.assertEqual(enabled.returncode, 0, enabled.stderr)
        listed = subprocess.run([process, "list"], capture_output=True, text=True, env=env)
        for name in self.algorithms:
            self.assertIn("lockstep:" + name, listed.stdout)
        city, out = os.path.join(self.folder, "city_of_qgis"), os.path.join(self.folder, "sun_of_qgis")
        subprocess.run([PROGRAM, "urban", "sample", "--size", "48", "--out", city, "--quiet"], check=True)
        ran = subprocess.run([process, "run", "lockstep:sun", "--", f"dsm={city}/dsm.tif", "rule=en17037", "facades=true", "minutes=60", f"out={out}",
                              "device=cpu"], capture_output=True, text=True, env=env)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        found = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("RESULT:")).partition("\t")[2])
        self.assertEqual(found["rule"]["name"], "en17037")
        layers = [out + "/sun_hours.tif", out + "/sun_grade.tif", out + "/facades.gpkg|layername=facades"]
        shown = subprocess.run(["/usr/bin/python3", "-c", LOOK, *layers], capture_output=True, text=True, env=env)
        if "No module named 'qgis'" in shown.stderr:
            self.skipTest("qgis_process is not installed with its Python (Debian: python3-qgis)")
        self.assertEqual(shown.stdout.splitlines(), ["EPSG:3006 QgsSingleBandPseudoColorRenderer 17", "EPSG:3006 QgsSingleBandPseudoColorRenderer 4",
                                                     f"EPSG:3006 LineString {found['facades']['walls']}"])


if __name__ == "__main__":
    unittest.main()
