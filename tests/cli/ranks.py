"""Commands under mpirun: launches, refusals, ranks that are killed."""
import os
import shutil
import signal
import subprocess
import time

from program import ProgramTest

MPIRUN = shutil.which("mpirun")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Shared memory between ranks alone: no network is looked for.
LAUNCH = [MPIRUN, "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "pml", "ob1"]


class RanksTest(ProgramTest):
    def mpi(self, *parts, timeout=120, btl="self,vader"):
        """`parts`: (processes, words of the program) of one launch."""
        if not MPIRUN:
            self.skipTest("mpirun is not installed")
        words = [word.replace("self,vader", btl) for word in LAUNCH]
        for k, (count, own) in enumerate(parts):
            words += ([":"] if k else []) + ["-n", str(count), *own]
        return subprocess.run(words, capture_output=True, text=True, timeout=timeout, env={**os.environ, **AS_ROOT})

    def mpi_refuses(self, *parts, saying, **launch):
        done = self.mpi(*parts, **launch)
        self.assertNotEqual(done.returncode, 0)
        lines = [line for line in done.stderr.splitlines() if line.startswith("lockstep: error: ")]
        self.assertTrue(lines and saying in lines[0], done.stderr)
        return lines

    def kill_one_of(self, ranks, words, chance, reached):
        """Starts the words on so many ranks, and kills one of them soon after reached() holds."""
        if not MPIRUN:
            self.skipTest("mpirun is not installed")
        launch = subprocess.Popen([*LAUNCH, "-n", str(ranks), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **AS_ROOT})
        processes, until = [], time.time() + 60
        while launch.poll() is None and time.time() < until and (len(processes) < ranks or not reached()):
            processes = children_of(launch.pid)
            time.sleep(0.002)
        time.sleep(chance.random() * 0.05)
        if processes and launch.poll() is None:
            try:
                os.kill(chance.choice(processes), signal.SIGKILL)
            except ProcessLookupError:
                pass
        until = time.time() + 60
        while launch.poll() is None and living_children_of(launch.pid) and time.time() < until:
            time.sleep(0.01)
        self.assertEqual(living_children_of(launch.pid), [], "ranks that continue without the one that was killed")
        try:
            launch.wait(timeout=10)
        except subprocess.TimeoutExpired:  # mpirun of Open MPI 4.1 can wait for itself where a rank dies as it starts
            launch.kill()
            launch.wait()

    def stop_one_of(self, ranks, words, reached):
        """Starts the words on so many ranks, and stops rank 1 once reached() holds. Exit code and errors of the run."""
        if not MPIRUN:
            self.skipTest("mpirun is not installed")
        launch = subprocess.Popen([*LAUNCH, "-n", str(ranks), *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **AS_ROOT})
        stopped = None
        while launch.poll() is None and stopped is None:
            for process in children_of(launch.pid):
                if rank_of(process) == 1 and reached():
                    stopped = process
                    os.kill(process, signal.SIGSTOP)
            time.sleep(0.005)
        self.assertIsNotNone(stopped, "the run ended before rank 1 could be stopped")
        try:
            _, errors = launch.communicate(timeout=60)
        finally:
            try:
                os.kill(stopped, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return launch.returncode, errors

    def mpi_fills_the_disk(self, rank, kilobytes, words):
        """Two ranks, of which one can write no file longer than that. Its first error line."""
        # Shared memory between ranks would be a file above the limit.
        limited = ["bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "bash", *words]
        parts = [(1, limited if k == rank else words) for k in (0, 1)]
        return self.mpi_refuses(*parts, saying=f"rank {rank}: ", btl="self,tcp")[0]


def children_of(process):
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def living_children_of(process):
    """Without those that have ended and are not waited for."""
    def state(child):
        try:
            with open(f"/proc/{child}/stat") as file:
                return file.read().rpartition(")")[2].split()[0]
        except OSError:
            return "X"
    return [child for child in children_of(process) if state(child) not in "ZX"]


def rank_of(process):
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return next((int(word.split(b"=")[1]) for word in file.read().split(b"\0") if word.startswith(b"OMPI_COMM_WORLD_RANK=")), -1)
    except OSError:
        return -1
