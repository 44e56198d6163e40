#!/usr/bin/env python3
"""Archives that lie, unpack to more than they say, or name files elsewhere."""
import io
import os
import struct
import unittest
import zipfile
import zlib

import attacks
from attacks import npy_bytes, zip_bytes

SIGMA, SPEED = npy_bytes((1, 8, 8)), npy_bytes((3, 1, 8, 8))
WHOLE = [(name, SIGMA) for name in ("sigma0.npy", "sigma1.npy", "sigma2.npy")] + [(name, SPEED) for name in ("u0.npy", "u1.npy", "u2.npy")]
SMALL = ("--input-memory", "64M")


def zeros(bytes_):
    """`bytes_` of an array of zeros, deflated by hand as one stream."""
    header = npy_bytes((bytes_ // 4,), b"")
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    out = [pack.compress(header)]
    block = b"\0" * (1 << 20)
    crc = zlib.crc32(header)
    for _ in range(bytes_ >> 20):
        out.append(pack.compress(block))
        crc = zlib.crc32(block, crc)
    return b"".join(out) + pack.flush(), len(header) + bytes_, crc


class Archives(attacks.Attack):
    def pde(self, members, *more):
        data = members if isinstance(members, bytes) else zip_bytes(members)
        file = self.write("a.npz", data)
        return ("pde", "loss", file, "--spacing", "0.1,0.1,0.1", "--dt", "0.1", *more)

    def changed(self, **change):
        return self.pde([(*WHOLE[0], change), *WHOLE[1:]])

    def test_the_archive_that_the_others_change_is_good(self):
        self.assertEqual(self.survives(*self.pde(WHOLE), codes=(0,)).returncode, 0)

    def test_ratio_bomb(self):
        raw, size, crc = zeros(256 << 20)
        bomb = ("sigma0.npy", b"", {"method": 8, "raw": raw, "size": size, "crc": crc})
        self.refuses(*self.pde([bomb, *WHOLE[1:]], *SMALL), names="a.npz")

    def test_ratio_bomb_that_says_it_is_small(self):
        raw, _, crc = zeros(256 << 20)
        bomb = ("sigma0.npy", b"", {"method": 8, "raw": raw, "size": 4096, "crc": crc})
        self.refuses(*self.pde([bomb, *WHOLE[1:]], *SMALL), names="a.npz")

    def test_ratio_bomb_beside_what_is_named(self):
        raw, size, crc = zeros(256 << 20)
        bomb = ("other.npy", b"", {"method": 8, "raw": raw, "size": size, "crc": crc})
        self.survives(*self.pde([*WHOLE, bomb], *SMALL))

    def test_members_that_together_are_too_much(self):
        raw, size, crc = zeros(16 << 20)
        names = ("W_z", "W_r", "W_h", "U_z", "U_r", "U_h", "b_z", "b_r", "b_h", "w")
        members = [(name + ".npy", b"", {"method": 8, "raw": raw, "size": size, "crc": crc}) for name in names]
        self.refuses("forecast", "rollout", self.write("model.npz", zip_bytes(members)), *SMALL, names="model.npz")

    def test_a_hundred_thousand_members(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for number in range(100_000):
                archive.writestr(f"{number}.npy", b"")
        self.refuses(*self.pde(packed.getvalue()), names="a.npz")

    def test_overlapping_members(self):
        self.refuses(*self.pde([WHOLE[0], *[(name, data, {"offset": 0}) for name, data in WHOLE[1:]]]), names="a.npz")

    def test_members_of_one_name(self):
        self.refuses(*self.pde([WHOLE[0], *WHOLE]), names="a.npz")

    def test_archive_in_an_archive(self):
        self.refuses(*self.pde([("sigma0.npy", zip_bytes(WHOLE)), *WHOLE[1:]]), names="a.npz")

    def test_wrong_checksum(self):
        self.refuses(*self.changed(crc=1), names="a.npz")

    def test_size_of_four_gigabytes(self):
        self.refuses(*self.changed(size=0xFFFFFFFE, packed_size=0xFFFFFFFE), names="a.npz")

    def test_size_in_a_record_that_is_missing(self):
        self.refuses(*self.changed(size=0xFFFFFFFF, packed_size=0xFFFFFFFF), names="a.npz")

    def test_unpacked_size_of_four_gigabytes(self):
        self.refuses(*self.changed(size=0xFFFFFFFE), names="a.npz")

    def test_unpacked_size_of_nothing(self):
        self.refuses(*self.changed(size=0), names="a.npz")

    def test_offset_beyond_the_file(self):
        self.refuses(*self.changed(offset=0xFFFFFF00), names="a.npz")

    def test_name_beyond_the_file(self):
        self.refuses(*self.changed(name_length=0xFFFF), names="a.npz")

    def test_local_name_beyond_the_file(self):
        self.refuses(*self.pde([*WHOLE[:-1], (*WHOLE[-1], {"local_name_length": 0xFFFF})]), names="a.npz")

    def test_extra_field_beyond_the_file(self):
        self.refuses(*self.changed(extra_length=0xFFFF), names="a.npz")

    def test_unknown_method(self):
        self.refuses(*self.changed(method=99), names="a.npz")

    def test_encrypted_member(self):
        self.refuses(*self.changed(flags=1), names="a.npz")

    def test_deflated_nonsense(self):
        self.refuses(*self.changed(method=8, raw=b"\xff" * 64), names="a.npz")

    def test_deflated_cut_short(self):
        raw = zlib.compress(SIGMA)[2:-4]
        self.refuses(*self.changed(method=8, raw=raw[:len(raw) // 2]), names="a.npz")

    def test_directory_beyond_the_file(self):
        data = zip_bytes(WHOLE)
        for place in (data[-22:-6] + b"\xff\xff\xff\x7f" + data[-2:], data[-22:-10] + b"\xff\xff\xff\x7f" + data[-6:]):
            self.survives(*self.pde(data[:-22] + place))

    def test_record_of_64_bits_beyond_the_file(self):
        locator = struct.pack("<IIQI", 0x07064B50, 0, 1 << 63, 1)
        data = zip_bytes(WHOLE)
        self.refuses(*self.pde(data[:-22] + locator + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 65535, 65535, 0xFFFFFFFF, 0xFFFFFFFF, 0)), names="a.npz")

    def test_cut_at_every_place(self):
        data = zip_bytes(WHOLE[:2])
        for length in range(0, len(data), len(data) // 16):
            self.refuses(*self.pde(data[:length]), names="a.npz")

    def names_elsewhere(self, name):
        before = attacks.snapshot(self.folder)
        done = self.refuses(*self.pde([(name, SIGMA), *WHOLE[1:]]), names="a.npz")
        after = attacks.snapshot(self.folder)
        self.assertEqual(set(after) - set(before), {self.path("a.npz")})
        return done

    def test_absolute_names(self):
        self.names_elsewhere(self.path("absolute.npy"))

    def test_names_of_the_parent(self):
        self.names_elsewhere("../" * 20 + self.path("parent.npy")[1:])

    def test_names_with_zeros(self):
        self.names_elsewhere(b"sigma0.npy\0.txt")

    def test_names_with_escapes(self):
        self.names_elsewhere(b"\x1b]0;owned\x07\x1b[2J.npy")

    def test_views_of_a_sky_with_names_of_the_parent(self):
        outside = self.path("outside")
        os.mkdir(outside)
        archive = self.write("svfs.zip", zip_bytes([("../outside/svf.tif", b"II*\0"), (outside + "/x.tif", b"II*\0"), ("svf.tif", b"II*\0")]))
        self.refuses("urban", "umep", archive, "--out", self.path("out"), names="svfs.zip")
        self.assertEqual(os.listdir(outside), [])

    def test_bomb_of_text(self):
        pack = zlib.compressobj(9, 8, 31)
        raw = b"".join(pack.compress(b"0 " * (1 << 19)) for _ in range(256)) + pack.flush()
        self.refuses("solve", "bal", self.write("a.txt.gz", raw), *SMALL, names="a.txt.gz")

    def test_bomb_in_a_mat_file(self):
        raw = zlib.compress(struct.pack("<II", 14, 256 << 20) + b"\0" * (256 << 20), 9)
        data = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(raw)) + raw
        self.refuses("flow", "run", "--ic", self.write("a.mat", data), "--out", self.path("out"), *SMALL, names="a.mat")


if __name__ == "__main__":
    unittest.main()
