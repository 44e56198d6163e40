"""forecast train: JSON, files, checkpoints that survive a kill, refusals."""
import json
import os
import unittest

from training import TrainingTest


class Train(TrainingTest):
    def test_xor(self):
        d = self.train("xor", "--seeds", "2", "--seed", "5")
        self.assertLessEqual({"val_loss", "accuracy", "steps", "seconds", "jumps", "accepted", "parameters", "runs"}, set(d))
        self.assertEqual((d["accuracy"], d["steps"], d["jumps"], d["accepted"], d["trainer"]), (1, 300, 0, 0, "plain"))
        self.assertEqual([r["seed"] for r in d["runs"]], [5, 6])
        self.assertTrue(all(r["val_loss"] < 0.1 for r in d["runs"]))
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["log.csv", "log.jsonl", "loss.png", "run.json"])
        rows = self.log("out")
        self.assertEqual(len(rows), 2 * 301)
        self.assertEqual([r["step"] for r in rows if r["val_loss"] and r["seed"] == "5"],
                         ["0", "50", "100", "150", "200", "250", "300"])
        with open(self.path("out", "log.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual(len(lines), len(rows))
        self.assertAlmostEqual(lines[300]["val_loss"], d["runs"][0]["val_loss"], 9)

    def test_target_loss_ends_a_run(self):
        d = self.train("xor", "--target-loss", "0.3", "--evaluate-every", "10")
        self.assertLess(d["steps"], 300)
        self.assertTrue(d["runs"][0]["reached"])

    def test_a_killed_run_goes_on(self):
        more = ["xor", "--steps", "6000", "--evaluate-every", "100", "--rate", "0.001"]
        self.train(*more, out="whole")
        self.killed(*more, checkpoint=self.path("state.npz"), out="cut")
        document = self.train(*more, "--checkpoint", self.path("state.npz"), out="cut")
        self.assertIsNotNone(document["runs"][0]["resumed_at"])
        self.assertEqual(self.log("cut"), self.log("whole"))
        self.refuses("forecast", "train", *more, "--batch", "2", "--checkpoint", self.path("state.npz"), "--out",
                     self.path("cut"), saying="batch = 4, now 2")

    def test_the_predictive_trainer(self):
        d = self.train("xor", "--trainer", "predictive")
        self.assertEqual((d["accuracy"], d["trainer"]), (1, "predictive"))
        self.assertGreater(d["jumps"], 0)
        zero = self.train("xor", "--trainer", "predictive", "--control", "zero", out="zero")
        self.assertEqual(zero["trainer"], "predictive, control zero")

    def test_refusals(self):
        out = ["--device", "cpu", "--out", self.path("out")]
        for arguments, saying in ((["cifar"], "cifar"), (["mnist"], "t10k-images"), (["mnist", "--data", self.folder], "t10k"),
                                  (["charlm", "--data", self.folder], "tinyshakespeare"), (["xor", "--model", "cnn"], "cnn"),
                                  (["xor", "--trainer", "none"], "none"), (["xor", "--seeds", "0"], "--seeds"),
                                  (["xor", "--control", "zero"], "--control"),
                                  (["absent.toml"], "absent.toml"), (["xor", "--rate", "1e38"], "at step")):
            with self.subTest(arguments):
                self.refuses("forecast", "train", *arguments, *out, saying=saying)
        self.refuses("forecast", "train", "xor", saying="--out")


if __name__ == "__main__":
    unittest.main()
