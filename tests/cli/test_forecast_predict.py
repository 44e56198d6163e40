"""forecast train --trainer predictive: JSON, controls, checkpoints, refusals."""
import unittest

from training import TrainingTest

JUMPS = ["xor", "--trainer", "predictive", "--warm-up", "20", "--spacing", "4", "--correct", "4", "--horizons", "4,8,16"]


class Predictive(TrainingTest):
    def test_jumps_are_counted(self):
        d = self.train(*JUMPS, "--seeds", "2")
        self.assertEqual((d["trainer"], d["steps"], d["accuracy"]), ("predictive", 300, 1))
        self.assertTrue(0 < d["accepted"] <= d["jumps"])
        for run in d["runs"]:
            self.assertLessEqual({"rollbacks", "forwards", "gain_steps", "overhead_steps", "overhead_seconds"}, set(run))
            # A search has four forward passes, a third of a step each.
            self.assertGreaterEqual(run["forwards"], 4 * run["jumps"])
            self.assertGreaterEqual(run["overhead_steps"], run["forwards"] / 3 - 1e-9)
            self.assertTrue(0 < run["overhead_seconds"] < run["seconds"])
        last = self.log("out")[-1]
        self.assertEqual((int(last["jumps"]), int(last["accepted"])), (d["runs"][1]["jumps"], d["runs"][1]["accepted"]))

    def test_the_network_for_directions(self):
        d = self.train(*JUMPS, "--directions", "mlp")
        self.assertTrue(d["accuracy"] == 1 and 0 < d["accepted"] <= d["jumps"])
        self.assertNotEqual(d["val_loss"], self.train(*JUMPS)["val_loss"])

    def test_controls(self):
        plain = self.train("xor")
        zero = self.train(*JUMPS, "--control", "zero")
        self.assertEqual((zero["val_loss"], zero["trainer"]), (plain["val_loss"], "predictive, control zero"))
        self.assertGreater(zero["jumps"], 0)
        losses = {plain["val_loss"]}
        for control in ("random", "lr", "ema", "lawa"):
            few = JUMPS if control == "random" else JUMPS[:7 if control == "lawa" else 5]  # each reads some of them
            d = self.train(*few, "--control", control)
            self.assertEqual(d["jumps"] > 0, control == "random")
            losses.add(d["val_loss"])
        self.assertEqual(len(losses), 5)
        # Decay for a shorter budget is the plain trainer's.
        short = self.train("xor", "--steps", "100", "--schedule", "cosine", "--rate", "0.06")
        self.assertEqual((short["steps"], short["jumps"]), (100, 0))

    def test_a_killed_run_goes_on(self):
        more = [*JUMPS, "--directions", "mlp", "--steps", "3000", "--evaluate-every", "100", "--rate", "0.001", "--moments", "decay"]
        self.train(*more, out="whole")
        self.killed(*more, checkpoint=self.path("state.npz"), out="cut")
        document = self.train(*more, "--checkpoint", self.path("state.npz"), out="cut")
        self.assertIsNotNone(document["runs"][0]["resumed_at"])
        self.assertGreater(document["jumps"], 0)
        self.assertEqual(self.log("cut"), self.log("whole"))
        self.refuses("forecast", "train", *more, "--control", "random", "--checkpoint", self.path("state.npz"), "--out",
                     self.path("cut"), saying="trainer = predictive, now ")

    def test_refusals(self):
        out = ["--device", "cpu", "--out", self.path("out")]
        for arguments, saying in ((["--control", "more"], "--control"), (["--moments", "lose"], "reset"),
                                  (["--horizons", "10,x"], "--horizons"), (["--horizons", "-5"], "horizon"),
                                  (["--spacing", "0"], "--spacing"),
                                  (["--schedule", "wave"], "wave"), (["--rate", "1e38"], "rollbacks")):
            with self.subTest(arguments):
                self.refuses("forecast", "train", *JUMPS, *arguments, *out, saying=saying)
        self.refuses("forecast", "train", *JUMPS[:5], "--ema-decay", "1", "--control", "ema", *out, saying="--ema-decay")
        self.refuses("forecast", "train", "xor", "--control", "zero", *out, saying="--trainer predictive")


if __name__ == "__main__":
    unittest.main()
