"""One grid on several ranks: losses of pde by planes, a flow by slabs. The bits of one rank, and named errors."""
import json
import math
import os
import random
import unittest
import zipfile

import test_pde
from program import PROGRAM, later, run
from ranks import RanksTest

FLOW = ["flow", "run", "--n", "64", "--closure", "smagorinsky", "--device", "cpu,interp", "--format", "npz", "--save-every", "10"]


class Divided(RanksTest):
    def content(self, *parts):
        with open(self.path(*parts), "rb") as file:
            return file.read()

    def done(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def mpi(self, *parts, timeout=240):
        return super().mpi(*parts, timeout=timeout)

    def fields(self, levels=None, seed=4, planes=14, plane=(5, 6), bad=None):
        """Frames of 14 planes, which are blocks of four, four, four and two; `bad`: the position of a NaN in u1."""
        rand, shape = random.Random(seed), (planes, *plane)
        def array(*leading):
            sizes = (*leading, *shape)
            count = 1
            for size in sizes:
                count *= size
            return ("<f8", sizes, [rand.uniform(-1, 1) for _ in range(count)])
        if levels:
            arrays = {"sigma": array(levels), "u": array(levels, 3)}
        else:
            arrays = {name: array() for name in ("sigma0", "sigma1", "sigma2", "p")} | {name: array(3) for name in ("u0", "u1", "u2", "force")}
        arrays["mask"] = ("<f8", shape, [float(rand.randrange(3)) for _ in range(math.prod(shape))])
        if bad is not None:
            arrays["u1"][2][bad] = math.nan
        return test_pde.write_npz(self.path(f"fields{levels}-{seed}-{planes}-{bad}.npz"), arrays)

    def loss(self, file, out, *more):
        return ["pde", "loss", file, *test_pde.PLACE, "--terms", "all,viscosity:0.1,pressure,forcing,divergence:0.5", "--order", "4", "--device", "cpu",
                "--out", self.path(out + ".npz"), "--residuals", self.path(out + "-r.npz"), "--json", *more]

    def results(self, text, out):
        document = json.loads(text)
        return {name: document[name] for name in ("loss", "loss_sigma", "loss_u", "by_number", "kernel", "cells")}, \
            test_pde.read_npz(self.path(out + ".npz")), test_pde.read_npz(self.path(out + "-r.npz"))

    def test_losses_by_planes_have_the_bits_of_one_rank(self):
        file = self.fields()
        for boundary in ("periodic", "z=one_sided2,x=no_slip"):
            words = ("--boundary", boundary)
            one = self.results(self.done(*self.loss(file, "one", *words)), "one")
            self.assertIn("viscosity", one[0]["by_number"])
            for ranks in (2, 3, 4):
                several = self.done(*self.loss(file, "several", *words, "--ranks", str(ranks)))
                self.assertEqual(self.results(several, "several"), one, f"{boundary}, {ranks} ranks")
        for ranks in (1, 3):
            done = self.mpi((ranks, [PROGRAM, *self.loss(file, "mpi", *words)]))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.results(done.stdout, "mpi"), one, f"{ranks} processes")

    def test_ranks_read_their_planes_of_a_file(self):
        file = self.fields(planes=100, plane=(12, 16))
        one = self.results(self.done(*self.loss(file, "one")), "one")
        # 17 volumes of 100 planes are 2.6 MB; 39 planes with those around them, u1 and a mask again are 1.6 MB at most.
        little = self.loss(file, "little", "--input-memory", "2M")
        self.refuses(*[word for word in little if word != "--json"], saying="for all that is read")
        done = self.mpi((3, [PROGRAM, *little]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.results(done.stdout, "little"), one)
        packed = self.path("deflated.npz")
        with zipfile.ZipFile(file) as own, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as other:
            for name in own.namelist():
                other.writestr(name, own.read(name))
        self.assertEqual(self.results(self.done(*self.loss(packed, "packed", "--ranks", "3")), "packed"), one)

    def test_damage_of_a_plane_is_named(self):
        file = self.fields()
        with zipfile.ZipFile(file) as archive:
            info = archive.getinfo("u1.npy")
        with open(file, "r+b") as raw:
            raw.seek(info.header_offset + 30 + len("u1.npy") + info.file_size - 100)  # of the third component's last plane
            byte = raw.read(1)[0]
            raw.seek(-1, os.SEEK_CUR)
            raw.write(bytes([byte ^ 1]))
        for ranks in (1, 3):
            self.refuses(*[word for word in self.loss(file, "refused", "--ranks", str(ranks)) if word != "--json"], saying="member 'u1.npy' has a wrong checksum")
            # The second component at (12, 3, 2), which is of the last rank's own planes.
            self.refuses(*[word for word in self.loss(self.fields(bad=14 * 30 + 12 * 30 + 3 * 6 + 2), "refused", "--ranks", str(ranks)) if word != "--json"],
                         saying="array u1 is not finite at (1, 12, 3, 2)")
        self.assertFalse(os.path.exists(self.path("refused.npz")))

    def test_trajectories_by_planes_have_the_bits_of_one_rank(self):
        file = self.fields(levels=4)
        def found(out, *more):
            text = self.done("pde", "trajectory", file, *test_pde.PLACE, "--boundary", "z=clamp", "--device", "cpu", "--out", self.path(out), "--json", *more)
            return json.loads(text)["loss"], test_pde.read_npz(self.path(out))
        one = found("one.npz")
        for ranks in (2, 4):
            self.assertEqual(found("several.npz", "--ranks", str(ranks)), one, f"{ranks} ranks")

    def test_derivatives_by_values_of_sides_have_the_bits_of_one_rank(self):
        sides = ["--boundary", "z-=dirichlet_face:@lid,z+=clamp,x-=ghost:@wind,x+=clamp", "--parameters", "lid=1,wind=0.5"]
        file, levels = self.fields(), self.fields(levels=5)
        def trajectory(out, *more):
            text = self.done("pde", "trajectory", levels, *test_pde.PLACE, *sides, "--device", "cpu", "--out", self.path(out), "--json", *more)
            return json.loads(text)["loss"], test_pde.read_npz(self.path(out))
        one, steps = self.results(self.done(*self.loss(file, "one", *sides)), "one"), trajectory("steps.npz")
        self.assertEqual(set(one[0]["by_number"]), {"viscosity", "lid", "wind"})
        self.assertNotEqual(one[0]["by_number"]["lid"], 0)
        for ranks in ("2", "4"):
            several = self.done(*self.loss(file, "several", *sides, "--ranks", ranks))
            self.assertEqual(self.results(several, "several"), one, f"{ranks} ranks")
            self.assertEqual(trajectory("several.npz", "--ranks", ranks), steps, f"{ranks} ranks")

    def test_what_losses_over_ranks_refuse(self):
        file = self.fields()
        for words, saying in [(["--ranks", "5"], "14 planes for 5 ranks [pde]: expected at most a rank for each 4 planes along z"),
                              (["--ranks", "2", "--kernel", "reference"], "the reference over ranks")]:
            self.refuses(*[word for word in self.loss(file, "refused", *words) if word != "--json"], saying=saying)
            self.assertFalse(os.path.exists(self.path("refused.npz")))
        own = [PROGRAM, *self.loss(file, "differ")]
        self.mpi_refuses((1, own), (1, later([*own, "--dt", "0.06"])), saying="options and arrays of rank 1 differ from those of rank 0 [MPI")
        other = [self.fields(seed=5) if word == file else word for word in own]
        self.mpi_refuses((2, own), (1, other), saying="options and arrays of rank 2 differ from those of rank 0 [MPI")

    def test_traces_of_all_processes_are_one_file(self):
        own = [PROGRAM, *self.loss(self.fields(), "traced", "--trace", self.path("trace.json"))]
        # Rank 1 begins half a second later, and its clock with it.
        done = self.mpi((1, own), (1, ["sh", "-c", 'sleep 0.5; exec "$@"', "sh", *own]))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("trace.json")) as file:
            events = json.load(file)["traceEvents"]
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.assertEqual(names, {1: "lockstep rank 0", 2: "lockstep rank 1"})
        spans = {pid: [e for e in events if e["pid"] == pid and e["ph"] == "X" and e["name"] == "pde.loss"] for pid in names}
        self.assertTrue(spans[1] and spans[2], "the stage of both ranks")
        # The second stage begins after a message of every rank: on one clock it begins after the first stages of both have ended.
        second = max(e["ts"] for e in spans[1])
        self.assertLess(min(e["ts"] + e["dur"] for e in spans[2]), second + 1e5)
        self.assertGreater(max(e["ts"] for e in spans[2]), min(e["ts"] + e["dur"] for e in spans[1]) - 1e5)

    def test_a_flow_in_slabs_has_the_bits_of_one_rank(self):
        kinds = {"rk4": ["--dt", "0.01", "--steps", "30", "--history-every", "7", "--forcing", "stochastic:4,0.01"],
                 "adaptive": ["--cfl", "0.5", "--time", "0.3"],
                 "ab3": ["--dt", "0.005", "--steps", "24", "--integrator", "ab3", "--precision", "f64"],
                 "etdrk4": ["--dt", "0.01", "--steps", "20", "--integrator", "etdrk4", "--ensemble", "2"]}
        for kind, words in kinds.items():
            self.done(*FLOW, *words, "--quiet", "--out", self.path(kind))
            one = self.content(kind, "run.npz")
            for ranks in (2, 3) if kind == "rk4" else (3,):
                self.done(*FLOW, *words, "--quiet", "--ranks", str(ranks), "--out", self.path("slabs"))
                self.assertEqual(self.content("slabs", "run.npz"), one, f"{kind}, {ranks} threads")
        done = self.mpi((3, [PROGRAM, *FLOW, *kinds["rk4"], "--out", self.path("mpi")]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.content("mpi", "run.npz"), self.content("rk4", "run.npz"), "3 processes")

    def test_slabs_go_on_from_the_checkpoint_of_any_number_of_ranks(self):
        steps = ["--dt", "0.005", "--integrator", "ab3", "--quiet"]
        self.done(*FLOW, *steps, "--steps", "30", "--out", self.path("whole"))
        for ranks, end in ((3, "10"), (1, "20"), (2, "30")):
            self.done(*FLOW, *steps, "--checkpoint", self.path("state.npz"), "--steps", end, "--ranks", str(ranks), "--out", self.path("parts"))
        self.assertEqual(self.content("parts", "run.npz"), self.content("whole", "run.npz"))

    def test_a_refusal_on_resume_is_that_of_the_ranks(self):
        words = later([*FLOW, "--n", "48", "--dt", "0.01", "--checkpoint", self.path("state.npz"), "--out", self.path("out"), "--quiet"])
        self.done(*words, "--steps", "4")
        found = run(*words, "--steps", "8", "--ranks", "2")
        self.assertEqual(found.returncode, 2)
        self.assertIn("expected axes whose points are powers of two", found.stderr)
        self.assertNotIn("[" + self.path("state.npz"), found.stderr)

    def test_what_slabs_refuse(self):
        for words, saying in [(["--n", "48"], "expected axes whose points are powers of two up to 8192, the stress form, and no closure or Smagorinsky's, or a member for each rank"),
                              (["--closure", "dynamic-smagorinsky"], "expected axes whose points are powers of two up to 8192, the stress form, and no closure or Smagorinsky's, or a member for each rank")]:
            self.refuses(*later([*FLOW, *words, "--steps", "2", "--ranks", "2", "--out", self.path("refused")]), saying=saying)
        fast = [*FLOW, "--ic", "taylor-green", "--forcing", "stochastic:4,2", "--dt", "0.05", "--steps", "200", "--quiet"]
        errors = []
        for ranks in ("1", "3"):
            done = run(*fast, "--ranks", ranks, "--out", self.path("fast" + ranks))
            self.assertEqual(done.returncode, 2, done.stderr)
            errors.append(next(line for line in done.stderr.splitlines() if line.startswith("lockstep: error: ")))
        self.assertIn("member 0 of the flow blew up by step", errors[0])
        self.assertEqual(errors[0], errors[1])
        self.assertEqual(self.content("fast1", "blow_up.npz"), self.content("fast3", "blow_up.npz"))


if __name__ == "__main__":
    unittest.main()
