#!/usr/bin/env python3
"""The program as another user, with hostile inputs in hostile folders: only --out and the cache change."""
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import unittest

import attacks
from attacks import PROGRAM, npy_bytes, zip_bytes
from test_links import COMMANDS, GRAPH, LOG, PDE, SECRET, TRIANGLES

NOBODY = 65534
INSIDE = "LOCKSTEP_ATTACK_INSIDE"
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")
MORE = {
    "urban_svf": ("urban", "svf", "--dsm", "{in}/dsm.npy", "--pixel-size", "1", "--tile", "16", "--format", "npy", "--out", "{out}"),
    "urban_run": ("urban", "run", "--dsm", "{in}/dsm.npy", "--pixel-size", "1", "--weather", "{in}/weather.csv", "--utc-offset", "1", "--lat", "57",
                  "--lon", "12", "--patches", "145", "--format", "npy", "--no-video", "--out", "{out}"),
    "flow_again": ("flow", "run", "--n", "16", "--steps", "2", "--save-every", "1", "--format", "nc", "--device", "cpu", "--out", "{out}"),
    "page_of_the_folder": ("report", "{out}", "--out", "{out}/page.html"), "same_folders": ("compare", "{out}", "{hostile}"),
    "run_of_others": ("reproduce", "{hostile}"), "page_of_others": ("report", "{hostile}", "--out", "{out}/others.html"),
    "model_of_others": ("flow", "rollout", "{hostile}/a.npz", "--steps", "2", "--out", "{out}/roll.npz"),
    "raster_of_others": ("urban", "walls", "--dsm", "{hostile}/a.vrt", "--out", "{out}"),
    "kernel": ("emit", "engine.copy", "--target", "asm", "--out", "{out}/k.s"), "devices": ("devices",),
}


def state(roots, without):
    """Kind, mode, owner, size, times and content of everything below."""
    found = {}
    for root in roots:
        for base, folders, files in os.walk(root):
            folders[:] = [name for name in folders if os.path.join(base, name) not in without]
            for path in [base, *(os.path.join(base, name) for name in files), *(os.path.join(base, name) for name in folders)]:
                status = os.lstat(path)
                content = b""
                if stat.S_ISREG(status.st_mode):
                    with open(path, "rb") as file:
                        content = hashlib.sha256(file.read()).digest()
                found[path] = (status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, status.st_nlink if not stat.S_ISDIR(status.st_mode) else 0, content)
    return found


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv") and shutil.which("unshare"), "needs root and setpriv to run as another user")
class AnotherUser(attacks.Attack):
    def setUp(self):
        if not os.environ.get(INSIDE):
            return
        super().setUp()
        os.chmod(self.folder, 0o755)
        for name, mode, owner in (("in", 0o755, 0), ("out", 0o755, NOBODY), ("cache", 0o700, NOBODY), ("open", 0o777, 0), ("closed", 0o755, 0), ("hostile", 0o777, 0)):
            os.mkdir(self.path(name))
            os.chmod(self.path(name), mode)
            os.chown(self.path(name), owner, owner)
        for name, data in (("dsm.npy", npy_bytes((24, 24))), ("pde.npz", zip_bytes(PDE)), ("mesh.obj", TRIANGLES), ("graph.g2o", GRAPH), ("log.csv", LOG),
                           ("weather.csv", "time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,20,50,2,500\n2015-06-21T13:00,20,50,2,500\n")):
            self.write("in/" + name, data)
        outside = self.path("open", "target")
        self.write("hostile/a.npz", zip_bytes([("../../open/target.npy", npy_bytes((4,))), ("/tmp/target.npy", npy_bytes((4,)))]))
        for name in ("lockstep.toml", ".lockstep.toml"):  # read where --config names it alone
            self.write("hostile/" + name, f'telemetry = "{outside}.jsonl"\n')
        self.write("hostile/a.vrt", f'<VRTDataset rasterXSize="4" rasterYSize="4"><VRTRasterBand dataType="Float32" band="1"><SimpleSource>'
                                    f'<SourceFilename>{outside}</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>')
        self.write("hostile/run.json", '{"program": {"name": "lockstep", "version": "0.1.0"}, "command": "lockstep flow run", "options": {"n": "16", "steps": "1", '
                                       f'"out": "{outside}", "telemetry": "{outside}.jsonl", "checkpoint": "{outside}.npz"}}, "inputs": {{}}, "outputs": []}}')
        for name in ("evil.so", "libgdal.so.32", "c.npz.part", "core"):
            self.write("hostile/" + name, SECRET)
        os.symlink(outside, self.path("hostile", "b.json"))

    def plant(self):
        """Links at names that the commands create, to files and folders that this user may write to."""
        for number, name in enumerate((".lockstep.lock", "run.json", "run.npz", "run.nc", "report.html", "page.html", "dsm.npy", "wall_height.npy", "m.obj",
                                       "t.jsonl", "t.json", "c.npz", "k.s", "series.csv")):
            target = self.path("open", str(number))
            if not os.path.exists(target):
                self.write(f"open/{number}", SECRET)
                os.chmod(target, 0o666)
            os.symlink(target, self.path("out", name))
        for name in ("pictures", "fields", "summary", ".tiles", "tmrt", "resume"):
            os.symlink(self.path("open"), self.path("out", name))

    @unittest.skipUnless(os.environ.get(INSIDE), "run by test_nothing_but_its_folders_changes only")
    def test_inside(self):
        own = (self.path("out"), self.path("cache"))
        commands = {**COMMANDS, **MORE}
        env = {"HOME": self.path("closed"), "LOCKSTEP_CACHE_DIR": own[1], "TMPDIR": self.path("open"), "XDG_RUNTIME_DIR": self.path("open"),
               "MESA_SHADER_CACHE_DISABLE": "true"}
        self.plant()
        before = state(SHARED, own)
        refused = 0
        for planted in (True, False):
            for name, words in commands.items():
                filled = [w.replace("{in}", self.path("in")).replace("{out}", own[0]).replace("{hostile}", self.path("hostile")) for w in words]
                done = attacks.run(*filled, env=env, cwd=self.path("hostile"), before=AS_NOBODY)
                self.assertIn(done.returncode, (0, 1, 2), (name, done.stderr[-800:]))
                refused += done.returncode == 2
                after = state(SHARED, own)
                self.assertEqual({path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}, set(), name)
            shutil.rmtree(own[0])
            os.mkdir(own[0])
            os.chown(own[0], NOBODY, NOBODY)
            before = state(SHARED, own)
        self.assertLess(refused, len(commands), "most commands ran")
        self.assertTrue(os.listdir(own[1]), "kernels were kept")

    @unittest.skipIf(os.environ.get(INSIDE), "this runs inside")
    def test_nothing_but_its_folders_changes(self):
        """In a mount namespace whose shared folders are empty, so that no other program changes them."""
        mounts = "; ".join(f"[ ! -d {place} ] || mount -t tmpfs -o mode=1777 tmpfs {place}" for place in SHARED)
        if PROGRAM.startswith(SHARED) or os.path.abspath(__file__).startswith(SHARED):
            self.skipTest("may not mount over the program")
        if subprocess.run([*AS_NOBODY, PROGRAM, "--version"], capture_output=True).returncode != 0:
            self.skipTest("needs root and setpriv, and a program that another user may run")
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", f'set -e; {mounts}; exec "$@"', "sh", sys.executable,
                               os.path.abspath(__file__), "-v", "AnotherUser.test_inside"],
                              capture_output=True, text=True, timeout=1500, env={**os.environ, INSIDE: "1", "TMPDIR": "/tmp"})
        if "unshare: " in done.stderr or "mount: " in done.stderr:
            self.skipTest("may not mount: " + done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        self.assertIn("OK", done.stderr)


if __name__ == "__main__":
    unittest.main()
