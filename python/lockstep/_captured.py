"""What the function of a kernel reads of the host while it is traced: numbers and tables of its module and of functions around it.

They are constants of the trace. A launch after one of them has changed traces again, so that it means what Python says.
"""
import dis
import functools
import sys
import types
import weakref

from ._numpy import np

_TABLE_BYTES = 4096  # longer arrays are known by their identity alone


class _Same:
    """An object as itself: equal to no later object at the same address."""

    __slots__ = ("_number", "_object")

    def __init__(self, value):
        self._number = id(value)
        try:
            self._object = weakref.ref(value)
        except TypeError:  # it stays alive instead
            self._object = lambda: value

    def __hash__(self):
        return self._number

    def __eq__(self, other):
        own = self._object()
        return own is not None and isinstance(other, _Same) and own is other._object()


def _state(value):
    """What a trace depends on, as something that compares equal where the trace is the same."""
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return (type(value), repr(value))  # NaN equals itself, -0.0 does not equal 0.0
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(_state(v) for v in value))
    if type(value) in (set, frozenset):
        return (type(value), frozenset(_state(v) for v in value))
    if isinstance(value, types.FunctionType):
        return (_Same(value), _state(value.__defaults__), _state(value.__kwdefaults__))
    if type(value) is functools.partial:
        return (functools.partial, _state(value.func), _state(value.args), _state(value.keywords))
    if type(value) is dict:
        return (dict, tuple((_state(k), _state(v)) for k, v in value.items()))
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= _TABLE_BYTES and value.dtype.kind in "biuf":
        return (value.dtype.str, value.shape, value.tobytes())
    return (None, _Same(value))


def _functions(value):
    """The functions that a value is or holds."""
    if isinstance(value, types.FunctionType):
        if not _is_ours(value):
            yield value
    elif type(value) is functools.partial:
        yield from _functions(value.func)
    elif type(value) in (list, tuple, dict):
        for v in value.values() if type(value) is dict else value:
            yield from _functions(v)


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
            for called in _functions(value):
                if called not in seen:
                    seen.add(called)
                    self._collect(called, seen)

    def _read(self):
        return tuple(_state(_value(p)) for p in self._places)

    def has_changed(self):
        return bool(self._places) and self._read() != self.state


_MISSING = object()
