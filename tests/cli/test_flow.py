"""flow run and compare: JSON, files, checkpoints that survive a kill, refusals."""
import os
import signal
import struct
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, npy

SMALL = ["--n", "16", "--nu", "1e-3", "--dt", "0.01", "--device", "cpu", "--format", "npz"]


class Flow(ProgramTest):
    def flow(self, *more, out="out"):
        document = self.json_of("flow", "run", *SMALL, *more, "--out", self.path(out))
        self.check_summary(document)
        return document

    def bytes_of(self, out):
        with open(self.path(out, "run.npz"), "rb") as file:
            return file.read()

    def test_run_and_compare(self):
        a = self.flow("--steps", "20", "--save-every", "10", "--pictures")
        self.assertLessEqual({"energy", "enstrophy", "palinstrophy", "time", "steps", "steps_per_second", "dt_min"}, set(a))
        self.assertEqual(a["steps"], 20)
        self.assertAlmostEqual(a["time"], 0.2, 6)
        self.assertTrue(0 < a["energy"] < 0.5)
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         ["omega_000000.png", "omega_000001.png", "omega_000002.png", "run.json", "run.npz", "spectra.png"])
        self.flow("--steps", "20", "--save-every", "10", "--closure", "smagorinsky:0.3", out="les")
        both = self.json_of("flow", "compare", self.path("out", "run.npz"), self.path("les", "run.npz"))
        self.assertEqual(len(both["times"]), 3)
        self.assertEqual(both["times"][0]["relative_l2"], 0)
        self.assertTrue(0 < both["relative_l2"] < 0.5)
        self.assertLess(both["energy_drift"], 0)

    def test_options_reach_the_flow(self):
        b = self.flow("--steps", "5", "--ensemble", "2", "--integrator", "etdrk4", "--dealias", "padded", "--forcing",
                      "stochastic:3,0.1", "--drag", "0.1", "--beta", "1", "--hyper", "1e-6,2", "--hypo", "0.1,1",
                      "--precision", "f64", "--box", "6,12", "--closure", "dynamic-smagorinsky", "--closure-form", "simple")
        self.assertEqual(len(b["energy"]), 2)
        self.assertEqual(b["box"], [6, 12])
        alone = self.flow("--steps", "5", "--seed", "1", "--integrator", "etdrk4", "--dealias", "padded", "--forcing",
                          "stochastic:3,0.1", "--drag", "0.1", "--beta", "1", "--hyper", "1e-6,2", "--hypo", "0.1,1",
                          "--precision", "f64", "--box", "6,12", "--closure", "dynamic-smagorinsky", "--closure-form", "simple")
        self.assertEqual(alone["energy"], b["energy"][1])

    def test_initial_field_of_a_file(self):
        npy(self.path("w.npy"), [[float((r * 7 + c * 3) % 5 - 2) for c in range(12)] for r in range(8)])
        document = self.json_of("flow", "run", "--ic", self.path("w.npy"), "--steps", "2", "--format", "npz", "--device",
                                "cpu", "--nu", "0.01", "--out", self.path("out"))
        self.assertEqual(document["n"], [8, 12])

    def test_a_killed_run_goes_on(self):
        more = ["--steps", "4000", "--save-every", "100", "--seed", "5"]
        self.flow(*more, out="whole")
        arguments = [PROGRAM, "flow", "run", *SMALL, *more, "--checkpoint", self.path("state.npz"), "--out", self.path("cut")]
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while not os.path.exists(self.path("state.npz")) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        document = self.flow(*more, "--checkpoint", self.path("state.npz"), out="cut")
        self.assertIn("resumed_at", document)
        self.assertEqual(self.bytes_of("cut"), self.bytes_of("whole"))
        self.refuses("flow", "run", *SMALL, *more, "--drag", "1", "--checkpoint", self.path("state.npz"), "--out",
                     self.path("cut"), saying="drag = 0, now 1")

    def test_refusals(self):
        out = ["--device", "cpu", "--out", self.path("out")]
        for arguments, saying in (
                (["--n", "2"], "2 x 2"), (["--n", "a"], "'a'"), (["--dt", "-1"], "-1"),
                (["--dt", "nan"], "nan"), (["--nu", "-1"], "-1"), (["--nu", "nan"], "nan"), (["--dt", "0.1", "--cfl", "1"], "--cfl"),
                (["--steps", "3", "--time", "1"], "--time"), (["--cfl", "9"], "cfl = 9"),
                (["--cfl", "0.5", "--integrator", "ab3"], "ab3"), (["--closure-form", "simple"], "closure"),
                (["--closure", "leith:x"], "'x'"), (["--closure", "dynamic-leith:1"], "dynamic-leith:1"),
                (["--forcing", "kolmogorov"], "'kolmogorov'"), (["--forcing", "kolmogorov:99,1", "--n", "16"], "99"),
                (["--hyper", "1"], "'1'"), (["--averaging", "local"], "averaging"), (["--ic", "absent.nc"], "absent.nc"),
                (["--integrator", "euler"], "euler"), (["--n", "32", "--nu", "1", "--dt", "0.1"], "unstable")):
            with self.subTest(arguments):
                self.refuses("flow", "run", *arguments, *out, saying=saying)
        # Sizes that exceed the memory are rejected before allocation; the message names the option.
        for arguments, saying in ((["--n", "1000000000"], "[--n]"), (["--n", "99999999999999999999999999"], "[--n]"),
                                  (["--n", "65536", "--ensemble", "1048576"], "[--n and --ensemble]")):
            with self.subTest(arguments):
                self.refuses("flow", "run", *arguments, *out, saying=saying)
        for arguments, saying in ((["--n", "1000000000"], "[--n]"), (["--sizes", "32,1000000000"], "[--sizes]")):
            self.refuses("flow", "pipeline", *arguments, *out, saying=saying)
        self.refuses("flow", "compare", "a.npz", saying="B is missing")
        with open(self.path("new.mat"), "wb") as file:
            file.write(b" " * 124 + struct.pack("<H", 0x0200) + b"IM" + bytes(64))
        self.refuses("flow", "run", "--ic", self.path("new.mat"), *out, saying="7.3")
        done = self.refuses("flow", "run", "--n", "16", "--forcing", "kolmogorov:2,1e5", "--steps", "200", *out,
                            saying="blew up by step")
        self.assertIn("blow_up.npz", done.stderr)


if __name__ == "__main__":
    unittest.main()
