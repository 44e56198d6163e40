"""Handles, tables and traced functions of problems and smoothers."""
import numpy as np

from ._array import real_numbers
from ._errors import InputError
from ._expr import Trace, Value, Vec


class BlockSet:
    """Blocks that were added together, of one Problem."""

    __slots__ = ("_id", "_owner", "name", "size")

    def __init__(self, number, name, size, owner=None):
        self._id, self._owner, self.name, self.size = number, owner, name, size


class TermSet:
    """Instances that were added together, by their number in the order of adding, of one Problem."""

    __slots__ = ("_id", "_owner", "name", "data")

    def __init__(self, number, name, data, owner=None):
        self._id, self._owner, self.name, self.data = number, owner, name, data


def _number_of(handle, core, where, kind):
    """The number of a handle that `core` gave."""
    if not hasattr(handle, "_owner"):
        raise InputError(f"{handle!r} for blocks or terms", where, f"what this {kind}'s calls gave")
    if handle._owner is not core:
        found, source = ("blocks", "add_blocks") if isinstance(handle, BlockSet) else ("terms", "add_terms")
        if kind == "smoother":
            found, source = ("blocks", "add_set") if isinstance(handle, BlockSet) else (found, f"{source} or add_kind")
        raise InputError(f"{found} {handle.name!r} of another {kind}", where, f"{found} that this {kind}'s {source} gave")
    return handle._id


def _numbers(values, name, columns=None):
    array = np.ascontiguousarray(real_numbers(values, name, np.float64))
    if array.ndim == 1:
        array = array.reshape(-1, 1 if columns is None else columns)
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        raise InputError(f"shape {np.shape(values)}", name, f"(n, {'columns' if columns is None else columns})")
    return array


def _list_of(values, name):
    """Real numbers along one axis, or one, for the core."""
    return np.atleast_1d(real_numbers(values, name, np.float64)).tolist()


def _traced(function, shapes):
    """`function(*blocks, data)` for the core: blocks and data as Vec."""

    def call(blocks, data):
        with Trace() as trace:
            arguments = [Vec(Value(v, trace) for v in block) for block in blocks]
            numbers = [Value(v, trace) for v in data]
            if shapes is None:
                found = function(*arguments, Vec(numbers)) if numbers else function(*arguments)
            else:
                rows, at = [], 0
                for shape in shapes:
                    count = int(np.prod(shape, dtype=int))
                    rows.append(numbers[at] if shape == () else Vec(numbers[at:at + count]))
                    at += count
                found = function(*arguments, *rows)
            if isinstance(found, Value):
                found = (found,)
            elif isinstance(found, np.ndarray):
                found = found.ravel()
            try:
                outputs = list(found)
            except TypeError:
                raise InputError(f"a residual that gives {type(found).__name__}", "lockstep.solve",
                                 "an expression, or a sequence of them") from None
            return arguments[0][0]._nodes(outputs)

    return call


def _entries(rows):
    """The numbers of a Jacobian, row by row."""
    return [e for row in ([rows] if isinstance(rows, Value) else rows) for e in ([row] if isinstance(row, Value) or np.ndim(row) == 0 else row)]


def _block_sets(name, blocks):
    """Block sets of a term; one alone is that of its only slot."""
    blocks = (blocks,) if isinstance(blocks, BlockSet) else tuple(blocks)
    for b in blocks:
        if not isinstance(b, BlockSet):
            raise InputError(f"{b!r} for blocks", f"terms {name}", "block sets, as add_blocks gave them")
    return blocks


def _whole(values, what, where):
    """Whole numbers, which floats may be too, as an array."""
    array = np.asarray(values)
    numbers = array.dtype.kind in "iuf"  # a mask is no list of numbers
    wrong = ~((array > -2**31) & (array < 2**31) & (array == np.trunc(array))) if numbers else np.ones(array.shape, bool)
    if wrong.any():
        raise InputError(f"{what} {array[wrong][0]}", where, "whole numbers below 2^31")
    return array.astype(np.int32)


def _one(value, what="block", where="lockstep.solve"):
    """A whole number."""
    if np.ndim(value):
        raise InputError(f"{what} of shape {np.shape(value)}", where, "one whole number")
    return int(_whole(value, what, where))


def _instances(name, blocks, indices, data):
    blocks = _block_sets(name, blocks)
    table = np.ascontiguousarray(_whole(indices, "indices", f"terms {name}"))
    if table.ndim == 1:
        table = table.reshape(-1, len(blocks))
    if table.ndim != 2 or table.shape[1] != len(blocks):
        raise InputError(f"indices of shape {table.shape}", f"terms {name}", f"(n, {len(blocks)})")
    numbers = np.zeros((len(table), 0)) if data is None else _numbers(data, f"terms {name}, data")
    if len(numbers) != len(table):
        raise InputError(f"{len(numbers)} rows of data", f"terms {name}", f"{len(table)}, one for each instance")
    return blocks, table, numbers


def _loss_of(loss):
    if not callable(loss):
        return loss

    def rho(s):
        with Trace() as trace:
            value = Value(s, trace)
            found = loss(value)
            if not isinstance(found, Value):
                raise InputError(f"a loss that gives {type(found).__name__}", "lockstep.solve", "an expression of s")
            return value._nodes((found,))[0]

    return rho


def _flat(function, where):
    """A function on the host for the core: its numbers along one axis."""
    return None if function is None else lambda *a: np.ascontiguousarray(real_numbers(function(*a), where, np.float64)).reshape(-1)
