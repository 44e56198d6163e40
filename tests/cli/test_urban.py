"""urban: files in, files out, and everything that can be wrong with them."""
import filecmp
import fcntl
import json
import math
import os
import re
import signal
import struct
import subprocess
import time
import unittest
import zipfile

from program import PROGRAM, ProgramTest, npy, read_npy, run

GRIDS = [prefix + half for prefix in ("svf", "svf_veg", "svf_aveg") for half in ("", "_east", "_south", "_west", "_north")]
ASC = "ncols %d\nnrows %d\nxllcorner %s\nyllcorner 6400000\ncellsize %s\nNODATA_value -9999\n%s\n"
GEOTIFF = "GDAL" not in run("urban", "sample", "--size", "8", "--no-pictures", "--out", "/tmp/.lockstep-cli-probe").stderr


# Local time in Goteborg, azimuth and altitude (degrees) of the sun.
SUNS = [
    ("2015-06-21T12:00+02:00", 150.96099, 53.25811), ("2015-06-21T12:00:60+02:00", 151.32910, 53.32255),
    ("2015-12-31T23:30-02:00", 49.37949, -47.74021), ("2016-12-31T23:59:60Z", 17.73320, -54.38321),
    ("2024-02-29T15:30+05:30", 157.27328, 22.40902), ("2024-02-29T15:45:30+05:45", 157.40431, 22.43484),
    ("2015-06-21T19:17:32Z", 307.81042, 5.00060), ("2015-06-21T20:09:27Z", 318.60124, 0.30090),
    ("2015-06-21T20:30:37Z", 323.11657, -1.99879)]


def block(size=24, height=12.0):
    """Flat ground with one square building."""
    return [[height if 8 <= r < 14 and 9 <= c < 15 else 0.0 for c in range(size)] for r in range(size)]


class Urban(ProgramTest):
    def setUp(self):
        super().setUp()
        self.dsm = npy(self.path("dsm.npy"), block())
        self.base = ["--dsm", self.dsm, "--pixel-size", "1", "--device", "cpu", "--format", "npy"]

    def test_shadows_of_a_block(self):
        out = self.path("out")
        document = self.json_of("urban", "shadows", *self.base, "--azimuth", "180", "--altitude", "45", "--walls", "--out", out)
        self.check_summary(document)
        self.assertEqual([g["name"] for g in document["outputs"]],
                         ["shadow_buildings", "shadow_vegetation", "shadow_vegetation_before_buildings", "wall_sun", "wall_shadow"])
        grid = read_npy(os.path.join(out, "shadow_buildings.npy"))
        self.assertEqual(grid[4][11], 0.0, "north of the building")
        self.assertEqual(grid[20][11], 1.0, "south of it")
        self.assertEqual(grid[4][2], 1.0, "next to it")
        for entry in document["outputs"]:
            with open(entry["picture"], "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        sunlit = read_npy(os.path.join(out, "wall_sun.npy"))
        self.assertEqual(sunlit[14][11], 12.0, "the south wall")

    def test_stages_named_as_commands(self):
        def scalar(value):
            head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (), }"
            head += b" " * (117 - len(head)) + b"\n"
            return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<d", value)
        for stage, wind, expected in (("utci", "va", 40.37991714), ("pet", "v", 44.171)):
            with zipfile.ZipFile(self.path("in.npz"), "w") as file:
                for name, value in (("ta", 35), ("rh", 40), (wind, 1), ("tmrt", 55)):
                    file.writestr(name + ".npy", scalar(value))
            document = self.json_of("urban", "stage", stage, self.path("in.npz"), "--out", self.path("out.npz"))
            self.assertEqual(document["stage"], stage)
            self.assertAlmostEqual(document["outputs"][0]["mean"], expected, delta=0.01)
            with zipfile.ZipFile(self.path("out.npz")) as file:
                self.assertEqual(file.namelist(), [stage + ".npy"])

    def test_walls_and_their_files(self):
        self.json_of("urban", "walls", *self.base, "--minimum-height", "1", "--out", self.path("w"))
        height = read_npy(self.path("w", "wall_height.npy"))
        self.assertEqual(height[14][11], 12.0)
        self.assertEqual(height[10][11], 0.0)
        files = ["--wall-height", self.path("w", "wall_height.npy"), "--wall-aspect", self.path("w", "wall_aspect.npy")]
        for out, walls in (("a", files), ("b", ["--walls", "--minimum-height", "1"])):
            self.json_of("urban", "shadows", *self.base, "--azimuth", "200", "--altitude", "30", *walls, "--out", self.path(out))
        for name in ("wall_sun.npy", "wall_shadow.npy"):
            self.assertEqual(read_npy(self.path("a", name)), read_npy(self.path("b", name)))

    def test_a_dsm_above_ground_on_its_dem(self):
        slope = [[0.25 * c for c in range(24)] for _ in range(24)]
        absolute = npy(self.path("absolute.npy"), [[a + b for a, b in zip(*rows)] for rows in zip(block(), slope)])
        dem = npy(self.path("dem.npy"), slope)
        sun = ["--azimuth", "90", "--altitude", "60", "--device", "cpu", "--format", "npy", "--pixel-size", "1", "--walls"]
        self.json_of("urban", "shadows", "--dsm", absolute, *sun, "--out", self.path("a"))
        self.json_of("urban", "shadows", *self.base, *sun, "--dem", dem, "--dsm-heights", "above-ground", "--out", self.path("b"))
        self.json_of("urban", "shadows", *self.base, *sun, "--out", self.path("c"))
        grids = [read_npy(self.path(out, "shadow_buildings.npy")) for out in "abc"]
        self.assertEqual(grids[0], grids[1])
        self.assertNotEqual(grids[0], grids[2])

    def test_the_sun_of_a_time(self):
        place = ["--latitude", "57.7", "--longitude", "11.97", "--out", self.path("o"), "--no-pictures"]
        # Azimuth and altitude of pvlib's nrel_numpy (1010 mbar, 10 degrees, no delta T).
        for time, azimuth, altitude in SUNS:
            document = self.json_of("urban", "shadows", *self.base, "--at", time, *place)
            self.assertAlmostEqual(document["sun"]["azimuth"], azimuth, delta=0.01, msg=time)
            self.assertAlmostEqual(document["sun"]["altitude"], altitude, delta=0.01, msg=time)
            self.assertEqual(document["sun"]["grid_azimuth"], document["sun"]["azimuth"], "no CRS, no convergence")
            self.assertEqual(document["sun"]["night"], altitude <= 0)
        same = self.json_of("urban", "shadows", *self.base, "--at", "2015-06-21T12:00", "--utc-offset", "2", *place)
        self.assertAlmostEqual(same["sun"]["azimuth"], SUNS[0][1], delta=0.01)

    def test_a_day_of_24_hours_with_its_night(self):
        for hour in range(24):
            out = self.path("h%d" % hour)
            document = self.json_of("urban", "shadows", *self.base, "--at", "2015-03-20T%02d:00Z" % hour, "--latitude", "57.7", "--longitude", "11.97",
                                    "--walls", "--no-pictures", "--out", out)
            self.assertEqual(document["sun"]["night"], document["sun"]["altitude"] <= 0)
            if document["sun"]["night"]:
                self.assertEqual({v for row in read_npy(os.path.join(out, "shadow_buildings.npy")) for v in row}, {0.0})
                self.assertEqual({v for row in read_npy(os.path.join(out, "wall_sun.npy")) for v in row}, {0.0})
                self.assertEqual(max(v for row in read_npy(os.path.join(out, "wall_shadow.npy")) for v in row), 12.0)

    def test_results_of_an_earlier_sun_are_named(self):
        shadows = ["urban", "shadows", *self.base, "--azimuth", "180", "--altitude", "45", "--out", self.path("o")]
        self.assertNotIn("left_over", self.json_of(*shadows, "--walls"))
        later = self.json_of(*shadows, "--no-pictures")
        names = {os.path.basename(name) for name in later["left_over"]}
        self.assertLessEqual({"wall_sun.npy", "wall_shadow.npy", "wall_sun.png", "shadow_buildings.png"}, names)
        self.assertNotIn("shadow_buildings.npy", names)
        self.assertIn("wall_sun.npy", run(*shadows).stderr)
        quiet = run(*shadows, "--no-pictures", "--quiet").stderr
        self.assertIn("wall_sun.npy", quiet, "results that are not this run's are reported also under --quiet")
        self.assertEqual(quiet.count("\n"), 1, quiet)

    def test_a_sky_table_of_an_earlier_run_is_named(self):
        sky = ["urban", "svf", *self.base, "--patches", "145", "--no-pictures", "--out", self.path("o")]
        self.json_of(*sky, "--save-patches")
        later = run(*sky, "--json", "--quiet")
        self.assertIn("sky_states.npz", later.stderr)
        self.assertIn("sky_states.npz", later.stdout)

    def test_one_run_at_a_time_in_a_folder(self):
        os.makedirs(self.path("o"))
        with open(self.path("o", ".lockstep.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write("4711")
            lock.flush()
            self.refuses("urban", "walls", *self.base, "--out", self.path("o"), saying="process 4711 is writing its results here [%s]" % self.path("o"))
        self.assertEqual(run("urban", "walls", *self.base, "--out", self.path("o")).returncode, 0)
        self.assertFalse([name for name in os.listdir(self.path("o")) if name.startswith(".")])

    def test_memory_is_used_as_foreseen(self):
        """Predicted and used peak of the process agree within 15 %, and both keep to --memory."""
        self.json_of("urban", "sample", "--size", "1280", "--format", "npy", "--no-pictures", "--out", self.path("c"))
        svf = ["urban", "svf", "--dsm", self.path("c", "dsm.npy"), "--cdsm", self.path("c", "cdsm.npy"), "--pixel-size", "1", "--device", "cpu",
               "--format", "npy", "--no-pictures", "--patches", "145", "--max-reach", "60", "--out", self.path("o")]
        for limit in (None, 300, 220):
            tiles = self.json_of(*svf, *(["--memory", "%dM" % limit] if limit else []))["tiles"]
            self.assertAlmostEqual(tiles["peak_host_bytes"] / tiles["predicted_host_bytes"], 1, delta=0.15, msg=str(tiles))
            if limit:
                self.assertGreater(tiles["tiles"], 1)
                self.assertLessEqual(tiles["peak_host_bytes"], 1.1 * limit * 2**20)

    def test_memory_of_large_shadows(self):
        """Within 5 % where the grids are most of it."""
        self.json_of("urban", "sample", "--size", "3072", "--format", "npy", "--no-pictures", "--out", self.path("c"))
        for limit, walls in ((None, []), (500, []), (None, ["--walls"])):
            tiles = self.json_of("urban", "shadows", "--dsm", self.path("c", "dsm.npy"), "--cdsm", self.path("c", "cdsm.npy"), "--pixel-size", "1", "--azimuth",
                                 "200", "--altitude", "30", "--device", "cpu", "--format", "npy", "--no-pictures", "--out", self.path("o"),
                                 *(["--memory", "%dM" % limit] if limit else []), *walls)["tiles"]
            self.assertAlmostEqual(tiles["peak_host_bytes"] / tiles["predicted_host_bytes"], 1, delta=0.05, msg=str(tiles))
            if limit:
                self.assertGreater(tiles["tiles"], 1)
                self.assertLessEqual(tiles["peak_host_bytes"], 1.05 * limit * 2**20)

    def test_a_city_that_memory_does_not_hold(self):
        """It is read tile by tile: the same files, memory within 5 % of the prediction."""
        self.json_of("urban", "sample", "--size", "4096", "--format", "npy", "--no-pictures", "--out", self.path("c"))
        shadows = ["urban", "shadows", "--dsm", self.path("c", "dsm.npy"), "--cdsm", self.path("c", "cdsm.npy"), "--pixel-size", "1", "--device", "cpu", "--format", "npy"]
        grids = ["shadow_buildings.npy", "shadow_vegetation.npy", "shadow_vegetation_before_buildings.npy"]
        little = ["--memory", "400M"]
        for sun in (["--azimuth", "200", "--altitude", "30"], ["--at", "2015-12-21T22:00Z", "--latitude", "57.7", "--longitude", "11.97"]):
            whole = run(*shadows, *sun, "--no-pictures", "--out", self.path("whole"))
            self.assertEqual(whole.returncode, 0, whole.stderr)
            self.assertNotIn("it is read tile by tile", whole.stderr)
            done = run(*shadows, *sun, *little, "--no-pictures", "--json", "--out", self.path("o"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("it is read tile by tile", done.stderr)
            for name in grids:
                self.assertTrue(filecmp.cmp(self.path("whole", name), self.path("o", name), shallow=False), name)
            if "--at" in sun:
                continue
            tiles = json.loads(done.stdout)["tiles"]
            self.assertGreater(tiles["tiles"], 1)
            self.assertAlmostEqual(tiles["peak_host_bytes"] / tiles["predicted_host_bytes"], 1, delta=0.05, msg=str(tiles))
            self.assertLessEqual(tiles["peak_host_bytes"], 1.05 * 400 * 2**20)
        pictures = run(*shadows, "--azimuth", "200", "--altitude", "30", *little, "--quiet", "--out", self.path("o"))
        self.assertEqual(pictures.returncode, 0, pictures.stderr)
        self.assertIn("no pictures are drawn", pictures.stderr)
        self.assertFalse([name for name in os.listdir(self.path("o")) if name.endswith(".png")])
        self.refuses(*shadows, "--azimuth", "200", "--altitude", "30", *little, "--walls", "--quiet", "--out", self.path("o"), saying="[--walls]")

    def test_all_fifteen_grids_tiled_as_untiled(self):
        whole = self.json_of("urban", "svf", *self.base, "--save-patches", "--out", self.path("whole"))
        self.check_summary(whole)
        self.assertEqual([g["name"] for g in whole["outputs"]], GRIDS)
        tiled = self.json_of("urban", "svf", *self.base, "--tile", "8", "--tile-workers", "2", "--no-pictures", "--save-patches", "--out", self.path("tiled"))
        self.assertGreater(tiled["tiles"]["tiles"], 1)
        for name in GRIDS:
            with open(self.path("whole", name + ".npy"), "rb") as a, open(self.path("tiled", name + ".npy"), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)
        self.assertFalse(os.path.exists(self.path("tiled", ".tiles")))
        self.assertFalse([f for f in os.listdir(self.path("tiled")) if f.endswith(".png")])
        self.assertAlmostEqual(whole["outputs"][0]["max"], 1.0, delta=1e-6)

    def test_missing_cells_stay_missing(self):
        grid = block()
        grid[3][4] = math.nan
        npy(self.dsm, grid)
        self.json_of("urban", "svf", *self.base, "--out", self.path("o"))
        result = read_npy(self.path("o", "svf.npy"))
        self.assertTrue(math.isnan(result[3][4]))
        self.assertEqual(sum(math.isnan(v) for row in result for v in row), 1)

    def test_telemetry_and_trace(self):
        self.json_of("urban", "svf", *self.base, "--out", self.path("o"), "--telemetry", self.path("t.jsonl"), "--trace", self.path("t.json"))
        with open(self.path("t.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        [tiles] = [line for line in lines if line.get("event") == "urban.svf.tiles"]
        self.assertEqual(tiles["gpu_stage_time_ms"], 0, "no GPU, no time of one")
        self.assertGreater(tiles["tile_turnaround_ms"], tiles["svf_tile_wall_time_s"] * 1e3)
        fields = set().union(*lines)
        for name in ("svf_tile_wall_time_s", "svf_patch_progress_rate", "svf_stitch_copy_time_ms", "svf_gpu_fallback_count",
                     "tile_turnaround_ms", "gpu_stage_time_ms", "queue_depth_peak", "gpu_fallback_count", "bytes_to_device", "bytes_from_device"):
            self.assertIn(name, fields)
        self.assertIn("urban.svf", [line.get("stage") for line in lines])
        with open(self.path("t.json")) as file:
            spans = {event["name"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"}
        self.assertLessEqual({"read", "urban.svf", "write"}, spans)

    def test_text_and_quiet(self):
        done = run("urban", "walls", *self.base, "--out", self.path("o"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("wall_height", done.stdout)
        self.assertIn("total", done.stderr)
        self.assertEqual(run("urban", "walls", *self.base, "--out", self.path("o"), "--quiet").stderr, "")

    def test_bad_use(self):
        shadows = ["urban", "shadows", *self.base, "--out", self.path("o")]
        self.refuses(*shadows, saying="no position of the sun")
        self.refuses(*shadows, "--azimuth", "10", saying="only one angle [--azimuth]")
        self.refuses(*shadows, "--azimuth", "10", "--altitude", "0", saying="'0' [--altitude]: expected a number above 0 and at most 90")
        self.refuses(*shadows, "--azimuth", "10", "--altitude", "91", saying="[--altitude]")
        for azimuth in ("nan", "400", "-181"):
            self.refuses(*shadows, "--azimuth", azimuth, "--altitude", "9", saying="[--azimuth]: expected a number of at least -180 and at most 360")
        self.refuses(*shadows, "--azimuth", "1", "--altitude", "9", "--at", "2015-06-21T12:00", saying="both angles and a time")
        self.refuses(*shadows, "--at", "2015-06-21T12:00", "--latitude", "57.7", "--longitude", "12", saying="a local time without its offset")
        self.refuses(*shadows, "--at", "2015-06-21T12:00+02:00", "--utc-offset", "3", "--latitude", "57.7", "--longitude", "12", saying="offset 3 in addition to that of")
        self.refuses(*shadows, "--at", "2015-06-21T12:00", "--utc-offset", "15", saying="[--utc-offset]")
        self.refuses(*shadows, "--at", "2015-06-21T12:00", "--utc-offset", "2", saying="expected a CRS, or --latitude and --longitude")
        place = ["--latitude", "57.7", "--longitude", "12", "--utc-offset", "2"]
        self.refuses(*shadows, "--at", "midsummer", *place, saying="midsummer")
        self.refuses(*shadows, "--at", "2015-02-30T12:00", *place, saying="2015-02-30")
        self.refuses(*shadows, "--azimuth", "10", "--altitude", "9", *place[:4], saying="a location without a time")
        self.refuses(*shadows, "--azimuth", "1", "--altitude", "9", "--wall-height", self.dsm, saying="--wall-height and --wall-aspect")
        self.refuses("urban", "walls", *self.base, "--out", self.path("o"), "--minimum-height", "0", saying="'0' [--minimum-height]: expected a number above 0")
        svf = ["urban", "svf", *self.base, "--out", self.path("o")]
        self.refuses(*svf, "--patches", "306", saying="[--patches]: expected one of 145|153|305|609")
        self.refuses(*svf, "--tile", "0", saying="[--tile]")
        self.refuses(*svf, "--trunk-ratio", "2", saying="[--trunk-ratio]")
        self.refuses(*svf, "--tdsm", self.dsm, saying="trunk heights without a canopy")
        self.refuses(*svf, "--canopy", "below", saying="[--canopy]")
        self.refuses(*svf, "--dsm-heights", "above-ground", saying="a DSM above ground without the ground")
        self.refuses(*svf, "--memory", "lots", saying="'lots' [--memory]: expected a size such as 512M or 8G")
        self.refuses(*svf, "--memory", "8X", saying="'8X' [--memory]: expected a size such as 512M or 8G")
        self.refuses(*svf, "--memory", "1M", saying="1.0 MiB of host memory [tiles]: expected more than the")
        self.refuses(*svf, "--dms", self.dsm, saying="unknown option '--dms'")
        done = self.refuses("urban", "svf", "--dms", self.dsm, "--out", self.path("o"), saying="unknown option '--dms'")
        self.assertIn("did you mean --dsm?", done.stderr)
        self.refuses("urban", "svf", "--out", self.path("o"), saying="--dsm is missing")
        self.refuses("urban", "svf", "--dsm", self.dsm, "--pixel-size", "1", saying="--out is missing")
        self.refuses("urban", "sample", "--size", "0", "--out", self.path("o"), saying="[--size]")
        self.refuses("urban", "sample", "--size", "1x2x3", "--out", self.path("o"), saying="[--size]")
        self.refuses("urban", "sample", "--size", "5x", "--out", self.path("o"), saying="'5x' [--size]")

    def test_quirks_toggled_alone(self):
        document = self.json_of("urban", "gates", "--quirks", "--device", "cpu")
        rows = {(row["quirk"], row["value"]): row for row in document["quirks"]}
        self.assertEqual(len(rows), len(document["quirks"]), "names are unique")
        zero = rows["zero of Tmrt", "−273.2"]
        for part in ("mean_day", "mean_night"):
            self.assertAlmostEqual(zero[part], -0.05, delta=1e-4)
        self.assertAlmostEqual(zero["max_abs"], 0.05, delta=1e-4)
        # A body that absorbs less of the longwave is warmed more by the sun, and at night not at all.
        absorptance = rows["longwave absorptance", "0.95"]
        self.assertGreater(absorptance["mean_day"], 0.1)
        self.assertAlmostEqual(absorptance["mean_night"], 0, delta=1e-3)
        self.assertLess(rows["beam on a box, anisotropic sky", "dropped"]["mean_day"], -1)
        self.assertEqual(rows["leaves", "day 100–300"]["max_abs"], 0, "June")
        self.assertEqual(rows["clearness at night", "after sunrise"]["mean_day"], 0)
        self.assertGreater(rows["clearness at night", "after sunrise"]["max_abs"], 0.1)

    def test_comfort_of_one_place(self):
        air = ["--ta", "35", "--rh", "40", "--wind", "1", "--tmrt", "55"]
        document = self.json_of("urban", "utci", *air)
        self.assertAlmostEqual(document["utci"], 40.379917, delta=3e-6)
        self.assertEqual((document["stress"], document["fitted"]), ("very strong heat stress", True))
        self.assertEqual(run("urban", "utci", *air).stdout, "40.380\n")
        document = self.json_of("urban", "pet", *air)
        self.assertAlmostEqual(document["pet"], 44.171, delta=0.006)
        self.assertEqual(document["stress"], "very hot")
        woman = self.json_of("urban", "pet", *air, "--sex", "female", "--mass", "60", "--height", "1.65", "--age", "70", "--clothing", "0.5", "--activity", "60")
        self.assertGreater(abs(woman["pet"] - document["pet"]), 0.05)
        # A wind of 2 m/s measured at 3 m, at the height of either index.
        for index, height, key in (("utci", 10, "wind_10m"), ("pet", 1.1, "wind_1m1")):
            measured = self.json_of("urban", index, "--ta", "20", "--rh", "50", "--wind", "2", "--tmrt", "30", "--wind-height", "3")
            self.assertAlmostEqual(measured[key], 2 * (height / 3) ** 0.2, delta=1e-12)
        calm = ["urban", "utci", "--ta", "20", "--rh", "50", "--wind", "0.2", "--tmrt", "20"]
        self.assertFalse(self.json_of(*calm)["fitted"])
        self.assertIn("warning: the state is outside of UTCI's fit", run(*calm).stderr)
        self.assertNotIn("warning", run("urban", "utci", *air).stderr)
        self.refuses("urban", "utci", "--ta", "20", "--rh", "50", "--wind", "0", "--tmrt", "20", saying="'0' [--wind]")
        self.refuses("urban", "utci", "--ta", "20", "--rh", "120", "--wind", "1", "--tmrt", "20", saying="'120' [--rh]")
        self.refuses("urban", "pet", "--ta", "20", "--rh", "50", "--wind", "1", saying="--tmrt is missing")
        self.refuses("urban", "pet", *air, "--mass", "0", saying="'0' [--mass]")
        self.refuses("urban", "utci", *air, "--mass", "70", saying="unknown option '--mass'")

    def test_bad_rasters(self):
        svf = ["urban", "svf", "--device", "cpu", "--format", "npy", "--out", self.path("o")]
        self.refuses(*svf, "--dsm", self.dsm, saying="no georeference [%s]: expected a pixel size in metres" % self.dsm)
        self.refuses(*svf, "--dsm", self.dsm, "--pixel-size", "0", saying="[--pixel-size]")
        self.refuses(*svf, "--dsm", self.path("none.npy"), "--pixel-size", "1", saying="none.npy")
        other = npy(self.path("other.npy"), [[0.0] * 5] * 5)
        for option in (["--cdsm", other], ["--dsm-heights", "above-ground", "--dem", other]):
            self.refuses(*svf, "--dsm", self.dsm, *option, "--pixel-size", "1", saying="5 x 5 cells (rows x columns) [%s]: expected 24 x 24" % other)
        with open(self.path("text.npy"), "w") as file:
            file.write("hello")
        self.refuses(*svf, "--dsm", self.path("text.npy"), "--pixel-size", "1", saying="not an .npy file")
        with open(self.dsm, "rb") as file:
            whole = file.read()
        with open(self.path("cut.npy"), "wb") as file:
            file.write(whole[:-10])
        self.refuses(*svf, "--dsm", self.path("cut.npy"), "--pixel-size", "1", saying="cut.npy")

    def test_bad_use_leaves_earlier_files_whole(self):
        out = self.path("o")
        self.json_of("urban", "svf", *self.base, "--out", out)
        before = self.contents(out)
        self.refuses("urban", "svf", *self.base, "--cdsm", npy(self.path("bad.npy"), [[1.0]]), "--out", out)
        self.refuses("urban", "svf", *self.base, "--tile", "x", "--out", out)
        self.assertEqual(before, self.contents(out))

    def test_a_killed_run_leaves_earlier_files_whole_and_is_resumed(self):
        out = self.path("o")
        sample = ["urban", "sample", "--size", "160", "--format", "npy", "--no-pictures", "--out", self.path("city")]
        self.assertEqual(run(*sample).returncode, 0)
        svf = ["urban", "svf", "--dsm", self.path("city", "dsm.npy"), "--cdsm", self.path("city", "cdsm.npy"), "--pixel-size", "1",
               "--device", "interp", "--format", "npy", "--no-pictures", "--patches", "145", "--tile", "16", "--out", out]
        os.makedirs(out)
        with open(os.path.join(out, "svf.npy"), "w") as file:
            file.write("earlier")
        process = subprocess.Popen([PROGRAM, *svf], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tiles = os.path.join(out, ".tiles")
        deadline = time.time() + 120

        def finished():  # The manifest, and tiles that are whole: those under way have a hidden name.
            return [name for name in os.listdir(tiles) if not name.startswith(".")] if os.path.isdir(tiles) else []

        while process.poll() is None and time.time() < deadline and len(finished()) < 4:
            time.sleep(0.02)
        if process.poll() is not None:
            self.skipTest("the run was too quick to be killed")
        process.send_signal(signal.SIGKILL)
        process.wait()
        with open(os.path.join(out, "svf.npy")) as file:
            self.assertEqual(file.read(), "earlier")
        svf[svf.index("interp")] = "cpu"
        self.assertTrue([name for name in os.listdir(out) if name.endswith(".part")], "grids under way")
        done = run(*svf, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        resumed = json.loads(done.stdout)
        self.assertGreater(resumed["tiles"]["resumed"], 0)
        self.assertIn("tiles are taken over from an earlier run", done.stderr)
        self.assertFalse([name for name in os.listdir(out) if name.startswith(".")], "what the killed run left is removed")
        fresh = svf[:-1] + [self.path("fresh")]
        self.assertEqual(self.json_of(*fresh)["tiles"]["resumed"], 0)
        for name in GRIDS:
            with open(os.path.join(out, name + ".npy"), "rb") as a, open(self.path("fresh", name + ".npy"), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)

    INTERRUPTED = ["--lat", "48", "--lon", "8", "--utc-offset", "1", "--patches", "145", "--substeps", "1", "--pixel-size", "1", "--no-pictures"]

    def day(self):
        with open(self.path("w.csv"), "w") as file:
            file.write("time,Ta,RH,wind,Kglobal\n" + "".join(
                "2015-06-%02dT%02d:00,20,50,2,%d\n" % (21 + h // 24, h % 24, 300 if 5 <= h % 24 <= 20 else 0) for h in range(6, 22)))
        return self.path("w.csv")

    @staticmethod
    def interrupted(command, started):
        """What a command reports when Ctrl-C ends it after its start."""
        process = subprocess.Popen([PROGRAM, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        while process.poll() is None and not started(process):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[1]
        if process.returncode != -signal.SIGINT:
            raise AssertionError(f"{process.returncode}: {said}")
        return said

    def test_a_search_of_sites_that_is_interrupted_starts_again(self):
        out = self.path("out")

        def attends(process):
            with open(f"/proc/{process.pid}/status") as file:
                return int(re.search(r"SigCgt:\s*(\w+)", file.read())[1], 16) >> (signal.SIGINT - 1) & 1

        said = self.interrupted(["urban", "plant", "--dsm", self.dsm, "--weather", self.day(), *self.INTERRUPTED, "--device", "cpu", "--trees", "1",
                                 "--species", "3,1,2", "--objective", "mean-utci", "--out", out], attends)
        self.assertRegex(said, r"stopped after \d+ of \d+ parts; the same command starts the search of sites again")
        self.assertFalse(os.path.exists(out))

    def test_a_run_that_is_interrupted_goes_on(self):
        weather = self.day()
        def command(out):
            return ["urban", "run", "--dsm", self.dsm, "--weather", weather, *self.INTERRUPTED, "--device", "interp", "--format", "npy", "--outputs", "tmrt",
                    "--out", out]
        out, whole = self.path("out"), self.path("whole")
        state = os.path.join(out, ".steps", "state.step")
        told = self.interrupted(command(out), lambda process: os.path.exists(state))
        self.assertRegex(told, r"stopped after \d+ of \d+ parts; the same command resumes from there")
        again = run(*command(out))
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertRegex(again.stderr, r"\d+ of 16 steps are taken over")
        self.assertFalse(os.path.exists(os.path.dirname(state)))
        self.assertEqual(run(*command(whole)).returncode, 0)
        for folder, _, names in os.walk(whole):
            for name in names:
                if name != "run.json":
                    file = os.path.relpath(os.path.join(folder, name), whole)
                    self.assertTrue(filecmp.cmp(os.path.join(out, file), os.path.join(whole, file), shallow=False), file)


@unittest.skipUnless(GEOTIFF, "no GDAL here")
class GeoTiff(ProgramTest):
    def asc(self, name, west="700000", size="1"):
        with open(self.path(name), "w") as file:
            file.write(ASC % (4, 3, west, size, "1 2 3 4\n5 6 -9999 8\n9 1 2 3"))
        return self.path(name)

    def test_sample_city_to_geotiff_and_back(self):
        document = self.json_of("urban", "sample", "--size", "40x50", "--seed", "3", "--out", self.path("c"))
        self.assertEqual([g["name"] for g in document["outputs"]], ["dsm", "dem", "cdsm", "tdsm"])
        again = self.json_of("urban", "sample", "--size", "40x50", "--seed", "3", "--out", self.path("c2"))
        self.assertEqual([g["mean"] for g in document["outputs"]], [g["mean"] for g in again["outputs"]])
        shadows = self.json_of("urban", "shadows", "--dsm", self.path("c", "dsm.tif"), "--cdsm", self.path("c", "cdsm.tif"), "--at",
                               "2015-06-21T12:00", "--utc-offset", "1", "--device", "cpu", "--out", self.path("s"))
        self.assertAlmostEqual(shadows["place"]["latitude"], 59.33, delta=0.05)
        self.assertAlmostEqual(shadows["sun"]["altitude"], 54.1, delta=0.5)
        self.refuses("urban", "walls", "--dsm", self.path("c", "dsm.tif"), "--pixel-size", "2", "--out", self.path("x"), saying="as --pixel-size says")

    def tags(self, path):
        """Number to value of the first directory of a little-endian classic TIFF; texts whole, else the first number."""
        with open(path, "rb") as file:
            data = file.read()
        self.assertEqual(data[:4], b"II*\0")
        (at,) = struct.unpack("<I", data[4:8])
        found = {}
        for k in range(struct.unpack("<H", data[at:at + 2])[0]):
            tag, kind, count = struct.unpack("<HHI", data[at + 2 + 12 * k:at + 10 + 12 * k])
            value = data[at + 10 + 12 * k:at + 14 + 12 * k]
            if kind == 2:
                (place,) = struct.unpack("<I", value)
                found[tag] = (value if count <= 4 else data[place:place + count]).rstrip(b"\0").decode()[:count]
            else:
                found[tag] = struct.unpack("<H" if kind == 3 else "<I", value[:2] if kind == 3 else value)[0]
        return found

    def test_geotiffs_say_what_they_hold(self):
        dsm = npy(self.path("dsm.npy"), block())
        city = ["--dsm", dsm, "--pixel-size", "1", "--device", "cpu", "--no-pictures", "--out", self.path("o")]
        self.json_of("urban", "shadows", *city, "--azimuth", "200", "--altitude", "30")
        tags = self.tags(self.path("o", "shadow_buildings.tif"))
        self.assertEqual((tags[258], tags[339] if 339 in tags else 1, tags[42113]), (8, 1, "255"), "bytes, and what marks missing ones")
        self.assertIn("Lockstep", tags[305])
        for text in ("Shadows of buildings", "LOCKSTEP_SUN_AZIMUTH", ">200<", ">30<"):
            self.assertIn(text, tags[42112])
        self.json_of("urban", "svf", *city, "--patches", "145")
        tags = self.tags(self.path("o", "svf_east.tif"))
        self.assertEqual((tags[258], tags[339], tags[42113]), (32, 3, "nan"))
        for text in ("Sky view factor, east half", "share of sky"):
            self.assertIn(text, tags[42112])

    def test_umep_and_back(self):
        rows = block()
        dsm, cdsm = npy(self.path("dsm.npy"), rows), npy(self.path("cdsm.npy"), [[6.0 * (3 <= r < 6 and 9 <= c < 15) for c in range(24)] for r in range(24)])
        city = ["--dsm", dsm, "--cdsm", cdsm, "--pixel-size", "1", "--device", "cpu", "--no-pictures", "--patches", "145", "--save-patches"]
        self.json_of("urban", "svf", *city, "--format", "npy", "--out", self.path("svf"))
        document = self.json_of("urban", "umep", self.path("svf"), "--transmissivity", "0.2", "--out", self.path("umep"))
        self.assertTrue(os.path.exists(self.path("umep", "SkyViewFactor.qml")), "the style next to the GeoTIFF")
        self.assertEqual((document["rows"], document["cols"], document["patches"]), (24, 24, 145))
        self.assertEqual(sorted(os.path.basename(f) for f in document["files"]), ["SkyViewFactor.tif", "shadowmats.npz", "svfs.zip"])
        with zipfile.ZipFile(self.path("umep", "svfs.zip")) as file:
            self.assertIsNone(file.testzip())
            self.assertEqual(set(file.namelist()), {"svf%s%s.tif" % (half, kind) for half in ("", "E", "S", "W", "N") for kind in ("", "veg", "aveg")})
        # (1, 1, ·) sky, (1, 0, 1) plant, (0, ·, 1) building, (0, ·, 0) plant before a building; rows, columns, patches.
        with zipfile.ZipFile(self.path("umep", "shadowmats.npz")) as file:
            mats = {}
            for name in ("shadowmat", "vegshadowmat", "vbshmat"):
                data = file.read(name + ".npy")
                self.assertIn(b"(24, 24, 145)", data[:128])
                mats[name] = data[-24 * 24 * 145:]
        seen = set(zip(mats["shadowmat"], mats["vegshadowmat"], mats["vbshmat"]))
        self.assertEqual(seen, {(1, 1, 1), (1, 0, 1), (0, 1, 1), (0, 1, 0)})
        roof = (10 * 24 + 11) * 145  # above all
        self.assertEqual(set(mats["shadowmat"][roof:roof + 145]), {1})
        self.refuses("urban", "umep", self.path("umep", "svfs.zip"), "--transmissivity", "0.1", "--out", self.path("b"), saying="--transmissivity")
        self.refuses("urban", "umep", self.path("svf"), "--format", "npy", "--out", self.path("b"), saying="--format")
        self.refuses("urban", "umep", self.path("svf"), "--out", self.path("svf"), saying="holds the input")
        self.refuses("urban", "umep", self.path("none"), "--out", self.path("b"), saying="no svf.tif or .npy")
        self.refuses("urban", "umep", self.path("none.zip"), "--out", self.path("b"), saying="no such file")
        back = self.json_of("urban", "umep", self.path("umep", "svfs.zip"), "--format", "npy", "--out", self.path("back"))
        self.assertEqual(back["patches"], 145)
        for grid in GRIDS:
            self.assertEqual(read_npy(self.path("back", grid + ".npy")), read_npy(self.path("svf", grid + ".npy")))
        states = lambda folder: zipfile.ZipFile(self.path(folder, "sky_states.npz")).read("states.npy")
        self.assertEqual(states("back"), states("svf"))
        total = self.json_of("urban", "umep", self.path("svf"), "--transmissivity", "1", "--out", self.path("clear"))
        self.assertEqual(total["patches"], 145)
        with open(self.path("umep", "shadowmats.npz"), "wb") as file:
            file.write(b"no archive")
        self.refuses("urban", "umep", self.path("umep", "svfs.zip"), "--out", self.path("b"), saying="shadowmats.npz")

    def sample(self, epsg):
        self.json_of("urban", "sample", "--size", "48", "--epsg", epsg, "--no-pictures", "--out", self.path(str(epsg)))
        return ["urban", "shadows", "--dsm", self.path(str(epsg), "dsm.tif"), "--device", "cpu", "--no-pictures", "--format", "npy"]

    def test_north_and_scale_of_the_projection(self):
        time = ["--at", "2015-06-21T12:00+02:00", "--out", self.path("s")]
        document = self.json_of(*self.sample(3006), *time)
        # pyproj's meridian convergence at that place.
        self.assertAlmostEqual(document["place"]["convergence"], 2.631014, delta=1e-5)
        self.assertAlmostEqual(document["sun"]["azimuth"] - document["sun"]["grid_azimuth"], 2.631014, delta=1e-5)
        self.assertNotIn("projection_scale", document, "0.99997 is 1")
        mercator = self.sample(3857)
        document = self.json_of(*mercator, *time)
        self.assertAlmostEqual(document["projection_scale"], 1.58, delta=0.002)
        self.assertEqual(document["pixel_size"], 1)
        # The same heights without a place, their pixels as long as on the ground.
        self.json_of("urban", "sample", "--size", "48", "--format", "npy", "--no-pictures", "--out", self.path("plain"))
        angles = ["--azimuth", document["sun"]["grid_azimuth"], "--altitude", document["sun"]["altitude"]]
        for out, dsm in (("a", mercator[3:4]), ("b", [self.path("plain", "dsm.npy"), "--pixel-size", 1 / document["projection_scale"]]),
                         ("c", [self.path("plain", "dsm.npy"), "--pixel-size", 1])):
            self.json_of("urban", "shadows", "--dsm", *dsm, *angles, "--device", "cpu", "--no-pictures", "--format", "npy", "--out", self.path(out))
        grids = [read_npy(self.path(out, "shadow_buildings.npy")) for out in "abc"]
        self.assertEqual(grids[0], grids[1])
        self.assertNotEqual(grids[0], grids[2], "the scale matters")
        self.refuses(*self.sample(3035), *time, saying="its projection stretches lengths")

    def test_grids_that_do_not_match(self):
        svf = ["urban", "svf", "--device", "cpu", "--format", "npy", "--out", self.path("o"), "--dsm", self.asc("a.asc")]
        self.refuses(*svf, "--cdsm", self.asc("b.asc", west="700001"), saying="b.asc]: expected corner 700000")
        self.refuses(*svf, "--cdsm", self.asc("c.asc", size="2"), saying="pixels 2 x 2")
        self.assertEqual(run(*svf, "--cdsm", self.asc("d.asc")).returncode, 0)
        unused = run(*svf, "--dem", self.asc("c.asc", size="2"))
        self.assertEqual(unused.returncode, 0, "a DEM that is not needed stops nothing")
        self.assertIn("c.asc is not needed", unused.stderr)

    def test_degrees_and_broken_files(self):
        with open(self.path("deg.asc"), "w") as file:
            file.write(ASC % (2, 2, "12", "0.001", "1 2\n3 4"))
        with open(self.path("deg.prj"), "w") as file:
            file.write('GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]')
        walls = ["urban", "walls", "--device", "cpu", "--out", self.path("o"), "--dsm"]
        self.refuses(*walls, self.path("deg.asc"), saying="degrees [%s]: expected a projected CRS in metres" % self.path("deg.asc"))
        with open(self.path("text.tif"), "w") as file:
            file.write("hello")
        self.refuses(*walls, self.path("text.tif"), saying="text.tif]: expected a raster")
        self.refuses(*walls, self.path("none.tif"), saying="the file does not exist")
        self.refuses(*walls, self.folder, saying=self.folder)


if __name__ == "__main__":
    unittest.main()
