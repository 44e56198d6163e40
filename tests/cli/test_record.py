"""run.json, `reproduce` and `compare`: a run's record, the run again, two runs side by side."""
import hashlib
import json
import os
import unittest

import program
from program import ProgramTest, run

FLOW = ("flow", "run", "--n", "16", "--steps", "4", "--dt", "0.01", "--device", "cpu", "--quiet")


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


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
        # The grid of a file, too.
        start = self.flow("start")
        source = ["--ic", os.path.join(start, "run.npz"), "--steps", "2", "--format", "npz", "--quiet"]
        for name, more in (("c", []), ("d", ["--n", "16"])):
            done = run("flow", "run", *source, *more, "--out", self.path(name))
            self.assertEqual(done.returncode, 0, done.stderr)
        third, fourth = self.record(self.path("c")), self.record(self.path("d"))
        self.assertEqual(third["options"]["n"]["value"], "16")
        self.assertEqual(third["identity"], fourth["identity"])

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
        honest = self.record(out)
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

    def test_a_name_that_is_nearly_right(self):
        self.assertIn("did you mean reproduce?", self.refuses("reprduce", "x").stderr)


if __name__ == "__main__":
    unittest.main()
