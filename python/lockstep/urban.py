"""Shadows, walls, sky view factors and hour by hour radiation and comfort of cities given as height grids.

Grids are (rows, cols) in metres, row 0 north, column 0 west, square pixels. NaN marks missing pixels, which give NaN.
A grid may be an array, an xarray.DataArray, an open rasterio dataset or a path that rasterio reads; pixel size and
nodata come from those where they have them. Formulas and sources: docs/urban.md.
"""
import os

import numpy as np

from . import _core
from ._device import chosen, warn_fallbacks
from ._errors import InputError

SKY_VIEW_NAMES = tuple(kind + side for kind in ("svf", "svf_veg", "svf_aveg")
                       for side in ("", "_east", "_south", "_west", "_north"))


class _Grid:
    """A grid as float32, with what its source knows of it."""

    def __init__(self, source, name):
        self.pixel_size = self.nodata = None
        self.source = source if type(source).__module__.partition(".")[0] == "xarray" else None
        if isinstance(source, (str, os.PathLike)):
            if os.fspath(source).endswith(".npy"):
                source = np.load(source)
            else:
                source = self._open(source, name)
        if hasattr(source, "read") and hasattr(source, "transform"):
            self.pixel_size = self._size_of(source.transform, name)
            self.nodata = source.nodata
            source = source.read(1)
        values = np.asarray(source)
        if values.ndim != 2 or values.dtype.kind not in "fiu":
            raise InputError(f"an array of shape {values.shape}, {values.dtype}", f"argument {name}",
                             "numbers of shape (rows, cols), metres")
        self.values = np.ascontiguousarray(values, dtype=np.float32)

    @staticmethod
    def _open(path, name):
        try:
            import rasterio
        except ImportError:
            raise InputError(f"the path {path}", f"argument {name}", "an array, or rasterio installed to read it") from None
        return rasterio.open(path)

    @staticmethod
    def _size_of(transform, name):
        if abs(abs(transform.a) - abs(transform.e)) > 1e-6 * abs(transform.a) or transform.b or transform.d:
            raise InputError("pixels that are not square or are turned", f"argument {name}", "square pixels, north up")
        return abs(transform.a)


def _city(dsm, dem, cdsm, tdsm, pixel_size, canopy, dsm_heights, trunk_ratio, nodata):
    grids = {n: None if g is None else _Grid(g, n) for n, g in
             (("dsm", dsm), ("dem", dem), ("cdsm", cdsm), ("tdsm", tdsm))}
    first = grids["dsm"]
    if first is None:
        raise InputError("no dsm", "lockstep.urban", "heights of ground and buildings, (rows, cols), metres")
    for name, grid in grids.items():
        if grid is not None and grid.values.shape != first.values.shape:
            raise InputError(f"shape {grid.values.shape}", f"argument {name}", f"that of dsm, {first.values.shape}")
    size = pixel_size if pixel_size is not None else first.pixel_size
    if size is None:
        raise InputError("no pixel size", "lockstep.urban", "pixel_size=metres, or rasters that have one")
    for what, value, allowed in (("canopy", canopy, ("above_ground", "absolute")),
                                 ("dsm_heights", dsm_heights, ("absolute", "above_ground"))):
        if value not in allowed:
            raise InputError(f"{what}={value!r}", "lockstep.urban", " or ".join(allowed))
    missing = nodata if nodata is not None else first.nodata
    core = _core.city(*(None if g is None else g.values for g in grids.values()), pixel_size=float(size),
                      canopy_absolute=canopy == "absolute", dsm_above_ground=dsm_heights == "above_ground",
                      trunk_ratio=float(trunk_ratio), nodata=None if missing is None else float(missing))
    return core, first


def _result(grids, like):
    """A dictionary, or an xarray.Dataset where the dsm came from xarray."""
    if like.source is None:
        return grids
    import xarray
    return xarray.Dataset({name: like.source.copy(data=values) if values.ndim == 2 else ((*("word",), *like.source.dims),
                                                                                        values)
                           for name, values in grids.items()})


def shadows(dsm, *, azimuth, altitude, dem=None, cdsm=None, tdsm=None, pixel_size=None, wall_height=None,
            wall_aspect=None, canopy="above_ground", dsm_heights="absolute", trunk_ratio=0.25, nodata=None,
            max_reach=float("inf"), tile=0, workers=0, device=None):
    """Shadows of one direction of the sun.

    dsm: ground and buildings (m); dem: ground alone (m), for dsm_heights="above_ground"; cdsm, tdsm: tops of canopies and
    of trunks (m), above ground unless canopy="absolute". azimuth: degrees clockwise from north; altitude: degrees above
    the horizon, above 0. wall_height (m), wall_aspect (degrees): as `walls` gives them. max_reach: m. tile: pixels of a
    side, 0 = chosen.
    Gives shadow_buildings, shadow_vegetation, shadow_vegetation_before_buildings (1 = sees the sun), with walls also
    wall_sun and wall_shadow (m).
    """
    city, like = _city(dsm, dem, cdsm, tdsm, pixel_size, canopy, dsm_heights, trunk_ratio, nodata)
    if (wall_height is None) != (wall_aspect is None):
        raise InputError("wall_height and wall_aspect not both", "lockstep.urban.shadows", "both or none")
    device = chosen(device)
    grids = _core.urban_shadows(device._core, city, float(azimuth), float(altitude),
                                None if wall_height is None else _Grid(wall_height, "wall_height").values,
                                None if wall_aspect is None else _Grid(wall_aspect, "wall_aspect").values,
                                float(max_reach), int(tile), int(workers))
    warn_fallbacks(device)
    return _result(grids, like)


def walls(dsm, *, dem=None, pixel_size=None, dsm_heights="absolute", minimum_height=3.0, nodata=None, tile=0, workers=0,
          device=None):
    """Walls beside ground pixels: wall_height (m) and wall_aspect (degrees clockwise from north); 0 without a wall.

    minimum_height: lower steps are no walls (m).
    """
    city, like = _city(dsm, dem, None, None, pixel_size, "above_ground", dsm_heights, 0.25, nodata)
    device = chosen(device)
    grids = _core.urban_walls(device._core, city, float(minimum_height), int(tile), int(workers))
    warn_fallbacks(device)
    return _result(grids, like)


def svf(dsm, *, dem=None, cdsm=None, tdsm=None, pixel_size=None, patches=153, zenith="umep", annuli="umep",
        canopy="above_ground", dsm_heights="absolute", trunk_ratio=0.25, nodata=None, max_reach=float("inf"),
        keep_states=False, tile=0, workers=0, device=None):
    """Sky view factors, 0 … 1: the fifteen grids of SKY_VIEW_NAMES (buildings, vegetation, vegetation before buildings;
    whole sky and four half skies).

    patches: 145, 153, 305 or 609. zenith: "umep" or "open". annuli: "umep" or "solweig" edges of the 609-patch sky.
    keep_states: adds sky_states, (words, rows, cols) of uint32, two bits a patch. Other arguments as of `shadows`.
    """
    city, like = _city(dsm, dem, cdsm, tdsm, pixel_size, canopy, dsm_heights, trunk_ratio, nodata)
    for what, value, allowed in (("zenith", zenith, ("umep", "open")), ("annuli", annuli, ("umep", "solweig"))):
        if value not in allowed:
            raise InputError(f"{what}={value!r}", "lockstep.urban.svf", " or ".join(allowed))
    device = chosen(device)
    grids = _core.urban_svf(device._core, city, int(patches), zenith == "open", annuli == "solweig", float(max_reach),
                            bool(keep_states), int(tile), int(workers))
    warn_fallbacks(device)
    return _result(grids, like)


def sun_position(time, latitude, longitude, elevation=0.0):
    """(azimuth, altitude) of the sun in degrees, apparent, at a `datetime` with a time zone (or in universal time), at
    latitude and longitude in degrees north and east and elevation in m. By the Solar Position Algorithm."""
    if time.tzinfo is not None:
        import datetime
        time = time.astimezone(datetime.timezone.utc)
    return _core.sun_position(time.year, time.month, time.day, float(time.hour), float(time.minute),
                              time.second + 1e-6 * time.microsecond, float(latitude), float(longitude), float(elevation))


# ── runs hour by hour, and indices of comfort ──

OUTPUTS = ("tmrt", "utci", "pet", "shadow", "kdown", "kup", "kside", "ldown", "lup", "lside", "gvf")
_GRIDS = ("dsm", "dem", "cdsm", "tdsm", "land_cover", "wall_height", "wall_aspect")


def _is_path(value):
    return isinstance(value, (str, os.PathLike))


def _weather_text(weather):
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

    def text(value):
        if hasattr(value, "isoformat"):
            return value.isoformat(timespec="minutes")[:16]
        return value if isinstance(value, str) else np.format_float_positional(float(value), trim="0")

    lines = [",".join(columns)] + [",".join(text(columns[n][k]) for n in columns) for k in range(rows)]
    return "\n".join(lines) + "\n"


def _city_arrays(arguments):
    """Takes the grids out of the arguments: (arrays by name, the DSM), or (None, None) where all of them are paths."""
    given = {name: arguments[name] for name in _GRIDS if arguments.get(name) is not None}
    if all(_is_path(grid) for grid in given.values()):
        return None, None
    arrays, first = {}, None
    for name, grid in given.items():
        read = _Grid(grid, name)
        first = first or read
        missing = arguments.get("nodata") if arguments.get("nodata") is not None else read.nodata
        marked = missing is not None and np.isfinite(missing)
        arrays[name] = np.where(read.values == np.float32(missing), np.float32(np.nan), read.values) if marked else read.values
        del arguments[name]
    if arguments.get("pixel_size") is None:
        if first.pixel_size is None:
            raise InputError("no pixel size", "lockstep.urban.run", "pixel_size=metres, or rasters that have one")
        arguments["pixel_size"] = float(first.pixel_size)
    return arrays, first


def run(dsm, *, weather, out=None, outputs=("tmrt", "utci", "shadow"), device=None, **options):
    """Radiation, mean radiant temperature and comfort of every pixel for every row of the weather.

    dsm and dem, cdsm, tdsm, land_cover, wall_height, wall_aspect: grids as everywhere here, or all of them paths. weather:
    a path (EPW, UMEP's 24 columns, CSV) or columns by name: time (ends of intervals, local), Ta (deg C), RH (%), wind
    (m/s), Kglobal (W/m2) [, Kdirect, Kdiffuse, Ldown, pressure]. outputs: of OUTPUTS. Further: parameters, start, end,
    utc_offset (h), latitude, longitude (degrees), elevation (m), pixel_size (m), nodata, preset (corrected, umep, solweig),
    sky, body, posture, patches, max_reach (m), minimum_height (m), points, svf, tile, workers, memory (bytes), progress.

    Gives each output as (times, rows, cols) float32 and "times", or a Dataset where dsm is xarray's. With out=FOLDER
    the run writes its files there (formats=("nc", "tif", "npy"), pictures, video) and what it tells comes back.
    """
    device = chosen(device)
    outputs = [outputs] if isinstance(outputs, str) else list(outputs)
    arguments = {k: v for k, v in options.items() if v is not None}
    arguments.update(dsm=dsm, outputs=outputs)
    if "patches" in arguments:
        arguments["patches"] = str(arguments["patches"])
    arrays, like = _city_arrays(arguments)
    arguments.pop("nodata", None)
    text = "" if _is_path(weather) else _weather_text(weather)
    if not text:
        arguments["weather"] = os.fspath(weather)
    for name in (*_GRIDS, "svf", "parameters", "points"):
        if name in arguments:
            arguments[name] = os.fspath(arguments[name])
    if out is not None:
        found = _core.urban_run(device._core, {**arguments, "out": os.fspath(out)}, arrays, text)
        warn_fallbacks(device)
        return found
    if "points" in arguments:
        raise InputError("points without a folder", "lockstep.urban.run, argument points", "out=FOLDER, where their table is written")
    times, values = _core.urban_compute(device._core, arguments, arrays, text)
    warn_fallbacks(device)
    grids = {name: values[:, k] for k, name in enumerate(outputs)}
    if like is not None and like.source is not None:
        import xarray
        stamps = np.array(times, "datetime64[ns]")
        coordinates = {d: like.source.coords[d] for d in like.source.dims if d in like.source.coords}
        return xarray.Dataset({n: (("time", *like.source.dims), g) for n, g in grids.items()}, {"time": stamps, **coordinates})
    return {**grids, "times": times}


def validate(*, measured, out, device=None, **options):
    """A run with one point compared with measurements (a CSV): agreement by variable. Options as of `run`, all of them
    paths; measured_utc_offset: hours of the measurements' clock."""
    return _command(_core.urban_validate, device, {**options, "measured": os.fspath(measured), "out": os.fspath(out)})


def gates(device=None, **options):
    """The acceptance gates on a city of one's own (paths, as `run` takes them), or on the sample: a list of rows."""
    return _command(_core.urban_gates, device, options)


def sample(out, *, rows=512, cols=512, pixel_size=1.0, seed=1, epsg=3006, format="tif", pictures=False):
    """Writes the sample city to a folder and tells the files."""
    return _core.urban_sample(dict(out=os.fspath(out), rows=rows, cols=cols, pixel_size=float(pixel_size), seed=seed,
                                   epsg=epsg, format=format, pictures=pictures))


def _command(work, device, arguments):
    device = chosen(device)
    arguments = {k: os.fspath(v) if _is_path(v) else v for k, v in arguments.items() if v is not None}
    found = work(device._core, arguments)
    warn_fallbacks(device)
    return found


def _index(tmrt, name):
    values = np.asarray(tmrt)
    if values.dtype.kind not in "fiu":
        raise InputError(f"{values.dtype}", f"lockstep.urban.{name}, argument tmrt", "temperatures, deg C")
    return values


def utci(tmrt, *, ta, rh, wind, wind_height=10.0, device=None):
    """Universal Thermal Climate Index (deg C) of the mean radiant temperature tmrt (deg C): a number in double precision,
    or an array in float32. ta: air (deg C), rh: relative humidity (%), wind (m/s) at wind_height (m)."""
    values = _index(tmrt, "utci")
    wind = float(wind) if wind_height == 10.0 else _core.wind_at(10.0, float(wind), float(wind_height))
    if values.ndim == 0:
        return _core.utci(float(ta), float(rh), wind, float(values))
    device = chosen(device)
    found = _core.utci_grid(device._core, float(ta), float(rh), wind, np.ascontiguousarray(values, np.float32))
    warn_fallbacks(device)
    return found


def pet(tmrt, *, ta, rh, wind, wind_height=1.1, device=None, **person):
    """Physiologically Equivalent Temperature (deg C) of the mean radiant temperature tmrt (deg C): a number as published,
    or an array in float32 through the middle of the published values' steps. ta (deg C), rh (%), wind (m/s) at
    wind_height (m). person: mass (kg), age, height (m), activity (W), clothing (clo), sex ("male", "female")."""
    values = _index(tmrt, "pet")
    wind = float(wind) if wind_height == 1.1 else _core.wind_at(1.1, float(wind), float(wind_height))
    if values.ndim == 0:
        return _core.pet(float(ta), float(rh), float(values), wind, person)
    device = chosen(device)
    found = _core.pet_grid(device._core, float(ta), float(rh), np.ascontiguousarray(values, np.float32), wind, person)
    warn_fallbacks(device)
    return found


def stress_class(value, index="utci"):
    """The published class of stress of a UTCI or PET value (deg C), "" for NaN."""
    if index not in ("utci", "pet"):
        raise InputError(f"index {index!r}", "lockstep.urban.stress_class", "utci or pet")
    return _core.stress_class(index, float(value))
