"""Several ranks: threads of one process, processes of mpirun. The same bits as one, restarts after kills, named errors."""
import hashlib
import json
import os
import random
import shutil
import unittest

from program import PROGRAM, run
from ranks import MPIRUN, RanksTest

HOURS = "".join(f"2026-06-21T{h:02}:00,{20 + h / 2},45,2,{k}\n" for h, k in ((12, 780), (13, 800), (14, 760)))


def files_below(folder):
    """Grids and tables of results by their content; records and documents hold times and tile counts."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            if not name.endswith((".json", ".lock")):
                with open(os.path.join(place, name), "rb") as file:
                    found[os.path.relpath(os.path.join(place, name), folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


class Ranks(RanksTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.results = {}

    def setUp(self):
        super().setUp()
        done = run("urban", "sample", "--size", "128x96", "--format", "npy", "--no-pictures", "--quiet", "--out", self.path("city"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("weather.csv"), "w") as file:
            file.write("time,Ta,RH,wind,Kglobal\n" + HOURS)
        with open(self.path("poi.csv"), "w") as file:
            file.write("id,x,y\na,10.5,30.5\nb,80.5,100.5\n")

    def words(self, out, *more):
        city = self.path("city")
        return ["urban", "run", "--dsm", f"{city}/dsm.npy", "--dem", f"{city}/dem.npy", "--cdsm", f"{city}/cdsm.npy", "--pixel-size", "1",
                "--latitude", "57.7", "--longitude", "12", "--weather", self.path("weather.csv"), "--utc-offset", "1", "--patches", "145",
                "--substeps", "1", "--poi", self.path("poi.csv"), "--no-pictures", "--device", "cpu,interp", "--format", "npy",
                "--out", self.path(out), *more]

    def one(self):
        """What one rank, and one tile, gives."""
        done = run(*self.words("one", "--quiet"))
        self.assertEqual(done.returncode, 0, done.stderr)
        found = files_below(self.path("one"))
        self.assertGreater(len(found), 15)
        return found

    def test_threads_give_the_bits_of_one_rank(self):
        one = self.one()
        for ranks in (2, 3, 4):
            done = run(*self.words(f"threads{ranks}", "--quiet", "--ranks", str(ranks), "--telemetry", self.path("t.jsonl")))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(files_below(self.path(f"threads{ranks}")), one)
            with open(self.path("t.jsonl")) as file:
                lines = [json.loads(line) for line in file]
            shares = [line for line in lines if line.get("event") == "urban.step.rank"]
            self.assertEqual([line["rank"] for line in shares], list(range(ranks)))
            self.assertEqual(sum(line["tiles"] for line in shares), 4, "each tile once")
            steps = [path for path in one if "_2026" in path and path.endswith(".npy")]
            files = [line["files"] for line in shares]
            self.assertEqual(sum(files), len(steps), "each file of a step once")
            self.assertEqual(files, [len(steps) // 3 * len(range(rank, 3, ranks)) for rank in range(ranks)], "three steps in turn")

    def test_stages_and_fallbacks_of_all_ranks_are_counted(self):
        def launches(*more):
            words = [word for word in self.words("counted", "--tile", "32", "--json", *more) if word != "--quiet"]
            done = run(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return {s["stage"]: s["launches"] for s in json.loads(done.stdout)["stages"] if s["stage"] in ("urban.svf", "urban.step")}, done.stderr
        one, alone = launches()
        several, together = launches("--ranks", "3")
        self.assertEqual(several, one, "12 tiles have as many launches on any number of ranks")
        self.assertEqual(together.count("warning:"), alone.count("warning:"), "rank 0 alone warns")

    def test_processes_give_the_bits_of_one_rank(self):
        one = self.one()
        for ranks in (1, 2, 3, 4):
            done = self.mpi((ranks, [PROGRAM, *self.words(f"mpi{ranks}")]))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("tmrt_mean "), 1, "rank 0 alone reports")
            self.assertEqual(files_below(self.path(f"mpi{ranks}")), one)
            self.assertFalse(os.path.exists(self.path(f"mpi{ranks}", ".tiles")))
            self.assertTrue(os.path.exists(self.path(f"mpi{ranks}", "run.json")))

    def test_a_killed_rank_loses_no_finished_tile(self):
        one, chance = self.one(), random.Random(33)
        resumed = 0
        for attempt in range(int(os.environ.get("LOCKSTEP_FUZZ_COUNT", "6"))):
            shutil.rmtree(self.path("killed"), ignore_errors=True)
            tiles, wait_for_tiles = self.path("killed", ".tiles"), chance.randrange(0, 8)
            self.kill_one_of(3, [PROGRAM, *self.words("killed", "--tile", "32")], chance, lambda: finished(tiles) >= wait_for_tiles)
            kept = finished(tiles)
            done = self.mpi((1 + attempt % 4, [PROGRAM, *self.words("killed", "--tile", "32")]))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(files_below(self.path("killed")), one)
            if kept:
                resumed += 1
                self.assertIn(f"{kept} of 12 tiles are taken over", done.stderr)
        self.assertGreater(resumed, 0, "no kill came between the first and the last tile")

    def test_commands_of_one_process_are_refused(self):
        city = self.path("city")
        words = [PROGRAM, "urban", "svf", "--dsm", f"{city}/dsm.npy", "--pixel-size", "1", "--out", self.path("svf")]
        self.mpi_refuses((2, words), saying="2 processes of mpirun [lockstep urban svf]: expected one process")
        self.assertFalse(os.path.exists(self.path("svf")))

    def test_different_options_and_files_are_named(self):
        words = [PROGRAM, *self.words("differ")]
        lines = self.mpi_refuses((2, words), (1, words + ["--max-reach", "30"]), saying="inputs and options of rank 2 differ from those of rank 0 [MPI")
        self.assertEqual(len(lines), 1, "rank 0 alone reports what all ranks know")
        with open(self.path("other.csv"), "w") as file:
            file.write("time,Ta,RH,wind,Kglobal\n" + HOURS.replace("780", "781"))
        other = [self.path("other.csv") if word.endswith("weather.csv") else word for word in words]
        self.mpi_refuses((1, words), (2, other), saying="inputs and options of ranks 1, 2 differ from those of rank 0 [MPI")

    def test_a_rank_without_its_file_ends_the_others(self):
        words = [PROGRAM, *self.words("absent")]
        other = [self.path("absent.csv") if word.endswith("weather.csv") else word for word in words]
        lines = self.mpi_refuses((1, words), (1, other), saying="rank 1: ")
        self.assertIn("absent.csv", lines[0])

    def test_a_full_disk_of_one_rank_is_named(self):
        error = self.mpi_fills_the_disk(1, 64, [PROGRAM, *self.words("full", "--tile", "64")])
        self.assertIn(self.path("full", ".tiles"), error)

    def test_a_rank_that_stops_is_named_after_the_limit(self):
        words = [PROGRAM, *self.words("slow", "--tile", "32", "--wait-limit", "2")]
        code, errors = self.stop_one_of(2, words, lambda: finished(self.path("slow", ".tiles")) > 0)
        self.assertIn("rank 0: rank 1 has not responded for 2 s [MPI", errors)
        self.assertNotEqual(code, 0)

    def ensemble(self, out, *more):
        return ["flow", "run", "--n", "32", "--ensemble", "5", "--closure", "smagorinsky", "--forcing", "stochastic:4,0.01", "--device", "cpu,interp",
                "--format", "npz", "--history-every", "7", "--save-every", "10", "--out", self.path(out), *more]

    def test_ensembles_over_ranks(self):
        # Steps of a size of their own for each member, an end in time that members reach after different numbers of steps.
        for kind, steps in (("fixed", ["--dt", "0.01", "--steps", "30"]), ("adaptive", ["--cfl", "0.5", "--time", "0.5"])):
            done = run(*self.ensemble(kind, *steps, "--quiet"))
            self.assertEqual(done.returncode, 0, done.stderr)
            one = files_below(self.path(kind))
            self.assertEqual(list(one), ["run.npz"])
            for ranks in (2, 3, 4):
                done = run(*self.ensemble(f"{kind}{ranks}", *steps, "--quiet", "--ranks", str(ranks)))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(files_below(self.path(f"{kind}{ranks}")), one, f"{kind}, {ranks} threads")
            if MPIRUN:
                done = self.mpi((3, [PROGRAM, *self.ensemble(f"{kind}mpi", *steps)]))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(files_below(self.path(f"{kind}mpi")), one, f"{kind}, 3 processes")

    def test_a_checkpoint_goes_on_with_another_number_of_ranks(self):
        steps = ["--dt", "0.01", "--integrator", "ab3", "--quiet"]
        run(*self.ensemble("whole", *steps, "--steps", "30"))
        checkpoint = ["--checkpoint", self.path("state.npz")]
        for ranks, end in ((3, "10"), (1, "20"), (2, "30")):
            done = run(*self.ensemble("parts", *steps, *checkpoint, "--steps", end, "--ranks", str(ranks)))
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(files_below(self.path("parts"))["run.npz"], files_below(self.path("whole"))["run.npz"])

    def test_what_ensembles_over_ranks_refuse(self):
        # A step that member 3 alone is too fast for: a member of rank 1, which rank 0 reports by its number among all.
        def fast(out, *more):
            done = run("flow", "run", "--n", "32", "--ensemble", "5", "--ic", "taylor-green", "--forcing", "stochastic:4,2", "--device", "cpu,interp",
                       "--format", "npz", "--dt", "0.05", "--steps", "200", "--save-every", "10", "--out", self.path(out), *more)
            self.assertEqual(done.returncode, 2, done.stderr)
            with open(self.path(out, "blow_up.npz"), "rb") as file:
                return next(line for line in done.stderr.splitlines() if line.startswith("lockstep: error: ")), file.read()
        whole = fast("fast")
        self.assertIn("member 3 of the flow blew up by step 30", whole[0])
        self.assertEqual(fast("fast2", "--ranks", "2"), whole)

    def test_more_ranks_than_devices(self):
        for words, saying in [(["--ranks", "2", "--device", "cuda:0"], "2 ranks for 1 device (cuda:0) [--device]: expected a device for each rank of a host"),
                              (["--ranks", "0"], "[--ranks]"), (["--wait-limit", "0"], "[--wait-limit]")]:
            own = self.words("refused")
            if "--device" in words:
                at = own.index("--device")
                del own[at:at + 2]
            done = run(*own, *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(saying, done.stderr)
        if MPIRUN:
            self.mpi_refuses((2, [PROGRAM, *self.words("refused", "--ranks", "2")]), saying="2 ranks in each of 2 processes [--ranks]")


def finished(folder):
    """Tiles that are whole: they appear by a rename."""
    try:
        return sum(name.endswith(".tile") for name in os.listdir(folder))
    except OSError:
        return 0


if __name__ == "__main__":
    unittest.main()
