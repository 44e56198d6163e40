"""Shadows, walls, sky view factors, radiation and thermal comfort of cities on height grids.

Grids are (rows, cols) in metres, row 0 north, column 0 west, with square pixels. NaN marks missing pixels, which give NaN. A
grid may be an array, an xarray.DataArray, an open rasterio dataset or a path that rasterio reads; pixel size and nodata are
taken from these if available. Formulas and sources: docs/urban-model.md.
"""
import datetime
import os
from collections.abc import Mapping

import numpy as np

from . import _core
from ._array import real_numbers
from ._device import chosen, warn_fallbacks
from ._errors import InputError, text
from ._grids import pixel_size_of, place_of, read_grids
from ._options import described

SKY_VIEW_NAMES = tuple(kind + side for kind in ("svf", "svf_veg", "svf_aveg")
                       for side in ("", "_east", "_south", "_west", "_north"))


def _compute(work, call, device, grids, pixel_size, nodata, options):
    """Calls a function of the core with the grids that are given as arrays, those of the city with their nodata."""
    where = "lockstep.urban." + call
    if grids["dsm"] is None:
        raise InputError("no dsm", where, "heights of ground and buildings, (rows, cols), metres")
    reads = read_grids(grids, lambda name: None if name.startswith("wall") else nodata)
    first, arrays = reads[0], {read.name: read.values for read in reads}
    size = float(pixel_size_of(pixel_size, first, where))
    place = place_of(reads)
    device = chosen(device)
    found = work(device._core, arrays, place.get("pixel_size", size), options)
    warn_fallbacks(device)
    return _result(found, first)


def _result(grids, like):
    """A dictionary, or an xarray.Dataset where the dsm came from xarray; axes as those of the dsm."""
    grids = {name: like.restored(values) for name, values in grids.items()}
    if like.source is None:
        return grids
    import xarray
    def on_grid(values):
        dims = (*like.source.dims,) if values.ndim == 2 else ("word", *like.source.dims)
        return xarray.DataArray(values, {k: c for k, c in like.source.coords.items() if set(c.dims) <= set(dims)}, dims)
    return xarray.Dataset({name: on_grid(values) for name, values in grids.items()})


@described("urban.compute_shadows")
def shadows(dsm, *, azimuth, altitude, dem=None, cdsm=None, tdsm=None, pixel_size=None, wall_height=None,
            wall_aspect=None, nodata=None, device=None, **options):
    """Shadows for one direction of the sun.

    dsm: ground and buildings (m). dem: ground only (m), for dsm_heights="above-ground". cdsm, tdsm: tops of canopies and of
    trunks (m), above ground unless canopy="absolute". azimuth: degrees clockwise from north. altitude: degrees above the
    horizon, above 0. wall_height (m), wall_aspect (degrees): results of `walls`. Returns shadow_buildings, shadow_vegetation,
    shadow_vegetation_before_buildings (1 = sees the sun), and with walls also wall_sun and wall_shadow (m).
    """
    if (wall_height is None) != (wall_aspect is None):
        raise InputError("wall_height and wall_aspect not both", "lockstep.urban.shadows", "both or none")
    grids = dict(dsm=dsm, dem=dem, cdsm=cdsm, tdsm=tdsm, wall_height=wall_height, wall_aspect=wall_aspect)
    return _compute(_core.urban_shadows, "shadows", device, grids, pixel_size, nodata,
                    {**options, "azimuth": azimuth, "altitude": altitude})


@described("urban.compute_walls")
def walls(dsm, *, dem=None, pixel_size=None, nodata=None, device=None, **options):
    """Walls next to ground pixels: wall_height (m) and wall_aspect (degrees clockwise from north); 0 where there is no wall."""
    return _compute(_core.urban_walls, "walls", device, dict(dsm=dsm, dem=dem), pixel_size, nodata, options)


@described("urban.compute_svf")
def svf(dsm, *, dem=None, cdsm=None, tdsm=None, pixel_size=None, nodata=None, device=None, **options):
    """Sky view factors, 0 … 1: the fifteen grids of SKY_VIEW_NAMES (buildings, vegetation, vegetation before buildings; whole
    sky and four half skies).

    save_patches adds sky_states, (words, rows, cols) of uint32, two bits per patch. Grids as in `shadows`.
    """
    return _compute(_core.urban_svf, "svf", device, dict(dsm=dsm, dem=dem, cdsm=cdsm, tdsm=tdsm), pixel_size, nodata, options)


def sun_position(time, latitude, longitude, elevation=0.0):
    """Apparent (azimuth, altitude) of the sun in degrees by the Solar Position Algorithm, for a `datetime` with a time zone
    (or in universal time), latitude and longitude in degrees north and east, and elevation in m."""
    if time.tzinfo is not None:
        time = time.astimezone(datetime.timezone.utc)
    return _core.sun_position(time.year, time.month, time.day, float(time.hour), float(time.minute),
                              time.second + 1e-6 * time.microsecond, float(latitude), float(longitude), float(elevation))


# ── runs hour by hour, and indices of comfort ──

OUTPUTS = ("tmrt", "utci", "pet", "shadow", "kdown", "kup", "kside", "ldown", "lup", "lside", "gvf")
_GRIDS = ("dsm", "dem", "cdsm", "tdsm", "land_cover", "wall_height", "wall_aspect")


def _is_path(value):
    return isinstance(value, (str, os.PathLike))


def _weather_text(weather, utc_offset=None):
    """A table as the text of a CSV file: columns time, Ta, RH, wind, Kglobal … by name."""
    if hasattr(weather, "to_dict") and hasattr(weather, "columns"):
        weather = {str(name): list(weather[name]) for name in weather.columns}
    if not isinstance(weather, dict) or "time" not in weather:
        raise InputError(f"{type(weather).__name__}", "lockstep.urban.run, argument weather",
                         "a path, or columns by name: time, Ta, RH, wind, Kglobal [, Kdirect, Kdiffuse, Ldown, pressure]")
    columns = {name: list(values) for name, values in weather.items()}
    rows = len(columns["time"])
    for name, values in columns.items():
        if len(values) != rows:
            raise InputError(f"{len(values)} values of {name}", "lockstep.urban.run, argument weather", f"{rows}, as time")

    columns["time"] = _times(columns["time"], utc_offset)

    def text(value):
        return value if isinstance(value, str) else np.format_float_positional(float(value), trim="0")

    lines = [",".join(columns)] + [",".join(text(columns[n][k]) for n in columns) for k in range(rows)]
    return "\n".join(lines) + "\n"


def _times(values, utc_offset=None):
    """Times as texts. Those with a time zone on one clock: utc_offset (h), else that of the first."""
    clock = None if utc_offset is None else datetime.timezone(datetime.timedelta(hours=float(utc_offset)))
    texts, aware = [], set()
    for value in values:
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[s]").item()
        if hasattr(value, "isoformat"):
            zoned = getattr(value, "tzinfo", None) is not None
            aware.add(zoned)
            if zoned:
                clock = clock or datetime.timezone(value.utcoffset())
                value = value.astimezone(clock)
            value = value.isoformat()
        texts.append(str(value))
    if len(aware) > 1:
        raise InputError("times with and without a time zone", "lockstep.urban.run, argument weather", "one or the other")
    return texts


def _city_arrays(arguments, nodata):
    """Takes the grids out of the arguments: (arrays by name, the DSM), or (None, None) where all of them are paths."""
    given = {name: arguments[name] for name in _GRIDS if arguments.get(name) is not None}
    if all(_is_path(grid) for grid in given.values()):
        return None, None
    reads = read_grids(given, lambda name: nodata)
    first, arrays = reads[0], {read.name: read.values for read in reads}
    for name in arrays:
        del arguments[name]
    arguments["pixel_size"] = float(pixel_size_of(arguments.get("pixel_size"), first, "lockstep.urban.run"))
    first.place = place_of(reads)
    return arrays, first


def _placed(arguments, arrays, like):
    """Arguments and arrays of a run in memory, which takes north, scale and location from the georeference of the DSM."""
    if not like or not like.place:
        return arguments, arrays
    place = {k: v for k, v in like.place.items() if k in ("latitude", "longitude")}
    return ({**place, **arguments, "pixel_size": like.place["pixel_size"]}, {**arrays, "convergence": like.place["convergence"]})


@described("urban.run")
def run(dsm, *, weather, out=None, outputs=("tmrt", "utci", "shadow"), dem=None, cdsm=None, tdsm=None, land_cover=None,
        wall_height=None, wall_aspect=None, nodata=None, progress=None, device=None, **options):
    """Radiation, mean radiant temperature and comfort of every pixel for every row of the weather.

    dsm and dem, cdsm, tdsm, land_cover, wall_height, wall_aspect: grids as described in the module, or all of them paths.
    weather: a path (EPW, UMEP's 24 columns, CSV) or columns by name: time (local ends of intervals; times with a time zone are
    converted to utc_offset, or to the zone of the first), Ta (deg C), RH (%), wind (m/s), Kglobal (W/m2) [, Kdirect, Kdiffuse,
    Ldown, pressure]. outputs: names of OUTPUTS. leaf_days: (first, last) or "first:last". progress: a function of (done,
    total).

    Returns each output as (times, rows, cols) float32 and "times", or a Dataset if dsm is an xarray.DataArray. With out=FOLDER
    the run writes its files there (formats nc, tif, npy; pictures, video) and returns its results.
    """
    device = chosen(device)
    arguments, arrays, text, like = _series({**options, "dem": dem, "cdsm": cdsm, "tdsm": tdsm, "land_cover": land_cover,
                                             "wall_height": wall_height, "wall_aspect": wall_aspect, "progress": progress,
                                             "dsm": dsm, "outputs": outputs}, weather, nodata)
    if out is not None:
        found = _core.urban_run(device._core, {**_as_files(arguments, arrays, text, out, like), "out": out})
        warn_fallbacks(device)
        return found
    _refuse_without_files(arguments, "run", ("poi",))
    arguments, arrays = _placed(arguments, arrays, like)
    times, values = _core.urban_compute(device._core, arguments, arrays, text)
    warn_fallbacks(device)
    return _series_result({name: values[:, k] for k, name in enumerate(arguments["outputs"])}, times, like)


_OF_FILES = ("threshold", "hours", "include_roofs", "format", "pictures", "video", "place", "scenario", "basemap", "picture_range",
             "daylight_saving")


def _refuse_without_files(arguments, call, others=()):
    """Options of the files that a run of the program writes have no effect on arrays."""
    for name in (*_OF_FILES, *others):
        if arguments.get(name):
            raise InputError(f"{name} without a folder", f"lockstep.urban.{call}, argument {name}",
                             "none for arrays: it is of the files of lockstep.urban.run with out=FOLDER")


def _series(given, weather, nodata):
    """The arguments of a run as the core takes them: options, arrays by name or None, weather as a text or "", the DSM."""
    outputs = given["outputs"]
    given["outputs"] = [outputs] if isinstance(outputs, str) else list(outputs)
    arguments = _options(given)
    arrays, like = _city_arrays(arguments, nodata)
    text = "" if _is_path(weather) else _weather_text(weather, arguments.get("utc_offset"))
    if not text:
        arguments["weather"] = weather
    return arguments, arrays, text, like


def _as_files(arguments, arrays, text, out, like):
    """The arguments with paths in place of arrays and a table, which are written to a folder inside of `out`."""
    if not arrays and not text:
        return arguments
    folder = os.path.join(out, "inputs")
    os.makedirs(folder, exist_ok=True)
    arguments = dict(arguments)
    for name, values in (arrays or {}).items():
        arguments[name] = os.path.join(folder, name + (".tif" if like.place else ".npy"))
        if like.place:
            _core.write_raster(arguments[name], values, like.crs, *like.corner, like.pixel_size)
        else:
            np.save(arguments[name], values)
    if text:
        arguments["weather"] = os.path.join(folder, "weather.csv")
        with open(arguments["weather"], "w", encoding="utf-8") as file:
            file.write(text)
    return arguments


_UNITS = {"tmrt": "degC", "utci": "degC", "pet": "degC", "shadow": "1", "gvf": "1"}


def _series_result(grids, times, like):
    """Grids over time as those of the DSM: a dictionary, or a Dataset with its coordinates and CRS."""
    if like is None or like.source is None:
        return {**{name: grid if like is None else like.restored(grid) for name, grid in grids.items()}, "times": times}
    import xarray
    source = like.source
    stamps = np.array(times, "datetime64[ns]")
    coordinates = {name: c for name, c in source.coords.items() if set(c.dims) <= set(source.dims)}
    mapping = {k: source.attrs[k] for k in ("grid_mapping",) if k in source.attrs}
    return xarray.Dataset({name: (("time", *source.dims), like.restored(grid), {"units": _UNITS.get(name, "W m-2"), **mapping})
                           for name, grid in grids.items()}, {"time": stamps, **coordinates})


@described("urban.run")
def run_tiles(dsm, *, weather, executor, out=None, outputs=("tmrt", "utci", "shadow"), dem=None, cdsm=None, tdsm=None,
              land_cover=None, wall_height=None, wall_aspect=None, nodata=None, progress=None, device=None, **options):
    """`run` tile by tile on the workers of an executor, with bit-identical results: concurrent.futures (threads, or processes
    with the start method "spawn"), a client of dask.distributed, or any object with `submit` that returns futures.

    Arguments as in `run`; paths must be the same for all workers. tile: side of a tile, default 1024. device: device of each
    worker. out=FOLDER stores each output as NAME.npy (times, rows, cols, row 0 north), which is returned memory-mapped;
    existing tiles are not recomputed. progress: a function of (tiles done, tiles). With poi=FILE the result also contains
    "points" and "point_values", columns of (points, times), and the folder poi.csv; a Dataset has the columns as point_NAME.
    """
    from ._tiles import TileGrids, run_on
    if not hasattr(executor, "submit"):
        raise InputError(f"{type(executor).__name__}", "lockstep.urban.run_tiles, argument executor", "something with submit()")
    device = chosen(device)
    arguments, arrays, text, like = _series({**options, "dem": dem, "cdsm": cdsm, "tdsm": tdsm, "land_cover": land_cover,
                                             "wall_height": wall_height, "wall_aspect": wall_aspect, "dsm": dsm,
                                             "outputs": outputs}, weather, nodata)
    _refuse_without_files(arguments, "run_tiles")
    arguments, arrays = _placed(arguments, arrays, like)
    arguments.setdefault("tile", 1024)
    city = _core.UrbanTiles(device._core, arguments, arrays, text)
    tiles, times, key, points, table = city.tiles, city.times, city.key, city.points, city.point_table()
    shapes = {name: (len(times), *city.shape) for name in arguments["outputs"]}
    if points:
        shapes[TileGrids.POINTS] = (len(points), len(times), city.point_values)
    grids = TileGrids(None if out is None else os.fspath(out), shapes, key, [(p["row"], p["col"]) for p in points])
    del city  # its memory is for the workers
    run_on(executor, (key, device, arguments, arrays, text), tiles, grids, key, progress)
    for k, values in enumerate(grids.grids.pop(TileGrids.POINTS, ())):
        table.take(k, np.array(values))
    if points and out is not None:
        table.write(os.path.join(out, "poi.csv"))
    if out is not None and (like is None or like.source is None):
        found = {**grids.grids, "times": times}
    else:
        found = _series_result(grids.grids, times, like)
    return _with_points(found, points, table) if points else found


def _with_points(found, points, table):
    columns = table.values(len(points))
    if isinstance(found, dict):
        return {**found, "points": points, "point_values": columns}
    return found.assign_coords(point=[p["id"] for p in points]).assign({"point_" + name: (("point", "time"), values) for name, values in columns.items()})


@described("urban.check")
def check(dsm, *, weather, device=None, **options):
    """Checks the inputs of `run`, all of them paths, without computing: a list of dictionaries with check, value, unit,
    verdict ("ok", "warning", "error") and text."""
    return _command(_core.urban_check, device, {**options, "dsm": dsm, "weather": weather})


@described("urban.validate")
def validate(dsm, *, weather, measured, out, device=None, **options):
    """Compares a run at one point with measurements (a CSV): agreement by variable. All grids are paths."""
    return _command(_core.urban_validate, device, {**options, "dsm": dsm, "weather": weather, "measured": measured, "out": out})


@described("urban.gates")
def gates(device=None, **options):
    """Runs the acceptance tests on your own city (paths, as in `run`), or on the sample: a list of rows."""
    return _command(_core.urban_gates, device, options)


@described("urban.sample")
def sample(out, *, pictures=False, progress=None, **options):
    """Writes the sample city to a folder and returns the files."""
    return _core.urban_sample(_options({**options, "out": out, "pictures": pictures, "progress": progress}))


@described("urban.umep")
def umep(source, *, out, **options):
    """Converts sky view factors from and to UMEP's files: results of the command svf become svfs.zip, shadowmats.npz and
    SkyViewFactor.tif; an svfs.zip becomes a folder for `run` (svf=). Returns rows, cols, patches and files."""
    return _core.urban_umep(_options({**options, "source": source, "out": out}))


@described("urban.sun")
def sun(dsm, *, out, device=None, pictures=False, progress=None, **options):
    """Hours of sunlight on a day (date=), in a period (start=, end=) or on the days of a rule (rule=), with and without
    plants, in a city given by paths; with facades=True also on walls. Returns outputs, possible_hours and days; with
    facades or a rule also facades (file, area_m2, hours) and rule (grades)."""
    return _command(_core.urban_sun, device, {**options, "dsm": dsm, "out": out, "pictures": pictures, "progress": progress})


@described("urban.plant")
def plant(dsm, *, weather, trees, species, out, device=None, pictures=False, progress=None, **options):
    """Finds the sites where trees help most, in a city given by paths. Sites are selected one by one, each with the model of
    `run` and the earlier trees.

    species: "height,trunk,crown" in metres. Writes new canopy and trunk rasters, trees.gpkg, curve.csv, runs before and after
    and their comparison. Returns trees (x, y, gain, total), candidates, before, after, unit and the names of the files.
    """
    return _command(_core.urban_plant, device, {**options, "dsm": dsm, "weather": weather, "trees": trees, "species": species, "out": out,
                                                "pictures": pictures, "progress": progress})


@described("urban.compare")
def compare(before, after, *, out, **options):
    """Compares two runs that used out=, before and after a change of the surface. Writes grids and maps of the change, and a
    report page.

    Returns stress (area by class), summaries (means, percentiles, positions of the largest change), series (means of each
    step), page.
    """
    return _core.urban_compare(_options({**options, "before": before, "after": after, "out": out}))


@described("urban.stats")
def stats(run, *, areas, out, **options):
    """Statistics of a run that used out=, by the areas of a file. Returns rows (area, output, time, m2, mean, sd, min, max, …),
    areas, outside, file."""
    return _core.urban_stats(_options({**options, "run": run, "areas": areas, "out": out}))


def stages():
    """The stages of the model: name, about, and the arrays that each reads and writes."""
    return _core.urban_stages()


def stage(name, arrays):
    """Computes one stage of the model on arrays by name, as listed by `stages`, in double precision on the host."""
    text(name, "a stage", "lockstep.urban.stage", "a name of lockstep.urban.stages()")
    if not isinstance(arrays, Mapping):
        raise InputError(f"arrays of {type(arrays).__name__}", "lockstep.urban.stage", "a dictionary of arrays by name")
    return _core.urban_stage(name, {
        key: np.array(real_numbers(values, f"lockstep.urban.stage, array {key}", np.float64), order="C") for key, values in arrays.items()})


def _options(given):
    """Those that are given, as the core takes them."""
    return {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in given.items() if v is not None}


def _command(work, device, arguments):
    device = chosen(device)
    found = work(device._core, _options(arguments))
    warn_fallbacks(device)
    return found


def _index(tmrt, name):
    values = real_numbers(tmrt, f"lockstep.urban.{name}, argument tmrt")
    if values.dtype.kind not in "fiu":
        raise InputError(f"{values.dtype}", f"lockstep.urban.{name}, argument tmrt", "temperatures, deg C")
    return values


def _air(values, call, **given):
    """Options of the air as the core checks them, with Tmrt where it is one number."""
    air = {name: real_numbers(value, f"lockstep.urban.{call}, argument {name}", np.float64) for name, value in given.items()}
    for name, value in air.items():
        if value.ndim:
            raise InputError(f"shape {value.shape}", f"lockstep.urban.{call}, argument {name}", "one number: only tmrt may be an array")
    air = {name: float(value) for name, value in air.items()}
    return {**air, "tmrt": float(values) if values.ndim == 0 and np.isfinite(values) else air["ta"]}


def utci(tmrt, *, ta, rh, wind, wind_height=10.0, device=None):
    """Universal Thermal Climate Index (deg C) for the mean radiant temperature tmrt (deg C): a number in double precision, or
    an array in float32. ta: air temperature (deg C), rh: relative humidity (%), wind (m/s) at wind_height (m)."""
    values = _index(tmrt, "utci")
    wind = _core.utci_wind(_air(values, "utci", ta=ta, rh=rh, wind=wind, wind_height=wind_height))
    if values.ndim == 0:
        return _core.utci(float(ta), float(rh), wind, float(values))
    device = chosen(device)
    found = _core.utci_grid(device._core, float(ta), float(rh), wind, np.ascontiguousarray(values, np.float32))
    warn_fallbacks(device)
    return found


@described("urban.compute_pet")
def pet(tmrt, *, ta, rh, wind, wind_height=1.1, device=None, **person):
    """Physiologically Equivalent Temperature (deg C) for the mean radiant temperature tmrt (deg C): a number as published, or
    an array in float32 interpolated between the published steps. ta: air temperature (deg C), rh: relative humidity (%), wind
    (m/s) at wind_height (m)."""
    values = _index(tmrt, "pet")
    wind = _core.pet_wind(_air(values, "pet", ta=ta, rh=rh, wind=wind, wind_height=wind_height))
    if values.ndim == 0:
        return _core.pet(float(ta), float(rh), float(values), wind, person)
    device = chosen(device)
    found = _core.pet_grid(device._core, float(ta), float(rh), np.ascontiguousarray(values, np.float32), wind, person)
    warn_fallbacks(device)
    return found


def stress_class(value, index="utci"):
    """The published name of the thermal stress class of a UTCI or PET value (deg C), "" for NaN."""
    if index not in ("utci", "pet"):
        raise InputError(f"index {index!r}", "lockstep.urban.stress_class", "utci or pet")
    return _core.stress_class(index, float(value))
