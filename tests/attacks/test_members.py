#!/usr/bin/env python3
"""Checkpoints, models and encoded fields with one hostile member each: refused from its header, with the file and the member named."""
import io
import os
import struct
import unittest
import zipfile
import zlib

import attacks
from attacks import npy_bytes, zip_bytes

DATA = 1 << 30
SECONDS = 30
FLOW = ("flow", "run", "--n", "16", "--save-every", "1", "--dt", "0.01", "--format", "npz", "--device", "cpu", "--quiet")
GIGABYTES = 10


def huge_zeros(descr, shape_of):
    """A member of ten gigabytes of zeros, deflated: one block that was flushed, over and over."""
    size = int(descr[2:])
    header = npy_bytes(shape_of((GIGABYTES << 30) // size), b"", descr)
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    out = pack.compress(header) + pack.flush(zlib.Z_FULL_FLUSH)
    block = pack.compress(b"\0" * (1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    return {"method": 8, "raw": out + block * (GIGABYTES << 10) + pack.flush(), "size": 0xFFFFFFFE, "crc": 0}


def header(descr, shape, order="False"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)


class Members(attacks.Attack):
    @classmethod
    def setUpClass(cls):
        cls.made = attacks.program.tempfile.mkdtemp(prefix="lockstep-members-")
        cls.addClassCleanup(attacks.program.shutil.rmtree, cls.made, ignore_errors=True)

        def made(*words):
            done = attacks.run(*words)
            assert done.returncode == 0, done.stderr
        path = lambda name: os.path.join(cls.made, name)  # noqa: E731
        made(*FLOW, "--steps", "24", "--checkpoint", path("run.npz"), "--out", path("run"))
        made("flow", "encode", path("run/run.npz"), "--device", "cpu", "--out", path("z.npz"))
        made("flow", "encode", path("run/run.npz"), "--device", "cpu", "--max-error", "1e-3", "--out", path("coded.npz"))
        made("flow", "encode", path("run/run.npz"), "--device", "cpu", "--codec", "classic", "--low", "2", "--middle", "6", "--out", path("classic.npz"))
        made("flow", "learn", path("z.npz"), "--device", "cpu", "--out", path("model.npz"))
        made("forecast", "train", "xor", "--steps", "20", "--device", "cpu", "--checkpoint", path("train.npz"), "--out", path("train"))
        with open(path("log.csv"), "w", encoding="ascii") as log:
            log.write("step,loss\n" + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(200)))
        made("forecast", "observe", path("log.csv"), "--hidden", "8", "--members", "1", "--device", "cpu", "--out", path("weights.npz"))

    def setUp(self):
        super().setUp()
        attacks.program.shutil.copytree(os.path.join(self.made, "run.npz.fields"), self.path("run.npz.fields"))

    # (file, words that read it, members that are needed and hold numbers)
    def readers(self):
        out = self.path("out.npz")
        return {
            "z.npz": (("flow", "decode", "{}", "--device", "cpu", "--out", out), ("header", "time", "scales", "latent", "checksum")),
            "coded.npz": (("flow", "decode", "{}", "--device", "cpu", "--out", out), ("latent_code", "residual_code", "exact")),
            "classic.npz": (("flow", "learn", "{}", "--device", "cpu", "--out", out), ("anchors", "latent")),
            "model.npz": (("flow", "rollout", "{}", "--steps", "2", "--device", "cpu", "--out", out),
                          ("surrogate", "basis", "step", "climatology", "last", "codec", "codec_seed", "codec_scales", "clock", "scores")),
            "run.npz": ((*FLOW, "--steps", "26", "--checkpoint", "{}", "--out", os.path.join(self.made, "run")),
                        ("identity", "series", "energy_spectrum", "state_w", "state_clock", "state_status")),
            "train.npz": (("forecast", "train", "xor", "--steps", "20", "--device", "cpu", "--checkpoint", "{}", "--out", self.path("train")),
                          ("identity", "counters", "seconds", "log", "parameters", "optimizer_first", "optimizer_move")),
            "weights.npz": (("forecast", "rollout", "{}", "--steps", "2", "--device", "cpu"), ("W_z", "U_z", "b_h", "features", "w")),
        }

    def archive(self, name):
        with zipfile.ZipFile(os.path.join(self.made, name)) as archive:
            return [(member, archive.read(member), {}) for member in archive.namelist()]

    def attack(self, change, names_member=True, codes=(2,)):
        for name, (words, members) in self.readers().items():
            good = self.archive(name)
            for member in members:
                (old,) = [data for own, data, _ in good if own == member + ".npy"]
                changed = change(member + ".npy", old)
                if changed is None:
                    continue
                new = [part for own in good for part in (changed if own[0] == member + ".npy" else [own])]
                file = self.write(name, zip_bytes(new))
                with self.subTest(file=name, member=member):
                    done = self.survives(*(file if word == "{}" else word for word in words), codes=codes, data=DATA, seconds=SECONDS)
                    if done.returncode == 2:
                        self.assertIn(os.fsencode(name), done.stderr)
                        self.assertIn(b"expected", done.stderr)
                        if names_member:
                            self.assertIn(member.encode(), done.stderr)

    @staticmethod
    def split(data):
        length = struct.unpack("<H", data[8:10])[0]
        return eval(data[10:10 + length]), data[10 + length:]  # NumPy's header, which this test made

    def with_header(self, text):
        return lambda name, old: [(name, npy_bytes((), self.split(old)[1], header=text))]

    def test_the_files_that_the_others_change_are_good(self):
        for name, (words, _) in self.readers().items():
            with self.subTest(file=name):
                self.survives(*(self.write(name, zip_bytes(self.archive(name))) if word == "{}" else word for word in words), codes=(0,), data=DATA)

    def test_ten_gigabytes_of_zeros(self):
        for kind in ("same", "f4", "f8"):
            def change(name, old, kind=kind):
                was, _ = self.split(old)
                descr = was["descr"] if kind == "same" else "<" + kind
                if int(descr[2:]) > 8 or kind != "same" and name not in ("latent.npy", "state_w.npy", "parameters.npy", "U_z.npy", "step.npy"):
                    return None
                rank = len(was["shape"])
                zeros = huge_zeros(descr, lambda n: (n,) if rank == 1 else (*([1] * (rank - 1)), n))
                return [(name, b"", zeros)]
            self.attack(change)

    def test_a_stage_reads_its_own_arrays_alone(self):
        arrays = [(name + ".npy", npy_bytes((), struct.pack("<d", value), "<f8")) for name, value in (("ta", 30), ("rh", 40), ("va", 1), ("tmrt", 50))]
        file = self.write("in.npz", zip_bytes([*arrays, ("other.npy", b"", huge_zeros("<f8", lambda n: (n,)))]))
        self.survives("urban", "stage", "utci", file, "--out", self.path("out.npz"), codes=(0,), data=DATA, seconds=SECONDS)
        with zipfile.ZipFile(self.path("out.npz")) as archive:
            self.assertIn("utci.npy", archive.namelist())

    def test_a_size_far_beyond_the_content(self):
        self.attack(self.with_header(header("'<f8'", "(1000000000000,)")))

    def test_a_shape_that_overflows(self):
        self.attack(self.with_header(header("'<f8'", "(1099511627776, 1099511627776)")))

    def test_a_negative_side(self):
        self.attack(self.with_header(header("'<f8'", "(-1,)")))

    def test_objects_halves_and_records(self):
        for descr in ("'|O'", "'<U8'", "'<c16'", "[('a', '<f8')]"):
            self.attack(self.with_header(header(descr, "(1,)")))
        self.attack(lambda name, old: [(name, b"\x80\x04\x95cos\nsystem\n(S'id'\ntR.")])

    def test_numbers_of_16_bits(self):
        def change(name, old):
            was, _ = self.split(old)
            return [(name, npy_bytes(was["shape"], b"\0" * (2 * max(1, self.count(was["shape"]))), "<f2"))]
        self.attack(change)

    @staticmethod
    def count(shape):
        count = 1
        for side in shape:
            count *= side
        return count

    def test_two_members_of_one_name(self):
        self.attack(lambda name, old: [(name, old), (name, old)])

    def test_not_a_number(self):
        def change(name, old):
            was, data = self.split(old)
            if was["descr"] not in ("<f4", "<f8") or name in ("seconds.npy", "state_clock.npy", "time.npy", "series.npy", "energy_spectrum.npy", "log.npy"):
                return None
            nan = struct.pack(was["descr"][0] + {"4": "f", "8": "d"}[was["descr"][2]], float("nan"))
            return [(name, npy_bytes(was["shape"], nan + data[len(nan):], was["descr"]))]
        self.attack(change, names_member=False)

    def test_other_orders(self):
        """Fortran's order and the other byte order are NumPy's too: read, or refused by name."""
        def change(name, old):
            was, data = self.split(old)
            return [(name, npy_bytes((), data, header=header(repr(was["descr"].replace("<", ">")), was["shape"], "True")))]
        self.attack(change, names_member=False, codes=(0, 2))

    def test_thousands_of_members(self):
        for name, (words, _) in self.readers().items():
            many = [(f"state_{k}.npy", npy_bytes((1,)), {}) for k in range(5000)]
            file = self.write(name, zip_bytes(self.archive(name) + many))
            with self.subTest(file=name):
                self.survives(*(file if word == "{}" else word for word in words), codes=(0, 2), data=DATA, seconds=SECONDS)

    def test_a_grid_that_no_memory_holds(self):
        """A codec's settings alone, of a few bytes, ask for a layout of gigabytes."""
        def change(name, old):
            if name != "header.npy":
                return None
            text = self.split(old)[1].replace(b'"n":[16,16]', b'"n":[32768,32768]')
            return [(name, npy_bytes((len(text),), text, "|u1"))]
        name, (words, _) = "z.npz", self.readers()["z.npz"]
        new = [part for own in self.archive(name) for part in (change(own[0], own[1]) or [own])]
        file = self.write(name, zip_bytes(new))
        done = self.refuses(*(file if word == "{}" else word for word in words), "--input-memory", "256M", names=name, data=DATA, seconds=SECONDS)
        self.assertIn(b"layout", done.stderr)


if __name__ == "__main__":
    unittest.main()
