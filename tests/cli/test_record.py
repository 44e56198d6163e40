"""run.json, `reproduce` and `compare`: a run's record, the run again, two runs side by side."""
import base64
import hashlib
import json
import os
import struct
import subprocess
import unittest

import program
from program import ProgramTest, npy, run

FLOW = ("flow", "run", "--n", "16", "--steps", "4", "--dt", "0.01", "--device", "cpu", "--quiet")


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def whole(text):
    """Seconds as whole numbers: of a few numbers the program prints another text than Python, and a seal is of the text."""
    return int(float(text))


class RecordTest(ProgramTest):
    def flow(self, name="out", *more):
        done = run(*FLOW, "--format", "npz", "--out", self.path(name), *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(name)

    def record(self, folder):
        with open(os.path.join(folder, "run.json")) as file:
            return json.load(file)

    def test_a_record_has_its_members(self):
        record = self.record(self.flow())
        for member in ("program", "command", "options", "inputs", "device", "driver", "numerics", "started", "seconds",
                       "stages", "fallbacks", "warnings", "outputs", "identity"):
            self.assertIn(member, record)
        self.assertIn("commit", record["program"])
        self.assertEqual(record["command"], "lockstep flow run")
        self.assertEqual(record["options"]["n"], {"value": "16", "given": True})
        self.assertEqual(record["options"]["nu"], {"value": "0.0001", "given": False})
        (output,) = record["outputs"]
        self.assertEqual(output["path"], "run.npz")
        self.assertEqual(output["sha256"], digest(self.path("out", "run.npz")))
        self.assertEqual(output["bytes"], os.path.getsize(self.path("out", "run.npz")))

    def test_options_survive_json_and_toml(self):
        first = self.record(self.flow("a", "--closure", "smagorinsky:0.2", "--closure-form", "simple", "--hyper", "1e-6,2", "--forcing", "stochastic:3,0.5",
                                      "--forcing-seed", "9", "--box", "6,12", "--integrator", "etdrk4", "--precision", "f64", "--ensemble", "2", "--pictures"))
        given = {name: o["value"] for name, o in first["options"].items() if o["given"] and name not in ("out", "quiet")}
        self.assertLessEqual({"n", "closure", "hyper", "forcing", "forcing-seed", "box", "ensemble", "pictures", "steps"}, set(given))
        with open(self.path("run.toml"), "w") as file:
            file.write("[flow.run]\n")
            for name, value in given.items():
                file.write(f"{name} = {value if value == 'true' else json.dumps(value)}\n")
        done = run("flow", "run", "--config", self.path("run.toml"), "--out", self.path("b"), "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        second = self.record(self.path("b"))
        self.assertEqual(first["identity"], second["identity"])
        self.assertEqual({n: second["options"][n]["value"] for n in given}, given)

    def test_identity_follows_results_alone(self):
        first = self.record(self.flow("a"))
        self.assertEqual(first["identity"], self.record(self.flow("b", "--threads", "1"))["identity"])
        self.assertNotEqual(first["identity"], self.record(self.flow("c", "--nu", "0.001"))["identity"])
        self.assertNotEqual(first["identity"], self.record(self.flow("d", "--ic", "vortices"))["identity"])
        same = self.record(self.flow("e", "--nu", "0.00010", "--pictures", "--closure", "none", "--forcing", "none"))
        self.assertEqual(first["identity"], same["identity"], "the same values by other texts, and what only shows more")
        self.assertEqual(same["options"]["nu"], {"value": "0.0001", "given": True})
        self.assertEqual(first["options"]["closure-form"], {"value": "divergence", "given": False})

    def test_a_default_and_its_value_are_one(self):
        plain, given = ["flow", "run", "--steps", "2", "--quiet"], ["--n", "256"]
        for name, more in (("a", []), ("b", given)):
            done = run(*plain, *more, "--out", self.path(name))
            self.assertEqual(done.returncode, 0, done.stderr)
        first, second = self.record(self.path("a")), self.record(self.path("b"))
        self.assertEqual(first["options"]["n"], {"value": "256", "given": False})
        self.assertEqual(first["identity"], second["identity"])
        with open(self.path("a", "run.nc"), "rb") as file:
            self.assertIn(first["identity"].encode(), file.read(), "known before the first file")
        # The grid of a file, too.
        start = self.flow("start")
        source = ["--ic", os.path.join(start, "run.npz"), "--steps", "2", "--format", "npz", "--quiet"]
        for name, more in (("c", []), ("d", ["--n", "16"])):
            done = run("flow", "run", *source, *more, "--out", self.path(name))
            self.assertEqual(done.returncode, 0, done.stderr)
        third, fourth = self.record(self.path("c")), self.record(self.path("d"))
        self.assertEqual(third["options"]["n"]["value"], "16")
        self.assertEqual(third["identity"], fourth["identity"])

    def test_what_the_weather_decides_is_recorded(self):
        npy(self.path("dsm.npy"), [[9.0 if 4 <= r < 8 and 5 <= c < 9 else 0.0 for c in range(16)] for r in range(16)])
        with open(self.path("weather.csv"), "w") as file:
            file.write("time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,22,50,2,700\n2015-06-21T13:00,23,50,2,700\n")
        plain = ["urban", "run", "--dsm", self.path("dsm.npy"), "--pixel-size", "1", "--weather", self.path("weather.csv"), "--latitude", "57",
                 "--longitude", "12", "--utc-offset", "1", "--patches", "145", "--outputs", "tmrt", "--device", "cpu", "--quiet"]
        expected = {"elevation": "0", "wind-height": "10", "posture": "standing", "from": "2015-06-21T12:00", "to": "2015-06-21T13:00", "substeps": "6"}
        given = lambda values: [word for name, value in values.items() for word in ("--" + name, value)]
        for name, more in (("a", []), ("b", given(expected)), ("c", given({**expected, "elevation": "1"}))):
            done = run(*plain, *more, "--out", self.path(name))
            self.assertEqual(done.returncode, 0, done.stderr)
        first, second, third = (self.record(self.path(name)) for name in "abc")
        self.assertEqual({name: first["options"][name] for name in expected}, {name: {"value": value, "given": False} for name, value in expected.items()})
        self.assertEqual(first["options"]["leaf-days"], {"value": "", "given": False}, "a city without plants")
        self.assertEqual(first["identity"], second["identity"])
        self.assertNotEqual(first["identity"], third["identity"])
        with open(self.path("a", "run.nc"), "rb") as file:
            self.assertIn(first["identity"].encode(), file.read())

    def test_the_clock_of_measurements_is_recorded(self):
        npy(self.path("dsm.npy"), [[9.0 if 4 <= r < 8 and 5 <= c < 9 else 0.0 for c in range(16)] for r in range(16)])
        for name, text in (("weather.csv", "time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,22,50,2,700\n2015-06-21T13:00,23,50,2,700\n"),
                           ("measured.csv", "time,Tmrt\n2015-06-21T12:00,50\n2015-06-21T13:00,51\n"),
                           ("own.csv", "time,Tmrt\n2015-06-21T13:00+02:00,50\n2015-06-21T14:00+02:00,51\n"),
                           ("poi.csv", "id,x,y\np,2,2\n")):
            with open(self.path(name), "w") as file:
                file.write(text)
        plain = ["urban", "validate", "--dsm", self.path("dsm.npy"), "--pixel-size", "1", "--weather", self.path("weather.csv"), "--latitude", "57",
                 "--longitude", "12", "--utc-offset", "1", "--patches", "145", "--poi", self.path("poi.csv"), "--device", "cpu", "--quiet"]
        for name, measured, more, value in (("a", "measured.csv", [], "1"), ("b", "measured.csv", ["--measured-utc-offset", "1"], "1"),
                                            ("c", "own.csv", [], "2")):
            done = run(*plain, "--measured", self.path(measured), *more, "--out", self.path(name))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.record(self.path(name))["options"]["measured-utc-offset"], {"value": value, "given": bool(more)})
        self.assertEqual(self.record(self.path("a"))["identity"], self.record(self.path("b"))["identity"])

    def test_variants_that_differ_are_named(self):
        with open(self.path("variants.json"), "w") as file:
            file.write('{"format": 1, "rows": [{"computation": "flow.step", "device": "cpu", "steps": [[0, ["groups"]]]}]}')
        os.chmod(self.path("variants.json"), 0o600)
        own = {"LOCKSTEP_VARIANTS": self.path("variants.json")}
        self.assertEqual(run(*FLOW, "--format", "npz", "--out", self.path("b"), env=own).returncode, 0)
        first, second = self.flow("a"), self.path("b")
        step = lambda folder: [(v["variant"], v["by"]) for v in self.record(folder)["variants"] if v["computation"] == "flow.step"]
        self.assertEqual(step(first), [("vectors", "the shipped table for any")])
        self.assertEqual(step(second), [("groups", "the user's table for cpu")])
        line = "variant of flow.step: vectors → groups"
        result = self.json_of("compare", first, second)
        self.assertIn(line, result["differences"])
        self.assertEqual((result["identical"], result["same_identity"]), (1, True))
        self.assertIn("variant of flow.step: groups → vectors", self.json_of("reproduce", second)["since"])
        self.assertEqual([line for line in self.json_of("reproduce", first)["since"] if "variant" in line], [])

        def as_before(record):
            """The record of a version that noted neither variants nor what the inputs decide."""
            del record["variants"]
            self.assertEqual(record["options"]["history-every"], {"value": "", "given": False})
            record["options"]["history-every"]["value"] = "5"
        self.seal(self.path("b", "run.json"), as_before)
        result = self.json_of("compare", first, second)
        self.assertEqual([line for line in result["differences"] if not line.startswith("environment")], [], "nothing is known of the earlier version")
        self.seal(self.path("a", "run.json"), lambda record: record["variants"][0].update(variant=3))
        self.refuses("compare", first, second, saying="variant")

    def test_the_run_again(self):
        out = self.flow()
        before = self.contents(out)
        result = self.json_of("reproduce", out)
        self.assertEqual((result["identical"], result["different"]), (1, 0))
        self.assertEqual(result["files"][0]["differing_bits"], 0)
        self.assertEqual(before, self.contents(out))
        kept = self.json_of("reproduce", out, "--keep")["folder"]
        self.assertEqual(digest(os.path.join(kept, "run.npz")), digest(os.path.join(out, "run.npz")))
        self.addCleanup(program.shutil.rmtree, kept)

    def test_a_run_on_the_interpreter_has_the_same_bits(self):
        self.assertEqual(self.json_of("reproduce", self.flow(), "--device", "interp")["different"], 0)

    def test_an_error_of_the_second_run_is_json_too(self):
        done = run("reproduce", self.flow(), "--device", "toaster", "--json", "--quiet")
        self.assertEqual(done.returncode, 2)
        error = json.loads(done.stdout)["error"]
        self.assertEqual((error["what"], error["code"]), ('device "toaster"', 2))

    def test_an_input_that_changed_or_is_gone(self):
        start = program.npy(self.path("omega.npy"), [[float((r * c) % 7 - 3) for c in range(16)] for r in range(16)])
        done = run(*FLOW[:2], "--ic", start, *FLOW[4:], "--format", "npz", "--out", self.path("out"))
        self.assertEqual(done.returncode, 0, done.stderr)
        record = self.record(self.path("out"))
        self.assertEqual([(i["path"], i["sha256"]) for i in record["inputs"]], [(start, digest(start))])
        self.assertEqual(self.json_of("reproduce", self.path("out"))["different"], 0)
        program.npy(start, [[float((r + c) % 5 - 2) for c in range(16)] for r in range(16)])
        self.refuses("reproduce", self.path("out"), saying="an input has changed since the run [" + start)
        os.remove(start)
        self.refuses("reproduce", self.path("out"), saying="an input is missing [" + start)

    def test_records_that_were_edited_or_are_newer(self):
        out = self.flow()
        record = self.record(out)
        for change, saying in (({"numerics": "fast"}, "edited"),
                               ({"program": {"version": "99.0.0", "commit": ""}}, "version 99.0.0")):
            with open(self.path("out", "run.json"), "w") as file:
                json.dump({**record, **change}, file)
            self.refuses("reproduce", out, saying=saying)
        os.remove(self.path("out", "run.json"))
        self.refuses("reproduce", out, saying="run.json")

    def test_a_strangers_record_reaches_no_other_file(self):
        out, victim = self.flow(), self.path("victim.csv")
        with open(victim, "w") as file:
            file.write("precious")
        honest = json.loads(json.dumps(self.record(out)), parse_float=whole)
        for change, saying in (({"command": "lockstep bench"}, "a command of urban"),
                               ({"options": {"checkpoint": {"value": victim, "given": True}}}, ""),  # one of the scratch folder
                               ({"options": {f"out={victim}": {"value": "", "given": True}}}, "option 'out="),
                               ({"options": {f"telemetry={victim}": {"value": "", "given": True}}}, "option 'telemetry=")):
            record = {**honest, **change}
            record.pop("seal")
            record["options"] = {**honest["options"], **change.get("options", {})}
            text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
            record["seal"] = hashlib.sha256(text.encode()).hexdigest()
            with open(os.path.join(out, "run.json"), "w") as file:
                json.dump(record, file)
            done = run("reproduce", out)
            self.assertEqual(done.returncode, 2 if saying else 0, done.stderr)
            self.assertIn(saying, done.stderr)
            with open(victim) as file:
                self.assertEqual(file.read(), "precious")
        below = {"LOCKSTEP_OUTPUTS_BELOW": self.path("below")}
        self.refuses(*FLOW, "--out", self.path("beside"), env=below, saying="an output in")

    def test_an_output_that_was_changed(self):
        out = self.flow()
        with open(self.path("out", "run.npz"), "ab") as file:
            file.write(b"x")
        self.refuses("reproduce", out, saying="an output was changed after the run")

    def test_two_runs_side_by_side(self):
        result = self.json_of("compare", self.flow("a"), self.flow("b", "--nu", "0.001"))
        self.assertEqual(result["differences"], ["--nu: 0.0001 → 0.001"])
        self.assertEqual((result["identical"], result["different"]), (0, 1))
        self.assertGreater(result["files"][0]["max_abs"], 0)
        self.assertFalse(result["same_identity"])

    def test_names_that_end_like_times_are_compared(self):
        folders = [self.path(name) for name in "ab"]
        for number, folder in enumerate(folders):
            done = run("forecast", "train", "xor", "--steps", "5", "--device", "interp", "--quiet", "--out", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "log.csv"), "w") as file:  # `compare` takes what is there
                file.write(f"step,update,wall_s\n1,{number},{number}\n")
        rows = {row["path"]: row["verdict"] for row in self.json_of("compare", *folders)["files"]}
        self.assertEqual(rows["log.csv"], "different")
        with open(os.path.join(folders[1], "log.csv"), "w") as file:
            file.write("step,update,wall_s\n1,0,1\n")
        rows = {row["path"]: row["verdict"] for row in self.json_of("compare", *folders)["files"]}
        self.assertEqual(rows["log.csv"], "identical")

    def curve(self, out, *more, log="log.csv", env=None):
        if not os.path.exists(self.path("log.csv")):
            with open(self.path("log.csv"), "w") as file:
                file.write("step,loss\n" + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(80)))
        return run("forecast", "encode", self.path(log), "--device", "cpu", "--quiet", "--out", out, *more, env=env)

    def test_what_a_curve_decides_is_recorded(self):
        self.curve(self.path("log.npz"))
        plain = ["forecast", "curve", self.path("log.csv"), "--quiet"]
        records = []
        for name, more in (("a.png", lambda: []), ("b.png", lambda: ["--least-gain", records[0]["options"]["least-gain"]["value"]])):
            done = run(*plain, *more(), "--out", self.path(name))
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(self.path(name + ".run.json"), encoding="utf-8") as file:
                records.append(json.load(file))
        value, given = (record["options"]["least-gain"] for record in records)
        self.assertEqual((value["given"], given), (False, {"value": value["value"], "given": True}))
        self.assertEqual(records[0]["options"]["horizon"]["given"], False)
        # 1 % of the loss, from the last step to the horizon.
        level = 0.01 * 1.0125 / (float(records[0]["options"]["horizon"]["value"]) - 79)
        self.assertAlmostEqual(float(value["value"]) / level, 1, delta=0.05)
        self.assertEqual(records[0]["identity"], records[1]["identity"])

    def test_the_record_of_a_file(self):
        out = self.path("a.npz")
        self.assertEqual(self.curve(out).returncode, 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.npz", "a.npz.run.json", "log.csv"])
        with open(out + ".run.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file)["options"]["column"], {"value": "loss", "given": False})
        for results in (out, out + ".run.json"):
            result = self.json_of("reproduce", results)
            self.assertEqual((result["identical"], result["different"], [f["path"] for f in result["files"]]), (1, 0, ["a.npz"]))
        os.mkdir(self.path("moved"))
        for name in ("a.npz", "a.npz.run.json"):
            os.rename(self.path(name), self.path("moved", name))
        self.assertEqual(self.json_of("reproduce", self.path("moved", "a.npz"))["identical"], 1)
        with open(self.path("log.csv"), "a") as file:
            file.write("80,1\n")
        self.refuses("reproduce", self.path("moved", "a.npz"), saying="an input has changed since the run [" + self.path("log.csv"))
        os.remove(self.path("log.csv"))
        self.refuses("reproduce", self.path("moved", "a.npz"), saying="an input is missing [" + self.path("log.csv"))
        self.refuses("reproduce", self.path("none.npz"), saying="none.npz.run.json")

    def test_two_files_side_by_side(self):
        """Files of one option are counterparts under any names."""
        self.curve(self.path("a.npz"))
        self.curve(self.path("b.npz"), "--normalised")
        self.curve(self.path("c.npz"))
        different = self.json_of("compare", self.path("a.npz"), self.path("b.npz"))
        self.assertEqual((different["identical"], different["different"], different["same_identity"]), (0, 1, False))
        self.assertIn("--normalised: false → true", different["differences"])
        self.assertEqual(different["files"][0]["verdict"], "different")
        self.assertGreater(different["files"][0]["differing_bits"], 0)
        same = self.json_of("compare", self.path("a.npz"), self.path("c.npz"))
        self.assertEqual((same["identical"], same["different"], same["differences"]), (1, 0, []))

    def test_files_of_one_name_in_two_folders(self):
        os.mkdir(self.path("x"))
        os.mkdir(self.path("y"))
        from test_solve import ring2
        with open(self.path("ring.g2o"), "w") as file:
            file.write(ring2())
        done = run("solve", "g2o", self.path("ring.g2o"), "--device", "cpu", "--quiet", "--out", self.path("x", "r"), "--residuals", self.path("y", "r"))
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.json_of("reproduce", self.path("x", "r"))
        self.assertEqual([(f["path"], f["verdict"]) for f in result["files"]], [(self.path("y", "r"), "identical"), ("r", "identical")])

    def test_results_without_a_record(self):
        self.assertEqual(self.curve(self.path("a.npz"), "--no-record").returncode, 0)
        self.assertEqual(self.curve("/dev/null").returncode, 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.npz", "log.csv"])
        self.refuses("reproduce", self.path("a.npz"), saying="a.npz.run.json")
        self.refuses("forecast", "rollout", "--hidden", "8", "--steps", "2", "--no-record", saying="an option without effect [--no-record]")

    def test_a_record_that_cannot_be_written(self):
        """Refused before the work; nothing is left."""
        self.curve(self.path("a.npz"))
        os.rename(self.path("log.csv"), self.path("out.npz.run.json"))
        os.symlink(self.path("out.npz.run.json"), self.path("log.csv"))
        before = self.contents(self.folder)
        done = self.curve(self.path("out.npz"), log="out.npz.run.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is the record of the run", done.stderr)
        self.assertIn("--no-record", done.stderr)
        os.mkdir(self.path("b.npz.run.json"))
        done = self.curve(self.path("b.npz"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("b.npz.run.json", done.stderr)
        os.rmdir(self.path("b.npz.run.json"))
        long = self.path("n" * 245 + ".npz")
        done = self.curve(long)
        self.assertEqual(done.returncode, 2)
        self.assertIn("File name too long", done.stderr)
        self.assertEqual(self.contents(self.folder), before)
        self.assertEqual(self.curve(long, "--no-record").returncode, 0)

    def test_the_folder_of_another_command(self):
        """Its record is of its files: another command's replaces it, and a line says so."""
        folder = self.flow()
        pipeline = ("flow", "pipeline", "--n", "16", "--steps", "16", "--stride", "2", "--device", "cpu", "--out", folder)
        warning = f"{folder} holds results of `lockstep flow run`, whose record is replaced by that of `lockstep flow pipeline`"
        self.assertIn(warning, run(*pipeline).stderr)
        self.assertNotIn("is replaced", run(*pipeline).stderr)
        for text in ("{}", "[1]", "no JSON"):
            with open(os.path.join(folder, "run.json"), "w") as file:
                file.write(text)
            self.flow()

    def test_a_record_goes_through_no_link(self):
        victim = self.path("victim")
        with open(victim, "w") as file:
            file.write("precious")
        os.symlink(victim, self.path("a.npz.run.json"))
        self.assertEqual(self.curve(self.path("a.npz")).returncode, 0)
        with open(victim) as file:
            self.assertEqual(file.read(), "precious")
        self.assertFalse(os.path.islink(self.path("a.npz.run.json")))

    def test_names_that_are_not_text(self):
        folder = os.path.join(os.fsencode(self.folder), b"\xff\xfe ")
        os.mkdir(folder)
        log, out = os.path.join(folder, b"l\x80.csv"), os.path.join(folder, b"o\xc3.npz")
        with open(log, "w") as file:
            file.write("step,loss\n" + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(80)))
        def program_run(*words):
            return subprocess.run([program.PROGRAM, *words], capture_output=True, cwd=folder, stdin=subprocess.DEVNULL)
        done = program_run("forecast", "encode", b"l\x80.csv", "--device", "cpu", "--quiet", b"--out=" + out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out + b".run.json", encoding="utf-8") as file:
            record = json.load(file)
        self.assertEqual(base64.b64decode(record["inputs"][0]["path_base64"]), log)
        self.assertEqual(base64.b64decode(record["options"]["out"]["value_base64"]), out)
        self.assertEqual(base64.b64decode(record["directory_base64"]), folder)
        done = program_run("reproduce", out, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["identical"], 1)
        os.rename(log, log + b"x")
        done = program_run("reproduce", out)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"an input is missing", done.stderr)

    def seal(self, path, change):
        """A record that was changed by someone who knows how to seal it."""
        with open(path, encoding="utf-8") as file:
            record = json.load(file, parse_float=whole)
        change(record)
        record.pop("seal")
        record["seal"] = hashlib.sha256(json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record, file, ensure_ascii=False)

    def test_bytes_that_are_no_base64(self):
        self.curve(self.path("a.npz"))
        for text in ("*", "YQ", "YR==", "AA==", 5):
            self.seal(self.path("a.npz.run.json"), lambda record: record["inputs"][0].update(path_base64=text))
            self.refuses("reproduce", self.path("a.npz"), saying="a.npz.run.json")

    def test_files_of_another_version_with_the_same_numbers(self):
        """What a file says of its program does not count."""
        out = self.path("a.npz")
        self.curve(out)
        with open(out, "rb") as file:
            data = file.read()
        at = data.index(b'"program":"Lockstep ') + 20
        with open(out, "wb") as file:
            file.write(data[:at] + b"9" + data[at + 1:])
        self.seal(out + ".run.json", lambda record: record["outputs"][0].update(sha256=digest(out)))
        result = self.json_of("reproduce", out)
        self.assertEqual((result["identical"], result["files"][0]["differing_bits"]), (1, 0))

    def test_bounds_of_fast_numerics(self):
        """1e-4 of the largest magnitude of an array, of a column and of the numbers of a member."""
        out = self.path("out")
        done = run("flow", "pipeline", "--n", "16", "--steps", "40", "--strides", "2", "--rank", "0.9", "--dt", "0.01", "--pictures", "--device", "cpu", "--quiet",
                   "--numerics", "fast", "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("out", "metrics.json")) as file:
            honest = json.load(file)

        def changed(share):
            metrics = json.loads(json.dumps(honest))
            metrics["runs"][0]["frames"] *= 1 + share
            with open(self.path("out", "metrics.json"), "w") as file:
                json.dump(metrics, file)
            def sealed(record):
                for entry in record["outputs"]:
                    if entry["path"] == "metrics.json":
                        entry.update(sha256=digest(self.path("out", "metrics.json")))
            self.seal(self.path("out", "run.json"), sealed)
            done = run("reproduce", out, "--json", "--quiet")
            rows = {row["path"]: row["verdict"] for row in json.loads(done.stdout)["files"]}
            self.assertIn(rows.pop("omega_simulated.png"), ("identical", "within bound"))
            return done.returncode, rows["metrics.json"]
        self.assertEqual(changed(5e-5), (0, "within bound"))
        self.assertEqual(changed(1e-3), (1, "different"))

    def test_arrays_within_a_bound(self):
        out = self.path("out")
        done = run("pde", "example", "heat", "--cells", "16", "--windows", "1", "--device", "cpu", "--quiet", "--numerics", "fast", "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = self.path("out", "t.npy")
        with open(path, "rb") as file:
            data = file.read()
        values = [value for (value,) in struct.iter_unpack("<d", data[10 + struct.unpack("<H", data[8:10])[0]:])]
        largest = max(map(abs, values))
        for share, expected in ((1e-6, (0, "within bound")), (1e-2, (1, "different"))):
            with open(path, "wb") as file:
                file.write(data[:-8] + struct.pack("<d", values[-1] + share * largest))
            self.seal(self.path("out", "run.json"), lambda record: [entry.update(sha256=digest(path)) for entry in record["outputs"] if entry["path"] == "t.npy"])
            done = run("reproduce", out, "--json", "--quiet")
            (row,) = [row for row in json.loads(done.stdout)["files"] if row["path"] == "t.npy"]
            self.assertEqual((done.returncode, row["verdict"]), expected)
            self.assertAlmostEqual(row["max_abs"], share * largest)

    def test_a_run_that_goes_on_has_the_record_of_one_that_never_stopped(self):
        whole = self.record(self.flow("whole", "--save-every", "2", "--pictures", "--checkpoint", self.path("w.npz")))
        stopped = ("--save-every", "2", "--pictures", "--checkpoint", self.path("c.npz"))
        done = run("flow", "run", "--n", "16", "--steps", "2", "--dt", "0.01", "--device", "cpu", "--quiet", "--format", "npz", "--out", self.path("out"), *stopped)
        self.assertEqual(done.returncode, 0, done.stderr)
        resumed = self.record(self.flow("out", *stopped))
        self.assertEqual(resumed["identity"], whole["identity"])
        self.assertEqual(resumed["inputs"], [])
        results = lambda record: {(o["path"], o["sha256"]) for o in record["outputs"] if "option" not in o}
        self.assertEqual(results(resumed), results(whole))
        self.assertEqual(self.json_of("reproduce", self.path("out"))["different"], 0)

    def test_a_name_that_is_nearly_right(self):
        self.assertIn("did you mean reproduce?", self.refuses("reprduce", "x").stderr)


if __name__ == "__main__":
    unittest.main()
