"""GeoTIFFs of GDAL (rasterio) and places of PROJ (pyproj) for city.test.mjs. Arguments: a folder to fill, or a file and "read".
Prints JSON; {"skipped": reason} where a package is missing."""
import json
import sys
from pathlib import Path

import numpy as np

try:
    import pyproj
    import rasterio
except ImportError as error:
    print(json.dumps({"skipped": f"{error.name} is not installed (scripts/fetch_python_peers.sh)"}))
    sys.exit()


def number(value):
    return None if value is None or np.isnan(value) else float(value)


def read(file):
    with rasterio.open(file) as f:
        t = f.transform
        return {"values": [number(v) for v in f.read(1).ravel()], "transform": [t.a, t.b, t.c, t.d, t.e, t.f], "epsg": f.crs.to_epsg(), "nodata": number(f.nodata)}


def variants():
    for dtype in ("float32", "float64", "int16", "uint16", "uint8", "int32"):
        for compress, predictors in ((None, [None]), ("deflate", [1, 2, 3]), ("lzw", [1, 2, 3])):
            for predictor in predictors:
                if (predictor == 3 and not dtype.startswith("float")) or (predictor == 2 and dtype == "float64"):
                    continue
                for tiled in (False, True):
                    for endianness in ("LITTLE", "BIG"):
                        yield dtype, compress, predictor, tiled, endianness


def write(folder):
    random = np.random.default_rng(3)
    names = []
    for k, (dtype, compress, predictor, tiled, endianness) in enumerate(variants()):
        values = random.normal(20, 8, (37, 53)).clip(0, 250).astype(dtype)
        values[3:9, 4:40] = 7
        bands = 1 + (k % 3 == 0)
        options = dict(driver="GTiff", height=37, width=53, count=bands, dtype=dtype, crs="EPSG:32632", nodata=7, compress=compress, predictor=predictor,
                       transform=rasterio.transform.from_origin(500000, 6400000, 2, 2), endianness=endianness, interleave=("pixel", "band")[k % 2])
        if tiled:
            options.update(tiled=True, blockxsize=32, blockysize=16)
        name = f"{dtype}_{compress}_{predictor}_{'tiles' if tiled else 'strips'}_{endianness}"
        with rasterio.open(folder / f"{name}.tif", "w", **{o: v for o, v in options.items() if v is not None}) as f:
            f.write(values, 1)
            if bands == 2:
                f.write(values[::-1], 2)
        expected = values.astype(np.float32)
        expected[values == 7] = np.nan
        (folder / f"{name}.f32").write_bytes(expected.tobytes())
        names.append(name)
    return names


def wrong(folder):
    """Files that are no north-up heights in metres."""
    names = []

    def write(name, crs="EPSG:32632", transform=rasterio.transform.from_origin(500000, 6400000, 2, 2), scale=None, units=None):
        with rasterio.open(folder / f"{name}.tif", "w", driver="GTiff", height=20, width=20, count=1, dtype="float32", crs=crs, transform=transform) as f:
            f.write(np.full((20, 20), 3, "f4"), 1)
            if scale:
                f.scales = (scale,)
            if units:
                f.units = (units,)
        names.append(name)

    write("mercator", "EPSG:3857")
    write("scaled", scale=0.01)
    write("centimetres", units="cm")
    write("feet", units="ft")
    write("vertical feet", "EPSG:3006+6360")
    write("south up", transform=rasterio.transform.Affine(2, 0, 500000, 0, 2, 6400000))
    return names


def places():
    rows = []
    for epsg, x, y in ((32632, 4e5, 64e5), (32756, 334e3, 6251e3), (3006, 319e3, 64e5), (25833, 39e4, 582e4), (26918, 583e3, 4507e3), (7856, 334e3, 6251e3),
                       (2180, 637e3, 487e3), (2193, 175e4, 5427e3), (32601, 5e5, 100), (32660, 25e4, 89e5)):
        lon, lat = pyproj.Transformer.from_crs(epsg, 4326, always_xy=True).transform(x, y)
        rows.append([epsg, x, y, lat, lon, pyproj.Proj(epsg).get_factors(lon, lat).meridian_convergence])
    return rows


if sys.argv[2:] == ["read"]:
    print(json.dumps(read(sys.argv[1])))
else:
    print(json.dumps({"files": write(Path(sys.argv[1])), "wrong": wrong(Path(sys.argv[1])), "places": places()}))
