"""What the function of a kernel reads of the host while it is traced: numbers and tables of its module and of functions around it.

They are constants of the trace. A launch after one of them has changed traces anew, so that it means what Python says.
"""
import dis
import types

from ._numpy import np

_TABLE_BYTES = 4096  # longer arrays are known by their identity alone


def _state(value):
    """What a trace depends on, as something that compares equal where the trace is the same."""
    if isinstance(value, (bool, int, float, str, type(None))):
        return (type(value), repr(value))  # NaN equals itself, -0.0 does not equal 0.0
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(_state(v) for v in value))
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= _TABLE_BYTES and value.dtype.kind in "biuf":
        return (value.dtype.str, value.shape, value.tobytes())
    return (None, id(value))


def _is_ours(value):
    return (getattr(value, "__module__", None) or "").startswith("lockstep.")


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


class Captured:
    """The names of a function, and of the functions that it calls, outside of it."""

    def __init__(self, function):
        self._places, seen = [], set()  # (names, key) of dictionaries, (cell, None)
        self._collect(function, seen)
        self.state = self._read()

    def _collect(self, function, seen):
        if function in seen:
            return
        seen.add(function)
        names = {i.argval for code in _codes(function.__code__) for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
        places = [(function.__globals__, n) for n in sorted(names)] + [(cell, None) for cell in function.__closure__ or ()]
        for place in places:
            value = self._value(place)
            if value is _MISSING or isinstance(value, (types.ModuleType, type)) or _is_ours(value):
                continue
            self._places.append(place)
            if isinstance(value, types.FunctionType):
                self._collect(value, seen)

    @staticmethod
    def _value(place):
        names, key = place
        if key is not None:
            return names.get(key, _MISSING)
        try:
            return names.cell_contents
        except ValueError:  # a name of the function around it that has no value yet
            return _MISSING

    def _read(self):
        return tuple(_state(self._value(p)) for p in self._places)

    def has_changed(self):
        return bool(self._places) and self._read() != self.state


_MISSING = object()
