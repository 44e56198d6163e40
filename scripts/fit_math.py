#!/usr/bin/env python3
"""Fits the polynomials of src/math and writes src/math/bodies/coefficients.hpp.

Each polynomial is the weighted minimax fit of a function on an interval (Remez exchange on a grid of Chebyshev density).
Coefficients are rounded to the target type one after the other, from the constant term up; after each rounding the
remaining ones are fitted again, so that the rounding of one is taken up by the next.

Needs mpmath. Usage: fit_math.py [--only NAME] [--out FILE]
"""
import argparse
import struct
import sys
from mpmath import mp, mpf, matrix, lu_solve, cos, exp, log, sin, tan, atan, asin, sinh, tanh, erf, erfc, pi, sqrt, expm1, log1p

mp.prec = 320


def round_to(value, kind):
    """Nearest number of the type, as an mpf."""
    bits, least = (24, -149) if kind == "f32" else (53, -1074)
    if value == 0:
        return mpf(0)
    m, e = mp.frexp(value)
    unit = mpf(2) ** max(e - bits, least)
    return mp.nint(value / unit) * unit


def literal(value, kind):
    return float(value).hex() + ("f" if kind == "f32" else "")


def solve(points, target, weight, powers):
    n = len(powers)
    a = matrix(n + 1, n + 1)
    b = matrix(n + 1, 1)
    for i, x in enumerate(points):
        for j, p in enumerate(powers):
            a[i, j] = x ** p * weight[i]
        a[i, n] = (-1) ** i
        b[i] = target[i] * weight[i]
    solution = lu_solve(a, b)
    return [solution[j] for j in range(n)], abs(solution[n])


def remez(grid, target, weight, powers):
    """Minimax coefficients of the given powers; the largest weighted error."""
    n = len(powers)
    if n == 0:
        return [], max(abs(t * w) for t, w in zip(target, weight))
    last = len(grid) - 1
    chosen = [last * i // n for i in range(n + 1)]  # the grid has Chebyshev density already
    best = None
    for _ in range(40):
        try:
            c, level = solve([grid[i] for i in chosen], [target[i] for i in chosen], [weight[i] for i in chosen], powers)
        except ZeroDivisionError:  # points that mirror each other do not determine odd powers
            chosen = [last * (3 * i + 1) // (3 * n + 2) for i in range(n + 1)]
            continue
        error = []
        for x, t, w in zip(grid, target, weight):
            p = mpf(0)
            for cj, pj in zip(c, powers):
                p += cj * x ** pj
            error.append((t - p) * w)
        peak = max(abs(e) for e in error)
        if best is None or peak < best[1]:
            best = (c, peak)
        if peak <= level * mpf("1.002"):
            break
        runs = []
        for i, e in enumerate(error):
            if e == 0:
                continue
            if runs and (error[runs[-1]] > 0) == (e > 0):
                if abs(e) > abs(error[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > n + 1:
            if len(runs) == n + 2:
                runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
            else:
                weakest = min(range(len(runs) - 1), key=lambda k: max(abs(error[runs[k]]), abs(error[runs[k + 1]])))
                del runs[weakest:weakest + 2]
        if len(runs) < n + 1 or runs == chosen:
            break
        chosen = runs
    return best


def fit(f, low, high, weight, degree, kind, density=24):
    """Rounded coefficients c0..c_degree and log2 of the largest weighted error."""
    count = density * (degree + 2)
    low, high = mpf(low), mpf(high)
    grid = [(low + high) / 2 - (high - low) / 2 * cos(pi * (i + mpf(1) / 2) / count) for i in range(count)]
    grid[0], grid[-1] = low, high
    grid = [x if abs(x) > high / 10000 else high / 10000 for x in grid]  # no division by 0
    target = [f(x) for x in grid]
    w = [abs(weight(x)) for x in grid]
    powers, done = list(range(degree + 1)), []
    while powers:
        c, _ = remez(grid, target, w, powers)
        first = round_to(c[0], kind)
        done.append(first)
        target = [t - first * x ** powers[0] for t, x in zip(target, grid)]
        powers = powers[1:]
    peak = max(abs(t * v) for t, v in zip(target, w))
    return done, mp.log(peak, 2)


def series_safe(f, order):
    """f evaluated with extra digits, for quotients that cancel near 0."""
    def g(x):
        with mp.extraprec(60 * order + 60):
            return f(x)
    return g


HALF_LN2 = log(2) / 2 * mpf("1.002")
ROOT_LOW, ROOT_HIGH = sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1
S_MAX = (sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)
QUARTER = pi / 4 * mpf("1.005")
LOG2E, LOG10E = 1 / log(mpf(2)), 1 / log(mpf(10))
root = lambda z: sqrt(z)

# name, comment, f(x), low, high, weight(x) that turns the fit's error into a relative error of the function,
# degree for f32, degree for f64 (None = the type has no such table)
FITS = [
    ("Exp", "(e^r - 1 - r) / r^2", lambda r: (expm1(r) - r) / r**2, -HALF_LN2, HALF_LN2, lambda r: r**2, 4, 10),
    ("Exp2", "(2^r - 1) / r", lambda r: expm1(r * log(2)) / r, mpf("-0.502"), mpf("0.502"), lambda r: r, 6, 12),
    ("Log", "(log(1 + f) - f + f^2/2) / f^3", lambda f: (log1p(f) - f + f**2 / 2) / f**3, ROOT_LOW, ROOT_HIGH,
     lambda f: f**3 / log1p(f), 8, None),
    ("Log2", "(log2(1 + f) - f log2(e)) / f^2", lambda f: (log1p(f) - f) * LOG2E / f**2, ROOT_LOW, ROOT_HIGH,
     lambda f: f**2 / log1p(f), 9, None),
    ("Log10", "(log10(1 + f) - f log10(e)) / f^2", lambda f: (log1p(f) - f) * LOG10E / f**2, ROOT_LOW, ROOT_HIGH,
     lambda f: f**2 / log1p(f), 9, None),
    ("LogRatio", "(2 atanh(s) - 2 s) / s^3 in z = s^2", lambda z: (2 * mp.atanh(root(z)) / root(z) - 2) / z, 0, S_MAX**2,
     lambda z: z, None, 6),
    ("PowLog", "(2 atanh(s) / s - 2 - 2/3 z) / z^2 log2(e) in z = s^2",
     lambda z: (2 * mp.atanh(root(z)) / root(z) - 2 - 2 * z / 3) / z**2 * LOG2E, 0, S_MAX**2, lambda z: z**2, 2, 7),
    ("Sin", "(sin r - r) / r^3 in z = r^2", lambda z: (sin(root(z)) - root(z)) / (z * root(z)), 0, QUARTER**2,
     lambda z: z * root(z) / sin(root(z)), 3, 6),
    ("Cos", "(cos r - 1 + r^2/2) / r^4 in z = r^2", lambda z: (cos(root(z)) - 1 + z / 2) / z**2, 0, QUARTER**2,
     lambda z: z**2, 2, 5),
    ("Tan", "(tan r - r) / r^3 in z = r^2", lambda z: (tan(root(z)) - root(z)) / (z * root(z)), 0, QUARTER**2,
     lambda z: z * root(z) / tan(root(z)), 6, 14),
    ("Atan", "(atan a - a) / a^3 in z = a^2", lambda z: (atan(root(z)) - root(z)) / (z * root(z)), 0, 1,
     lambda z: z * root(z) / atan(root(z)), 8, 19),
    ("Asin", "(asin x - x) / x^3 in z = x^2", lambda z: (asin(root(z)) - root(z)) / (z * root(z)), 0, mpf("0.2501"),
     lambda z: z * root(z) / asin(root(z)), 5, 12),
    ("Sinh", "(sinh x - x) / x^3 in z = x^2", lambda z: (sinh(root(z)) - root(z)) / (z * root(z)), 0, mpf("1.001"),
     lambda z: z * root(z) / sinh(root(z)), 3, 6),
    ("Tanh", "(tanh x - x) / x^3 in z = x^2", lambda z: (tanh(root(z)) - root(z)) / (z * root(z)), 0, mpf("0.5626")**2,
     lambda z: z * root(z) / tanh(root(z)), 4, 10),
    ("ErfSmall", "(erf x - x) / x in z = x^2", lambda z: erf(root(z)) / root(z) - 1, 0, 1,
     lambda z: root(z) / erf(root(z)), 6, 13),
    ("ErfLarge", "log erfc x in u = x - 1", lambda u: log(erfc(u + 1)), 0, {"f32": 3, "f64": 5},
     lambda u: erfc(u + 1), 9, 20),
]

# name, comment, value, parts: the value as a sum of numbers of the type, each the rounding of what the others leave
PARTS = [
    ("Ln2", "log 2", log(mpf(2)), 2),
    ("Log2e", "1 / log 2", LOG2E, 2),
    ("Log10e", "1 / log 10", LOG10E, 2),
    ("Log10Of2", "log10 2", log(mpf(2)) * LOG10E, 2),
    ("TwoLog2e", "2 / log 2", 2 * LOG2E, 2),
    ("TwoThirdsLog2e", "2 / (3 log 2)", 2 * LOG2E / 3, 2),
    ("Pi", "pi", +pi, 2),
    ("HalfPi", "pi / 2", pi / 2, 3),
    ("TwoOverPi", "2 / pi", 2 / pi, 1),
]


def parts_text():
    lines = []
    for name, comment, value, count in PARTS:
        lines += [f"// {comment}", f"template <class T> inline constexpr std::array<T, 0> k{name}{{}};"]
        for kind in ("f32", "f64"):
            rest, texts = value, []
            for _ in range(count):
                part = round_to(rest, kind)
                rest -= part
                texts.append(literal(part, kind))
            lines.append(f"template <> inline constexpr std::array<{kind}, {count}> k{name}<{kind}>{{{', '.join(texts)}}};")
        lines.append("")
    lines.append("// Bits of 2/pi after the binary point, most significant first, behind one word of zeros")
    lines.append("template <class U> inline constexpr std::array<U, 0> kTwoOverPiBits{};")
    for kind, width, count in (("u32", 32, 8), ("u64", 64, 20)):
        with mp.workprec(width * count + 64):
            digits = int(mp.floor(2 / pi * mpf(2) ** (width * (count - 1))))
        words = [(digits >> (width * (count - 1 - i))) & ((1 << width) - 1) for i in range(count)]
        lines.append(f"template <> inline constexpr std::array<{kind}, {count}> kTwoOverPiBits<{kind}>{{")
        lines += [f"    0x{w:0{width // 4}x}u," for w in words]
        lines.append("};")
    lines.append("")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    parser.add_argument("--out")
    options = parser.parse_args()
    lines = [
        "// Polynomial coefficients of the elementary functions, lowest power first.",
        "// Written by scripts/fit_math.py; docs/design/math.md says what each one approximates.",
        "#pragma once",
        "",
        "#include <array>",
        "",
        '#include "lockstep/kernel/value.hpp"',
        "",
        "namespace lockstep::math {",
        "",
    ]
    for name, comment, f, low, high, weight, degree32, degree64 in FITS:
        if options.only and options.only != name:
            continue
        lines.append(f"// {comment}")
        lines.append(f"template <class T> inline constexpr std::array<T, 0> k{name}{{}};")
        for kind, degree in (("f32", degree32), ("f64", degree64)):
            if degree is None:
                continue
            top = high[kind] if isinstance(high, dict) else high
            coefficients, error = fit(series_safe(f, 3), low, top, weight, degree, kind)
            print(f"{name:9} {kind} degree {degree:2}: 2^{mp.nstr(error, 5)}", file=sys.stderr, flush=True)
            lines.append(f"// largest weighted error 2^{mp.nstr(error, 4)}")
            lines.append(f"template <> inline constexpr std::array<{kind}, {degree + 1}> k{name}<{kind}>{{")
            lines += [f"    {literal(c, kind)}," for c in coefficients]
            lines.append("};")
        lines.append("")
    if not options.only:
        lines += parts_text()
    lines.append("}  // namespace lockstep::math")
    text = "\n".join(lines) + "\n"
    if options.out:
        with open(options.out, "w") as out:
            out.write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
