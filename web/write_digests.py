"""Writes digests of the native program's results for the cases of the pages, as JSON: {"device": …, "digests": {"case size": digest}}."""
import json
import sys

import lockstep
from lockstep import _core

device = lockstep.Device("cpu")
digests = {}
for folder in ("engine.", "fft.", "math.", "primitives."):
    for case, size, digest in _core.case_digests(device._core, folder):
        if digest:
            digests[f"{case} {size}"] = digest
if not digests:
    sys.exit("write_digests.py: no case")
info = device._core.info
json.dump({"device": info["description"], "architecture": info["architecture"], "digests": digests}, sys.stdout, indent=0)
