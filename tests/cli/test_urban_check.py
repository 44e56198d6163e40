"""`urban check`, and the doubts that `urban run` says."""
import json
import os
import unittest

from program import ProgramTest, npy, run

HEAD = "time,Ta,RH,wind,Kglobal\n"


class UrbanCheck(ProgramTest):
    def setUp(self):
        super().setUp()
        self.dsm = npy(self.path("dsm.npy"), [[12.0 if 8 <= r < 14 and 8 <= c < 14 else 2.0 for c in range(24)] for r in range(24)])
        self.dem = npy(self.path("dem.npy"), [[2.0] * 24] * 24)
        self.weather = self.write("w.csv", HEAD + "2015-06-21T12:00,22,50,2,700\n2015-06-21T13:00,23,50,0,700\n")
        self.inputs = ["--dsm", self.dsm, "--dem", self.dem, "--pixel-size", "1", "--weather", self.weather, "--latitude", "50", "--longitude", "15",
                       "--utc-offset", "1", "--patches", "145", "--device", "cpu"]

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def checks(self, *arguments, code=0):
        done = run("urban", "check", *self.inputs, *arguments, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        rows = json.loads(done.stdout)["checks"]
        for row in rows:
            self.assertEqual(set(row), {"check", "value", "unit", "verdict", "text"})
            self.assertIn(row["verdict"], ("ok", "warning", "error"))
        return {row["check"]: row for row in rows}

    def test_a_table_of_what_there_is(self):
        rows = self.checks()
        self.assertEqual(rows["weather"]["value"], 2)
        self.assertEqual(rows["extent"]["value"], 24)
        self.assertEqual(rows["tallest building"]["value"], 10)
        self.assertAlmostEqual(rows["roofs"]["value"], 100 * 36 / 576)
        self.assertEqual(rows["calm hours"]["verdict"], "warning")
        self.assertGreater(rows["time"]["value"], 0)
        self.assertGreater(rows["memory"]["value"], 1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["dem.npy", "dsm.npy", "w.csv"])
        text = run("urban", "check", *self.inputs)
        self.assertEqual(text.returncode, 0)
        self.assertIn("WARNING  calm hours", text.stdout)

    def test_strict(self):
        self.assertEqual(self.checks("--strict", code=1)["calm hours"]["verdict"], "warning")
        self.assertEqual(run("urban", "check", *self.inputs, "--strict").returncode, 1)
        self.weather = self.inputs[self.inputs.index("--weather") + 1] = self.write("windy.csv", HEAD + "2015-06-21T12:00,22,50,2,700\n")
        self.assertEqual({row["verdict"] for row in self.checks("--strict").values()}, {"ok"})

    def given(self, header, row):
        self.inputs[self.inputs.index("--weather") + 1] = self.write("other.csv", f"{header}\n2015-06-21T12:00,22,50,2,700,{row}\n")
        return self.checks()

    def test_columns_that_are_not_read(self):
        for header, row, unread in (("Kdirct,winddirection", "500,180", "Kdirct, winddirection"), ("Snow", "0", "Snow")):
            found = self.given(HEAD.strip() + "," + header, row)["columns"]
            self.assertEqual((found["verdict"], found["value"]), ("warning", len(unread.split(","))))
            self.assertIn(f"other.csv: not read: {unread};", found["text"])
        self.assertNotIn("columns", self.given(HEAD.strip() + ",KDIRECT,wind_direction", "500,180"))

    def test_beam_or_diffuse_alone(self):
        for header, value, other in (("Kdirect", 100, "diffuse"), ("Kdiffuse", 300, "beam")):
            closure = self.given(HEAD.strip() + "," + header, value)["closure"]
            self.assertEqual(closure["verdict"], "ok")
            self.assertIn(f"of {header} alone", closure["text"])
            self.assertIn(f"the {other} is the rest of global", closure["text"])

    def test_pixels_without_a_height_in_the_dem(self):
        self.dem = self.inputs[self.inputs.index("--dem") + 1] = npy(
            self.path("holes.npy"), [[float("nan") if 18 <= r < 20 and c < 10 else 2.0 for c in range(24)] for r in range(24)])
        rows = self.checks()
        self.assertEqual(rows["ground height"]["verdict"], "warning")
        self.assertAlmostEqual(rows["ground height"]["value"], 100 * 20 / 576)
        self.assertIn("20 pixels of the DSM have no height in the DEM", rows["ground height"]["text"])
        self.assertEqual(rows["missing pixels"]["value"], 0)
        above = self.checks("--dsm-heights", "above-ground")
        self.assertNotIn("ground height", above)
        self.assertAlmostEqual(above["missing pixels"]["value"], 100 * 20 / 576)

    def test_the_summary_names_errors(self):
        self.inputs[self.inputs.index("--weather") + 1] = self.write("share.csv", HEAD + "2015-06-21T12:00,22,0.5,2,700\n")
        done = run("urban", "check", *self.inputs)
        self.assertIn("ERROR", done.stdout)
        self.assertIn("some inputs have errors", done.stdout)

    def test_nothing_is_written(self):
        """An option for results would have no effect."""
        done = run("urban", "check", *self.inputs, "--out", self.path("o"), "--json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown option '--out' [lockstep urban check]", done.stderr)
        self.assertFalse(os.path.exists(self.path("o")))

    def test_errors_are_rows(self):
        self.inputs[self.inputs.index("--weather") + 1] = self.write("share.csv", HEAD + "2015-06-21T12:00,22,0.5,2,700\n")
        npy(self.dem, [[50.0] * 24] * 24)
        rows = self.checks()
        self.assertEqual(rows["humidity"]["verdict"], "error")
        self.assertEqual(rows["DEM"]["verdict"], "error")
        self.assertIn("below the DEM", rows["DEM"]["text"])
        self.assertIn("only one wall grid [--wall-height]: expected --wall-height and --wall-aspect",
                      self.checks("--wall-height", self.dem)["options"]["text"])

    def test_a_run_says_its_doubts_also_when_quiet(self):
        done = run("urban", "run", *self.inputs, "--format", "npy", "--no-pictures", "--out", self.path("o"), "--quiet", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: %s: in 1 of 2 steps the wind" % self.weather, done.stderr)
        warnings = json.loads(done.stdout)["warnings"]
        self.assertEqual(len(warnings), 1)
        with open(self.path("o", "run.json")) as file:
            self.assertEqual(json.load(file)["warnings"], warnings)


if __name__ == "__main__":
    unittest.main()
