"""The Python of the guides runs: the blocks of a page one after the other, on what the page takes as given."""
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import lockstep as ls
import test_ranks
from conftest import HOST, recurrent_model

ROOT = pathlib.Path(__file__).parents[2]
# A block that is the inside of a kernel.
FRAGMENT = """
@ls.kernel
def guide_fragment(at, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 1]):
    total = ls.var(0.0)
    {body}
    out[at] = total + ls.where(x[at] > 0, 1.0, 0.0)

values, sums = np.ones(4, "f4"), np.zeros(4, "f4")
guide_fragment["interp", 4](values, sums)
assert (sums == 5).all()
"""


def blocks(page):
    """(line, code) of each block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(text.count("\n", 0, block.start(1)), block.group(1)) for block in re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M)]


def run(page, scope):
    for line, code in blocks(page):
        if code.startswith("n, count = ls.var"):
            code = FRAGMENT.format(body=textwrap.indent(code, "    ").lstrip().replace("ls.where(x > 0, x, 0)", "ls.where(x[at] > 0, x[at], 0)"))
        exec(compile("\n" * line + code, str(ROOT / page), "exec"), scope)  # noqa: S102


def write_city(dsm, folder):
    """dsm.tif, dem.tif and met.epw."""
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed")
    place = rasterio.transform.from_origin(317000, 6398000, 1, 1)
    for name, values in {"dsm": dsm, "dem": np.full_like(dsm, 2)}.items():
        with rasterio.open(folder / f"{name}.tif", "w", driver="GTiff", height=24, width=24, count=1, dtype="float32",
                           crs="EPSG:3006", transform=place) as file:
            file.write(values, 1)
    head = ["LOCATION,Goteborg,-,SWE,-,0,57.7,11.9,1.0,5.0"] + ["-"] * 6 + ["DATA PERIODS,1,1,Data,Sunday,1/1,12/31"]
    row = "2021,7,1,{h},0,-,20,10,53,101325,0,0,340,{g},{b},90,0,0,0,0,180,2.5,5,5,20,77777,9,999999999,0,0.1,0,0,0,0,0"
    sun = [max(0, round(800 * np.sin(np.pi * (h - 4) / 18))) if 4 < h < 22 else 0 for h in range(1, 25)]
    (folder / "met.epw").write_text("\n".join(head + [row.format(h=h, g=s, b=s // 2) for h, s in enumerate(sun, 1)]) + "\n")


def given():
    """The arrays that docs/python.md names without making them."""
    rng = np.random.default_rng(11)
    dsm = np.full((24, 24), 2.0, "f4")
    dsm[8:14, 8:14] = 12
    hours = np.arange(np.datetime64("2021-07-01T10"), np.datetime64("2021-07-01T13"), np.timedelta64(1, "h"))
    x = np.linspace(0, 2, 20)
    wave = np.sin(2 * np.pi * np.arange(256) / 256)
    corners = rng.normal(size=(3, 3))
    temperature = rng.normal(size=(64, 64)).astype("f4")
    return {
        "dsm": dsm, "times": hours, "ta": [24.0, 25, 26], "rh": [40.0, 40, 38], "wind": [2.0] * 3, "k": [700.0, 800, 850],
        "x": x, "y": 2 * np.exp(-0.7 * x), "positions": corners, "edges": [(0, 1), (1, 2)], "lengths": [[1.0], [1.5]],
        "u0": wave, "u1": wave, "u2": wave, "h": 1 / 64, "dt": 1e-3, "t0": temperature, "t1": temperature, "t2": temperature,
        "levels": np.stack([temperature] * 4), "west": np.ones((1, 64), "f4"),
        "steps": np.arange(0, 2000, 50), "losses": 1 + 2 * np.exp(-np.arange(0, 2000, 50) / 500),
    }


def test_the_page_of_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = given()
    write_city(scope["dsm"], tmp_path)
    np.savez(tmp_path / "MODEL.npz", **recurrent_model(np.random.default_rng(3)))
    run("docs/python.md", scope)
    np.testing.assert_allclose(scope["fit"].x, [2, 0.7], rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(np.diff(scope["problem"].values(scope["points"]), axis=0), axis=1), [1, 1.5], rtol=1e-6)


def scripts_of(page, folder):
    """Writes the blocks that begin with the name of a file."""
    for _, code in blocks(page):
        (folder / code.splitlines()[0].removeprefix("# ")).write_text(code, encoding="utf-8")


def test_the_scripts_for_ranks(tmp_path):
    scripts_of("docs/cluster.md", tmp_path)
    alone = subprocess.run([sys.executable, "planes.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert alone.returncode == 0, alone.stderr
    rank, value, _ = re.fullmatch(r"<(.*)> (\S+) \[(\S+)\]\n", alone.stdout).groups()
    assert rank == "rank 0 of 1, one process"
    if test_ranks.MPIRUN:
        done = test_ranks.launched([sys.executable, "planes.py"], 2, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(value) == 2, done.stdout  # mpirun mixes the pieces of lines


def test_the_script_for_torchrun(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    scripts_of("docs/cluster.md", tmp_path)
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr
    values = [float(line.split()[1]) for line in done.stdout.splitlines()]
    assert len(values) == 20 and values[-1] < 0.8 * values[0]


def test_the_executor_of_the_planner(tmp_path):
    ((_, code),) = blocks("docs/urban.md")
    (tmp_path / "city").mkdir()
    scope = given()
    write_city(scope["dsm"], tmp_path / "city")
    hours = (ROOT / "examples/weather/summer_day.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "weather.csv").write_text("\n".join([hours[0], *hours[12:15]]) + "\n", encoding="utf-8")
    (tmp_path / "tiles.py").write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "tiles.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "day/utci.npy").is_file()


def test_the_page_for_users_of_gtsam():
    scope = {}
    run("docs/solve-from-gtsam.md", scope)
    np.testing.assert_allclose(scope["loop"][:, :2], [[0, 0], [2, 0], [4, 0], [4, 2], [2, 2]], atol=1e-6)
    assert scope["uncertain"].shape == (5, 3, 3)
    np.testing.assert_allclose(scope["landmarks"], [[2, 2], [4, 2]], atol=1e-6)
    np.testing.assert_allclose(scope["cube"], scope["corners"], atol=1e-4)
    np.testing.assert_allclose(scope["after"], [0, 0, 0, np.cos(0.4), 0, 0, np.sin(0.4)], atol=1e-6)


def test_the_page_for_users_of_scipy():
    scope = {}
    run("docs/solve-from-scipy.md", scope)
    np.testing.assert_allclose(scope["free"].x, [1, 1], rtol=1e-6)
    assert scope["bounded"].x[1] == 1.5 and scope["called"].cost < 1e-12 and scope["sparse"].final_cost < 1e-12
    np.testing.assert_allclose(scope["robust"].x, [0.5, 2, -1], atol=0.1)
    assert scope["curve"].parameters == pytest.approx({"a": 2.5, "b": 1.3, "c": 0.5}, rel=0.05)
    assert scope["peak"].parameters["p_center"] == pytest.approx(4, rel=1e-2)
    share = scope["mixed"].parameters["share"]
    assert 0.5 * (1 - share) == pytest.approx(0.2, rel=0.05)  # the slope of the line, by a mixture of 0 and 1/2
    assert scope["joint"].parameters["s"] == pytest.approx(0.5, rel=1e-2)


def test_the_page_of_the_smoother(capsys):
    scope = {}
    run("docs/solve-smoothing.md", scope)
    np.testing.assert_allclose(scope["smoother"].value(scope["points"], scope["point"]), [49 * 0.4, 49 * 0.1], rtol=1e-9)
    assert capsys.readouterr().out.startswith("[19.6")


def test_the_kernel_of_the_readme_prints_what_is_shown(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```python\n.*?^```\n\n```text\n(.*?)^```", text, re.S | re.M)
    scope = {}
    run("README.md", scope)
    assert capsys.readouterr().out == shown
    now, after = np.zeros(8, "f4"), np.zeros(8, "f4")
    now[4] = 1
    scope["heat"][HOST, now.shape](now, after, np.float32(0.1))
    assert after[4] == np.float32(0.8) and after[3] == np.float32(0.1)
