"""forecast rollout: JSON against the formulas in Python, files, refusals."""
import math
import struct
import unittest
import zipfile

from program import ProgramTest

CODES = {"f8": "d", "f4": "f", "i4": "i"}


def npz(path, arrays):
    """arrays: name -> (shape, flat numbers, type)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (shape, numbers, kind) in arrays.items():
            text = "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }" % (kind, "".join("%d," % n for n in shape))
            text += " " * ((64 - (len(text) + 11) % 64) % 64) + "\n"
            data = struct.pack("<%d%s" % (len(numbers), CODES[kind]), *numbers)
            archive.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data)
    return path


def wave(count, size, phase):
    return [size * math.sin(phase + 1.3 * i) for i in range(count)]


def model(members=2, hidden=3, features=4, states=5, kind="f8"):
    arrays = {}
    for g, gate in enumerate("zrh"):
        arrays["W_" + gate] = ((members, hidden, features), wave(members * hidden * features, 0.6, g), kind)
        arrays["U_" + gate] = ((members, hidden, hidden), wave(members * hidden * hidden, 0.7, 3 + g), kind)
        arrays["b_" + gate] = ((members, hidden), wave(members * hidden, 0.2, 6 + g), kind)
    arrays["w"] = ((hidden + states,), wave(hidden + states, 0.5, 9), kind)
    arrays["features"] = ((features,), [2.5] + wave(features - 1, 1, 10), kind)
    return arrays


def rollout(arrays, steps):
    """The published formulas, plainly: trajectories and norms of each member, mean entropy."""
    members, d, inputs = arrays["W_z"][0]
    w = arrays["w"][1]
    states = len(w) - d
    sigmoid = lambda a: 1 / (1 + math.exp(-a))
    entropies, trajectories, norms = [], [], []
    for m in range(members):
        def pre(gate, i, x, h):
            W, U, b = (arrays[k + gate][1] for k in ("W_", "U_", "b_"))
            return (b[m * d + i] + sum(W[(m * d + i) * inputs + k] * x[k] for k in range(inputs)) +
                    sum(U[(m * d + i) * d + k] * h[k] for k in range(d)))
        h, x, losses, sizes = [0.0] * d, list(arrays["features"][1]), [], []
        for _ in range(steps):
            z = [sigmoid(pre("z", i, x, h)) for i in range(d)]
            r = [sigmoid(pre("r", i, x, h)) for i in range(d)]
            rh = [a * b for a, b in zip(r, h)]
            h = [(1 - z[i]) * h[i] + z[i] * math.tanh(pre("h", i, x, rh)) for i in range(d)]
            e = [math.exp(h[i * d // states]) for i in range(states)]
            s = [v / sum(e) for v in e]
            entropies.append(-sum(p * math.log(p) for p in s))
            x[0] = max(math.exp(min(max(sum(a * b for a, b in zip(w, h + s)), -10), 10)), 1e-6)
            losses.append(x[0])
            sizes.append(math.sqrt(sum(v * v for v in h)))
        trajectories.append(losses)
        norms.append(sizes)
    return trajectories, norms, sum(entropies) / max(len(entropies), 1)


class ForecastRollout(ProgramTest):
    def close(self, a, b, places=11):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertAlmostEqual(x, y, places)

    def test_json_holds_the_published_formulas(self):
        arrays, steps = model(), 7
        document = self.json_of("forecast", "rollout", npz(self.path("m.npz"), arrays), "--steps", steps, "--device", "cpu")
        self.check_summary(document)
        trajectories, norms, entropy = rollout(arrays, steps)
        finals = [t[-1] for t in trajectories]
        mean = sum(finals) / len(finals)
        sigma = math.sqrt(sum((f - mean) ** 2 for f in finals) / len(finals)) * (1 + 0.1 * math.sqrt(steps))
        self.close(document["trajectory"], [sum(t) / len(t) for t in zip(*trajectories)])
        self.close([document[k] for k in ("final", "sigma", "aleatoric", "epistemic", "entropy", "confidence")],
                   [mean, sigma, sigma / 2, sigma / 2, entropy, 1 / (1 + sigma)])
        for member, losses, sizes in zip(document["members"], trajectories, norms):
            self.assertEqual(set(member), {"trajectory", "step_deltas", "hidden_norms", "loss_variance", "trajectory_smoothness"})
            deltas = [b - a for a, b in zip([2.5] + losses, losses)]
            average = sum(losses) / steps
            self.close(member["trajectory"], losses)
            self.close(member["hidden_norms"], sizes)
            self.close(member["step_deltas"], deltas)
            self.assertAlmostEqual(member["loss_variance"], sum((v - average) ** 2 for v in losses) / steps, 11)
            turn = sum(abs(b - a) for a, b in zip(deltas, deltas[1:])) / (steps - 1)
            size = sum(map(abs, deltas)) / steps
            self.assertAlmostEqual(member["trajectory_smoothness"], 1 / (1 + turn / size), 9)
        self.assertGreaterEqual(document["memory"]["used"], document["memory"]["predicted"])

    def test_single_precision_and_a_batch(self):
        arrays = model(kind="f4")
        document = self.json_of("forecast", "rollout", npz(self.path("m.npz"), arrays), "--steps", 5, "--batch", 2, "--device", "interp")
        trajectories, _, _ = rollout(arrays, 5)
        self.close(document["trajectory"], [sum(t) / len(t) for t in zip(*trajectories)], 5)
        self.assertEqual(document["batch"][0], document["batch"][1])
        self.assertEqual(document["path"], "one launch")

    def test_random_weights_and_no_steps(self):
        small = ["forecast", "rollout", "--hidden", "9", "--members", "2", "--features", "4"]
        one = self.json_of(*small, "--steps", "3", "--seed", "4")
        self.assertEqual(one["trajectory"], self.json_of(*small, "--steps", "3", "--seed", "4", "--device", "interp")["trajectory"])
        self.assertNotEqual(one["trajectory"], self.json_of(*small, "--steps", "3", "--seed", "5")["trajectory"])
        none = self.json_of(*small, "--steps", "0")
        self.assertEqual((none["trajectory"], none["sigma"], none["confidence"]), ([], 0, 1))
        self.assertTrue(1 <= none["final"] < 3)

    def test_two_hot_heads(self):
        small = ["forecast", "rollout", "--hidden", "9", "--members", "3", "--features", "4", "--steps", "4", "--heads", "two-hot"]
        a, b = self.json_of(*small, "--device", "cpu"), self.json_of(*small, "--device", "interp")
        self.assertEqual(a["members"], b["members"])
        self.assertAlmostEqual(a["sigma"] ** 2, a["aleatoric"] + a["epistemic"], 9)
        finals = [m["trajectory"][-1] for m in a["members"]]
        self.assertAlmostEqual(a["epistemic"], sum((f - a["final"]) ** 2 for f in finals) / 3, 9)
        self.assertGreater(a["aleatoric"], 0)
        self.refuses("forecast", "rollout", npz(self.path("m.npz"), model()), "--heads", "two-hot", saying="'P'")

    def test_reset_after_with_recurrent_biases(self):
        arrays = model()
        arrays["rb_h"] = ((2, 3), wave(6, 0.5, 20), "f8")
        path = npz(self.path("m.npz"), arrays)
        plain = self.json_of("forecast", "rollout", npz(self.path("n.npz"), model()), "--steps", "3", "--gru", "reset-after")
        self.assertNotEqual(self.json_of("forecast", "rollout", path, "--steps", "3", "--gru", "reset-after")["final"], plain["final"])
        self.refuses("forecast", "rollout", path, "--steps", "3", saying="rb_h]: expected none with --gru reset-before")

    def test_bad_models_are_named(self):
        def refused(change, saying):
            arrays = model()
            change(arrays)
            self.refuses("forecast", "rollout", npz(self.path("m.npz"), arrays), "--steps", "2", saying=saying)
        refused(lambda a: a.pop("U_r"), "U_r")
        refused(lambda a: a.pop("w"), "'w'")
        refused(lambda a: a.update(b_h=((2, 4), wave(8, 1, 0), "f8")), "m.npz: b_h]: expected (2, 3)")
        refused(lambda a: a.update(h0=((3, 2), wave(6, 1, 0), "f8")), "m.npz: h0]: expected (2, 3)")
        refused(lambda a: a.update(w=((3,), wave(3, 1, 0), "f8")), "m.npz: w]: expected hidden + states")
        refused(lambda a: a.update(W_z=((2, 3, 4), [math.nan] + wave(23, 1, 0), "f8")), "not finite at (0, 0, 0)")
        refused(lambda a: a.update(W_r=((2, 3, 4), wave(24, 1, 0), "f4")), "elements of f32")
        refused(lambda a: a.update(U_z=((2, 3, 3), [1] * 18, "i4")), "elements of i32")
        with open(self.path("no.npz"), "w") as file:
            file.write("not an archive")
        self.refuses("forecast", "rollout", self.path("no.npz"), saying="no.npz")
        self.refuses("forecast", "rollout", self.path("absent.npz"), saying="absent.npz")
        self.refuses("forecast", "rollout", "--steps", "-1", saying="'-1' [--steps]")
        self.refuses("forecast", "rollout", "--hidden", "0", saying="[--hidden]")
        self.refuses("forecast", "rollout", "--gru", "lstm", saying="[--gru]")

    def test_sizes_that_no_machine_holds(self):
        for arguments, saying in ((["--hidden", "8192", "--members", "4096"], "--members, --hidden and --features"),
                                  (["--batch", "1048576", "--features", "65536"], "--batch and --features"),
                                  (["--batch", "1048576", "--steps", "1048576"], "--steps, --batch and --members")):
            with self.subTest(arguments):
                self.refuses("forecast", "rollout", *arguments, saying=saying)


class Picture(ProgramTest):
    def test_fan(self):
        small = ["--hidden", "6", "--members", "3", "--features", "4", "--device", "cpu"]
        for heads in ("classic", "two-hot"):
            out = self.path(heads + ".png")
            found = self.json_of("forecast", "rollout", *small, "--heads", heads, "--steps", "7", "--plot", out)
            with open(out, "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
            self.assertEqual((found["plot"], len(found["sigmas"])), (out, 7))
            self.assertAlmostEqual(found["sigmas"][-1], found["sigma"], places=12)
            # A rollout of fewer steps ends with the sigma of its last one.
            self.assertAlmostEqual(self.json_of("forecast", "rollout", *small, "--heads", heads, "--steps", "3")["sigma"],
                                   found["sigmas"][2], places=12)
        self.refuses("forecast", "rollout", *small, "--steps", "0", "--plot", self.path("no.png"), saying="--plot")


class Observe(ProgramTest):
    def log(self):
        path = self.path("log.csv")
        with open(path, "w") as file:
            file.write("step,loss\n")
            for t in range(40):
                file.write("%d,%.6f\n" % (10 * t, 0.4 + 2 * math.exp(-0.1 * t)))
        return path

    def test_a_log_is_learnt_and_rolled_out(self):
        out = self.path("model.npz")
        small = ["--hidden", "8", "--members", "2", "--device", "cpu"]
        result = self.json_of("forecast", "observe", self.log(), "--out", out, *small)
        self.assertEqual(result["observations"], 39)
        self.assertEqual([p["step"] for p in result["predictions"]], [10 * t for t in range(1, 40)])
        misses = [abs(math.log(p["predicted"] / p["loss"])) for p in result["predictions"][20:]]
        self.assertAlmostEqual(result["error"], sum(misses) / len(misses), places=12)
        ahead = self.json_of("forecast", "rollout", out, "--steps", "3", "--device", "cpu")
        self.assertEqual(len(ahead["members"]), 2)
        again = self.json_of("forecast", "observe", self.log(), "--out", self.path("more.npz"), "--model", out, "--device", "cpu")
        self.assertNotEqual(again["error"], result["error"])
        learned = "weights learned with --heads classic [%s]: expected --heads classic" % out
        self.refuses("forecast", "rollout", out, "--heads", "two-hot", "--device", "cpu", saying=learned)
        self.refuses("forecast", "observe", self.log(), "--out", self.path("more.npz"), "--model", out, "--gru", "reset-after", saying="learned with --gru reset-before")

    def test_two_hot_heads_are_learnt_and_rolled_out(self):
        out, log = self.path("model.npz"), self.path("log.csv")
        with open(log, "w") as file:
            file.write("step,loss\n" + "".join("%d,%.6f\n" % (t, 2 * math.exp(-0.1 * t) - 1) for t in range(30)))
        small = ["--hidden", "8", "--members", "2", "--heads", "two-hot", "--device", "cpu"]
        result = self.json_of("forecast", "observe", log, "--out", out, *small)
        self.assertEqual(result["error_of"], "symlog")
        symlog = lambda t: math.copysign(math.log1p(abs(t)), t)
        misses = [abs(symlog(p["predicted"]) - symlog(p["loss"])) for p in result["predictions"][15:]]
        self.assertAlmostEqual(result["error"], sum(misses) / len(misses), places=12)
        ahead = self.json_of("forecast", "rollout", out, "--steps", "3", "--heads", "two-hot", "--device", "cpu")
        self.assertEqual(len(ahead["members"]), 2)
        self.refuses("forecast", "rollout", out, "--device", "cpu", saying="learned with --heads two-hot")
        self.refuses("forecast", "observe", log, "--out", out, "--heads", "two-hot", "--objective", "squared",
                     saying="--objective")

    def test_refusals(self):
        out = self.path("model.npz")
        log = self.log()
        self.refuses("forecast", "observe", log, "--out", out, "--model", out, "--hidden", "9", saying="--model")
        self.refuses("forecast", "observe", log, "--out", out, "--rate", "0", saying="--rate")
        self.refuses("forecast", "observe", log, "--out", out, "--window", "0", saying="--window")


if __name__ == "__main__":
    unittest.main()
