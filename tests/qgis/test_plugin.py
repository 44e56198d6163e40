"""The plugin of QGIS as its zip has it, with a stand-in for qgis.core; test_qgis.py runs it in QGIS."""
import glob
import json
import os
import shutil
import signal
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
if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as lockstep does
    signal.signal(signal.SIGINT, stop)
for done in (10, 55, 100):
    sys.stderr.write("\\rparts [##..] %3d %% %d/100 0:00 left" % (done, done))
    sys.stderr.flush()
sys.stderr.write("\\n[lockstep] warning: a doubt about 10 % of it\\n")
sys.stderr.flush()
if mode == "wait":
    time.sleep(60)
print(json.dumps({{"argv": sys.argv[1:], "terminal": sys.stderr.isatty(),
                  "outputs": [{{"name": "utci_mean", "file": "o/utci_mean.tif"}}, {{"name": "w", "file": "o/w.npy"}}],
                  "netcdf": "o/run.nc"}}))
"""


class Feedback:
    def __init__(self, cancel_after=None):
        self.percent, self.lines, self.warnings = [], [], []
        self.start, self.cancel_after = time.monotonic(), cancel_after

    def setProgress(self, percent):  # noqa: N802
        self.percent.append(percent)

    def pushInfo(self, line):  # noqa: N802
        self.lines.append(line)

    def pushWarning(self, line):  # noqa: N802
        self.warnings.append(line)

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
        self.assertIn("lockstep_qgis/LICENSE", names)
        for command in self.algorithms:
            self.assertRegex(metadata, rf"\nabout=.*\b{command}\b")
        self.assertNotIn("email", metadata, "an address that nobody gave")
        published = os.path.join(self.folder, "published.zip")
        build.build(published, {"email": "a@b.example", "repository": "https://b.example/r", "tracker": None})
        with zipfile.ZipFile(published) as archive:
            lines = archive.read("lockstep_qgis/metadata.txt").decode().splitlines()
        self.assertEqual(lines[-2:], ["email=a@b.example", "repository=https://b.example/r"])

    def test_every_command_has_its_options(self):
        """Parameters are those of the reference, with kinds, bounds, defaults and what must be given."""
        self.assertEqual(set(self.algorithms), set(build.COMMANDS))
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
        self.assertEqual(feedback.percent, [10, 55, 100, 100])
        self.assertEqual(feedback.warnings, ["[lockstep] warning: a doubt about 10 % of it"])
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
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as where QGIS was started in the background of a shell
        self.addCleanup(signal.signal, signal.SIGINT, before)
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


if __name__ == "__main__":
    unittest.main()
