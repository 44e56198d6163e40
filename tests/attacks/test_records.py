#!/usr/bin/env python3
"""Records of strangers: what `reproduce` and `compare` do with a run.json that was written by hand, its seal made good again."""
import base64
import hashlib
import json
import os
import unittest

import attacks

RUN = ("flow", "run", "--n", "16", "--steps", "2", "--format", "npz", "--device", "cpu", "--quiet")


class Planted(attacks.Attack):
    def setUp(self):
        super().setUp()
        self.record, self.results = self.path("run", "run.json"), self.path("run")
        self.make()
        with open(self.record, encoding="utf-8") as file:
            # Whole seconds: of a few numbers the program prints another text than Python, and a seal is of the text.
            self.honest = json.load(file, parse_float=lambda text: int(float(text)))
        os.mkdir(self.path("home"))
        self.secret = self.write("home/secret", "precious")

    def make(self):
        self.survives(*RUN, "--out", self.path("run"), codes=(0,))

    def plant(self, change):
        record = json.loads(json.dumps(self.honest))
        change(record)
        record.pop("seal", None)
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
        record["seal"] = hashlib.sha256(text.encode()).hexdigest()
        with open(self.record, "w", encoding="utf-8") as file:
            json.dump(record, file, ensure_ascii=False)

    def reproduces(self, change, codes=(2,), saying="run.json"):
        self.plant(change)
        watched = [self.path("home"), self.path("run")]
        before = [attacks.snapshot(folder) for folder in watched]
        done = self.survives("reproduce", self.results, codes=codes, env={"TMPDIR": self.folder}, data=1 << 30, seconds=30)
        if done.returncode == 2:
            self.assertIn(saying.encode(), done.stderr)
            self.assertIn(b"expected", done.stderr)
        self.assertEqual([attacks.snapshot(folder) for folder in watched], before)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("lockstep-reproduce")], [], "the scratch folder is removed")
        return done

    def option(self, name, value, **marks):
        return lambda record: record["options"].update({name: {"value": value, "given": True, **marks}})

    def output(self, path, **more):
        return lambda record: record["outputs"].append({"path": path, "bytes": 8, "sha256": "0" * 64, **more})


class Records(Planted):
    def test_the_record_that_the_others_change_is_good(self):
        self.reproduces(lambda record: None, codes=(0,))

    def test_members_of_other_types(self):
        for name in ("command", "options", "inputs", "device", "driver", "numerics", "outputs", "identity", "directory"):
            for value in (None, 1, [1], {"a": 1}, [{"path": 1}], {"n": {"value": 1, "given": "yes"}}):
                with self.subTest(member=name, value=value):
                    if not (name in ("inputs", "outputs") and value == []):
                        self.reproduces(lambda record, n=name, v=value: record.update({n: v}))
        for program in (None, "1.0", {"version": 5}, {"version": None}, {}):
            self.reproduces(lambda record, p=program: record.update({"program": p}))

    def test_missing_members(self):
        for name in ("command", "options", "inputs", "device", "numerics", "outputs", "identity", "program"):
            self.reproduces(lambda record, n=name: record.pop(n))

    def test_newer_versions(self):
        for version in ("99.0.0", "99999999999999999999.0.0", "0.999999999999999999999.1"):
            self.reproduces(lambda record, v=version: record.update({"program": {"version": v, "commit": ""}}), saying="version")

    def test_commands_that_write_no_records(self):
        for command in ("lockstep bench", "lockstep emit", "lockstep report", "lockstep reproduce", "sh -c id", "lockstep flow run; id", "lockstep flow",
                        "lockstep", "", "lockstep flow run --out /tmp/x", "../lockstep flow run", "lockstep  flow run"):
            with self.subTest(command=command):
                self.reproduces(lambda record, c=command: record.update({"command": c}))

    def test_options_that_the_command_does_not_have(self):
        for name in (f"out={self.secret}", f"telemetry={self.secret}", f"checkpoint={self.secret}", "n=16 ", "", "-", "-n", "help", "version", "no such", "\u001b[2J"):
            with self.subTest(option=name):
                self.reproduces(self.option(name, "true"))

    def test_outputs_elsewhere(self):
        """The record calls an output an input, or the other way round; only the command knows."""
        for marks in ({}, {"file": True}, {"output": True}, {"positional": True}):
            for name in ("checkpoint", "video"):
                with self.subTest(option=name, marks=marks):
                    self.reproduces(self.option(name, self.secret, **marks), codes=(0, 1, 2), saying="")
        for name in ("out", "telemetry", "trace", "config", "watch"):
            with self.subTest(option=name):
                self.reproduces(self.option(name, self.secret) if name != "watch" else self.option("checkpoint", ".."), codes=(0, 1, 2), saying="")

    def test_devices_pipes_and_the_network_as_inputs(self):
        os.mkfifo(self.path("pipe"))
        for value in ("/dev/zero", "/dev/stdin", "/dev/tty", self.path("pipe"), "/vsicurl/http://127.0.0.1:9/x.tif", "http://127.0.0.1:9/x.npy",
                      "/vsis3/bucket/x", "a,/dev/zero", "a,/vsimem/x"):
            with self.subTest(value=value):
                self.reproduces(self.option("ic", value), saying="run.json")

    def test_outputs_that_are_no_files_of_the_folder(self):
        os.symlink(self.secret, self.path("run", "link.npz"))
        os.symlink(self.path("home"), self.path("run", "linked"))
        os.mkfifo(self.path("run", "pipe.npz"))
        for path in ("../home/secret", "a/../../home/secret", "link.npz", "linked/secret", "pipe.npz", "/dev/zero", "/dev/stdin"):
            with self.subTest(path=path):
                self.reproduces(self.output(path), saying="linked" if path == "linked/secret" else os.path.basename(path))
                self.refuses("compare", self.path("run"), self.path("run"), data=1 << 30, seconds=30)

    def test_a_record_that_is_a_link(self):
        os.rename(self.path("run", "run.json"), self.path("home", "run.json"))
        os.symlink(self.path("home", "run.json"), self.path("run", "run.json"))
        self.refuses("reproduce", self.path("run"), names="run.json")
        os.remove(self.path("run", "run.json"))
        os.symlink("/dev/zero", self.path("run", "run.json"))
        self.refuses("reproduce", self.path("run"), names="run.json", data=1 << 30, seconds=30)

    def test_one_output_over_and_over(self):
        def change(record):
            record["outputs"] *= 3
        self.reproduces(change)

    def test_thousands_of_outputs(self):
        def change(record):
            record["outputs"] += [{"path": f"{k}.npz", "bytes": (1 << 63) - 1, "sha256": ""} for k in range(5000)]
        self.reproduces(change, codes=(1,))

    def test_lines_that_pretend(self):
        def change(record):
            record["driver"] = "x\nreproduced\n\u001b[2J"
            record["outputs"].append({"path": "a\nreproduced\n.npz", "bytes": 1, "sha256": ""})
        done = self.reproduces(change, codes=(1,))
        self.assertNotIn(b"\nreproduced\n", done.stdout)

    def test_json_of_a_run_that_fails(self):
        self.plant(self.option("dt", "x"))
        done = self.survives("reproduce", self.path("run"), "--json", codes=(2,))
        self.assertEqual(json.loads(done.stdout)["error"]["where"], "--dt")

    def test_checkpoints_of_other_programs(self):
        """An identity that names an option twice, and one that is deep, long or no record at all."""
        identities = [b"", b"[]", b"{}", b"[" * 10_000, b"\xff" * 100, b'{"command":"flow run","options":[' + b"{}," * 1000 + b"{}]}",
                      json.dumps({"command": "flow run", "inputs": [], "hash": "", "options": [
                          {"name": "n", "value": "16", "given": True, "effect": "result"}] * 2}).encode(), b" " * (2 << 20)]
        for identity in identities:
            file = self.write("c.npz", attacks.zip_bytes([("identity.npy", attacks.npy_bytes((len(identity),), identity, "|u1"))]))
            with self.subTest(identity=identity[:50]):
                self.refuses(*RUN, "--checkpoint", file, "--out", self.path("new"), names="c.npz", data=1 << 30, seconds=30)


class RecordsOfFiles(Planted):
    def make(self):
        os.mkdir(self.path("run"))
        log = self.write("log.csv", "step,loss\n" + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(60)))
        self.results, self.record = self.path("run", "f.npz"), self.path("run", "f.npz.run.json")
        self.survives("forecast", "encode", log, "--device", "cpu", "--quiet", "--out", self.results, codes=(0,))

    def test_the_record_that_the_others_change_is_good(self):
        self.reproduces(lambda record: None, codes=(0,))

    def test_outputs_elsewhere(self):
        for path in ("../home/secret", "../secret.html", "/dev/zero", self.secret, "..", ".", "run.json", "f.npz/x"):
            with self.subTest(path=path):
                self.reproduces(lambda record, p=path: record["outputs"][0].update(path=p), codes=(1, 2), saying="")
                self.reproduces(self.output(path, option="telemetry"), codes=(0, 1, 2), saying="")
                self.reproduces(self.option("out", path), codes=(0, 1, 2), saying="")

    def test_bytes_of_names(self):
        encode = lambda data: base64.b64encode(data).decode()
        for data in (b"../home/secret", self.secret.encode(), b"", b"a\0b", b"/dev/zero", b"\xff" * 5000):
            for change in (lambda record: record["outputs"][0].update(path_base64=encode(data)), lambda record: record["inputs"][0].update(path_base64=encode(data)),
                           lambda record: record["options"]["out"].update(value_base64=encode(data)), lambda record: record["options"]["log"].update(value_base64=encode(data)),
                           lambda record: record.update(directory_base64=encode(data))):
                with self.subTest(data=data[:20]):
                    self.reproduces(change, codes=(0, 1, 2), saying="")

    def test_members_of_other_types(self):
        for value in (None, 1, ["out"], {"a": 1}):
            self.reproduces(lambda record, v=value: record["outputs"][0].update(option=v))
            self.reproduces(lambda record, v=value: record["outputs"][0].update(path_base64=v))
            self.reproduces(lambda record, v=value: record.update(directory_base64=v))

    def test_a_record_that_is_a_link(self):
        os.rename(self.record, self.path("home", "run.json"))
        os.symlink(self.path("home", "run.json"), self.record)
        self.refuses("reproduce", self.results, names="f.npz.run.json")
        self.refuses("compare", self.results, self.results, names="f.npz.run.json")


if __name__ == "__main__":
    unittest.main()
