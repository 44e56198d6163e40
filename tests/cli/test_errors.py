"""Every command with wrong words: exit code 2, the error as JSON where that was requested, and nothing written."""
import concurrent.futures
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import zipfile

from program import ERROR_LINE, PROGRAM, npy, run

# Words by which a command is complete. {x} is an input of setUpClass, {out} a name in an empty folder.
TERRAIN = ["--dsm", "{dsm}", "--pixel-size", "1", "--device", "cpu"]
SIMULATION = ["--n", "16", "--steps", "2", "--device", "cpu", "--out", "{out}"]
RADIATION = [*TERRAIN, "--weather", "{weather}", "--utc-offset", "1", "--lat", "57", "--lon", "12"]
DERIVATIVES = ["{pde}", "--spacing", "0.1,0.1,0.1", "--dt", "0.1", "--device", "cpu"]
FIT = ["{log}", "--model", "a*step+b", "--y", "loss", "--device", "cpu"]
CODES = ["{codes}", "--out", "{out}.npz"]
BASES = {
    "devices": [], "verify": ["engine.copy", "--device", "cpu"], "bench": ["engine.copy", "--device", "cpu", "--iterations", "1", "--sizes", "16"],
    "tune": ["primitives.fft", "--device", "cpu", "--minutes", "0.01", "--out", "{out}.json"],
    "emit": ["engine.copy"], "report": ["{flow}", "--out", "{out}.html"], "reproduce": ["{flow}"], "compare": ["{flow}", "{flow}"],
    "urban shadows": [*TERRAIN, "--azimuth", "180", "--altitude", "30", "--out", "{out}"], "urban walls": [*TERRAIN, "--out", "{out}"],
    "urban svf": [*TERRAIN, "--out", "{out}"], "urban umep": ["{flow}", "--out", "{out}"], "urban sample": ["--size", "16", "--out", "{out}"],
    "urban stage": ["tmrt", "{pde}", "--out", "{out}.npz"], "urban utci": ["--ta", "30", "--rh", "45", "--wind", "2", "--tmrt", "60"],
    "urban compare": ["{day}", "{day}", "--out", "{out}"], "urban stats": ["{day}", "--areas", "{areas}", "--out", "{out}.csv"],
    "urban sun": [*TERRAIN, "--lat", "57", "--lon", "12", "--date", "2026-03-21", "--out", "{out}"],
    "urban plant": [*RADIATION, "--trees", "1", "--species", "3,1,2", "--out", "{out}"],
    "urban pet": ["--ta", "30", "--rh", "45", "--wind", "2", "--tmrt", "60"], "urban run": [*RADIATION, "--out", "{out}"],
    "urban check": RADIATION, "urban validate": [*RADIATION, "--measured", "{weather}", "--out", "{out}"], "urban gates": RADIATION,
    "pde loss": DERIVATIVES, "pde trajectory": DERIVATIVES, "pde check": DERIVATIVES, "pde study": ["--sizes", "8"],
    "pde example": ["gray_scott", "--out", "{out}"], "pde convergence": ["--sizes", "12,16"],
    "solve nist": ["{text}"], "solve g2o": ["{graph}", "--device", "cpu"], "solve bal": ["--synthetic", "3,20", "--device", "cpu"],
    "solve fit": FIT, "solve mesh": ["{mesh}", "--energy", "springs", "--device", "cpu"], "solve sketch": ["{text}"],
    "solve doctor": ["{graph}", "--device", "cpu"],
    "flow run": [*SIMULATION, "--format", "npz"], "flow compare": ["{fields}", "{fields}"], "flow encode": ["{fields}", "--out", "{out}.npz"],
    "flow decode": CODES, "flow learn": CODES, "flow rollout": [*CODES, "--steps", "2"], "flow pipeline": SIMULATION,
    "forecast curve": ["{log}"], "forecast encode": ["{log}", "--out", "{out}.npz"], "forecast observe": ["{log}", "--out", "{out}.npz"],
    "forecast sweep": ["{log}"], "forecast rollout": ["--hidden", "8", "--members", "1", "--steps", "2"],
    "forecast train": ["mnist", "--data", "{flow}", "--out", "{out}"], "completion": ["bash"],
}
NEED_NOTHING = {"devices", "verify", "bench", "tune", "forecast rollout", "pde study", "pde convergence", "urban gates"}
NUMBERS = ("nan", "1e999", "-nan", "-1e999", "", "1,,2", "x", "1x", "--1", "\x1b[2J")
INTEGERS = ("99999999999999999999999999", "1.5")
NUMBER = re.compile(r"[A-Z]{1,2}|DEG|PERCENT|SHARE|GAIN|STEP|SECONDS|YEARS|KG|CLO|PX|M/S|SIZE|CODE|LOSS")
A_FILE = re.compile(r"FILE|DIR|\S+\.(npz|nc)|FILE\.mp4")
# In these bases --dem is not read, an empty --config is one without options, and --video and --checkpoint are made next to --out.
UNREAD, LATE = {"--dem", "--config"}, {"--video", "--checkpoint"}
OUTPUTS = {"--out", "--csv", "--plot", "--picture", "--ply", "--residuals", "--influence", "--curve", "--report", "--telemetry", "--trace", "--checkpoint", "--video", "--log-metrics"}


def commands(words=()):
    """(words, help) of every command that has no commands of its own."""
    text = run(*words, "--help").stdout
    listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    if not listed:
        yield " ".join(words), text
    for name in re.findall(r"^  (\S+)  ", listed.group(1), re.M) if listed else ():
        yield from commands((*words, name))


def options(text):
    """(name, placeholder, line) of each option that takes a value."""
    return [(found[1], found[2], found[0]) for found in
            re.finditer(r"^  (?:-\w,)?(?:--[\w-]+,)*(--[\w-]+) (\S+)(?: REQUIRED)?(?: {2,}.*|$)", text, re.M)]


def archive(path, arrays):
    with zipfile.ZipFile(path, "w") as file:
        for name, shape in arrays.items():
            header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
            header = header.ljust(117) + "\n"
            data = io.BytesIO(b"\x93NUMPY\x01\x00v\x00" + header.encode())
            count = 1
            for side in shape:
                count *= side
            file.writestr(name + ".npy", data.getvalue() + b"\0\0\x80\x3f" * count)


class Errors(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lockstep-errors-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.found = dict(commands())
        places = {"dsm": "d.npy", "weather": "w.csv", "pde": "p.npz", "text": "t.txt", "graph": "g.g2o", "log": "l.csv", "mesh": "m.obj",
                  "fields": "flow/run.npz", "codes": "z.npz", "flow": "flow", "binary": "b.bin", "empty": "e", "day": "day", "areas": "a.csv"}
        cls.places = {name: os.path.join(cls.folder, place) for name, place in places.items()}
        npy(cls.places["dsm"], [[1.0] * 16] * 16)
        archive(cls.places["pde"], {**{f"sigma{k}": (1, 8, 8) for k in range(3)}, **{f"u{k}": (3, 1, 8, 8) for k in range(3)}})
        for name, text in (("weather", "time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,20,50,2,500\n"), ("text", "nothing that any reader knows\n"),
                           ("graph", "VERTEX_SE2 0 0 0 0\nVERTEX_SE2 1 1 0 0\nEDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\nFIX 0\n"),
                           ("log", "step,loss\n" + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(60))),
                           ("areas", 'wkt\n"POLYGON ((2 2, 8 2, 8 8, 2 8, 2 2))"\n'), ("mesh", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n"), ("binary", "\0\1\2\3" * 64), ("empty", "")):
            with open(cls.places[name], "w") as file:
                file.write(text)
        for words in (("flow", "run", "--n", "16", "--steps", "20", "--save-every", "1", "--format", "npz", "--device", "cpu", "--out", cls.places["flow"]),
                      ("flow", "encode", cls.places["fields"], "--device", "cpu", "--out", cls.places["codes"]),
                      ("urban", "run", *(word.format(**cls.places) for word in RADIATION), "--format", "npy", "--no-pictures", "--out", cls.places["day"])):
            done = run(*words)
            assert done.returncode == 0, done.stderr

    def words(self, command, *more, without=()):
        """The base of a command; an option of `more` takes the place of its own there."""
        base = list(BASES[command])
        for name in {word.partition("=")[0] for word in more} | set(without):
            if name.startswith("--") and name in base:
                del base[base.index(name):base.index(name) + 2]
        return (*command.split(), *base, *more)

    def finding(self, words, about, plain):
        """What is wrong with the refusal of a command; empty where nothing is."""
        here = tempfile.mkdtemp(dir=self.folder)
        filled = [re.sub(r"\{(\w+)\}", lambda found: self.places.get(found[1]) or os.path.join(here, "out"), word) for word in words]
        about = re.sub(r"\{(\w+)\}", lambda found: self.places.get(found[1]) or os.path.join(here, "out"), about)
        shown = subprocess.run([PROGRAM, *filled, *([] if plain else ["--json"])], capture_output=True, text=True, cwd=here, timeout=300,
                               stdin=subprocess.DEVNULL, env={**os.environ, "LOCKSTEP_CPU_CODE": "quick"})
        try:
            if shown.returncode != 2:
                return f"exit code {shown.returncode}"
            if os.listdir(here):
                return f"it wrote {os.listdir(here)}"
            errors = [line for line in shown.stderr.splitlines() if line.startswith("lockstep: error: ")]
            if len(errors) != 1 or not ERROR_LINE.match(errors[0]):
                return f"no error line, or several: {errors}"
            if about and about not in errors[0].rpartition("]: expected ")[0]:
                return f"the error does not say {about}: {errors[0]}"
            if [c for c in shown.stderr + shown.stdout if (c < " " and c not in "\n\t") or c == "\x7f"]:
                return "control characters"
            if plain:
                return "something on stdout" if shown.stdout else ""
            document = json.loads(shown.stdout)
            error = document["error"]
            if list(document) != ["error"] or list(error) != ["what", "where", "expected", "hint", "code"]:
                return f"other members: {document}"
            if error["code"] != 2 or not all(error[name].strip() for name in ("what", "where", "expected")) or not isinstance(error["hint"], str):
                return f"empty members: {document}"
            # Parts keep the characters of names, a line of text has blanks for those that steer a terminal.
            whole = f"lockstep: error: {error['what']} [{error['where']}]: expected {error['expected']}"
            whole = re.sub(r"[\x00-\x1f\x7f]", " ", whole)
            return "" if errors[0] == whole else f"two errors: {errors[0]} and {whole}"
        except (ValueError, KeyError) as fault:
            return f"{fault!r}: {shown.stdout[:200]}"
        finally:
            shutil.rmtree(here)

    def all_refused(self, cases):
        """Cases of (words, text that the error names); each tenth also without --json."""
        cases = list(cases)
        self.assertGreater(len(cases), 0)
        runs = [(words, about, False) for words, about in cases] + [(words, about, True) for words, about in cases[::10]]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(lambda case: self.finding(*case), runs))
        wrong = [f"{' '.join(words)}: {finding}" for (words, _, _), finding in zip(runs, found) if finding]
        self.assertEqual(wrong, [], f"{len(wrong)} of {len(runs)}")

    def option_cases(self, chosen, values):
        """Each option with wrong values. An option that several commands share is taken in the first; all values are for the first of
        its kind, two for the others."""
        seen, kinds = set(), set()
        for command, text in self.found.items():
            for name, placeholder, line in options(text):
                if chosen(name, placeholder) and line not in seen:
                    for value in values(name, placeholder)[:2 if placeholder in kinds else None]:
                        yield command, name, value
                    seen.add(line)
                    kinds.add(placeholder)

    def test_every_command_is_known_here(self):
        self.assertEqual(set(self.found), set(BASES))

    def test_no_words(self):
        self.all_refused((command.split(), "") for command in BASES if command not in NEED_NOTHING)

    def test_unknown_words(self):
        self.all_refused((self.words(command, word), "unknown option '--no-such-option") for command in BASES for word in ("--no-such-option", "--no-such-option=1"))

    def test_options_without_a_value(self):
        self.all_refused((self.words(command, name, without=[name]), name) for command, text in self.found.items() for name, _, _ in options(text)[:1])

    def test_numbers(self):
        self.all_refused((self.words(command, f"{name}={value}"), name) for command, name, value in self.option_cases(
            lambda name, placeholder: NUMBER.fullmatch(placeholder) and name != "--robust",
            lambda name, placeholder: NUMBERS + (INTEGERS if placeholder == "N" else ())))

    def test_choices(self):
        self.all_refused((self.words(command, f"{name}={value}"), name) for command, name, value in self.option_cases(
            lambda name, placeholder: "|" in placeholder and "FILE" not in placeholder, lambda *_: ("none-of-these", "", "\x1b[2J")))

    def test_empty_values(self):
        self.all_refused((self.words(command, f"{name}="), name) for command, name, _ in self.option_cases(lambda *_: True, lambda *_: ("",)))

    def test_outputs_that_cannot_be_made(self):
        self.all_refused((self.words(command, f"{name}={value}"), "") for command, name, value in self.option_cases(
            lambda name, placeholder: name in OUTPUTS - LATE, lambda name, placeholder: (
                "{text}/below", "{text}" if placeholder == "DIR" else "{flow}")))

    def test_inputs_that_are_none(self):
        self.all_refused((self.words(command, f"{name}={value}"), "") for command, name, value in self.option_cases(
            lambda name, placeholder: A_FILE.fullmatch(placeholder) and name not in OUTPUTS | UNREAD, lambda name, placeholder: (
                "{flow}/none", "{binary}", "{text}/below", "{text}", "{empty}", *(("{flow}",) if placeholder == "FILE" else ()))))

    def test_arguments_that_are_no_input(self):
        cases = []
        for command, base in BASES.items():
            if base and re.fullmatch(r"\{\w+\}", base[0]) and command != "urban umep":  # which makes --out first
                for value in ("{flow}/none", "{text}/below", "{binary}", "{empty}", *(("{flow}",) if base[0] != "{flow}" else ("{text}",))):
                    cases.append(((*command.split(), value, *base[1:]), value))
        self.all_refused(cases)


if __name__ == "__main__":
    unittest.main()
