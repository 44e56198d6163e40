"""Title, unit, time, program and run in the files of the program, as others' readers give them."""
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

rasterio = pytest.importorskip("rasterio", reason="no rasterio: GeoTIFFs are not read by others")
netcdf = pytest.importorskip("netCDF4", reason="no netCDF4: NetCDF is not read by others")


def program(*words):
    done = subprocess.run([sys.executable, "-m", "lockstep", *map(str, words), "--device", "cpu", "--quiet"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stamps")
    program("urban", "sample", "--size", 24, "--no-pictures", "--out", folder / "in")
    (folder / "w.csv").write_text("time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,22,50,2,700\n")
    program("urban", "run", "--dsm", folder / "in/dsm.tif", "--weather", folder / "w.csv", "--utc-offset", 2, "--patches", 145, "--outputs", "tmrt",
            "--format", "nc,tif", "--no-video", "--out", folder / "run")
    return folder


def record(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_geotiff(city):
    run = record(city / "run/run.json")
    version = "Lockstep " + run["program"]["version"]
    with rasterio.open(city / "run/tmrt/tmrt_20150621T1200.tif") as step:
        tags = step.tags()
        assert (tags["TIFFTAG_SOFTWARE"], tags["LOCKSTEP_RUN"]) == (version, run["identity"])
        assert tags["TIFFTAG_IMAGEDESCRIPTION"] == "Mean radiant temperature"
        assert tags["LOCKSTEP_TIME"] == "2015-06-21T12:00 (UTC+2)"
        assert step.units == ("degC",)
    with rasterio.open(city / "in/dsm.tif") as dsm:
        assert dsm.tags()["LOCKSTEP_RUN"] == record(city / "in/run.json")["identity"] != run["identity"]
        assert dsm.tags()["TIFFTAG_IMAGEDESCRIPTION"] == "Ground and buildings" and dsm.units == ("m",)


def test_netcdf(city):
    run = record(city / "run/run.json")
    with netcdf.Dataset(city / "run/run.nc") as file:
        assert (file.program, file.lockstep_run) == ("Lockstep " + run["program"]["version"], run["identity"])
        assert file.title == "Radiation and thermal comfort of a city" and file["tmrt"].units == "degC"
        assert file["time"].units.startswith("minutes since 1970-01-01")
    xarray = pytest.importorskip("xarray", reason="no xarray")
    with xarray.open_dataset(city / "run/run.nc") as file:
        assert file.attrs["lockstep_run"] == run["identity"]


def test_archive(city):
    arrays = {"ta": 25.0, "rh": 50.0, "va": 2.0, "tmrt": 40.0}
    np.savez(city / "in.npz", **{name: np.float64(value) for name, value in arrays.items()})
    program("urban", "stage", "utci", city / "in.npz", "--out", city / "utci.npz")
    with np.load(city / "utci.npz") as file:
        assert file.files == ["utci"]
    comment = json.loads(zipfile.ZipFile(city / "utci.npz").comment)
    run = record(city / "utci.npz.run.json")
    assert comment == {"title": "urban stage utci", "units": {"utci": "°C"}, "program": "Lockstep " + run["program"]["version"],
                       "lockstep_run": run["identity"]}
