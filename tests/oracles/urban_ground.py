"""What a person sees of the ground and of walls around (specs: ground view), and the delay of their warmth.

Shares nothing with src/. Grids are lists of rows, north first; angles in degrees at the interface.
"""
from math import cos, exp, pi, sin, tan

AZIMUTHS = range(5, 360, 20)
SIDES = {"": range(0, 360), "_east": range(0, 180), "_south": range(90, 270), "_west": range(180, 360),
         "_north": [*range(0, 90), *range(270, 360)]}


def sign(x):
    return (x > 0) - (x < 0)


def offset(n, azimuth):
    """(rows down, columns right) of the n-th pixel towards an azimuth."""
    s, c, t = sin(azimuth), cos(azimuth), tan(azimuth)
    if pi / 4 <= azimuth < 3 * pi / 4 or 5 * pi / 4 <= azimuth < 7 * pi / 4:
        return -sign(c) * abs(round(n / t)), sign(s) * n
    return -sign(c) * n, sign(s) * abs(round(n * t))


def turned_away(azimuth, aspect, is_wall):
    """Whether a wall of that aspect faces away from the azimuth; a pixel without a wall adds 1 in the first case."""
    low, high = azimuth - pi / 2, azimuth + pi / 2
    if low >= 0 and high < 2 * pi:
        return (aspect < low or aspect >= high) - is_wall + 1
    if low < 0:
        return 0 if aspect > low + 2 * pi or aspect <= high else 1
    return 0 if aspect > low or aspect <= high - 2 * pi else 1


def blend(ground, walls, seen, length, more):
    return (ground + walls) / more if seen else ground / length


def look(g, row, col, azimuth):
    """(longwave excess, albedo in the sun, albedo, share in the sun) of what is seen towards one azimuth."""
    rows, cols = len(g["shadow"]), len(g["shadow"][0])
    first, second = int(g["first"]), int(g["second"])
    kelvin, sigma = g["Ta"] + 273.15, g["sigma"]
    warm_wall = sigma * g["wall_emissivity"] * ((g["wall_temperature_excess"] + kelvin) ** 4 - kelvin**4)

    def excess(r, c):
        share = 1 if "steady" in g and g["steady"][r][c] else g["shadow"][r][c]  # water is as warm in the shade
        return sigma * g["emissivity"][r][c] * ((g["ground_temperature_excess"][r][c] * share + kelvin) ** 4 - kelvin**4)

    free = g["buildings"][row][col]
    sun_seen = wall_seen = 0
    ground, walls = [0.0] * 4, [0.0] * 4  # longwave, albedo in the sun, albedo, share in the sun
    near = None
    at = (row, col)
    for n in range(second):
        down, right = offset(n, azimuth)
        if 0 <= row + down < rows and 0 <= col + right < cols:
            at = (row + down, col + right)
        r, c = at
        free = min(free, g["buildings"][r][c])
        light, albedo = g["shadow"][r][c], g["albedo"][r][c]
        for k, value in enumerate((excess(r, c), albedo * light, albedo, light)):
            ground[k] += value * free
        wall = g["wall_height"][r][c]
        sunlit = wall > 0 and g["wall_sun"][r][c] / wall * g["buildings"][r][c] == 1
        sun_seen = sun_seen or (sunlit and free > 0)
        wall_seen = wall_seen or 1 - free > 0
        for k, value in enumerate((sun_seen * warm_wall, sun_seen * g["wall_albedo"], wall_seen * g["wall_albedo"], sun_seen)):
            walls[k] += value
        if n + 1 <= first:
            near = list(ground), list(walls)
    near_ground, near_walls = near
    flags = [walls[3] > 0, walls[3] > 0, walls[2] > 0, walls[3] > 0]
    near_flags = [near_walls[3] > 0, near_walls[3] > 0, near_walls[2] > 0, near_walls[3] > 0]
    keep = (walls[3] == second) - turned_away(azimuth, g["wall_aspect"][row][col] * pi / 180, g["wall_height"][row][col] > 0)
    if keep == 1:  # the person is at a sunlit wall and looks into it
        walls[0] = walls[1] = walls[3] = 0.0
    seen = []
    for k in range(4):
        close = blend(near_ground[k], near_walls[k], near_flags[k], first, first + 1)
        far = blend(ground[k], walls[k], flags[k], second, second if k == 2 else second + 1)
        seen.append(min(far, 1) if k == 3 else (0.5 * close + 0.4 * far) / 0.9)
    inside = 1 - g["buildings"][row][col]
    light, albedo = g["shadow"][row][col], g["albedo"][row][col]
    return (seen[0] + excess(row, col) * inside, seen[1] + albedo * light * inside,
            seen[2] * (1 - inside) + albedo * inside, seen[3])


def ground_view(g, row, col):
    """All that `gvf` gives at one pixel."""
    looks = {a: look(g, row, col, a * pi / 180) for a in AZIMUTHS}
    air = g["sigma"] * g["emissivity"][row][col] * (g["Ta"] + 273.15) ** 4
    out = {}
    for side, azimuths in SIDES.items():
        some = [v for a, v in looks.items() if a in azimuths]
        means = [sum(v[k] for v in some) / len(some) for k in range(4)]
        out["lup" + side] = means[0] + air
        out["alb" + side] = means[1]
        out["alb_no_shadow" + side] = means[2]
        if not side:
            out["norm"] = means[3] if g["buildings"][row][col] else 1.0
    return out


def wave_delay(x, previous, first_daytime, since, step):
    """(out, previous, since) after a step of so many days."""
    if first_daytime:
        previous = x
    if since >= 59 / 1440:
        w = exp(-33.27 * since)
        previous = x * (1 - w) + previous * w
        return previous, previous, step if step > 59 / 1440 else 0.0
    since += step
    w = exp(-33.27 * since)
    return x * (1 - w) + previous * w, previous, since
