"""Traced expressions: of kernels (`Val`) and of residuals (`Value`), and the functions that take both."""
import builtins
import functools
import itertools
import math
import os
import sys
import threading

from . import _core, _types
from ._errors import InputError

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


@functools.cache
def _is_ours(path):
    return os.path.dirname(os.path.abspath(path)) == _PACKAGE


def frame_of_caller():
    """The frame of the code that uses the package."""
    frame = sys._getframe(1)
    while frame and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def caller():
    """File and line of the code that uses the package."""
    frame = frame_of_caller()
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else "?"


class _Trace(threading.local):
    """What this thread traces now: the blocks around the current line, by number; statements that began; what was left."""

    _numbers = itertools.count(1)

    def __init__(self):
        self.reset()

    def reset(self):
        self.number = next(self._numbers)
        self.scope, self.blocks, self.unused, self.left_open, self.last_if = [0], 0, [], [], None


trace = _Trace()


def mark():
    """What the trace records from here on comes from the caller's line."""
    frame = frame_of_caller()
    if frame:
        _core.at(frame.f_code.co_filename, frame.f_lineno)


def number(kind, value):
    """A number of the host as a constant of the kernel: of a type that holds it."""
    mark()
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise InputError(f"{type(value).__name__} with a traced {kind}", caller(), "a number or a traced value")
    if isinstance(value, float) and kind not in ("f32", "f64"):
        raise InputError(f"{value!r} with a traced {kind}", caller(),
                         "a whole number, or lockstep.cast to a float type first (NumPy gives a float here)")
    if isinstance(value, int) and not -2**63 <= value < 2**64:
        raise InputError(f"{value} with a traced {kind}", caller(), "a number of at most 64 bits")
    return _core.number(kind, value)


def core_of(kind, value):
    """A traced value, or a number of that type, as the core takes it."""
    mark()
    return value._core_value() if isinstance(value, Val) else number(kind, value)


# The method of the right operand that Python calls, by the name of NumPy's function.
_REFLECTED = {"add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__", "true_divide": "__rtruediv__",
              "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "divmod": "__rdivmod__", "power": "__rpow__",
              "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__", "left_shift": "__rlshift__",
              "right_shift": "__rrshift__", "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__",
              "equal": "__eq__", "not_equal": "__ne__"}


class Expr:
    """What kernel values and graph values share: the operators."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy numbers leave the operators to us

    def __neg__(self): return self._op("unary -", self)
    def __pos__(self): return self
    def __invert__(self): return self._op("unary ~", self)
    def __abs__(self): return self._op("abs", self)
    __hash__ = object.__hash__

    def __pow__(self, n):
        return self._power(n)

    def __rpow__(self, base):
        return self._op("pow", base, self)

    def __bool__(self):
        raise InputError("a Python condition (if, while, and, or, not, min, max) on a traced value", caller(),
                         "lockstep.where, `with lockstep.if_(…)`, `with lockstep.while_(…)`, & | ~, lockstep.min or max")

    def __index__(self):
        raise InputError("a Python range or index from a traced value", caller(),
                         "`for i in lockstep.for_(begin, end)`, or a number known while tracing")

    def __iter__(self):
        raise InputError("a Python loop over a traced value", caller(), "`for i in lockstep.for_(begin, end)`")

    def __float__(self):
        raise InputError("a traced value as a Python number", caller(),
                         "lockstep.cast, and the functions of lockstep instead of those of math")

    __int__ = __complex__ = __trunc__ = __floor__ = __ceil__ = __float__

    def __round__(self, digits=None):
        raise InputError("round of a traced value", caller(),
                         "lockstep.rint (halves to even, as Python rounds) or lockstep.round (halves away from zero)")

    def __format__(self, spec):
        if spec:
            raise InputError(f"a traced value formatted by {spec!r}", caller(), "a number: it has no value while tracing")
        return str(self)


def _operators(owner, words, reflected=True):
    """Gives a class the operators of Python's names, as words of its _op."""
    for name, word in words.items():
        setattr(owner, f"__{name}__", lambda self, o, word=word: self._op(word, self, o))
        if reflected:
            setattr(owner, f"__r{name}__", lambda self, o, word=word: self._op(word, o, self))


_operators(Expr, {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "and": "&", "or": "|"})
_operators(Expr, {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}, reflected=False)


class Val(Expr):
    """A value of one lane of the kernel that is being traced."""

    __slots__ = ("_v", "_scope")
    __hash__ = None  # a key of a set or a dict would be the name, not the value

    def __array_ufunc__(self, ufunc, method, *operands, **others):
        """NumPy numbers leave the operators to us, and arrays their elements."""
        operator = getattr(operands[-1], _REFLECTED.get(ufunc.__name__, ""), None)
        if operator and method == "__call__" and len(operands) == 2 and not others:
            return operator(operands[0])
        ours = {"absolute": "abs", "minimum": "min", "maximum": "max"}.get(ufunc.__name__, ufunc.__name__.replace("arc", "a", 1))
        raise InputError(f"numpy.{ufunc.__name__} of a traced value", caller(),
                         f"lockstep.{ours}" if ours in globals() else "the functions of lockstep")

    def __init__(self, core):
        self._v, self._scope = core, trace.scope[-1]

    def _is_visible(self):
        """Whether the block is open in which the value was made."""
        return getattr(self, "_scope", 0) in trace.scope

    @property
    def dtype(self):
        return _types.BY_NAME[self._core_value().type]

    def _core_value(self):
        return self._v

    @staticmethod
    def _op(word, *operands):
        values = lift(operands)
        if len({v.type for v in values}) > 1:
            raise InputError(f"{word} of " + " and ".join(v.type for v in values), caller(),
                             "one type: lockstep.cast, or lockstep.where for a condition")
        if word == "/" and values[0].type not in ("f32", "f64"):
            raise InputError("/ of whole numbers", caller(), "// (rounds down as in Python), or cast to a float type")
        return Val(_core.apply(word, values))

    def __pos__(self):
        """The value at this moment, also of a variable."""
        return Val(core_of("", self))

    def _power(self, n):
        mark()
        kind = self._core_value().type
        if kind not in ("f32", "f64") and (not isinstance(n, int) or n < 0):
            raise InputError(f"** of a traced {kind}", caller(),
                             "a whole power from 0 that is known while tracing, or lockstep.cast to a float type first")
        if isinstance(n, int) and abs(n) < 2**31:
            return Val(_core.powi(self._core_value(), n))
        return self._op("pow", self, n)

    def __rpow__(self, base):
        if self._core_value().type not in ("f32", "f64"):
            raise InputError(f"{base} ** a traced {self.dtype.name}", caller(), "1 << n, or lockstep.cast to a float type")
        return self._op("pow", base, self)

    def __divmod__(self, o): return _floor_div(self, o)
    def __rdivmod__(self, o): return _floor_div(o, self)
    def __floordiv__(self, o): return _floor_div(self, o)[0]
    def __rfloordiv__(self, o): return _floor_div(o, self)[0]
    def __mod__(self, o): return _floor_div(self, o)[1]
    def __rmod__(self, o): return _floor_div(o, self)[1]
    def __lshift__(self, o): return self._shift("<<", self, o)
    def __rshift__(self, o): return self._shift(">>", self, o)
    def __rlshift__(self, o): return self._shift("<<", o, self)
    def __rrshift__(self, o): return self._shift(">>", o, self)

    @staticmethod
    def _shift(word, a, n):
        values = lift((a, n))
        width = 64 if values[0].type in ("i64", "u64") else 32
        if isinstance(n, int) and not 0 <= n < width:
            raise InputError(f"{word} {n}", caller(), f"a shift from 0 to {width - 1}: traced ones count modulo {width}")
        return Val._op(word, a, n)

    def __repr__(self):
        try:
            return f"<traced {self.dtype.name}>"
        except InputError:  # of another trace
            return "<traced value>"


_operators(Val, {"xor": "^"})


def lift(operands):
    """Operands as traced values of one type: that of the first that is traced."""
    mark()
    kind = next((o._core_value().type for o in operands if isinstance(o, Val)), None)
    if kind is None:
        raise InputError("numbers without a traced value", caller(), "at least one traced operand")
    return [o._core_value() if isinstance(o, Val) else number(kind, o) for o in operands]


def _floor_div(a, b):
    """Quotient and remainder that round down, as Python's // and % do."""
    values = lift((a, b))
    if values[0].type in ("f32", "f64"):
        raise InputError("// or % of floats", caller(), "lockstep.floor(a / b), or lockstep.fmod")
    x, y = (Val(v) for v in values)
    quotient, rest = Val(_core.apply("/", values)), Val(_core.apply("%", values))
    if values[0].type in ("u32", "u64"):
        return quotient, rest
    if isinstance(b, int) and b > 0:
        low = rest < 0
    else:
        low = (rest != 0) & ((rest < 0) != (y < 0))
    return where(low, quotient - 1, quotient), where(low, rest + y, rest)


class Trace:
    """A call of a traced function. The graph of its values ends with it."""

    __slots__ = ("ended",)

    def __enter__(self):
        self.ended = False
        return self

    def __exit__(self, *error):
        self.ended = True


class Value(Expr):
    """An expression of a residual: pure, differentiated by the engine. `_owner` has its graph: a Trace, or what keeps it."""

    __slots__ = ("_node", "_owner")

    def __init__(self, core, owner):
        self._node, self._owner = core, owner

    @property
    def _v(self):
        if getattr(self._owner, "ended", False):
            raise InputError("a value of a function that was traced before", caller(), "values of this call: graphs end with their trace")
        return self._node

    def _nodes(self, operands):
        """Operands as nodes of this value's graph."""
        if any(isinstance(o, Value) and o._owner is not self._owner for o in operands):
            raise InputError("values of two functions that are traced", caller(), "those of one")
        return [o._v if isinstance(o, Value) else self._v.constant(float(o)) for o in operands]

    def __array_function__(self, function, types, arguments, named):
        """numpy.mean and others would take one value for an array of one."""
        raise TypeError(f"numpy.{function.__name__} of a traced value")

    _NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div", "<": "less", "<=": "less_equal", "==": "equal",
              "!=": "not_equal", "&": "logical_and", "|": "logical_or", "unary -": "neg", "unary ~": "logical_not"}

    @classmethod
    def _op(cls, word, *operands):
        if word in (">", ">="):
            return cls._op({">": "<", ">=": "<="}[word], operands[1], operands[0])
        if any(isinstance(o, Vec) for o in operands):
            return NotImplemented
        first = next(o for o in operands if isinstance(o, Value))
        return Value(_core.make_value(cls._NAMES.get(word, word), first._nodes(operands), 0), first._owner)

    def _power(self, n):
        if isinstance(n, int):
            return Value(_core.powi_value(self._v, n), self._owner)
        return self._op("pow", self, n)

    def __repr__(self):
        return "<a value of a function that was traced before>" if getattr(self._owner, "ended", False) else f"<{self._v!r}>"


class Vec(tuple):
    """A few Values that are added and scaled together: a block of a Problem, or a vector field."""

    __slots__ = ()

    def _each(self, o, f):
        if isinstance(o, (tuple, list)):
            if len(o) != len(self):
                raise InputError(f"vectors of {len(self)} and {len(o)} components", caller(), "equal lengths")
            return Vec(f(a, b) for a, b in zip(self, o))
        return Vec(f(a, o) for a in self)

    def __add__(self, o): return self._each(o, lambda a, b: a + b)
    def __radd__(self, o): return self._each(o, lambda a, b: b + a)
    def __sub__(self, o): return self._each(o, lambda a, b: a - b)
    def __rsub__(self, o): return self._each(o, lambda a, b: b - a)
    def __mul__(self, o): return self._each(o, lambda a, b: a * b)
    def __rmul__(self, o): return self._each(o, lambda a, b: b * a)
    def __truediv__(self, o): return self._each(o, lambda a, b: a / b)
    def __neg__(self): return Vec(-a for a in self)
    def __getitem__(self, k):
        found = tuple.__getitem__(self, k)
        return Vec(found) if isinstance(k, slice) else found


def where(condition, yes, no):
    """`yes` if `condition` is true, otherwise `no`; both are evaluated."""
    if isinstance(condition, Value):
        return Value(_core.make_value("select", condition._nodes((condition, yes, no)), 0), condition._owner)
    if isinstance(condition, Val):
        chosen = condition_of(condition)
        if not isinstance(yes, Val) and not isinstance(no, Val):  # two numbers: their own type, as lockstep.var has it
            kind = "f32" if float in (type(yes), type(no)) else "bool" if type(yes) is type(no) is bool else "i32"
            return Val(_core.select(chosen, number(kind, yes), number(kind, no)))
        yes, no = lift((yes, no))
        if yes.type != no.type:
            raise InputError(f"where of {yes.type} and {no.type}", caller(), "one type: lockstep.cast")
        return Val(_core.select(chosen, yes, no))
    chosen = yes if condition else no
    return +chosen if isinstance(chosen, Val) else chosen


def condition_of(value):
    """A traced bool as the core takes it."""
    core = core_of("bool", value)
    if core.type != "bool":
        raise InputError(f"a condition that is a traced {core.type}", caller(), "a comparison, such as x != 0")
    return core


def cast(to, value):
    """Converts to another type. Floats converted to integers are truncated and saturated, NaN gives 0; integers wrap.
    u8 gives a u32 from 0 to 255."""
    mark()
    if _types.dtype(to, "lockstep.cast").name == "u8":
        if not isinstance(value, Val) and not 0 <= value < 256:
            raise InputError(f"{value} as u8", caller(), "0 to 255")
        word = cast(_types.u32, value)
        floats = isinstance(value, Val) and value.dtype.name in ("f32", "f64")
        return WORDS["min"](word, 255) if floats else word & 255
    kind = _types.of_values(to, caller())
    if isinstance(value, Val):
        return Val(_core.convert(value._core_value(), kind.name))
    return Val(number(kind.name, value))


def bitcast(to, value):
    """The same bits as another type of the same size."""
    mark()
    return Val(_core.bitcast(value._core_value(), _types.dtype(to, "lockstep.bitcast").name))


def rounded(x):
    """x after its own rounding: no sum contracts the product into an fma."""
    (core,) = lift((x,))
    if core.type not in ("f32", "f64"):
        raise InputError(f"rounded of a traced {core.type}", caller(), "f32 or f64")
    return Val(_core.rounded(core))


def stop_gradient(x):
    """x, with derivative 0."""
    (core,) = lift((x,))
    if core.type not in ("f32", "f64"):
        raise InputError(f"stop_gradient of a traced {core.type}", caller(), "f32 or f64")
    return Val(_core.stop_gradient(core))


def with_derivative(value, *slopes):
    """`value` with user-defined derivatives: pairs (x, slope) of an operand and the derivative with respect to it.

    For results of iterations, tables and fits, whose automatic derivative is wrong or expensive. The bits are those
    of `value` if all x and slopes are finite. Second derivatives treat slopes as constants.
    """
    result = stop_gradient(value)
    for x, slope in slopes:
        # Minus zero, which leaves every number as it is; the derivative of abs at 0 is 1.
        result = result - abs(-(stop_gradient(slope) * (x - stop_gradient(x))))
    return result


def rounded_product(a, b):
    """a * b, rounded: no later sum contracts it into an fma."""
    return Val(_core.rounded_product(*lift((a, b))))


def uniform(value):
    """Asserts that all lanes of a group have the same value."""
    mark()
    return Val(_core.uniform(value._core_value()))


_GRAPH_OPS = set(_core.value_ops())


def _word(name, arity):
    def function(*operands):
        if len(operands) != arity:
            raise InputError(f"{name} of {len(operands)} operands", caller(), str(arity))
        for o in operands:
            if isinstance(o, Val):
                return Val._op(name, *operands)
        if any(isinstance(o, Value) for o in operands):
            if name == "fma":
                return operands[0] * operands[1] + operands[2]
            if name not in _GRAPH_OPS:
                raise InputError(f"{name} of a residual's value", caller(), "an operation of Value graphs")
            return Value._op(name, *operands)
        host = getattr(math, {"rint": "_none", "abs": "fabs", "asin": "asin"}.get(name, name), None)
        if name in ("min", "max"):
            host = getattr(builtins, name)  # the module's own are words
        if host is None:
            raise InputError(f"{name} of plain numbers", caller(), "a traced value")
        return host(*operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of the kernel language and of Value graphs; docs/numerics.md states its error."
    return function


WORDS = {name: _word(name, arity) for name, arity in _core.words().items() if name.isidentifier()}
globals().update(WORDS)


def round(value):  # noqa: A001
    """Rounds to the nearest integer, halves away from zero."""
    return Val(_core.round(*lift((value,))))


def clamp(value, low, high):
    """min(max(value, low), high); NaN is preserved."""
    return WORDS["min"](WORDS["max"](value, low), high)


def dot(a, b):
    """Sum of products of the components, from first to last."""
    if len(a) != len(b):
        raise InputError(f"dot of vectors of {len(a)} and {len(b)} components", caller(), "equal lengths")
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:]):
        total = total + x * y
    return total


def norm(a):
    """Length of a vector. The derivative at the zero vector is not finite; safe_norm has derivative 0 there."""
    return WORDS["sqrt"](dot(a, a))


def safe_sqrt(a, floor=0.0):
    """sqrt(a) if a > floor, otherwise 0 with derivative 0."""
    return Value(_core.safe_value("safe_sqrt", [a._v], floor), a._owner)


def safe_norm(a, floor=0.0):
    """Length; 0 with derivative 0 if the squared length is at most `floor`."""
    return safe_sqrt(dot(a, a), floor)


def cross(a, b):
    """Of vectors of 3: the product; of 2: its z component."""
    if len(a) != len(b) or len(a) not in (2, 3):
        raise InputError(f"cross of vectors of {len(a)} and {len(b)} components", caller(), "two of 2 or two of 3")
    if len(a) == 2:
        return a[0] * b[1] - a[1] * b[0]
    return Vec((a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]))
