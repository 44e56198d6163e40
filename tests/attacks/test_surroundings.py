#!/usr/bin/env python3
"""Caches and variables that others chose; rasters that name other files; pages of hostile folders."""
import glob
import os
import re
import unittest

import attacks
from attacks import npy_bytes

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
ESCAPES = "\x1b]0;owned\x07\x1b[2J"


class Rasters(attacks.Attack):
    def refused(self, name, text):
        self.refuses("urban", "walls", "--dsm", self.write(name, text), "--out", self.path("out"), names=name)

    def virtual(self, source, relative=0):
        return (f'<VRTDataset rasterXSize="4" rasterYSize="4"><VRTRasterBand dataType="Float32" band="1"><SimpleSource>'
                f'<SourceFilename relativeToVRT="{relative}">{source}</SourceFilename><SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>')

    def test_virtual_raster_by_another_name(self):
        self.refused("dsm.tif", self.virtual("dem.tif", 1))

    def test_virtual_raster_of_a_file_elsewhere(self):
        self.refused("dsm.vrt", self.virtual("/etc/passwd"))

    def test_virtual_raster_of_the_parent(self):
        self.refused("dsm.vrt", self.virtual("../../etc/passwd", 1))

    def test_virtual_raster_of_the_network(self):
        self.refused("dsm.vrt", self.virtual("/vsicurl/http://127.0.0.1:9/a.tif"))

    def test_virtual_raster_of_a_link(self):
        os.symlink("/etc/passwd", self.path("a.tif"))
        self.refused("dsm.vrt", self.virtual("a.tif", 1))

    def test_virtual_raster_of_itself(self):
        self.refused("dsm.vrt", self.virtual("dsm.vrt", 1))

    def test_service_of_maps(self):
        self.refused("dsm.tif", '<GDAL_WMS><Service name="WMS"><ServerUrl>http://127.0.0.1:9/?</ServerUrl></Service></GDAL_WMS>')

    def test_raster_of_a_pipeline(self):
        self.refused("dsm.tif", '{"type": "gdal_streamed_alg", "command_line": "gdal raster pipeline ! read /etc/passwd"}')


class Caches(attacks.Attack):
    words = ("pde", "loss", "--spacing", "0.1,0.1,0.1", "--dt", "0.1")

    def setUp(self):
        super().setUp()
        members = [(name + ".npy", npy_bytes((1, 8, 8))) for name in ("sigma0", "sigma1", "sigma2")] + [
            (name + ".npy", npy_bytes((3, 1, 8, 8))) for name in ("u0", "u1", "u2")]
        self.input = self.write("a.npz", attacks.zip_bytes(members))
        os.chmod(self.folder, 0o700)

    def compute(self, cache, cwd=None):
        return self.survives("pde", "loss", self.input, *self.words[2:], "--json", env={"LOCKSTEP_CACHE_DIR": cache}, cwd=cwd, codes=(0,))

    def entries(self, cache):
        return [file for file in glob.glob(cache + "/**/*", recursive=True) if os.path.isfile(file)]

    def loss(self, done):
        return re.search(rb'"loss":\s*([^,}\s]+)', done.stdout).group(1)

    def test_the_cache_is_of_its_user_alone(self):
        self.compute(self.path("cache"))
        self.assertTrue(self.entries(self.path("cache")))
        for base, folders, files in os.walk(self.path("cache")):
            for name in folders:
                self.assertEqual(os.stat(os.path.join(base, name)).st_mode & 0o777, 0o700, name)
            for name in files:
                self.assertEqual(os.stat(os.path.join(base, name)).st_mode & 0o177, 0, name)

    def test_entries_that_were_changed(self):
        first = self.compute(self.path("cache"))
        for file in self.entries(self.path("cache")):
            with open(file, "r+b") as opened:
                data = bytearray(opened.read())
                for place in range(len(data) // 4, len(data), max(1, len(data) // 64)):
                    data[place] ^= 0x5A
                opened.seek(0)
                opened.write(data)
        self.assertEqual(self.loss(self.compute(self.path("cache"))), self.loss(first))

    def test_entries_that_changed_places(self):
        first = self.compute(self.path("cache"))
        files = [file for file in self.entries(self.path("cache")) if os.path.getsize(file) > 64]
        contents = []
        for file in files:
            with open(file, "rb") as opened:
                contents.append(opened.read())
        for file, content in zip(files, contents[1:] + contents[:1]):
            with open(file, "wb") as opened:
                opened.write(content)
        self.assertEqual(self.loss(self.compute(self.path("cache"))), self.loss(first))

    def off(self, cache, cwd=None):
        before = attacks.snapshot(self.folder)
        done = self.compute(cache, cwd)
        self.assertEqual(attacks.snapshot(self.folder), before)
        self.assertIn(b"cache", done.stderr)
        self.assertEqual(len([line for line in done.stderr.splitlines() if b"cache" in line]), 1, done.stderr)

    def test_cache_that_everybody_may_write_to(self):
        os.mkdir(self.path("cache"))
        os.chmod(self.path("cache"), 0o777)
        self.off(self.path("cache"))

    def test_cache_below_a_folder_that_everybody_may_write_to(self):
        os.makedirs(self.path("shared", "cache"), 0o700)
        os.chmod(self.path("shared"), 0o777)
        self.off(self.path("shared", "cache"))

    def test_cache_that_is_a_file(self):
        self.write("cache", "x")
        self.off(self.path("cache"))

    @unittest.skipUnless(os.geteuid() == 0, "needs root to give a folder away")
    def test_cache_of_another_user(self):
        os.mkdir(self.path("cache"), 0o700)
        os.chown(self.path("cache"), 65534, 65534)
        self.off(self.path("cache"))

    def test_relative_cache(self):
        self.off("cache", self.folder)


class Pages(attacks.Attack):
    def page(self, codes=(0, 2)):
        done = self.survives("report", self.path("in"), "--out", self.path("r.html"), codes=codes)
        text = ""
        if done.returncode == 0:
            with open(self.path("r.html"), encoding="utf-8", errors="replace") as file:
                text = file.read()
        self.assertNotIn("<script>alert", text)
        self.assertNotIn("<img src=x", text)
        return done, text

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("in"))
        self.write("in/a.csv", "a,b\n1,2\n")

    def test_links_to_files_elsewhere(self):
        secret = self.write("secret", "do not show me")
        for name in ("a.json", "b.csv", "c.png", "d.jsonl", "run.json", "telemetry.jsonl"):
            os.symlink(secret, self.path("in", name))
        self.assertNotIn("do not show me", self.page()[1])

    def test_link_to_a_folder_elsewhere(self):
        os.mkdir(self.path("elsewhere"))
        self.write("elsewhere/a.png", "do not show me")
        os.symlink(self.path("elsewhere"), self.path("in", "pictures"))
        self.assertNotIn("a.png", self.page()[1])

    def test_pipes_and_sockets(self):
        for name in ("a.json", "b.csv", "c.png", "run.json"):
            os.path.exists(self.path("in", name)) or os.mkfifo(self.path("in", name))
        self.page()

    def test_json_20000_levels_deep(self):
        for name in ("a.json", "run.json"):
            self.write("in/" + name, "[" * 20_000 + "]" * 20_000)
            self.page()

    def test_json_of_other_types(self):
        for text in ("null", "[]", "3", '"x"', '{"stages": 3}', '{"stages": [3, null, {"stage": [], "seconds": {}}]}', '{"device": [], "seconds": "x", "fallbacks": 1}'):
            self.write("in/run.json", text)
            self.write("in/telemetry.jsonl", text + "\n")
            self.page()

    def test_markup_in_names(self):
        for name in (HOSTILE.replace("/", "") + ".json", HOSTILE.replace("/", "") + ".csv"):
            self.write("in/" + name, '{"a": 1}' if name.endswith("json") else "a,b\n1,2\n")
        self.page()

    def test_markup_in_fields(self):
        quoted = HOSTILE.replace('"', '\\"')
        self.write("in/run.json", '{"device": "%s", "%s": "%s", "stages": [{"stage": "%s", "device": "%s", "seconds": 1}]}' % ((quoted,) * 5))
        self.write("in/telemetry.jsonl", '{"stage": "%s", "device": "%s", "seconds": 1}\n' % ((quoted,) * 2))
        self.write("in/b.csv", 'x,"%s"\n1,"%s"\n' % ((HOSTILE.replace('"', '""'),) * 2))
        self.page()

    def test_picture_that_is_none(self):
        self.write("in/a.png", HOSTILE)
        self.page()

    def test_picture_of_a_terabyte_of_nothing(self):
        with open(self.path("in", "a.png"), "wb") as file:
            file.truncate(1 << 40)
        self.page()

    def test_page_that_is_a_link(self):
        secret = self.write("secret", "as it was")
        os.symlink(secret, self.path("in", "report.html"))
        self.survives("report", self.path("in"))
        with open(secret, encoding="utf-8") as file:
            self.assertEqual(file.read(), "as it was")


class Terminals(attacks.Attack):
    def test_escapes_in_a_file_name(self):
        self.refuses("urban", "walls", "--dsm", self.write(ESCAPES + ".npy", b"x"), "--out", self.path("out"))

    def test_escapes_in_fields(self):
        self.refuses("solve", "g2o", self.write("a.g2o", ESCAPES + " 1 2\n"))
        self.refuses("solve", "mesh", self.write("a.ply", "ply\nformat " + ESCAPES + " 1.0\n"), "--energy", "springs")
        self.survives("forecast", "curve", self.write("a.csv", f"step,{ESCAPES}\n1,2\n"))

    def test_escapes_in_a_config(self):
        self.refuses("devices", "--config", self.write("a.toml", f'"\\u001b]0;owned\\u0007" = 1\n'))

    def test_escapes_in_an_option(self):
        self.refuses("devices", "--" + ESCAPES)
        self.refuses("urban", "walls", "--dsm", "x", "--out", "y", "--format", ESCAPES)

    def test_escapes_in_variables(self):
        for name in ("LOCKSTEP_DEVICE", "LOCKSTEP_LIBRARY_PATH", "LOCKSTEP_CPU_CODE", "LOCKSTEP_CACHE_DIR"):
            self.survives("devices", env={name: ESCAPES})


if __name__ == "__main__":
    unittest.main()
