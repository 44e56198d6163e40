#!/usr/bin/env python3
"""PET as the original MEMI programs evaluate it against Walther & Goestchel (2018), as pythermalcomfort evaluates that.

usage: pet_forms.py [--store] [--table]. --store computes fixtures/pet.json (needs pythermalcomfort and SciPy), --table writes its table
into docs/urban-model.md. A balance of three temperatures (core, skin, clothes) switches group by group from one form to the other.
"""
import argparse
import json
import math
import os
import re
import statistics

import urban_model as model

HERE = os.path.dirname(os.path.abspath(__file__))
STORED = os.path.join(HERE, "fixtures", "pet.json")
GUIDE = os.path.join(HERE, "..", "..", "docs", "urban-model.md")
PERSON = {"mass": 75.0, "age": 35.0, "height": 1.8, "activity": 80.0, "clothing": 0.9, "sex": 1}
PEOPLE = [("the standard person", {}), ("18 years", {"age": 18.0}), ("70 years", {"age": 70.0}), ("female", {"sex": 2}),
          ("female, 60 kg, 1.65 m, 70 years", {"sex": 2, "mass": 60.0, "height": 1.65, "age": 70.0}), ("0.35 clo", {"clothing": 0.35}),
          ("0.5 clo", {"clothing": 0.5}), ("1.4 clo", {"clothing": 1.4}), ("150 W", {"activity": 150.0})]
STATES = [(ta, rh, wind, ta + more) for ta in (-5.0, 5.0, 15.0, 25.0, 35.0) for more in (0.0, 20.0, 40.0) for wind in (0.3, 1.0, 3.0) for rh in (30.0, 70.0)]
# The points where Walther & Goestchel differ.
GROUPS = {"clothing": "clothes: area 1 + 0.31 clo instead of 1 + 0.15 clo, resistance not over the clothed share, conduction by the area of the body",
          "vapour": "vapour: diffusion through skin and clothes by Woodcock's ratio, evaporation by Lewis' ratio and beyond what the air takes, saturation by ASHRAE's formula",
          "blood": "blood and sweat: no density of blood, shares of core and skin by the flow, set point 36.34, women sweat as men",
          "indoors": "indoor person: 0.9 clo and 80 W for everybody, sweat found again; the original keeps clothes, work and sweat of outdoors",
          "rest": "at least 3 W/(m² K) of convection; 0 °C = 273.15 K"}


def saturation(t, ashrae):
    """Pressure of vapour, hPa; below 0 °C over ice by ASHRAE's formula."""
    if not ashrae:
        return 6.11 * 10 ** (7.45 * t / (235 + t))
    k = t + 273.15
    ice = (-5674.5359, 6.3925247, -0.9677843e-2, 0.62215701e-6, 0.20747825e-8, -0.9484024e-12, 4.1635019)
    water = (-5800.2206, 1.3914993, -0.048640239, 0.41764768e-4, -0.14452093e-7, 0.0, 6.5459673)
    c = ice if t < 0 else water
    return math.exp(c[0] / k + sum(x * k**n for n, x in enumerate(c[1:6])) + c[6] * math.log(k)) / 100


def balance(temperatures, air, person, forms, indoors=None):
    """Watts a square metre into core, skin and clothes; `indoors`: (sweat, wettedness) of outdoors, and their sum."""
    core, skin, cloth = temperatures
    ta, vapour, wind, radiant = air
    mass, age, height, work, clo, sex = (person[n] for n in ("mass", "age", "height", "activity", "clothing", "sex"))
    zero = 273.15 if "rest" in forms else 273.2
    area = 0.203 * mass**0.425 * height**0.725
    build = 100 * height / mass ** (1 / 3)
    factor, slope, mean = (3.45, 0.010, 43.4) if sex == 1 else (3.19, 0.018, 42.1)
    heat = (factor * mass**0.75 * (1 + 0.004 * (30 - age) + slope * (build - mean)) + work) / area
    out = 0.47 * ta + 21
    breath = 1.44e-6 * heat * (1010 * (ta - out) + 0.623 * 2.42e6 / 1013.25 * (vapour - saturation(out, "vapour" in forms)))
    share = (-2.36 + 173.51 * clo - 100.76 * clo**2 + 19.28 * clo**3) / 100
    wider = (0.31 if "clothing" in forms else 0.15) * clo
    clothed = share + wider if "clothing" in forms else min(1.0, share) + wider
    share = min(1.0, share)
    resistance = clo / 6.45 / (1 if "clothing" in forms else share)
    y = 1.0 if clo >= 2 else (height - 0.2) / height if clo > 0.6 else 0.5 if clo > 0.3 else 0.1
    inner = share * area / (6.28 * height * y)
    outer = (share + wider) * area / (6.28 * height * y)
    conduction = 6.28 * height * y * (outer - inner) / (resistance * math.log(outer / inner) * clothed * area)
    if "clothing" not in forms:
        conduction *= clothed
    hc = 2.67 + 6.5 * wind**0.67
    hc = max(3.0, hc) if "rest" in forms else hc
    flow = (6.3 + 75 * max(0.0, core - 36.6)) / (1 + 0.5 * max(0.0, 34 - skin))
    flow = min(flow, 90.0)
    carried = (flow / 3600 * 3640 * (1 if "blood" in forms else 1.06) + 5.28) * (core - skin)
    weight = 0.0417737 + 0.7451833 / (flow + 0.585417) if "blood" in forms else 0.1
    body = weight * skin + (1 - weight) * core
    sweat = 304.94 * max(0.0, body - (0.1 * 34 + 0.9 * 36.6 if "blood" in forms else 36.6))
    sweat = min(sweat, 500.0) if "blood" in forms else sweat * (1 if sex == 1 else 0.7)
    evaporated = 2.42e6 / 3.6e6 * sweat
    over = saturation(skin, "vapour" in forms) - vapour
    most = (1.67 * hc if "vapour" in forms else 0.633 * hc / (1013.25 * 1010) * 2.42e6) * over / (1 + 0.92 * hc * resistance)
    if indoors and "indoors" not in forms:
        evaporated, wet = indoors
    else:
        most = most or 0.001
        wet = evaporated / most
        if wet > 1:
            wet, evaporated = 1.0, most if evaporated < most or "vapour" not in forms else evaporated
        evaporated = max(0.0, evaporated)
    if "vapour" in forms:
        through = (1 / ((1 + wider) * hc) + resistance) / (1.67 * 0.38)
        lost = (1 - wet) * over / through + evaporated
    else:
        lost = 2.42e6 / 0.79e7 * (1 - wet) * over + evaporated
    fourth = lambda t: 5.67e-8 * 0.725 * ((radiant + zero) ** 4 - (t + zero) ** 4)
    bare = (1 - share) * (0.99 * fourth(skin) + hc * (ta - skin))
    dressed = clothed * (0.95 * fourth(cloth) + hc * (ta - cloth))
    if indoors:
        return heat + breath + bare + dressed - lost
    conducted = conduction * (skin - cloth)
    return [heat + breath - carried, bare - lost + carried - conducted, dressed + conducted], (evaporated, wet)


def pet(ta, rh, wind, radiant, person, forms):
    from scipy import optimize
    vapour = rh / 100 * (saturation(ta, True) if "vapour" in forms else 6.107 * 10 ** (7.5 * ta / (238 + ta)))
    air = (ta, vapour, wind, radiant)
    steady = [float(t) for t in optimize.fsolve(lambda t: balance(t, air, person, forms)[0], [36.7, 34, (ta + radiant) / 2])]
    sweat = balance(steady, air, person, forms)[1]
    guest = {**person, "clothing": 0.9, "activity": 80.0} if "indoors" in forms else person
    return float(optimize.fsolve(lambda t: balance(steady, (float(t[0]), 12.0, 0.1, float(t[0])), guest, forms, sweat), steady[2])[0])


def published(state, person):
    """By pythermalcomfort; a sitting body is MEMI's."""
    from pythermalcomfort.models import pet_steady
    ta, rh, wind, radiant = state
    return float(pet_steady(tdb=ta, tr=radiant, v=wind, rh=rh, met=person["activity"] / 58.2, clo=person["clothing"], position="sitting", age=person["age"],
                            sex="male" if person["sex"] == 1 else "female", weight=person["mass"], height=person["height"]).pet)


def people():
    return [(name, {**PERSON, **other}) for name, other in PEOPLE]


def found():
    rows, effects = [], {group: [] for group in GROUPS}
    for name, person in people():
        ours = [model.pet(*state, **person) for state in STATES]
        theirs = [published(state, person) for state in STATES]
        base = [pet(*state, person, set()) for state in STATES]
        whole = [pet(*state, person, set(GROUPS)) for state in STATES]
        rows.append({"person": name, "ours": ours, "theirs": theirs, "balance_off": [max(map(abs, map(float.__sub__, a, b))) for a, b in
                                                                                    ((ours, base), (theirs, whole))]})
        for group in GROUPS:
            effects[group] += [pet(*state, person, {group}) - one for state, one in zip(STATES, base)]
    return {"states": STATES, "people": rows, "effects": {group: span(values) for group, values in effects.items()}}


def span(values):
    return {"mean": statistics.fmean(values), "least": min(values), "most": max(values)}


def table(stored):
    def signed(x):
        return "0.00" if abs(x) < 0.005 else f"{x:+.2f}".replace("-", "−")

    def row(head, s):
        return f"| {head} | {signed(s['mean'])} | {signed(s['least'])} … {signed(s['most'])} |"

    lines = ["| pythermalcomfort minus Lockstep (K) | mean | range |", "|---|---|---|"]
    for person in stored["people"]:
        lines.append(row(person["person"], span([b - a for a, b in zip(person["ours"], person["theirs"])])))
    lines += ["", "| what differs in their form, alone | mean | range |", "|---|---|---|"]
    lines += [row(GROUPS[group], s) for group, s in stored["effects"].items()]
    return "\n".join(lines) + "\n"


def guide_with(text, stored):
    return re.sub(r"(<!-- pet -->\n).*?(<!-- /pet -->)", lambda m: m[1] + table(stored) + m[2], text, flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.store:
        rounded = json.loads(json.dumps(found()), parse_float=lambda x: round(float(x), 4))
        with open(STORED, "w", encoding="utf-8") as file:
            file.write(json.dumps(rounded, separators=(",", ":")) + "\n")
    if options.table:
        with open(STORED, encoding="utf-8") as file:
            stored = json.load(file)
        with open(GUIDE, encoding="utf-8") as file:
            text = file.read()
        with open(GUIDE, "w", encoding="utf-8") as file:
            file.write(guide_with(text, stored))


if __name__ == "__main__":
    main()
