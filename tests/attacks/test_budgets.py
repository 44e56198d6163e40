#!/usr/bin/env python3
"""Large inputs under a small budget: refused by name before the memory is taken, in time that grows with their length."""
import gzip
import os
import random
import struct
import unittest
import zlib

import attacks
from attacks import npy_bytes, zip_bytes

BUDGET = 64 << 20
DATA = 640 << 20  # of which the program, its threads and GDAL take most without any input
SECONDS = 60

CITY = ("--dsm", "{dsm}", "--pixel-size", "1")
RUN = ("urban", "run", *CITY, "--lat", "57", "--lon", "12", "--utc-offset", "1", "--out", "{out}")
MESH = ("solve", "mesh", "{}", "--energy", "springs")
CURVE = ("forecast", "curve", "{}")
WEATHER = "time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,20,50,1,500\n"
GRAPH = "VERTEX_SE2 0 0 0 0\nVERTEX_SE2 1 1 0 0\nEDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\n"
LENGTH = 48 << 20  # the text fits, what becomes of it does not


def rows(row, length=LENGTH):
    return (row * (length // len(row) + 1)).encode()


def numbered(form, count):
    return "".join(form % number for number in range(count)).encode()


def digits(count):
    """Lines of a digit each, which no packer makes 200 times smaller."""
    lines = bytearray(b"\n" * (2 * count))
    lines[::2] = random.Random(1).randbytes(count).translate(bytes(48 + k % 10 for k in range(256)))
    return bytes(lines)


FILES = {
    "log": ("a.csv", lambda: b"step,loss\n" + numbered("%d,1\n", 5_000_000), CURVE),
    "log_of_json": ("a.jsonl", lambda: b'{"step":1,"a":[' + rows("[],") + b"1]}", CURVE),
    "mesh": ("a.obj", lambda: rows("v 0 0 0\n"), MESH),
    "mesh_of_bytes": ("a.ply", lambda: b"ply\nformat binary_little_endian 1.0\nelement vertex 16000000\nproperty char x\nproperty char y\n"
                      b"property char z\nend_header\n" + b"\1" * 48_000_000, MESH),
    "mesh_of_facets": ("a.stl", lambda: b"\0" * 80 + struct.pack("<I", 900_000) + b"".join(
        b"\0" * 12 + struct.pack("<9f", *range(9 * k, 9 * k + 9)) + b"\0\0" for k in range(900_000)), MESH),
    "graph": ("a.g2o", lambda: numbered("VERTEX_SE2 %d 0 0 0\n", 1_800_000), ("solve", "g2o", "{}")),
    "bundle": ("a.txt.gz", lambda: gzip.compress(b"1 14000000 1\n0 0 0 0\n" + digits(42_000_009), 1), ("solve", "bal", "{}")),
    "sketch": ("a.toml", lambda: b"a = [" + rows("1,", 4 << 20) + b"]", ("solve", "sketch", "{}")),
    "weather": ("a.csv", lambda: b"time,Ta,RH,wind,Kglobal\n" + b"".join(
        b"%04d-%02d-%02dT%02d:00,1,50,1,100\n" % (year, month, day, hour) for year in range(1900, 2040) for month in range(1, 13)
        for day in range(1, 29) for hour in range(24)), (*RUN, "--weather", "{}")),
    "points": ("a.json", lambda: b'{"features":[' + rows("{},", 8 << 20) + b"{}]}", (*RUN, "--weather", "{weather}", "--poi", "{}")),
    "parameters": ("a.json", lambda: b'{"a":[' + rows("[],", 8 << 20) + b"1]}", (*RUN, "--weather", "{weather}", "--parameters", "{}")),
    "array": ("a.npy", lambda: npy_bytes((3000, 3000), b"\0" * 36_000_000, header="{'descr': '<i4', 'fortran_order': True, 'shape': (3000, 3000), }"),
              ("urban", "walls", "--dsm", "{}", "--pixel-size", "1", "--out", "{out}")),
    "field_of_matlab": ("a.mat", lambda: b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + (lambda raw: struct.pack("<II", 15, len(raw)) + raw)(
        zlib.compress(struct.pack("<II", 14, 200 << 20) + b"\0" * (200 << 20), 9)), ("flow", "run", "--ic", "{}", "--out", "{out}")),
    "checkpoint": ("a.ckpt", lambda: b"LCKPSLV1"[::-1] + b"\0" * (80 << 20), ("solve", "g2o", "{graph}", "--checkpoint", "{}")),
    "bench": ("a.json", lambda: b'{"results":[' + rows("{},", 8 << 20) + b"{}]}", ("bench", "engine.copy", "--device", "interp", "--against", "{}")),
    "raster_of_one_block": ("a.tif", lambda: b"II*\0\x08\0\0\0" + struct.pack("<H", 11) + b"".join(
        struct.pack("<HHII", tag, 4, 1, value) for tag, value in (
            (256, 11_000), (257, 11_000), (258, 32), (259, 8), (262, 1), (273, 146), (277, 1), (278, 11_000), (279, 470_000), (339, 3), (284, 1)))
        + struct.pack("<I", 0) + zlib.compress(b"\0" * 484_000_000, 9).ljust(470_000, b"\0"),
        ("urban", "walls", "--dsm", "{}", "--pixel-size", "1", "--out", "{out}")),
}


class Budgets(attacks.Attack):
    def attack(self, name, data, words):
        file = self.write(name, data)
        self.write("dsm.npy", npy_bytes((8, 8)))
        weather = self.write("weather.csv", WEATHER)
        names = {"{}": file, "{dsm}": self.path("dsm.npy"), "{out}": self.path("out"), "{weather}": weather,
                 "{graph}": self.write("graph.g2o", GRAPH)}
        done = self.refuses(*(names.get(word, word) for word in words), "--input-memory", "64M", names=name, data=DATA, seconds=SECONDS)
        self.assertIn(b"MiB", done.stderr)
        self.assertNotIn(b"more memory than is available", done.stderr)

    def npz(self, name, **arrays):
        return self.write(name, zip_bytes([(key + ".npy", data) for key, data in arrays.items()]))

    def test_last_frame_of_a_long_run(self):
        """A run four times the budget, of which one frame begins the next."""
        run = self.npz("run.npz", omega=npy_bytes((64, 1024, 1024), b"\0" * (256 << 20)))
        self.survives("flow", "run", "--ic", run, "--steps", "1", "--device", "cpu", "--out", self.path("out"), "--input-memory", "64M", codes=(0,))
        self.survives("flow", "compare", run, run, "--input-memory", "64M", codes=(0,))

    def test_times_that_never_meet(self):
        """A million moments of two runs: compared in order, not each with each."""
        moments = 1_000_000
        fields = npy_bytes((moments, 2, 2), b"\0" * (16 * moments))
        times = [struct.pack("<%dd" % moments, *(number + late for number in range(moments))) for late in (0, 0.5)]
        runs = [self.npz(f"{k}.npz", omega=fields, time=npy_bytes((moments,), time, "<f8")) for k, time in enumerate(times)]
        self.refuses("flow", "compare", *runs, names="1.npz", seconds=SECONDS)

    def test_config(self):
        """What no command has is refused within the budget and the time."""
        self.refuses("devices", "--config", self.write("a.toml", numbered("a%d = 1\n", 300_000)), "--input-memory", "64M", names="a.toml", seconds=SECONDS)
        done = self.refuses("devices", "--config", self.write("b.toml", b"numerics = [" + rows("1,", 1 << 20) + b"]"), names="--numerics", seconds=SECONDS)
        self.assertLess(len(done.stderr), 5000)

    def test_half_a_million_points(self):
        points = self.write("points.csv", b"id,x,y\n" + numbered("%d,1,1\n", 500_000) + b"7,1,1\n")
        self.write("dsm.npy", npy_bytes((8, 8)))
        done = self.refuses("urban", "run", "--dsm", self.path("dsm.npy"), "--pixel-size", "1", "--lat", "57", "--lon", "12", "--utc-offset", "1",
                            "--out", self.path("out"), "--weather", self.write("w.csv", WEATHER),
                            "--poi", points, names="points.csv", seconds=SECONDS)
        self.assertIn(b"is repeated", done.stderr)

    def test_identifiers_that_collide(self):
        """Multiples of a number of buckets that libstdc++'s tables have while they grow: one bucket, each search through all."""
        buckets = 351_061
        vertices = b"".join(b"VERTEX_SE2 %d 0 0 0\n" % (buckets * k) for k in range(buckets))
        self.refuses("solve", "g2o", self.write("a.g2o", vertices), names="a.g2o", seconds=SECONDS)

    def test_a_million_names_in_json(self):
        page = self.path("in")
        os.mkdir(page)
        self.write("in/run.json", b'{"a":{' + numbered('"%d":1,', 1_000_000) + b'"x":1}}')
        self.survives("report", page, "--out", self.path("r.html"), seconds=SECONDS)


for title, (file_name, content, command) in FILES.items():
    setattr(Budgets, "test_" + title, lambda self, a=file_name, b=content, c=command: self.attack(a, b(), c))

if __name__ == "__main__":
    unittest.main()
