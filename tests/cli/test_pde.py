"""pde loss, trajectory, study, example."""
import csv
import json
import math
import os
import random
import struct
import unittest
import zipfile

from program import ProgramTest, run

NX, NY, NZ = 9, 7, 6
CELLS = NX * NY * NZ
PLACE = ("--spacing", "0.1,0.2,0.3", "--dt", "0.05")


def npy_header(descr, shape):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, tuple(shape))
    header += " " * ((64 - (len(header) + 11) % 64) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def npy_bytes(descr, shape, values):
    code = {"<f8": "d", "<f4": "f", "<i4": "i", "|b1": "?"}[descr]
    return npy_header(descr, shape) + struct.pack("<%d%s" % (len(values), code), *values)


def write_npz(path, arrays):
    with zipfile.ZipFile(path, "w") as file:
        for name, (descr, shape, values) in arrays.items():
            file.writestr(name + ".npy", npy_bytes(descr, shape, values))
    return path


def read_npz(path):
    """Name to (descr, shape, values)."""
    found = {}
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            data = file.read(name)
            (length,) = struct.unpack("<H", data[8:10])
            header = eval(data[10:10 + length])  # The program's own output.
            count = math.prod(header["shape"])
            code = {"<f8": "d", "<f4": "f"}[header["descr"]]
            found[name[:-4]] = (header["descr"], header["shape"], struct.unpack("<%d%s" % (count, code), data[10 + length:]))
    return found


def frames(seed=1, descr="<f8", mask=False):
    rand = random.Random(seed)
    number = (lambda: rand.randint(-9, 9)) if descr == "<i4" else (lambda: rand.uniform(-1, 1))
    arrays = {}
    for level in range(3):
        arrays["sigma%d" % level] = (descr, (NZ, NY, NX), [number() for _ in range(CELLS)])
        arrays["u%d" % level] = (descr, (3, NZ, NY, NX), [number() for _ in range(3 * CELLS)])
    if mask:
        arrays["mask"] = (descr, (NZ, NY, NX), [float(rand.random() > 0.5) for _ in range(CELLS)])
    return arrays


class PdeTest(ProgramTest):
    def loss(self, arrays, *more, name="in.npz"):
        write_npz(self.path(name), arrays)
        out = () if "none" in more else ("--out", self.path("out.npz"))
        document = self.json_of("pde", "loss", self.path(name), *PLACE, *out, *more)
        self.check_summary(document)
        self.assertLessEqual({"loss", "loss_sigma", "loss_u"}, set(document))
        return document, read_npz(self.path("out.npz")) if out else {}

    def assert_close(self, got, want, tolerance):
        scale = max(max(map(abs, values)) for _, _, values in want.values())
        self.assertEqual(set(got), set(want))
        for name in want:
            self.assertEqual(got[name][:2], want[name][:2])
            worst = max(abs(a - b) for a, b in zip(got[name][2], want[name][2]))
            self.assertLessEqual(worst, tolerance * scale, name)

    def test_arrays_that_no_run_uses_take_no_memory(self):
        arrays = frames()
        write_npz(self.path("large.npz"), arrays)
        with zipfile.ZipFile(self.path("large.npz"), "a", zipfile.ZIP_DEFLATED) as file:
            with file.open("notes.npy", "w") as member:
                member.write(npy_header("<f8", (1 << 23,)))
                for _ in range(64):
                    member.write(bytes(1 << 20))
        done = run("pde", "loss", self.path("large.npz"), *PLACE, "--input-memory", "16M")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("large.npz: not used: notes", done.stderr)
        quiet = run("pde", "loss", self.path("large.npz"), *PLACE, "--input-memory", "16M", "--quiet")
        self.assertIn("large.npz: not used: notes", quiet.stderr)



class Loss(PdeTest):
    def test_paths_agree_on_every_device(self):
        for boundary in ("periodic", "x=no_slip,y-=dirichlet_face:1.0,y+=clamp,z=one_sided2"):
            arrays = frames(mask=boundary != "periodic")
            want_json, want = self.loss(arrays, "--boundary", boundary, "--kernel", "reference")
            self.assertEqual(set(want), {"d_sigma0", "d_sigma1", "d_sigma2", "d_u0", "d_u1", "d_u2"})
            for device in ("interp", "cpu"):
                if device == "cpu" and run("devices").stdout.count("cpu") == 0:
                    continue
                for kernel in ("auto", "two-kernel", "fused"):
                    document, got = self.loss(arrays, "--boundary", boundary, "--kernel", kernel, "--device", device)
                    self.assert_close(got, want, 1e-12)
                    for member in ("loss", "loss_sigma", "loss_u"):
                        self.assertAlmostEqual(document[member], want_json[member], delta=1e-12 * want_json[member])

    def test_gradient_is_the_slope_of_the_loss(self):
        arrays = frames(3)
        _, gradients = self.loss(arrays, "--weights", "1.5,0.5", "--order", "4", "--boundary", "x=clamp")
        slope, step = 0.0, 1e-4
        rand = random.Random(8)
        direction = {name: [rand.uniform(-1, 1) for _ in values] for name, (_, _, values) in arrays.items()}
        for name in arrays:
            slope += sum(g * d for g, d in zip(gradients["d_" + name][2], direction[name]))
        values = []
        for sign in (1, -1):
            moved = {name: (a, b, [x + sign * step * d for x, d in zip(c, direction[name])]) for name, (a, b, c) in arrays.items()}
            values.append(self.loss(moved, "--weights", "1.5,0.5", "--order", "4", "--boundary", "x=clamp", "--gradients", "none")[0]["loss"])
        numeric = (values[0] - values[1]) / (2 * step)
        self.assertAlmostEqual(slope, numeric, delta=1e-6 * abs(numeric))

    def test_types_subsets_and_terms(self):
        _, got = self.loss(frames(descr="<f4"), "--gradients", "t1")
        self.assertEqual({name: value[:2] for name, value in got.items()}, {"d_sigma1": ("<f4", (NZ, NY, NX)), "d_u1": ("<f4", (3, NZ, NY, NX))})
        _, got = self.loss(frames(), "--gradients", "t1t2")
        self.assertEqual(set(got), {"d_sigma1", "d_u1", "d_sigma2", "d_u2"})
        document, got = self.loss(frames(), "--terms", "transport")
        self.assertEqual(document["loss_u"], 0)
        self.assertEqual(set(got), {"d_sigma0", "d_sigma1", "d_sigma2", "d_u0", "d_u1", "d_u2"})
        self.assertEqual(set(got["d_u0"][2]), {0.0})
        all_and_more, _ = self.loss(frames(), "--terms", "all,viscosity:0.1")
        listed, _ = self.loss(frames(), "--terms", "transport,compression,momentum,viscosity:0.1")
        self.assertEqual(all_and_more["loss"], listed["loss"])

    def test_masks_of_other_types(self):
        arrays = frames(mask=True)
        want, _ = self.loss(arrays)
        for descr in ("<f4", "|b1"):
            values = [bool(v) if descr == "|b1" else v for v in arrays["mask"][2]]
            got, _ = self.loss({**arrays, "mask": (descr, (NZ, NY, NX), values)})
            self.assertEqual(got["loss"], want["loss"])

    def test_a_path_that_cannot_do_it(self):
        write_npz(self.path("in.npz"), frames())
        command = ("pde", "loss", self.path("in.npz"), *PLACE, "--boundary", "x=one_sided2", "--kernel", "fused", "--quiet")
        done = run(*command, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("two-kernel is used", done.stderr)
        self.assertEqual(json.loads(done.stdout)["kernel"], "two-kernel")
        self.refuses(*command, "--no-fallback", saying="fused", code=3)
        document, _ = self.loss(frames(), "--terms", "momentum,viscosity:0.1,divergence:2,speed:0.5")
        self.assertEqual(document["loss_sigma"], 0)
        self.assertGreater(document["loss_divergence"], 0)
        self.assertAlmostEqual(document["loss"], document["loss_u"] + document["loss_divergence"] + document["loss_speed"], delta=1e-12 * document["loss"])

    def test_faults(self):
        write_npz(self.path("in.npz"), frames(descr="<f4"))
        command = ("pde", "loss", self.path("in.npz"), *PLACE)
        fault = {"LOCKSTEP_FAULT": "pde.loss:launch"}
        done = run(*command, "--device", "interp", "--no-fallback", env=fault)
        self.assertEqual(done.returncode, 3, done.stderr)
        if not any(d["kind"] == "webgpu" and d["available"] for d in self.json_of("devices")["devices"]):
            self.skipTest("no WebGPU adapter")
        want = self.json_of(*command, "--device", "cpu")["loss"]
        document = self.json_of(*command, "--device", "webgpu", env=fault)
        self.assertEqual(document["loss"], want)
        self.assertEqual(document["fallbacks"], {"pde.loss": 1})
        self.assertIn("[GPU] pde.loss failed: ", run(*command, "--device", "webgpu", env=fault).stderr)


class Check(PdeTest):
    def test_rows_json_and_exit_codes(self):
        path = write_npz(self.path("in.npz"), frames(mask=True))
        for device in ("interp", "cpu"):
            for arguments in (["--boundary", "x-=dirichlet_face:@lid,x+=clamp,z=one_sided2", "--parameters", "lid=0.4"],
                              ["--terms", "all,viscosity:0.1,speed:2", "--seed", "5"]):
                document = self.json_of("pde", "check", path, *PLACE, *arguments, "--device", device)
                self.check_summary(document)
                self.assertIs(document["passed"], True)
                rows = {row["what"]: row for row in document["checks"]}
                self.assertLessEqual({"residuals", "loss", "J v", "gradient by u at level +0"}, set(rows))
                self.assertEqual("gradient by parameter lid" in rows, "--parameters" in arguments)
                self.assertTrue(all(row["passed"] and row["error"] <= row["bound"] < 1e-12 for row in rows.values()))
        self.assertIn("gradient by sigma at level +0", run("pde", "check", path, *PLACE).stdout)

    def test_a_loss_beyond_its_type_fails(self):
        arrays = frames()
        descr, shape, values = arrays["sigma1"]
        arrays["sigma1"] = (descr, shape, [1e200 * x for x in values])
        path = write_npz(self.path("in.npz"), arrays)
        document = self.json_of("pde", "check", path, *PLACE, "--device", "interp", code=1)
        self.assertIs(document["passed"], False)
        self.assertIn(None, [row["error"] for row in document["checks"]])
        self.assertEqual(run("pde", "check", path, *PLACE, "--seed", "-1").returncode, 2)


class Sides(PdeTest):
    """Boundaries by component, values of sides by name, and derivatives by them."""
    BOX = "x-=dirichlet_face:@west,x+=clamp,y=no_slip,z-=clamp,z+=ghost:@top"

    def given(self, seed=5):
        rand = random.Random(seed)
        return {"west": ("<f8", (NZ, NY), [rand.uniform(-1, 1) for _ in range(NZ * NY)]), "top": ("<f8", (), [0.7])}

    def test_names_are_numbers(self):
        arrays = frames(2)
        want_json, want = self.loss(arrays, "--boundary", "x-=dirichlet_face:0.3,x+=clamp,y=no_slip,z-=clamp,z+=ghost:0.7", "--kernel", "reference")
        flat = {"west": ("<f8", (NZ, NY), [0.3] * (NZ * NY)), "top": ("<f8", (), [0.7])}
        by_file, got = self.loss({**arrays, **flat}, "--boundary", self.BOX)
        self.assertAlmostEqual(by_file["loss"], want_json["loss"], delta=1e-12 * want_json["loss"])
        self.assert_close({k: v for k, v in got.items() if k in want}, want, 1e-12)
        self.assertEqual(set(got) - set(want), {"d_west", "d_top"})
        by_option, _ = self.loss({**arrays, "west": flat["west"]}, "--boundary", self.BOX, "--parameters", "top=0.7")
        self.assertEqual(by_option["loss"], by_file["loss"])

    def test_derivatives_by_values(self):
        # The residuals are linear in a side's values, so the loss is quadratic and central differences are exact.
        arrays, given = frames(4, mask=True), self.given()
        command = ("--boundary", self.BOX, "--terms", "all,viscosity:0.3,divergence:2", "--weights", "1.5,0.5")
        document, got = self.loss({**arrays, **given}, *command)
        def at(name, k, by):
            moved = {**given, name: (*given[name][:2], [v + by * (i == k) for i, v in enumerate(given[name][2])])}
            return self.loss({**arrays, **moved}, *command, "--gradients", "none")[0]["loss"]
        for name, k in (("west", 3), ("west", 40), ("top", 0)):
            slope = at(name, k, 0.5) - at(name, k, -0.5)
            self.assertAlmostEqual(got["d_" + name][2][k], slope, delta=1e-9 * (1 + abs(slope)), msg=name)
        self.assertAlmostEqual(document["by_number"]["top"], got["d_top"][2][0], delta=1e-12)
        loss_at = lambda nu: self.loss({**arrays, **given}, *(c.replace("0.3,", nu + ",") for c in command), "--gradients", "none")[0]["loss"]
        self.assertAlmostEqual(document["by_number"]["viscosity"], (loss_at("0.8") - loss_at("0.2")) / 0.6 - 0.4 * (loss_at("0.8") - 2 * loss_at("0.5") + loss_at("0.2")) / 0.18,
                               delta=1e-8 * abs(document["by_number"]["viscosity"]))

    def test_components(self):
        arrays = frames(6)
        # A vector at a wall that does not let it slip is three odd components; one that slips is odd along its normal.
        for vector, components in (("no_slip", ("reflect_odd",) * 3), ("x=free_slip,y=clamp,z=clamp", ("x=reflect_odd,y=clamp,z=clamp", "clamp", "clamp"))):
            want, wanted = self.loss(arrays, "--boundary", vector)
            own = [word for name, spec in zip(("ux", "uy", "uz"), components) for word in ("--boundary-" + name, spec)]
            common = "clamp"  # of sigma: even
            got, gradients = self.loss(arrays, "--boundary", common, *own)
            self.assertAlmostEqual(got["loss"], want["loss"], delta=1e-12 * want["loss"])
            self.assert_close(gradients, wanted, 1e-12)
            one, _ = self.loss(arrays, "--boundary", vector, "--boundary-uz", vector, "--boundary-sigma", vector)
            self.assertAlmostEqual(one["loss"], want["loss"], delta=1e-12 * want["loss"])
        lid, _ = self.loss(arrays, "--boundary", "no_slip", "--boundary-ux", "x=reflect_odd,y-=reflect_odd,y+=dirichlet_face:@lid,z=reflect_odd", "--parameters", "lid=0")
        still, _ = self.loss(arrays, "--boundary", "no_slip")
        self.assertAlmostEqual(lid["loss"], still["loss"], delta=1e-12 * still["loss"])

    def test_values_in_time(self):
        frames_of = [frames(k) for k in (1, 2)]
        sigma, u = ([a[name + str(k)][2] for a in frames_of for k in range(3)][:5] for name in ("sigma", "u"))
        rand = random.Random(9)
        west, top = ([[rand.uniform(-1, 1) for _ in range(n)] for _ in range(5)] for n in (NZ * NY, 1))
        write_npz(self.path("run.npz"), {"sigma": ("<f8", (5, NZ, NY, NX), sum(sigma, [])), "u": ("<f8", (5, 3, NZ, NY, NX), sum(u, [])),
                                         "west": ("<f8", (5, NZ, NY), sum(west, [])), "top": ("<f8", (5,), sum(top, []))})
        document = self.json_of("pde", "trajectory", self.path("run.npz"), *PLACE, "--boundary", self.BOX, "--out", self.path("t.npz"))
        got = read_npz(self.path("t.npz"))
        total, d_west = 0.0, [0.0] * (5 * NZ * NY)
        for n in range(1, 4):
            one = {"west": ("<f8", (NZ, NY), west[n]), "top": ("<f8", (), top[n])}
            for level in range(3):
                one["sigma%d" % level] = ("<f8", (NZ, NY, NX), sigma[n - 1 + level])
                one["u%d" % level] = ("<f8", (3, NZ, NY, NX), u[n - 1 + level])
            single, gradients = self.loss(one, "--boundary", self.BOX)
            total += single["loss"]
            d_west[n * NZ * NY:(n + 1) * NZ * NY] = gradients["d_west"][2]
            self.assertAlmostEqual(got["d_top"][2][n], gradients["d_top"][2][0], delta=1e-9)
        self.assertAlmostEqual(document["loss"], total, delta=1e-12 * total)
        self.assert_close({"d_west": got["d_west"]}, {"d_west": ("<f8", (5, NZ, NY), tuple(d_west))}, 1e-12)
        self.assertEqual(got["d_top"][2][0], 0)

    def test_residual_fields(self):
        arrays = frames(7, mask=True)
        document, _ = self.loss(arrays, "--weights", "2,3", "--residuals", self.path("r.npz"))
        fields = read_npz(self.path("r.npz"))
        self.assertEqual({k: v[1] for k, v in fields.items()}, {"r_sigma": (NZ, NY, NX), "r_u": (3, NZ, NY, NX)})
        mask = arrays["mask"][2]
        for name, weight in (("sigma", 2), ("u", 3)):
            want = weight / CELLS * sum(mask[i % CELLS] * r * r for i, r in enumerate(fields["r_" + name][2]))
            self.assertAlmostEqual(document["loss_" + name], want, delta=1e-12 * want)

    def test_refusals(self):
        good = {**frames(), **self.given()}
        path = write_npz(self.path("in.npz"), good)
        command = ("pde", "loss", path, *PLACE)
        self.refuses(*command, "--boundary", "x=ghost:@north", saying="no array north")
        self.refuses(*command, "--parameters", "lid=1", saying="parameter lid that no boundary names")
        self.refuses(*command, "--boundary", self.BOX, "--parameters", "top=1", saying="a parameter and an array top")
        self.refuses(*command, "--boundary", self.BOX, "--parameters", "top", saying="--parameters")
        self.refuses(*command, "--boundary", "y=ghost:@west", saying="west")
        self.refuses(*command, "--boundary", "x=ghost:@sigma0", saying="array sigma0 of shape")
        self.refuses(*command, "--boundary", self.BOX, "--kernel", "reference", saying="the reference")
        self.refuses(*command, "--boundary-ux", "clamp", "--kernel", "reference", saying="the reference")
        self.refuses(*command, "--boundary-ux", "x=wall", saying="wall")
        self.refuses(*command, "--boundary-ux", "x=clamp", saying="periodic")
        self.refuses(*command, "--boundary-p", "periodic", saying="--boundary-p")
        self.refuses(*command, "--boundary-sigma", "periodic", "--terms", "momentum", saying="--boundary-sigma")
        self.refuses(*command, "--residuals", path, saying="is the input")
        self.refuses(*command, "--residuals", self.path("o.npz"), "--out", self.path("o.npz"), saying="--out")
        write_npz(path, {**good, "top": ("<f8", (), [math.nan])})
        self.refuses(*command, "--boundary", self.BOX, saying="array top is not finite")


class Refusals(PdeTest):
    def refuses_loss(self, arrays, *more, saying=""):
        write_npz(self.path("bad.npz"), arrays)
        with open(self.path("out.npz"), "wb") as file:
            file.write(b"before")
        arguments = ["pde", "loss", self.path("bad.npz"), *(more if "--dt" in more else PLACE + more), "--out", self.path("out.npz")]
        self.refuses(*arguments, saying=saying)
        with open(self.path("out.npz"), "rb") as file:
            self.assertEqual(file.read(), b"before")

    def test_arrays(self):
        good = frames()
        without = dict(good)
        del without["u2"]
        self.refuses_loss(without, saying="u2")
        self.refuses_loss(frames(descr="<i4"), saying="i32")
        self.refuses_loss({**good, "sigma0": ("<f8", (NZ, NY, NX + 1), [0.0] * (NZ * NY * (NX + 1)))}, saying="sigma0")
        self.refuses_loss({**good, "u1": ("<f8", (2, NZ, NY, NX), [0.0] * (2 * CELLS))}, saying="u1")
        self.refuses_loss({**good, "u1": ("<f4", (3, NZ, NY, NX), [0.0] * (3 * CELLS))}, saying="u1")
        self.refuses_loss({**good, "mask": ("<f8", (NZ, NY, NX - 1), [0.0] * (NZ * NY * (NX - 1)))}, saying="mask")
        self.refuses_loss({**good, "sigma1": ("<f8", (CELLS,), [0.0] * CELLS)}, saying="sigma1")
        self.refuses("pde", "loss", self.path("absent.npz"), *PLACE, saying="absent.npz")
        write_npz(self.path("whole.npz"), good)
        with open(self.path("whole.npz"), "rb") as file:
            data = file.read()
        for length in (0, 10, len(data) // 2, len(data) - 30):
            with open(self.path("cut.npz"), "wb") as file:
                file.write(data[:length])
            self.refuses("pde", "loss", self.path("cut.npz"), *PLACE, saying="cut.npz")

    def test_values(self):
        good = frames()
        for value in (math.nan, math.inf):
            values = list(good["sigma1"][2])
            values[NX + 2] = value
            self.refuses_loss({**good, "sigma1": ("<f8", (NZ, NY, NX), values)}, saying="sigma1 is not finite at (0, 1, 2)")
        mask = [1.0] * CELLS
        mask[1] = -1.0
        self.refuses_loss({**good, "mask": ("<f8", (NZ, NY, NX), mask)}, saying="mask is -1 at (0, 0, 1)")

    def test_outputs(self):
        write_npz(self.path("in.npz"), frames())
        with open(self.path("in.npz"), "rb") as file:
            before = file.read()
        command = ("pde", "loss", self.path("in.npz"), *PLACE)
        self.refuses(*command, "--out", self.path("in.npz"), saying="is the input")
        self.refuses(*command, "--out", os.path.join(self.folder, ".", "in.npz"), saying="is the input")
        with open(self.path("in.npz"), "rb") as file:
            self.assertEqual(file.read(), before)
        self.refuses(*command, "--gradients", "none", "--out", self.path("o.npz"), saying="--gradients none")

    def test_numbers_and_names(self):
        good = frames()
        for spacing in ("0.1,0.2", "0.1,0.2,0", "0.1,-1,1", "nan,1,1", "1,1,1e999", "a,b,c"):
            self.refuses_loss(good, "--spacing", spacing, "--dt", "0.1", saying="--spacing")
        for dt in ("0", "-1", "nan", "inf", "x"):
            self.refuses_loss(good, "--spacing", "1,1,1", "--dt", dt, saying="--dt")
        self.refuses_loss(good, "--order", "3", saying="--order")
        self.refuses_loss(good, "--boundary", "wall", saying="wall")
        self.refuses_loss(good, "--boundary", "x-=clamp", saying="x")
        self.refuses_loss(good, "--weights", "1", saying="--weights")
        self.refuses_loss(good, "--weights=-1,1", saying="--weights")
        self.refuses_loss(good, "--terms", "gravity", saying="gravity")
        self.refuses_loss(good, "--kernel", "magic", saying="--kernel")
        self.refuses("pde", "example", "weather", "--out", self.path("x"), saying="weather")
        self.refuses("pde", "study", "--sizes", "2", saying="--sizes")
        self.refuses("pde", "study", "--boundaries", "periodic,clamp", saying="two rules")
        self.refuses_loss(good, "--boundary", "periodic,clamp", saying="two rules")

    def test_a_grid_too_small_for_a_stencil(self):
        thin = {name: (a, (*b[:-1], 2), c[:math.prod(b[:-1]) * 2]) for name, (a, b, c) in frames().items()}
        self.refuses_loss(thin, "--boundary", "x=one_sided2", saying="2 cells along x")
        self.refuses_loss(thin, "--boundary", "x=one_sided2", "--kernel", "reference", saying="2 cells along x")


class Trajectory(PdeTest):
    def test_three_levels_are_one_loss(self):
        arrays = frames()
        want_json, want = self.loss(arrays)
        write_npz(self.path("run.npz"), {"sigma": ("<f8", (3, NZ, NY, NX), sum((arrays["sigma%d" % k][2] for k in range(3)), [])),
                                         "u": ("<f8", (3, 3, NZ, NY, NX), sum((arrays["u%d" % k][2] for k in range(3)), []))})
        document = self.json_of("pde", "trajectory", self.path("run.npz"), *PLACE, "--out", self.path("t.npz"))
        self.check_summary(document)
        self.assertAlmostEqual(document["loss"], want_json["loss"], delta=1e-12 * want_json["loss"])
        got = read_npz(self.path("t.npz"))
        self.assertEqual(got["d_sigma"][1], (3, NZ, NY, NX))
        self.assertEqual(got["d_u"][1], (3, 3, NZ, NY, NX))
        joined = {"d_sigma": ("<f8", (3, NZ, NY, NX), sum((want["d_sigma%d" % k][2] for k in range(3)), ())),
                  "d_u": ("<f8", (3, 3, NZ, NY, NX), sum((want["d_u%d" % k][2] for k in range(3)), ()))}
        self.assert_close(got, joined, 1e-12)

    def test_two_levels_are_refused(self):
        write_npz(self.path("run.npz"), {"sigma": ("<f8", (2, NZ, NY, NX), [0.0] * (2 * CELLS)), "u": ("<f8", (2, 3, NZ, NY, NX), [0.0] * (6 * CELLS))})
        self.refuses("pde", "trajectory", self.path("run.npz"), *PLACE, saying="2 levels")
        self.refuses("pde", "trajectory", self.path("run.npz"), *PLACE, "--gradients", "t1", saying="--gradients")
        self.refuses("pde", "trajectory", self.path("run.npz"), *PLACE, "--kernel", "reference", saying="--kernel")


class StudyAndExample(PdeTest):
    def test_study_writes_a_table(self):
        document = self.json_of("pde", "study", "--sizes", "8", "--boundaries", "periodic;x=clamp,z=one_sided2", "--iterations", "2", "--device", "interp",
                                "--csv", self.path("s.csv"))
        self.check_summary(document)
        with open(self.path("s.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 4)
        self.assertEqual([r["kernel"] for r in rows], ["two-kernel", "fused"] * 2)
        for row in rows[:2]:
            self.assertGreater(float(row["median_ms"]), 0)
            self.assertEqual(float(row["bytes"]), 96 * 512)
        self.assertIn("fused", rows[3]["skipped"])

    def test_study_of_tiles_graphs_and_trajectories(self):
        document = self.json_of("pde", "study", "--sizes", "16", "--boundaries", "periodic", "--iterations", "2", "--device", "cpu", "--kernels",
                                "two-kernel,fused,trajectory", "--tiles", "16x4x2,8x4x1x4x2", "--gradients", "all,t1", "--graph", "--levels", "4",
                                "--csv", self.path("s.csv"))
        rows = document["results"]
        self.assertEqual([(r["kernel"], r["tile"], r["gradients"]) for r in rows],
                         [(k, t, g) for g in ("all", "t1") for k, t in
                          (("two-kernel", ""), ("fused", "16x4x2"), ("fused", "8x4x1x4x2"), ("trajectory", "16x4x2"),
                           ("trajectory", "8x4x1x4x2"))])
        self.assertEqual([r["skipped"] for r in rows], [""] * 10)
        self.assertEqual([rows[0]["bytes"], rows[5]["bytes"]], [96 * 4096, 64 * 4096])
        for bad in ("16x4", "16x4x2x1x1x1x1", "ax4x2", "16x-4x2", "3x5x1"):
            self.refuses("pde", "study", "--sizes", "16", "--kernels", "fused", "--boundaries", "periodic", "--device", "interp", "--tiles", bad, saying="tile")
        self.refuses("pde", "study", "--sizes", "16", "--gradients", "t3", saying="--gradients")
        self.refuses("pde", "study", "--sizes", "16", "--kernels", "magic", saying="--kernels")

    def test_convergence_has_the_orders_of_the_differences(self):
        document = self.json_of("pde", "convergence", "--sizes", "12,24", "--out", self.path("c.svg"), "--csv", self.path("c.csv"))
        self.check_summary(document)
        self.assertEqual(len(document["observed"]), 8)
        for row in document["observed"]:
            self.assertAlmostEqual(row["observed"], row["order"], delta=0.12 * row["order"])
        with open(self.path("c.svg")) as file:
            svg = file.read()
        self.assertEqual(svg.count("stroke-dasharray"), 8)  # four lines, and their strokes in the legend
        self.assertIn(">order 8: ", svg)
        with open(self.path("c.csv"), newline="") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 16)
        self.refuses("pde", "convergence", "--sizes", "4", saying="--sizes")

    def test_example_takes_parameters(self):
        document = self.json_of("pde", "example", "cavity", "--cells", "16", "--parameters", "nu=0.02,lid=0.5", "--out", self.path("c"))
        self.assertTrue(document["converged"])
        self.assertGreater(os.path.getsize(self.path("c/u.npy")), 2 * 16 * 16 * 8)
        self.refuses("pde", "example", "cavity", "--parameters", "speed=1", "--out", self.path("c"), saying="lid (1), nu (0.01)")
        self.refuses("pde", "example", "cavity", "--levels", "8", "--out", self.path("c"), saying="no time")

    def test_example_solves_and_draws(self):
        document = self.json_of("pde", "example", "wave", "--cells", "16", "--windows", "2", "--levels", "5", "--out", self.path("e"))
        self.check_summary(document)
        self.assertLess(document["loss"][-1], 1e-6 * document["loss_start"][-1])
        self.assertTrue(os.path.getsize(self.path("e", "wave.png")) > 1000)
        self.assertTrue(os.path.exists(self.path("e", "w.npy")))


if __name__ == "__main__":
    unittest.main()
