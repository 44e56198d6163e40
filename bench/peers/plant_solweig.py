#!/usr/bin/env python3
"""The peer of `urban plant`: a tree's site tried by Tmrt of the whole raster, with the published package solweig on the CPU.

usage: plant_solweig.py CITY_FOLDER DAY.csv [--hours 24] [--repeat 2]

Needs `pip install solweig` (GPL-3.0, run and never read). A site is tried as its model needs it: the surface with the tree is prepared
(walls, sky view factors), then Tmrt is computed hour by hour. Prints one JSON line: seconds and processor seconds of both, medians.
"""
import argparse
import csv
import json
import pathlib
import statistics
import tempfile
import time
from datetime import datetime

import numpy as np
import solweig


def weather(path, hours):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [solweig.Weather(datetime=datetime.fromisoformat(row["time"]), ta=float(row["Ta"]), rh=float(row["RH"]), ws=float(row["wind"]),
                            global_rad=float(row["Kglobal"])) for row in rows[:hours]]


def with_tree(canopy, row, col, height=10, radius=3):
    """A disc: the peer's time does not depend on the crown's form."""
    out = canopy.copy()
    rows, cols = np.ogrid[:out.shape[0], :out.shape[1]]
    inside = (rows - row) ** 2 + (cols - col) ** 2 <= radius ** 2
    out[inside] = np.maximum(out[inside], height)
    return out


def timed(work):
    begin, used = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - begin, time.process_time() - used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("city", type=pathlib.Path)
    parser.add_argument("day")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--repeat", type=int, default=2)
    given = parser.parse_args()
    solweig.disable_gpu()
    dsm, dem, canopy = (np.load(given.city / f"{name}.npy").astype("f4") for name in ("dsm", "dem", "cdsm"))
    place, hours = solweig.Location(latitude=57.7, longitude=11.97, utc_offset=1), weather(given.day, given.hours)
    prepared, steps = [], []
    for k in range(given.repeat + 1):
        site = dsm.shape[0] // 2, dsm.shape[1] // 3 + 20 * k
        surface, *spent = timed(lambda: solweig.SurfaceData.prepare(dsm=dsm, dem=dem, cdsm=with_tree(canopy, *site), pixel_size=1.0, force_recompute=True))
        with tempfile.TemporaryDirectory() as folder:
            _, *took = timed(lambda: solweig.calculate(surface, hours, place, output_dir=folder, outputs=["tmrt"]))
        if k:  # the first warms up
            prepared.append(spent)
            steps.append(took)
    median = lambda rows, column: statistics.median(row[column] for row in rows)
    print(json.dumps({"peer": "solweig " + solweig.__version__, "backend": str(solweig.get_compute_backend()), "hours": given.hours, "repeat": given.repeat,
                      "prepare_s": median(prepared, 0), "prepare_processor_s": median(prepared, 1), "steps_s": median(steps, 0),
                      "steps_processor_s": median(steps, 1)}))


if __name__ == "__main__":
    main()
