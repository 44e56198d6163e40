"""flow encode --max-error compared with zfp and SZ3: the same fields, the same bound, then equal bits a point.

    python3 bench/peers/flow_codec.py build/bin/lockstep FIELDS… [--device cpu] [--bounds 1e-1,1e-2,1e-3,1e-4]

FIELDS are what `flow encode` reads: .npz with omega, .npy, .mat with Omega (needs scipy). Needs zfpy; SZ3 (pysz) where it
is installed. Bounds are shares of the largest |omega|. Bits of Lockstep are those of the whole file, of the
others those of their streams. Fields go to the others one by one, as 2-D arrays. Prints a Markdown table.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy
import zfpy

try:
    import pysz
except ImportError:
    pysz = None


def load(path):
    if path.endswith(".npy"):
        fields = numpy.load(path)
    elif path.endswith(".mat"):
        import scipy.io
        fields = scipy.io.loadmat(path)["Omega"]
    else:
        fields = numpy.load(path)["omega"]
    fields = numpy.ascontiguousarray(fields, dtype=numpy.float32)
    return fields.reshape((-1,) + fields.shape[-2:])


class Zfp:
    name = "zfp"

    def __init__(self):
        self.run = lambda field, bound: zfpy.compress_numpy(field, tolerance=bound, write_header=False)

    def measure(self, fields, bound):
        bits, worst = 0, 0.0
        for field in fields:
            # Without the header, which the comparison leaves out, zfpy cannot decompress.
            bits += 8 * len(self.run(field, bound))
            back = zfpy.decompress_numpy(zfpy.compress_numpy(field, tolerance=bound))
            worst = max(worst, float(numpy.abs(back.astype(numpy.float64) - field).max()))
        return bits / fields.size, worst


class Sz3:
    name = "SZ3"

    def measure(self, fields, bound):
        bits, worst = 0, 0.0
        for field in fields:
            config = pysz.szConfig()
            config.errorBoundMode = pysz.szErrorBoundMode.ABS
            config.absErrorBound = bound
            code, _ = pysz.sz.compress(field, config)
            back, _ = pysz.sz.decompress(code, numpy.float32, field.shape)
            bits += 8 * code.nbytes
            worst = max(worst, float(numpy.abs(back.astype(numpy.float64) - field).max()))
        return bits / fields.size, worst


def at_bits(peer, fields, bits, bound):
    """The smallest error the peer reaches with at most these bits a point: bisection of its bound."""
    low, high = bound * 1e-2, bound * 1e2
    best = float("inf")
    for _ in range(9):
        middle = (low * high) ** 0.5
        used, error = peer.measure(fields, middle)
        if used <= bits:
            best, high = min(best, error), middle
        else:
            low = middle
    return best


def lockstep(program, device, path, fields, bound):
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "fields.npy")
        numpy.save(data, fields)
        done = subprocess.run([program, "flow", "encode", data, "--max-error", repr(bound), "--device", device, "--json",
                               "--out", os.path.join(folder, "z.npz")], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        result = json.loads(done.stdout)
        if not result["max_error"] <= bound:
            sys.exit(f"{path}: error {result['max_error']} beyond {bound}")
        return result["bits_per_point"], result["max_error"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--bounds", default="1e-1,1e-2,1e-3,1e-4")
    arguments = parser.parse_args()
    peers = [Zfp()] + ([Sz3()] if pysz else [])
    print("| fields | bound / max | Lockstep bits | " + " | ".join(f"{p.name} bits" for p in peers) + " | "
          + " | ".join(f"{p.name}'s largest error at Lockstep's bits, over Lockstep's" for p in peers) + " |")
    print("|---" * (3 + 2 * len(peers)) + "|")
    for path in arguments.files:
        fields = load(path)
        most = float(numpy.abs(fields).max())
        for share in (float(text) for text in arguments.bounds.split(",")):
            bound = share * most
            bits, error = lockstep(arguments.program, arguments.device, path, fields, bound)
            same = [f"{p.measure(fields, bound)[0]:.3f}" for p in peers]
            equal = [f"{e / error:.2f}" if e < float("inf") else "> 100" for e in (at_bits(p, fields, bits, bound) for p in peers)]
            shape = " x ".join(str(n) for n in fields.shape)
            print(f"| {os.path.basename(path)} ({shape}) | {share:g} | {bits:.3f} | " + " | ".join(same + equal) + " |")


if __name__ == "__main__":
    main()
