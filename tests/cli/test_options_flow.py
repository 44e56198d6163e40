"""Every option of flow's commands changes something or is refused."""
import math
import os
import unittest

from options_walk import OptionsWalk
from program import later, npy, run

ON = ["--device", "interp"]
RUN = ["--n", "8", "--nu", "1e-3", "--steps", "4", "--format", "npz", *ON, "--out", "{out}/r"]
FLOW = {
    "--n": ([], ["--n", "12"]), "--ic": ([], ["--ic", "shear"]), "--seed": ([], ["--seed", "3"]), "--nu": ([], ["--nu", "1e-2"]),
    "--dt": ([], ["--dt", "0.002"]), "--cfl": ([], ["--cfl", "0.1"]), "--steps": ([], ["--steps", "2"]),
    "--time": (["--time", "0.002"], ["--time", "0.004"]), "--integrator": ([], ["--integrator", "rk2"]),
    "--dealias": ([], ["--dealias", "none"]), "--closure": ([], ["--closure", "smagorinsky"]),
    "--closure-form": (["--closure", "smagorinsky"], ["--closure-form", "simple"]),
    "--averaging": (["--closure", "dynamic-smagorinsky"], ["--averaging", "local"]), "--advection": ([], ["--advection", "flux"]),
    "--forcing": ([], ["--forcing", "kolmogorov:2,1"]), "--forcing-seed": (["--forcing", "stochastic:2,1"], ["--forcing-seed", "5"]),
    "--drag": ([], ["--drag", "0.1"]), "--beta": ([], ["--beta", "1"]),
    "--hyper": ([], ["--hyper", "1e-4,2"]), "--hypo": ([], ["--hypo", "0.1,1"]), "--precision": ([], ["--precision", "f64"]),
    "--ensemble": ([], ["--ensemble", "2"]), "--box": ([], ["--box", "6,12"]), "--save-every": ([], ["--save-every", "2"]),
    "--history-every": ([], ["--history-every", "2"]), "--pictures": ([], ["--pictures"]), "--video": ([], ["--video", "{out}/f.mp4"]),
    "--checkpoint": ([], ["--checkpoint", "{out}/c.npz"]), "--format": ([], ["--format", "nc"]),
}
# A pipeline is one flow at a fixed step, and keeps nothing of it on the host.
NOT_OF_PIPELINE = ("--ensemble", "--cfl", "--time", "--save-every", "--history-every", "--checkpoint", "--format")
PIPELINE = ["--n", "8", "--nu", "1e-3", "--steps", "12", "--strides", "1", "--cut", "2", *ON, "--out", "{out}/r"]
LEARN = {
    "--method": ([], ["--method", "dmd"]), "--train-share": ([], ["--train-share", "0.7"]), "--delays": ([], ["--delays", "2"]),
    "--vectors": ([], ["--vectors", "2"]), "--vector-share": ([], ["--vector-share", "0.9"]), "--lambda": ([], ["--lambda", "10"]),
    "--rollout": ([], ["--rollout", "steps"]),
}
ENCODE = {
    "--codec": ([], ["--codec", "classic"]), "--max-error": ([], ["--max-error", "0.1"]), "--rank": ([], ["--rank", "0.5"]),
    "--cut": ([], ["--cut", "3"]), "--low": (["--codec", "classic"], ["--low", "3"]), "--middle": (["--codec", "classic"], ["--middle", "10"]),
    "--threshold": ([], ["--threshold", "0.8"]), "--box-points": (["--codec", "classic"], ["--box-points", "5"]),
    "--anchor-count": (["--codec", "classic"], ["--anchor-count", "5"]), "--anchors": (["--codec", "classic"], ["--anchors", "used"]),
    "--seed": ([], ["--seed", "3"]),
}


class FlowOptions(OptionsWalk):
    VOLATILE = OptionsWalk.VOLATILE + (".md",)  # the report of a pipeline has times

    def setUp(self):
        super().setUp()
        wave = lambda r, c: 3 * math.sin(0.4 * c + 0.2) * math.cos(0.3 * r) + math.sin(2.1 * c * r)
        self.places.update({"{field}": npy(self.path("w.npy"), [[wave(r, c) for c in range(32)] for r in range(32)]),
                            "{z}": self.path("z.npz"), "{m}": self.path("m.npz"), "{run}": self.path("run/run.npz")})

    def make(self, *arguments):
        done = run(*later([*arguments, *ON]))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_run(self):
        contradict = {"--cfl": ["--dt"], "--time": ["--steps"]}
        self.walk_flat(["flow", "run"], RUN, {**FLOW, "--memory": ([], ["--memory"]), "--watch": None}, {"--out"}, contradict=contradict)
        done = self.outcome("flow", "run", *RUN, "--watch")
        self.assertIn("steps/s", done[3])
        self.refuses_all(["flow", "run"], RUN, (
            (["--dt", "0.001", "--cfl", "0.5"], "--cfl"), (["--time", "1"], "--steps with --time"), (["--watch", "--quiet"], "--quiet"),
            (["--watch", "--memory"], "--memory"), (["--ic", "shear", "--seed", "0"], "nothing is random"), (["--n", "12", "--ic", "{field}"], "12 x 12"),
            (["--forcing", "kolmogorov:2,1", "--forcing-seed", "1"], "--forcing stochastic"), (["--time", "0"], "'0' [--time]"),
            (["--hypo-power", "2"], "did you mean --hypo?"), (["--viscosity", "1"], "did you mean --nu?"), (["--members", "2"], "did you mean --ensemble?"),
            (["--closure", "none", "--closure-form", "divergence"], "--closure-form"), (["--averaging", "global"], "--averaging"),
            (["--out", "{field}"], "a file has this name"), (["--out", "{field}/below"], "not a folder"),
            (["--video", "{out}/c.npz", "--checkpoint", "{out}/c.npz"], "is also --video"), (["--telemetry", "{field}/t"], "not a folder")))
        self.make("flow", "run", *RUN[:-2], "--out", self.path("run"))
        self.refuses("flow", "run", *RUN[2:-2], "--ic", self.places["{run}"], "--out", self.path("run"), saying="is an input")

    def test_codec_and_surrogate(self):
        encode = ["{field}", *ON, "--out", "{out}/z.npz"]
        self.walk_flat(["flow", "encode"], encode, ENCODE, {"--out"})
        classic = ["--codec", "classic"]
        self.refuses_all(["flow", "encode"], encode, (
            (["--box-points", "11"], "--box-points"), (["--anchors", "published"], "--anchors"), ([*classic, "--rank", "0.99"], "--rank"),
            (["--rank", "0.9", "--cut", "4"], "one of them"), (["--rank", "0.9", "--max-error", "1"], "one of them"),
            (["--max-error", "1", "--seed", "0"], "--seed"), (["--out", "{field}"], "is the input")))
        self.make("flow", "run", *RUN[:6], *["--steps", "12", "--save-every", "1", "--format", "npz"], "--out", self.path("run"))
        self.make("flow", "encode", self.places["{run}"], "--cut", "2", "--out", self.places["{z}"])
        decode = ["{z}", *ON, "--out", "{out}/f.npz"]
        self.walk_flat(["flow", "decode"], decode, {"--decoder": ([], ["--decoder", "stochastic"]), "--original": ([], ["--original", "{run}"])},
                       {"--out"})
        self.refuses_all(["flow", "decode"], decode, ((["--out", "{z}"], "is the input"), (["--original", "{run}", "--out", "{run}"], "is the input")))
        learn = ["{z}", *ON, "--out", "{out}/m.npz"]
        self.walk_flat(["flow", "learn"], learn, LEARN, {"--out"})
        self.refuses_all(["flow", "learn"], learn, ((["--method", "dmd", "--lambda", "1e-3"], "--lambda"), (["--out", "{z}"], "is the input"),
                                                    (["--vectors", "2", "--vector-share", "1"], "one of them")))
        self.make("flow", "learn", self.places["{z}"], "--out", self.places["{m}"])
        roll = ["{m}", "--steps", "3", *ON, "--out", "{out}/f.npz"]
        self.walk_flat(["flow", "rollout"], roll, {"--steps": ([], ["--steps", "4"]), "--rollout": ([], ["--rollout", "steps"])}, {"--out"})
        self.refuses_all(["flow", "rollout"], roll, ((["--out", "{m}"], "is the input"),))

    def test_pipeline(self):
        table = {**{k: v for k, v in FLOW.items() if k not in NOT_OF_PIPELINE}, **LEARN, **{k: v for k, v in ENCODE.items() if k != "--seed"},
                 "--threshold": None, "--codec-seed": (["--decoder", "stochastic"], ["--codec-seed", "3"]), "--stride": ([], ["--stride", "2"]),
                 "--place": ([], ["--place", "cpu"]), "--strides": ([], ["--strides", "2"]), "--sizes": (["--sizes", "8"], ["--sizes", "12"]),
                 "--precisions": ([], ["--precisions", "f32,f64"]), "--places": ([], ["--places", "cpu"]), "--codec": ([], ["--codec", "classic"]),
                 "--rank": ([], ["--rank", "0.5"]), "--cut": ([], ["--cut", "3"]), "--decoder": ([], ["--decoder", "stochastic"]),
                 "--max-error": ([], ["--max-error", "0.1"]), "--overlap": ([], ["--overlap", "on"]),
                 "--log-metrics": ([], ["--log-metrics", "{out}/log"]), "--steps": ([], ["--steps", "14"])}
        self.walk_flat(["flow", "pipeline"], PIPELINE, table, {"--out"},
                       contradict={"--sizes": ["--n"], "--stride": ["--strides"], "--max-error": ["--cut"], "--rank": ["--cut"], "--codec": ["--cut"], "--cfl": ["--dt"], "--time": ["--steps"]})
        self.refuses_all(["flow", "pipeline"], PIPELINE, (
            (["--sizes", "8"], "one of them"), (["--precision", "f32", "--precisions", "f32"], "one of them"), (["--rank", "0.99"], "one of them"),
            (["--max-error", "1", "--rank", "0.9"], "one of them"), (["--max-error", "1", "--decoder", "stochastic"], "--decoder"),
            (["--max-error", "-1"], "-1"), (["--format", "nc"], "--format"), (["--history-every", "1"], "--history-every"),
            (["--stride", "2"], "--stride with --strides"), (["--place", "cpu", "--places", "cpu"], "--place with --places"),
            (["--codec-seed", "1"], "nothing is random")))
        self.refuses_all(["flow", "pipeline"], PIPELINE, [([option, "1"], option) for option in NOT_OF_PIPELINE])
        for more, saying in ((["--strides", "1,5"], "12 steps with a stride of 5"), (["--vectors", "2048", "--delays", "2"], "2048 singular vectors")):
            self.refuses_all(["flow", "pipeline"], PIPELINE, ((more, saying),))
            self.assertEqual(os.listdir(self.path("out")), [], "refused before the first of several runs")


if __name__ == "__main__":
    unittest.main()
