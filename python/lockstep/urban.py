"""Shadows, walls and sky view factors of cities given as height grids.

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
