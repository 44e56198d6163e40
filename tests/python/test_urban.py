"""Shadows, walls and sky view factors from arrays."""
import datetime

import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import urban


def city():
    dsm = np.zeros((24, 24), "f4")
    dsm[8:14, 8:14] = 10
    return dsm


def test_a_block_casts_its_shadow():
    found = urban.shadows(city(), azimuth=180, altitude=45, pixel_size=1.0, device="cpu")
    assert set(found) == {"shadow_buildings", "shadow_vegetation", "shadow_vegetation_before_buildings"}
    shade = found["shadow_buildings"]
    assert shade[20, 10] == 1 and shade[5, 10] == 0 and shade[5, 2] == 1  # the sun in the south, the shadow north
    assert shade.dtype == np.float32 and shade.flags.writeable


def test_the_fifteen_sky_view_factors_and_walls():
    found = urban.svf(city(), pixel_size=1.0, patches=145, device="cpu")
    assert tuple(found) == urban.SKY_VIEW_NAMES and len(found) == 15
    svf = found["svf"]
    assert svf[10, 7] < 0.75 < svf[0, 0] <= 1 and (found["svf_veg"] == 1).all()
    again = urban.svf(city(), pixel_size=1.0, patches=145, device="cpu", tile=8, save_patches=True)
    assert (again["svf"] == svf).all() and again["sky_states"].shape == (10, 24, 24)
    walls = urban.walls(city(), pixel_size=1.0, device="cpu")
    assert walls["wall_height"].max() == 10 and (walls["wall_height"] > 0).sum() >= 20
    lit = urban.shadows(city(), azimuth=180, altitude=45, pixel_size=1.0, **walls, device="cpu")
    assert {"wall_sun", "wall_shadow"} < set(lit)


def noon(rows=2):
    return {"time": [datetime.datetime(2015, 6, 21, 11 + k) for k in range(rows)], "Ta": [24.0] * rows, "RH": [40.0] * rows,
            "wind": [2.0] * rows, "Kglobal": [700.0] * rows}


PLACE = dict(latitude=57.7, longitude=11.9, utc_offset=1, patches=145)


def test_a_run_hour_by_hour(tmp_path):
    found = urban.run(city(), weather=noon(), pixel_size=1.0, outputs=("tmrt", "utci", "pet", "shadow"), device=HOST, **PLACE)
    assert found["times"] == ["2015-06-21T11:00", "2015-06-21T12:00"] and found["tmrt"].shape == (2, 24, 24)
    sunny, shaded = found["shadow"][0] == 1, found["shadow"][0] == 0
    assert found["tmrt"][0][sunny].mean() > found["tmrt"][0][shaded].mean() + 5
    again = urban.utci(found["tmrt"][0], ta=24, rh=40, wind=2, device=HOST)
    np.testing.assert_array_equal(again, found["utci"][0])
    # From files to files the same.
    np.save(tmp_path / "dsm.npy", city())
    rows = noon()
    (tmp_path / "w.csv").write_text("time,Ta,RH,wind,Kglobal\n" + "".join(
        f"{t:%Y-%m-%dT%H:%M},24,40,2,700\n" for t in rows["time"]))
    told = urban.run(tmp_path / "dsm.npy", weather=tmp_path / "w.csv", pixel_size=1.0, outputs="tmrt", out=tmp_path / "out",
                     format=["npy"], pictures=False, device=HOST, **PLACE)
    assert told["steps"] == 2
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "tmrt" / "tmrt_20150621T1100.npy"), found["tmrt"][0])
    for call, words in ((lambda: urban.run(city(), weather=noon()), "pixel_size"),
                        (lambda: urban.run(city(), weather=[1], pixel_size=1.0), "argument weather"),
                        (lambda: urban.run(city(), weather=noon(), pixel_size=1.0, colour=1), "argument colour"),
                        (lambda: urban.run(city(), weather=noon(), pixel_size=1.0, outputs="rain", **PLACE), "rain")):
        with pytest.raises(ls.InputError, match=words):
            call()


def test_arrays_in_memory_are_files(tmp_path, monkeypatch):
    """Every kind of grid, given as an array and as a file; arrays need no place to write."""
    dem = np.zeros((24, 24), "f4")
    canopy = np.zeros((24, 24), "f4")
    canopy[3:6, 3:6] = 6
    cover = np.where(city() > 0, 2, 5).astype("f4")
    grids = dict(dem=dem, cdsm=canopy, tdsm=canopy / 3, land_cover=cover, **urban.walls(city(), pixel_size=1.0, device=HOST))
    options = dict(weather=noon(1), pixel_size=1.0, outputs=("tmrt", "shadow", "lup"), device=HOST, **PLACE)
    paths = {}
    for name, grid in grids.items():
        np.save(tmp_path / f"{name}.npy", grid)
        paths[name] = tmp_path / f"{name}.npy"
    np.save(tmp_path / "dsm.npy", city())
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    told = []
    found = urban.run(city(), **grids, **options, progress=lambda done, total: told.append((done, total)))
    assert told and told[-1][0] == told[-1][1]
    from_files = urban.run(tmp_path / "dsm.npy", **paths, **options)
    urban.run(city(), **grids, **options, out=tmp_path / "out", format=["npy"], pictures=False, video=False)
    for name in options["outputs"]:
        np.testing.assert_array_equal(found[name], from_files[name])
        np.testing.assert_array_equal(np.load(tmp_path / "out" / name / f"{name}_20150621T1100.npy"), found[name][0])
    assert found["shadow"].min() < 1 and len(np.unique(found["lup"])) > 10
    with pytest.raises(ls.InputError, match="argument cdsm"):
        urban.run(city(), **{**grids, "cdsm": canopy[:5]}, **options)
    with pytest.raises(ls.InputError, match="argument poi"):
        urban.run(city(), **options, poi=tmp_path / "points.csv")


def test_indices_of_comfort():
    assert urban.utci(60.0, ta=30, rh=45, wind=2) == pytest.approx(36.74, abs=0.01)
    assert urban.pet(21.0, ta=21, rh=50, wind=0.1) == pytest.approx(21, abs=0.6)  # indoors PET is the air
    tmrt = np.array([20.0, 40.0, np.nan], "f4")
    grid = urban.pet(tmrt, ta=25, rh=40, wind=1.0, device=HOST)
    assert np.isnan(grid[2]) and grid[1] == pytest.approx(urban.pet(40.0, ta=25, rh=40, wind=1.0), abs=0.1)
    assert urban.stress_class(40.0) == "very strong heat stress" and urban.stress_class(float("nan")) == ""
    with pytest.raises(ls.InputError, match="argument heigth") as caught:
        urban.pet(20.0, ta=20, rh=40, wind=1, heigth=1.7)
    assert "did you mean height?" in caught.value.hint
    woman = urban.pet(40.0, ta=30, rh=40, wind=1, sex="female", mass=60, height=1.65, age=70)
    assert abs(woman - urban.pet(40.0, ta=30, rh=40, wind=1)) > 0.05


@pytest.mark.parametrize("index", [urban.utci, urban.pet])
def test_indices_refuse_air_that_does_not_occur(index):
    air = dict(ta=20, rh=50, wind=1)
    for tmrt in (30.0, np.array([30.0, 40.0])):
        for name, value in (("ta", 400), ("ta", -100), ("rh", 101), ("rh", -1), ("wind", -1), ("wind", 201), ("ta", np.nan)):
            with pytest.raises(ls.InputError, match=f"urban.{index.__name__}, argument {name}="):
                index(tmrt, **{**air, name: value}, device=HOST)
        with pytest.raises(ls.InputError, match="argument wind_height="):
            index(tmrt, **air, wind_height=0, device=HOST)
    with pytest.raises(ls.InputError, match="masked elements.*argument tmrt"):
        index(np.ma.array([30.0, 999.0], mask=[0, 1]), **air, device=HOST)


@pytest.mark.parametrize("name, value, words", [("dsm", -9999, "heights in metres"), ("dsm", 1e30, "heights in metres"),
                                                ("dsm", 1e39, "inf at row 2"), ("dem", -32768, "heights in metres"),
                                                ("dsm", 8999, None), ("cdsm", 131, "at most 130 m")])
def test_grids_without_heights_are_refused(name, value, words):
    flat = np.full((6, 6), 3.0)
    flat[2, 3] = value
    grids = {"dsm": np.full((6, 6), 3.0), name: flat}
    for call, extra in ((urban.svf, {}), (urban.shadows, dict(azimuth=180, altitude=30)), (urban.walls, {})):
        if name == "cdsm" and call is urban.walls:
            continue
        if words is None:
            call(**grids, pixel_size=1, device=HOST, **extra)
            continue
        with pytest.raises(ls.InputError, match=words if value == 1e39 else f"row 2, column 3 .{name}.*{words}"):
            call(**grids, pixel_size=1, device=HOST, **extra)
    if value == -9999:
        assert np.isnan(urban.svf(**grids, pixel_size=1, nodata=value, device=HOST)["svf"][2, 3])


def test_stages_on_arrays():
    assert {"sun", "tmrt", "utci", "pet"} <= {row["name"] for row in urban.stages()}
    found = urban.stage("utci", dict(ta=30, rh=45, va=2, tmrt=[[60.0, 20.0, 30.0]]))
    assert found["utci"].shape == (1, 3) and found["utci"][0, 0] == urban.utci(60.0, ta=30, rh=45, wind=2)
    with pytest.raises(ls.InputError, match="no stage 'utic'") as caught:
        urban.stage("utic", {})
    assert caught.value.hint == "did you mean utci?"
    with pytest.raises(ls.InputError, match="no array 'hr' of stage utci.*expected ta, rh, va, tmrt"):
        urban.stage("utci", dict(ta=30, rh=45, va=2, tmrt=[[60.0]], hr=45))
    with pytest.raises(ls.InputError, match="tmrt"):
        urban.stage("utci", dict(ta=30, rh=45, va=2))


def test_view_factors_to_umep_and_back(tmp_path):
    factors = urban.svf(city(), pixel_size=1.0, patches=145, device=HOST)
    for name in urban.SKY_VIEW_NAMES:
        np.save(tmp_path / f"{name}.npy", factors[name])
    try:
        told = urban.umep(tmp_path, out=tmp_path / "umep", transmissivity=0.1)
    except ls.UnsupportedError as error:
        pytest.skip(str(error))
    assert (told["rows"], told["cols"]) == city().shape and told["files"][0].endswith("svfs.zip")
    urban.umep(tmp_path / "umep" / "svfs.zip", out=tmp_path / "back", format="npy")
    np.testing.assert_array_equal(np.load(tmp_path / "back" / "svf_east.npy"), factors["svf_east"])
    with pytest.raises(ls.InputError, match=r"argument transmissivity=.*expected a folder"):
        urban.umep(tmp_path / "umep" / "svfs.zip", out=tmp_path / "back", transmissivity=0.1)


def test_before_after_and_areas(tmp_path, capfd):
    tall = city()
    tall[16:20, 4:12] = 12
    for name, dsm in (("low", city()), ("tall", tall)):
        urban.run(dsm, weather=noon(), pixel_size=1.0, outputs=("utci", "tmrt"), out=tmp_path / name, format=["npy"], pictures=False, device=HOST, **PLACE)
    change = urban.compare(tmp_path / "low", tmp_path / "tall", out=tmp_path / "change", format="npy", pictures=False)
    assert change["compared_m2"] == 24 * 24 - 36 - 32 and "warnings" not in change
    tmrt = next(s for s in change["summaries"] if s["name"] == "tmrt_mean")
    written = np.load(tmp_path / "change" / "tmrt_mean_change.npy")
    ground = (city() < 2) & (tall < 2)
    assert abs(written[ground].mean() - tmrt["mean_change"]) < 1e-4
    (tmp_path / "a.csv").write_text('name,wkt\nyard,"POLYGON ((0 0, 6.5 0, 6.5 24, 0 24))"\n')
    told = urban.stats(tmp_path / "low", areas=tmp_path / "a.csv", out=tmp_path / "t.csv", outputs=["tmrt"], per=["hour"], threshold=["tmrt>-9"])
    assert [row["m2"] for row in told["rows"]] == [6.5 * 24] * 2 and told["rows"][0]["thresholds"]["tmrt>-9"]["hours"] == 1
    with pytest.raises(ls.InputError, match=r"no output 'pet' in the run .lockstep.urban.stats, argument threshold=.: expected one of tmrt, utci"):
        urban.stats(tmp_path / "low", areas=tmp_path / "a.csv", out=tmp_path / "u.csv", threshold=["pet>3"])


def test_hours_of_sun(tmp_path):
    np.save(tmp_path / "dsm.npy", city())
    told = urban.sun(tmp_path / "dsm.npy", out=tmp_path / "sun", date="2026-03-21", minutes=30, pixel_size=1.0, latitude=57.7, longitude=0.0,
                     format="npy", device=HOST)
    hours = np.load(tmp_path / "sun" / "sun_hours.npy")
    assert told["possible_hours"] == 12 and hours.max() == 12 and hours[7, 11] < 2 < 10 < hours[16, 11]
    told = urban.sun(tmp_path / "dsm.npy", out=tmp_path / "rule", rule="solklart", minutes=30, pixel_size=1.0, latitude=57.7, longitude=0.0,
                     format="npy", device=HOST)
    hours, grades = (np.load(tmp_path / "rule" / f"{name}.npy") for name in ("sun_hours", "sun_grade"))
    assert told["possible_hours"] == 8 and np.array_equal(grades, hours >= 5)
    assert abs(told["rule"]["grades"][1]["ground_percent"] - 100 * grades.mean()) < 1e-3
    with pytest.raises(ls.InputError, match="which names its own"):
        urban.sun(tmp_path / "dsm.npy", out=tmp_path / "no", rule="solklart", date="2026-03-21", pixel_size=1.0, latitude=57.7, longitude=0.0, device=HOST)


def test_a_tree_goes_where_it_cools_most(tmp_path):
    dsm, dem = np.full((24, 24), 20.0, "f4"), np.full((24, 24), 20.0, "f4")
    dsm[:8] = 40.0
    for name, grid in (("dsm", dsm), ("dem", dem)):
        np.save(tmp_path / f"{name}.npy", grid)
    (tmp_path / "w.csv").write_text("time,Ta,RH,wind,Kglobal\n2015-06-21T13:00,33,40,2,800\n")
    told = urban.plant(tmp_path / "dsm.npy", dem=tmp_path / "dem.npy", weather=tmp_path / "w.csv", pixel_size=1.0, trees=1, species="6,2,4", spacing=6,
                       objective="mean-utci", out=tmp_path / "trees", format=["npy"], substeps=1, device=HOST, **PLACE)
    before, after = (np.load(next((tmp_path / "trees" / run / "utci").glob("*.npy"))) for run in ("before", "after"))
    (tree,) = told["trees"]
    assert told["unit"] == "K" and abs((before - after)[8:].mean() - tree["gain"]) < 1e-4 and abs(tree["gain"] - told["before"] + told["after"]) < 1e-9
    canopy = np.load(told["cdsm"])
    assert canopy[tree["row"], tree["col"]] == 6 and np.count_nonzero(canopy) == 9
    with pytest.raises(ls.InputError, match=r"a crown from 7 m up whose top is at 6 m .lockstep.urban.plant, argument species="):
        urban.plant(tmp_path / "dsm.npy", weather=tmp_path / "w.csv", pixel_size=1.0, trees=1, species="6,7,4", out=tmp_path / "none", device=HOST, **PLACE)
    assert not (tmp_path / "none").exists()


def test_errors_of_files_name_arguments(tmp_path, capfd):
    place = {k: v for k, v in PLACE.items() if k != "utc_offset"}
    with pytest.raises(ls.InputError, match=r"does not specify its time zone \[.*\]: expected utc_offset, the hours"):
        urban.run(city(), weather=noon(), pixel_size=1.0, device=HOST, **place)
    dsm, dem = np.full((12, 12), 20.0, "f4"), np.full((12, 12), 60.0, "f4")
    for name, grid in (("dsm", dsm), ("dem", dem)):
        np.save(tmp_path / f"{name}.npy", grid)
    (tmp_path / "w.csv").write_text("time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,20,50,2,600\n2015-06-21T13:00,20,50,2,600\n")
    rows = urban.check(tmp_path / "dsm.npy", dem=tmp_path / "dem.npy", weather=tmp_path / "w.csv", pixel_size=1.0, device=HOST, **PLACE)
    assert any("[lockstep.urban.check, argument dem=]" in row["text"] for row in rows)
    assert not any("--" in row["text"] for row in rows)


def test_the_sample_city(tmp_path):
    told = urban.sample(tmp_path, rows=32, cols=40, format="npy")
    assert np.load(tmp_path / "dsm.npy").shape == (32, 40) and told["outputs"]


def test_missing_pixels_and_bad_input():
    dsm = city()
    dsm[0, 0] = -9999
    found = urban.shadows(dsm, azimuth=90, altitude=30, pixel_size=2.0, nodata=-9999, device="cpu")
    assert np.isnan(found["shadow_buildings"][0, 0]) and not np.isnan(found["shadow_buildings"][1, 1])
    for call, words in ((lambda: urban.svf(city()), "pixel_size"),
                        (lambda: urban.svf(city()[0], pixel_size=1), "argument dsm"),
                        (lambda: urban.svf(city(), cdsm=np.zeros((3, 3)), pixel_size=1), "argument cdsm"),
                        (lambda: urban.svf(city(), pixel_size=1, patches=100), "patches"),
                        (lambda: urban.svf(city(), pixel_size=1, zenith="up"), "zenith"),
                        (lambda: urban.shadows(city(), azimuth=0, altitude=-5, pixel_size=1), "altitude|horizon")):
        with pytest.raises(ls.InputError, match=words):
            call()


def test_fallbacks_are_warnings():
    from lockstep import _core
    gpu = [d["name"] for d in ls.devices() if d["available"] and d["kind"] in ("cuda", "webgpu")]
    if not gpu:
        pytest.skip("no GPU, and no software WebGPU adapter")
    device = ls.Device(gpu[0])
    before = ls.fallbacks().get("urban.shadow", 0)
    _core.set_fault("urban.shadow:launch")
    try:
        with pytest.warns(ls.FallbackWarning, match=r"\[GPU\] urban.shadow failed: .* CPU fallback\."):
            found = urban.shadows(city()[:8, :8], azimuth=180, altitude=45, pixel_size=1.0, device=device)
    finally:
        _core.set_fault("")
    assert found["shadow_buildings"].shape == (8, 8)
    assert ls.fallbacks()["urban.shadow"] == before + 1


def test_the_sun_at_noon():
    noon = datetime.datetime(2015, 6, 21, 12, 0, tzinfo=datetime.timezone.utc)
    azimuth, altitude = urban.sun_position(noon, 0.0, 0.0)
    assert altitude == pytest.approx(66.56, abs=0.1) and (azimuth < 5 or azimuth > 355)


def test_earlier_names_work_and_say_the_new_ones():
    options = dict(pixel_size=1.0, device="cpu")
    for call, old, new, value in ((urban.svf, "keep_states", "save_patches", True), (urban.walls, "workers", "tile_workers", 1),
                                  (urban.walls, "wall_limit", "minimum_height", 2.0)):
        with pytest.warns(FutureWarning, match=f"argument {old} is now called {new}"):
            found = call(city(), **options, **{old: value})
        expected = call(city(), **options, **{new: value})
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], expected[name], equal_nan=True) for name in found)
        with pytest.raises(ls.InputError, match=f"{old} and {new}"):
            call(city(), **options, **{old: value, new: value})


def test_options_without_effect_are_refused(tmp_path):
    files = dict(dsm=tmp_path / "dsm.npy", weather=tmp_path / "w.csv", out=tmp_path / "out")
    for options, words in ((dict(trunk_ratio=0.5), r"argument trunk_ratio=\]: expected cdsm too"),
                           (dict(cdsm=tmp_path / "c.npy", leaf_days=(1, 50), evergreen=True), "leaf_days and evergreen"),
                           (dict(leaf_days=(0, 50)), r"'0:50' .*argument leaf_days="),
                           (dict(wall_height=tmp_path / "h.npy", minimum_height=2.0), "argument minimum_height=.*no wall_height"),
                           (dict(latitude=57.0), "only one of latitude and longitude .*argument latitude=.*latitude and longitude")):
        with pytest.raises(ls.InputError, match=words):
            urban.run(**files, **options, device=HOST)
