"""What is made of runs: `urban compare` and `urban stats`; `urban plant` and `urban sun`."""
import collections
import csv
import json
import os
import pathlib
import re
import sqlite3
import struct
import subprocess
import unittest

from test_planner_day import Picture
from program import PROGRAM, ProgramTest, npy, read_npy, run

HOURS = "".join(f"2026-06-21T{h:02}:00,{20 + h / 2},45,2,{k}\n" for h, k in ((12, 780), (13, 800), (14, 760)))


def polygon(*rings):
    """As WKB."""
    body = struct.pack("<BII", 1, 3, len(rings))
    for ring in rings:
        body += struct.pack("<I", len(ring)) + b"".join(struct.pack("<dd", *corner) for corner in ring)
    return body


def geopackage(path, name, body, srs):
    """A GeoPackage with one shape, given as WKB, without GDAL."""
    blob = b"GP" + struct.pack("<BBi", 0, 1, srs) + body
    base = sqlite3.connect(path)
    base.executescript("""
        PRAGMA application_id = 0x47504B47; PRAGMA user_version = 10300;
        CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
            organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
        CREATE TABLE gpkg_contents (table_name TEXT PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE, description TEXT DEFAULT '',
            last_change DATETIME NOT NULL DEFAULT '2026-01-01T00:00:00.000Z', min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER);
        CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL,
            srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL, PRIMARY KEY (table_name, column_name));
        CREATE TABLE districts (fid INTEGER PRIMARY KEY, geom BLOB, name TEXT);
        """)
    base.execute("INSERT INTO gpkg_spatial_ref_sys VALUES (?, ?, 'EPSG', ?, ?, '')", ("of the test", srs, srs, f"EPSG:{srs}"))
    base.execute("INSERT INTO gpkg_contents (table_name, data_type, identifier, srs_id) VALUES ('districts', 'features', 'districts', ?)", (srs,))
    base.execute("INSERT INTO gpkg_geometry_columns VALUES ('districts', 'geom', 'GEOMETRY', ?, 0, 0)", (srs,))
    base.execute("INSERT INTO districts VALUES (1, ?, ?)", (blob, name))
    base.commit()
    base.close()


def geotiff(path, epsg, west, north, cell, side, codes=None):
    """A GeoTIFF of red, green and blue, stripes that run from west to east, or of one band of bytes, without GDAL."""
    rows = b"".join(map(bytes, codes)) if codes else b"".join(bytes((200, 40, 40) if y // 8 % 2 else (40, 40, 200)) * side for y in range(side))
    bands = len(rows) // side // side
    keys = struct.pack("<16H", 1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, epsg)
    tables = [struct.pack("<3H", 8, 8, 8), struct.pack("<3d", cell, cell, 0), struct.pack("<6d", 0, 0, 0, west, north, 0), keys]
    places = [8 + len(rows)]
    for table in tables:
        places.append(places[-1] + len(table))
    entries = [(256, 3, 1, side), (257, 3, 1, side), (258, 3, bands, places[0] if codes is None else 8), (259, 3, 1, 1), (262, 3, 1, bands // 2 + 1), (273, 4, 1, 8), (277, 3, 1, bands), (278, 3, 1, side),
               (279, 4, 1, len(rows)), (33550, 12, 3, places[1]), (33922, 12, 6, places[2]), (34735, 3, 16, places[3])]
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    with open(path, "wb") as file:
        file.write(b"II*\0" + struct.pack("<I", places[4]) + rows + b"".join(tables) + directory)


class UrbanResultsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        done = run("urban", "sample", "--size", "48", "--format", "tif", "--no-pictures", "--quiet", "--out", self.path("city"))
        if done.returncode and "GDAL" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("weather.csv"), "w") as file:
            file.write("time,Ta,RH,wind,Kglobal\n" + HOURS)

    def day(self, name, *more):
        done = run("urban", "run", "--dsm", self.path("city", "dsm.tif"), "--dem", self.path("city", "dem.tif"), "--weather", self.path("weather.csv"),
                   "--utc-offset", "1", "--patches", "145", "--substeps", "1", "--no-pictures", "--device", "cpu,interp", "--format", "npy", "--quiet",
                   "--out", self.path(name), *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(name)

    def document(self, *arguments):
        done = run("urban", *arguments, "--quiet", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_trees_before_and_after(self):
        bare = self.day("bare")
        green = self.day("green", "--cdsm", self.path("city", "cdsm.tif"))
        change = self.document("compare", bare, green, "--out", self.path("change"))
        self.assertEqual({d["option"] for d in change["differences"]}, {"cdsm", "leaf-days"})
        tmrt = next(s for s in change["summaries"] if s["name"] == "tmrt_mean")
        self.assertLess(tmrt["mean_change"], -0.5, "trees cool")
        classes = change["stress"][0]["classes"]
        self.assertAlmostEqual(sum(c["before_m2"] for c in classes), change["compared_m2"], delta=1e-6)
        self.assertAlmostEqual(sum(c["after_percent"] for c in classes), 100, delta=1e-9)
        with open(self.path("change", "run.json")) as file:
            record = json.load(file)
        self.assertEqual(record["command"], "lockstep urban compare")
        self.assertIn("compare.html", [o["path"] for o in record["outputs"]])
        self.assertIn(os.path.join(bare, "run.json"), [i["path"] for i in record["inputs"]])
        again = run("reproduce", self.path("change"), "--quiet", "--json")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        same = self.document("compare", bare, bare, "--out", self.path("none"))
        self.assertTrue(all(s["mean_change"] == 0 for s in same["summaries"]))
        with open(self.path("none", "tmrt_mean_change.qml")) as file:
            ends = re.search('minimumValue="(.*?)" maximumValue="(.*?)"', file.read())
        self.assertEqual(ends.groups(), ("-1", "1"), "no change has the colour of the middle")

    def test_own_bounds_and_hours(self):
        """Summaries of own bounds and of hours of the day, by the grids of the steps."""
        day = self.day("day", "--threshold", "utci>31,tmrt<50,utci>32", "--hours", "12-14")
        steps = {name: [read_npy(self.path("day", name, f"{name}_20260621T{h}00.npy")) for h in (13, 14)] for name in ("utci", "tmrt")}
        for grid, name, holds in (("utci_hours_above_31", "utci", lambda v: v > 31), ("utci_hours_above_32", "utci", lambda v: v > 32),
                                  ("tmrt_hours_below_50", "tmrt", lambda v: v < 50)):
            found = read_npy(self.path("day", "summary", grid + ".npy"))
            self.assertEqual(found, [[sum(holds(step[r][c]) for step in steps[name]) for c in range(48)] for r in range(48)], grid)
        highest = read_npy(self.path("day", "summary", "utci_max.npy"))
        self.assertEqual(highest, [[max(step[r][c] for step in steps["utci"]) for c in range(48)] for r in range(48)])
        self.assertEqual(run("reproduce", day, "--quiet").returncode, 0)
        for more, part in ((("--threshold", "pet>35"), "no output 'pet' in the run"), (("--threshold", "utci"), "no bound 'utci'"),
                           (("--hours", "2-5"), "no step from 2 to 5"), (("--hours", "5-2"), "FROM-TO")):
            done = run("urban", "run", "--dsm", self.path("city", "dsm.tif"), "--weather", self.path("weather.csv"), "--utc-offset", "1", "--quiet", *more, "--out",
                       self.path("refused"))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)
            self.assertIn(more[0], done.stderr)
            self.assertFalse(os.path.exists(self.path("refused")))

    def test_one_page_for_all_of_it(self):
        bare = self.day("bare", "--place", "Sample <city>", "--scenario", "without trees")
        green = self.day("green", "--cdsm", self.path("city", "cdsm.tif"), "--place", "Sample <city>", "--scenario", "with trees")
        done = run("urban", "compare", bare, green, "--format", "tif", "--out", self.path("change"), "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(re.findall("^tmrt_mean ", done.stdout, re.M)), 1, done.stdout)
        with open(self.path("change", "compare.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("without trees", page)
        with open(self.path("change", "tmrt_mean_change.png"), "rb") as file:
            self.assertIn(b"with trees compared with without trees", file.read())
        with open(self.path("change", "classes.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["index"] for row in rows}, {"UTCI"})
        with open(self.path("areas.csv"), "w") as file:
            file.write("area,output,mean\nsquare,utci,30\n")
        page = self.path("all.html")
        self.assertEqual(run("report", green, "--compared", self.path("change"), "--areas", self.path("areas.csv"), "--out", page).returncode, 0)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for part in ("<h2>Before and after</h2>", "<h2>Maps of the change</h2>", "<h2>Areas</h2>", "Mean radiant temperature, mean, change", "Sample &lt;city&gt;"):
            self.assertIn(part, text)
        for more, part in (((green, "--compared", self.path("city")), "no summaries.csv"), ((green, "--compared", self.path("none")), "no such folder"),
                           ((green, "--areas", self.path("weather.csv")), "no column 'area'"), ((self.path("change"), "--areas", self.path("areas.csv")), "urban run")):
            done = run("report", *more, "--out", self.path("no.html"))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)
            self.assertFalse(os.path.exists(self.path("no.html")))

    def test_roofs_and_water_of_the_land_cover(self):
        """Maps of a change have a colour for each, statistics a name for each class; the manual has the same names."""
        cover = [[7 if row < 12 else 5 if column < 24 else 1 for column in range(48)] for row in range(48)]
        geotiff(self.path("cover.tif"), 3006, 674000, 6580000, 1, 48, cover)
        first = self.day("first", "--land-cover", self.path("cover.tif"))
        second = self.day("second", "--land-cover", self.path("cover.tif"), "--cdsm", self.path("city", "cdsm.tif"))
        self.document("compare", first, second, "--out", self.path("change"))
        ground = read_npy(self.path("first", "ground.npy"))
        picture = Picture(self.path("change", "tmrt_mean_change.png"))
        inks = collections.Counter(picture.at(x, y) for y in range(0, picture.height, 4) for x in range(0, picture.width, 4))
        self.assertGreater(inks[bytes((178, 186, 198))], 1000, "water")
        self.assertGreater(inks[bytes((228, 226, 222))], 1000, "roofs")
        self.assertEqual(sum(ground[row][column] for row in range(12) for column in range(48)), 0)
        with open(self.path("a.csv"), "w") as file:
            file.write('name,wkt\na,"POLYGON ((673900 6579900, 674200 6579900, 674200 6580100, 673900 6580100))"\n')
        found = self.document("stats", first, "--areas", self.path("a.csv"), "--areas-crs", "EPSG:3006", "--by", "land-cover", "--include-roofs",
                              "--out", self.path("t.csv"))
        groups = {row["group"] for row in found["rows"]}
        self.assertEqual(groups, {"1 asphalt", "5 grass", "7 water"})
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "urban.md"), encoding="utf-8") as file:
            named = re.search(r"`--land-cover` \| (.*) \|", file.read())[1]
        self.assertIn(f"({named})", run("urban", "run", "--help").stdout.replace("\n", " "))
        self.assertLessEqual(groups, set(named.split(", ")))

    def test_another_preset_is_no_scenario(self):
        first, second = self.day("first"), self.day("second", "--preset", "umep")
        done = run("urban", "compare", first, second, "--out", self.path("change"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("the runs differ in preset (corrected and umep)", done.stderr)
        self.assertIn("--differing preset", done.stderr)
        self.assertFalse(os.path.exists(self.path("change")))
        self.document("compare", first, second, "--differing", "preset", "--out", self.path("change"))

    def test_a_district_of_a_geopackage(self):
        day = self.day("day")
        with open(self.path("far.csv"), "w") as file:
            file.write('name,wkt\nfar,"POLYGON ((0 0, 1 0, 1 1, 0 0))"\n')
        done = run("urban", "stats", day, "--areas", self.path("far.csv"), "--areas-crs", "EPSG:3006", "--out", self.path("t.csv"))
        self.assertEqual(done.returncode, 2)
        left, bottom = (float(part.split()[2]) for part in done.stderr.split("expected ")[1].split(", ")[:2])
        square = [(left, bottom), (left + 20, bottom), (left + 20, bottom + 20), (left, bottom + 20), (left, bottom)]
        geopackage(self.path("districts.gpkg"), "harbour", polygon(square), 3006)
        found = self.document("stats", day, "--areas", self.path("districts.gpkg"), "--id", "name", "--include-roofs", "--per", "hour,period",
                              "--threshold", "utci>20", "--out", self.path("table.csv"))
        self.assertEqual({r["area"] for r in found["rows"]}, {"harbour"})
        for row in found["rows"]:
            self.assertAlmostEqual(row["m2"], 400, delta=1e-6)
        utci = next(r for r in found["rows"] if r["output"] == "utci" and r["time"] == "all")
        self.assertAlmostEqual(utci["thresholds"]["utci>20"]["hours"], 3, delta=1e-9)
        with open(self.path("table.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(found["rows"]))
        self.assertEqual(rows[0]["area"], "harbour")

        self.document("stats", day, "--areas", self.path("districts.gpkg"), "--id", "name", "--include-roofs", "--per", "hour,period", "--threshold",
                      "utci>20", "--out", self.path("table.gpkg"))
        base = sqlite3.connect(self.path("table.gpkg"))
        self.addCleanup(base.close)
        wide = base.execute('SELECT area, time, utci_m2, utci_mean, tmrt_p95, "utci>20 h", geom FROM statistics ORDER BY time').fetchall()
        long = {(r["output"], r["time"]): r for r in rows}
        self.assertEqual([w[1] for w in wide], sorted({r["time"] for r in rows}))
        for area, time, m2, mean, p95, hours, shape in wide:
            self.assertEqual(area, "harbour")
            self.assertEqual([f"{value:.9g}" for value in (m2, mean, hours)], [long["utci", time][name] for name in ("m2", "mean", "utci>20 h")])
            self.assertEqual(f"{p95:.9g}", long["tmrt", time]["p95"])
            self.assertIn(struct.pack("<dd", *square[2]), shape)
        self.assertEqual(base.execute("SELECT srs_id FROM gpkg_geometry_columns").fetchall(), [(3006,)])

        geopackage(self.path("places.gpkg"), "quay", struct.pack("<BIdd", 1, 1, left + 5.5, bottom + 5.5), 3006)
        points = self.document("run", "--dsm", self.path("city", "dsm.tif"), "--weather", self.path("weather.csv"), "--utc-offset", "1", "--from",
                               "2026-06-21T14:00", "--sky", "isotropic", "--substeps", "1", "--no-pictures", "--format", "npy", "--device", "cpu,interp",
                               "--poi", self.path("places.gpkg"), "--out", self.path("place"))["points"]
        self.assertEqual((points[0]["id"], points[0]["row"], points[0]["col"]), ("quay", 42, 5))

    def test_the_guide_runs(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "urban-results.md"), encoding="utf-8") as file:
            blocks = re.findall(r"^```sh\n(.*?)^```", file.read(), re.S | re.M)
        self.assertEqual(len(blocks), 5)
        script = "set -e\nlockstep() { \"$LOCKSTEP_PROGRAM\" \"$@\" --quiet > /dev/null; }\n" + "".join(blocks)
        done = subprocess.run(["bash", "-c", script], cwd=self.path("city"), env={**os.environ, "LOCKSTEP_PROGRAM": PROGRAM}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("change/compare.html", "change/tmrt_mean_change.tif", "table.csv", "trees/trees.gpkg", "trees/cdsm.qml", "trees/tdsm.qml", "sun/sun_hours.tif", "sun/sun_hours_buildings.png",
                     "daylight/facades.gpkg", "daylight/sun_grade.png", "daylight/sun_grade.qml"):
            self.assertTrue(os.path.exists(self.path("city", name)), name)

    def test_areas_without_a_system_and_unknown_thresholds(self):
        day = self.day("day")
        with open(self.path("a.csv"), "w") as file:
            file.write('name,wkt\na,"POLYGON ((0 0, 1 0, 1 1, 0 0))"\n')
        for more, part in (((), "--areas-crs such as EPSG:3006"), (("--areas-crs", "EPSG:3006", "--threshold", "heat>3"), "no output 'heat' in the run")):
            done = run("urban", "stats", day, "--areas", self.path("a.csv"), "--out", self.path("t.csv"), *more)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)
            self.assertFalse(os.path.exists(self.path("t.csv")))

    def plant(self, *more, out="trees"):
        return run("urban", "plant", "--dsm", self.path("city", "dsm.tif"), "--dem", self.path("city", "dem.tif"), "--cdsm", self.path("city", "cdsm.tif"),
                   "--weather", self.path("weather.csv"), "--utc-offset", "1", "--patches", "145", "--substeps", "1", "--device", "cpu,interp", "--quiet", "--json",
                   "--out", self.path(out), *more)

    def test_trees_are_planted_and_compared(self):
        done = self.plant("--trees", "2", "--species", "6,2,4", "--spacing", "8", "--objective", "mean-utci", "--format", "npy")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([t["total"] for t in found["trees"]][-1], sum(t["gain"] for t in found["trees"]))
        self.assertGreaterEqual(found["trees"][0]["gain"], found["trees"][1]["gain"])
        self.assertAlmostEqual(found["before"] - found["after"], found["trees"][-1]["total"], delta=1e-6)
        with open(self.path("trees", "curve.csv"), newline="") as file:
            self.assertEqual([float(r["gain"]) for r in csv.DictReader(file)], [float(f"{t['gain']:.9g}") for t in found["trees"]])
        base = sqlite3.connect(self.path("trees", "trees.gpkg"))
        self.addCleanup(base.close)
        self.assertEqual(base.execute("SELECT tree, gain, height FROM trees").fetchall(), [(k + 1, t["gain"], 6) for k, t in enumerate(found["trees"])])
        places = {row[0]: row[1] for row in base.execute("SELECT tree, geom FROM candidates WHERE tree > 0")}
        for k, tree in enumerate(found["trees"]):
            self.assertTrue(places[k + 1].endswith(struct.pack("<dd", tree["x"], tree["y"])))
        self.assertEqual(base.execute("SELECT COUNT(*) FROM candidates").fetchone()[0], len(found["candidates"]))
        again = self.plant("--trees", "2", "--species", "6,2,4", "--spacing", "8", "--objective", "mean-utci", "--search", "lazy", "--no-before-after", out="lazy")
        self.assertEqual(json.loads(again.stdout)["trees"], found["trees"])
        for name in ("cdsm.tif", "tdsm.tif", "before/run.json", "after/run.json", "compare/compare.html", "curve.png"):
            self.assertTrue(os.path.exists(self.path("trees", name)), name)

    def test_trees_that_have_no_place(self):
        for name, wkt in (("far", "POLYGON ((0 0, 1 0, 1 1, 0 0))"), ("bow", "POLYGON ((0 0, 9 9, 9 0, 0 9, 0 0))")):
            with open(self.path(name + ".csv"), "w") as file:
                file.write(f'wkt\n"{wkt}"\n')
        tree = ("--trees", "1", "--species", "6,2,4")
        for species, part in (("10,3", "height,trunk,crown"), ("10,3,6,1", "height,trunk,crown"), ("oak", "height,trunk,crown"), ("nan,1,2", "height,trunk,crown"),
                              ("0,0,2", "above 0 and at most 130 m"), ("131,1,2", "above 0 and at most 130 m"), ("10,-1,6", "0 for a bush"),
                              ("10,3,0", "above 0 and at most 100 m"), ("10,3,101", "above 0 and at most 100 m")):
            done = self.plant("--trees", "1", "--species", species)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, json.loads(done.stdout)["error"]["expected"])
        self.assertIn("--species", self.plant("--trees", "1").stderr)
        for more, part in ((("--trees", "0", "--species", "6,2,4"), "--trees"), (("--trees", "1", "--species", "6,7,4"), "a crown from 7 m up whose top is at 6 m"),
                           ((*tree, "--allowed", self.path("far.csv")), "--areas-crs such as EPSG:3006"),
                           ((*tree, "--allowed", self.path("far.csv"), "--areas-crs", "EPSG:3006"), "all areas lie outside of the raster"),
                           ((*tree, "--allowed", self.path("bow.csv"), "--areas-crs", "EPSG:3006"), "bow.csv"),
                           (("--trees", "1", "--species", "60,2,60"), "no room for a tree"), ((*tree, "--objective", "shade"), "hours>BOUND")):
            done = self.plant(*more)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, json.loads(done.stdout)["error"]["what"] + done.stderr)
            self.assertFalse(os.path.exists(self.path("trees")))

    def test_leaves_of_trees_where_there_are_none_yet(self):
        """Bare trees shade less. `urban run` still refuses days with leaves for a city without plants."""
        gains = []
        for days in ("100:300", "300:310"):
            done = run("urban", "plant", "--dsm", self.path("city", "dsm.tif"), "--dem", self.path("city", "dem.tif"), "--weather", self.path("weather.csv"), "--to",
                       "2026-06-21T12:00", "--utc-offset", "1", "--patches", "145", "--substeps", "1", "--trees", "1", "--species", "6,2,4", "--spacing", "24",
                       "--objective", "mean-utci", "--leaf-days", days, "--no-before-after", "--no-pictures", "--device", "cpu,interp", "--quiet", "--json", "--out",
                       self.path("trees" + days[:3]))
            self.assertEqual(done.returncode, 0, done.stderr)
            gains.append(json.loads(done.stdout)["trees"][0]["gain"])
        self.assertLess(gains[1], 0.95 * gains[0])
        done = run("urban", "run", "--dsm", self.path("city", "dsm.tif"), "--weather", self.path("weather.csv"), "--utc-offset", "1", "--leaf-days", "1:9", "--out",
                   self.path("no"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected --cdsm too", done.stderr)

    def test_hours_of_sun(self):
        sun = self.document("sun", "--dsm", self.path("city", "dsm.tif"), "--cdsm", self.path("city", "cdsm.tif"), "--date", "2026-03-21", "--minutes", "30",
                            "--device", "cpu,interp", "--out", self.path("sun"))
        self.assertEqual([g["name"] for g in sun["outputs"]], ["sun_hours", "sun_hours_buildings"])
        self.assertAlmostEqual(sun["possible_hours"], 12, delta=0.6)
        self.assertLess(sun["outputs"][0]["mean"], sun["outputs"][1]["mean"])
        self.assertAlmostEqual(sun["outputs"][1]["max"], sun["possible_hours"], delta=1e-5)

    def test_facades_and_a_rule(self):
        """Lines lie along the faces of buildings, bands add up to their walls, grades follow from hours."""
        sun = self.document("sun", "--dsm", self.path("city", "dsm.tif"), "--dem", self.path("city", "dem.tif"), "--cdsm", self.path("city", "cdsm.tif"),
                            "--rule", "en17037", "--facades", "--minutes", "30", "--device", "cpu,interp", "--out", self.path("sun"))
        self.assertEqual([g["name"] for g in sun["outputs"]], ["sun_hours", "sun_hours_buildings", "sun_grade", "sun_grade_buildings", "ground"])
        self.assertLess(sun["outputs"][1]["mean"], self.document("sun", "--dsm", self.path("city", "dsm.tif"), "--dem", self.path("city", "dem.tif"), "--rule",
                        "en17037", "--minutes", "30", "--include-roofs", "--device", "cpu,interp", "--out", self.path("all"))["outputs"][1]["mean"], "roofs are sunny")
        for kind in ("ground_percent", "facade_percent", "facade_percent_buildings"):
            self.assertAlmostEqual(sum(grade[kind] for grade in sun["rule"]["grades"]), 100, delta=1e-6)
        base = sqlite3.connect(sun["facades"]["file"])
        self.addCleanup(base.close)
        walls = base.execute("SELECT wall, height, area, hours, least_hours, grade, geom FROM facades ORDER BY wall").fetchall()
        self.assertEqual(len(walls), sun["facades"]["walls"])
        for wall, height, area, hours, least, grade, geom in walls:
            bands = base.execute("SELECT bottom, top, area, hours FROM bands WHERE wall = ? ORDER BY band", (wall,)).fetchall()
            self.assertAlmostEqual(bands[-1][1] - bands[0][0], height, delta=1e-5)
            self.assertAlmostEqual(sum(band[2] for band in bands), area, delta=1e-6)
            self.assertAlmostEqual(sum(band[3] for band in bands) / len(bands), hours, delta=1e-6)
            self.assertEqual(min(band[3] for band in bands), least)
            self.assertEqual(grade, sum(least >= hours for hours in (1.5, 3, 4)))
            x0, y0, x1, y1 = struct.unpack("<dddd", geom[-32:])
            self.assertAlmostEqual(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5 * height, area, delta=1e-6)
            # On one axis the middle is on a border of pixels: the corner of the sample city is at whole metres.
            self.assertLess(min(abs((a + b) / 2 - round((a + b) / 2)) for a, b in ((x0, x1), (y0, y1))), 1e-6)
        self.assertEqual(base.execute("SELECT COUNT(*) FROM bands").fetchone()[0], sun["facades"]["bands"])
        self.assertEqual(base.execute("SELECT geometry_type_name, srs_id FROM gpkg_geometry_columns").fetchall(), [("LINESTRING", 3006)] * 2)

    def test_shares_of_a_rule_without_walls(self):
        """Flat ground has no facades and a roof everywhere no ground: there is no share of either."""
        npy(self.path("flat.npy"), [[20.0] * 24 for _ in range(24)])
        npy(self.path("below.npy"), [[0.0] * 24 for _ in range(24)])
        done = run("urban", "sun", "--dsm", self.path("flat.npy"), "--dem", self.path("below.npy"), "--pixel-size", "1", "--latitude", "57.7", "--longitude", "12",
                   "--rule", "en17037", "--facades", "--minutes", "60", "--no-pictures", "--device", "cpu,interp", "--out", self.path("sun"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("nan %", done.stdout)
        self.assertEqual(len(re.findall(r"ground +- \(without plants +-\), facades +- \( +-\)", done.stdout)), 4, done.stdout)

    def test_shares_of_a_city_that_memory_does_not_hold(self):
        """Read tile by tile: the DEM leaves the roofs out as in memory, and the grids are the same."""
        done = run("urban", "sample", "--size", "4096", "--format", "npy", "--no-pictures", "--quiet", "--out", self.path("large"))
        self.assertEqual(done.returncode, 0, done.stderr)
        sun = ("sun", "--dsm", self.path("large", "dsm.npy"), "--pixel-size", "1", "--latitude", "52", "--longitude", "12", "--rule", "bre209", "--least-altitude", "37",
               "--minutes", "60", "--max-reach", "40", "--format", "npy", "--no-pictures", "--device", "cpu,interp")
        dem = ("--dem", self.path("large", "dem.npy"))
        found = {name: self.document(*sun, *more, "--out", self.path(name))
                 for name, more in (("all", ()), ("held", dem), ("read", (*dem, "--memory", "150M")))}
        self.assertEqual(found["held"]["tiles"]["tiles"], 1)
        self.assertGreater(found["read"]["tiles"]["tiles"], 1)
        self.assertEqual(found["read"]["rule"], found["held"]["rule"])
        self.assertNotEqual(found["held"]["rule"], found["all"]["rule"])
        self.assertNotIn("warnings", found["read"])
        for name in ("sun_hours.npy", "sun_grade.npy"):
            self.assertEqual(*(pathlib.Path(self.path(run, name)).read_bytes() for run in ("held", "read")))

    def test_maps_over_a_basemap(self):
        """Pictures of every kind change with a basemap, grids do not; one that does not fit is refused before anything is made."""
        sun = ("sun", "--dsm", self.path("city", "dsm.tif"), "--date", "2026-03-21", "--minutes", "60", "--format", "npy", "--device", "cpu,interp")

        def both(*names):
            return [pathlib.Path(self.path(name, *names)).read_bytes() for name in ("plain", "over")]

        def refused(epsg, west, north, part):
            geotiff(self.path("map.tif"), epsg, west, north, 0.5, 120)
            done = run("urban", *sun, "--basemap", self.path("map.tif"), "--out", self.path("no"))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)
            self.assertFalse(os.path.exists(self.path("no")))
            return done.stderr

        far = refused(3006, 0, 60, "it covers x from 0 to 60, y from 0 to 60")
        west, north = (float(re.search(axis, far)[1]) for axis in (r"part of x from (\S+)", r"part of .* to ([\d.]+), the extent"))
        refused(25832, west, north, "another coordinate reference system")
        geotiff(self.path("map.tif"), 3006, west - 3, north + 3, 0.5, 120)
        over = ("--basemap", self.path("map.tif"))
        self.day("noon", "--to", "2026-06-21T12:00", "--sky", "isotropic", "--cdsm", self.path("city", "cdsm.tif"))
        for name, more in (("plain", ()), ("over", over)):
            self.document(*sun, *more, "--out", self.path(name, "sun"))
            self.document("run", "--dsm", self.path("city", "dsm.tif"), "--dem", self.path("city", "dem.tif"), "--weather", self.path("weather.csv"), "--utc-offset",
                          "1", "--sky", "isotropic", "--patches", "145", "--substeps", "1", "--no-video", "--format", "npy", "--to", "2026-06-21T12:00", "--device", "cpu,interp", *more,
                          "--out", self.path(name, "day"))
            self.document("compare", self.path("plain", "day"), self.path("noon"), *more, "--out", self.path(name, "change"))
        pictures = [os.path.relpath(os.path.join(place, file), self.path("plain")) for place, _, files in os.walk(self.path("plain")) for file in files
                    if file.endswith(".png")]
        self.assertGreater(len(pictures), 5)
        for picture in pictures:
            self.assertNotEqual(*both(picture), picture)
        self.assertEqual(*both("sun", "sun_hours.npy"))
        with open(self.path("over", "sun", "run.json")) as file:
            self.assertIn(self.path("map.tif"), [i["path"] for i in json.load(file)["inputs"]])

    def test_rules_of_daylight_that_are_refused(self):
        for more, part in ((("--rule", "tno-light", "--date", "2026-03-21"), "which names its own"), (("--rule", "en17037", "--date", "2026-06-21"), "02-01 to 03-21"),
                           (("--date", "2026-03-21", "--floor-height", "4"), "--facades too"), (("--rule", "bre208"), "bre209")):
            done = run("urban", "sun", "--dsm", self.path("city", "dsm.tif"), "--device", "cpu,interp", "--out", self.path("sun"), *more)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)
            self.assertFalse(os.path.exists(self.path("sun")))


if __name__ == "__main__":
    unittest.main()
