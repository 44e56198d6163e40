"""Runs the cases of groups as 1 … 4 processes of mpirun, and compares their sums with each other and with those of threads.

usage: test_mpi.py PROGRAM
"""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
CASES = ["barriers", "messages", "halos", "sums", "buffers", "queue", "results", "digests"]


def output_of(words):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(program):
    mpirun = shutil.which("mpirun")
    if not mpirun:
        print("skipped: mpirun is not installed")
        return SKIPPED
    sums = {}
    for ranks in (1, 2, 3, 4):
        launch = [mpirun, "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "pml", "ob1", "-n", str(ranks)]
        for name, words in ((f"{ranks} processes", [*launch, program]), (f"{ranks} threads", [program, "--threads", str(ranks)])):
            lines = output_of(words).splitlines()
            done = [line.split()[1] for line in lines if line.startswith("ok ")]
            if done != CASES or not lines[0].startswith(f"{ranks} ranks"):
                sys.exit(f"{name}: {lines}")
            sums[name] = lines[-1]
            print(f"{name}: {lines[-1]}")
    if len(set(sums.values())) != 1:
        sys.exit(f"sums differ: {sums}")
    return 0


if __name__ == "__main__":
    sys.exit(check(sys.argv[1]))
