"""Grids that know their place, times that know their zone, doubts about inputs."""
import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import urban


def city():
    """Heights of a block and a wall whose picture no turn or mirror leaves as it is."""
    dsm = np.zeros((20, 24), "f4")
    dsm[3:8, 4:7] = 10
    dsm[12, 10:20] = 6
    return dsm


def shadow(dsm, **more):
    return urban.shadows(dsm, azimuth=150, altitude=35, device=HOST, **more)["shadow_buildings"]


NORTH_UP = shadow(city(), pixel_size=2.0)


class Raster:
    """An open dataset as rasterio has it."""
    nodata, crs, scales, offsets = -9999.0, None, (1.0,), (0.0,)

    def __init__(self, values, a, b, c, d, e, f):
        self.values = values
        self.transform = type("Affine", (), dict(a=a, b=b, c=c, d=d, e=e, f=f))()

    def read(self, band):
        return self.values


def test_rasters_by_their_transform():
    assert (shadow(Raster(city(), 2, 0, 100, 0, -2, 500)) == NORTH_UP).all()
    assert (shadow(Raster(city()[::-1], 2, 0, 100, 0, 2, 460)) == NORTH_UP[::-1]).all()  # south up: so is the result
    assert (shadow(Raster(city()[:, ::-1], -2, 0, 148, 0, -2, 500)) == NORTH_UP[:, ::-1]).all()
    for bad, words in ((Raster(city(), 2, 0.1, 0, 0, -2, 0), "rotated"), (Raster(city(), 2, 0, 0, 0, -3, 0), "2 by 3 m")):
        with pytest.raises(ls.InputError, match=words):
            shadow(bad)
    with pytest.raises(ls.InputError, match="as pixel_size says"):
        shadow(Raster(city(), 2, 0, 0, 0, -2, 0), pixel_size=1.0)


def test_rasters_elsewhere_are_refused():
    dsm, canopy = Raster(city(), 2, 0, 100, 0, -2, 500), np.where(city() == 0, 0, 0).astype("f4")
    canopy[15, 5] = 8
    there = shadow(dsm, cdsm=Raster(canopy, 2, 0, 100, 0, -2, 500))
    assert (there == NORTH_UP).all()
    for place in ((2, 0, 102, 0, -2, 500), (2, 0, 100, 0, -2, 498), (3, 0, 100, 0, -3, 500)):
        with pytest.raises(ls.InputError, match="argument cdsm"):
            shadow(dsm, cdsm=Raster(canopy, *place))
    # South up, it lies on the same ground; a bare array has the axes of the dsm.
    plants = lambda **grids: urban.shadows(azimuth=150, altitude=35, device=HOST, **grids)["shadow_vegetation"]
    expected = plants(dsm=dsm, cdsm=Raster(canopy, 2, 0, 100, 0, -2, 500))
    assert (expected == 0).any()
    assert (plants(dsm=dsm, cdsm=Raster(canopy[::-1], 2, 0, 100, 0, 2, 460)) == expected).all()
    assert (plants(dsm=Raster(city()[::-1], 2, 0, 100, 0, 2, 460), cdsm=canopy[::-1]) == expected[::-1]).all()


def test_degrees_are_no_metres():
    degrees = Raster(city(), 2, 0, 0, 0, -2, 0)
    degrees.crs = type("CRS", (), dict(is_geographic=True))()
    with pytest.raises(ls.InputError, match="degrees"):
        shadow(degrees)
    feet = Raster(city(), 2, 0, 0, 0, -2, 0)
    feet.crs = type("CRS", (), dict(is_geographic=False, linear_units_factor=("foot", 0.3048)))()
    with pytest.raises(ls.InputError, match="0.3048 m"):
        shadow(feet)


def test_heights_in_feet_are_refused():
    feet = Raster(city(), 2, 0, 0, 0, -2, 0)
    feet.units = ("US survey foot",)
    with pytest.raises(ls.InputError, match="heights in US survey foot"):
        shadow(feet)
    feet.units = ("metre",)
    assert (shadow(feet) == NORTH_UP).all()


def test_masks_are_missing_pixels():
    mask = np.zeros((20, 24), bool)
    mask[3:8, 4:7] = True
    found = shadow(np.ma.masked_array(city(), mask), pixel_size=2.0)
    assert np.isnan(found[mask]).all() and not np.isnan(found[~mask]).any()
    bare = city()
    bare[3:8, 4:7] = np.nan
    np.testing.assert_array_equal(found, shadow(bare, pixel_size=2.0))
    marked = city()
    marked[mask] = -9999
    np.testing.assert_array_equal(found, shadow(Raster(marked, 2, 0, 0, 0, -2, 0)))


def test_xarray_by_its_coordinates():
    xarray = pytest.importorskip("xarray")
    y, x = 500 - 2 * (np.arange(20) + 0.5), 100 + 2 * (np.arange(24) + 0.5)
    dsm = xarray.DataArray(city(), {"y": y, "x": x}, ("y", "x"), attrs={"long_name": "heights"})
    plain = shadow(dsm)
    assert (plain.values == NORTH_UP).all() and (plain.y == y).all() and "long_name" not in plain.attrs
    for turned in (dsm[::-1], dsm.transpose("x", "y"), dsm[::-1].transpose("x", "y"), dsm[:, ::-1]):
        found = shadow(turned)
        assert found.dims == turned.dims
        xarray.testing.assert_equal(found.sortby("y", ascending=False).sortby("x").transpose("y", "x"), plain)
    for bad, words in ((dsm.assign_coords(x=x ** 1.1), "uneven steps"), (dsm.assign_coords(x=100 + x * 2), "square"),
                       (dsm.rename(y="lat", x="lon"), "degrees"),
                       (dsm.assign_coords(spatial_ref=((), 0, {"crs_wkt": 'GEOGCRS["WGS 84"]'})), "degrees")):
        with pytest.raises(ls.InputError, match=words):
            shadow(bad)
    with pytest.raises(ls.InputError, match="argument cdsm"):
        shadow(dsm, cdsm=dsm.assign_coords(y=y + 2))
    series = urban.run(dsm[::-1], weather=noon(datetime.datetime(2015, 6, 21, 12)), outputs="shadow", device=HOST, **PLACE)
    north = urban.run(dsm, weather=noon(datetime.datetime(2015, 6, 21, 12)), outputs="shadow", device=HOST, **PLACE)
    xarray.testing.assert_equal(series.sortby("y", ascending=False), north)


PLACE = dict(latitude=50, longitude=15, utc_offset=1, patches=145)


def noon(*times):
    n = len(times)
    return {"time": list(times), "Ta": [24.0] * n, "RH": [40.0] * n, "wind": [2.0] * n, "Kglobal": [700.0] * n}


def test_times_with_a_zone():
    def run(*times, **more):
        options = {**PLACE, **more}
        return urban.run(city(), weather=noon(*times), pixel_size=2.0, outputs="shadow", device=HOST, **options)
    naive = run(datetime.datetime(2015, 6, 21, 11), datetime.datetime(2015, 6, 21, 12))
    utc = datetime.timezone.utc
    universal = run(datetime.datetime(2015, 6, 21, 10, tzinfo=utc), datetime.datetime(2015, 6, 21, 11, tzinfo=utc))
    assert universal["times"] == naive["times"]
    np.testing.assert_array_equal(universal["shadow"], naive["shadow"])
    prague = ZoneInfo("Europe/Prague")  # two hours ahead in June
    summer = run(datetime.datetime(2015, 6, 21, 12, tzinfo=prague), datetime.datetime(2015, 6, 21, 13, tzinfo=prague), utc_offset=None)
    assert summer["times"] == ["2015-06-21T12:00", "2015-06-21T13:00"]
    np.testing.assert_array_equal(summer["shadow"], naive["shadow"])
    # Over the end of summer time the hours run on, though 02:00 comes twice.
    night = noon(*(datetime.datetime(2015, 10, 24, hour, tzinfo=utc).astimezone(prague) for hour in (22, 23)),
                 *(datetime.datetime(2015, 10, 25, hour, tzinfo=utc).astimezone(prague) for hour in (0, 1, 2)))
    night["Kglobal"] = [0.0] * 5
    autumn = urban.run(city(), weather=night, pixel_size=2.0, outputs="shadow", device=HOST, **{**PLACE, "utc_offset": None})
    assert autumn["times"] == [f"2015-10-25T{hour:02}:00" for hour in range(5)]
    stamps = run(np.datetime64("2015-06-21T11:00"), np.datetime64("2015-06-21T12:00"))
    np.testing.assert_array_equal(stamps["shadow"], naive["shadow"])
    with pytest.raises(ls.InputError, match="with and without a time zone"):
        run(datetime.datetime(2015, 6, 21, 11), datetime.datetime(2015, 6, 21, 12, tzinfo=utc))
    with pytest.raises(ls.InputError, match="time is"):
        run(datetime.datetime(2015, 6, 21, 11, 0, 30))


def test_keywords_of_the_season_and_the_weather():
    canopy = np.zeros((20, 24), "f4")
    canopy[15:18, 5:9] = 9

    def tmrt(month=6, **more):
        options = {**PLACE, **more}
        weather = noon(datetime.datetime(2015, month, 21, 12))
        weather["Kglobal"] = [250.0]
        return urban.run(city(), cdsm=canopy, weather=weather, pixel_size=2.0, outputs="tmrt", device=HOST, **options)["tmrt"]
    winter = tmrt(12)
    assert (tmrt(12, evergreen=True) != winter).any() and (tmrt(12, leaf_days=(300, 20)) != winter).any()
    np.testing.assert_array_equal(tmrt(12, evergreen=True), tmrt(12, leaf_days=(300, 20)))
    assert (tmrt(interval="start") != tmrt()).any()
    with pytest.raises(ls.InputError, match="leaf_days"):
        tmrt(leaf_days=(1, 2, 3))


def test_checks_of_files(tmp_path):
    np.save(tmp_path / "dsm.npy", city())
    np.save(tmp_path / "dem.npy", np.zeros((20, 24), "f4"))
    (tmp_path / "w.csv").write_text("time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,24,40,0,700\n")
    rows = {row["check"]: row for row in urban.check(tmp_path / "dsm.npy", dem=tmp_path / "dem.npy", weather=tmp_path / "w.csv",
                                                     pixel_size=2.0, device=HOST, **PLACE)}
    assert rows["calm hours"]["verdict"] == "warning" and rows["tallest building"]["value"] == 10


# ── georeferenced grids in memory, and the same grids in files ──

CLOCK = [f"2026-06-21T{h:02}:00" for h in (9, 12, 15)]
WEATHER = {"time": CLOCK, "Ta": [21.0, 24, 25], "RH": [50.0] * 3, "wind": [2.0] * 3, "Kglobal": [420.0, 650, 500]}


def geotiff(path, values, epsg, x, y, pixel=1.0):
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed")
    with rasterio.open(path, "w", driver="GTiff", height=values.shape[0], width=values.shape[1], count=1, dtype="float32", crs=epsg,
                       transform=rasterio.transform.from_origin(x, y, pixel, pixel)) as file:
        file.write(values.astype("f4"), 1)
    return str(path)


def forms_of(folder, epsg, x, y, pixel=1.0):
    """The same DSM and DEM as files, open datasets and DataArrays."""
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed")
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    grids = {"dsm": city() + 5, "dem": np.full((20, 24), 5.0, "f4")}
    paths = {n: geotiff(folder / f"{n}.tif", v, epsg, x, y, pixel) for n, v in grids.items()}
    wkt = rasterio.crs.CRS.from_string(epsg).to_wkt()
    axes = {"y": y - pixel * (np.arange(20) + 0.5), "x": x + pixel * (np.arange(24) + 0.5)}
    crs = xarray.DataArray(0, attrs={"crs_wkt": wkt})
    return {"paths": paths, "datasets": {n: rasterio.open(p) for n, p in paths.items()},
            "xarray": {n: xarray.DataArray(v, dims=("y", "x"), coords=axes).assign_coords(spatial_ref=crs) for n, v in grids.items()},
            "a path and an array": {"dsm": paths["dsm"], "dem": grids["dem"]}}


@pytest.mark.parametrize("epsg, x, y, pixel", [("EPSG:3006", 900000, 7300000, 1.0),  # its north is 8 degrees off
                                               ("EPSG:3857", 2000000, 8200000, 2.0)])  # its metres are half as long
def test_runs_take_north_scale_and_location_from_any_grid(tmp_path, epsg, x, y, pixel):
    options = dict(weather=WEATHER, utc_offset=1, outputs=("tmrt", "shadow"), device=HOST)
    forms = forms_of(tmp_path, epsg, x, y, pixel)
    expected = urban.run(**forms.pop("paths"), **options)
    bare = urban.run(city() + 5, dem=np.full((20, 24), 5.0, "f4"), pixel_size=pixel, latitude=65.5, longitude=23.7, **options)
    assert np.nanmax(np.abs(bare["tmrt"] - expected["tmrt"])) > 1, "the place matters"
    for name, grids in forms.items():
        found = urban.run(**grids, **options)
        for output in ("tmrt", "shadow"):
            np.testing.assert_array_equal(np.asarray(found[output]), expected[output], err_msg=name)


def test_files_of_a_run_have_the_georeference_of_its_arrays(tmp_path):
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed")
    options = dict(weather=WEATHER, utc_offset=1, outputs=("tmrt",), device=HOST, pictures=False, video=False)
    point = tmp_path / "poi.csv"
    point.write_text("id,x,y\na,900010.5,7299990.5\n")
    forms = forms_of(tmp_path, "EPSG:3006", 900000, 7300000)
    grids = {}
    for name in ("paths", "datasets", "xarray"):
        urban.run(**forms[name], **options, out=tmp_path / name, poi=point)
        with rasterio.open(tmp_path / name / "summary" / "tmrt_mean.tif") as file:
            grids[name] = file.read(1)
            assert file.crs.to_epsg() == 3006 and file.transform[:6] == (1, 0, 900000, 0, -1, 7300000)
        np.testing.assert_array_equal(grids[name], grids["paths"])
        assert (tmp_path / name / "poi.csv").read_text() == (tmp_path / "paths" / "poi.csv").read_text()


def test_shadows_and_sky_take_the_scale_of_the_projection(tmp_path):
    forms = forms_of(tmp_path, "EPSG:3857", 2000000, 8200000, 2.0)
    pyproj = pytest.importorskip("pyproj", reason="pyproj is not installed")
    place = pyproj.Transformer.from_crs("EPSG:3857", "EPSG:4326", always_xy=True).transform(2000024, 8199980)
    factors = pyproj.Proj("EPSG:3857").get_factors(*place)
    scale = np.sqrt(factors.meridional_scale * factors.parallel_scale)
    near = urban.shadows(city() + 5, azimuth=150, altitude=35, pixel_size=2.0 / scale, device=HOST)["shadow_buildings"]
    assert (near != urban.shadows(city() + 5, azimuth=150, altitude=35, pixel_size=2.0, device=HOST)["shadow_buildings"]).any()
    for name in ("paths", "datasets", "xarray"):
        found = urban.shadows(forms[name]["dsm"], azimuth=150, altitude=35, device=HOST)["shadow_buildings"]
        np.testing.assert_array_equal(np.asarray(found), near, err_msg=name)
        sky, on_ground, in_crs = (float(np.mean(urban.svf(grid, device=HOST, **size)["svf"])) for grid, size in
                                  ((forms[name]["dsm"], {}), (city() + 5, {"pixel_size": 2.0 / scale}), (city() + 5, {"pixel_size": 2.0})))
        assert abs(sky - on_ground) < 1e-3 < 1e-2 < abs(sky - in_crs)


def test_xarray_of_other_units_is_refused():
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed")

    def grid(epsg="EPSG:3006", units=None, **attributes):
        axes = {d: xarray.Variable(d, v, {"units": units} if units else {}) for d, v in
                {"y": 200000 - np.arange(20.0), "x": 980000 + np.arange(24.0)}.items()}
        wkt = rasterio.crs.CRS.from_string(epsg).to_wkt()
        return xarray.DataArray(city(), dims=("y", "x"), coords=axes, attrs=attributes).assign_coords(
            spatial_ref=xarray.DataArray(0, attrs={"crs_wkt": wkt}))

    for wrong, words in ((grid("EPSG:2263"), "one unit of its CRS is 0.3048"), (grid(units="ft"), "axis y in ft"),
                         (grid(scale_factor=0.1), "packed numbers"),
                         (grid("EPSG:3006+6360"), "vertical CRS is 0.3048")):
        with pytest.raises(ls.InputError, match=words):
            urban.svf(wrong, device=HOST)
    heights = grid()
    heights.attrs["units"] = "ft"
    with pytest.raises(ls.InputError, match="heights in ft"):
        urban.svf(heights, device=HOST)


def test_options_of_files_are_refused_for_arrays():
    for name, value in dict(threshold="utci>35", hours="11-17", include_roofs=True, place="here", format="tif", poi="p.csv").items():
        with pytest.raises(ls.InputError, match=f"{name} without a folder"):
            urban.run(city(), weather=WEATHER, pixel_size=1, latitude=50, longitude=15, utc_offset=1, device=HOST, **{name: value})


@pytest.mark.parametrize("call, words", [
    (lambda: urban.check(city(), weather="met.csv"), "of type ndarray.*urban.check, argument dsm"),
    (lambda: urban.sun(city(), out="o", date="2020-07-01"), "of type ndarray.*urban.sun, argument dsm"),
    (lambda: urban.sun("dsm.tif", out="o", date=datetime.date(2020, 7, 1)), "of type date.*argument date"),
    (lambda: urban.plant("dsm.tif", weather={"time": []}, trees=1, species="9,3,6", out="o"), "of type dict.*argument weather"),
    (lambda: urban.plant("dsm.tif", weather="w", trees=True, species="9,3,6", out="o"), "'True'.*argument trees"),
    (lambda: urban.compare(1, "b", out="o"), "'1'.*urban.compare, argument before"),
    (lambda: urban.stats("run", areas={}, out="o.csv"), "of type dict.*urban.stats, argument areas"),
    (lambda: ls.flow.encode("a.nc", 3), "'3'.*flow.encode, argument out"), (lambda: ls.flow.compare(1, 2), "int.*flow.compare"),
    (lambda: ls.reproduce(None), "NoneType.*reproduce, argument folder"),
    (lambda: urban.stage("utci", dict(ta=np.ma.masked_array([25.0], [True]), rh=50, va=1, tmrt=30)), "masked elements.*array ta"),
    (lambda: urban.stage("utci", dict(ta=25 + 1j, rh=50, va=1, tmrt=30)), "complex numbers.*array ta"),
    (lambda: urban.stage("utci", dict(ta="x", rh=50, va=1, tmrt=30)), "str.*array ta"),
    (lambda: urban.utci(30.0, ta=np.ones(2), rh=50, wind=1), r"shape \(2,\).*utci, argument ta"),
    (lambda: urban.pet(30.0, ta=20 + 1j, rh=50, wind=1), "complex numbers.*pet, argument ta")])
def test_arguments_of_other_types(call, words):
    with pytest.raises(ls.InputError, match=words):
        call()
