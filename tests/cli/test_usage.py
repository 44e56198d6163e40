"""Options, help, errors, configuration files: what holds for every command."""
import json
import os
import pathlib
import re
import subprocess
import unittest

from program import PROGRAM, ProgramTest, npy, run

COMMANDS = [["devices"], ["verify"], ["bench"], ["tune"], ["emit"], ["report"], ["urban", "shadows"], ["urban", "walls"],
            ["urban", "svf"], ["urban", "sample"], ["urban", "utci"], ["urban", "pet"], ["completion"]]
COMMON = ["--device", "--threads", "--no-fallback", "--numerics", "--json", "--quiet", "--check", "--config", "--input-memory", "--telemetry",
          "--trace", "--help"]


class Usage(ProgramTest):
    def test_every_command_has_help_with_an_example_and_all_common_options(self):
        for command in COMMANDS + [["compare"]]:
            done = run(*command, "--help")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Usage: lockstep " + " ".join(command) + " [", done.stdout)
            self.assertIn("Example:\n  ", done.stdout)
            self.assertIn("lockstep " + " ".join(command), done.stdout.split("Example:")[1])
            for option in COMMON:
                self.assertIn(option, done.stdout, command)
            self.assertEqual(done.stderr, "")

    def test_version_and_plain_help(self):
        lines = run("--version").stdout.splitlines()
        self.assertRegex(lines[0], r"^lockstep \d+\.\d+\.\d+$")
        found = json.loads(run("--version", "--json").stdout)
        self.assertEqual(json.loads(run("--json", "--version").stdout), found)
        self.assertEqual(lines[1:], ["commit " + found["commit"], "back ends: " + ", ".join(found["back_ends"])])
        self.assertEqual(lines[0], "lockstep " + found["version"])
        self.assertTrue(found["commit"])
        self.refuses("--version", "--nonsense", saying="--nonsense")
        self.assertEqual(run("--help").returncode, 0)
        self.assertEqual(run().stdout, run("--help").stdout)

    def test_help_of_a_command(self):
        self.assertEqual(run("help").stdout, run("--help").stdout)
        for command in ["urban"], ["urban", "run"], ["devices"]:
            done = run("help", *command)
            self.assertEqual((done.returncode, done.stdout), (0, run(*command, "--help").stdout))
        self.assertIn("did you mean verify?", self.refuses("help", "verfy", saying="unknown command 'verfy'").stderr)
        self.refuses("urban", "svg", "--help", saying="unknown command 'svg'")

    def test_ranges_in_help_are_those_of_the_errors(self):
        def all_of(command):
            return [command, *(below for child in command.get("commands", []) for below in all_of(child))]

        def values(text):
            """(refused, not refused) by what a help text states."""
            if found := re.search(r"(?<![\d.])(\d+) to (\d+)", text):
                return [int(found[1]) - 1, int(found[2]) + 1], []
            if found := re.search(r"\bat most (\d+)$", text):
                return [int(found[1]) + 1], []
            if found := re.search(r"\babove (\d+)$", text):
                return [int(found[1])], []
            found = re.search(r"\ba divisor of (\d+)$", text)
            return [], [int(found[1])] if found else []

        stated = {}
        for command in all_of(json.loads(run("help", "--json").stdout)):
            for option in command.get("options", []):
                text = re.sub(r" \(default.*\)$", "", option["help"])
                if option["kind"] == "value" and any(values(text)):
                    stated[option["name"], text] = command["command"].split()[1:]
        self.assertGreaterEqual(len(stated), 4, stated)
        for (name, text), command in stated.items():
            refused, fine = values(text)
            for value in refused:
                self.assertIn(f"[{name}]", self.refuses(*command, f"{name}={value}", saying="expected").stderr, text)
            for value in fine:
                self.assertNotIn(f"[{name}]", run(*command, f"{name}={value}").stderr, text)

    def test_help_as_a_document(self):
        def all_of(command):
            return [command, *(below for child in command.get("commands", []) for below in all_of(child))]

        commands = {c["command"]: c for c in all_of(json.loads(run("help", "--json").stdout))}
        for words in ["urban", "run"], ["solve", "fit"], ["completion"], ["verify"]:
            command = json.loads(run(*words, "--help", "--json").stdout)
            self.assertEqual(command, commands["lockstep " + " ".join(words)])
            text = run(*words, "--help").stdout
            self.assertEqual(text.splitlines()[0], command["help"])
            self.assertEqual(text.split("Example:\n")[1].splitlines()[0].strip(), command["example"])
            listed = {name for line in text.split("Example:")[0].splitlines() if line.startswith("  -")
                      for name in line.split()[0].split(",") if name.startswith("--")}
            found = {name for o in command["options"] for name in [o["name"], *o.get("aliases", [])] if name.startswith("--")}
            self.assertEqual(found, listed - {"--help"})
            for option in command["options"]:
                self.assertEqual(option["kind"] == "flag", "value" not in option, option)
                if "positional" not in option:
                    line = next(k for k in text.splitlines() if re.match(rf"  [-\w,]*{option['name']}\b(?!-)", k))
                    self.assertEqual(option.get("required", False), " REQUIRED" in line)
        options = {o["name"]: o for o in commands["lockstep urban run"]["options"]}
        self.assertEqual([options[o]["kind"] for o in ("--dsm", "--out", "--telemetry", "--trunk-ratio", "--no-pictures")],
                         ["input", "output folder", "output file", "value", "flag"])
        self.assertEqual((options["--numerics"]["choices"], options["--numerics"]["default"]), (["exact", "fast"], "exact"))
        self.assertFalse(options["--trace"]["changes_results"])

    def test_common_options_before_the_command(self):
        sample = ["urban", "sample", "--size", "8", "--no-pictures", "--format", "npy", "--out"]
        after = run(*sample, self.path("a"), "--json", "--device", "interp", "--quiet")
        before = run("--json", "--device", "interp", "--quiet", *sample, self.path("b"))
        self.assertEqual((before.returncode, before.stderr), (0, after.stderr))
        self.assertEqual(json.loads(before.stdout).keys(), json.loads(after.stdout).keys())
        identities = [json.loads(pathlib.Path(self.path(name, "run.json")).read_text())["identity"] for name in "ab"]
        self.assertEqual(identities[0], identities[1])
        self.refuses("--size", "8", "urban", "sample", saying="unknown option '--size'")
        self.refuses("--device=gpu", "verify", saying="[--device]")
        for command in (["devices"], ["emit", "--list"], ["urban", "utci", "--ta", "20", "--rh", "50", "--wind", "1", "--tmrt", "20"]):
            for device in ("gpu", "cuda:x", "cpu,", "cuda:all"):
                self.refuses(*command, "--device", device, saying="[--device]: expected auto, cpu, cuda[:N], webgpu[:N] or interp")

    def test_unknown_words_are_refused_with_the_nearest_known_one(self):
        self.assertIn("did you mean verify?", self.refuses("verfy", saying="unknown command 'verfy'").stderr)
        self.assertIn("did you mean --device?", self.refuses("verify", "--devise", "cpu", saying="unknown option '--devise'").stderr)
        self.refuses("urban", saying="no command [lockstep urban]: expected one of shadows, walls, svf, umep, sample")
        self.refuses("urban", "svg", saying="unknown command 'svg'")
        self.refuses("--nonsense", saying="unknown option")
        self.refuses("devices", "extra", saying="unknown argument 'extra'")

    def test_bad_values_of_common_options(self):
        self.refuses("verify", "--threads", "x", saying="'x' [--threads]: expected a whole number from 0 to 65536")
        self.refuses("verify", "--threads", "-1", saying="[--threads]")
        self.refuses("verify", "--numerics", "loose", saying="'loose' [--numerics]: expected one of exact|fast")
        self.refuses("verify", "--device", "gpu", saying="[--device]: expected auto, cpu, cuda[:N], webgpu[:N] or interp")
        self.refuses("verify", "--device", "cuda:x", saying="[--device]")
        self.refuses("verify", "--device", "", saying="[--device]")
        self.refuses("verify", "--device", saying="--device")

    def test_outputs_that_cannot_be_written(self):
        npy(self.path("d.npy"), [[1.0, 2.0], [3.0, 4.0]])
        base = ["urban", "walls", "--dsm", self.path("d.npy"), "--pixel-size", "1", "--device", "cpu"]
        self.refuses(*base, "--out", self.path("d.npy"), saying="expected a folder")
        self.refuses(*base, "--out", self.path("o"), "--format", "npy", "--telemetry", self.folder, saying="[" + self.folder)
        self.refuses(*base, "--out", self.path("o"), "--format", "npy", "--trace", self.path("d.npy", "t.json"), saying="d.npy")

    def test_config_file_fills_options_and_the_command_line_wins(self):
        config = self.path("c.toml")
        with open(config, "w") as file:
            file.write('device = "interp"\n[emit]\nlist = true\n[urban.sample]\nsize = 16\nseed = 5\nformat = "npy"\nno-pictures = true\n')
        done = run("emit", "--config", config)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("engine.copy", done.stdout)
        document = self.json_of("urban", "sample", "--config", config, "--out", self.path("s"), "--seed", "9")
        self.assertEqual((document["rows"], document["seed"]), (16, 9))
        self.assertTrue(all(grid["picture"] == "" for grid in document["outputs"]))

    def test_a_result_says_what_was_asked_for(self):
        npy(self.path("d.npy"), [[1.0, 2.0], [3.0, 4.0]])
        config = self.path("c.toml")
        with open(config, "w") as file:
            file.write('pixel-size = 2\nno-pictures = true\n')
        document = self.json_of("urban", "walls", "--dsm", self.path("d.npy"), "--config", config, "--device", "interp", "--out", self.path("o"))
        self.assertEqual(document["command"], "lockstep urban walls")
        self.assertEqual(document["inputs"]["dsm"], self.path("d.npy"))
        asked = document["options"]
        self.assertEqual((asked["pixel-size"], asked["no-pictures"], asked["out"], asked["device"]), ("2", "true", self.path("o"), "interp"))
        self.assertNotIn("dsm", asked)
        self.assertNotIn("tile", asked)

    def test_a_config_file_names_no_other(self):
        config = self.path("c.toml")
        with open(config, "w") as file:
            file.write('config = "d.toml"\n')
        self.refuses("devices", "--config", config, saying="option 'config' in a file [" + config + ":1]: expected --config on the command line")

    def test_an_option_takes_one_value(self):
        twice = ["urban", "sample", "--size", "16", "--seed", "1", "--seed", "2", "--out", self.path("s")]
        self.refuses(*twice, saying="two values, '1' and '2' [--seed]: expected one of them")
        self.refuses("verify", "--threads", "1", "--threads=2", saying="two values, '1' and '2' [--threads]")
        self.assertEqual(run("verify", "engine.copy", "--device", "cpu", "--threads", "2", "--threads", "2").returncode, 0)
        # In a file the table of a command goes before the values of all.
        config = self.path("c.toml")
        with open(config, "w") as file:
            file.write("seed = 1\nquiet = true\n[urban.sample]\nseed = 2\nsize = 16\n")
        self.assertEqual(self.json_of("urban", "sample", "--config", config, "--out", self.path("s"))["seed"], 2)

    def test_an_earlier_name_works_and_says_the_new_one(self):
        npy(self.path("d.npy"), [[0.0] * 8] * 3 + [[2.0] * 8] * 5)
        walls = ["urban", "walls", "--dsm", self.path("d.npy"), "--pixel-size", "1", "--format", "npy", "--no-pictures", "--device", "cpu"]
        told = {}
        for name in ("--minimum-height", "--wall-limit"):
            done = run(*walls, name, "1", "--out", self.path(name))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("--wall-limit is now called --minimum-height"), name == "--wall-limit")
            with open(self.path(name, "run.json")) as file:
                told[name] = json.load(file)
            with open(self.path(name, "wall_height.npy"), "rb") as file:
                told[name]["bytes"] = file.read()
        old, new = told["--wall-limit"], told["--minimum-height"]
        self.assertEqual((old["bytes"], old["identity"]), (new["bytes"], new["identity"]))
        self.assertEqual(old["options"]["minimum-height"], {"value": "1", "given": True})
        self.assertNotIn("wall-limit", old["options"])
        self.refuses(*walls, "--wall-limit", "1", "--minimum-height", "1", "--out", self.path("both"), saying="--wall-limit with --minimum-height")
        self.refuses(*walls, "--wall-limit", "-1", "--out", self.path("low"), saying="[--minimum-height]")
        self.assertNotIn("--wall-limit", run("urban", "walls", "--help").stdout + run("completion", "bash").stdout)

    def test_an_earlier_name_in_a_config_file(self):
        npy(self.path("d.npy"), [[0.0] * 8] * 3 + [[2.0] * 8] * 5)
        config = self.path("c.toml")
        with open(config, "w") as file:
            file.write("wall-limit = 1\n")
        walls = ["urban", "walls", "--dsm", self.path("d.npy"), "--pixel-size", "1", "--format", "npy", "--no-pictures", "--device", "cpu",
                 "--config", config, "--out", self.path("o")]
        done = run(*walls)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--wall-limit is now called --minimum-height", done.stderr)
        for name in ("--minimum-height", "--wall-limit"):  # the command line wins, by either name
            with self.subTest(name=name):
                done = run(*walls, name, "3")
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(self.path("o", "run.json")) as file:
                    self.assertEqual(json.load(file)["options"]["minimum-height"]["value"], "3")

    def test_config_mistakes_name_file_and_line(self):
        config = self.path("c.toml")
        for text, saying in (('devise = "cpu"\n', "unknown option 'devise' [%s:1]" % config),
                             ('\n[verfy]\na = 1\n', "unknown command 'verfy'"),
                             ('json = 1\n', "an integer for 'json' [%s:1]: expected true or false" % config),
                             ('device = \n', "found in key-value pair [%s:1]: expected value" % config),
                             ('device = true\n', "a boolean for 'device'"),
                             ('threads = "many"\n', "'many' [--threads]")):
            with open(config, "w") as file:
                file.write(text)
            self.refuses("verify", "--config", config, saying=saying)
        self.refuses("verify", "--config", self.path("none.toml"), saying="none.toml")

    def test_common_options_in_a_file_hold_for_commands_that_print(self):
        config = self.path("c.toml")
        for text, saying in (('device = "cpu"\njson = true\n', None), ('[devices]\ndevice = "cpu"\njson = true\n', None),
                             ("seed = 1\n", "unknown option 'seed'")):
            with open(config, "w") as file:
                file.write(text)
            if saying:
                self.refuses("devices", "--config", config, saying=saying)
            else:
                json.loads(run("devices", "--config", config).stdout)

    def test_files_where_others_are_expected(self):
        dsm = npy(self.path("dsm.npy"), [[1, 2], [3, 4]])
        self.refuses("urban", "svf", dsm, saying="--dsm and --out are missing [lockstep urban svf]: expected the options that")
        self.refuses("urban", "utci", "--ta", "30", saying="--rh, --wind and --tmrt are missing [lockstep urban utci]")
        self.refuses("pde", "loss", "x.npz", "--dt", "1", saying="--spacing is missing [lockstep pde loss]")
        self.assertIn(f"hint: '{dsm}' is the value of no option\n", run("urban", "svf", dsm).stderr)
        self.assertNotIn("hint", run("urban", "svf").stderr)
        self.refuses("urban", "run", "--dsm", dsm, "--pixel-size", "1", "--lat", "57", "--lon", "12", "--weather", dsm, "--utc-offset", "1",
                     "--out", self.path("day"), saying=f"the file is not a text file [{dsm}]: expected weather: EPW")

    def test_a_closed_stdout_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "devices"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("[stdout]", done.stderr)


class Report(ProgramTest):
    def test_one_page_with_everything_inside(self):
        run("urban", "sample", "--size", "24", "--format", "npy", "--out", self.path("r"), "--telemetry", self.path("r", "t.jsonl"))
        with open(self.path("r", "b.json"), "w") as file:
            json.dump({"device": "cpu", "copy_gbps": 10.0, "results": [
                {"case": "a<b", "size": s, "dtype": "f32", "median_ms": m, "share_of_copy": 0.5} for s, m in (("16x16", 1.0), ("64x64", 9.0))]}, file)
        with open(self.path("r", "c.csv"), "w") as file:
            file.write('name,value\r\n"Sveavägen, ""north"" side",1\r\nplain,"two\nlines"\r\n')
        with open(self.path("r", "s.json"), "w") as file:
            json.dump({"sun": {"azimuth": 225.5, "altitude": 35}, "device": "cpu:0", "inputs": {"dsm": "city/dsm.tif"},
                       "options": {"tile": 512, "outputs": ["svf", "walls"]}, "version": "1.2.3", "date": "2026-01-02T03:04:05Z"}, file)
        with open(self.path("r", "poi.csv"), "w") as file:
            file.write("id,time,Ta,utci\nsquare,2015-06-21T14:00,30,39.5\nsquare,2015-06-21T15:00,31,40\n")
        # Files of `urban run` in folders of their own: pictures of the steps, and a film next to them.
        os.mkdir(self.path("r", "pictures"))
        os.rename(self.path("r", "dem.png"), self.path("r", "pictures", "dem.png"))
        with open(self.path("r", "day.mp4"), "wb") as file:
            file.write(b"film")
        document = self.json_of("report", self.path("r"))
        with open(document["file"]) as file:
            page = file.read()
        self.assertIn("38 to 46, very strong heat stress: 2 h", page.split("poi.csv")[1])
        self.assertIn('src="data:video/mp4;base64,ZmlsbQ=="', page)
        self.assertEqual(page.count("data:image/png;base64,"), 4)
        self.assertIn("a&lt;b", page)
        self.assertNotIn("a<b", page)
        self.assertIn("<svg", page)
        for name in ("b.json", "t.jsonl", "c.csv", "s.json"):
            self.assertIn(name, page)
        self.assertIn('<td>Sveavägen, &quot;north&quot; side</td><td class="n">1</td>', page)
        self.assertIn("<td>plain</td><td>two\nlines</td>", page)
        facts = re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page.split("s.json")[1])
        self.assertEqual(facts[:2], [("version", "1.2.3"), ("date", "2026-01-02T03:04:05Z")])
        self.assertEqual(dict(facts)["sun azimuth"], "225.5")
        self.assertEqual(dict(facts)["inputs dsm"], "city/dsm.tif")
        self.assertEqual(dict(facts)["options outputs"], "svf, walls")
        # Each picture has its own switch, which a click on it throws.
        switches = re.findall(r'<input type="checkbox" id="([^"]+)"><label for="([^"]+)"><img', page)
        self.assertEqual(len({identity for identity, target in switches if identity == target}), 4)
        for outside in ("http://", "https://", "src=\"/", "<script", "<link"):
            self.assertNotIn(outside, page)

    def test_nothing_to_report(self):
        self.refuses("report", self.path("none"), saying="no such folder")
        self.refuses("report", self.folder, saying="nothing to report")
        self.refuses("report", saying="DIR is missing")
        with open(self.path("broken.json"), "w") as file:
            file.write("{")
        self.assertEqual(run("report", self.folder).returncode, 0)
        self.assertTrue(os.path.exists(self.path("report.html")))


if __name__ == "__main__":
    unittest.main()
