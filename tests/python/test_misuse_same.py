"""Kernels that look like NumPy give what NumPy gives: bodies of kernels compared with plain Python."""
import math

import numpy as np
import pytest

import lockstep as ls

X = np.array([0.5, -1.25, 3.0, 7.5, -0.75, 2.0, 100.25, 0.0], "f4")
Y = np.array([2.0, 0.25, -3.0, 1.5, 8.0, -0.5, 3.0, 1.0], "f4")
I = np.array([7, -7, 0, 1, -1, 2147483647, -2147483648, 33], "i4")
J = np.array([3, 3, 5, -2, -3, 2, -1, 8], "i4")
U = np.array([0, 1, 7, 255, 2**31, 2**32 - 1, 12, 33], "u4")
SAME = []
SCALE, TABLE = 2.0, [1.0, 10.0, 100.0]


def same(expected):
    """The body of a kernel; `expected` gives from x, y (f32), i, j (i32), u (u32) what it stores, whose type it has."""
    def add(body):
        SAME.append((body, expected))
        return body
    return add


# ── values and variables ──
@same(lambda x, y, i, j, u: (y, x))
def swap_of_values(at, x, y, i, j, u, o, p):
    a, b = x[at], y[at]
    a, b = b, a
    o[at], p[at] = a, b


@same(lambda x, y, i, j, u: (y, x))
def swap_of_variables(at, x, y, i, j, u, o, p):
    a, b = ls.var(x[at]), ls.var(y[at])
    a, b = b, a
    o[at], p[at] = a, b


@same(lambda x, y, i, j, u: (np.minimum(x, y), np.maximum(x, y)))
def swap_in_a_branch(at, x, y, i, j, u, o, p):
    a, b = ls.var(x[at]), ls.var(y[at])
    with ls.if_(b < a):
        before = +a
        a.set(b)
        b.set(before)
    o[at], p[at] = a, b


@same(lambda x, y, i, j, u: (x, x + 1))
def value_of_a_variable(at, x, y, i, j, u, o, p):
    v = ls.var(x[at])
    old = +v
    v += 1
    o[at], p[at] = old, v


@same(lambda x, y, i, j, u: (x, x + 1))
def variable_of_a_variable(at, x, y, i, j, u, o, p):
    v = ls.var(x[at])
    w = ls.var(v)
    v += 1
    o[at], p[at] = w, v


@same(lambda x, y, i, j, u: (x * 8, x))
def names_bound_anew(at, x, y, i, j, u, o, p):
    v = x[at]
    w = v
    v = v * 2
    v *= 4
    o[at], p[at] = v, w


@same(lambda x, y, i, j, u: ((((x + 1) * 2 - 3) / 4),))
def assignments_of_variables(at, x, y, i, j, u, o):
    v = ls.var(x[at])
    v += 1
    v *= 2
    v -= 3
    v /= 4
    o[at] = v


@same(lambda x, y, i, j, u: ((((i.astype("i8") // 3) % 5) ** 2 & 7 | 8 ^ 1).astype("i4") << 2 >> 1,))
def assignments_of_whole_variables(at, x, y, i, j, u, n):
    v = ls.var(i[at])
    v //= 3
    v %= 5
    v **= 2
    v &= 7
    v |= 8 ^ 1
    v <<= 2
    v >>= 1
    n[at] = v


@same(lambda x, y, i, j, u: (x, x))
def element_before_a_store(at, x, y, i, j, u, o, p):
    v = ls.local(ls.f32, 2)
    v[0] = x[at]
    t = v[0]
    v[0] = 99.0
    v[1] = t
    o[at], p[at] = t, v[1]


@same(lambda x, y, i, j, u: (y, x))
def swap_of_elements(at, x, y, i, j, u, o, p):
    v = ls.local(ls.f32, 2)
    v[0], v[1] = x[at], y[at]
    v[0], v[1] = v[1], v[0]
    o[at], p[at] = v[0], v[1]


@same(lambda x, y, i, j, u: (x + y,))
def augmented_element(at, x, y, i, j, u, o):
    v = ls.local(ls.f32, 1)
    v[0] = x[at]
    v[0] += y[at]
    o[at] = v[0]


@same(lambda x, y, i, j, u: (np.sort(np.stack([x, y, x * y]), 0)[0], np.sort(np.stack([x, y, x * y]), 0)[2]))
def sorted_by_swaps(at, x, y, i, j, u, o, p):
    v = ls.local(ls.f32, 3)
    v[0], v[1], v[2] = x[at], y[at], x[at] * y[at]
    for a, b in ((0, 1), (1, 2), (0, 1)):
        v[a], v[b] = ls.min(v[a], v[b]), ls.max(v[a], v[b])
    o[at], p[at] = v[0], v[2]


@same(lambda x, y, i, j, u: (y, x))
def reversed_list(at, x, y, i, j, u, o, p):
    o[at], p[at] = reversed([x[at], y[at]])


@same(lambda x, y, i, j, u: ((x + y) + x * y,))
def sum_of_a_list(at, x, y, i, j, u, o):
    o[at] = sum([x[at], y[at], x[at] * y[at]])


@same(lambda x, y, i, j, u: (x + y,))
def object_array(at, x, y, i, j, u, o):
    o[at] = np.array([x[at], y[at]]).sum()


@same(lambda x, y, i, j, u: (x * 3, y + x * 3))
def unpacked(at, x, y, i, j, u, o, p):
    def pair(a, b=None, *more, scale=1.0):
        return a * scale, b + a * scale
    a, b = pair(*[x[at], y[at]], **{"scale": 3.0})
    o[at], p[at] = a, b


# ── arithmetic of Python ──
@same(lambda x, y, i, j, u: (i // j, i % j))
def floor_division(at, x, y, i, j, u, n, m):
    n[at], m[at] = i[at] // j[at], i[at] % j[at]


@same(lambda x, y, i, j, u: (i // -4, i % -4))
def floor_division_by_a_negative_number(at, x, y, i, j, u, n, m):
    n[at], m[at] = i[at] // -4, i[at] % -4


@same(lambda x, y, i, j, u: (100 // j, 100 % j))
def floor_division_of_a_number(at, x, y, i, j, u, n, m):
    n[at], m[at] = 100 // j[at], 100 % j[at]


@same(lambda x, y, i, j, u: (i // j, i % j))
def both_by_divmod(at, x, y, i, j, u, n, m):
    n[at], m[at] = divmod(i[at], j[at])


@same(lambda x, y, i, j, u: (i * 0, i * 0))
def division_by_zero_as_numpy_has_it(at, x, y, i, j, u, n, m):
    n[at], m[at] = i[at] // (i[at] * 0), i[at] % (i[at] * 0)


@same(lambda x, y, i, j, u: (u // np.uint32(7), u % np.uint32(7)))
def unsigned_division(at, x, y, i, j, u, w, v):
    w[at], v[at] = u[at] // 7, u[at] % 7


@same(lambda x, y, i, j, u: (i + i, i * j))
def whole_numbers_wrap(at, x, y, i, j, u, n, m):
    n[at], m[at] = i[at] + i[at], i[at] * j[at]


@same(lambda x, y, i, j, u: (u - np.uint32(1), -u))
def unsigned_numbers_wrap(at, x, y, i, j, u, w, v):
    w[at], v[at] = u[at] - 1, -u[at]


@same(lambda x, y, i, j, u: (-i, np.abs(i)))
def negation_wraps(at, x, y, i, j, u, n, m):
    n[at], m[at] = -i[at], abs(i[at])


@same(lambda x, y, i, j, u: (i >> 3, i << 5))
def shifts(at, x, y, i, j, u, n, m):
    n[at], m[at] = i[at] >> 3, i[at] << 5


@same(lambda x, y, i, j, u: (~i, (i & j) | (i ^ j)))
def bits(at, x, y, i, j, u, n, m):
    n[at], m[at] = ~i[at], (i[at] & j[at]) | (i[at] ^ j[at])


@same(lambda x, y, i, j, u: (i**3, i**0))
def powers_of_whole_numbers(at, x, y, i, j, u, n, m):
    n[at], m[at] = i[at] ** 3, i[at] ** 0


@same(lambda x, y, i, j, u: (x**2, x * x * x))
def powers(at, x, y, i, j, u, o, p):
    o[at], p[at] = x[at] ** 2, x[at] ** 3


@same(lambda x, y, i, j, u: (2 - x, x - 2))
def numbers_on_both_sides(at, x, y, i, j, u, o, p):
    o[at], p[at] = 2 - x[at], x[at] - 2


@same(lambda x, y, i, j, u: (np.float32(3) / y, y / np.float32(3)))
def true_division(at, x, y, i, j, u, o, p):
    o[at], p[at] = 3 / y[at], y[at] / 3


@same(lambda x, y, i, j, u: (np.float32(2) * x, x * np.float32(0.1)))
def numbers_of_numpy(at, x, y, i, j, u, o, p):
    o[at], p[at] = np.float32(2) * x[at], x[at] * np.float32(0.1)


@same(lambda x, y, i, j, u: (-x * y + x, -(x - y)))
def precedence(at, x, y, i, j, u, o, p):
    o[at], p[at] = ls.rounded(-x[at] * y[at]) + x[at], -(x[at] - y[at])


@same(lambda x, y, i, j, u: (np.rint(x), np.trunc(x)))
def rounding_of_python(at, x, y, i, j, u, o, p):
    o[at], p[at] = ls.rint(x[at]), ls.trunc(x[at])


@same(lambda x, y, i, j, u: (np.floor(x / y), x - np.floor(x / y) * y))
def floor_division_of_floats(at, x, y, i, j, u, o, p):
    q = ls.floor(x[at] / y[at])
    o[at], p[at] = q, x[at] - ls.rounded(q * y[at])


@same(lambda x, y, i, j, u: (np.fmod(x, y), np.copysign(x, y)))
def remainders_of_c(at, x, y, i, j, u, o, p):
    o[at], p[at] = ls.fmod(x[at], y[at]), ls.copysign(x[at], y[at])


@same(lambda x, y, i, j, u: (x.astype("i4"), i.astype("f4").astype("i8").clip(-2**31, 2**31 - 1).astype("i4")))
def conversions(at, x, y, i, j, u, n, m):
    n[at], m[at] = ls.cast(ls.i32, x[at]), ls.cast(ls.i32, ls.cast(ls.f32, i[at]))


@same(lambda x, y, i, j, u: ((3 * x).clip(0, 255).astype("i4"), (i & 255) + 1000 * (u & 255).astype("i4")))
def conversions_to_bytes(at, x, y, i, j, u, n, m):
    n[at] = ls.cast(ls.i32, ls.cast(ls.u8, 3 * x[at]))
    m[at] = ls.cast(ls.i32, ls.cast(ls.u8, i[at])) + 1000 * ls.cast(ls.i32, ls.cast(ls.u8, u[at]))


@same(lambda x, y, i, j, u: (x, x + 1))
def variable_chosen_by_a_python_condition(at, x, y, i, j, u, o, p):
    v = ls.var(x[at])
    before = ls.where(True, v, 0)
    v += 1
    o[at], p[at] = before, v


@same(lambda x, y, i, j, u: ((x > 0).astype("i4"), (x != 0).astype("i4")))
def bool_as_a_number(at, x, y, i, j, u, n, m):
    n[at], m[at] = ls.cast(ls.i32, x[at] > 0), ls.cast(ls.i32, ls.cast(ls.boolean, x[at]))


# ── conditions ──
@same(lambda x, y, i, j, u: (np.where((x > 0) & (x < 1), x, y), np.where((x > 0) | (y > 0), x, y)))
def and_or(at, x, y, i, j, u, o, p):
    a, b = x[at], y[at]
    o[at], p[at] = ls.where((a > 0) & (a < 1), a, b), ls.where((a > 0) | (b > 0), a, b)


@same(lambda x, y, i, j, u: (np.where(~(x > y), 1, 2).astype("i4"), np.where((x > 0) ^ (y > 0), 1, 2).astype("i4")))
def not_and_exclusive_or(at, x, y, i, j, u, n, m):
    n[at], m[at] = ls.where(~(x[at] > y[at]), 1, 2), ls.where((x[at] > 0) ^ (y[at] > 0), 1, 2)


@same(lambda x, y, i, j, u: (np.where((x > 0) == (y > 0), 1, 0).astype("i4"), np.where((x > 0) != True, 1, 0).astype("i4")))  # noqa: E712
def comparison_of_conditions(at, x, y, i, j, u, n, m):
    n[at] = ls.where((x[at] > 0) == (y[at] > 0), 1, 0)
    m[at] = ls.where((x[at] > 0) != True, 1, 0)  # noqa: E712


@same(lambda x, y, i, j, u: (np.where(i > j, 1, -1).astype("i4"), np.where(x >= 0, 1.0, -1.0).astype("f4")))
def where_of_two_numbers(at, x, y, i, j, u, n, o):
    n[at], o[at] = ls.where(i[at] > j[at], 1, -1), ls.where(x[at] >= 0, 1.0, -1.0)


@same(lambda x, y, i, j, u: (np.where(u > 5, 1, 0).astype("i4"), np.where(0 < i, 1, 0).astype("i4")))
def comparison_with_numbers(at, x, y, i, j, u, n, m):
    n[at], m[at] = ls.where(u[at] > 5, 1, 0), ls.where(0 < i[at], 1, 0)


@same(lambda x, y, i, j, u: (np.where(np.log(np.abs(x) - 3) < 1, 1, 0).astype("i4"), np.where(~(x / 0 * 0 >= 1), 1, 0).astype("i4")))
def comparisons_with_nan(at, x, y, i, j, u, n, m):
    n[at] = ls.where(ls.log(abs(x[at]) - 3) < 1, 1, 0)
    zero = x[at] * 0
    m[at] = ls.where(~(x[at] / zero * zero >= 1), 1, 0)


@same(lambda x, y, i, j, u: (np.clip(x, -1, 1), np.maximum(np.minimum(x, y), 0)))
def bounds(at, x, y, i, j, u, o, p):
    o[at], p[at] = ls.clamp(x[at], -1, 1), ls.max(ls.min(x[at], y[at]), 0)


@same(lambda x, y, i, j, u: (x if SCALE > 1 else y, y if SCALE is None else x))
def conditions_of_python(at, x, y, i, j, u, o, p):
    o[at] = x[at] if SCALE > 1 else y[at]
    p[at] = y[at] if SCALE is None else x[at]


# ── loops ──
def sums(values, step=lambda s, k: s + k, start=0):
    total = start
    for k in values:
        total = step(total, k)
    return np.full(8, total, "i4")


@same(lambda x, y, i, j, u: (sums(range(5)), sums(range(2, 9, 3))))
def ranges(at, x, y, i, j, u, n, m):
    a, b = ls.var(0), ls.var(0)
    for k in ls.for_(5):
        a += k
    for k in ls.for_(2, 9, 3):
        b += k
    n[at], m[at] = a, b


@same(lambda x, y, i, j, u: (sums(range(5, -1, -2), lambda s, k: 3 * s + k), sums(range(-5, 5, 4), lambda s, k: 3 * s + k)))
def ranges_with_negative_numbers(at, x, y, i, j, u, n, m):
    a, b = ls.var(0), ls.var(0)
    for k in ls.for_(5, -1, -2):
        a.set(3 * a + k)
    for k in ls.for_(-5, 5, 4):
        b.set(3 * b + k)
    n[at], m[at] = a, b


@same(lambda x, y, i, j, u: (sums(range(5, 2)), sums(range(0, 4, -1))))
def ranges_without_a_pass(at, x, y, i, j, u, n, m):
    a, b = ls.var(0), ls.var(0)
    for k in ls.for_(5, 2):
        a += 1 + k
    for k in ls.for_(0, 4, -1):
        b += 1 + k
    n[at], m[at] = a, b


@same(lambda x, y, i, j, u: (np.array([sum(range(max(k, 0))) for k in j], "i4"), np.array([len(range(5, k, -1)) for k in j], "i4")))
def ranges_to_a_value(at, x, y, i, j, u, n, m):
    a, b = ls.var(0), ls.var(0)
    for k in ls.for_(j[at]):
        a += k
    for _ in ls.for_(5, j[at], -1):
        b += 1
    n[at], m[at] = a, b


@same(lambda x, y, i, j, u: (sums(range(4, 6)), sums(range(5), lambda s, k: s + (k if k % 2 else 0))))
def break_and_continue(at, x, y, i, j, u, n, m):
    a, b = ls.var(0), ls.var(0)
    for k in ls.for_(4, 100):
        with ls.if_(k == 6):
            ls.break_()
        a += k
    for k in ls.for_(5):
        with ls.if_(k % 2 == 0):
            ls.continue_()
        b += k
    n[at], m[at] = a, b


@same(lambda x, y, i, j, u: (sums([a * b for a in range(3) for b in range(a)]),))
def loop_in_a_loop(at, x, y, i, j, u, n):
    total = ls.var(0)
    for a in ls.for_(3):
        for b in ls.for_(a):
            total += a * b
    n[at] = total


@same(lambda x, y, i, j, u: (np.array([math.gcd(int(a), int(b)) for a, b in zip(abs(j), u % 100)], "i4"),))
def euclid(at, x, y, i, j, u, n):
    a, b = ls.var(abs(j[at])), ls.var(ls.cast(ls.i32, u[at] % 100))
    with ls.while_(lambda: b != 0):
        rest = a % b
        a.set(b)
        b.set(rest)
    n[at] = a


@same(lambda x, y, i, j, u: (sums(range(4), lambda s, k: s * 2 + k),))
def names_inside_of_a_loop(at, x, y, i, j, u, n):
    total = ls.var(0)
    for k in ls.for_(4):
        t = total * 2
        t = t + k
        total.set(t)
    for k in ls.for_(2):
        t = k * 0
        total += t
    n[at] = total


@same(lambda x, y, i, j, u: (np.where(x > 1, x * 2, x * 3).astype("f4"),))
def names_of_both_branches(at, x, y, i, j, u, o):
    with ls.if_(x[at] > 1):
        t = x[at] * 2
        o[at] = t
    with ls.else_():
        t = x[at] * 3
        o[at] = t


@same(lambda x, y, i, j, u: (x + 0 + 1 + 2, y))
def loops_of_python(at, x, y, i, j, u, o, p):
    total = x[at]
    for k in range(3):
        total = total + k
    o[at] = total
    with ls.if_(x[at] > -1000):
        for k in range(5):
            p[at] = y[at]


@same(lambda x, y, i, j, u: (x * 111,))
def comprehension_of_python(at, x, y, i, j, u, o):
    o[at] = sum(x[at] * w for w in TABLE)


@same(lambda x, y, i, j, u: (np.where(x > 2, 3, np.where(x > 0, 2, 1)).astype("i4"),))
def chain_of_branches(at, x, y, i, j, u, n):
    r = ls.var(1)
    with ls.if_(x[at] > 0):
        r.set(2)
        with ls.if_(x[at] > 2):
            r.set(3)
    n[at] = r


# ── functions and closures ──
@same(lambda x, y, i, j, u: (x + y, x * y))
def closures(at, x, y, i, j, u, o, p):
    a = x[at]

    def combine(f):
        return f(a, y[at])
    o[at], p[at] = combine(lambda s, t: s + t), combine(lambda s, t: s * t)


@same(lambda x, y, i, j, u: (x + 10, y + 20))
def variables_by_reference(at, x, y, i, j, u, o, p):
    def add(v, by=10):
        v += by
    a, b = ls.var(x[at]), ls.var(y[at])
    add(a)
    add(by=20, v=b)
    o[at], p[at] = a, b


@same(lambda x, y, i, j, u: (x**4,))
def recursion_of_python(at, x, y, i, j, u, o):
    def power(v, k):
        return v if k == 1 else power(v, k // 2) * power(v, k // 2)
    o[at] = power(x[at], 4)


@same(lambda x, y, i, j, u: (x[[1, 2, 3, 4, 5, 6, 7, 7]], x[[1, 2, 3, 4, 5, 6, 7, 0]]))
def shifted_points(at, x, y, i, j, u, o, p):
    o[at], p[at] = x[at.x(1)], x.periodic()[at.x(1)]


@same(lambda x, y, i, j, u: (np.full(8, x[-1]), np.full(8, x[0])))
def explicit_coordinates_under_a_rule(at, x, y, i, j, u, o, p):
    o[at], p[at] = x.periodic()[-1], x.clamped()[-5]


@same(lambda x, y, i, j, u: (np.zeros(8, "f4"), x))
def zero_outside(at, x, y, i, j, u, o, p):
    o[at], p[at] = x.zero()[at.x - 100], x.zero()[at.x]


@same(lambda x, y, i, j, u: (x[::-1], np.full(8, x[3])))
def coordinates_of_numpy(at, x, y, i, j, u, o, p):
    o[at], p[at] = x[7 - at.x], x[np.int64(3)]


OUTPUTS = {"o": ls.f32, "p": ls.f32, "n": ls.i32, "m": ls.i32, "w": ls.u32, "v": ls.u32}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("body, expected", SAME, ids=[b.__name__ for b, _ in SAME])
def test_gives_what_numpy_gives(body, expected, device):
    names = body.__code__.co_varnames[6:body.__code__.co_argcount]
    source = ", ".join(f"{n}: ls.Out[ls.{OUTPUTS[n].name}, 1]" for n in names)
    scope = {"ls": ls, "body": body}
    exec(f"def kernel(at, x: ls.Grid[ls.f32, 1], y: ls.Grid[ls.f32, 1], i: ls.Grid[ls.i32, 1], j: ls.Grid[ls.i32, 1], "
         f"u: ls.Grid[ls.u32, 1], {source}): body(at, x, y, i, j, u, {', '.join(names)})", scope)
    outputs = [np.zeros(8, OUTPUTS[n].numpy) for n in names]
    ls.kernel(scope["kernel"])[device, 8](X, Y, I, J, U, *outputs)
    for name, got, wanted in zip(names, outputs, expected(X, Y, I, J, U), strict=True):
        assert wanted.dtype == got.dtype
        np.testing.assert_array_equal(got, wanted, err_msg=name)


def test_there_are_enough():
    assert len(SAME) >= 60
    assert len({b.__name__ for b, _ in SAME}) == len(SAME)


# ── rounding ──
def test_products_stay_rounded_where_the_author_says_so(device):
    a = np.float32(1.0 + 2.0**-12)
    x = np.full(4, a, "f4")
    o = np.zeros_like(x)

    def difference(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
        o[at] = x[at] * x[at] - 1.0

    def kept(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
        o[at] = ls.rounded(x[at] * x[at]) - 1.0

    plain = (x * x) - np.float32(1)
    fused = np.float32(np.float64(a) * np.float64(a) - 1)
    assert plain[0] != fused
    ls.kernel(difference)[device, 4](x, o)
    np.testing.assert_array_equal(o, fused)
    ls.kernel(difference, contract=False)[device, 4](x, o)
    np.testing.assert_array_equal(o, plain)
    ls.kernel(kept)[device, 4](x, o)
    np.testing.assert_array_equal(o, plain)
