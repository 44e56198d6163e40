"""Inputs that would be ignored, lose a file or end in NaN are refused, and earlier files stay as they are."""
import os
import struct
import zipfile

from program import ProgramTest, run


def member(shape, kind, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (kind, shape)
    header += " " * ((64 - (len(header) + 11) % 64) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


class Refusals(ProgramTest):
    def refused(self, *arguments, said, env=None):
        done = run(*arguments, env=env)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        for part in said:
            self.assertIn(part, done.stderr)

    def text(self, name, content):
        path = self.path(name)
        with open(path, "w") as file:
            file.write(content)
        return path

    def log(self, last="9,1.9"):
        return self.text("log.csv", "step,loss\n" + "".join("%d,1.%d\n" % (k, k) for k in range(1, 9)) + last + "\n")

    def task(self, text="", optimizer="", targets=None, inputs=None, classes=2):
        n = 40
        targets = [k % 2 for k in range(n)] if targets is None else targets
        with zipfile.ZipFile(self.path("data.npz"), "w") as archive:
            archive.writestr("inputs.npy", member((n, 3), "<f8", struct.pack("<120d", *(inputs or [k % 7 - 3 for k in range(120)]))))
            archive.writestr("targets.npy", member((n,), "<i8", struct.pack("<40q", *targets)))
            archive.writestr("validation_inputs.npy", member((4, 2), "<f8", bytes(64)))
            archive.writestr("validation_targets.npy", member((4,), "<i8", bytes(32)))
        with zipfile.ZipFile(self.path("plain.npz"), "w") as archive:
            archive.writestr("inputs.npy", member((n, 3), "<f8", struct.pack("<120d", *(inputs or [k % 7 - 3 for k in range(120)]))))
            archive.writestr("targets.npy", member((n,), "<i8", struct.pack("<40q", *targets)))
        return self.text("task.toml", 'data = "plain.npz"\nloss = "cross_entropy"\nsteps = 30\nbatch = 8\nevaluate_every = 10\n' + text +
                         '[optimizer]\nmethod = "adam"\nrate = 0.01\n' + optimizer + '[[layers]]\nkind = "dense"\nunits = %d\n' % classes)

    def test_a_file_that_a_result_would_replace(self):
        out = self.path("out")
        for option, name in (("--checkpoint", "run.nc"), ("--telemetry", "spectra.png"), ("--trace", "run.npz")):
            self.refused("flow", "run", "--n", "16", "--steps", "2", "--dt", "0.01", "--out", out, option, os.path.join(out, name),
                         said=["is also a result in the folder of --out", option])
        self.refused("forecast", "train", "xor", "--steps", "4", "--out", out, "--telemetry", os.path.join(out, "log.jsonl"),
                     said=["is also a result"])

    def test_a_comparison_with_itself(self):
        self.refused("verify", "engine.copy", "--device", "cpu", "--against", "cpu", said=["the device itself", "--against"])

    def test_sizes_with_more_numbers_than_the_case_has(self):
        self.refused("bench", "engine.copy", "--device", "cpu", "--sizes", "64x64x9", "--iterations", "1", said=["64x64x9"])

    def test_a_record_that_is_a_pipe(self):
        os.mkdir(self.path("folder"))
        os.mkfifo(self.path("folder/run.json"))
        self.refused("reproduce", self.path("folder"), said=["not a file", "run.json"])

    def test_handles_without_a_handle(self):
        self.refused("solve", "mesh", "grid:3x3", "--energy", "arap", "--handles", self.text("none.txt", ""), "--out", self.path("m.obj"),
                     said=["no handles", "none.txt"])

    def test_a_table_of_variants_that_is_missing_is_reported(self):
        done = run("verify", "primitives.matmul", "--device", "cpu", env={"LOCKSTEP_VARIANTS": self.path("missing.json")})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("missing.json", done.stderr)
        self.refused("tune", "primitives.matmul", "--device", "cpu", "--out", self.text("bad.json", "{"), said=["no JSON", "bad.json"])

    def test_features_beyond_f32(self):
        log = self.text("large.csv", "step,loss\n1,1e20\n2,2e20\n3,1e39\n")
        self.refused("forecast", "encode", log, "--out", self.path("e.npz"), said=["loss_std at step 2 is inf", "large.csv", "f32"])
        self.assertFalse(os.path.exists(self.path("e.npz")))
        self.assertEqual(run("forecast", "encode", log, "--precision", "f64", "--out", self.path("e.npz")).returncode, 0)

    def test_an_ensemble_that_diverges(self):
        out = self.text("model.npz", "an earlier file")
        common = ("--out", out, "--hidden", "4", "--members", "2")
        self.refused("forecast", "observe", self.log(), *common, "--rate", "1e38", "--clip-norm", "0", said=["forecast observe"])
        self.refused("forecast", "observe", self.log("9,1e-46"), *common, said=["step 9"])
        self.refused("forecast", "observe", self.log(), "--out", out, "--hidden", "8192", "--members", "4096", said=["GiB", "--members"])
        with open(out) as file:
            self.assertEqual(file.read(), "an earlier file")

    def test_keys_of_a_task_without_effect(self):
        for key in ("weight_decay = 0.5", "momentum = 0.9", "final_share = 0.5", "every = 3", "factor = 0.1"):
            self.refused("forecast", "train", self.task(optimizer=key + "\n"), "--out", self.path("t"), said=[key.split()[0], "no effect"])

    def test_sizes_of_a_task(self):
        self.refused("forecast", "train", self.task(classes=10**12), "--out", self.path("t"), said=["units", "at most"])
        path = self.task()
        with open(path) as file:
            text = file.read().replace("batch = 8", "batch = 2000000000")
        self.refused("forecast", "train", self.text("task.toml", text), "--out", self.path("t"), said=["batch", "at most"])

    def test_a_task_of_many_steps(self):
        path = self.task()
        with open(path) as file:
            text = file.read().replace("steps = 30", "steps = 100000000")
        done = run("forecast", "train", self.text("task.toml", text), "--steps", "4", "--out", self.path("t"), "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_data_of_a_task(self):
        out = self.path("t")
        self.assertEqual(run("forecast", "train", self.task(), "--out", out, "--device", "cpu").returncode, 0)
        before = {name: open(os.path.join(out, name), "rb").read() for name in os.listdir(out)}
        self.refused("forecast", "train", self.task(targets=[k % 2 + 1 for k in range(40)]), "--out", out, said=["class 2", "0 to 1"])
        self.refused("forecast", "train", self.task(inputs=[1e300] * 120), "--out", out, said=["inputs element 0", "range of f32"])
        with open(self.task()) as file:
            text = file.read().replace("plain.npz", "data.npz")
        self.refused("forecast", "train", self.text("task.toml", text), "--out", out, said=["validation_inputs", "(4, 2)"])
        self.refused("forecast", "train", self.text("task.toml", "validation_share = 0.1\n" + text), "--out", out,
                     said=["validation_share and validation_inputs"])
        self.assertEqual(before, {name: open(os.path.join(out, name), "rb").read() for name in os.listdir(out)})


if __name__ == "__main__":
    import unittest
    unittest.main()
