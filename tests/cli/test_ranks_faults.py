"""What goes wrong on one rank of flow, pde, forecast and solve: a death at any moment, a stop, a full disk, other files.
urban and its tiles: test_ranks.py. LOCKSTEP_FUZZ_COUNT is the number of ranks that are killed."""
import hashlib
import math
import os
import random
import struct
import time
import unittest
import zipfile

import test_pde
import test_ranks_solve
from program import PROGRAM, later, npy, run
from ranks import RanksTest

KILLS = int(os.environ.get("LOCKSTEP_FUZZ_COUNT", "3"))
LOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "forecast", "data", "sweep.csv")


def content(path):
    """None where there is no file."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


class RanksFaults(RanksTest):
    def done(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def flow(self, out, *more):
        return ["flow", "run", "--n", "64", "--ensemble", "4", "--closure", "smagorinsky", "--forcing", "stochastic:4,0.01", "--dt", "0.005", "--steps", "300",
                "--save-every", "10", "--device", "cpu,interp", "--format", "npz", "--checkpoint", self.path(out + ".npz"), "--out", self.path(out), *more]

    def pde(self, out, *more, file=None):
        return later(["pde", "loss", file or self.fields(), *test_pde.PLACE, "--order", "4", "--device", "cpu", "--out", self.path(out + ".npz"),
                      "--residuals", self.path(out + "-r.npz"), *more])

    def train(self, out, *more):
        return ["forecast", "train", "xor", "--device", "cpu,interp", "--parts", "4", "--steps", "20000", "--evaluate-every", "50", "--rate", "0.001",
                "--checkpoint", self.path(out + ".npz"), "--out", self.path(out), *more]

    def sweep(self, out, *more):
        return ["forecast", "sweep", "--synthetic", "4", "--runs", "12", "--checkpoint", self.path(out + ".npz"), *more]

    def solve(self, out, *more):
        return ["solve", "bal", "--synthetic", "8,600", "--parts", "5", "--device", "cpu", "--function-tolerance", "0", "--parameter-tolerance", "0",
                "--gradient-tolerance", "0", "--max-iterations", "2000", "--checkpoint", self.path(out + ".npz"), "--out", self.path(out + ".txt"), *more]

    def fields(self, seed=4, planes=14):
        path = self.path(f"fields{seed}.npz")
        if not os.path.exists(path):
            rand, shape = random.Random(seed), (planes, 12, 16)
            count = planes * 12 * 16
            arrays = {}
            for level in range(3):
                arrays[f"sigma{level}"] = ("<f8", shape, [rand.uniform(-1, 1) for _ in range(count)])
                arrays[f"u{level}"] = ("<f8", (3, *shape), [rand.uniform(-1, 1) for _ in range(3 * count)])
            test_pde.write_npz(path, arrays)
        return path

    def test_killed_ranks_of_a_flow_lose_no_checkpoint(self):
        self.done(*self.flow("whole", "--quiet"))
        whole, chance, resumed, state = content(self.path("whole", "run.npz")), random.Random(33), 0, self.path("killed.npz")
        for attempt in range(KILLS):
            if os.path.exists(state):
                os.remove(state)
            wanted, seen = chance.randrange(0, 10), set()

            def reached():
                seen.add(content(state))
                return len(seen - {None}) >= wanted
            self.kill_one_of(3, [PROGRAM, *self.flow("killed")], chance, reached)
            kept = content(state)
            document = self.json_of(*self.flow("killed", "--ranks", str(1 + attempt % 4)))
            self.assertEqual("resumed_at" in document, kept is not None, "a checkpoint is whole or absent")
            resumed += kept is not None and document["resumed_at"] < 300
            self.assertEqual(content(self.path("killed", "run.npz")), whole)
        self.assertGreater(resumed, 0, "no kill came between the first and the last checkpoint")

    def test_killed_ranks_of_a_loss_leave_whole_files(self):
        names, chance, ended, begin = ("", "-r"), random.Random(33), 0, time.monotonic()
        self.kill_one_of(3, [PROGRAM, *self.pde("whole")], chance, lambda: os.path.exists(self.path("whole-r.npz")))
        until_written = time.monotonic() - begin
        self.done(*self.pde("whole", "--quiet"))
        whole = [content(self.path(f"whole{name}.npz")) for name in names]
        self.done(*self.pde("before", "--dt", "0.5", "--quiet"))
        before = [content(self.path(f"before{name}.npz")) for name in names]
        self.assertNotIn(None, whole + before)
        for attempt in range(4 * KILLS):
            if attempt >= KILLS and ended < attempt:
                break
            for name in names:
                os.replace(self.path(f"before{name}.npz"), self.path(f"killed{name}.npz"))
            at = time.monotonic() + chance.random() * until_written
            self.kill_one_of(3, [PROGRAM, *self.pde("killed")], chance, lambda: time.monotonic() > at)
            found = [content(self.path(f"killed{name}.npz")) for name in names]
            if found == whole:
                ended, until_written = ended + 1, until_written / 2
            for k in range(2):
                self.assertIn(found[k], (before[k], whole[k]), "a file is the former one or the new one")
            self.done(*self.pde("killed", "--quiet", "--ranks", str(1 + attempt % 3)))
            self.assertEqual([content(self.path(f"killed{name}.npz")) for name in names], whole)
            self.done(*self.pde("before", "--dt", "0.5", "--quiet"))
        self.assertLess(ended, 4 * KILLS, "no kill came before the end")

    def test_killed_ranks_of_a_sweep_lose_no_fit(self):
        whole = self.json_of(*self.sweep("whole"))["policies"]
        fits, chance, resumed, state = content(self.path("whole.npz")), random.Random(33), 0, self.path("killed.npz")
        self.assertIsNotNone(fits)
        for attempt in range(KILLS):
            if os.path.exists(state):
                os.remove(state)
            wanted = chance.randrange(0, 12000)
            self.kill_one_of(3, [PROGRAM, *self.sweep("killed")], chance, lambda: os.path.exists(state) and os.path.getsize(state) >= wanted)
            kept = len(read_fits(state))
            done = self.done(*self.sweep("killed", "--ranks", str(1 + attempt % 4)))
            if kept:
                self.assertIn(f"forecast.sweep: {kept} fits are taken over", done.stderr)
                resumed += kept < len(read_fits(state))
            self.assertEqual(content(state), fits)
            self.assertEqual(self.json_of(*self.sweep("killed"))["policies"], whole)
        self.assertGreater(resumed, 0, "no kill came between the first and the last fit")

    def test_a_rank_that_stops_is_named(self):
        for words in (self.flow, self.train, self.sweep, self.solve):
            with self.subTest(words.__name__):
                code, errors = self.stop_one_of(2, [PROGRAM, *words("slow", "--wait-limit", "2")], lambda: os.path.exists(self.path("slow.npz")))
                self.assertIn("rank 1 has not responded for 2 s [MPI", errors)
                self.assertNotEqual(code, 0)
                os.remove(self.path("slow.npz"))

    def test_a_rank_that_cannot_begin_is_named(self):
        os.mkfifo(self.path("pipe.csv"))  # that nobody writes: who opens it waits
        with open(self.path("scene.g2o"), "w") as file:
            file.write(test_ranks_solve.ring(40))
        loss = [PROGRAM, *self.pde("slow", "--wait-limit", "2")]
        graph = [PROGRAM, "solve", "g2o", self.path("scene.g2o"), "--parts", "4", "--device", "cpu", "--wait-limit", "2"]
        sweep = [PROGRAM, "forecast", "sweep", LOG, "--wait-limit", "2"]
        for words, file in ((loss, self.fields()), (graph, self.path("scene.g2o")), (sweep, LOG)):
            with self.subTest(words[1:3]):
                waits = [self.path("pipe.csv") if word == file else word for word in words]
                self.mpi_refuses((1, words), (1, waits), saying="rank 1 has not responded for 2 s [MPI")

    def test_a_full_disk_is_named(self):
        for words, kilobytes in ((self.flow, 64), (self.pde, 16), (self.train, 1), (self.sweep, 1), (self.solve, 8)):
            with self.subTest(words.__name__):
                self.assertIn(self.path("full"), self.mpi_fills_the_disk(0, kilobytes, [PROGRAM, *words("full")]))
                self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("full") and name.endswith(".txt")], [])

    def test_other_files_of_a_rank_are_named(self):
        with open(LOG) as file:
            text = file.read()
        last = next(k for k in range(len(text) - 1, 0, -1) if text[k].isdigit())
        for name, twist in (("a", 0), ("b", 1)):
            with open(self.path(name + ".csv"), "w") as file:
                file.write(text[:last] + str((int(text[last]) + twist) % 10) + text[last + 1:])
            with open(self.path(name + ".g2o"), "w") as file:
                file.write(test_ranks_solve.ring(40).replace("100 0 0 100 0 400", f"100 0 0 100 0 {400 + twist}"))
            npy(self.path(name + ".npy"), [[math.sin(x + 2 * y) + twist * (x == y == 5) for x in range(64)] for y in range(64)])
            test_pde.write_npz(self.path(name + ".npz"), {"inputs": ("<f4", (8, 1), [0.1 * k + twist * (k == 5) for k in range(8)]),
                                                          "targets": ("<i4", (8,), [k % 2 for k in range(8)])})
            with open(self.path(name + ".toml"), "w") as file:
                file.write(f'data = "{name}.npz"\nsteps = 4\nbatch = 4\nevaluate_every = 2\nloss = "cross_entropy"\n[optimizer]\nmethod = "sgd"\n'
                           'rate = 0.1\n[[layers]]\nkind = "dense"\nunits = 2\n')
        both = lambda ending: (self.path("a" + ending), self.path("b" + ending))
        cases = [(["forecast", "sweep", "FILE"], both(".csv")),
                 (["solve", "g2o", "FILE", "--parts", "4", "--device", "cpu"], both(".g2o")),
                 (self.pde("differ", file="FILE"), (self.fields(), self.fields(5))),
                 (["flow", "run", "--ic", "FILE", "--ensemble", "3", "--steps", "4", "--device", "cpu", "--out", self.path("differ")], both(".npy")),
                 (["forecast", "train", "FILE", "--parts", "4", "--device", "cpu", "--out", self.path("differ")], both(".toml"))]
        for words, files in cases:
            own, other = ([PROGRAM, *[file if word == "FILE" else word for word in words]] for file in files)
            with self.subTest(words[:2]):
                lines = self.mpi_refuses((2, own), (1, other), saying="of rank 2 differ from those of rank 0 [MPI")
                self.assertEqual(len(lines), 1, "rank 0 alone reports what all ranks know")


def read_fits(path):
    """Bytes of each fit of a checkpoint; none where there is no file."""
    if not os.path.exists(path):
        return []
    with zipfile.ZipFile(path) as file:
        data = file.read("fits.npy")
    (length,) = struct.unpack("<H", data[8:10])
    return [data[at:at + 24] for at in range(10 + length, len(data), 24)]


if __name__ == "__main__":
    unittest.main()
