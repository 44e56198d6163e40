"""Height grids of a city: arrays, DataArrays, open rasterio datasets and paths, with what they know of their place."""
import os
import warnings

import numpy as np

from . import _core
from ._errors import InputError, UnsupportedError

_EAST = ("x", "lon", "longitude", "easting", "col", "cols", "column")
_HEIGHTS = ("dsm", "dem", "cdsm", "tdsm", "wall_height")
_METRES = ("m", "metre", "meter", "metres", "meters")
_NORTH = ("y", "lat", "latitude", "northing", "row", "rows")


class Grid:
    """A grid as float32, row 0 north and column 0 west, missing cells NaN, with what its source knows of its place."""

    def __init__(self, source, name, nodata=None):
        self.name = name
        self.place = {}
        self.pixel_size = self.corner = self.crs = None  # metres; x and y of the north-west corner; the CRS's text
        self.source = source if type(source).__module__.partition(".")[0] == "xarray" else None
        self._turned = self._south_up = self._east_left = False  # how the source differs from `values`
        if isinstance(source, (str, os.PathLike)):
            source = np.load(source) if os.fspath(source).endswith(".npy") else self._open(source)
        if self.source is not None:
            missing, source = self._of_xarray(source)
        elif hasattr(source, "read") and hasattr(source, "transform"):
            missing, source = self._of_rasterio(source)
        else:
            missing = None
        mask = np.ma.getmaskarray(source) if isinstance(source, np.ma.MaskedArray) else None
        values = np.asarray(source)
        if values.ndim != 2 or values.dtype.kind not in "fiu":
            raise InputError(f"an array of shape {values.shape}, {values.dtype}", f"argument {name}",
                             "numbers of shape (rows, cols), metres")
        gone = np.zeros(values.shape, bool) if mask is None else mask
        for marker in (missing, nodata):
            if marker is not None and np.isfinite(marker):
                gone = gone | (values == np.asarray(marker).astype(values.dtype))
        with np.errstate(over="ignore"):  # an infinite height is rejected with its place
            values = values.astype(np.float32)
        values[gone] = np.nan
        self.values = np.ascontiguousarray(self._flipped(values.T if self._turned else values))

    def _flipped(self, values):
        return values[..., ::-1 if self._south_up else 1, ::-1 if self._east_left else 1]

    def restored(self, values):
        """A result, its last two axes as those of the source."""
        values = self._flipped(values)
        return np.ascontiguousarray(values.swapaxes(-1, -2) if self._turned else values)

    def take_along(self, other):
        """Another grid on this one: a bare array has its axes; rejects one at another place if both have a georeference."""
        if other is not self and other.corner is None:
            turned = other.values.T if self._turned and other.source is None else other.values
            other.values = np.ascontiguousarray(self._flipped(turned))
        if other.values.shape != self.values.shape:
            raise InputError(f"shape {other.values.shape}", f"argument {other.name}", f"that of {self.name}, {self.values.shape}")
        if self.pixel_size and other.pixel_size and abs(other.pixel_size / self.pixel_size - 1) > 1e-3:
            raise InputError(f"pixels of {other.pixel_size:g} m", f"argument {other.name}", f"{self.pixel_size:g} m as {self.name}")
        if self.corner and other.corner and max(abs(a - b) for a, b in zip(self.corner, other.corner)) > 0.01 * self.pixel_size:
            raise InputError(f"corner {other.corner[0]:g}, {other.corner[1]:g}", f"argument {other.name}",
                             f"{self.corner[0]:g}, {self.corner[1]:g} as {self.name}")
        if self.crs and other.crs and self.crs != other.crs:
            raise InputError("another coordinate reference system", f"argument {other.name}", f"that of {self.name}")

    def find_place(self):
        """What the core finds of its place on the Earth: pixel_size on the ground, convergence, latitude, longitude; {} where
        it has none, or where GDAL is missing, which a warning says."""
        if not self.crs or not self.corner:
            return {}
        try:
            place = _core.urban_place(self.crs, *self.corner, self.pixel_size, *self.values.shape, f"argument {self.name}")
        except UnsupportedError as error:
            warnings.warn(f"north and scale of the projection of {self.name} cannot be checked: {error}", RuntimeWarning, stacklevel=4)
            return {}
        for doubt in place.pop("doubts"):
            warnings.warn(doubt, RuntimeWarning, stacklevel=4)
        return place

    def _refuse_degrees(self):
        raise InputError("its coordinates are degrees", f"argument {self.name}",
                         "a projected CRS in metres, since heights are metres")

    def _place(self, x, y, dx, dy):
        """Corner and steps of columns and rows as the source has them."""
        if abs(abs(dx) - abs(dy)) > 1e-3 * abs(dx):
            raise InputError(f"pixels of {abs(dx):g} by {abs(dy):g} m", f"argument {self.name}", "square pixels")
        self._south_up, self._east_left = dy > 0, dx < 0
        self.pixel_size = (abs(dx) + abs(dy)) / 2
        self.corner = (x, y)

    def _of_rasterio(self, source):
        t, crs = source.transform, getattr(source, "crs", None)
        if t.b or t.d:
            raise InputError("rotated pixels", f"argument {self.name}", "rows that run from west to east")
        if crs:
            if getattr(crs, "is_geographic", False):
                self._refuse_degrees()
            unit = getattr(crs, "linear_units_factor", ("metre", 1.0))[1]
            if abs(unit - 1) > 1e-9:
                raise InputError(f"one unit of its CRS is {unit:g} m", f"argument {self.name}", "a CRS in metres")
            self.crs = crs.to_wkt() if hasattr(crs, "to_wkt") else str(crs)
        unit = (getattr(source, "units", None) or (None,))[0]
        if unit and self.name in _HEIGHTS and unit.lower() not in _METRES:
            raise InputError(f"heights in {unit}", f"argument {self.name}", "metres; the program's commands convert files")
        values = source.read(1)
        rows, cols = np.shape(values)
        self._place(min(t.c, t.c + cols * t.a), max(t.f, t.f + rows * t.e), t.a, t.e)
        if hasattr(source, "dataset_mask"):
            values = np.ma.masked_array(values, source.read_masks(1) == 0)
        scale, offset = (getattr(source, "scales", None) or (1,))[0], (getattr(source, "offsets", None) or (0,))[0]
        if (scale, offset) != (1, 0):
            return None, np.ma.masked_array(np.asarray(values) * scale + offset, np.ma.getmaskarray(values))
        return source.nodata, values

    def _refuse_units(self, source):
        """Metres alone, of heights and of axes, and no packed numbers."""
        attributes = [(f"axis {d}", source.coords[d].attrs) for d in source.dims if d in source.coords]
        for what, found in [*attributes, *([("heights", source.attrs)] if self.name in _HEIGHTS else [])]:
            unit = str(found.get("units") or "m")
            if unit.lower() not in _METRES and not unit.startswith("degree"):
                raise InputError(f"{what} in {unit}", f"argument {self.name}", "metres")
        if "scale_factor" in source.attrs or "add_offset" in source.attrs:
            raise InputError("packed numbers, with scale_factor or add_offset", f"argument {self.name}",
                             "heights as numbers: xarray.open_dataset(…, mask_and_scale=True)")

    def _of_xarray(self, source):
        """Orientation by the names and coordinates of the axes; CRS of CF's grid mapping."""
        if source.ndim != 2:
            raise InputError(f"an array of shape {source.shape}", f"argument {self.name}", "numbers of shape (rows, cols), metres")
        self._refuse_units(source)
        names = [str(dim).lower() for dim in source.dims]
        self._turned = names[0] in _EAST and names[1] in _NORTH
        axes = [source.coords[d] if d in source.coords else None for d in source.dims]
        if self._turned:
            axes.reverse()
        for axis in axes:
            if axis is not None and str(axis.attrs.get("units", "")).startswith("degree") or \
                    axis is not None and str(axis.dims[0]).lower() in ("lat", "lon", "latitude", "longitude"):
                self._refuse_degrees()
        mapping = source.attrs.get("grid_mapping") or getattr(source, "encoding", {}).get("grid_mapping") or "spatial_ref"
        facts = source.coords[mapping].attrs if mapping in source.coords else {}
        self.crs = facts.get("crs_wkt") or facts.get("spatial_ref")
        if facts.get("grid_mapping_name") == "latitude_longitude" or str(self.crs or "").startswith(("GEOG", "GEODCRS")):
            self._refuse_degrees()
        if all(axis is not None and axis.ndim == 1 and axis.size > 1 for axis in axes):
            y, x = (np.asarray(axis, float) for axis in axes)
            steps = [(c[-1] - c[0]) / (c.size - 1) for c in (x, y)]
            for axis, c, step in ((axes[1], x, steps[0]), (axes[0], y, steps[1])):
                if not step or np.abs(np.diff(c) - step).max() > 0.01 * abs(step):
                    raise InputError(f"uneven steps of {axis.name}", f"argument {self.name}", "pixels of one size")
            half = abs(steps[0]) / 2
            self._place(x.min() - half, y.max() + half, *steps)
        missing = source.attrs.get("_FillValue", source.attrs.get("missing_value"))
        return missing, source.values

    def _open(self, path):
        try:
            import rasterio
        except ImportError:
            raise InputError(f"the path {path}", f"argument {self.name}",
                             "an array, or rasterio installed to read it") from None
        return rasterio.open(path)


def read_grids(grids, nodata_of):
    """The grids that are given, on the first one; nodata_of(name): marker of missing cells."""
    reads = []
    for name, grid in grids.items():
        if grid is not None:
            reads.append(Grid(grid, name, nodata_of(name)))
            reads[0].take_along(reads[-1])
    return reads


def place_of(reads):
    """Where the first grid lies. All are asked, since each may have heights in another unit."""
    return [read.find_place() for read in reads if read.name in _HEIGHTS][0]


def pixel_size_of(given, grid, where):
    if given is None and grid.pixel_size is None:
        raise InputError("no pixel size", where, "pixel_size=metres, or rasters that have one")
    if given is not None and grid.pixel_size and abs(given / grid.pixel_size - 1) > 1e-3:
        raise InputError(f"pixels of {grid.pixel_size:g} m", f"argument {grid.name}", f"{given:g} m, as pixel_size says")
    return grid.pixel_size if given is None else given
