"""Every option of urban's and pde's commands on grids changes something or is refused; values that contradict are refused."""
import unittest

from options_walk import OptionsWalk
from program import npy
from test_pde import PLACE, frames, write_npz
from test_urban import block

SUN = ["--azimuth", "200", "--altitude", "30"]
AT = ["--at", "2024-06-21T09:30", "--utc-offset", "1", "--latitude", "50", "--longitude", "8"]

# Command: what a run needs, and per option what is given with it in both runs and the option with its value.
CITY = {
    "--pixel-size": ([], ["--pixel-size", "2"]), "--band": ([], ["--band", "2"]),
    "--dsm-heights": (["--dem", "{dem}"], ["--dsm-heights", "above-ground"]), "--dem": (["--dsm-heights", "above-ground"], ["--dem", "{dem}"]),
    "--format": ([], ["--format", "tif"]), "--no-pictures": (None, ["--no-pictures"]), "--basemap": None,
    "--tile": ([], ["--tile", "64"]),
    "--tile-workers": (["--tile", "64"], ["--tile-workers", "2"]), "--memory": ([], ["--memory", "1K"]),
}
PLANTS = {
    "--cdsm": ([], ["--cdsm", "{cdsm}"]), "--tdsm": (["--cdsm", "{cdsm}"], ["--tdsm", "{tdsm}"]),
    "--trunk-ratio": (["--cdsm", "{cdsm}"], ["--trunk-ratio", "0.9"]), "--canopy": (["--cdsm", "{cdsm}"], ["--canopy", "absolute"]),
    "--max-reach": ([], ["--max-reach", "2"]),
}
WALLS = {"--minimum-height": ([], ["--minimum-height", "14"]), "--wall-filter": (["--pixel-size", "2"], ["--wall-filter", "9px"]),
         "--wall-ties": ([], ["--wall-ties", "first"])}
BESIDE_WALLS = {k: (["--walls"] + beside, value) for k, (beside, value) in WALLS.items()}
URBAN = {
    "shadows": (SUN, {**CITY, **PLANTS, **BESIDE_WALLS, "--azimuth": ([], ["--azimuth", "90"]), "--altitude": ([], ["--altitude", "60"]),
                      "--at": (None, ["--at", "2024-06-21T15:00"]), "--utc-offset": (None, ["--utc-offset", "3"]),
                      "--latitude": (None, ["--latitude", "10"]), "--longitude": (None, ["--longitude", "-30"]),
                      "--walls": ([], ["--walls"]), "--wall-height": ([], ["--wall-height", "{height}", "--wall-aspect", "{aspect}"]),
                      "--wall-aspect": (["--wall-height", "{height}", "--wall-aspect", "{aspect}"], ["--wall-aspect", "{other}"])}),
    "walls": ([], {**CITY, **WALLS}),
    "svf": (["--patches", "145"], {**CITY, **PLANTS, "--patches": ([], ["--patches", "153"]), "--zenith": ([], ["--zenith", "open"]),
                                   "--annuli": (["--patches", "609"], ["--annuli", "solweig"]), "--save-patches": ([], ["--save-patches"]),
                                   "--no-resume": (["--tile", "64"], ["--no-resume"])}),
}
SAMPLE = {"--format": ([], ["--format", "npy"]), "--no-pictures": ([], ["--no-pictures"]), "--basemap": None, "--size": ([], ["--size", "40"]),
          "--pixel-size": ([], ["--pixel-size", "2"]), "--seed": ([], ["--seed", "9"]), "--epsg": (["--format", "tif"], ["--epsg", "25832"])}
LOSS = {
    "--spacing": ([], ["--spacing", "0.3,0.2,0.3"]), "--dt": ([], ["--dt", "0.1"]), "--boundary": ([], ["--boundary", "x=clamp"]),
    "--order": ([], ["--order", "4"]), "--weights": ([], ["--weights", "1,3"]), "--terms": ([], ["--terms", "transport"]),
    "--kernel": (["--device", "interp"], ["--kernel", "reference"]), "--gradients": ([], ["--gradients", "none"]),
    "--out": (None, ["--out", "{out}/g.npz"]), "--boundary-sigma": (["--boundary", "clamp"], ["--boundary-sigma", "node_mirror"]),
    **{"--boundary-u" + c: (["--boundary", "clamp"], ["--boundary-u" + c, "reflect_odd"]) for c in "xyz"},
    "--boundary-p": (["--boundary", "clamp"], ["--boundary-p", "reflect_odd"]),
    "--parameters": (["--boundary", "x=ghost:@b", "--parameters", "b=0"], ["--parameters", "b=1"]),
}
REFUSED = {
    "urban": [["shadows", *SUN, *AT], ["shadows"], ["shadows", "--azimuth", "3"], ["shadows", *SUN, "--latitude", "9"],
              ["shadows", *SUN, "--minimum-height", "2"], ["shadows", *SUN, "--walls", "--wall-height", "{height}", "--wall-aspect", "{aspect}"],
              ["shadows", *SUN, "--wall-height", "{height}"], ["shadows", *SUN, "--tdsm", "{tdsm}"], ["shadows", *SUN, "--trunk-ratio", "0.3"],
              ["shadows", *SUN, "--cdsm", "{cdsm}", "--tdsm", "{tdsm}", "--trunk-ratio", "0.3"], ["shadows", *SUN, "--canopy", "absolute"],
              ["svf", "--annuli", "solweig"], ["walls", "--dsm-heights", "above-ground"], ["walls", "--tile", "0"], ["walls", "--tile-workers", "-1"]],
    "pde": [["--boundary", "x=clamp,x=periodic"], ["--boundary", "clamp,periodic"], ["--terms", "all,viscosity:-"], ["--gradients", "t9"]],
}


class Options(OptionsWalk):
    def setUp(self):
        super().setUp()
        rows = block(96)
        for r in range(40, 60):
            for c in range(40, 70 - r // 3):
                rows[r][c] = 9.0
        grid = lambda name, value: npy(self.path(name), [[value(r, c) for c in range(96)] for r in range(96)])
        for r in range(70, 76):
            rows[r][20:30] = [2.0] * 10  # plants on a terrace: heights above ground and absolute ones differ
        self.dsm = npy(self.path("dsm.npy"), rows)
        plant = lambda r, c: 70 <= r < 76 and 20 <= c < 30
        self.places = {"{dem}": grid("dem.npy", lambda r, c: 20.0 * (r > 30) + 1), "{cdsm}": grid("cdsm.npy", lambda r, c: 8.0 * plant(r, c)),
                       "{tdsm}": grid("tdsm.npy", lambda r, c: 5.0 * plant(r, c)), "{height}": grid("h.npy", lambda r, c: 6.0 * (r == 30)),
                       "{aspect}": grid("a.npy", lambda r, c: 180.0 * (r == 30)), "{other}": grid("o.npy", lambda r, c: 20.0 * (r == 30)),
                       "{out}": self.path("out")}

    def test_urban(self):
        for command, (needs, table) in URBAN.items():
            def base(option, more, needs=needs, command=command):
                given = ["--dsm", self.dsm, "--out", self.path("out"), "--device", "cpu"]
                if option in ("--at", "--utc-offset", "--latitude", "--longitude"):
                    given += [a for k in range(0, len(AT), 2) if AT[k] not in more for a in AT[k:k + 2]]
                else:
                    given += [a for k in range(0, len(needs), 2) if needs[k] not in more for a in needs[k:k + 2]]
                given += [] if "--pixel-size" in more else ["--pixel-size", "1"]
                given += [] if "--format" in more else ["--format", "npy"]
                given += [] if option == "--no-pictures" else ["--no-pictures"]
                return given + (more if option != "--no-pictures" else more)
            self.walk(["urban", command], base, table, {"--dsm", "--out"},
                      {"--tile-workers", "--no-resume"})  # where nothing was left, nothing is taken over
        for arguments in REFUSED["urban"]:
            with self.subTest(refused=arguments):
                more = [] if "--pixel-size" in arguments else ["--pixel-size", "1"]
                self.assertEqual(self.outcome("urban", *arguments, "--dsm", self.dsm, *more, "--out", self.path("out"), "--device", "cpu")[0], 2)

    def test_urban_sample(self):
        def base(option, more):
            given = ["--out", self.path("out")] + ([] if option in ("--no-pictures",) else ["--no-pictures"])
            return given + ([] if "--size" in more else ["--size", "24"]) + ([] if "--format" in more else ["--format", "npy"]) + more
        table = dict(SAMPLE)
        table["--format"] = ([], ["--format", "tif"])
        self.walk(["urban", "sample"], base, table, {"--out"})

    def test_pde_loss(self):
        path = write_npz(self.path("in.npz"), frames(mask=True))
        def base(option, more):
            for word in set(more):  # the last of two
                while more.count(word) > 1 and word.startswith("--"):
                    at = more.index(word)
                    more = more[:at] + more[at + 2:]
            place = [a for k in range(0, len(PLACE), 2) if PLACE[k] not in more for a in PLACE[k:k + 2]]
            out = [] if option == "--out" else ["--out", self.path("out", "g.npz")]
            return [path, *place, *out, *([] if "--device" in more else ["--device", "cpu"]), *more]
        self.walk(["pde", "loss"], base, {**LOSS, "--residuals": ([], ["--residuals", "{out}/r.npz"])})
        trajectory = {k: v for k, v in LOSS.items() if k != "--kernel"}
        trajectory["--kernel"] = (["--device", "interp"], ["--kernel", "fused"])
        self.walk(["pde", "trajectory"], base, trajectory)
        for arguments in REFUSED["pde"]:
            with self.subTest(refused=arguments):
                self.assertEqual(self.outcome("pde", "loss", path, *PLACE, *arguments)[0], 2)


if __name__ == "__main__":
    unittest.main()
