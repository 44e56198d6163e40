"""Every option of urban's other commands, of pde's other commands and of bench and emit changes something or is refused."""
import json
import re
import unittest

from options_walk import OptionsWalk
from program import npy, run
from test_urban import GEOTIFF

CLASSES = {"Bare": 6, "Roof": 2, "Grass": 5, "Cobble": 0, "Asphalt": 1, "Water": 7}
SURFACE = {"Albedo": 0.2, "Emissivity": 0.95, "Ts_deg": 0.3, "Tstart": -3, "TmaxLST": 15}
PARAMETERS = {"Code": {"Value": CLASSES}, "Tmrt_params": {"Value": {"absK": 0.5, "absL": 0.9, "posture": "Sitting"}},
              "Tree_settings": {"Value": {"Transmissivity": 0.3, "Trunk_ratio": 0.5}},
              **{name: {"Value": dict.fromkeys(CLASSES, value)} for name, value in SURFACE.items()}}
PLACE = ["--latitude", "57", "--longitude", "12"]
RUN = ["--dsm", "{dsm}", "--pixel-size", "1", "--weather", "{weather}", *PLACE, "--utc-offset", "1", "--outputs", "tmrt", "--format", "npy",
       "--no-pictures", "--to", "2015-06-21T11:00", "--patches", "145", "--device", "cpu", "--out", "{out}/r"]
TREES = ["--cdsm", "{cdsm}"]
WIND, SPEED = ["--wind-field", "{wind}"], ["--wind-field-values", "speed", "--wind-field-reference-speed", "2"]
SERIES = {
    "--pixel-size": ([], ["--pixel-size", "2"]), "--band": ([], ["--band", "2"]),
    "--dsm-heights": (["--dem", "{dem}"], ["--dsm-heights", "above-ground"]), "--dem": ([], ["--dem", "{dem}"]), "--cdsm": ([], TREES),
    "--tdsm": (TREES, ["--tdsm", "{tdsm}"]), "--trunk-ratio": (TREES, ["--trunk-ratio", "0.9"]), "--canopy": (TREES, ["--canopy", "absolute"]),
    "--land-cover": ([], ["--land-cover", "{cover}"]), "--wall-height": ([], ["--wall-height", "{height}", "--wall-aspect", "{aspect}"]),
    "--wall-aspect": (["--wall-height", "{height}", "--wall-aspect", "{aspect}"], ["--wall-aspect", "{other}"]),
    "--svf": ([], ["--svf", "{svf}"]), "--parameters": ([], ["--parameters", "{parameters}"]), "--weather": ([], ["--weather", "{hot}"]),
    "--from": ([], ["--from", "2015-06-21T11:00"]), "--to": ([], ["--to", "2015-06-21T12:00"]), "--utc-offset": ([], ["--utc-offset", "3"]),
    "--latitude": ([], ["--latitude", "10"]), "--longitude": ([], ["--longitude", "-30"]), "--elevation": ([], ["--elevation", "3000"]),
    "--interval": ([], ["--interval", "middle"]), "--direct": (["--weather", "{beam}"], ["--direct", "horizontal"]),
    "--wind-height": (["--outputs", "utci"], ["--wind-height", "2"]), "--leaf-days": (TREES, ["--leaf-days", "1:50"]),
    "--evergreen": ([*TREES, "--weather", "{winter}"], ["--evergreen"]),
    # Gridded weather and bands need NetCDF: tests/urban/run/fields_test.cpp and tests/io/era5_test.cpp.
    "--weather-cell": None, "--wind-field-directions": None,
    "--wind-field": (["--outputs", "utci"], WIND), "--wind-field-values": (["--outputs", "utci", *WIND], SPEED),
    "--wind-field-height": (["--outputs", "utci", *WIND], ["--wind-field-height", "5"]),
    "--wind-field-reference-height": (["--outputs", "utci", *WIND], ["--wind-field-reference-height", "5"]),
    "--wind-field-reference-speed": (["--outputs", "utci", *WIND, *SPEED], ["--wind-field-reference-speed", "3"]),
    "--air-temperature-field": ([], ["--air-temperature-field", "{air}"]),
    "--air-temperature-values": (["--air-temperature-field", "{air}"], ["--air-temperature-values", "absolute"]),
    "--outputs": ([], ["--outputs", "kdown"]), "--format": ([], ["--format", "nc"]), "--poi": ([], ["--poi", "{poi}"]),
    "--threshold": ([], ["--threshold", "tmrt>20"]), "--hours": ([], ["--hours", "10-11"]),
    "--preset": ([], ["--preset", "umep"]), "--sky": ([], ["--sky", "isotropic"]), "--body": ([], ["--body", "box"]),
    "--posture": ([], ["--posture", "sitting"]), "--substeps": ([], ["--substeps", "2"]), "--patches": ([], ["--patches", "153"]), "--max-reach": ([], ["--max-reach", "4"]),
    "--minimum-height": ([], ["--minimum-height", "14"]), "--wall-filter": (["--pixel-size", "2"], ["--wall-filter", "9px"]),
    "--wall-ties": None, "--no-pictures": None, "--no-video": None, "--include-roofs": ([], ["--include-roofs"]), "--no-resume": None,
    "--place": None, "--scenario": None, "--picture-range": None, "--daylight-saving": None,  # of pictures: below
    "--basemap": None,  # of pictures: tests/cli/test_urban_results.py
    "--tile": ([], ["--tile", "16"]), "--tile-workers": None, "--memory": ([], ["--memory", "1K"]),
}


class SeriesOptions(OptionsWalk):
    def setUp(self):
        super().setUp()
        def write(name, text):
            with open(self.path(name), "w") as file:
                file.write(text)
            return self.path(name)
        def grid(name, value):
            return npy(self.path(name), [[float(value(r, c)) for c in range(32)] for r in range(32)])
        slope = lambda r, c: 10 <= r < 18 and 8 <= c < 20 - r // 3
        plant = lambda r, c: 22 <= r < 26 and 8 <= c < 14
        hours = lambda ta: "time,Ta,RH,wind,Kglobal\n" + "".join("2015-06-21T%d:00,%d,50,2,%d\n" % (h, ta + h, 60 * h) for h in (10, 11, 12))
        self.places.update({
            "{dsm}": grid("dsm.npy", lambda r, c: 12 if slope(r, c) else 2 * (r > 20)), "{dem}": grid("dem.npy", lambda r, c: 3 * (r > 20)),
            "{cdsm}": grid("cdsm.npy", lambda r, c: 8 * plant(r, c)), "{tdsm}": grid("tdsm.npy", lambda r, c: 6 * plant(r, c)),
            "{cover}": grid("cover.npy", lambda r, c: 2 if slope(r, c) else 5), "{height}": grid("h.npy", lambda r, c: 9 * (r == 19)),
            "{aspect}": grid("a.npy", lambda r, c: 180 * (r == 19)), "{other}": grid("o.npy", lambda r, c: 20 * (r == 19)),
            "{wind}": grid("wind.npy", lambda r, c: 0.5 + c / 32), "{air}": grid("air.npy", lambda r, c: 1 + (r > 9)),
            "{weather}": write("w.csv", hours(10)), "{hot}": write("hot.csv", hours(22)),
            "{beam}": write("beam.csv", "time,Ta,RH,wind,Kglobal,Kdirect\n2015-06-21T11:00,20,50,2,600,500\n"),
            "{winter}": write("winter.csv", "time,Ta,RH,wind,Kglobal\n2015-01-15T11:00,2,50,2,100\n"), "{poi}": write("poi.csv", "id,x,y\nsite,20,12\n"),
            "{measured}": write("m.csv", "hour,Tmrt\n10,40\n11,45\n12,50\n"), "{junk}": write("junk.csv", "hour,Tmrt\n10,x\n"),
            "{parameters}": write("p.json", json.dumps(PARAMETERS)), "{svf}": self.path("svf")})

    def view_factors(self):
        done = run("urban", "svf", "--dsm", self.places["{dsm}"], "--pixel-size", "1", "--patches", "145", "--save-patches", "--max-reach", "9", "--format",
                   "npy", "--no-pictures", "--device", "cpu", "--out", self.places["{svf}"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_run(self):
        self.view_factors()
        # Of equally good directions either lights these walls alike; test_options.py walks through them in `urban walls`.
        self.walk_flat(["urban", "run"], RUN, SERIES, {"--dsm", "--out"})
        pictures = [a for a in RUN if a != "--no-pictures"]
        whole, plain = (self.outcome("urban", "run", *pictures, *more)[2] for more in (["--no-video"], ["--no-pictures"]))
        self.assertTrue([f for f in whole if f.endswith(".png")])
        self.assertFalse([f for f in plain if f.endswith((".png", ".mp4"))])
        for more in (["--place", "Here"], ["--scenario", "bare"], ["--picture-range", "0:99"], ["--daylight-saving", "0"]):
            named = self.outcome("urban", "run", *pictures, "--no-video", *more)[2]
            changed = {f for f in whole if named.get(f) != whole[f]}
            self.assertTrue(changed and all(f.endswith(".png") for f in changed), (more, changed))
        self.refuses_all(["urban", "run"], RUN, (
            (["--weather-cell", "nearest"], "ERA5"), (["--wind-field-height", "2"], "--wind-field"), ([*WIND, *SPEED[:2]], "--wind-field-reference-speed"),
            ([*WIND, *SPEED[2:]], "--wind-field-values speed"), ([*WIND, "--wind-field-directions", "90"], "1 bands"),
            (["--air-temperature-values", "offset"], "--air-temperature-field"),
            (["--trunk-ratio", "0.25"], "--cdsm"), (["--canopy", "above-ground"], "--cdsm"), (["--tdsm", "{tdsm}"], "--cdsm"),
            ([*TREES, "--tdsm", "{tdsm}", "--trunk-ratio", "0.25"], "trunk heights twice"), (["--wall-height", "{height}"], "only one wall grid"),
            ([*TREES, "--trunk-ratio", "0.3", "--parameters", "{parameters}"], "one of them"),
            (["--picture-range", "5:5"], "LOW:HIGH"), (["--picture-range", "cold"], "LOW:HIGH"), (["--daylight-saving", "9"], "0 to 2, or auto"),
            (["--wall-height", "{height}", "--wall-aspect", "{aspect}", "--minimum-height", "3"], "--minimum-height"),
            (["--svf", "{svf}", "--sky", "isotropic", "--patches", "145"], "--patches"), (["--outputs", "tmrt,tmrt"], "twice"),
            (["--leaf-days", "1:50"], "--cdsm"), ([*TREES, "--leaf-days", "1"], "FIRST:LAST"), ([*TREES, "--leaf-days", "1:50", "--evergreen"], "one of them"),
            (["--out", "{dsm}"], "a file has this name"), (["--out", "{dsm}/r"], "not a folder"), (["--telemetry", "{weather}"], "is the input")))

    def test_validate_and_gates(self):
        needs = [*RUN, "--poi", "{poi}", "--measured", "{measured}"]
        self.walk_flat(["urban", "validate"], needs, {"--measured": None, "--measured-utc-offset": ([], ["--measured-utc-offset", "2"])},
                       set(SERIES) | {"--dsm", "--out"})
        self.refuses_all(["urban", "validate"], needs, ((["--measured", "{junk}"], "Tmrt is 'x'"), (["--out", "{measured}"], "a file has this name")))
        self.assertNotIn("r", self.outcome("urban", "validate", *needs, "--measured", "{junk}")[2], "refused before the run")
        self.refuses_all(["urban", "gates"], [], [([o, v], o) for o, v in (
            ("--out", "o"), ("--format", "nc"), ("--poi", "{poi}"), ("--cdsm", "{cdsm}"), ("--weather", "{weather}"), ("--pixel-size", "1"), ("--lat", "3"))])
        self.refuses_all(["urban", "gates"], ["--dsm", "{dsm}"], (([], "--weather"),))

    def test_umep_and_one_place(self):
        self.view_factors()
        if GEOTIFF:
            self.walk_flat(["urban", "umep"], ["{svf}", "--out", "{out}/u"], {"--transmissivity": ([], ["--transmissivity", "0.5"]),
                                                                           "--format": ([], ["--format", "npy"])}, {"--out"})
        self.refuses_all(["urban", "umep"], ["{svf}"], ((["--out", "{svf}"], "holds the input"), (["--out", "{dsm}/u"], "not a folder")))
        air = ["--ta", "30", "--rh", "40", "--wind", "2", "--tmrt", "50"]
        table = {"--ta": ([], ["--ta", "20"]), "--rh": ([], ["--rh", "70"]), "--wind": ([], ["--wind", "4"]), "--tmrt": ([], ["--tmrt", "20"]),
                 "--wind-height": ([], ["--wind-height", "3"])}
        person = {"--mass": ([], ["--mass", "50"]), "--age": ([], ["--age", "80"]), "--height": ([], ["--height", "1.5"]), "--sex": ([], ["--sex", "female"]),
                  "--activity": ([], ["--activity", "150"]), "--clothing": ([], ["--clothing", "0.3"])}
        self.walk_flat(["urban", "utci"], air, table)
        self.walk_flat(["urban", "pet"], air, {**table, **person})
        self.refuses_all(["urban", "stage"], [], ((["utci", "{dsm}", "--list"], "--list"), (["--list", "--out", "{out}/x.npz"], "--list")))

    def test_pde(self):
        example = ["heat", "--cells", "8", "--windows", "1", "--iterations", "3", "--levels", "4", "--device", "interp", "--out", "{out}/e"]
        self.walk_flat(["pde", "example"], example, {
            "--cells": ([], ["--cells", "10"]), "--parameters": ([], ["--parameters", self.first_parameter("heat") + "=0.7"]),
            "--levels": ([], ["--levels", "5"]), "--windows": ([], ["--windows", "2"]), "--iterations": ([], ["--iterations", "4"])}, {"--out"})
        self.refuses_all(["pde", "example"], example, ((["--parameters", "none=1"], "unknown parameter"), (["--out", "{dsm}"], "a file has this name")))
        self.refuses_all(["pde", "example"], ["cavity", "--out", "{out}/e"], ((["--levels", "8"], "no time"),))
        study = ["--sizes", "8", "--iterations", "1", "--boundaries", "periodic", "--kernels", "two-kernel", "--device", "cpu"]
        self.walk_flat(["pde", "study"], study, {
            "--sizes": ([], ["--sizes", "4"]), "--boundaries": ([], ["--boundaries", "clamp"]), "--kernels": ([], ["--kernels", "two-sweep"]),
            "--orders": ([], ["--orders", "4"]), "--gradients": ([], ["--gradients", "none"]),
            "--tiles": (["--kernels", "two-sweep"], ["--tiles", "8x4x2"]), "--system": ([], ["--system", "flow"]), "--graph": None,
            "--levels": ([], ["--levels", "8"]), "--iterations": ([], ["--iterations", "2"]), "--csv": ([], ["--csv", "{out}/s.csv"])})
        self.refuses_all(["pde", "study"], study, ((["--tiles", "8x4x2"], "--tiles"), (["--levels", "16"], "--levels"), (["--csv", "{dsm}/s.csv"], "not a folder")))
        convergence = ["--sizes", "10,12", "--device", "interp"]
        self.walk_flat(["pde", "convergence"], convergence, {
            "--sizes": ([], ["--sizes", "10,14"]), "--out": ([], ["--out", "{out}/c.svg"]), "--csv": ([], ["--csv", "{out}/c.csv"])})
        self.refuses_all(["pde", "convergence"], convergence, ((["--out", "{out}/c.svg", "--csv", "{out}/c.svg"], "is also --out"),))

    def first_parameter(self, example):
        told = run("pde", "example", example, "--parameters", "?=1", "--out", self.path("e")).stderr
        return re.search(r"expected (\w+) \(", told).group(1)

    def test_bench_and_emit(self):
        self.refuses_all(["bench"], ["engine.copy"], (
            (["--tolerance", "5"], "--against"), (["--rounds", "3"], "--against"), (["--against", "{parameters}", "--rounds", "3"], "--rounds"),
            (["--plot", "{out}/p.png"], "solve.crossover"), (["--against", "{parameters}", "--out", "{parameters}"], "is the input")))
        self.refuses_all(["emit"], ["--list"], ((["--target", "ir"], "--target"), (["--out", "{out}/k"], "--out"), (["--arch", "sm_90"], "--arch")))
        self.refuses_all(["emit"], ["engine.copy"], ((["--arch", "sm_90"], "--arch"),))


if __name__ == "__main__":
    unittest.main()
