"""Names and statements that a traced block cannot have, and arguments that a launch cannot take: refused with file and line."""
import re

import numpy as np
import pytest

import lockstep as ls
from misuse import Refused

refused = Refused()


# ── names that a block cannot change ──
@refused("s bound to another value inside of for_", "lockstep.var")
def sum_in_a_name(at, x, i, o, n):
    s = x[at]
    for k in ls.for_(3):
        s = s + x[k]
    o[at] = s


@refused("s bound to another value inside of for_")
def sum_that_begins_as_a_number(at, x, i, o, n):
    s = 0.0
    for k in ls.for_(3):
        s += x[k]
    o[at] = s


@refused("count bound to another value inside of for_")
def counter_of_python(at, x, i, o, n):
    count = 0
    for k in ls.for_(3):
        n[k] = count
        count += 1


@refused("v bound to another value inside of if_")
def assignment_in_a_branch(at, x, i, o, n):
    v = x[at]
    with ls.if_(v > 2):
        v = v * 2
    o[at] = v


@refused("found bound to another value inside of if_")
def flag_in_a_branch(at, x, i, o, n):
    found = False
    with ls.if_(x[at] > 2):
        found = True
    o[at] = 1.0 if found else 0.0


@refused("v bound to another value inside of else_")
def assignment_in_else(at, x, i, o, n):
    v = x[at]
    with ls.if_(v > 2):
        o[at] = v
    with ls.else_():
        v = v * 2
        o[at] = v


@refused("bound to another value inside of if_")
def swap_in_a_branch(at, x, i, o, n):
    a, b = x[at], x[at.x(1)]
    with ls.if_(a > b):
        a, b = b, a
    o[at] = a


@refused("bound to another value inside of for_")
def fibonacci_of_names(at, x, i, o, n):
    a, b = ls.var(0), ls.var(1)
    for _ in ls.for_(5):
        a, b = b, a + b
    n[at] = a


@refused("v bound to another value inside of while_")
def variable_bound_anew(at, x, i, o, n):
    v = ls.var(x[at])
    with ls.while_(lambda: v < 3):
        v = v + 1
    o[at] = v


@refused("values bound to another value inside of if_")
def list_changed_in_a_branch(at, x, i, o, n):
    values = [x[at], x[at.x(1)]]
    with ls.if_(values[0] > values[1]):
        values[0], values[1] = values[1], values[0]
    o[at] = values[0]


@refused("source bound to another value inside of if_")
def buffer_chosen_in_a_branch(at, x, i, o, n):
    source = x
    with ls.if_(i[at] > 0):
        source = x.periodic()
    o[at] = source[at.x(1)]


@refused("chosen bound to another value inside of if_")
def local_array_chosen_in_a_branch(at, x, i, o, n):
    chosen, other = ls.local(ls.f32, 2), ls.local(ls.f32, 2)
    with ls.if_(i[at] > 0):
        chosen = other
    chosen[0] = x[at]
    o[at] = chosen[0]


@refused("chosen bound to another value inside of else_")
def buffer_chosen_in_both_branches(at, x, i, o, n):
    with ls.if_(i[at] > 0):
        chosen = x
    with ls.else_():
        chosen = x.periodic()
    o[at] = chosen[at.x(1)]


@refused("chosen bound to another value inside of for_")
def buffer_that_begins_as_none(at, x, i, o, n):
    chosen = None
    for _ in ls.for_(3):
        chosen = x
    o[at] = chosen[at]


@refused("chosen bound to another value inside of if_")
def buffer_chosen_by_a_nested_function(at, x, i, o, n):
    chosen = x

    def choose():
        nonlocal chosen
        chosen = x.periodic()
    with ls.if_(i[at] > 0):
        choose()
    o[at] = chosen[at.x(1)]


@refused("counts bound to another value inside of for_")
def counter_in_a_list(at, x, i, o, n):
    counts = [0]
    for k in ls.for_(3):
        counts[0] += 1
    n[at] = counts[0]


@refused("count bound to another value inside of for_")
def counter_of_a_nested_function(at, x, i, o, n):
    count = 0

    def passed():
        nonlocal count
        count += 1
    for k in ls.for_(3):
        passed()
        n[k] = count


@refused("a point of another kernel")
def point_of_the_kernel_around(at, x, i, o, n):
    @ls.kernel
    def inner(own, y: ls.Out[ls.f32, 1]):
        y[at] = 1.0
    inner.trace()


@refused("a point of another kernel")
def coordinate_of_the_kernel_around(at, x, i, o, n):
    @ls.kernel
    def inner(own, y: ls.Out[ls.f32, 1]):
        y[own] = ls.cast(ls.f32, at.x)
    inner.trace()


@refused("a group of another kernel")
def group_of_the_kernel_around(at, x, i, o, n):
    @ls.kernel(group=(4,))
    def outer(g, y: ls.Out[ls.f32, 1]):
        @ls.kernel(group=(8,))
        def inner(own, z: ls.Out[ls.f32, 1]):
            z[own.lane()] = ls.cast(ls.f32, ls.var(g.lanes()))
        inner.trace()
    outer.trace()


@refused("state bound to another value inside of if_")
def item_of_a_dictionary(at, x, i, o, n):
    state = {"from": x}
    with ls.if_(i[at] > 0):
        state["from"] = x.periodic()
    o[at] = state["from"][at.x(1)]


@refused("outside of the block")
def values_gathered_in_a_list(at, x, i, o, n):
    values = []
    for k in ls.for_(3):
        values.append(x[k])
    o[at] = values[0]


@refused("for statement")
def list_comprehension(at, x, i, o, n):
    o[at] = sum([x[k] for k in ls.for_(3)])


@refused("for statement")
def generator_expression(at, x, i, o, n):
    o[at] = sum(x[k] for k in ls.for_(3))


@refused("for statement")
def enumerate_of_a_loop(at, x, i, o, n):
    for k, j in enumerate(ls.for_(3)):
        n[j] = k


@refused("for statement")
def zip_of_loops(at, x, i, o, n):
    for j, k in zip(ls.for_(3), ls.for_(3)):
        n[j] = k


@refused("for statement")
def list_of_a_loop(at, x, i, o, n):
    n[at] = list(ls.for_(3))[0]


@refused("one variable", "+v")
def two_names_of_a_variable(at, x, i, o, n):
    v = ls.var(x[at])
    old = v
    v += 1
    o[at] = v - old


# ── statements ──
@refused("break")
def python_break(at, x, i, o, n):
    for k in ls.for_(3):
        break
    o[at] = x[at]


@refused("return")
def python_return(at, x, i, o, n):
    for k in ls.for_(3):
        return
    o[at] = x[at]


@refused("a Python return, break or continue out of if_", "lockstep.return_()")
def return_out_of_a_branch(at, x, i, o, n):
    with ls.if_(x[at] < 0):
        return
    o[at] = x[at]


@refused("a Python return, break or continue out of if_")
def continue_out_of_a_branch(at, x, i, o, n):
    total = ls.var(0.0)
    for k in ls.for_(3):
        with ls.if_(x[k] < 0):
            continue
        total += x[k]
    o[at] = total


@refused("a Python return, break or continue out of else_")
def break_out_of_a_branch_in_an_unrolled_loop(at, x, i, o, n):
    total = ls.var(0.0)
    for k in range(3):
        with ls.if_(x[k] > 0):
            total += x[k]
        with ls.else_():
            o[at] = total
            break


@refused("a Python return, break or continue out of while_")
def value_returned_out_of_a_loop(at, x, i, o, n):
    def halved(v):
        with ls.while_(lambda: v > 1):
            v *= 0.5
            return v
    o[at] = halved(ls.var(x[at]))


@refused("exception out of if_")
def exception_that_is_caught_outside_of_its_block(at, x, i, o, n):
    try:
        with ls.if_(x[at] > 0):
            o[at] = i[at]
    except ls.InputError:
        pass
    o[at] = 1.0


@refused("if_ alone")
def branch_without_with(at, x, i, o, n):
    ls.if_(x[at] > 0)
    o[at] = 1.0


@refused("for_ alone")
def loop_without_for(at, x, i, o, n):
    ls.for_(3)
    o[at] = 1.0


@refused("while_ of a value")
def while_on_a_value(at, x, i, o, n):
    v = ls.var(x[at])
    with ls.while_(v < 3):
        v += 1
    o[at] = v


@refused("if_(True)")
def branch_on_a_python_bool(at, x, i, o, n):
    with ls.if_(True):
        o[at] = 1.0


@refused("else_")
def else_without_if(at, x, i, o, n):
    with ls.else_():
        o[at] = 1.0


@refused("else_")
def else_away_from_its_if(at, x, i, o, n):
    with ls.if_(x[at] > 0):
        o[at] = 1.0
    n[at] = 1
    with ls.else_():
        o[at] = 2.0


@refused("else_ without if_")
def else_twice(at, x, i, o, n):
    with ls.if_(x[at] > 0):
        o[at] = 1.0
    with ls.else_():
        o[at] = 2.0
    with ls.else_():
        o[at] = 3.0


@refused("0.5")
def step_that_is_a_fraction(at, x, i, o, n):
    for k in ls.for_(0, 3, 0.5):
        o[k] = 1.0


@refused("other than 0")
def step_of_zero(at, x, i, o, n):
    for k in ls.for_(0, 3, 0):
        o[k] = 1.0


@refused("4294967297")
def step_beyond_the_type(at, x, i, o, n):
    for k in ls.for_(0, 3, 2**32 + 1):
        o[k] = 1.0


@refused("a step of <traced i32>")
def step_that_is_traced(at, x, i, o, n):
    for k in ls.for_(0, 3, i[at]):
        o[k] = 1.0


@refused("2.5")
def bound_that_is_a_fraction(at, x, i, o, n):
    for k in ls.for_(2.5):
        o[k] = 1.0


@refused("loop")
def break_outside_of_a_loop(at, x, i, o, n):
    ls.break_()
    o[at] = 1.0


@refused("Group")
def shared_array_without_groups(at, x, i, o, n):
    s = ls.shared(ls.f32, 4)
    s[0] = x[at]
    o[at] = s[0]


@pytest.mark.parametrize("body", refused.bodies, ids=lambda b: b.__name__)
def test_is_refused_with_file_and_line(body):
    refused.check(body)


def test_there_are_enough():
    assert len(refused.bodies) >= 30


# ── parameters and arguments ──
@pytest.mark.parametrize("make, said", [
    (lambda: ls.kernel(lambda: None), "without parameters"),
    (lambda: ls.kernel(lambda at, x: None), "annotation"),
    (lambda: ls.Grid[ls.f32, 3, "periodic"], r"with 3 parts \[annotation\]: expected an element type and a rank"),
    (lambda: ls.Out[()], "with 0 parts"),
    (lambda: ls.Grid[ls.f32, 5], r"rank 5 \[annotation\]: expected a whole number from 1 to 4"),
    (lambda: ls.Grid[0], "rank 0"),
    (lambda: ls.InOut[ls.f32, True], "rank True"),
    (lambda: ls.At[4], r"rank 4 \[annotation\]: expected a whole number from 1 to 3"),
    (lambda: ls.Group["x"], "rank 'x'"),
])
def test_parameters_that_are_refused(make, said):
    with pytest.raises(ls.InputError, match=said):
        make()


def test_a_kernel_that_returns_a_value_is_refused():
    @ls.kernel
    def returning(at, x: ls.Grid[ls.f32, 1]):
        return x[at]
    line = returning._function.__code__.co_firstlineno
    with pytest.raises(ls.InputError, match=rf"returns a value \[kernel returning, test_misuse_blocks\.py:{line}\]"):
        returning.trace()


def test_parameters_that_collect_are_refused():
    def stars(at, *x: ls.Grid[ls.f32, 1]): pass
    def names(at, **x: ls.f32): pass
    def keyword_only(at, *, a: ls.f32): pass
    for function in (stars, names, keyword_only):
        with pytest.raises(ls.InputError, match="by name"):
            ls.kernel(function)

    def default_buffer(at, x: ls.Grid[ls.f32, 1] = None): pass
    with pytest.raises(ls.InputError, match="default of x"):
        ls.kernel(default_buffer)


@ls.kernel
def scaled(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1], a: ls.f32 = 3.0, m: ls.i32 = 1):
    o[at] = a * x[at] + ls.cast(ls.f32, m)


def test_arguments_by_keyword_and_defaults(device):
    x = np.arange(4, dtype="f4")
    o = np.zeros_like(x)
    scaled[device, 4](x, o)
    np.testing.assert_array_equal(o, 3 * x + 1)
    scaled[device, 4](x, o=o, a=2.0)
    np.testing.assert_array_equal(o, 2 * x + 1)
    scaled[device, 4](m=5, o=o, x=x)
    np.testing.assert_array_equal(o, 3 * x + 5)
    for arguments, named, said in (((x, o), {"b": 1.0}, "argument b"), ((x, o), {"x": x}, "argument x twice"), ((x,), {}, "1 arguments"),
                                   ((x, o, 1.0, 1, 2), {}, "5 arguments"), ((x, o, "1"), {}, "str"), ((x, o, x), {}, "ndarray"),
                                   ((x, o, 1.0, 2.5), {}, "2.5")):
        with pytest.raises(ls.InputError, match=re.escape(said)):
            scaled[device, 4](*arguments, **named)


def test_arrays_with_strides_of_zero(device):
    @ls.kernel
    def copy(at, x: ls.Grid[ls.f32, 2], o: ls.Out[ls.f32, 2]):
        o[at] = x[at] + x[at.y(1)]

    row = np.arange(5, dtype="f4")
    many = np.broadcast_to(row, (3, 5))
    o = np.zeros((3, 5), "f4")
    copy[device, (3, 5)](many, o)
    np.testing.assert_array_equal(o, 2 * many)
    column = np.broadcast_to(np.arange(3, dtype="f4")[:, None], (3, 5))
    with pytest.raises(ls.InputError, match="copy=True"):
        copy[device, (3, 5)](column, o)
    copy[device, (3, 5)](ls.asarray(column, device, copy=True), o)
    np.testing.assert_array_equal(o, column + column[[1, 2, 2]])
    with pytest.raises(ls.InputError, match="read-only"):
        copy[device, (3, 5)](o.copy(), many)
    writable = np.lib.stride_tricks.as_strided(row, (3, 5), (0, 4))
    with pytest.raises(ls.InputError):
        copy[device, (3, 5)](o.copy(), writable)
    with pytest.raises(ls.InputError):
        copy[device, (3, 5)](o, o)
    np.testing.assert_array_equal(row, np.arange(5))


def test_lists_that_32_bits_do_not_hold():
    with pytest.raises(ls.InputError, match="32 bits"):
        ls.asarray([1, 2**40])
    assert ls.asarray([1, 2**31 - 1]).numpy().tolist() == [1, 2**31 - 1]
