"""forecast curve, encode, sweep: results, errors, files."""
import json
import math
import os
import struct
import unittest
import zipfile

from program import ProgramTest, run

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "forecast", "data")


def npz(path):
    """The elements of the arrays of an .npz, of float32, float64 and uint8."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            (length,) = struct.unpack("<H", data[8:10])
            header = eval(data[10:10 + length])  # The program's own output.
            code = {"<f4": "f", "<f8": "d", "|u1": "B"}[header["descr"]]
            arrays[name[:-4]] = struct.unpack("<%d%s" % (math.prod(header["shape"]), code), data[10 + length:])
    return arrays


class Forecast(ProgramTest):
    def log(self, rows=60):
        path = self.path("log.csv")
        with open(path, "w") as file:
            file.write("step,loss,note\n")
            for k in range(1, rows + 1):
                file.write("%d,%.6f,x\n" % (10 * k, 0.5 + 2 * k ** -0.5 + 0.01 * (k * 7919 % 13 - 6) / 6))
        return path

    def test_curve_of_a_power_law(self):
        picture = self.path("curve.png")
        document = self.json_of("forecast", "curve", self.log(), "--horizon", "1200", "--points", "4", "--out", picture)
        self.check_summary(document)
        self.assertEqual([p["step"] for p in document["prediction"]], [750, 900, 1050, 1200])
        end = document["prediction"][-1]
        self.assertAlmostEqual(end["mean"], 0.5 + 2 * 120 ** -0.5, delta=0.05)
        self.assertTrue(end["low"] <= end["trend_low"] <= end["mean"] <= end["trend_high"] <= end["high"])
        self.assertEqual([row["predictor"] for row in document["backtest"]["predictors"]],
                         ["ensemble", "power law", "last value", "recent mean"])
        self.assertAlmostEqual(sum(f["weight"] for f in document["families"]), 1)
        self.assertTrue(document["advice"]["text"].startswith("Continue"))
        with open(picture, "rb") as file:
            self.assertEqual(file.read(4), b"\x89PNG")

    def test_curve_of_tensorboard_and_json_lines(self):
        sample = os.path.join(DATA, "events.out.tfevents.sample")
        document = self.json_of("forecast", "curve", sample)
        self.assertEqual((document["column"], document["rows"], document["last_step"]), ("train/loss", 60, 590))
        path = self.path("log.jsonl")
        with open(path, "w") as file:
            for k in range(1, 40):
                file.write(json.dumps({"step": k, "a": {"loss": 1 / k}}) + "\n")
        done = run("forecast", "curve", path, "--target", "0.02", "--horizon", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("target 0.02", done.stdout)

    def test_curve_refuses(self):
        log = self.log()
        self.refuses("forecast", "curve", self.path("none.csv"), saying="none.csv")
        self.refuses("forecast", "curve", log, "--column", "note", saying="column 'note' is 'x' [%s:2]: expected a finite number" % log)
        self.refuses("forecast", "curve", log, "--column", "lr", saying="no column 'lr' [%s]: expected one of loss, note" % log)
        self.refuses("forecast", "curve", log, "--horizon", "100", saying="a horizon of 100")
        self.refuses("forecast", "curve", self.log(5), saying="5 rows [%s]: expected at least 8" % log)
        self.refuses("forecast", "curve", saying="log")
        with open(log, "a") as file:
            file.write("60,nan,x\n")
        self.refuses("forecast", "curve", log, saying="column 'loss' is 'nan' [%s:7]" % log)
        empty = self.path("empty.jsonl")
        open(empty, "w").close()
        self.refuses("forecast", "curve", empty, saying="no rows [%s]" % empty)

    def test_encode(self):
        out = self.path("features.npz")
        document = self.json_of("forecast", "encode", os.path.join(DATA, "full_log.csv"), "--out", out, "--precision", "f64")
        self.check_summary(document)
        self.assertEqual((document["states"], document["filled"], len(document["features"])), (300, [], 64))
        arrays = npz(out)
        self.assertEqual(set(arrays), {"step", "given", *document["features"]})
        self.assertEqual(arrays["given"], (1,) * (300 * 23))
        self.assertEqual(arrays["step"][1], 3)
        self.assertAlmostEqual(arrays["step_share"][1], 3e-4)
        for name in document["features"]:
            self.assertGreater(len(set(arrays[name])), 1, name)

    def test_encode_says_what_the_log_lacks(self):
        out = self.path("features.npz")
        done = run("forecast", "encode", self.log(), "--out", out, "--history", "20", "--normalised")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not in the log, filled: lr: 0.001", done.stdout)
        self.assertEqual(len(npz(out)["loss"]), 60)
        self.refuses("forecast", "encode", self.log(), saying="--out")
        self.refuses("forecast", "encode", self.log(), "--out", out, "--history", "1001", saying="1001")

    def test_sweep(self):
        document = self.json_of("forecast", "sweep", os.path.join(DATA, "sweep.csv"))
        rows = {row["policy"]: row for row in document["policies"]}
        self.assertEqual(rows["last value at 0.5"]["saved"], 0.25)
        self.assertEqual(rows["forecast"]["regret"], 0)
        self.assertEqual(self.json_of("forecast", "sweep", "--synthetic", "1", "--runs", "6")["sweeps"], 1)
        self.refuses("forecast", "sweep", saying="neither a log nor --synthetic")
        self.refuses("forecast", "sweep", self.log(), "--synthetic", "1", saying="a log and --synthetic")


if __name__ == "__main__":
    unittest.main()
