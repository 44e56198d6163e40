"""A person among buildings and trees by the preset `corrected`, hour by hour, from the published formulas alone.

Shadows, walls, view factors, temperatures of ground and walls, fluxes on the body and on vertical planes. Shares nothing with src/;
standard library only. Grids are lists of rows, north first.
"""
from math import acos, asin, atan, atan2, ceil, cos, exp, inf, pi, sin, sqrt, tan

import urban_ground
import urban_model as model
from urban_model import SIDES, rad

KELVIN = 273.15
SIGMA = model.SIGMA["corrected"]
WALL = {"albedo": 0.2, "emissivity": 0.9, "tgk": 0.37, "tstart": -3.41, "tmax": 15}
# Land cover: albedo, emissivity, TgK, Tstart, hour of the highest temperature. None: ground without a class.
COVERS = {None: (0.15, 0.95, 0.37, -3.41, 15), 1: (0.18, 0.95, 0.58, -9.78, 15), 2: (0.18, 0.95, 0.58, -9.78, 15), 5: (0.16, 0.94, 0.21, -3.38, 14),
          6: (0.25, 0.94, 0.33, -3.01, 14), 7: (0.05, 0.98, 0.0, 0.0, 12)}
WATER = 7
CROWN, BARE_CROWN = 0.03, 0.5  # transmissivity with leaves and without
SOUTH_WEST = 3.0459e-4  # added to the southern and western half skies
SKY, PLANT, BUILDING, PLANT_FIRST = range(4)
FACTORS = ["svf", "svf_veg", "svf_aveg"]
VIEWS = ["", *("_" + d for d in SIDES)]


# --- a step's weather -------------------------------------------------------------------------------------------------

def solar_hour(latitude, altitude, azimuth):
    """True solar time of a sun, refraction taken off its altitude."""
    a, e, f = rad(azimuth), rad(altitude), rad(latitude)
    return 12 + atan2(-sin(a) * cos(e), sin(e) * cos(f) - cos(e) * cos(a) * sin(f)) * 12 / pi


def surface_excess(place, row, sun, glob, surface):
    """Kelvin that a sunlit surface is above the air."""
    tgk, tstart, tmax = surface
    rise = model.sunrise(row["doy"], place["latitude"])
    if sun["altitude"] <= 0 or sun["solar"] < rise:
        return 0.0
    length = tmax - rise if tmax > rise else 24.0
    zenith, sine = 90 - sun["altitude"], sin(rad(sun["altitude"]))
    clear = model.clear_sky(zenith, row["doy"], place["latitude"], row["ta"], row["rh"], south="turned")
    beam, diffuse = model.reindl(clear, 1.0, sun["altitude"], row["ta"], row["rh"])
    share = glob / (beam * sine + diffuse) + 1 - model.correction(zenith)
    return max(0.0, (tgk * row["highest"] + tstart) * sin((sun["solar"] - rise) / length * pi / 2) * min(1.0, share))


def radiation(place, row, sun, glob):
    """(beam, diffuse, clearness) of a global radiation; the beam is at most that of a clear sky."""
    doy, altitude = row["doy"], sun["altitude"]
    sine, about = sin(rad(altitude)), (90 - altitude, doy, place["latitude"], row["ta"], row["rh"])
    beam, diffuse = model.reindl(glob, glob / (1370 * sine * sqrt(model.distance_squared(doy))), altitude, row["ta"], row["rh"])
    most = model.clear_beam(*about, south="turned")
    if beam > most:
        beam, diffuse = most, glob - most * sine
    return beam, diffuse, min(1.0, glob / model.clear_sky(*about, south="turned") + 1 - model.correction(90 - altitude))


def parts_of(place, row):
    """A row's suns with their radiation; its means stay. The last value is the clearness, None at night."""
    shown = lambda s: {**s, "altitude": 1.0 if 0 <= s["altitude"] < 1 else s["altitude"]}
    whole, suns = shown(row["sun"]), [shown(s) for s in row["suns"]]
    clearness = radiation(place, row, whole, row["glob"])[2] if whole["altitude"] > 0 else None
    sines = [sin(rad(s["altitude"])) if s["altitude"] > 0 else 0.0 for s in suns]
    if sum(sines) == 0:
        suns, sines = [whole], [1.0]
    for s, sine in zip(suns, sines):
        s["glob"] = row["glob"] * sine * len(suns) / sum(sines) if s["altitude"] > 0 else 0.0
        s["beam"], s["diffuse"] = radiation(place, row, s, s["glob"])[:2] if s["altitude"] > 0 else (0.0, 0.0)
    return suns, clearness


def crown(doy, latitude):
    """Leaves from day 98 to 299 in the north, half a year later in the south, all year between the tropics."""
    leaves = 97 < doy < 300 if latitude > 0 else doy > 97 + 183 or doy < 300 + 183 - 365
    return CROWN if leaves or abs(latitude) < 23.44 else BARE_CROWN


# --- shadows, walls and view factors ----------------------------------------------------------------------------------

class City:
    """Heights in metres: `dsm` and `dem` absolute, `crowns` above the ground with trunks of a quarter; pixels of 1 m."""

    def __init__(self, dsm, dem, crowns, aspect, cover):
        self.dsm, self.aspect, self.cover = dsm, aspect, cover
        self.rows, self.cols = len(dsm), len(dsm[0])
        absolute = lambda part: [[h + part * c if c else 0.0 for h, c in zip(*pair)] for pair in zip(dsm, crowns)]
        self.canopy, self.trunk = absolute(1.0), absolute(0.25)
        self.ground = [[float(h - g < 2) for h, g in zip(*pair)] for pair in zip(dsm, dem)]
        self.walls = [[self.wall(r, c) for c in range(self.cols)] for r in range(self.rows)]
        self.relief = max(map(max, [*dsm, *self.canopy])) - min(map(min, dsm))

    def wall(self, r, c, least=3.0):
        if not (0 < r < self.rows - 1 and 0 < c < self.cols - 1):
            return 0.0
        height = max(self.dsm[r + a][c + b] for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))) - self.dsm[r][c]
        return height if height >= least else 0.0

    def cast(self, r, c, azimuth, altitude):
        """(state, height up to which buildings shade, depth of a crown's shade) of a ray from a pixel towards the sky."""
        a, h = rad(azimuth), self.dsm[r][c]
        zenith = altitude == 90
        stride = 1 / max(abs(sin(a)), abs(cos(a)))
        building = plant = counted = False
        shade, leafy, before, n = h, self.canopy[r][c], 0.0, 0
        while before <= self.relief:
            down, right = urban_ground.offset(n, a)
            y, x = r + down, c + right
            if not (0 <= y < self.rows and 0 <= x < self.cols):
                break
            rise = inf if zenith and n else stride * n * tan(rad(altitude)) if n else 0.0
            top, leaves, trunk = self.dsm[y][x], self.canopy[y][x], self.trunk[y][x]
            building = building or top - rise > h
            plant = plant or 0 < sum((leaves - rise > h, trunk - rise > h, leaves - before > h, trunk - before > h)) < 4
            plant = plant and not building
            counted = counted or plant
            shade, leafy, before, n = max(shade, top - rise), max(leafy, leaves - rise), rise, n + 1
        state = (PLANT_FIRST if counted else BUILDING) if building else PLANT if plant else SKY
        return state, shade, max(0.0, leafy - h) if state == PLANT else 0.0

    def sunlit(self, sun, psi):
        """(light on the ground, sunlit height of walls) where crowns let `psi` through."""
        light, walls = [], []
        for r in range(self.rows):
            light.append([])
            walls.append([])
            for c in range(self.cols):
                state, shade, depth = self.cast(r, c, sun["azimuth"], sun["altitude"])
                light[r].append({SKY: 1.0, PLANT: psi}.get(state, 0.0))
                wall = self.walls[r][c]
                away = urban_ground.turned_away(rad(sun["azimuth"]), rad(self.aspect[r][c]), wall > 0) == 1
                bright = 0.0 if away else max(0.0, wall - (shade - self.dsm[r][c]))
                walls[r].append(max(0.0, bright - min(max(depth - (wall - bright), 0.0), wall)))
        return light, walls

    def states(self, r, c, count):
        return [self.cast(r, c, azimuth % 360, altitude)[0] for altitude, azimuth, _ in model.patches(count)]


def in_side(azimuth, view):
    return {"": True, "_east": azimuth < 180, "_south": 90 <= azimuth < 270, "_west": azimuth >= 180, "_north": azimuth >= 270 or azimuth < 90}[view]


def view_factors(states, count, trunk, relative=True):
    """Johnson & Watson's cosine-weighted factors; half skies `relative` to those of flat ground. `trunk`: a trunk is on the pixel."""
    sky, edges = model.patches(count), [0, 12, 24, 36, 48, 60, 72, 84, 90]
    if count == 609:
        edges = [*range(0, 90, 6), 90]
    numbers, found = {}, {}
    for altitude, _, _ in sky:
        numbers[altitude] = numbers.get(altitude, 0) + 1
    ring = {p: sin(rad(1)) * sum(sin(rad(2 * (91 - k) - 1)) for k in range(low + 1, high + 1)) for p, low, high in zip(numbers, edges, edges[1:])}
    seen = {"svf": (SKY, PLANT), "svf_veg": (SKY, BUILDING, PLANT_FIRST), "svf_aveg": (SKY, PLANT, BUILDING)}
    for view in VIEWS:
        weigh = lambda p: ring[p] / (ceil(numbers[p] / 2) if view else numbers[p])
        more = SOUTH_WEST if view in ("_south", "_west") else 0.0
        flat = min(1.0, sum(weigh(p) for p, az, _ in sky if in_side(az % 360, view)) + more) if view and relative else 1.0
        for factor in FACTORS:
            total = sum(weigh(p) for (p, az, _), state in zip(sky, states) if state in seen[factor] and in_side(az % 360, view))
            total += more if factor == "svf" or not trunk else 0.0
            found[factor + view] = min(1.0, min(1.0, total) / flat)
    return found




# --- fluxes -----------------------------------------------------------------------------------------------------------

def shaded_walls(svf, veg, altitude):
    """F, share of the walls around in shadow: cylindrical wedge."""
    tan_a, tan_b = tan(asin(sqrt(1 - max(0.0, svf + veg - 1)))), tan(rad(90 - altitude))
    if tan_a == 0:
        return 0.5
    ba, product = 1 / tan_a, tan_a * tan_b
    xa, hk = 1 - 2 / product, 2 * ba * 2 / product
    uk = 0.0
    if xa < 0:
        qa = tan_b / 2
        phi = atan(sqrt(ba * ba - qa * qa / 4) / qa)
        uk = 2 * ba * xa * (sin(phi) - phi * cos(phi)) / (1 - cos(phi))
    return (2 * pi * ba - (hk + uk)) / (2 * pi * ba)


def fluxes(s, posture="standing"):
    """Fluxes around a body by sun, weather, sky states and the view of the ground: `s` as the stage `radiation` reads it."""
    day, count, sine = s["altitude"] > 0, len(s["states"]), sin(rad(s["altitude"]))
    ta = s["Ta"] + KELVIN
    air, ew, aw = SIGMA * ta**4, s["wall_emissivity"], s["wall_albedo"]
    hot = SIGMA * ew * (ta + s["wall_temperature_excess"]) ** 4
    beam, diffuse, glob = (s["radI"], s["radD"], s["radG"]) if day else (0.0, 0.0, 0.0)
    open_, psi, svf = s["svf"] + s["svf_veg"] - 1, s["transmissivity"], s["svf"]
    view = min(1.0, max(0.0, svf - (1 - s["svf_veg"]) * (1 - psi)))
    share = shaded_walls(svf, s["svf_veg"], s["altitude"]) if day else 0.5
    mix = glob * (1 - share) + diffuse * share
    walls = aw * (1 - view) * mix
    kup = {v: s["alb" + v] * beam * sine + (diffuse * view + walls) * s["alb_no_shadow" + v] if day else 0.0 for v in VIEWS}
    esky = s["CI"] * s["esky"] + 1 - s["CI"] if s["CI"] < 0.95 else s["esky"]
    reflects = 1 - s["emissivity"]
    direct = s["shadow"] * beam * cos(rad(s["altitude"])) if day else 0.0
    faced = {d: direct * max(0.0, cos(rad(s["azimuth"] - f))) for d, f in SIDES.items()}
    k, l = {}, {}

    def exchange(given, part):
        """Ldown where walls give `part` of what they receive back, the ground what it does not absorb."""
        return (given + part * s["lup"]) / (1 - part - part * reflects)

    if s["sky"]:
        sky, weights = model.patches(count), model.cosines(count, True)
        dull = [exp(0.308 * (1.7 - 1 / sin(rad(p)))) for p, _, _ in sky]
        whole = sum(v * w[0] for v, w in zip(dull, weights)) / pi
        luminance = model.perez(s["altitude"], s["azimuth"], diffuse, beam, s["doy"], count) if day else [0.0] * count
        lit_total = sum(v * w[0] for v, w in zip(luminance, weights))
        tan_view = inf if svf == 0 else tan(acos(sqrt(svf)))
        light, glow, hidden, seen = [], [], [], 0.0
        for (p, az, _), state, v, d in zip(sky, s["states"], luminance, dull):
            apart = abs(az % 360 - s["azimuth"])
            low = min(0.0, 2 * cos(rad(apart)) * tan(rad(s["altitude"]))) if day else 0.0
            lit = state == BUILDING and (p == 90 or tan_view < tan(rad(p)) - low)
            if state == SKY:
                light.append(v * diffuse / lit_total if day else 0.0)
                glow.append((1 - (1 - esky) * d / whole) * air / pi)
            else:
                light.append((aw * beam * cos(rad(s["altitude"])) * (lit and day) + aw * diffuse / 2) / pi)
                glow.append((hot if lit and day and 90 < apart < 270 else ew * air) / pi)
            seen += v * {SKY: 1.0, PLANT: psi}.get(state, 0.0)
            hidden.append(float(state != SKY))
        onto = lambda values, pick: sum(v * pick(w) for v, w in zip(values, weights))
        down, side = (lambda w: w[0]), (lambda w: w[1])
        kdown = direct * tan(rad(s["altitude"])) + diffuse * seen + walls if day else 0.0
        ldown = exchange(onto(glow, down), (1 - ew) / 2 * onto(hidden, down) / pi)
        back = (ldown + s["lup"] + reflects * ldown) * (1 - ew) / 2 / pi
        curved_k, curved_l = direct + onto(light, side), onto(glow, side) + back * onto(hidden, side)
        for d in SIDES:
            face = lambda w: w[2][d]
            k[d] = onto(light, face)
            l[d] = onto(glow, face) + back * onto(hidden, face)
        body_k = body_l = {d: 0.0 for d in SIDES}
    else:
        kdown = direct * tan(rad(s["altitude"])) + diffuse * view + walls if day else 0.0
        given = open_ * esky * air + (2 - s["svf_veg"] - s["svf_aveg"]) * ew * air + (s["svf_aveg"] - svf) * hot
        ldown = exchange(given, (2 - svf - s["svf_veg"]) * (1 - ew) / 2)
        curved_k, curved_l = direct, 0.0
        for d, f in SIDES.items():
            see = lambda x: model.side_view(x) / 4.4897
            one, veg, aveg = (s[name + "_" + d] for name in FACTORS)
            covered, plants = 1 - see(one), see(one) - see(one + veg - 1)
            q = covered + plants * (1 - psi)
            k[d] = (diffuse * (1 - q) + aw * q * mix) / 2
            wall = see(aveg) - see(one)
            sky, rest = see(one + veg - 1), 1 - see(one + veg - 1)
            # A wall seen in a direction shines where the sun is behind the person.
            behind = cos(rad(s["azimuth"] - f - 180))
            toward = {"east": s["azimuth"] > 180, "south": not 90 < s["azimuth"] <= 270, "west": s["azimuth"] <= 180, "north": 90 < s["azimuth"] <= 270}[d]
            bright = 0.0
            if day and toward:
                alpha, turn = asin(sqrt(1 - one)), 2 * share - 1
                a, b = atan(alpha), atan(tan(alpha * turn))
                bright = (1 - turn) * cos((a - b) / 2 + b)
            warm = SIGMA * ew * (ta + s["wall_temperature_excess"] * max(0.0, behind)) ** 4
            below = s["lup_" + d] + reflects * ldown
            side_sky = s["CI"] * s["esky"] + 1 - s["CI"]
            l[d] = (wall * (warm * bright + ew * air * (1 - bright)) + side_sky * air * sky + ew * air * (rest - wall) +
                    (ldown + below) / 2 * rest * (1 - ew)) / 2
        body_k, body_l = k, l
    f_up, f_side, f_cyl = model.POSTURE[posture]
    f_cyl = 0.2122 if posture == "sitting" else f_cyl
    half_k = {d: kup["_" + d] / 2 for d in SIDES}
    half_l = {d: (s["lup_" + d] + reflects * ldown) / 2 for d in SIDES}
    lup = s["lup"] + reflects * ldown
    body = {"kdown": kdown, "kup": kup[""], "ldown": ldown, "lup": lup, "kside_total": curved_k, "lside_total": curved_l, "sky": 1, "abs_k": 0.7,
            "abs_l": 0.97, "f_up": f_up, "f_side": f_side, "f_cyl": f_cyl, "sigma": SIGMA}
    out = {name: body[name] for name in ("kdown", "kup", "ldown", "lup")}
    for d in SIDES:
        body["kside_" + d], body["lside_" + d] = body_k[d] + half_k[d], body_l[d] + half_l[d]
        out["kside_" + d], out["lside_" + d] = faced[d] + k[d] + half_k[d], l[d] + half_l[d]
    around = lambda name: (body[name + "_total"] * f_cyl + sum(body[name + "_" + d] for d in SIDES) * f_side) / (4 * f_side)
    return {**out, "kside": around("kside"), "lside": around("lside"), "tmrt": model.tmrt(body)}


# --- hour by hour -----------------------------------------------------------------------------------------------------

def mean_air(rows, row):
    """Of the intervals that end within 12 hours of the middle of this one."""
    near = [r["ta"] for r in rows if -12.5 < r["hour"] - row["hour"] <= 11.5]
    return sum(near) / len(near)


def run(city, place, rows, points, sky=1, count=153, posture="standing"):
    """The columns of poi.csv, point by point, of successive hours of one day."""
    states = [city.states(r, c, count) for r, c in points]
    views = [view_factors(s, count, city.trunk[r][c] != 0) for s, (r, c) in zip(states, points)]
    covers = [[COVERS[city.cover[r][c] if city.cover else None] for c in range(city.cols)] for r in range(city.rows)]
    water = [[float(city.cover is not None and city.cover[r][c] == WATER) for c in range(city.cols)] for r in range(city.rows)]
    pick = lambda k: [[surface[k] for surface in line] for line in covers]
    taller = 1.0 if posture == "standing" else 0.75 / 1.1
    held, clearness, out = None, 1.0, []
    for row in rows:
        suns, of_row = parts_of(place, row)
        clearness = clearness if of_row is None else of_row
        pond, psi = mean_air(rows, row) - row["ta"], crown(row["doy"], place["latitude"])
        sums = []
        for sun in suns:
            day = sun["altitude"] > 0
            excess = {cover: surface_excess(place, row, sun, sun["glob"], surface[2:]) for cover, surface in COVERS.items()}
            excess[WATER] = pond
            wall_excess = surface_excess(place, row, sun, sun["glob"], (WALL["tgk"], WALL["tstart"], WALL["tmax"]))
            light, wall_sun = city.sunlit(sun, psi) if day else (None, None)
            beyond = {"shadow": light, "wall_sun": wall_sun, "wall_height": [[w * g for w, g in zip(*p)] for p in zip(city.walls, city.ground)],
                      "wall_aspect": city.aspect, "buildings": city.ground, "Ta": row["ta"], "emissivity": pick(1), "albedo": pick(0),
                      "wall_emissivity": WALL["emissivity"], "wall_albedo": WALL["albedo"], "wall_temperature_excess": wall_excess,
                      "ground_temperature_excess": [[excess[city.cover[r][c] if city.cover else None] for c in range(city.cols)] for r in range(city.rows)],
                      "steady": water, "first": 1, "second": round(22 * taller), "sigma": SIGMA}
            fresh = []
            for r, c in points:
                seen = urban_ground.ground_view(beyond, r, c) if day else {**{n + v: 0.0 for v in VIEWS for n in ("alb", "alb_no_shadow")}, "norm": 0.0}
                if not day:
                    warm = row["ta"] + KELVIN + (pond if water[r][c] else 0.0)
                    seen.update({"lup" + v: SIGMA * covers[r][c][1] * warm**4 for v in VIEWS})
                fresh.append(seen)
            if day:
                w = exp(-33.27 / 24 / len(suns))
                held = held or fresh
                held = [{**new, **{"lup" + v: new["lup" + v] * (1 - w) + old["lup" + v] * w for v in VIEWS}} for new, old in zip(fresh, held)]
            else:
                held = None
            here = []
            for k, (r, c) in enumerate(points):
                seen = held[k] if day else fresh[k]
                s = {"sky": sky, "states": states[k], **views[k], **seen, "shadow": light[r][c] if day else 0.0, "radI": sun["beam"], "radD": sun["diffuse"],
                     "radG": sun["glob"], "altitude": sun["altitude"], "azimuth": sun["azimuth"], "doy": row["doy"],
                     "esky": model.sky_emissivity(row["ta"], row["rh"]), "CI": clearness, "Ta": row["ta"], "transmissivity": psi,
                     "wall_temperature_excess": wall_excess, "wall_albedo": WALL["albedo"], "wall_emissivity": WALL["emissivity"],
                     "emissivity": covers[r][c][1]}
                here.append({**fluxes(s, posture), "shadow": s["shadow"], "gvf": seen["norm"], "svf": views[k]["svf"], "svf_veg": views[k]["svf_veg"]})
            sums.append(here)
        for k in range(len(points)):
            mean = {name: sum(part[k][name] for part in sums) / len(sums) for name in sums[0][k]}
            mean["tmrt"] = (sum((part[k]["tmrt"] + KELVIN) ** 4 for part in sums) / len(sums)) ** 0.25 - KELVIN
            out.append({"point": k, "hour": row["hour"], **{column(name): value for name, value in mean.items()}})
    return sorted(out, key=lambda entry: (entry["point"], entry["hour"]))


def column(name):
    """Of poi.csv."""
    flux, _, side = name.partition("_")
    return name if name in ("shadow", "gvf", "svf", "svf_veg") else flux[0].upper() + (side[0] if side else flux[1:])
