#!/usr/bin/env python3
"""Writes fixtures/*.json: inputs and what urban_model.py makes of them. usage: make_fixtures.py [--sun] [--out DIR]

Positions of the sun are inputs (fixtures/sun.json, noons.json, parts.json), computed by pvlib's Solar Position Algorithm; --sun computes them again.
Everything else needs the standard library alone and is the same on every machine to 12 digits.
"""
import argparse
import calendar
import datetime
import json
import math
import os
import random

import urban_city
import urban_model as model

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = [
    {"name": "north57", "latitude": 57.7, "longitude": 12.0, "elevation": 15.0, "utc_offset": 1, "date": "2015-06-21", "ta": 19.0, "rh": 55.0},
    {"name": "north57_winter", "latitude": 57.7, "longitude": 12.0, "elevation": 15.0, "utc_offset": 1, "date": "2015-12-02", "ta": 3.0, "rh": 80.0},
    {"name": "north31", "latitude": 31.2, "longitude": 121.5, "elevation": 4.0, "utc_offset": 8, "date": "2015-10-05", "ta": 24.0, "rh": 65.0},
    {"name": "south1", "latitude": -1.3, "longitude": 36.8, "elevation": 1661.0, "utc_offset": 3, "date": "2015-03-20", "ta": 23.0, "rh": 60.0},
    {"name": "south34", "latitude": -33.9, "longitude": 18.4, "elevation": 42.0, "utc_offset": 2, "date": "2015-12-15", "ta": 22.0, "rh": 50.0},
    {"name": "south53", "latitude": -53.2, "longitude": -70.9, "elevation": 37.0, "utc_offset": -4, "date": "2015-09-10", "ta": 4.0, "rh": 70.0},
]
SKY = [1.0, 0.85, 0.35, 0.95, 0.6, 1.0, 0.15, 0.9]  # share of a clear sky, hour by hour


# Runs in the city of scene(): place, parts of an hour, sky (1 anisotropic), patches, posture, land cover.
CITIES = [("north57", 1, 1, 153, "standing", False), ("south34", 3, 1, 145, "sitting", True), ("south1", 1, 0, 153, "standing", False),
          ("south53", 1, 1, 609, "standing", False)]
# Rows and columns: at walls of each direction, in the yard, in the street, under and next to crowns, by the pond, at the raster's edge.
POINTS = [(4, 10), (9, 17), (14, 12), (14, 22), (21, 15), (24, 27), (27, 7), (30, 20), (2, 33)]


def spa_of(place, when):
    """(apparent elevation, elevation, azimuth)."""
    import numpy
    from pvlib import spa
    utc = when - datetime.timedelta(hours=place["utc_offset"])
    seconds = numpy.array([float(calendar.timegm(utc.timetuple()))])
    values = numpy.ravel(spa.solar_position(seconds, place["latitude"], place["longitude"], place["elevation"], 1010.0, 10.0, 0.0, 0.5667))
    return float(values[2]), float(values[3]), float(values[4])


def position(place, when):
    apparent, _, azimuth = spa_of(place, when)
    return apparent, azimuth


def parts():
    """Suns of hours 1 to 23 of each city: of the middle, and of the middles of the parts."""
    cities = []
    for name, count, *_ in CITIES:
        place = next(p for p in PLACES if p["name"] == name)

        def sun_at(minutes):
            when = datetime.datetime.fromisoformat(place["date"]) + datetime.timedelta(minutes=minutes)
            apparent, true, azimuth = spa_of(place, when)
            return {"altitude": apparent, "azimuth": azimuth, "solar": urban_city.solar_hour(place["latitude"], true, azimuth)}

        cities.append({"name": name, "hours": [{"sun": sun_at(60 * h - 30), "suns": [sun_at(60 * (h - 1 + (k + 0.5) / count)) for k in range(count)]}
                                               for h in range(1, 24)]})
    return cities


def sun():
    days = []
    for place in PLACES:
        start = datetime.datetime.fromisoformat(place["date"])
        highest = max(position(place, start + datetime.timedelta(minutes=15 * k))[0] for k in range(96))
        hours = [position(place, start + datetime.timedelta(hours=h, minutes=-30)) for h in range(1, 24)]
        days.append({**place, "highest": highest, "hours": [{"altitude": a, "azimuth": z} for a, z in hours]})
    return days


def seasons():
    """Noons of every row and column of Smith's table, at Greenwich; south of the equator by `corrected`, turned by half a year."""
    noons = []
    for band in range(9):
        for column, (date, south) in enumerate([("2015-02-28", "2015-08-20"), ("2015-04-20", "2015-10-20"), ("2015-07-20", "2015-01-20"),
                                                ("2015-09-12", "2015-03-12")]):
            for latitude, day, preset in ((10.0 * band + 0.5, date, "solweig"), (-10.0 * band - 0.5, south, "corrected")):
                if latitude < 0 and column % 2:
                    continue
                place = {"name": "smith", "latitude": latitude, "longitude": 0.0, "elevation": 0.0, "utc_offset": 0, "date": day, "preset": preset}
                altitude, azimuth = position(place, datetime.datetime.fromisoformat(day + "T11:30"))
                if altitude > 1:  # no sun, no clearness
                    noons.append({**place, "altitude": altitude, "azimuth": azimuth})
    return noons


def smith(noons):
    cases = []
    for noon in noons:
        place = {n: v for n, v in noon.items() if n not in ("preset", "altitude", "azimuth")}
        doy = datetime.date.fromisoformat(noon["date"]).timetuple().tm_yday
        row = {"hour": 12, "clock": 12.0, "doy": doy, "altitude": noon["altitude"], "azimuth": noon["azimuth"], "highest": noon["altitude"],
               "ta": 11.0, "rh": 60.0, "wind": 2.0, "glob": round(400 * math.sin(math.radians(noon["altitude"])), 1)}
        cases.append({"place": place, "preset": noon["preset"], "posture": "standing", "patches": 153, "rows": [row],
                      "columns": [{"Ldown": model.open_ground(place, [row], noon["preset"])[0]["Ldown"]}]})
    return cases


def weather(day):
    """Rows of hours 1 to 23, times the ends of intervals."""
    doy = datetime.date.fromisoformat(day["date"]).timetuple().tm_yday
    rows = []
    for h, hour in enumerate(day["hours"], 1):
        up = max(0.0, math.sin(math.radians(hour["altitude"])))
        wave = math.sin(2 * math.pi * (h - 9) / 24)
        rows.append({"hour": h, "clock": float(h), "doy": doy, "altitude": hour["altitude"], "azimuth": hour["azimuth"], "highest": day["highest"],
                     "ta": round(day["ta"] + 5 * wave, 2), "rh": round(day["rh"] - 15 * wave, 1), "wind": round(1.5 + 0.25 * (h % 7), 2),
                     "glob": round(1080 * up ** 1.2 * SKY[h % len(SKY)], 1)})
    return rows


def stages(days):
    draw = random.Random(27)
    u = lambda low, high, digits=4: round(draw.uniform(low, high), digits)
    cases = []

    def add(stage, inputs, outputs):
        cases.append({"stage": stage, "inputs": inputs, "outputs": outputs})

    for day in days:
        year, month, date = (int(x) for x in day["date"].split("-"))
        for h, hour in enumerate(day["hours"], 1):
            if h % 2:
                add("sun", {"year": year, "month": month, "day": date, "hour": h - 1, "minute": 30, "second": 0, "utc_offset": day["utc_offset"],
                            "lat": day["latitude"], "lon": day["longitude"], "elevation": day["elevation"]},
                    {"altitude": hour["altitude"], "azimuth": hour["azimuth"]})
    # Every class of clearness by both formulas, high and low sun, every division of the sky.
    for k, ratio in enumerate([0.0, 0.1, 0.3, 0.6, 1.2, 2.2, 4.0, 8.0]):
        for altitude in (4.5, 17.0, 41.0, 68.0):
            for formula in (0, 1):
                s = {"altitude": altitude, "azimuth": u(0, 360), "radD": u(60, 300), "doy": 10 + 41 * k, "patches": [145, 153, 305, 609][(k + formula) % 4],
                     "formula": formula}
                s["radI"] = round(s["radD"] * ratio, 3)
                add("perez", s, {"luminance": model.perez(s["altitude"], s["azimuth"], s["radD"], s["radI"], s["doy"], s["patches"],
                                                          ["perez93", "umep_compat"][formula])})
    for k in range(16):
        s = {"azimuth": [0.0, 45.0, 90.0, 135.0, 180.0, 225.0, 270.0, 315.0][k % 8] + (0 if k < 8 else u(1, 40)), "altitude": u(3, 70) if k % 5 else -4.0,
             "radI": u(0, 800), "radD": u(20, 300), "radG": u(100, 900), "transmissivity": u(0.02, 0.5), "wall_albedo": u(0.1, 0.5),
             "esky": u(0.6, 0.9), "CI": [0.5, 0.97, 0.8, 1.0][k % 4], "Ta": u(-10, 35), "F_sh": u(0.1, 0.95), "ldown": u(250, 400),
             "wall_temperature_excess": u(0, 12), "wall_emissivity": u(0.85, 0.95), "sigma": 5.67051e-8}
        for d in model.SIDES:
            s["svf_" + d], s["kup_" + d], s["lup_" + d] = u(0.2, 0.9), u(10, 150), u(300, 500)
            s["svf_veg_" + d] = u(1 - s["svf_" + d] + 0.1, 1)
            s["svf_aveg_" + d] = u(max(s["svf_" + d], s["svf_veg_" + d]), 1)
        kreads = [n for n in s if n.startswith(("svf", "kup")) or n in ("azimuth", "altitude", "radI", "radD", "radG", "transmissivity", "F_sh", "wall_albedo")]
        lreads = [n for n in s if n.startswith(("svf", "lup")) or n in ("azimuth", "altitude", "esky", "CI", "Ta", "F_sh", "ldown", "wall_temperature_excess",
                                                                        "wall_emissivity", "sigma")]
        if s["altitude"] > 0:
            add("kside", {n: s[n] for n in kreads}, model.kside(s))
        add("lside", {n: s[n] for n in lreads}, model.lside(s, s["sigma"]))
    for k in range(12):
        f_up, f_side, f_cyl = model.POSTURE["sitting" if k % 2 else "standing"]
        s = {"kdown": u(0, 900), "kup": u(0, 150), "kside_total": u(0, 600), "ldown": u(200, 450), "lup": u(250, 600), "lside_total": u(200, 450),
             "abs_k": 0.7, "abs_l": [0.95, 0.97][k % 2], "f_up": f_up, "f_side": f_side, "f_cyl": f_cyl, "sky": k // 2 % 2, "sigma": 5.67e-8}
        for d in model.SIDES:
            s["kside_" + d], s["lside_" + d] = u(0, 300), u(150, 300)
        add("tmrt", s, {"tmrt": model.tmrt(s)})
    for k in range(40):
        s = {"ta": u(-45, 45), "rh": u(5, 100), "va": u(0.6, 16), "tmrt": 0.0}
        s["tmrt"] = round(s["ta"] + u(-25, 65), 4)
        add("utci", s, {"utci": model.utci(s["ta"], s["rh"], s["va"], s["tmrt"])})
    for k in range(36):
        s = {"ta": u(-5, 36, 1), "rh": u(20, 90, 0), "v": u(0.2, 4, 1), "tmrt": 0.0, "mass": u(45, 110, 0), "age": u(18, 85, 0), "height": u(1.5, 2.0, 2),
             "activity": u(60, 180, 0), "clothing": [0.25, 0.5, 0.9, 1.5, 2.2][k % 5], "sex": 1 + k % 2}
        s["tmrt"] = round(s["ta"] + u(-5, 40), 1)
        person = {n: s[n] for n in ("mass", "age", "height", "activity", "clothing", "sex")}
        add("pet", s, {"pet": model.pet(s["ta"], s["rh"], s["v"], s["tmrt"], **person)})
    # Temperatures of walls and ground: clear and dull hours of the day's course, before sunrise, low suns, both hemispheres.
    for k in range(30):
        place = {"latitude": [57.7, -33.9, -1.3, 68.4, -53.2][k % 5]}
        surface = [(0.37, -3.41, 15), (0.58, -9.78, 15), (0.40, -4.0, 15), (0.35, -5.0, 16), (0.50, -2.0, 14)][k // 5 % 5]
        s = {"lat": place["latitude"], "doy": [172, 350, 79, 265, 20][k // 3 % 5], "hour": u(4, 20), "altitude": u(1, 60), "highest": u(20, 80), "Ta": u(-10, 35),
             "RH": u(20, 95), "radG": u(0, 900), "tgk": surface[0], "tstart": surface[1], "tmax": surface[2]}
        row = {"doy": s["doy"], "ta": s["Ta"], "rh": s["RH"], "highest": s["highest"]}
        add("surface_temperature", s, {"excess": urban_city.surface_excess(place, row, {"altitude": s["altitude"], "solar": s["hour"]}, s["radG"], surface)})
    # Surroundings of two pixels, drawn patch by patch; no sun in every fifth.
    for k in range(12):
        count = [145, 153, 305, 609][k % 4]
        s = {"patches": count, "sky": int(k % 3 != 0), "altitude": u(3, 70) if k % 5 else -6.0, "azimuth": u(0, 360), "radI": u(0, 900), "radD": u(20, 300),
             "radG": u(100, 1000), "doy": 10 + 28 * k, "Ta": u(-10, 35), "esky": u(0.6, 0.9), "CI": [0.4, 0.93, 0.97, 1.0][k // 2 % 4],
             "transmissivity": u(0.02, 0.5), "wall_temperature_excess": u(0, 14), "wall_albedo": u(0.1, 0.5), "wall_emissivity": u(0.85, 0.97),
             "emissivity": u(0.9, 1)}
        given, wanted = [], []
        for _ in range(2):
            states = draw.choices(range(4), (5, 1, 3, 1), k=count)
            pixel = {"states": states, "shadow": draw.choice((0.0, 1.0, 0.25))}
            for view in urban_city.VIEWS:
                pixel["lup" + view], pixel["alb" + view], pixel["alb_no_shadow" + view] = u(300, 600), u(0, 0.3), u(0.1, 0.4)
            # View factors are given as `urban svf` writes them; sides are relative to those of flat ground.
            given.append({**pixel, **urban_city.view_factors(states, count, False, relative=False)})
            wanted.append(urban_city.fluxes({**s, **pixel, **urban_city.view_factors(states, count, False)}))
        both = lambda pixels: {name: [p[name] for p in pixels] for name in pixels[0]}
        add("radiation", {**s, **both(given), "states": [list(pair) for pair in zip(*both(given)["states"])]}, both(wanted))
    return cases


def open_ground(days):
    runs = []
    for k, day in enumerate(days):
        place = {n: v for n, v in day.items() if n not in ("hours", "highest")}
        for preset, posture, count in (("umep", "standing", 153), ("solweig", "sitting", 145)):
            rows = weather(day)
            if k % 2:
                for row in rows:
                    row["pressure"] = 890.0 if k == 3 else 985.0
            runs.append({"place": place, "preset": preset, "posture": posture, "patches": count, "rows": rows,
                         "columns": model.open_ground(place, rows, preset, posture, count)})
    return runs


def corrected(days):
    """By the integrals of the patches' cosines; ground that reflects what it does not absorb."""
    runs = []
    for day in days:
        place = {n: v for n, v in day.items() if n not in ("hours", "highest")}
        rows = weather(day)
        columns = [all_ if row["hour"] < 12 and row["altitude"] < -10 else {"Ldown": all_["Ldown"]}
                   for row, all_ in zip(rows, model.open_ground(place, rows, "corrected"))]
        runs.append({"place": place, "preset": "corrected", "posture": "standing", "patches": 153, "rows": rows, "columns": columns})
    return runs


def measured(days):
    """Beam and diffuse that are not what a split of the global would give; pressure of each place."""
    runs = []
    for k in (0, 2, 4):
        day = days[k]
        place = {n: v for n, v in day.items() if n not in ("hours", "highest")}
        rows = weather(day)
        for row in rows:
            row["pressure"] = 940.0
            s = math.sin(math.radians(max(row["altitude"], 1.0)))
            row["diffuse"] = round(row["glob"] * (0.25 if row["altitude"] > 5 else 1.0), 1)
            row["beam"] = round((row["glob"] - row["diffuse"]) / s, 1)
        runs.append({"place": place, "preset": ["umep", "", "solweig", "", "umep"][k], "posture": "standing", "patches": 153, "rows": rows,
                     "columns": model.open_ground(place, rows, ["umep", "", "solweig", "", "umep"][k])})
    return runs


def scene(covered):
    """A city without symmetry: a house of two heights, a yard open to the south-west, a tower, a slab; crowns; ground that rises to the north-east."""
    side = 36
    ground = [[2 + (side - 1 - r + 2 * c) / 64 for c in range(side)] for r in range(side)]
    dsm, crowns, aspect = [list(line) for line in ground], [[0.0] * side for _ in range(side)], [[0.0] * side for _ in range(side)]
    for top, left, bottom, right, height in ((5, 8, 9, 12, 11.25), (5, 12, 8, 21, 7.5), (8, 18, 20, 21, 9.0), (12, 6, 16, 9, 14.75), (23, 3, 26, 18, 6.25),
                                             (11, 28, 15, 31, 21.5), (29, 24, 32, 34, 4.5)):
        for r in range(top, bottom):
            dsm[r][left:right] = [ground[top][left] + height] * (right - left)
    for row, col, reach, height in ((17, 13, 2, 7.0), (26, 22, 3, 9.5), (4, 27, 2, 5.5)):
        for r in range(row - reach, row + reach + 1):
            for c in range(col - reach, col + reach + 1):
                if abs(r - row) + abs(c - col) <= reach and dsm[r][c] == ground[r][c]:
                    crowns[r][c] = height
    for r in range(1, side - 1):
        for c in range(1, side - 1):
            _, away = max((dsm[r + a][c + b], way) for a, b, way in ((-1, 0, 180), (0, 1, 270), (1, 0, 0), (0, -1, 90)))
            aspect[r][c] = (away + 7.375) % 360  # walls face away from what is higher, and not quite along the raster
    cover = None
    if covered:
        cover = [[2 if dsm[r][c] - ground[r][c] > 2 else 7 if (r - 31) ** 2 + (c - 14) ** 2 < 18 else 5 if r + c > 48 else 6 if c < 5 else 1
                  for c in range(side)] for r in range(side)]
    return {"dsm": dsm, "dem": ground, "crowns": crowns, "aspect": aspect, "cover": cover}


def city(days, suns):
    runs = []
    for (name, count, sky, patches, posture, covered), hours in zip(CITIES, suns):
        day = next(d for d in days if d["name"] == name)
        rows = [{**row, **hour} for row, hour in zip(weather(day), hours["hours"])]
        place = {n: v for n, v in day.items() if n not in ("hours", "highest")}
        runs.append({"place": place, "preset": "corrected", "sky": sky, "posture": posture, "patches": patches, "substeps": count, "covered": covered,
                     "rows": weather(day),
                     "columns": [{name: float("%.9g" % value) for name, value in entry.items()}
                                 for entry in urban_city.run(urban_city.City(**scene(covered)), place, rows, POINTS, sky, patches, posture)]})
    return runs


def everything(days):
    def stored(name):
        with open(os.path.join(HERE, "fixtures", name + ".json"), encoding="utf-8") as file:
            return json.load(file)

    noons = stored("noons")
    return (("city", city(days, stored("parts"))), ("smith", smith(noons)), ("stages", stages(days)), ("open_ground", open_ground(days)), ("corrected", corrected(days)), ("measured", measured(days)))


def rounded(value):
    if isinstance(value, float):
        return float("%.12g" % value)
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def text(items):
    return "[\n" + ",\n".join(json.dumps(rounded(item), separators=(",", ":")) for item in items) + "\n]\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sun", action="store_true")
    parser.add_argument("--out", default=os.path.join(HERE, "fixtures"))
    options = parser.parse_args()
    model.read_utci(os.path.join(HERE, "utci_coeffs.csv"))
    os.makedirs(options.out, exist_ok=True)
    stored = os.path.join(HERE, "fixtures", "sun.json")
    if options.sun:
        with open(stored, "w", encoding="utf-8") as file:
            file.write(text(sun()))
        for name, found in (("noons", seasons()), ("parts", parts())):
            with open(os.path.join(HERE, "fixtures", name + ".json"), "w", encoding="utf-8") as file:
                file.write(text(found))
    with open(stored, encoding="utf-8") as file:
        days = json.load(file)
    for name, items in everything(days):
        with open(os.path.join(options.out, name + ".json"), "w", encoding="utf-8") as file:
            file.write(text(items))


if __name__ == "__main__":
    main()
