"""Mistakes of authors who know Python and NumPy but not the kernel language: each is refused with their file and line."""
import functools
import math

import numpy as np
import pytest

import lockstep as ls
from misuse import Refused

refused = Refused()


# ── values as conditions and as numbers of Python ──
@refused("lockstep.where")
def if_on_a_value(at, x, i, o, n):
    o[at] = 1 if x[at] > 0 else 2


@refused("lockstep.where")
def if_statement(at, x, i, o, n):
    if x[at] > 0:
        o[at] = 1


@refused("lockstep.while_")
def while_statement(at, x, i, o, n):
    v = ls.var(x[at])
    while v < 3:
        v += 1
    o[at] = v


@refused("& | ~")
def and_of_conditions(at, x, i, o, n):
    o[at] = ls.where(x[at] > 0 and x[at] < 1, 1.0, 0.0)


@refused("& | ~")
def or_of_conditions(at, x, i, o, n):
    o[at] = ls.where(x[at] > 0 or x[at] < -1, 1.0, 0.0)


@refused("& | ~")
def not_of_a_condition(at, x, i, o, n):
    o[at] = ls.where(not x[at] > 0, 1.0, 0.0)


@refused("& | ~")
def chained_comparison(at, x, i, o, n):
    o[at] = ls.where(0 < x[at] < 1, 1.0, 0.0)


@refused("condition")
def in_a_list(at, x, i, o, n):
    o[at] = 1.0 if i[at] in [1, 2] else 0.0


@refused("unhashable", error=TypeError)
def in_a_set(at, x, i, o, n):
    o[at] = 1.0 if i[at] in {1, 2} else 0.0


@refused("unhashable", error=TypeError)
def key_of_a_dict(at, x, i, o, n):
    o[at] = {0: 1.0, 1: 2.0}[i[at]]


@refused("unhashable", error=TypeError)
def argument_of_a_cache(at, x, i, o, n):
    @functools.lru_cache
    def twice(v):
        return v + v
    o[at] = twice(x[at])


@refused("condition")
def builtin_max(at, x, i, o, n):
    o[at] = max(x[at], 0.0)


@refused("condition")
def builtin_sorted(at, x, i, o, n):
    o[at] = sorted([x[at], x[at.x(1)]])[0]


@refused("condition")
def builtin_any(at, x, i, o, n):
    o[at] = 1.0 if any([x[at] > 0, x[at] < -1]) else 0.0


@refused("condition")
def assert_statement(at, x, i, o, n):
    assert x[at] > 0
    o[at] = x[at]


@refused("lockstep.cast")
def builtin_int(at, x, i, o, n):
    n[at] = int(x[at])


@refused("lockstep.cast")
def builtin_float(at, x, i, o, n):
    o[at] = float(i[at])


@refused("lockstep.rint")
def builtin_round(at, x, i, o, n):
    o[at] = round(x[at])


@refused("lockstep.rint")
def builtin_round_to_digits(at, x, i, o, n):
    o[at] = round(x[at], 2)


@refused("functions of lockstep")
def math_sqrt(at, x, i, o, n):
    o[at] = math.sqrt(x[at])


@refused("functions of lockstep")
def math_floor(at, x, i, o, n):
    o[at] = math.floor(x[at])


@refused("numpy.sqrt", "lockstep.sqrt")
def numpy_sqrt(at, x, i, o, n):
    o[at] = np.sqrt(x[at])


@refused("numpy.arcsin", "lockstep.asin")
def numpy_arcsin(at, x, i, o, n):
    o[at] = np.arcsin(x[at])


@refused("numpy.maximum", "lockstep.max")
def numpy_maximum(at, x, i, o, n):
    o[at] = np.maximum(np.float32(1), x[at])


@refused("ndarray")
def numpy_array_of_numbers(at, x, i, o, n):
    o[at] = (np.array([1.0, 2.0]) * x[at])[0]


@refused("formatted")
def formatted(at, x, i, o, n):
    o[at] = x[at] * len(f"{x[at]:.2f}")


@refused("lockstep.for_")
def builtin_range(at, x, i, o, n):
    for k in range(i[at]):
        o[k] = 1.0


@refused("lockstep.for_")
def list_index(at, x, i, o, n):
    o[at] = [1.0, 2.0][i[at]]


@refused("lockstep.for_")
def loop_over_a_value(at, x, i, o, n):
    for v in x[at]:
        o[at] = v


@refused("condition")
def match_statement(at, x, i, o, n):
    match i[at]:
        case 0:
            o[at] = 1.0


# ── numbers and types ──
@refused("2.5", "whole number")
def fraction_with_a_whole_number(at, x, i, o, n):
    n[at] = i[at] + 2.5


@refused("2.0", "whole number")
def float_with_a_whole_number(at, x, i, o, n):
    n[at] = i[at] * 2.0


@refused("2.5", "whole number")
def comparison_with_a_fraction(at, x, i, o, n):
    n[at] = ls.where(i[at] < 2.5, 1, 0)


@refused("0.5", "whole number")
def fraction_stored_as_a_whole_number(at, x, i, o, n):
    n[at] = 0.5


@refused("/ of whole numbers")
def true_division_of_whole_numbers(at, x, i, o, n):
    n[at] = i[at] / 2


@refused("// or % of floats")
def floor_division_of_floats(at, x, i, o, n):
    o[at] = x[at] // 2


@refused("// or % of floats")
def remainder_of_floats(at, x, i, o, n):
    o[at] = x[at] % 1.0


@refused("**")
def negative_power_of_a_whole_number(at, x, i, o, n):
    n[at] = i[at] ** -1


@refused("**")
def fractional_power_of_a_whole_number(at, x, i, o, n):
    n[at] = i[at] ** 0.5


@refused("**")
def power_by_a_traced_whole_number(at, x, i, o, n):
    n[at] = 2 ** i[at]


@refused("<< 32")
def shift_beyond_the_width(at, x, i, o, n):
    n[at] = i[at] << 32


@refused(">> -1")
def shift_by_a_negative_number(at, x, i, o, n):
    n[at] = i[at] >> -1


@refused("f32 and i32")
def mixed_types(at, x, i, o, n):
    o[at] = x[at] * i[at]


@refused("f32 and bool")
def mask_times_a_value(at, x, i, o, n):
    o[at] = x[at] * (x[at] > 0)


@refused("bool and f32")
def value_times_a_mask(at, x, i, o, n):
    o[at] = (x[at] > 0) * x[at]


@refused("bool")
def sum_of_masks(at, x, i, o, n):
    n[at] = ls.cast(ls.i32, (x[at] > 0) + (x[at] > 1))


@refused("a traced i32", "x != 0")
def where_on_a_number(at, x, i, o, n):
    o[at] = ls.where(i[at], 1.0, 0.0)


@refused("a traced f32", "x != 0")
def branch_on_a_number(at, x, i, o, n):
    with ls.if_(x[at]):
        o[at] = 1.0


@refused("f32 and i32")
def where_of_two_types(at, x, i, o, n):
    o[at] = ls.where(x[at] > 0, x[at], i[at])


@refused("lockstep.cast")
def store_of_another_type(at, x, i, o, n):
    o[at] = i[at]


@refused("lockstep.cast")
def variable_of_another_type(at, x, i, o, n):
    v = ls.var(0)
    v.set(x[at])
    n[at] = v


@refused("str")
def text_as_a_number(at, x, i, o, n):
    o[at] = x[at] + "1"


@refused("complex")
def complex_number(at, x, i, o, n):
    o[at] = x[at] * 1j


@refused("NoneType")
def comparison_with_none(at, x, i, o, n):
    o[at] = ls.where(x[at] == None, 1.0, 0.0)  # noqa: E711


@refused("64 bits")
def number_beyond_all_types(at, x, i, o, n):
    n[at] = i[at] + 2**70


@refused("5000000000")
def number_beyond_the_type(at, x, i, o, n):
    n[at] = i[at] + 5000000000


@refused("16777217")
def whole_number_that_a_float_does_not_hold(at, x, i, o, n):
    o[at] = x[at] + 16777217


@refused("a value of f16", "elements of buffers")
def cast_to_f16(at, x, i, o, n):
    o[at] = ls.cast(ls.f16, x[at])


@refused("a value of u8", "u32")
def local_array_of_bytes(at, x, i, o, n):
    v = ls.local(ls.u8, 2)
    v[0] = ls.cast(ls.u8, x[at])
    n[at] = ls.cast(ls.i32, v[0])


@refused("300 as u8", "0 to 255")
def byte_of_a_large_number(at, x, i, o, n):
    n[at] = ls.cast(ls.i32, ls.cast(ls.u8, 300))


@refused("vectors of 3 and 2 components")
def dot_of_other_lengths(at, x, i, o, n):
    o[at] = ls.dot((x[at], x[at], 1.0), (x[at], 2.0))


@refused("cross of vectors of 4 and 4 components")
def cross_of_four_components(at, x, i, o, n):
    o[at] = ls.cross((x[at],) * 4, (x[at],) * 4)[0]


# ── places in memory ──
@refused("-1", "negative ones do not count from the end")
def negative_index(at, x, i, o, n):
    o[at] = x[-1]


@refused("slice")
def slice_of_a_buffer(at, x, i, o, n):
    o[at] = x[0:2]


@refused("1.0")
def index_that_is_a_float(at, x, i, o, n):
    o[at] = x[1.0]


@refused("Ellipsis")
def index_that_is_all(at, x, i, o, n):
    o[...] = x[at]


@refused("2 coordinates", "1")
def too_many_coordinates(at, x, i, o, n):
    o[at] = x[0, 1]


@refused("1.5")
def shift_by_a_fraction(at, x, i, o, n):
    o[at] = x[at.x(1.5)]


@refused("a shift of a point")
def shift_by_a_value(at, x, i, o, n):
    o[at] = x[at.x(i[at])]


@refused("axis y")
def axis_that_is_not_there(at, x, i, o, n):
    o[at] = x[at.y(1)]


@refused("Python loop")
def loop_over_a_buffer(at, x, i, o, n):
    total = 0.0
    for v in x:
        total = total + v
    o[at] = total


@refused("Python loop")
def sum_of_a_buffer(at, x, i, o, n):
    o[at] = sum(x)


@refused("size(axis)")
def len_of_a_buffer(at, x, i, o, n):
    o[at] = x[at] / len(x)


@refused("`in`")
def membership_in_a_buffer(at, x, i, o, n):
    o[at] = 1.0 if 2.0 in x else 0.0


@refused("Out")
def read_of_out(at, x, i, o, n):
    o[at] += 1.0


@refused("Grid")
def store_into_grid(at, x, i, o, n):
    x[at] = 1.0


@refused("-1", "0 to 3")
def negative_index_of_a_local_array(at, x, i, o, n):
    v = ls.local(ls.f32, 4)
    v[0] = x[at]
    o[at] = v[-1]


@refused("4", "0 to 3")
def index_past_a_local_array(at, x, i, o, n):
    v = ls.local(ls.f32, 4)
    v[4] = x[at]
    o[at] = v[0]


@refused("Python loop")
def loop_over_a_local_array(at, x, i, o, n):
    v = ls.local(ls.f32, 4)
    o[at] = sum(v)


@pytest.mark.parametrize("body", refused.bodies, ids=lambda b: b.__name__)
def test_is_refused_with_file_and_line(body):
    refused.check(body)


def test_there_are_enough():
    assert len(refused.bodies) >= 60
