"""native_run.py FOLDER ARGUMENTS…: runs the native program on the CPU in a folder, where in.npz has the folder's .npy files.

Prints the program's JSON, digests of the arrays in .npz and .npy files that it wrote, and its other files as text of Latin-1, but for
records of the run.
"""
import hashlib
import json
import os
import subprocess
import sys

import numpy as np

os.chdir(sys.argv[1])
given = set(os.listdir())
np.savez("in.npz", **{name[:-4]: np.load(name) for name in given if name.endswith(".npy")})
given.add("in.npz")
command = [sys.executable, "-B", "-m", "lockstep", *sys.argv[2:], "--json", "--quiet", "--device", "cpu"]
done = subprocess.run(command, capture_output=True, text=True)
if done.returncode not in (0, 1):  # 1: a result that misses what was expected of it
    sys.exit(done.stderr)


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


arrays, files = {}, {}
for folder, _, names in os.walk("."):
    for path in (os.path.normpath(os.path.join(folder, name)) for name in names):
        if path in given:
            continue
        if path.endswith(".npz"):
            with np.load(path) as archive:
                arrays.update({name: digest(archive[name]) for name in archive.files})
        elif path.endswith(".npy"):
            arrays[os.path.basename(path)[:-4]] = digest(np.load(path))
        elif not path.endswith(".run.json"):
            with open(path, encoding="latin-1", newline="") as file:
                files[path] = file.read()
print(json.dumps({"document": json.loads(done.stdout), "arrays": arrays, "files": files}))
