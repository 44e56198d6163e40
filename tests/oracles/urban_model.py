"""Radiation and comfort of a person on open ground, from the published formulas alone.

An oracle for `lockstep urban`: it shares no code, table or constant with src/. Standard library only, f64 throughout.
Angles are degrees at the interface, radians inside.
"""
import csv
import math
from math import acos, asin, atan, cos, exp, log, pi, sin, sqrt, tan

SIGMA = {"umep": 5.67051e-8, "solweig": 5.67051e-8, "corrected": 5.670374419e-8}
ABS_L = {"umep": 0.95, "solweig": 0.97, "corrected": 0.97}
ZERO = {"umep": 273.2, "solweig": 273.15, "corrected": 273.15}
POSTURE = {"standing": (0.06, 0.22, 0.28), "sitting": (0.166666, 0.166666, 0.20)}  # F_up, F_side, F_cyl
SIDES = {"east": 90.0, "south": 180.0, "west": 270.0, "north": 0.0}


def rad(x):
    return x * pi / 180


# --- the year and the day ---------------------------------------------------------------------------------------------

def distance_squared(doy):
    """(mean distance / distance)^2 of the sun, Spencer (1971)."""
    b = 2 * pi * doy / 365
    return 1.00011 + 0.034221 * cos(b) + 0.00128 * sin(b) + 0.000719 * cos(2 * b) + 0.000077 * sin(2 * b)


def sunrise(doy, latitude):
    declination = rad(-23.45 * cos(2 * pi * (doy + 10) / 365))
    half = asin(max(-1.0, min(1.0, tan(declination) * tan(rad(latitude)))))
    return 12 - (12 + 24 * half / pi) / 2


# --- clearness of the sky ---------------------------------------------------------------------------------------------

# Smith (1966): exponent by 10 degrees of latitude; winter, spring, summer, autumn of the north.
SMITH = [float(x) for x in """
3.37 2.85 2.80 2.64  2.99 3.02 2.70 2.93  3.60 3.00 2.98 2.93  3.04 3.11 2.92 2.94  2.70 2.95 2.77 2.71
2.52 3.07 2.67 2.93  1.76 2.69 2.61 2.61  1.60 1.67 2.24 2.63  1.11 1.44 1.94 2.02""".split()]


def smith(doy, latitude, south):
    """`south`: "first row", as published, or "turned": the row of the latitude, half a year later."""
    season = 0 if doy > 335 or doy <= 60 else 1 if doy <= 152 else 2 if doy <= 244 else 3
    row = min(8, int(abs(latitude) // 10))
    if latitude < 0:
        row, season = (0, season) if south == "first row" else (row, (season + 2) % 4)
    return SMITH[4 * row + season]


def transmission(mass, doy, latitude, ta, rh, pressure, south):
    """Share of the sun's radiation that gases, water vapour and aerosol let through (Crawford & Duchon 1999)."""
    gases = 1.021 - 0.084 * sqrt(mass * (0.000949 * pressure + 0.051))
    g = 17.27 * ta / (237.7 + ta) + log(rh / 100)
    dew = 237.7 * g / (17.27 - g) * 1.8 + 32
    water = exp(0.1133 - log(smith(doy, latitude, south) + 1) + 0.0393 * dew)
    return gases * (1 - 0.077 * (water * mass) ** 0.3) * 0.935 ** mass


def clear_sky(zenith, doy, latitude, ta, rh, pressure=1013.0, south="first row"):
    """Crawford & Duchon (1999): global radiation of a clear sky, W/m2, with the second cosine that their formula prints."""
    c = cos(rad(zenith))
    mass = 35 * c / sqrt(1224 * c * c + 1)
    return 1370 * c * sqrt(distance_squared(doy)) * transmission(mass, doy, latitude, ta, rh, pressure, south)


def clear_beam(zenith, doy, latitude, ta, rh, pressure=1013.0, south="first row"):
    """Beam of a clear sky, W/m2, through Rogers' air mass (1967) without it."""
    mass = 35 / sqrt(1224 * cos(rad(zenith)) ** 2 + 1)
    return max(0.0, 1370 * sqrt(distance_squared(doy)) * transmission(mass, doy, latitude, ta, rh, pressure, south))


def correction(zenith):
    return 0.1473 * log(90 - zenith) + 0.3454


def reindl(glob, kt, altitude, ta, rh):
    """(beam normal, diffuse) of global radiation, Reindl et al. (1990), with temperature and humidity."""
    s, h = sin(rad(altitude)), rh / 100
    if kt <= 0.3:
        share = 1 - 0.232 * kt + 0.0239 * s - 0.000682 * ta + 0.0195 * h
    elif kt < 0.78:
        share = 1.329 - 1.716 * kt + 0.267 * s - 0.00357 * ta + 0.106 * h
    else:
        share = 0.426 * kt - 0.256 * s + 0.00349 * ta + 0.0734 * h
    diffuse = glob * share
    beam = max(0.0, (glob - diffuse) / s)
    if altitude < 1 and beam > glob:
        beam = glob
    return beam, min(diffuse, glob)


def sky_emissivity(ta, rh):
    """Prata (1996)."""
    w = 46.5 * 6.107 * 10 ** (7.5 * ta / (237.3 + ta)) * rh / 100 / (ta + 273.15)
    return 1 - (1 + w) * exp(-sqrt(1.2 + 3 * w))


# --- patches of the sky -----------------------------------------------------------------------------------------------

BANDS = {145: "6:30:0 18:30:4 30:24:2 42:24:5 54:18:8 66:12:0 78:6:10 90:1:0",
         153: "6:31:0 18:30:4 30:28:2 42:24:5 54:19:8 66:13:0 78:7:10 90:1:0",
         305: "6:62:0 18:60:4 30:56:2 42:48:5 54:38:8 66:26:0 78:14:10 90:1:0",
         609: "3:62:0 9:62:0 15:60:4 21:60:4 27:56:2 33:56:2 39:48:5 45:48:5 51:38:8 57:38:8 63:26:0 69:26:0 75:14:10 81:14:10 90:1:0"}


def patches(count):
    """(altitude, azimuth, solid angle) of each patch, degrees and steradians."""
    bands = [tuple(float(x) for x in band.split(":")) for band in BANDS[count].split()]
    half = bands[0][0]
    found = []
    for k, (altitude, number, start) in enumerate(bands):
        if number == 1:
            area = 2 * pi * (1 - sin(rad(bands[k - 1][0] + half)))
        else:
            area = 2 * pi / number * (sin(rad(altitude + half)) - sin(rad(altitude - half)))
        found += [(altitude, start + j * 360 / number, area) for j in range(int(number))]
    return found


def cosines(count, exact):
    """(down, curved side, faces by side) of each patch: solid angle times cosine, at its centre or integrated over it."""
    found = []
    sky = patches(count)
    half = sky[0][0]
    for p, az, area in sky:
        if not exact:
            side = area * cos(rad(p))
            found.append((area * sin(rad(p)), side, {d: side * max(0.0, cos(rad(az - f))) for d, f in SIDES.items()}))
            continue
        low, high = rad(p - half if p < 90 else sky[-2][0] + half), rad(min(90.0, p + half))
        width = area / (sin(high) - sin(low))
        upright = ((high - low) + (sin(2 * high) - sin(2 * low)) / 2) / 2
        faces = {}
        for d, f in SIDES.items():
            if width > 6:
                faces[d] = 2 * upright
                continue
            centre = (az - f + 180) % 360 - 180
            first, last = (max(-90.0, min(90.0, centre + sign * width * 90 / pi)) for sign in (-1, 1))
            faces[d] = upright * (sin(rad(last)) - sin(rad(first)))
        found.append((width * (sin(high) ** 2 - sin(low) ** 2) / 2, width * upright, faces))
    return found


# Perez, Seals & Michalsky (1993), table 1: x1 x2 x3 x4 of each of a, b, c, d, e; a row a class of clearness.
PEREZ = [[float(x) for x in row.split()] for row in """
1.3525 -.2576 -.2690 -1.4366  -.7670 .0007 1.2734 -.1233  2.8000 .6004 1.2375 1.0000  1.8734 .6297 .9738 .2809  .0356 -.1246 -.5718 .9938
-1.2219 -.7730 1.4148 1.1016  -.2054 .0367 -3.9128 .9156  6.9750 .1774 6.4477 -.1239  -1.5798 -.5081 -1.7812 .1080  .2624 .0672 -.2190 -.4285
-1.1000 -.2515 .8952 .0156  .2782 -.1812 -4.5000 1.1766  24.7219 -13.0812 -37.7000 34.8438  -5.0000 1.5218 3.9229 -2.6204  -.0156 .1597 .4199 -.5562
-.5484 -.6654 -.2672 .7117  .7234 -.6219 -5.6812 2.6297  33.3389 -18.3000 -62.2500 52.0781  -3.5000 .0016 1.1477 .1062  .4659 -.3296 -.0876 -.0329
-.6000 -.3566 -2.5000 2.3250  .2937 .0496 -5.6812 1.8415  21.0000 -4.7656 -21.5906 7.2492  -3.5000 -.1554 1.4062 .3988  .0032 .0766 -.0656 -.1294
-1.0156 -.3670 1.0078 1.4051  .2875 -.5328 -3.8500 3.3750  14.0000 -.9999 -7.1406 7.5469  -3.4000 -.1078 -1.0750 1.5702  -.0672 .4016 .3017 -.4844
-1.0000 .0211 .5025 -.5119  -.3000 .1922 .7023 -1.6317  19.0000 -5.0000 1.2438 -1.9094  -4.0000 .0250 .3844 .2656  1.0468 -.3788 -2.4517 1.4656
-1.0500 .0289 .4260 .3590  -.3250 .1156 .7781 .0025  31.0625 -14.5000 -46.1148 55.3750  -7.2312 .4050 13.3500 .6234  1.5000 -.6426 1.8564 .5636
""".strip().splitlines()]
CLEARNESS = [1.065, 1.230, 1.500, 1.950, 2.800, 4.500, 6.200]


def perez(altitude, azimuth, diffuse, beam, doy, count, formula="perez93"):
    """Share of the diffuse light from each patch. `umep_compat` keeps three slips of published programs."""
    sky = patches(count)
    uniform = [1 / len(sky)] * len(sky)
    published = formula == "umep_compat"
    if not published and (altitude < 3 or diffuse < 10):
        return uniform
    z = rad(90 - altitude)
    kappa = 1.041 * z ** 3
    if published:
        epsilon = ((diffuse + beam) / (diffuse + kappa)) / (1 + kappa)
    else:
        epsilon = ((diffuse + beam) / diffuse + kappa) / (1 + kappa)
    if altitude >= 10:
        mass = 1 / sin(rad(altitude))
    elif published:
        mass = 1 / sin(rad(altitude)) + 0.50572 * (altitude + 6.07995) ** -1.6364
    else:
        mass = 1 / (sin(rad(altitude)) + 0.50572 * (altitude + 6.07995) ** -1.6364)
    delta = mass * diffuse / (1367 * distance_squared(doy)) if diffuse > 10 else 0.0
    k = sum(epsilon >= edge for edge in CLEARNESS)
    x = [PEREZ[k][4 * i:4 * i + 4] for i in range(5)]
    a, b, c, d, e = (p[0] + p[1] * z + delta * (p[2] + p[3] * z) for p in x)
    if k == 0:
        c = exp((delta * (x[2][0] + x[2][1] * z)) ** x[2][2]) - x[2][3]
        d = -exp(delta * (x[3][0] + x[3][1] * z)) + x[3][2] + delta ** (2 if published else 1) * x[3][3]
    values = []
    for p, paz, _ in sky:
        g = sin(rad(p)) * sin(rad(altitude)) + cos(rad(altitude)) * cos(rad(p)) * cos(rad(abs(paz - azimuth)))
        gamma = acos(max(-1.0, min(1.0, g)))
        values.append((1 + a * exp(b / sin(rad(p)))) * (1 + c * exp(d * gamma) + e * cos(gamma) ** 2))
    total = sum(values)
    if not published and (total <= 0 or min(values) < 0):
        return uniform
    return [v / total for v in values]


# --- sides under an isotropic sky -------------------------------------------------------------------------------------

def side_view(x):
    return 63.227 * x**6 - 161.51 * x**5 + 156.91 * x**4 - 70.424 * x**3 + 16.773 * x**2 - 0.4863 * x


def kside(s):
    """Shortwave on four sides of a cylinder (its beam apart)."""
    t, out = 4.4897, {}
    mix = s["radG"] * (1 - s["F_sh"]) + s["radD"] * s["F_sh"]
    for d in SIDES:
        wall = (t - side_view(s["svf_" + d])) / t
        plant = (t - side_view(s["svf_" + d] + s["svf_veg_" + d] - 1)) / t - wall
        q = wall + plant * (1 - s["transmissivity"])
        out[d] = 0.5 * (s["radD"] * (1 - q) + s["wall_albedo"] * q * mix + s["kup_" + d])
    return out


def lside(s, sigma):
    t, out = 4.4897, {}
    ta, az, ew = s["Ta"] + 273.15, s["azimuth"], s["wall_emissivity"]
    sky = sigma * ta**4 * (s["esky"] * s["CI"] + 1 - s["CI"])
    facing = {"east": 180 < az <= 360, "south": az <= 90 or az > 270, "west": az <= 180 or az > 360, "north": 90 < az <= 270}
    turn = {"east": az - 180, "south": az - 270, "west": az, "north": az - 90}
    for d in SIDES:
        svf, veg, aveg = s["svf_" + d], s["svf_veg_" + d], s["svf_aveg_" + d]
        wall = (t - side_view(svf)) / t - (t - side_view(aveg)) / t
        both = svf + veg - 1
        open_, rest = side_view(both) / t, 1 - side_view(both) / t
        plant = rest - wall
        alpha, f = asin(sqrt(1 - svf)), 2 * s["F_sh"] - 1
        a, b = atan(alpha), atan(tan(alpha * f))
        centre = (a - b) / 2 + b
        if s["altitude"] > 0 and facing[d]:
            warm = ta + s["wall_temperature_excess"] * sin(rad(turn[d]))
            walls = sigma * ew * (warm**4 * wall * (1 - f) * cos(centre) + ta**4 * wall * f) / 2
        else:
            walls = sigma * ew * ta**4 * wall / 2
        out[d] = (both * sky * open_ + sigma * ew * ta**4 * plant + s["lup_" + d] + (s["ldown"] + s["lup_" + d]) * rest * (1 - ew)) / 2 + walls
    return out


def tmrt(s):
    f_up, f_side, f_cyl = s["f_up"], s["f_side"], s["f_cyl"]
    k = s["kside_total"] * f_cyl + (s["kdown"] + s["kup"]) * f_up + sum(s["kside_" + d] for d in SIDES) * f_side
    l = (s["ldown"] + s["lup"]) * f_up + sum(s["lside_" + d] for d in SIDES) * f_side + (s["lside_total"] * f_cyl if s["sky"] else 0)
    return ((s["abs_k"] * k + s["abs_l"] * l) / (s["abs_l"] * s["sigma"])) ** 0.25 - s.get("zero", 273.15)


# --- open ground, hour by hour ----------------------------------------------------------------------------------------

def open_ground(place, rows, preset, posture="standing", count=153):
    """A person on a flat plain of cobble without land cover under Perez' sky. `rows`: weather and sun of successive hours."""
    sigma, f_up, f_side, f_cyl = SIGMA[preset], *POSTURE[posture]
    south = "turned" if preset == "corrected" else "first row"
    sky, out = patches(count), []
    held, timeadd, first = None, 0.0, True
    clearness = 1.0
    prepared = []
    for row in rows:
        altitude = 1.0 if 0 <= row["altitude"] < 1 else row["altitude"]
        day = {"altitude": altitude, "beam": 0.0, "diffuse": 0.0, "glob": 0.0, "ci": None}
        if altitude > 0:
            ta, rh, doy, glob = row["ta"], row["rh"], row["doy"], row["glob"]
            clear = clear_sky(90 - altitude, doy, place["latitude"], ta, rh, row.get("pressure", 1013.0), south)
            day["clear"] = clear
            day["ci"] = min(1.0, glob / clear + 1 - correction(90 - altitude))
            kt = glob / (1370 * sin(rad(altitude)) * sqrt(distance_squared(doy)))
            day["beam"], day["diffuse"] = (row["beam"], row["diffuse"]) if "beam" in row else reindl(glob, kt, altitude, ta, rh)
            day["glob"] = glob
        prepared.append(day)
    for k, (row, day) in enumerate(zip(rows, prepared)):
        ta, ta_k, altitude = row["ta"], row["ta"] + 273.15, day["altitude"]
        if day["ci"] is not None:
            clearness = day["ci"]
        elif preset == "umep" and all(d["ci"] is None for d in prepared[:k]):
            # The night before a day has the clearness of the step behind the first one with the sun above 1 degree.
            clearness = next(prepared[n + 1]["ci"] for n, d in enumerate(prepared) if d["altitude"] > 1)
        esky = sky_emissivity(ta, row["rh"])
        esky = clearness * esky + 1 - clearness if clearness < 0.95 else esky
        if altitude > 0:
            start = 3.41 if preset == "umep" else -3.41
            rise = sunrise(row["doy"], place["latitude"])
            phase = (row["clock"] - rise) / (15 - rise)
            excess = (0.37 * row["highest"] + start) * sin(phase * pi / 2)
            beam0, diffuse0 = reindl(day["clear"], 1.0, altitude, ta, row["rh"])
            glob0 = beam0 * sin(rad(altitude)) + diffuse0
            excess *= min(1.0, day["glob"] / glob0 + 1 - correction(90 - altitude))
            if preset != "umep":
                excess = max(0.0, excess) if phase >= 0 else 0.0
            now = sigma * 0.95 * (ta_k + excess) ** 4
            held = now if first else held
            step = 1 / 24
            if timeadd >= 59 / 1440:
                weight = exp(-33.27 * timeadd)
                held = now * (1 - weight) + held * weight
                lup, timeadd = held, step
            else:
                timeadd += step
                weight = exp(-33.27 * timeadd)
                lup = now * (1 - weight) + held * weight
            first = False
        else:
            lup, timeadd, first = sigma * 0.95 * ta_k**4, 0.0, True
        beam, diffuse, sin_a = day["beam"], day["diffuse"], sin(rad(max(altitude, 0)))
        kdown = beam * sin_a + diffuse
        kup = 0.15 * kdown
        weight = cosines(count, preset == "corrected")
        dull = [exp(0.308 * (1.7 - 1 / sin(rad(p)))) for p, _, _ in sky]
        # In `corrected` the patches' emission adds up to the sky's.
        whole = sum(v * w[0] for v, w in zip(dull, weight)) / pi if preset == "corrected" else 1
        emission = [(1 - (1 - esky) * v / whole) * sigma * ta_k**4 / pi for v in dull]
        ldown = sum(e * w[0] for e, w in zip(emission, weight))
        lcurved = sum(e * w[1] for e, w in zip(emission, weight))
        if preset == "corrected":
            lup += 0.05 * ldown  # what the ground does not absorb
        light = [0.0] * len(sky)
        if altitude > 0:
            shares = perez(altitude, row["azimuth"], diffuse, beam, row["doy"], count, "umep_compat" if preset == "umep" else "perez93")
            total = sum(v * w[0] for v, w in zip(shares, weight))
            light = [v * diffuse / total for v in shares]
        kcurved = beam * cos(rad(max(altitude, 0))) + sum(v * w[1] for v, w in zip(light, weight))
        body = {"kdown": kdown, "kup": kup, "ldown": ldown, "lup": lup, "kside_total": kcurved, "lside_total": lcurved, "sky": 1,
                "abs_k": 0.7, "abs_l": ABS_L[preset], "f_up": f_up, "f_side": f_side, "f_cyl": f_cyl, "sigma": sigma, "zero": ZERO[preset]}
        body.update({"kside_" + d: kup / 2 for d in SIDES})
        body.update({"lside_" + d: lup / 2 for d in SIDES})
        planes = {}
        for d, facing in SIDES.items():
            face = [w[2][d] for w in weight]
            planes["K" + d[0]] = (beam * cos(rad(max(altitude, 0))) * max(0.0, cos(rad(row["azimuth"] - facing))) +
                                  sum(v * w for v, w in zip(light, face)) + kup / 2)
            planes["L" + d[0]] = sum(v * w for v, w in zip(emission, face)) + lup / 2
        radiant = tmrt(body)
        if preset == "solweig":
            radiant = max(-50.0, min(80.0, radiant))
        wind = row["wind"]
        out.append({"Kdirect": beam, "Kdiffuse": diffuse, "Kdown": kdown, "Kup": kup, "Ldown": ldown, "Lup": lup,
                    "Kside": kup / 2 + kcurved * f_cyl / (4 * f_side), "Lside": lup / 2 + lcurved * f_cyl / (4 * f_side),
                    "Tmrt": radiant, "UTCI": utci(ta, row["rh"], wind, radiant),
                    "PET": pet(ta, row["rh"], wind if preset == "solweig" else wind * 0.11**0.2, radiant), **planes})
    return out


# --- comfort ----------------------------------------------------------------------------------------------------------

UTCI_TERMS = []


def read_utci(path):
    with open(path, encoding="utf-8") as lines:
        for row in csv.reader(line for line in lines if line[:1] in "-0123456789"):
            UTCI_TERMS.append((float(row[0]), *(int(x) for x in row[1:])))


def utci(ta, rh, wind, radiant):
    """Broede et al. (2012); vapour pressure over water of Hardy (1998)."""
    t = ta + 273.15
    g = (-2836.5744, -6028.076559, 19.54263612, -0.02737830188, 1.6261698e-5, 7.0229056e-10, -1.8680009e-13)
    vapour = 0.01 * exp(2.7150305 * log(t) + sum(c * t ** (k - 2) for k, c in enumerate(g))) * rh / 1000
    return ta + math.fsum(c * ta**i * wind**j * (radiant - ta) ** k * vapour**l for c, i, j, k, l in UTCI_TERMS)


def _vapour(t, factor=7.45, lift=235.0, base=6.11):
    return base * 10 ** (factor * t / (lift + t))


def pet(ta, rh, wind, radiant, mass=75.0, age=35.0, height=1.8, activity=80.0, clothing=0.9, sex=1):
    """Hoeppe (1999), MEMI, with the constants and the iteration of the published tools (steps down to 0.001 K)."""
    p0 = pressure = 1013.25
    latent, sigma, cair, feff, third = 2.42e6, 5.67e-8, 1010.0, 0.725, 3.14
    vpa = rh * 6.107 * 10 ** (7.5 * ta / (238 + ta)) / 100
    build = 100 * height / mass ** (1 / 3)
    factor, slope, mean = (3.45, 0.010, 43.4) if sex == 1 else (3.19, 0.018, 42.1)
    heat = factor * mass**0.75 * (1 + 0.004 * (30 - age) + slope * (build - mean)) + activity

    def breath(t, vp):
        tex, rtv = 0.47 * t + 21, 1.44e-6 * heat
        return cair * (t - tex) * rtv + 0.623 * (latent / pressure) * (vp - _vapour(tex)) * rtv

    area = 0.203 * mass**0.425 * height**0.725
    facl = min(1.0, (-2.36 + 173.51 * clothing - 100.76 * clothing**2 + 19.28 * clothing**3) / 100)
    rcl = clothing / 6.45 / facl
    y = 0.1
    if clothing > 0.3:
        y = 0.5
    if clothing > 0.6:
        y = (height - 0.2) / height
    if clothing >= 2:
        y = 1.0
    fcl = 1 + 0.15 * clothing
    r2 = area * (fcl - 1 + facl) / (2 * third * height * y)
    r1 = facl * area / (2 * third * height * y)
    acl = area * facl + area * (fcl - 1)
    htcl = 6.28 * height * y * (r2 - r1) / (rcl * log(r2 / r1) * acl)

    def convection(w):
        return (2.67 + 6.5 * w**0.67) * (pressure / p0) ** 0.55

    hc = convection(wind)
    he, fec = 0.633 * hc / (pressure * cair), 1 / (1 + 0.92 * hc * rcl)
    c1 = heat + breath(ta, vpa)
    c2 = area * 1.06 * 3640
    c5, c6 = 0.0208 * c2, 0.76075 * c2

    def fourth(t):
        return (t + 273.2) ** 4

    def radiation(t, skin, cloth):
        return (area * feff * (1 - facl) * 0.99 * sigma * (fourth(t) - fourth(skin)) +
                feff * acl * 0.95 * sigma * (fourth(t) - fourth(cloth)))

    def exchange(h, t, skin, cloth):
        return h * (t - skin) * area * (1 - facl) + h * (t - cloth) * acl

    def state(cloth):
        skin = (hc * (cloth - ta) + 0.95 * sigma * (fourth(cloth) - fourth(radiant)) * feff) / htcl + cloth
        c3 = 18 - 0.5 * skin
        c4 = 5.28 * area * c3
        c7 = c4 - c6 - skin * c5
        c8 = -c1 * c3 - skin * c4 + skin * c6
        c9 = c7 * c7 - 4 * c5 * c8
        c10 = 5.28 * area - c6 - c5 * skin
        c11 = c10 * c10 - 4 * c5 * (c6 * skin - c1 - 5.28 * area * skin)
        tk = 36.01 if skin == 36 else skin
        core = {7: c1 / (5.28 * area + c2 * 6.3 / 3600) + tk,
                3: c1 / (5.28 * area + c2 * 6.3 / 3600 / (1 + 0.5 * (34 - tk))) + tk,
                4: c1 / (5.28 * area + c2 / 40) + tk}
        if c11 >= 0:
            core[6], core[1] = (-c10 - sqrt(c11)) / (2 * c5), (-c10 + sqrt(c11)) / (2 * c5)
        if c9 >= 0:
            core[2], core[5] = (-c7 + sqrt(abs(c9))) / (2 * c5), (-c7 - sqrt(abs(c9))) / (2 * c5)
        inner = core[7]
        for j in range(1, 7):
            if j not in core:
                continue
            t = core[j]
            if j in (2, 5):
                holds = c9 >= 0 and t >= 36.6 and skin <= 34.05
            elif j in (1, 6):
                holds = c11 > 0 and t >= 36.6 and skin > 33.85
            elif j == 3:
                holds = t < 36.6 and skin <= 34
            else:
                holds = True
            blood = (6.3 + 75 * max(0.0, t - 36.6)) / (1 + 0.5 * max(0.0, 34 - skin))
            if holds and (blood >= 89 if j == 4 else blood < 91):
                inner = t
                break
        body = 0.1 * skin + 0.9 * inner
        sweat = max(0.0, 304.94 * (body - 36.6) * area / 3.6e6) * (1 if sex == 1 else 0.7)
        vpts = _vapour(skin)
        physical = -sweat * latent
        potential = he * (vpa - vpts) * area * latent * fec
        wet = min(1.0, physical / potential)
        evaporated = min(0.0, potential if physical <= potential else physical)
        diffusion = latent / 0.79e7 * area * (1 - wet)
        total = heat + diffusion * (vpa - vpts) + breath(ta, vpa) + evaporated + exchange(hc, ta, skin, cloth) + radiation(radiant, skin, cloth)
        return total, skin, vpts, wet, evaporated

    # Each iteration moves on before it looks at the change of sign, as the published ones do.
    cloth = (ta + radiant + 34) / 3
    for step in (1.0, 0.1, 0.01, 0.001):
        before = 0.0
        for _ in range(200):
            total, skin, vpts, wet, evaporated = state(cloth)
            cloth += step if total > 0 else -step
            if (total <= 0 < before) or (total >= 0 > before):
                break
            before = total

    h = convection(0.1)
    t, before = ta, 0.0
    for step in (1.0, 0.1, 0.01, 0.001):
        while True:
            total = (heat + latent / 0.79e7 * area * (1 - wet) * (12 - vpts) + breath(t, 12) + evaporated +
                     exchange(h, t, skin, cloth) + radiation(t, skin, cloth))
            t += -step if total > 0 else step
            turned = (total <= 0 < before) or (total >= 0 > before)
            before = total
            if turned:
                break
    return t
