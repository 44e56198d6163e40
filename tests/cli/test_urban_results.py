"""What is made of runs: `urban compare` and `urban stats`; and `urban sun`."""
import csv
import json
import os
import re
import sqlite3
import struct
import subprocess
import unittest

from program import PROGRAM, ProgramTest, run

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

        geopackage(self.path("places.gpkg"), "quay", struct.pack("<BIdd", 1, 1, left + 5.5, bottom + 5.5), 3006)
        points = self.document("run", "--dsm", self.path("city", "dsm.tif"), "--weather", self.path("weather.csv"), "--utc-offset", "1", "--from",
                               "2026-06-21T14:00", "--sky", "isotropic", "--substeps", "1", "--no-pictures", "--format", "npy", "--device", "cpu,interp",
                               "--poi", self.path("places.gpkg"), "--out", self.path("place"))["points"]
        self.assertEqual((points[0]["id"], points[0]["row"], points[0]["col"]), ("quay", 42, 5))

    def test_the_guide_runs(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "urban-results.md"), encoding="utf-8") as file:
            blocks = re.findall(r"^```sh\n(.*?)^```", file.read(), re.S | re.M)
        self.assertEqual(len(blocks), 3)
        script = "set -e\nlockstep() { \"$LOCKSTEP_PROGRAM\" \"$@\" --quiet > /dev/null; }\n" + "".join(blocks)
        done = subprocess.run(["bash", "-c", script], cwd=self.path("city"), env={**os.environ, "LOCKSTEP_PROGRAM": PROGRAM}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("change/compare.html", "change/tmrt_mean_change.tif", "table.csv", "sun/sun_hours.tif", "sun/sun_hours_buildings.png"):
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

    def test_hours_of_sun(self):
        sun = self.document("sun", "--dsm", self.path("city", "dsm.tif"), "--cdsm", self.path("city", "cdsm.tif"), "--date", "2026-03-21", "--minutes", "30",
                            "--device", "cpu,interp", "--out", self.path("sun"))
        self.assertEqual([g["name"] for g in sun["outputs"]], ["sun_hours", "sun_hours_buildings"])
        self.assertAlmostEqual(sun["possible_hours"], 12, delta=0.6)
        self.assertLess(sun["outputs"][0]["mean"], sun["outputs"][1]["mean"])
        self.assertAlmostEqual(sun["outputs"][1]["max"], sun["possible_hours"], delta=1e-5)


if __name__ == "__main__":
    unittest.main()
