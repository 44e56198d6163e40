"""Ranks from Python: losses, sums and errors of several processes, under mpirun and over torch.distributed."""
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import lockstep as ls
import ranks_work
from lockstep import parallel, pde

WORK = [sys.executable, str(pathlib.Path(__file__).with_name("ranks_work.py"))]
MPIRUN = shutil.which("mpirun")
ALONE = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONWARNINGS": "ignore"}


def launched(words, ranks, limit=240, cwd=None):
    if not MPIRUN:
        pytest.skip("mpirun is not installed")
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = [MPIRUN, "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "pml", "ob1", "-n", str(ranks), *words]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=limit, env={**os.environ, **ALONE, **as_root})


def over_torch(case, ranks, folder, limit=240):
    """Runs a case in so many processes; all of them end by themselves and well."""
    pytest.importorskip("torch", reason="torch is not installed")
    import torch.distributed as dist
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("torch is not installed: this one has no gloo")
    words = [[*WORK, case, str(rank), str(ranks), str(folder / "meeting")] for rank in range(ranks)]
    started = [subprocess.Popen(w, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **ALONE}) for w in words]
    try:
        said = [process.communicate(timeout=limit)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * ranks, "\n".join(said)


def test_one_process_is_one_rank():
    ranks = parallel.Ranks(ls._core.launched_group(60.0))
    assert (ranks.rank, ranks.size, ranks.transport, list(ranks.share(3))) == (0, 1, "one process", [0, 1, 2])
    ranks_work.compare_all(ranks)
    assert parallel.world().size == 1 and parallel.world() is parallel.world()
    with pytest.raises(ls.UnsupportedError, match="a copy of ranks"):
        pickle.dumps(pde.Loss(pde.transport(3), pde.Mesh((4, 4, 8)), ranks=ranks))
    with pytest.raises(ls.InputError, match="contiguous array of f32 or f64"):
        ranks.sum(np.ones(2, "i4"))
    ranks_work.refuse_after_end(ranks)


def test_losses_under_mpirun_have_the_bits_of_one_process():
    done = launched([*WORK, "mpi_losses"], 3)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_error_of_one_process_of_mpirun_ends_the_others():
    begun = time.monotonic()
    done = launched([*WORK, "mpi_uncaught"], 3)
    assert done.returncode != 0 and "ValueError: no field here" in done.stderr
    assert time.monotonic() - begun < 50  # below the limit of a wait


def test_losses_and_networks_over_torch_have_the_bits_of_one_process(tmp_path):
    over_torch("torch_losses", 4, tmp_path)


def test_processes_of_torch_that_differ_end_or_are_slow_are_named(tmp_path):
    over_torch("torch_refusals", 3, tmp_path)
