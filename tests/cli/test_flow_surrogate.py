"""flow learn, rollout and pipeline: JSON, files, tables, refusals."""
import json
import os
import unittest

from program import ProgramTest

SMALL = ["--n", "32", "--nu", "2e-3", "--dt", "0.01", "--integrator", "rk2", "--device", "cpu"]


class FlowSurrogate(ProgramTest):
    def test_learn_and_rollout(self):
        self.json_of("flow", "run", *SMALL, "--steps", "60", "--save-every", "2", "--format", "npz", "--out", self.path("run"))
        self.json_of("flow", "encode", self.path("run", "run.npz"), "--rank", "0.9", "--device", "cpu", "--out", self.path("z.npz"))
        learnt = self.json_of("flow", "learn", self.path("z.npz"), "--method", "dmd", "--vectors", "5", "--delays", "2",
                              "--train-share", "0.6", "--device", "cpu", "--out", self.path("m.npz"))
        self.check_summary(learnt)
        self.assertEqual((learnt["frames"], learnt["train_frames"], learnt["state_size"]), (31, 18, 10))
        for part in ("latents", "fields"):
            self.assertLessEqual({"held_out", "in_sample"}, set(learnt[part]))
        held = learnt["latents"]["held_out"]
        self.assertEqual(len(held["surrogate_by_step"]), 13)
        nearer = [a < b for a, b in zip(held["surrogate_by_step"], held["persistence_by_step"])] + [False]
        self.assertEqual(learnt["horizon"], nearer.index(False))
        self.assertLessEqual({"surrogate", "persistence", "climatology"}, set(learnt["fields"]["held_out"]))
        rolled = self.json_of("flow", "rollout", self.path("m.npz"), "--steps", "7", "--device", "cpu", "--out", self.path("f.npz"))
        self.assertEqual(rolled["steps"], 7)
        self.assertEqual(rolled["latents"], learnt["latents"])
        fields = self.json_of("flow", "decode", self.path("f.npz"), "--device", "cpu", "--out", self.path("fields.npz"))
        self.assertEqual(fields["frames"], 7)
        # The last training frame is at 17 * 2 steps; the first predicted one 2 steps later.
        both = self.json_of("flow", "compare", self.path("run", "run.npz"), self.path("fields.npz"))
        self.assertAlmostEqual(both["times"][0]["time"], 0.36, 5)
        self.assertEqual(len(both["times"]), 7)
        self.refuses("flow", "learn", self.path("m.npz"), "--device", "cpu", "--out", self.path("n.npz"), saying="m.npz")
        self.refuses("flow", "rollout", self.path("z.npz"), "--steps", "3", "--device", "cpu", "--out", self.path("n.npz"),
                     saying="flow learn")
        self.refuses("flow", "learn", self.path("z.npz"), "--train-share", "0.01", "--device", "cpu", "--out",
                     self.path("n.npz"), saying="0 of 31 frames")
        self.assertFalse(os.path.exists(self.path("n.npz")))

    def test_pipeline(self):
        table = self.json_of("flow", "pipeline", *SMALL, "--steps", "40", "--strides", "2,4", "--precisions", "f32,f64",
                             "--rank", "0.9", "--pictures", "--log-metrics", self.path("log"), "--out", self.path("out"))
        self.check_summary(table)
        self.assertEqual([(r["stride"], r["precision"]) for r in table["runs"]],
                         [(2, "f32"), (2, "f64"), (4, "f32"), (4, "f64")])
        for r in table["runs"]:
            self.assertLessEqual({"flow.simulate", "flow.encode", "flow.learn", "flow.rollout", "flow.decode", "flow.plot"},
                                 set(r["wall_seconds"]))
            for stage in r["counted_transfers"]:
                for direction in ("to_device", "from_device"):
                    listed = sum(t["bytes"] for t in r["transfers"]
                                 if t["stage"] == stage["stage"] and t["direction"] == direction)
                    self.assertEqual(listed, stage["bytes_" + direction], stage["stage"])
            for picture in r["pictures"]:
                self.assertTrue(os.path.getsize(picture) > 0)
            self.assertLessEqual({"relative_l2", "correlation", "energy_drift", "enstrophy_drift"},
                                 set(r["fields"]["held_out"]["surrogate"]))
        with open(self.path("out", "metrics.json")) as file:
            self.assertEqual(json.load(file)["runs"], table["runs"])
        with open(self.path("out", "report.md")) as file:
            self.assertIn("| device (cpu) | 32x32 | 4 | f64 | persistence |", file.read())
        with open(self.path("log", "summary.json")) as file:
            self.assertEqual(len(json.load(file)), 4)

    def test_pipeline_with_a_bound(self):
        arguments = [*SMALL, "--steps", "40", "--strides", "2", "--max-error", "1e-3"]
        runs = [self.json_of("flow", "pipeline", *arguments, "--overlap", overlap, "--out", self.path(overlap))["runs"][0]
                for overlap in ("off", "on")]
        self.assertEqual([r["overlapped"] for r in runs], [False, True])
        for key in ("coded", "fields", "latents", "transfers", "memory"):
            self.assertEqual(runs[0][key], runs[1][key])
        self.assertLessEqual(runs[0]["coded"]["max_error"], 1e-3)
        self.assertLess(runs[0]["coded"]["bits_per_point"], 32)
        self.refuses("flow", "pipeline", *arguments, "--codec", "classic", "--out", self.path("out"), saying="--max-error")

    def test_refusals(self):
        out = ["--out", self.path("out")]
        for arguments, saying in ((["--strides", "3", "--steps", "40"], "a stride of 3"), (["--strides", "x"], "'x'"),
                                  (["--places", "moon"], "'moon'"), (["--precisions", "f16"], "'f16'"),
                                  (["--sizes", "16,32"], "--n with --sizes"), (["--cfl", "0.5", "--steps", "40"], "cfl"),
                                  (["--codec", "classic", "--rank", "0.9"], "--codec classic"),
                                  (["--save-every", "5", "--steps", "40"], "--save-every"), (["--format", "npz"], "--format")):
            arguments = [a for a in SMALL if not ("--cfl" in arguments and a in ("--dt", "0.01"))] + arguments
            with self.subTest(arguments):
                self.refuses("flow", "pipeline", *arguments, *out, saying=saying)


if __name__ == "__main__":
    unittest.main()
