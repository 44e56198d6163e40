"""Every option of forecast's commands changes something or is refused."""
import math
import unittest

from options_walk import OptionsWalk
from program import run

INTERP = ["--device", "interp"]
OBSERVE = ["{log}", "--hidden", "3", "--members", "1", *INTERP, "--out", "{out}/m.npz"]
TRAIN = ["xor", "--steps", "60", "--device", "cpu", "--out", "{out}/t"]
JUMPS = ["--trainer", "predictive", "--spacing", "3", "--warm-up", "9", "--correct", "3", "--horizons", "4,8"]


class ForecastOptions(OptionsWalk):
    VOLATILE = OptionsWalk.VOLATILE + (".csv", ".png")  # they hold seconds

    def setUp(self):
        super().setUp()
        def log(name, row, head):
            with open(self.path(name), "w") as file:
                file.write(head + "\n" + "".join("%d,%s\n" % (10 * t, row(t)) for t in range(60)))
            return self.path(name)
        fall = lambda t, at: 0.4 + 2 * math.exp(-0.1 * t) + at + 0.01 * math.sin(7.0 * t)
        self.places.update({
            "{log}": log("log.csv", lambda t: "%.6f,%.6f" % (fall(t, 0), fall(1.5 * t, 1)), "step,loss,val"),
            "{runs}": log("runs.csv", lambda t: ",".join("%.6f" % fall(t, 0.1 * r) for r in range(5)), "step,a,b,c,d,e"),
            "{below}": log("below.csv", lambda t: "%.6f" % (1 - 0.1 * t), "step,loss"),
            "{m}": self.path("m.npz")})

    def test_curve_encode_and_sweep(self):
        curve = ["{log}"]
        self.walk_flat(["forecast", "curve"], curve, {
            "--horizon": ([], ["--horizon", "900"]), "--column": ([], ["--column", "val"]), "--points": ([], ["--points", "5"]),
            "--coverage": ([], ["--coverage", "0.5"]), "--target": ([], ["--target", "0.45"]), "--least-gain": ([], ["--least-gain", "1"]),
            "--out": ([], ["--out", "{out}/c.png"])})
        self.refuses_all(["forecast", "curve"], curve, ((["--out", "{log}"], "is the input"), (["--out", "{log}/c.png"], "not a folder")))
        encode = ["{log}", *INTERP, "--out", "{out}/f.npz"]
        self.walk_flat(["forecast", "encode"], encode, {
            "--column": ([], ["--column", "val"]), "--history": ([], ["--history", "3"]), "--precision": ([], ["--precision", "f64"]),
            "--normalised": ([], ["--normalised"])}, {"--out"})
        self.refuses_all(["forecast", "encode"], encode, ((["--out", "{log}"], "is the input"),))
        sweep = ["--synthetic", "1", "--runs", "4"]
        self.walk_flat(["forecast", "sweep"], sweep, {
            "--synthetic": ([], ["--synthetic", "2"]), "--runs": ([], ["--runs", "5"]), "--seed": ([], ["--seed", "5"]), "--checkpoint": ([], ["--checkpoint", "{out}/c.npz"])})
        self.refuses_all(["forecast", "sweep"], ["{runs}"], ((["--checkpoint", "{runs}"], "is the input"), (["--runs", "16"], "--runs"), (["--seed", "1"], "--seed"), (["--synthetic", "1"], "one of the two")))

    def test_observe_and_rollout(self):
        self.walk_flat(["forecast", "observe"], OBSERVE, {
            "--model": ([], ["--model", "{m}"]), "--hidden": ([], ["--hidden", "4"]), "--members": ([], ["--members", "2"]),
            "--seed": ([], ["--seed", "2"]), "--precision": ([], ["--precision", "f64"]), "--gru": ([], ["--gru", "reset-after"]), "--heads": ([], ["--heads", "two-hot"]),
            "--posterior": (["--heads", "two-hot"], ["--posterior"]),
            "--free-nats": (["--heads", "two-hot", "--posterior", "--rate", "0.05"], ["--free-nats", "0"]),
            "--objective": ([], ["--objective", "squared"]), "--window": ([], ["--window", "2"]), "--decay": ([], ["--decay", "0.5"]),
            "--rate": ([], ["--rate", "0.01"]), "--clip-norm": ([], ["--clip-norm", "0.01"]), "--column": ([], ["--column", "val"]),
            "--history": ([], ["--history", "3"])}, {"--out"})
        self.refuses_all(["forecast", "observe"], OBSERVE, ((["--posterior"], "--heads two-hot"), (["--heads", "two-hot", "--free-nats", "1"], "--posterior")))
        self.assertEqual(run("forecast", "observe", self.places["{log}"], *OBSERVE[1:5], *INTERP, "--out", self.places["{m}"]).returncode, 0)
        model = ["{log}", *INTERP, "--model", "{m}", "--out", "{out}/m.npz"]
        self.assertEqual(self.outcome("forecast", "observe", *model)[0], 0)
        self.refuses_all(["forecast", "observe"], model, [([*word], word[0]) for word in (  # each as it would be without being given
            ("--hidden", "128"), ("--members", "5"), ("--seed", "0"), ("--precision", "f32"))] +
            [(["--out", "{m}"], "is the input"), (["--out", "{log}/m.npz"], "not a folder")])
        self.refuses_all(["forecast", "observe"], ["{below}", *OBSERVE[1:]], (([], "the loss of row 11, step 100, is"),))
        roll = ["--hidden", "3", "--members", "2", "--features", "4", "--steps", "3", *INTERP]
        self.walk_flat(["forecast", "rollout"], roll, {
            "--hidden": ([], ["--hidden", "4"]), "--members": ([], ["--members", "3"]), "--features": ([], ["--features", "5"]),
            "--seed": ([], ["--seed", "2"]), "--precision": ([], ["--precision", "f64"]), "--weights": ([], ["--weights", "fp8"]), "--steps": ([], ["--steps", "4"]),
            "--batch": ([], ["--batch", "2"]), "--gru": ([], ["--gru", "reset-after"]), "--heads": ([], ["--heads", "two-hot"]),
            "--plot": ([], ["--plot", "{out}/fan.png"])})
        self.refuses_all(["forecast", "rollout"], ["{m}"], [([*word], word[0]) for word in (
            ("--hidden", "256"), ("--members", "5"), ("--features", "64"), ("--precision", "f32"), ("--seed", "0"))])
        self.refuses_all(["forecast", "rollout"], roll, ((["--precision", "f64", "--weights", "bf16"], "a model in f32"),))

    def test_train(self):
        self.walk_flat(["forecast", "train"], TRAIN, {
            "--data": ([], ["--data", self.folder]), "--model": ([], ["--model", "cnn"]), "--trainer": ([], ["--trainer", "predictive"]),
            "--control": (JUMPS, ["--control", "zero"]), "--seeds": ([], ["--seeds", "2"]), "--seed": ([], ["--seed", "3"]),
            "--steps": ([], ["--steps", "50"]), "--batch": ([], ["--batch", "2"]), "--parts": ([], ["--parts", "3"]),
            "--evaluate-every": (["--steps", "300", "--target-loss", "0.3"], ["--evaluate-every", "7"]), "--rate": ([], ["--rate", "0.001"]),
            "--schedule": ([], ["--schedule", "cosine"]), "--target-loss": ([], ["--target-loss", "10"]),
            "--precision": ([], ["--precision", "f64"]), "--moments": (JUMPS, ["--moments", "reset"]),
            "--horizons": (JUMPS, ["--horizons", "20"]), "--spacing": (JUMPS, ["--spacing", "5"]), "--warm-up": (JUMPS, ["--warm-up", "15"]),
            "--correct": (JUMPS, ["--correct", "6"]), "--directions": (JUMPS, ["--directions", "mlp"]),
            "--network-units": ([*JUMPS, "--directions", "mlp"], ["--network-units", "2"]),
            "--network-samples": ([*JUMPS, "--directions", "mlp"], ["--network-samples", "8"]), "--rate-factor": (["--trainer", "predictive", "--control", "lr", "--warm-up", "5"], ["--rate-factor", "3"]),
            "--ema-decay": (["--trainer", "predictive", "--control", "ema", "--warm-up", "5"], ["--ema-decay", "0.5"]),
            "--checkpoint": ([], ["--checkpoint", "{out}/c.npz"])}, {"--out"})
        plain = "--trainer predictive"
        self.refuses_all(["forecast", "train"], TRAIN, (
            (["--spacing", "5"], plain), (["--warm-up", "0"], plain), (["--correct", "5"], plain), (["--rate-factor", "1"], plain),
            (["--directions", "mlp"], plain), ([*JUMPS, "--network-units", "8"], "--directions mlp"),
            (["--trainer", "predictive", "--control", "lawa", "--directions", "ridge"], "--control none, zero or random"),
            (["--ema-decay", "0.9"], plain), (["--control", "none"], plain), (["--trainer", "predictive", "--rate-factor", "2"], "--control lr"),
            (["--trainer", "predictive", "--control", "lr", "--correct", "5"], "--correct"),
            (["--trainer", "predictive", "--control", "ema", "--spacing", "5"], "--spacing"), (["--out", "{log}"], "a file has this name")))


if __name__ == "__main__":
    unittest.main()
