#!/usr/bin/env python3
"""Names that are hostile: of files, columns and members, in documents, pages, drawings and tables on the terminal."""
import csv
import json
import os
import re
import subprocess
import unittest
import xml.etree.ElementTree

import attacks
from attacks import npy_bytes, zip_bytes
from test_links import GRAPH, PDE, TRIANGLES

# Bytes that are not UTF-8, escapes of terminals (of Latin-1 too), markup, line ends, a text that reads from right to left.
NAMES = (b"\xff\xfe", b"\xed\xa0\x80", b"a\x1b]0;owned\x07\x1b[2J", b"a\x7f\xc2\x9b31m", b"<img src=x onerror=alert(2)>'\"&", b"a\nlockstep: error: b",
         b"]: expected c [d", "\u202egnp.exe".encode(), b"-", b"--json", b"%s%n{}{0}", b" ")
MARKUP = ("<img src=x", "<script", "onerror=alert(2)>")


class Names(attacks.Attack):
    def place(self, *names):
        return os.path.join(os.fsencode(self.folder), *names)

    def file(self, name, data):
        with open(self.place(name), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        return self.place(name)

    def done(self, *words, codes=(0,)):
        """Runs with --json and without; gives the document."""
        self.survives(*words, codes=codes)
        done = self.survives(*words, "--json", codes=codes)
        text = done.stdout.decode()  # UTF-8 for all names
        self.assertNotRegex(text, "[\x7f-\x9f]")
        return json.loads(text)

    def survives(self, *words, codes=(0,)):
        done = subprocess.run([attacks.PROGRAM, *(w.encode() if isinstance(w, str) else w for w in words)], capture_output=True, timeout=600,
                                      stdin=subprocess.DEVNULL, env={**os.environ, "LOCKSTEP_CPU_CODE": "quick"})
        self.assertIn(done.returncode, codes, done.stderr[-2000:])
        self.clean(done)
        self.assertNotIn(b"\xc2\x9b", done.stdout + done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith(b"lockstep: error:")]
        self.assertLessEqual(len(errors), 1, done.stderr)
        return done

    def test_of_inputs_and_outputs(self):
        log = "step,loss\n" + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(60))
        for name in NAMES:
            for number, (kind, data, words) in enumerate((
                    (b".npy", npy_bytes((24, 24)), ("urban", "walls", "--dsm={in}", "--pixel-size", "1", "--format", "npy", "--device", "cpu", "--out={out}")),
                    (b".csv", log, ("forecast", "curve", "{in}", "--out={out}.png")),
                    (b".csv", log, ("forecast", "encode", "{in}", "--out={out}.npz")),
                    (b".npz", zip_bytes(PDE), ("pde", "loss", "{in}", "--spacing", "0.1,0.1,0.1", "--dt", "0.1", "--device", "cpu", "--out={out}.npz")),
                    (b".g2o", GRAPH, ("solve", "g2o", "{in}", "--device", "cpu", "--out={out}.g2o", "--residuals={out}.csv", "--plot={out}.svg")),
                    (b".obj", TRIANGLES, ("solve", "mesh", "{in}", "--energy", "springs", "--iterations", "1", "--device", "cpu", "--out={out}.obj")))):
                source, out = self.file(name + kind, data), self.place(name + b"-%d" % number)
                done = [word.encode().replace(b"{in}", source).replace(b"{out}", out) for word in words]
                with self.subTest(name=name, command=words[:2]):
                    self.survives(*done, "--telemetry=" + self.path("t.jsonl"), "--trace=" + self.path("t.json"))
                    self.done(*done)
                    with open(self.path("t.jsonl"), encoding="utf-8") as file:
                        for line in file:
                            json.loads(line)
                    with open(self.path("t.json"), encoding="utf-8") as file:
                        json.load(file)
            self.done("flow", "run", "--n", "16", "--steps", "2", "--save-every", "1", "--format", "npz", "--device", "cpu", b"--out=" + self.place(name))
            self.done("flow", "encode", self.place(name, b"run.npz"), "--device", "cpu", b"--out=" + self.place(name + b".z.npz"))
            self.done("emit", "engine.copy", b"--out=" + self.place(name + b".ir"))
            with open(self.place(name, b"run.json"), encoding="utf-8") as file:
                json.load(file)
            self.done("report", self.place(name), b"--out=" + self.place(name + b".html"))

    def test_of_folders_of_results(self):
        for name in (NAMES[0], NAMES[1], NAMES[2], NAMES[5]):
            self.done("forecast", "train", "xor", "--steps", "2", "--device", "cpu", b"--out=" + self.place(name + b".t"), b"--checkpoint=" + self.place(name + b".ckpt"))
            self.done("pde", "example", "gray_scott", "--device", "cpu", "--windows", "1", "--cells", "16", "--iterations", "2", b"--out=" + self.place(name + b".p"), codes=(0, 1, 2))
            self.done("urban", "sample", "--size", "16", b"--out=" + self.place(name + b".s"))
            self.done("reproduce", self.place(name + b".t"))

    def test_of_what_is_missing(self):
        for name in NAMES:
            for words in (("urban", "walls", b"--dsm=" + self.place(name), "--out=x"), ("report", self.place(name)), ("forecast", "curve", self.place(name)),
                          ("flow", "compare", self.place(name), self.place(name)), ("solve", "mesh", self.place(name), "--energy", "springs"),
                          ("devices", b"--config=" + self.place(name)), ("devices", b"--" + name), ("solve", name), (b"a" + name,)):
                error = self.done(*words, codes=(2,))["error"]
                self.assertEqual((list(error), error["code"]), (["what", "where", "expected", "hint", "code"], 2))

    def test_the_parts_of_an_error(self):
        """What, where and expected are separate for every name of the file."""
        for name in (b"a", b"]: expected b [c", b" [d]: expected e", b"f]", b" [g", b"h\n]: expected i", b"'\"", b"]: expected ]: expected ["):
            path = self.place(name + b".csv")
            error = self.done("forecast", "curve", path, codes=(2,))["error"]
            self.assertEqual(error["where"], os.fsdecode(path))
            self.assertIn("cannot read the file", error["what"])
            self.assertEqual(error["expected"], "a log of a training run (.csv, .jsonl or tfevents)")
            self.file(name + b".csv", "step,loss\n1,x [y]: expected z\n")
            error = self.done("forecast", "curve", path, codes=(2,))["error"]
            self.assertEqual(error["where"], os.fsdecode(path) + ":2")
            self.assertNotIn("] [", error["what"])
        error = self.done("devices", "--input-memory", "1 [x]: expected y", codes=(2,))["error"]
        self.assertEqual((error["what"], error["where"], error["expected"]), ("'1 [x]: expected y'", "--input-memory", "a size such as 512M or 8G"))

    def test_endings_that_a_writer_does_not_make(self):
        log = self.file(b"l.csv", "step,loss\n" + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(60)))
        pde, mesh = self.file(b"p.npz", zip_bytes(PDE)), self.file(b"m.obj", TRIANGLES)
        graph = self.file(b"g.g2o", GRAPH)
        self.survives("flow", "run", "--n", "16", "--steps", "2", "--format", "npz", "--device", "cpu", "--out", self.path("run"))
        loss = ("pde", "loss", pde, "--spacing", "0.1,0.1,0.1", "--dt", "0.1")
        for words, made in ((("forecast", "curve", log, "--out={}"), ".png"), (("forecast", "encode", log, "--out={}"), ".npz"),
                            (("forecast", "observe", log, "--out={}"), ".npz"), ((*loss, "--out={}"), ".npz"),
                            (("pde", "convergence", "--sizes", "10,16", "--out={}"), ".svg"), (("pde", "convergence", "--sizes", "10,16", "--csv={}"), ".csv"),
                            (("solve", "g2o", graph, "--out={}"), ".g2o"), (("solve", "g2o", graph, "--plot={}"), ".svg"),
                            (("solve", "g2o", graph, "--residuals={}"), ".csv"), (("solve", "mesh", mesh, "--energy", "springs", "--out={}"), ".ply"),
                            (("solve", "mesh", mesh, "--energy", "springs", "--picture={}"), ".png"), (("report", self.path("run"), "--out={}"), ".html"),
                            (("solve", "fit", log, "--model", "a*step+b", "--y=loss", "--picture={}"), ".svg"),
                            (("flow", "encode", self.path("run", "run.npz"), "--out={}"), ".npz"),
                            (("flow", "run", "--n", "16", "--steps", "2", "--out", self.path("film"), "--video={}"), ".mp4"),
                            (("devices", "--trace={}"), ".json"), (("devices", "--telemetry={}"), ".jsonl")):
            for ending in (".jpg", ".pdf", ".svgz", made + ".gz", ".m3u8", ".xlsx"):
                with self.subTest(command=words[:2], ending=ending):
                    file = self.path("picture" + ending)
                    error = self.done(*(word.replace("{}", file) if isinstance(word, str) else word for word in words), codes=(2,))["error"]
                    self.assertIn(made, error["expected"])
                    self.assertFalse(os.path.exists(file))
        for ending in (".PNG", ".Svg"):  # of both kinds, in any case
            out = self.path("fit" + ending)
            self.survives("solve", "fit", log, "--model", "a*step+b", "--y=loss", "--picture=" + out)
            with open(out, "rb") as file:
                self.assertEqual(file.read(4), b"\x89PNG" if ending == ".PNG" else b"<svg")

    def test_tables_that_a_spreadsheet_reads(self):
        """Names with separators, quotes and formulas come back from a written table as they were, and are no formulas in it."""
        names = ("a,b", "a;b", 'say "a"', "=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "'=1", "#a", "a b", "plain")
        for name in names:
            log = self.file(b"n.csv", 'x,y,"%s"\n' % name.replace('"', '""') + "".join(f"{k},{2 * k},1\n" for k in range(9)))
            fit = ("--model", "a*x+b", "--y=y", "--out=")
            self.survives("solve", "fit", log, *fit[:-1], fit[-1] + self.path("one.csv"))
            with open(self.path("one.csv"), encoding="utf-8", newline="") as file:
                fields = next(csv.reader(file))
            self.assertEqual(fields[2].lstrip("'"), name.lstrip("'"))
            self.assertNotIn(fields[2][0], "=+-@")
            with open(self.path("one.csv"), encoding="utf-8") as file:
                text = file.read().replace("fitted,residual", "f,r", 1)
            again = self.file(b"again.csv", text)
            self.survives("solve", "fit", again, *fit[:-1], fit[-1] + self.path("two.csv"))
            with open(self.path("two.csv"), encoding="utf-8", newline="") as file:
                self.assertEqual(next(csv.reader(file))[2], fields[2])

    def test_of_columns_and_members(self):
        for name in NAMES:
            text = name.replace(b"\n", b"").decode(errors="surrogateescape").replace('"', '""')
            log = f'"step","{text}"\n' + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(60))
            self.survives("forecast", "curve", self.file(b"l.csv", log.encode(errors="surrogateescape")), "--out=" + self.path("c.png"), codes=(0, 2))
            self.survives("solve", "fit", self.place(b"l.csv"), "--model", "a*step+b", b"--y=" + name, "--picture=" + self.path("f.svg"), codes=(0, 2))
            self.well_formed(b"f.svg")
            self.survives("pde", "loss", self.file(b"p.npz", zip_bytes(PDE + [(name + b".npy", npy_bytes((1,)))])), "--spacing", "1,1,1", "--dt", "1",
                          "--device", "cpu", codes=(0, 2))

    def well_formed(self, name):
        if os.path.exists(self.place(name)):
            with open(self.place(name), encoding="utf-8") as file:
                text = file.read()
            xml.etree.ElementTree.fromstring(text)
            for markup in MARKUP:
                self.assertNotIn(markup, text)

    def test_of_all_that_a_page_shows(self):
        os.mkdir(self.path("in"))
        for name in NAMES:
            text = name.decode(errors="replace")
            names = {"stage": text, "device": text, text: text, "seconds": 1, "case": text, "size": "4x4", "median_ms": 1, "share_of_copy": 0.5}
            self.file(b"in/" + name + b".json", json.dumps({**names, "results": [names, {**names, "size": "8x8"}], "stages": [names], text + "2": [names]}))
            self.file(b"in/" + name + b".jsonl", json.dumps(names) + "\n")
            self.file(b"in/" + name + b".csv", b'x,"' + name.replace(b'"', b'""') + b'"\n1,2\n')
            self.file(b"in/" + name + b".png", b"no picture")
        self.done("report", self.place(b"in"), "--out=" + self.path("r.html"))
        with open(self.path("r.html"), encoding="utf-8") as file:
            page = file.read()
        for markup in MARKUP:
            self.assertNotIn(markup, page)
        self.assertNotRegex(page, "[\x00-\x08\x0b-\x1f\x7f-\x9f]")
        for drawing in re.findall(r"<svg.*?</svg>", page, re.S):
            xml.etree.ElementTree.fromstring(drawing)


if __name__ == "__main__":
    unittest.main()
