"""tune: what it measures, the table that it writes, and tables that it does not trust."""
import json
import os
import stat
import unittest

from program import ProgramTest, run


class Tune(ProgramTest):
    def setUp(self):
        super().setUp()
        self.table = self.path("variants.json")

    def tuned(self, *arguments):
        return self.json_of("tune", "--device", "cpu", "--minutes", "5", "--out", self.table, *arguments)

    def test_a_table_is_written_and_then_chooses(self):
        document = self.tuned("primitives.fft")
        self.assertEqual(document["stored"], 1)
        (fft,) = document["computations"]
        self.assertEqual((fft["computation"], fft["axis"]), ("primitives.fft", "points"))
        for point in fft["points"]:
            self.assertEqual(set(point["variants"]), {"passes", "blocks", "lanes"})
            self.assertTrue(all(v["ms"] > 0 and v["scratch_bytes"] > 0 for v in point["variants"].values()), point)
            self.assertIn(point["after"], point["variants"])
        self.assertEqual(stat.S_IMODE(os.stat(self.table).st_mode), 0o600)
        with open(self.table, encoding="utf-8") as file:
            (row,) = json.load(file)["rows"]
        self.assertEqual((row["computation"], row["device"]), ("primitives.fft", document["model"]))
        # Another computation is added, the first one measured again.
        self.tuned("primitives.fft", "primitives.matmul.narrow")
        with open(self.table, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        self.assertEqual([r["computation"] for r in rows], ["primitives.fft", "primitives.matmul.narrow"])
        # Its choice has the bits of what is shipped.
        rows[0]["steps"] = [[0, ["passes"]]]
        with open(self.table, "w", encoding="utf-8") as file:
            json.dump({"format": 1, "rows": rows}, file)
        verified = self.json_of("verify", "fft.c2c", "--device", "cpu", "--against", "interp",
                                env={"LOCKSTEP_VARIANTS": self.table})
        self.assertEqual(verified["failed"], 0)

    def test_the_sky_and_the_cost_of_a_pixel(self):
        document = self.tuned("urban")
        self.assertEqual((document["stored"], [c["computation"] for c in document["computations"]]), (2, ["urban.sky", "urban.check.pixel"]))
        sky, pixel = document["computations"]
        self.assertEqual((sky["axis"], [set(p["variants"]) for p in sky["points"]]), ("pixels", [{"words", "whole"}] * 3))
        self.assertEqual((pixel["points"], pixel["skipped"]), ([], ""))
        step, patch = pixel["values"]
        self.assertTrue(0 < patch < step < 1e-3, pixel)
        with open(self.table, encoding="utf-8") as file:
            rows = {row["computation"]: row for row in json.load(file)["rows"]}
        self.assertEqual(rows["urban.check.pixel"], {"computation": "urban.check.pixel", "device": document["model"], "values": [step, patch]})
        self.assertTrue(rows["urban.sky"]["steps"])

    def test_what_is_not_measured_says_why(self):
        document = self.tuned("solve.placement", "solve.factor", "solve.eliminated", "forecast.batch")
        self.assertEqual((document["stored"], document["changed"], len(document["computations"])), (0, 0, 4))
        for computation in document["computations"]:
            self.assertIn(" ", computation["skipped"])
            self.assertEqual(computation["points"], [])
        self.assertFalse(os.path.exists(self.table))

    def test_rounding_is_left_to_fast_numerics(self):
        document = self.tuned("forecast.gru")
        self.assertEqual(document["stored"], 0)
        self.assertIn("fast numerics only", document["computations"][0]["skipped"])
        self.assertFalse(os.path.exists(self.table))

    def test_tables_that_are_not_trusted_are_told_and_not_used(self):
        for text, mode, why in (("{", 0o600, "no JSON"), ('{"format": 1, "rows": []}', 0o666, "others can write to it")):
            with open(self.table, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(self.table, mode)
            result = run("verify", "fft.c2c", "--device", "cpu", env={"LOCKSTEP_VARIANTS": self.table})
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = [line for line in result.stderr.splitlines() if why in line]
            self.assertEqual(len(lines), 1, result.stderr)
            self.assertIn("the shipped table chooses variants", lines[0])
            # tune does not write over it.
            self.refuses("tune", "primitives.fft", "--device", "cpu", "--out", self.table, code=2)
            with open(self.table, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)

    def test_names(self):
        result = self.refuses("tune", "primitives.ftt", "--device", "cpu", "--out", self.table, code=2)
        self.assertIn("primitives.fft", result.stderr)


if __name__ == "__main__":
    unittest.main()
