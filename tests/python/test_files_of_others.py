"""GeoTIFF and NetCDF of a run as others' programs read them: rasterio, netCDF4, xarray and pyproj.

The inputs are others' as well: rasterio writes the DSM, of four projections in both hemispheres.
"""
import datetime
import shutil

import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import urban

rasterio = pytest.importorskip("rasterio", reason="no rasterio: files of others are not read")
# Code of EPSG, north-west corner, hours ahead of universal time.
PLACES = {"transverse mercator": (3006, (319000.0, 6400000.0), 1), "southern UTM": (28355, (320000.0, 5812000.0), 10),
          "Lambert azimuthal": (3035, (4321000.0, 3210000.0), 1), "Lambert conic": (2154, (700000.0, 6600000.0), 1)}
ROWS, COLS, PIXEL = 20, 28, 2.0


@pytest.fixture(scope="module", params=PLACES, ids=list(PLACES))
def result(request, tmp_path_factory):
    """(EPSG code, corner, hours ahead, folder of results) of a run."""
    epsg, corner, ahead = PLACES[request.param]
    folder = tmp_path_factory.mktemp("others")
    dsm = np.zeros((ROWS, COLS), "f4")
    dsm[3:8, 4:7] = 10
    dsm[0, 0] = -9999
    with rasterio.open(folder / "dsm.tif", "w", driver="GTiff", height=ROWS, width=COLS, count=1, dtype="float32", nodata=-9999,
                       crs=f"EPSG:{epsg}", transform=rasterio.Affine(PIXEL, 0, corner[0], 0, -PIXEL, corner[1])) as file:
        file.write(dsm, 1)
    (folder / "w.csv").write_text("time,Ta,RH,wind,Kglobal\n2015-03-21T12:00,20,50,2,500\n2015-03-21T13:00,21,50,2,500\n")
    urban.run(folder / "dsm.tif", weather=folder / "w.csv", utc_offset=ahead, outputs=("tmrt", "shadow"), format=["nc", "tif"],
              pictures=False, video=False, patches=145, out=folder / "out", device=HOST)
    return epsg, corner, ahead, folder / "out"


def test_cog(result):
    epsg, corner, _, folder = result
    with rasterio.open(folder / "tmrt" / "tmrt_20150321T1200.tif") as cog:
        assert cog.crs.to_epsg() == epsg
        assert cog.transform == rasterio.Affine(PIXEL, 0, corner[0], 0, -PIXEL, corner[1])
        assert np.isnan(cog.nodata) and cog.shape == (ROWS, COLS) and cog.dtypes == ("float32",)
        values = cog.read(1)
        assert np.isnan(values[0, 0]) and np.isfinite(values).sum() == ROWS * COLS - 1
        assert cog.units == ("degC",) and cog.descriptions == ("Mean radiant temperature",)
        assert cog.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
    with rasterio.open(folder / "summary" / "tmrt_mean.tif") as mean:
        assert mean.crs.to_epsg() == epsg and mean.transform.c == corner[0] and mean.units == ("degC",)


def test_netcdf(result):
    netcdf = pytest.importorskip("netCDF4", reason="no netCDF4: run.nc is not read by others")
    epsg, corner, ahead, folder = result
    with netcdf.Dataset(folder / "run.nc") as run:
        tmrt = run["tmrt"]
        assert tmrt.dimensions == ("time", "y", "x") and tmrt.units == "degC"
        np.testing.assert_array_equal(run["x"][:], corner[0] + PIXEL * (np.arange(COLS) + 0.5))
        np.testing.assert_array_equal(run["y"][:], corner[1] - PIXEL * (np.arange(ROWS) + 0.5))
        assert run["x"].standard_name == "projection_x_coordinate" and run["y"].units == "m"
        times = netcdf.num2date(run["time"][:], run["time"].units)
        utc = [datetime.datetime(*t.timetuple()[:6]) for t in times]
        assert utc == [datetime.datetime(2015, 3, 21, hour - ahead) for hour in (12, 13)]
        with rasterio.open(folder / "tmrt" / "tmrt_20150321T1300.tif") as cog:
            np.testing.assert_array_equal(np.ma.filled(tmrt[1], np.nan), cog.read(1))
        pyproj = pytest.importorskip("pyproj", reason="no pyproj: the grid mapping is not read by others")
        mapping = {name: run[tmrt.grid_mapping].getncattr(name) for name in run[tmrt.grid_mapping].ncattrs()}
        expected = pyproj.CRS.from_epsg(epsg)
        assert pyproj.CRS.from_cf(mapping).to_epsg() == epsg
        # By CF's parameters alone: the same place on Earth to a millimetre.
        mapping.pop("crs_wkt", None), mapping.pop("spatial_ref", None)
        if "grid_mapping_name" in mapping:
            of_cf = pyproj.Transformer.from_crs(pyproj.CRS.from_cf(mapping), expected, always_xy=True)
            assert of_cf.transform(*corner) == pytest.approx(corner, abs=1e-3)


def test_a_damaged_chunk_is_found(result, tmp_path):
    h5py = pytest.importorskip("h5py", reason="no h5py: chunks are not found")
    epsg, (x, y), _, folder = result
    shutil.copytree(folder, tmp_path / "run")
    (tmp_path / "areas.csv").write_text(f'name,wkt\na,"POLYGON (({x} {y}, {x + 40} {y}, {x + 40} {y - 20}, {x} {y}))"\n')

    def stats():
        return urban.stats(tmp_path / "run", areas=tmp_path / "areas.csv", areas_crs=f"EPSG:{epsg}", outputs=("tmrt",), out=tmp_path / "table.csv")

    assert stats()["rows"]
    with h5py.File(tmp_path / "run" / "run.nc") as run:
        chunk = run["tmrt"].id.get_chunk_info_by_coord((1, 0, 0))
    with open(tmp_path / "run" / "run.nc", "r+b") as file:
        file.seek(chunk.byte_offset + chunk.size // 2)
        byte, = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(ls.InputError, match="damaged values at step 1, row 0"):
        stats()


def test_xarray(result):
    xarray = pytest.importorskip("xarray", reason="no xarray: run.nc is not opened by it")
    pytest.importorskip("netCDF4")
    _, corner, ahead, folder = result
    with xarray.open_dataset(folder / "run.nc") as run:
        assert run.tmrt.dims == ("time", "y", "x") and float(run.y[0]) == corner[1] - PIXEL / 2
        assert run.time.values[0] == np.datetime64("2015-03-21T12:00") - np.timedelta64(ahead, "h")
        # The roof of the block sees the sun.
        block = run.shadow.sel(x=corner[0] + PIXEL * 5.5, y=corner[1] - PIXEL * 5.5)
        assert (block == 1).all()


def test_overviews_are_means(tmp_path):
    """Of two by two pixels: those of sun and shade stay between 0 and 1."""
    dsm = np.zeros((16, 600), "f4")
    for col in range(3, 590, 17):
        dsm[3:11, col:col + 6] = 4 + col % 9
    with rasterio.open(tmp_path / "dsm.tif", "w", driver="GTiff", height=16, width=600, count=1, dtype="float32", crs="EPSG:3006",
                       transform=rasterio.Affine(1, 0, 319000, 0, -1, 6400000)) as file:
        file.write(dsm, 1)
    (tmp_path / "w.csv").write_text("time,Ta,RH,wind,Kglobal\n2015-03-21T12:00,20,50,2,500\n")
    urban.run(tmp_path / "dsm.tif", weather=tmp_path / "w.csv", utc_offset=1, outputs=("shadow",), format=["tif"], pictures=False, video=False,
              patches=145, substeps=1, out=tmp_path / "out", device=HOST)
    path = tmp_path / "out" / "shadow" / "shadow_20150321T1200.tif"
    with rasterio.open(path) as whole, rasterio.open(path, overview_level=0) as half:
        means = half.read(1)
        np.testing.assert_allclose(means, whole.read(1).reshape(8, 2, 300, 2).mean((1, 3)), atol=1e-6)
    assert len(np.unique(means)) > 2
