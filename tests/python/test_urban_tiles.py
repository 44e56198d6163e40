"""Tiles of a city on executors, and the records of runs made from Python."""
import concurrent.futures
import json
import multiprocessing
import os

import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import urban
from test_urban import PLACE, noon


def town():
    """Blocks of many heights on a slope: rays cross tiles in all directions."""
    rng = np.random.default_rng(7)
    dsm = np.add.outer(np.linspace(0, 3, 40), np.linspace(2, 0, 36))
    for _ in range(9):
        r, c = rng.integers(2, 30), rng.integers(2, 28)
        dsm[r:r + 6, c:c + 5] += rng.integers(4, 18)
    return dsm.astype("f4")


OUTPUTS = ("tmrt", "utci", "shadow")


def arguments():
    return dict(weather=noon(), pixel_size=1.0, outputs=OUTPUTS, cdsm=np.where(np.indices((40, 36)).sum(0) % 11 == 0, 5, 0).astype("f4"),
                device=HOST, **PLACE)


class Counting(concurrent.futures.ThreadPoolExecutor):
    """Counts what it is given; ends with an error after `most`."""

    def __init__(self, most=None):
        super().__init__(2)
        self.count, self.most = 0, most

    def submit(self, function, *rest):
        self.count += 1
        if self.most is not None and self.count > self.most:
            raise RuntimeError("no more workers")
        return super().submit(function, *rest)


def test_tiles_have_the_bits_of_one_run():
    whole = urban.run(town(), **arguments())
    told = []
    with Counting() as pool:
        found = urban.run_tiles(town(), **arguments(), executor=pool, tile=16, progress=lambda done, total: told.append((done, total)))
    assert pool.count == 9 and told[0] == (0, 9) and told[-1] == (9, 9)
    assert found["times"] == whole["times"]
    for name in OUTPUTS:
        np.testing.assert_array_equal(found[name], whole[name])
    assert len(np.unique(whole["tmrt"])) > 500


def test_processes(tmp_path):
    """Workers that share nothing with this process but the files of the city."""
    np.save(tmp_path / "dsm.npy", town())
    options = {**arguments(), "cdsm": None}
    whole = urban.run(tmp_path / "dsm.npy", **options)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = urban.run_tiles(tmp_path / "dsm.npy", **options, executor=pool, tile=24)
    for name in OUTPUTS:
        np.testing.assert_array_equal(found[name], whole[name])


def test_a_broken_run_goes_on(tmp_path):
    """Tiles that are there are not computed again; damaged ones, and those of other inputs, are."""
    whole, out = urban.run(town(), **arguments()), tmp_path / "out"

    def run(pool, **more):
        with pool:
            return urban.run_tiles(town(), **{**arguments(), **more}, executor=pool, tile=16, out=out)

    with pytest.raises(RuntimeError, match="no more workers"):
        run(Counting(most=5))
    kept = len(json.loads((out / "tiles.json").read_text())["done"])
    pool = Counting()
    found = run(pool)
    assert 0 <= kept <= 5 and pool.count == 9 - kept
    for name in OUTPUTS:
        np.testing.assert_array_equal(found[name], whole[name])
        np.testing.assert_array_equal(np.load(out / f"{name}.npy"), whole[name])
    del found
    grid = np.load(out / "tmrt.npy", mmap_mode="r+")
    grid[1, 20, 20] += 1
    grid.flush()
    pool = Counting()
    np.testing.assert_array_equal(run(pool)["tmrt"], whole["tmrt"])
    assert pool.count == 1
    pool = Counting()
    run(pool, sky="isotropic")
    assert pool.count == 9


def points_at(path, places):
    """A file of points, by column and row of their pixels."""
    path.write_text("id,x,y\n" + "".join(f"{name},{col + 0.5},{40 - row - 0.5}\n" for name, (col, row) in places.items()))
    return path


def test_points_of_tiles(tmp_path):
    """The table of `run`, whichever tiles hold the points; points of tiles that are kept are kept with them."""
    poi = points_at(tmp_path / "points.csv", {"last": (35, 39), "roof": (9, 4), "near": (16, 15), "first": (0, 0), "by": (15, 16)})
    given = {**arguments(), "poi": poi}
    whole = urban.run(town(), **given, out=tmp_path / "whole", format=["npy"], pictures=False)

    def run(pool, out=None):
        with pool:
            return urban.run_tiles(town(), **given, executor=pool, tile=16, out=out)

    def check(found):
        assert found["points"] == whole["points"] and found["point_values"].keys() == whole["point_values"].keys()
        for name, values in whole["point_values"].items():
            np.testing.assert_array_equal(found["point_values"][name], values)

    check(run(Counting()))
    with pytest.raises(RuntimeError, match="no more workers"):
        run(Counting(most=5), tmp_path / "out")
    check(run(Counting(), tmp_path / "out"))
    table = (tmp_path / "whole" / "poi.csv").read_text()
    assert (tmp_path / "out" / "poi.csv").read_text() == table and len(table.splitlines()) == 11
    kept = np.load(tmp_path / "out" / "points.npy", mmap_mode="r+")
    kept[1, 0, 6] += 1
    kept.flush()
    pool = Counting()
    check(run(pool, tmp_path / "out"))
    assert pool.count == 1


def test_bad_tiles(tmp_path):
    with pytest.raises(ls.InputError, match="submit"):
        urban.run_tiles(town(), **arguments(), executor=print)
    with Counting() as pool:
        with pytest.raises(ls.InputError, match="point far"):
            urban.run_tiles(town(), **arguments(), executor=pool, poi=points_at(tmp_path / "points.csv", {"far": (99, 5)}))
        with pytest.raises(ls.InputError, match="argument colour"):
            urban.run_tiles(town(), **arguments(), executor=pool, colour=1)
    assert pool.count == 0


def test_dask(tmp_path):
    if not __import__("importlib.util").util.find_spec("distributed"):
        pytest.skip("dask is not installed")
    from distributed import Client, LocalCluster

    np.save(tmp_path / "dsm.npy", town())
    options = {**arguments(), "cdsm": None}
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        found = urban.run_tiles(tmp_path / "dsm.npy", **options, executor=client, tile=24)
    np.testing.assert_array_equal(found["tmrt"], urban.run(tmp_path / "dsm.npy", **options)["tmrt"])


def test_xarray_keeps_its_place(tmp_path):
    """South up and with a CRS: results have the coordinates and the system of the DSM."""
    xarray = pytest.importorskip("xarray")
    heights = town()
    grid = xarray.DataArray(heights[::-1].copy(), {"y": 1000 + np.arange(40.0), "x": 500 + np.arange(36.0),
                                                   "spatial_ref": xarray.DataArray(0, attrs={"crs_wkt": "LOCAL_CS[\"here\"]"})},
                            ("y", "x"), attrs={"grid_mapping": "spatial_ref"})
    options = {**arguments(), "cdsm": None}
    del options["pixel_size"]
    with Counting() as pool:
        found = urban.run_tiles(grid, **options, executor=pool, tile=24)
    whole = urban.run(grid, **options)
    plain = urban.run(heights, **{**options, "pixel_size": 1.0})
    assert isinstance(found, xarray.Dataset) and found.identical(whole)
    with Counting() as pool:
        with_points = urban.run_tiles(grid, **options, executor=pool, tile=24, poi=points_at(tmp_path / "points.csv", {"a": (5, 30), "b": (20, 2)}))
    assert with_points.point_Tmrt.dims == ("point", "time") and list(with_points.point.values) == ["a", "b"]
    assert float(with_points.point_Tmrt.sel(point="a")[1]) == plain["tmrt"][1, 30, 5]
    assert with_points[list(found.data_vars)].identical(found)
    assert found.tmrt.dims == ("time", "y", "x") and found.tmrt.attrs == {"units": "degC", "grid_mapping": "spatial_ref"}
    assert found.spatial_ref.attrs["crs_wkt"] == 'LOCAL_CS["here"]' and (found.y == grid.y).all()
    np.testing.assert_array_equal(found.tmrt.values[:, ::-1], plain["tmrt"])


def test_runs_have_the_record_of_the_program(tmp_path):
    """Options, inputs by content, identity: two runs that differ in the weather are refused by compare, and a run reproduces."""
    common = dict(pixel_size=1.0, format=["npy"], pictures=False, device=HOST, **PLACE)
    canopy = np.zeros((40, 36), "f4")
    canopy[5:9, 5:9] = 8
    urban.run(town(), weather=noon(), out=tmp_path / "bare", scenario="bare", **common)
    urban.run(town(), cdsm=canopy, weather=noon(), out=tmp_path / "green", **common)
    warm = noon()
    warm["Ta"] = [30.0, 30.0]
    urban.run(town(), weather=warm, out=tmp_path / "warm", **common)
    record = json.loads((tmp_path / "bare" / "run.json").read_text())
    assert record["command"] == "lockstep urban run" and record["identity"] and record["seal"]
    assert record["options"]["scenario"] == {"value": "bare", "given": True, "effect": "display"}
    assert record["options"]["patches"]["value"] == "145" and record["options"]["no-pictures"]["value"] == "true"
    assert {os.path.basename(i["path"]) for i in record["inputs"]} == {"dsm.npy", "weather.csv"}
    assert any(stage["stage"] == "urban.step" for stage in record["stages"])
    found = urban.compare(tmp_path / "bare", tmp_path / "green", out=tmp_path / "change", format="npy", pictures=False)
    assert not found.get("warnings"), "nothing is unknown of these runs"
    assert [d["option"] for d in found["differences"]] == ["cdsm", "leaf-days"]
    with pytest.raises(ls.InputError, match="weather"):
        urban.compare(tmp_path / "bare", tmp_path / "warm", out=tmp_path / "no")
    found = ls.reproduce(tmp_path / "green")["files"]
    assert len(found) > 10 and all(file["same"] for file in found)
