"""What the function of a kernel reads of the host while it is traced: numbers and tables of its module and of functions around it.

They are constants of the trace. A launch after one of them has changed traces again, so that it means what Python says.
"""
import dis
import sys
import types

from ._numpy import np

_TABLE_BYTES = 4096  # longer arrays are known by their identity alone


def _state(value):
    """What a trace depends on, as something that compares equal where the trace is the same."""
    if isinstance(value, (bool, int, float, str, type(None))):
        return (type(value), repr(value))  # NaN equals itself, -0.0 does not equal 0.0
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(_state(v) for v in value))
    if type(value) is dict:
        return (dict, tuple((_state(k), _state(v)) for k, v in value.items()))
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= _TABLE_BYTES and value.dtype.kind in "biuf":
        return (value.dtype.str, value.shape, value.tobytes())
    return (None, id(value))


def _is_ours(value):
    return (getattr(value, "__module__", None) or "").startswith("lockstep.")


def _changes(value):
    """Whether a value is a module whose names may change: not the package, NumPy or Python's library."""
    return isinstance(value, types.ModuleType) and \
        value.__name__.partition(".")[0] not in ("lockstep", "numpy", *sys.stdlib_module_names)


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _value(place):
    names, key = place
    if key is not None:
        return names.get(key, _MISSING)
    try:
        return names.cell_contents
    except ValueError:  # a name of the function around it that has no value yet
        return _MISSING


def _places_of(function):
    """What a function reads outside of it: (names, key) of dictionaries, those of modules too, and (cell, None)."""
    cells = {n: (cell, None) for n, cell in zip(function.__code__.co_freevars, function.__closure__ or ())}
    yield from cells.values()
    for code in _codes(function.__code__):
        place = None  # that the instruction before has loaded
        for i in dis.get_instructions(code):
            if i.opname == "LOAD_GLOBAL":
                place = (function.__globals__, i.argval)
                yield place
            elif i.opname == "LOAD_DEREF":
                place = cells.get(i.argval)
            elif i.opname in ("LOAD_ATTR", "LOAD_METHOD") and place and _changes(_value(place)):
                place = (_value(place).__dict__, i.argval)
                yield place
            else:
                place = None


class Captured:
    """The names of a function, and of the functions that it calls, outside of it."""

    def __init__(self, function):
        self._places = []
        self._collect(function, set())
        self.state = self._read()

    def _collect(self, function, seen):
        for place in _places_of(function):
            value, known = _value(place), (id(place[0]), place[1])
            if known in seen or value is _MISSING or isinstance(value, (types.ModuleType, type)) or _is_ours(value):
                continue
            seen.add(known)
            self._places.append(place)
            if isinstance(value, types.FunctionType) and value not in seen:
                seen.add(value)
                self._collect(value, seen)

    def _read(self):
        return tuple(_state(_value(p)) for p in self._places)

    def has_changed(self):
        return bool(self._places) and self._read() != self.state


_MISSING = object()
