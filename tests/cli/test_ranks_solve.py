"""solve over ranks: parts of bundle adjustments and pose graphs, checkpoints that survive the death of a rank."""
import hashlib
import json
import math
import os
import random
import unittest

from program import PROGRAM, run
from ranks import MPIRUN, RanksTest

NUMBERS = ("initial_cost", "final_cost", "iterations", "linear_iterations", "gradient_max", "termination", "linear_used")
ROW = ("cost", "gradient_max", "step_norm", "damping", "gain", "linear_iterations")


def ring(count):
    """A ring of poses in the plane with odometry and chords, started on a wrong one."""
    lines, step = [], 2 * math.pi / count
    pose = [(math.cos(k * step), math.sin(k * step), k * step) for k in range(count)]
    for k, (x, y, a) in enumerate(pose):
        lines.append(f"VERTEX_SE2 {k} {1.05 * x + 0.02 * math.sin(5 * k)} {0.95 * y} {a + 0.03 * math.cos(3 * k)}")
    for k in range(count):
        for other in ((k + 1) % count, (k + 5) % count):
            (x, y, a), (u, v, b) = pose[k], pose[other]
            c, s, turn = math.cos(a), math.sin(a), math.remainder(b - a, 2 * math.pi)
            lines.append(f"EDGE_SE2 {k} {other} {c * (u - x) + s * (v - y)} {c * (v - y) - s * (u - x) + 0.01 * math.sin(k)} {turn} 100 0 0 100 0 400")
    return "\n".join(lines) + "\n"


class RanksSolve(RanksTest):
    def setUp(self):
        super().setUp()
        with open(self.path("ring.g2o"), "w") as file:
            file.write(ring(40))
        self.problems = {"bal": ["bal", "--synthetic", "8,600"], "g2o": ["g2o", self.path("ring.g2o")]}

    def words(self, problem, out, *more):
        return ["solve", *self.problems[problem], "--parts", "5", "--device", "cpu", "--max-iterations", "8", "--json", "--out", self.path(out), *more]

    def result(self, done, out):
        """The numbers of a document, and the file that was written."""
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        with open(self.path(out), "rb") as file:
            found = hashlib.sha256(file.read()).hexdigest()
        return {**{k: document[k] for k in NUMBERS}, "trace": [[row[k] for k in ROW] for row in document["trace"]], "file": found}

    def test_ranks_give_the_bits_of_one(self):
        for problem, linear, out in (("bal", "schur-pcg", "one.txt"), ("g2o", "pcg", "one.g2o")):
            one = self.result(run(*self.words(problem, out)), out)
            self.assertEqual(one["linear_used"], linear)
            self.assertLess(one["final_cost"], 0.5 * one["initial_cost"])
            for ranks in (2, 3, 4):
                self.assertEqual(self.result(run(*self.words(problem, "t" + out, "--ranks", str(ranks))), "t" + out), one, f"{problem}, {ranks} threads")
            for ranks in (1, 2, 3, 4) if MPIRUN else ():
                done = self.mpi((ranks, [PROGRAM, *self.words(problem, "p" + out)]))
                self.assertEqual(self.result(done, "p" + out), one, f"{problem}, {ranks} processes")
                self.assertTrue(os.path.exists(self.path("p" + out + ".run.json")))

    def test_a_killed_rank_loses_no_checkpoint(self):
        more = ["--function-tolerance", "0", "--parameter-tolerance", "0", "--gradient-tolerance", "0", "--max-iterations", "40"]
        words = [word for k, word in enumerate(self.words("bal", "x.txt")) if k not in (8, 9)]
        self.assertNotIn("--max-iterations", words)
        whole, chance, resumed, state = self.result(run(*words, *more), "x.txt"), random.Random(33), 0, self.path("state.ckpt")
        for attempt in range(int(os.environ.get("LOCKSTEP_FUZZ_COUNT", "3"))):
            if os.path.exists(state):
                os.remove(state)
            wanted, sizes = chance.randrange(0, 12), set()

            def reached():
                sizes.add(os.path.getsize(state) if os.path.exists(state) else 0)  # a row more with each iteration
                return len(sizes - {0}) >= wanted
            self.kill_one_of(3, [PROGRAM, *words, *more, "--checkpoint", state], chance, reached)
            resumed += os.path.exists(state)
            done = run(*words, *more, "--checkpoint", state, "--ranks", str(1 + attempt % 4))
            self.assertEqual(self.result(done, "x.txt"), whole)
        self.assertGreater(resumed, 0, "no kill came after the first checkpoint")

    def test_refusals(self):
        def refused(*more, saying, code=2):
            done = run(*self.words("bal", "r.txt"), *more)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(saying, done.stderr)
        refused("--ranks", "6", saying="5 parts for 6 ranks [--parts]: expected a part of the residuals for each rank")
        refused("--linear", "cholesky", saying="pcg or schur-pcg, whose products are sums over residuals")
        refused("--method", "dogleg", saying="lm or gn")
        few = ["solve", "bal", "--synthetic", "8,600", "--device", "cpu", "--parts", "1000"]
        self.refuses(*few, saying="parts")
        words = [PROGRAM, *self.words("bal", "r.txt")]
        lines = self.mpi_refuses((1, words), (2, words + ["--seed", "9"]), saying="problems, options and checkpoints of ranks 1, 2 differ from those of rank 0")
        self.assertEqual(len(lines), 1, "rank 0 alone reports what all ranks know")


if __name__ == "__main__":
    unittest.main()
