"""flow encode and decode: JSON, bounds, files, refusals."""
import io
import json
import math
import os
import struct
import unittest
import zipfile

from program import ProgramTest, npy

ON = ["--device", "cpu"]


def members(path):
    """Shapes of the arrays of an .npz, and the bytes behind their headers."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            length = struct.unpack("<H", data[8:10])[0]
            shape = data[10:10 + length].split(b"'shape': (")[1].split(b")")[0]
            found[name[:-4]] = ([int(n) for n in shape.split(b",") if n.strip()], data[10 + length:])
    return found


class FlowCodec(ProgramTest):
    def setUp(self):
        super().setUp()
        self.field = npy(self.path("w.npy"), [[3 * math.sin(0.4 * c + 0.2) * math.cos(0.3 * r) + 0.1 * math.sin(2.1 * c * r)
                                              for c in range(40)] for r in range(36)])

    def encode(self, *more, source=None):
        return self.json_of("flow", "encode", source or self.field, *more, *ON, "--out", self.path("z.npz"))

    def decode(self, *more, out="fields.npz"):
        return self.json_of("flow", "decode", self.path("z.npz"), *more, *ON, "--out", self.path(out))

    def omega(self, out="fields.npz"):
        shape, data = members(self.path(out))["omega"]
        return shape, struct.unpack("<%df" % (len(data) // 4), data)

    def original(self):
        with open(self.field, "rb") as file:
            data = file.read()[-4 * 40 * 36:]
        return struct.unpack("<1440f", data)

    def check_errors(self, document, out="fields.npz"):
        """What is reported of the decoded field is what its numbers and the original's say."""
        pairs = list(zip(self.omega(out)[1], self.original()))
        lost, size = sum((a - b) ** 2 for a, b in pairs), sum(b * b for _, b in pairs)
        self.assertAlmostEqual(document["relative_l2"], math.sqrt(lost / size), delta=1e-9 * math.sqrt(lost / size))
        self.assertEqual(document["max_error"], max(abs(a - b) for a, b in pairs))
        if lost > 0:
            width = max(self.original()) - min(self.original())
            self.assertAlmostEqual(document["psnr"], 20 * math.log10(width / math.sqrt(lost / len(pairs))), places=6)

    def test_bounds_hold(self):
        for bound in (0.5, 0.01, 0.0):
            with self.subTest(bound):
                document = self.encode("--max-error", repr(bound))
                self.check_summary(document)
                self.assertLessEqual({"bits_per_point", "ratio", "relative_l2", "max_error", "psnr", "spectrum_error", "bytes"},
                                     set(document))
                self.assertEqual(document["bytes"], os.path.getsize(self.path("z.npz")))
                self.assertAlmostEqual(document["bits_per_point"], 8 * document["bytes"] / 1440)
                decoded = self.decode("--original", self.field)
                shape, omega = self.omega()
                self.assertEqual(shape, [1, 36, 40])
                worst = max(abs(a - b) for a, b in zip(omega, self.original()))
                self.assertLessEqual(worst, bound)
                self.assertEqual(decoded["max_error"], document["max_error"])
                self.check_errors(decoded)
                if bound == 0:
                    self.assertEqual(omega, self.original())
                    self.assertIsNone(document["psnr"])

    def test_counts_that_cannot_be_are_refused(self):
        self.encode("--max-error", "0.1")
        with zipfile.ZipFile(self.path("z.npz")) as archive:
            arrays = {name: archive.read(name) for name in archive.namelist()}
        old = arrays["header.npy"]
        length = struct.unpack("<H", old[8:10])[0]
        for frames, count in ((1, 0), (0, 1), (0, 0), (1, 2), (3, 2)):
            header = json.loads(old[10 + length:])
            header["frames"], header["members"] = frames, count
            text = json.dumps(header).encode()
            shape = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % len(text)
            shape += b" " * ((64 - (len(shape) + 11) % 64) % 64) + b"\n"
            with zipfile.ZipFile(self.path("bad.npz"), "w") as archive:
                for name, data in arrays.items():
                    archive.writestr(name, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(shape)) + shape + text if name == "header.npy" else data)
            self.refuses("flow", "decode", self.path("bad.npz"), *ON, "--out", self.path("f.npz"), saying="%d frames of %d members" % (frames, count))

    def test_latents(self):
        half = self.encode("--rank", "0.5")
        most = self.encode("--rank", "0.999")
        self.assertLess(half["latent_size"], most["latent_size"])
        self.assertGreater(half["relative_l2"], most["relative_l2"])
        self.assertEqual(members(self.path("z.npz"))["latent"][0], [1, most["latent_size"]])
        mean = self.decode("--original", self.field)
        drawn = self.decode("--decoder", "stochastic", "--original", self.field, out="drawn.npz")
        self.assertLess(mean["relative_l2"], drawn["relative_l2"])
        self.check_errors(mean)
        self.check_errors(drawn, "drawn.npz")

    def test_anchors_are_a_flag(self):
        published = self.encode("--codec", "classic", "--middle", "12", "--low", "5")
        used = self.encode("--codec", "classic", "--middle", "12", "--low", "5", "--anchors", "used")
        self.assertEqual(published["latent_size"], used["latent_size"])
        self.assertGreater(published["relative_l2"], used["relative_l2"])

    def test_a_run_of_members_keeps_its_axes(self):
        self.json_of("flow", "run", "--n", "16", "--steps", "4", "--save-every", "2", "--ensemble", "2", "--box", "6,12", "--format",
                     "npz", *ON, "--out", self.path("run"))
        self.encode("--max-error", "1e-3", source=self.path("run", "run.npz"))
        self.decode("--original", self.path("run", "run.npz"))
        found = members(self.path("fields.npz"))
        self.assertEqual(found["omega"][0], [3, 2, 16, 16])
        self.assertEqual(found["time"][1], members(self.path("run", "run.npz"))["time"][1])
        compared = self.json_of("flow", "compare", self.path("run", "run.npz"), self.path("fields.npz"))
        self.assertLess(compared["relative_l2"], 1e-2)

    def test_refusals(self):
        out = [*ON, "--out", self.path("bad.npz")]
        for more, saying in ((["--max-error", "-1"], "-1"), (["--max-error", "nan"], "nan"), (["--rank", "2"], "share of 2"),
                             (["--max-error", "1", "--rank", "0.9"], "--rank"), (["--codec", "classic", "--max-error", "1"], "classic"),
                             (["--codec", "classic", "--middle", "30"], "30"), (["--codec", "zip"], "zip"), (["--low", "3"], "--low"),
                             (["--max-error", "1", "--numerics", "fast"], "fast")):
            with self.subTest(more):
                self.refuses("flow", "encode", self.field, *more, *out, saying=saying)
        self.assertFalse(os.path.exists(self.path("bad.npz")))
        nan = npy(self.path("nan.npy"), [[float("nan") if (r, c) == (2, 5) else 1.0 for c in range(8)] for r in range(8)])
        self.refuses("flow", "encode", nan, *out, saying="frame 0 is not finite at point (y, x) = (2, 5)")
        self.refuses("flow", "encode", self.path("absent.npy"), *out, saying="absent.npy")
        self.refuses("flow", "encode", self.field, *ON, "--out", self.path("z.bin"), saying=".npz")
        self.encode("--max-error", "0.1")
        self.refuses("flow", "decode", self.path("z.npz"), "--decoder", "stochastic", *out, saying="stochastic")
        self.refuses("flow", "decode", self.path("z.npz"), *ON, "--out", self.path("x.tif"), saying=".nc or .npz")
        with open(self.path("z.npz"), "rb") as file:
            whole = file.read()
        with open(self.path("cut.npz"), "wb") as file:
            file.write(whole[:len(whole) // 2])
        self.refuses("flow", "decode", self.path("cut.npz"), *out, saying="cut.npz")
        # One byte of an array changed, with the archive's own sums made good again.
        with zipfile.ZipFile(io.BytesIO(whole)) as archive, zipfile.ZipFile(self.path("changed.npz"), "w") as changed:
            for name in archive.namelist():
                data = bytearray(archive.read(name))
                if name == "residual_code.npy":
                    data[-1] ^= 1
                changed.writestr(name, bytes(data))
        self.refuses("flow", "decode", self.path("changed.npz"), *out, saying="checksum")


if __name__ == "__main__":
    unittest.main()
