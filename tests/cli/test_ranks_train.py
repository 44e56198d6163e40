"""forecast train over ranks: parts of batches, seeds that are distributed, checkpoints that survive the death of a rank."""
import csv
import hashlib
import os
import random
import unittest

from program import PROGRAM, run
from ranks import MPIRUN, RanksTest


class RanksTrain(RanksTest):
    def words(self, out, *more):
        return ["forecast", "train", "xor", "--device", "cpu,interp", "--parts", "4", "--out", self.path(out), *more]

    def log(self, out):
        """Rows but for their seconds."""
        with open(self.path(out, "log.csv")) as file:
            return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]

    def done(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_parts_over_ranks_give_the_bits_of_one(self):
        for trainer in ("plain", "predictive"):
            own = ["--trainer", trainer, "--steps", "200"]
            self.done(*self.words("one", *own))
            one = self.log("one")
            self.assertEqual(len(one), 201)
            for ranks in (2, 3, 4) if trainer == "plain" else (3,):
                self.done(*self.words(f"threads{ranks}", *own, "--ranks", str(ranks)))
                self.assertEqual(self.log(f"threads{ranks}"), one, f"{trainer}, {ranks} threads")
            for ranks in () if not MPIRUN else (1, 2, 3, 4) if trainer == "plain" else (2,):
                done = self.mpi((ranks, [PROGRAM, *self.words(f"mpi{ranks}", *own)]))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.count("val_loss"), 1, "rank 0 alone reports")
                self.assertEqual(self.log(f"mpi{ranks}"), one, f"{trainer}, {ranks} processes")
                self.assertTrue(os.path.exists(self.path(f"mpi{ranks}", "run.json")))

    def test_seeds_are_dealt_out(self):
        seeds = ["--parts", "1", "--seeds", "5", "--seed", "3", "--steps", "60"]
        words = [word for word in self.words("one") if word not in ("--parts", "4")]
        self.done(*words, *seeds)
        words[words.index(self.path("one"))] = self.path("dealt")
        if MPIRUN:
            done = self.mpi((3, [PROGRAM, *words, *seeds]))
            self.assertEqual(done.returncode, 0, done.stderr)
        else:
            self.done(*words, *seeds, "--ranks", "3")
        self.assertEqual(self.log("dealt"), self.log("one"))
        self.assertEqual({row["seed"] for row in self.log("dealt")}, {"3", "4", "5", "6", "7"})

    def test_a_killed_rank_loses_no_checkpoint(self):
        more = ["--steps", "3000", "--evaluate-every", "50", "--rate", "0.001"]
        self.done(*self.words("whole", *more, "--checkpoint", self.path("whole.npz"), "--quiet"))
        whole, chance, resumed = self.log("whole"), random.Random(33), 0
        state = self.path("state.npz")

        def written():
            try:
                with open(state, "rb") as file:
                    return hashlib.sha256(file.read()).hexdigest()
            except OSError:
                return None

        for attempt in range(int(os.environ.get("LOCKSTEP_FUZZ_COUNT", "3"))):
            if os.path.exists(state):
                os.remove(state)
            wanted, seen = chance.randrange(0, 12), set()

            def reached():
                seen.add(written())
                return len(seen - {None}) >= wanted
            self.kill_one_of(3, [PROGRAM, *self.words("killed", *more, "--checkpoint", state)], chance, reached)
            kept = os.path.exists(state)
            document = self.json_of(*self.words("killed", *more, "--checkpoint", state, "--ranks", str(1 + attempt % 4)))
            self.assertEqual(document["runs"][0]["resumed_at"] is not None, kept, "a checkpoint is whole or absent")
            resumed += kept and document["runs"][0]["resumed_at"] < 3000
            self.assertEqual(self.log("killed"), whole)
        self.assertGreater(resumed, 0, "no kill came between the first and the last checkpoint")

    def test_refusals(self):
        words = self.words("refused")
        done = run(*words, "--ranks", "5")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("4 parts for 5 ranks [--parts]: expected at least one part of the batches, or one seed, for each rank", done.stderr)
        self.refuses(*words[:-4], "--parts", "5", "--out", self.path("refused"), saying="at most the 4 examples of a batch")
        lines = self.mpi_refuses((2, [PROGRAM, *words]), (1, [PROGRAM, *words, "--rate", "0.5"]), saying="inputs and options of rank 2 differ")
        self.assertEqual(len(lines), 1)
        lines = self.mpi_refuses((2, [PROGRAM, *words, "--rate", "1e38"]), saying="at step")
        self.assertEqual(len(lines), 1, "what all ranks find is reported once")


if __name__ == "__main__":
    unittest.main()
