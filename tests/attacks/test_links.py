#!/usr/bin/env python3
"""Links planted where results go, and folders that become links while a run writes."""
import os
import shutil
import struct
import threading
import unittest

import attacks
from attacks import npy_bytes, zip_bytes

PDE = [(name + ".npy", npy_bytes((1, 8, 8))) for name in ("sigma0", "sigma1", "sigma2")] + [
    (name + ".npy", npy_bytes((3, 1, 8, 8))) for name in ("u0", "u1", "u2")]
TRIANGLES = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n"
GRAPH = "VERTEX_SE2 0 0 0 0\nVERTEX_SE2 1 1 0 0\nEDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\nFIX 0\n"
LOG = "step,loss\n" + "".join(f"{k},{1 + 1 / (k + 1)}\n" for k in range(60))
COMMANDS = {
    "urban_sample": ("urban", "sample", "--size", "24", "--format", "npy", "--out", "{out}"),
    "urban_walls": ("urban", "walls", "--dsm", "{in}/dsm.npy", "--pixel-size", "1", "--format", "npy", "--out", "{out}"),
    "flow_run": ("flow", "run", "--n", "16", "--steps", "2", "--save-every", "1", "--format", "npz", "--pictures", "--checkpoint", "{out}/c.npz", "--out", "{out}"),
    "pde_loss": ("pde", "loss", "{in}/pde.npz", "--spacing", "0.1,0.1,0.1", "--dt", "0.1", "--out", "{out}/g.npz", "--residuals", "{out}/r.npz"),
    "solve_mesh": ("solve", "mesh", "{in}/mesh.obj", "--energy", "springs", "--iterations", "2", "--out", "{out}/m.obj", "--picture", "{out}/m.png", "--plot", "{out}/p.svg"),
    "solve_g2o": ("solve", "g2o", "{in}/graph.g2o", "--out", "{out}/g.g2o", "--residuals", "{out}/r.csv", "--plot", "{out}/p.png", "--checkpoint", "{out}/c"),
    "forecast_encode": ("forecast", "encode", "{in}/log.csv", "--out", "{out}/f.npz"),
    "forecast_curve": ("forecast", "curve", "{in}/log.csv", "--out", "{out}/c.png"),
    "telemetry_and_trace": ("devices", "--telemetry", "{out}/t.jsonl", "--trace", "{out}/t.json"),
    "report": ("report", "{in}", "--out", "{out}/r.html"),
}
SECRET = b"what only its owner may change\n"


class Links(attacks.Attack):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("in"))
        self.write("in/dsm.npy", npy_bytes((24, 24)))
        self.write("in/pde.npz", zip_bytes(PDE))
        self.write("in/mesh.obj", TRIANGLES)
        self.write("in/graph.g2o", GRAPH)
        self.write("in/log.csv", LOG)

    def command(self, words, out):
        return [word.replace("{in}", self.path("in")).replace("{out}", out) for word in words]

    def names_of(self, words):
        """All that a command leaves in a clean folder."""
        clean = self.path("clean")
        os.mkdir(clean)
        self.survives(*self.command(words, clean), codes=(0,))
        found = [os.path.relpath(os.path.join(base, name), clean) for base, _, files in os.walk(clean) for name in files]
        self.assertTrue(found)
        return sorted({*found, ".lockstep.lock", "run.json"})

    def plant(self, words, link):
        """Plants at each name and runs; returns what lay outside, before and after."""
        names = self.names_of(words)
        for alone in ([name] for name in names) if len(names) < 4 else [names]:
            shutil.rmtree(self.path("out"), ignore_errors=True)
            shutil.rmtree(self.path("outside"), ignore_errors=True)
            os.mkdir(self.path("outside"))
            for number, name in enumerate(alone):
                os.makedirs(os.path.dirname(self.path("out", name)), exist_ok=True)
                link(self.path("outside", str(number)), self.path("out", name))
            before = attacks.snapshot(self.path("outside"))
            self.survives(*self.command(words, self.path("out")))
            self.assertEqual(attacks.snapshot(self.path("outside")), before)

    def symbolic(self, target, name):
        with open(target, "wb") as file:
            file.write(SECRET)
        os.symlink(target, name)

    def hard(self, target, name):
        with open(target, "wb") as file:
            file.write(SECRET)
        os.link(target, name)

    def dangling(self, target, name):
        os.symlink(target, name)

    def test_folder_of_tiles_that_is_a_link(self):
        words = self.command(("urban", "svf", "--dsm", "{in}/dsm.npy", "--pixel-size", "1", "--tile", "16", "--format", "npy", "--no-pictures", "--out", "{out}"),
                             self.path("out"))
        for more in ((), ("--resume",)):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            shutil.rmtree(self.path("outside"), ignore_errors=True)
            os.makedirs(self.path("outside"))
            os.makedirs(self.path("out"))
            self.write("outside/0_0.tile", SECRET)
            os.symlink(self.path("outside"), self.path("out", ".tiles"))
            before = attacks.snapshot(self.path("outside"))
            self.survives(*words, *more)
            self.assertEqual(attacks.snapshot(self.path("outside")), before)

    def test_folders_of_pictures_and_fields_that_are_links(self):
        for inner in ("pictures", "fields", "summary"):
            for words in (COMMANDS["urban_sample"], COMMANDS["flow_run"]):
                shutil.rmtree(self.path("out"), ignore_errors=True)
                os.makedirs(self.path("out"))
                os.makedirs(self.path("outside"), exist_ok=True)
                os.symlink(self.path("outside"), self.path("out", inner))
                self.survives(*self.command(words, self.path("out")))
                self.assertEqual(os.listdir(self.path("outside")), [])

    def test_out_that_is_a_link_to_nothing(self):
        os.symlink(self.path("absent"), self.path("out"))
        for command in ("urban_sample", "flow_run", "solve_g2o"):
            done = self.refuses(*self.command(COMMANDS[command], self.path("out")), names=self.path("out"))
            self.assertIn(b"a link without a target", done.stderr)
            self.assertFalse(os.path.lexists(self.path("absent")))

    def test_pipe_at_a_name(self):
        for name in ("run.json", "run.npz", ".lockstep.lock"):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            os.makedirs(self.path("out"))
            os.mkfifo(self.path("out", name))
            self.survives(*self.command(COMMANDS["flow_run"], self.path("out")))

    def test_folder_that_becomes_a_link_while_a_run_writes(self):
        for words in (COMMANDS["flow_run"], COMMANDS["urban_sample"]):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            os.makedirs(self.path("out"))
            os.makedirs(self.path("outside"), exist_ok=True)
            for inner in ("pictures", "fields"):
                os.symlink(self.path("outside"), self.path("link-" + inner + str(words[0])))
            ended = threading.Event()

            def swap(inner, link):
                folder, aside = self.path("out", inner), self.path("out", inner + ".aside")
                while not ended.is_set():
                    for a, b in ((folder, aside), (link, folder), (folder, link), (aside, folder)):
                        try:
                            os.rename(a, b)
                        except OSError:
                            pass
            threads = [threading.Thread(target=swap, args=(inner, self.path("link-" + inner + str(words[0])))) for inner in ("pictures", "fields")]
            for thread in threads:
                thread.start()
            try:
                for _ in range(5):
                    self.survives(*self.command(words, self.path("out")))
            finally:
                ended.set()
                for thread in threads:
                    thread.join()
            self.assertEqual(os.listdir(self.path("outside")), [])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv to run as another user")
    def test_another_user_touches_nothing_outside_its_folders(self):
        os.chmod(self.folder, 0o755)
        for name, mode in (("out", 0o777), ("cache", 0o700), ("open", 0o777), ("closed", 0o700)):
            os.mkdir(self.path(name))
            os.chmod(self.path(name), mode)
        os.chown(self.path("cache"), 65534, 65534)
        os.chown(self.path("out"), 65534, 65534)
        for number, name in enumerate((".lockstep.lock", "run.json", "run.npz", "report.html", "dsm.npy", "walls.json", "m.obj")):
            target = self.path("open", str(number))
            self.symbolic(target, self.path("out", name))
            os.chmod(target, 0o666)
        os.symlink(self.path("open"), self.path("out", "pictures"))
        own = (self.path("out"), self.path("cache"))
        before = attacks.snapshot(self.folder, own)
        env = {"HOME": self.path("closed"), "LOCKSTEP_CACHE_DIR": self.path("cache"), "TMPDIR": self.path("open")}
        for words in COMMANDS.values():
            attacks.run(*self.command(words, self.path("out")), env=env, cwd=self.path("open"),
                        before=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"))
        self.assertTrue(os.listdir(self.path("cache")), "the commands ran")
        self.assertEqual(attacks.snapshot(self.folder, own), before)


for command, words in COMMANDS.items():
    for kind in ("symbolic", "hard", "dangling"):
        setattr(Links, f"test_{kind}_links_at_each_name_of_{command}",
                lambda self, words=words, kind=kind: self.plant(words, getattr(self, kind)))

if __name__ == "__main__":
    unittest.main()
