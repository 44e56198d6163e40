"""Prints digests of the native program's results for a made-up city as JSON; city.test.mjs compares those of the page.
Arguments: a file of weather, and a folder that gets the city's grids."""
import hashlib
import json
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
from lockstep import urban

found = {}


def note(name, values):
    found[name] = hashlib.sha256(np.ascontiguousarray(values, np.float32).tobytes()).hexdigest()


weather, folder = sys.argv[1:]
urban.sample(folder, rows=56, cols=48, pixel_size=2.0, seed=3, format="npy", pictures=False)
grids = {name: np.load(Path(folder, f"{name}.npy")) for name in ("dsm", "dem", "cdsm", "tdsm")}
# A hole, as files have them.
grids["dsm"][10:14, 20:23] = np.nan
np.save(Path(folder, "dsm.npy"), grids["dsm"])
city = dict(grids, pixel_size=2.0, device="cpu")
for azimuth, altitude in ((203.5, 31.25), (90.0, 8.0)):
    shadows = urban.shadows(azimuth=azimuth, altitude=altitude, **{k: v for k, v in city.items() if k != "dem"})
    note(f"buildings {azimuth}", shadows["shadow_buildings"])
    note(f"vegetation {azimuth}", shadows["shadow_vegetation"])
note("svf", urban.svf(**{k: v for k, v in city.items() if k != "dem"})["svf"])
place = dict(latitude=57.7, longitude=11.97, utc_offset=1.0)
hours = urban.run(weather=weather, start="2015-06-21T12:00", end="2015-06-21T14:00", outputs=("tmrt", "utci", "shadow"), **place, **city)
for name in ("tmrt", "utci", "shadow"):
    for step in range(3):
        note(f"{name} {step}", hours[name][step])
found["times"] = [str(t)[:16] for t in hours["times"]]
sun = urban.sun_position(datetime.fromisoformat("2015-06-21T14:30:00+01:00"), 57.7, 11.97)
found["sun"] = [float(angle) for angle in sun]
print(json.dumps(found))
