"""A planner's day: the commands of the manual in order, in a folder of their own, and their results as others read them."""
import csv
import glob
import html.parser
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import unittest
import zlib

from program import PROGRAM, ProgramTest, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def commands_of(guide):
    with open(os.path.join(ROOT, "docs", guide), encoding="utf-8") as file:
        return re.findall(r"^```sh\n(.*?)^```", file.read(), re.S | re.M)


class Page(html.parser.HTMLParser):
    """The text of a page without style and pictures, a line a block, and the addresses that it names."""

    BLOCKS = {"h1", "h2", "h3", "p", "li", "tr", "dt", "dd", "figcaption", "pre"}

    def __init__(self, text):
        super().__init__()
        self.lines, self.line, self.skipped, self.addresses, self.pictures = [], "", 0, [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.skipped += tag in ("style", "svg")
        self.pictures += tag == "img"
        self.addresses += [value for name, value in attributes if name in ("src", "href") and not value.startswith("data:")]
        if tag in ("td", "th"):
            self.line += " | "

    def handle_endtag(self, tag):
        self.skipped -= tag in ("style", "svg")
        if tag in self.BLOCKS:
            self.lines.append(" ".join(self.line.split()))
            self.line = ""

    def handle_data(self, data):
        if not self.skipped:
            self.line += data


class Picture:
    """Size, texts and RGB of a PNG whose rows have no filter; broken chunks are an error."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        at, packed, self.texts = 8, b"", {}
        while at < len(data):
            size, kind = struct.unpack(">I4s", data[at:at + 8])
            body, check = data[at + 8:at + 8 + size], data[at + 8 + size:at + 12 + size]
            if zlib.crc32(kind + body) != struct.unpack(">I", check)[0]:
                raise ValueError(f"{path}: the checksum of {kind}")
            if kind == b"IHDR":
                self.width, self.height, *self.kind = struct.unpack(">IIBBBBB", body)
            packed += body if kind == b"IDAT" else b""
            if kind in (b"tEXt", b"iTXt"):
                name, _, text = body.partition(b"\0")
                self.texts[name.decode()] = text.decode().lstrip("\0")
            at += 12 + size
        self.raw, self.line = zlib.decompress(packed), 3 * self.width + 1
        if self.kind != [8, 2, 0, 0, 0] or len(self.raw) != self.line * self.height or any(self.raw[::self.line]):
            raise ValueError(f"{path}: {self.kind}, {len(self.raw)} bytes")

    def at(self, x, y):
        return self.raw[y * self.line + 1 + 3 * x:][:3]


class PlannerDay(ProgramTest):
    def follow(self, guide):
        """Runs the guide's commands; `lockstep` is the program under test."""
        os.makedirs(self.path("bin"))
        os.symlink(os.path.abspath(PROGRAM), self.path("bin", "lockstep"))
        os.symlink(os.path.join(ROOT, "examples"), self.path("examples"))
        env = {**os.environ, "PATH": self.path("bin") + ":" + os.environ["PATH"]}
        texts = []
        for block in commands_of(guide):
            done = subprocess.run(["bash", "-e", "-c", block], cwd=self.folder, env=env, capture_output=True, text=True)
            if done.returncode and "GDAL" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual(done.returncode, 0, f"{block}\n{done.stderr}")
            texts.append(done.stdout)
        return texts

    def test_the_manual(self):
        texts = self.follow("urban.md")
        self.assertTrue(any("no warnings" in text or "WARNING" in text for text in texts), "the table of check")
        self.page_of_the_run()
        self.pictures_and_styles()
        self.change_and_areas()
        self.trees_are_features()
        self.others_read_it()
        with open(self.path("change", "compare.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("Area by class of UTCI", page)
        self.assertEqual(page.split("Distribution of")[0].count("<td>Universal thermal climate index, highest</td>"), 1, "a row for each summary")

    def page_of_the_run(self):
        with open(self.path("green", "report.html"), encoding="utf-8") as file:
            text = file.read()
        page = Page(text)
        self.assertEqual(page.addresses, [], "the page needs no other file")
        with open(self.path("green", "run.json"), encoding="utf-8") as file:
            summaries = [s for s in json.load(file)["summaries"] if s["name"] != "ground"]
        self.assertEqual(len(summaries), len(glob.glob(self.path("green", "summary", "*.png"))))
        empty = [s for s in summaries if "hours" in s["name"] and s["max"] == 0]
        self.assertTrue(empty)
        self.assertEqual(page.pictures, len(summaries) - len(empty) + 24, "maps of hours that nowhere occur are left out")
        appendix = dict(zip(page.lines, page.lines[1:]))
        self.assertEqual([appendix["options " + name] for name in ("dsm", "dsm-heights")], ["city/dsm.tif", "absolute (default)"])
        printed, _, screen = text.partition('<div class="screen">')
        self.assertIn("Appendix: tables and measurements of the program", screen)
        self.assertNotIn("Appendix", printed)
        self.assertEqual(printed.count('<div class="maps large">'), 1, "maps of the period, whose legends are read in print")
        golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "planner_page.txt")
        lines = "\n".join(self.stable(page.lines)) + "\n"
        if os.environ.get("LOCKSTEP_UPDATE"):
            with open(golden, "w", encoding="utf-8") as file:
                file.write(lines)
        with open(golden, encoding="utf-8") as file:
            self.assertEqual(lines, file.read(), "LOCKSTEP_UPDATE=1 writes the text again")

    @staticmethod
    def stable(lines):
        """To the appendix, without what differs from build to build."""
        for line in lines:
            if line.startswith("Appendix"):
                return
            line = re.sub(r"[0-9a-f]{12}(-dirty)?", "COMMIT", re.sub(r"^[0-9a-f]{16}$", "IDENTITY", line))
            yield re.sub(r"\d+\.\d+\.\d+, commit \w*", "VERSION, commit COMMIT", re.sub(r"Lockstep \d+\.\d+\.\d+", "Lockstep VERSION", line))

    def pictures_and_styles(self):
        summaries = glob.glob(self.path("green", "summary", "*.tif"))
        self.assertGreaterEqual(len(summaries), 12)
        for grid in summaries:
            for suffix in (".png", ".qml"):
                self.assertTrue(os.path.exists(grid[:-4] + suffix), grid + suffix)
        with open(self.path("green", "summary", "utci_mean.qml"), encoding="utf-8") as file:
            style = file.read()
        bounds = [float(v) for v in re.findall(r'<item value="([^"]+)"', style)]
        self.assertEqual(bounds, sorted(bounds))
        self.assertLessEqual({9, 26, 29, 32, 38, 46, float("inf")}, set(bounds))
        self.assertIn('colorRampType="DISCRETE"', style)
        steps = [Picture(path) for path in sorted(glob.glob(self.path("green", "pictures", "*.png")))]
        self.assertEqual(len({picture.texts["Time"] for picture in steps}), 24)
        self.assertEqual(len({(picture.width, picture.height) for picture in steps}), 1)

    def change_and_areas(self):
        with open(self.path("council.html"), encoding="utf-8") as file:
            lines = Page(file.read()).lines
        self.assertLessEqual({"Before and after", "Maps of the change", "Areas"}, set(lines))
        change = Picture(self.path("change", "utci_mean_change.png"))
        self.assertEqual((change.texts["Place"], change.texts["Scenario"]), ("Sample city", "with trees compared with without trees"))
        inks = {change.at(x, y) for x in range(0, change.width) for y in range(0, change.height)}
        self.assertLessEqual({bytes((72, 76, 86)), bytes((20, 84, 40))}, inks, "outlines of buildings and crowns")
        with open(self.path("yards-stats.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertTrue(rows and all(row["area"] == "north" for row in rows))
        reproduced = run("reproduce", self.path("green"), "--json", "--quiet")
        self.assertEqual(reproduced.returncode, 0, reproduced.stderr)
        self.assertTrue(all(file["same"] for file in json.loads(reproduced.stdout)["files"]))

    def colours_are_those_of_the_style(self, values, ground):
        """Pixels of the map, 8 x 8 each, have the colour that the style gives their value; roofs and water have none of these."""
        with open(self.path("green", "summary", "utci_mean.qml"), encoding="utf-8") as file:
            style = [(float(bound), bytes.fromhex(ink)) for bound, ink in re.findall(r'<item value="([^"]+)".*?color="#(\w+)"', file.read())]
        inks = {ink for _, ink in style}
        picture = Picture(self.path("green", "summary", "utci_mean.png"))

        def wrong(top, every):
            pixels = [(row, col) for row in range(0, 128, every) for col in range(0, 128, every)]
            shown = [picture.at(24 + 8 * col + 4, top + 8 * row + 4) for row, col in pixels]
            expected = [next(ink for bound, ink in style if values[pixel] <= bound) if ground[pixel] == 1 else None for pixel in pixels]
            return sum(ink in inks if wanted is None else ink != wanted for ink, wanted in zip(shown, expected))

        tops = [top for top in range(30, picture.height - 8 * 128) if wrong(top, 9) == 0]
        self.assertTrue(tops, "the map below its title")
        self.assertEqual(wrong(tops[0], 1), 0)

    def trees_are_features(self):
        """Sites and gains in the tables of a GeoPackage, as SQLite has them."""
        base = sqlite3.connect(self.path("trees", "trees.gpkg"))
        self.addCleanup(base.close)
        self.assertEqual(base.execute("SELECT table_name, geometry_type_name, srs_id FROM gpkg_geometry_columns ORDER BY 1").fetchall(),
                         [("candidates", "POINT", 3006), ("trees", "POINT", 3006)])
        gains = [gain for gain, in base.execute("SELECT gain FROM trees ORDER BY tree")]
        self.assertEqual(len(gains), 2)
        self.assertGreater(gains[0], gains[1])
        self.assertGreater(gains[1], 0)

    def others_read_it(self):
        """By gdalinfo, and by rasterio, xarray and geopandas where Python has them."""
        tif = self.path("green", "summary", "utci_max.tif")
        if shutil.which("gdalinfo"):
            told = json.loads(subprocess.run(["gdalinfo", "-json", tif], capture_output=True, text=True, check=True).stdout)
            self.assertEqual(told["size"], [128, 128])
            self.assertIn("highest", json.dumps(told["bands"][0]))
        try:
            import rasterio
            with rasterio.open(tif) as raster, rasterio.open(self.path("green", "ground.tif")) as ground, \
                    rasterio.open(self.path("green", "summary", "utci_mean.tif")) as mean:
                self.assertEqual((raster.shape, raster.units[0]), ((128, 128), "degC"))
                highest = raster.read(1)
                self.colours_are_those_of_the_style(mean.read(1), ground.read(1))
        except ImportError:
            return
        try:
            import xarray
            with xarray.open_dataset(self.path("green", "run.nc")) as day:
                self.assertEqual(dict(day.sizes)["time"], 24)
                self.assertTrue((day.utci.max("time").values == highest).all(), "the summary is that of the hours")
                with open(self.path("green", "poi.csv"), encoding="utf-8") as file:
                    names = [row["time"] for row in csv.DictReader(file) if row["id"] == "square"]
                ahead = int(day.time.attrs["time_zone"].removeprefix("UTC")[:3])
                local = day.time.values + ahead * (day.time.values[1] - day.time.values[0])  # hours
                self.assertEqual([str(time)[:16] for time in local], names, "readers get UTC")
        except (ImportError, ValueError):  # without a reader of NetCDF
            pass
        try:
            import geopandas
            trees = geopandas.read_file(self.path("trees", "trees.gpkg"), layer="trees")
            self.assertEqual((len(trees), trees.crs.to_epsg(), set(trees.geom_type)), (2, 3006, {"Point"}))
        except ImportError:
            pass

    def test_the_way_from_umep(self):
        self.follow("urban-from-umep.md")
        for name in ("umep/svfs.zip", "umep/shadowmats.npz", "difference/compare.html", "walls/wall_height.qml"):
            self.assertTrue(os.path.exists(self.path(name)), name)
        with open(self.path("umep-day", "run.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["options"]["preset"]["value"], "umep")


if __name__ == "__main__":
    unittest.main()
