"""The kernel language: positions, buffers, variables and control flow of the kernel that is being traced."""
import operator

from . import _blocks, _core, _types
from ._errors import InputError, whole
from ._expr import Expr, Val, caller, condition_of, core_of, lift, mark, number, trace


def _whole(value, what):
    """A whole number that is known while tracing."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or isinstance(value, Expr):
        raise InputError(f"{what} {value!r}", caller(), "a whole number that is known while tracing")
    value = value.__index__()
    if not -2**31 <= value < 2**31:
        raise InputError(f"{what} {value}", caller(), "a number of 32 bits")
    return value


def _index(value, count=None):
    """A coordinate as the core takes it; of an axis of `count` elements where that is known."""
    if isinstance(value, Val):
        return core_of("i32", value)
    if isinstance(value, bool) or not hasattr(value, "__index__") or isinstance(value, Expr):
        raise InputError(f"a coordinate {value!r}", caller(), "a whole number or a traced i32")
    if value < 0 or count is not None and value >= count:
        raise InputError(f"a coordinate {value}", caller(),
                         f"0 to {count - 1}" if count else "0 or more: negative ones do not count from the end")
    return number("i32", value)


class _NoSequence:
    """Memory that is read by its elements while tracing."""

    __slots__ = ()

    def __iter__(self):
        raise InputError("a Python loop over traced memory", caller(), "`for i in lockstep.for_(begin, end)` and [i]")

    def __contains__(self, _):
        raise InputError("`in` of traced memory", caller(), "a loop that compares")

    def __len__(self):
        raise InputError("len of traced memory", caller(), "size(axis), which is traced")


def _check_trace(handle, what):
    if handle._trace != trace.number:
        raise InputError(f"{what} of another kernel", caller(), "that of the kernel that is being traced")


class Axis(Val):
    """One coordinate of a point. Used as a value it is the coordinate (i32); called with an integer it is the shifted
    point.
    """

    __slots__ = ("_point", "_axis")

    def __init__(self, point, axis):
        self._point, self._axis = point, axis

    def _core_value(self):
        shift = self._point._shifts()[self._axis]
        at = _core.place("coord", self._axis)
        return (Val(at) + shift)._core_value() if shift else at

    def __call__(self, shift):
        offsets = list(self._point._shifts())
        offsets[self._axis] += _whole(shift, "a shift of a point by")
        return Point(offsets)


class Point:
    """A point of the domain plus constant offsets; x is the last, fastest axis."""

    __slots__ = ("_offsets", "_trace")

    def __init__(self, offsets):
        self._offsets, self._trace = tuple(offsets), trace.number

    def _shifts(self):
        """The offsets, in the trace that made the point."""
        _check_trace(self, "a point")
        return self._offsets

    def _axis_at(self, axis, name):
        if axis >= len(self._offsets):
            raise InputError(f"axis {name} of a {len(self._offsets)}-D point", caller(), "x, y, z of a domain that has them")
        return Axis(self, axis)

    @property
    def x(self): return self._axis_at(0, "x")
    @property
    def y(self): return self._axis_at(1, "y")
    @property
    def z(self): return self._axis_at(2, "z")


class At(Point):
    """The lane's own point. As an annotation, At[N] specifies the rank of the domain."""

    __slots__ = ()
    domain = "points"

    def __init__(self, rank):
        super().__init__((0,) * rank)

    def extent(self, axis):
        """Extent of the domain along an axis; axis 0 is x."""
        self._shifts()
        return Val(_core.place("extent", axis))

    def __class_getitem__(cls, rank):
        return _Domain(cls, rank)


class Group:
    """The position of a lane in a groups kernel; the extent is the number of groups. Axis 0 is x. Group[N] as an
    annotation specifies the rank.
    """

    __slots__ = ("_rank", "_trace")
    domain = "groups"

    def __init__(self, rank):
        self._rank, self._trace = rank, trace.number

    def _place(self, what, axis):
        _check_trace(self, "a group")
        return Val(_core.place(what, axis))

    def _sizes(self):
        _check_trace(self, "a group")
        return _core.group_sizes()

    def id(self, axis=0): return self._place("coord", axis)
    def count(self, axis=0): return self._place("extent", axis)
    def local(self, axis=0): return self._place("local", axis)
    def lane(self): return self._place("lane", 0)
    def size(self, axis=0): return self._sizes()[axis]

    def lanes(self):
        x, y, z = self._sizes()
        return x * y * z

    def global_(self, axis=0):
        """The number of the lane along the axis, counted over all groups."""
        return self.id(axis) * self.size(axis) + self.local(axis)

    def __class_getitem__(cls, rank):
        return _Domain(cls, rank)


class _Domain:
    def __init__(self, kind, rank):
        self.kind, self.rank = kind, whole(rank, "rank", "annotation", 1, 3)


class BufferType:
    """Grid, Out or InOut of an annotation: with element type and rank, or open until the launch."""

    def __init__(self, access, dtype=None, rank=None):
        self.access, self.dtype, self.rank = access, dtype, rank

    @property
    def written(self):
        return self.access != "read"

    def __getitem__(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        if not 1 <= len(parts) <= 2:
            raise InputError(f"{self!r} with {len(parts)} parts", "annotation",
                             "an element type and a rank, such as Grid[ls.f32, 3]; rules of boundaries are named where the "
                             "grid is read: t.periodic()[at.x(+1)]")
        kind, rank = (None, *parts) if len(parts) == 1 and isinstance(parts[0], int) else (*parts, None)[:2]
        return BufferType(self.access, None if kind is None else _types.dtype(kind, "annotation"),
                          None if rank is None else whole(rank, "rank", "annotation", 1, 4))

    def __repr__(self):
        name = {"read": "Grid", "write": "Out", "read_write": "InOut"}[self.access]
        return f"{name}[{self.dtype.name if self.dtype else '?'}, {self.rank or '?'}]"


Grid, Out, InOut = BufferType("read"), BufferType("write"), BufferType("read_write")


class TracedGrid(_NoSequence):
    """A buffer parameter while its kernel is traced.

    g[at], g[at.x(+1)]: at a point of the domain. Reads beyond the boundary are clamped, wrapped (`periodic()`), 0
    (`zero()`) or unchecked (`unchecked()`). g[c, at]: leading coordinates and a point. g[i, j, k]: explicit
    coordinates, slowest axis first, which must be inside unless a rule (`clamped()`, `periodic()`, `zero()`) is
    named.
    """

    __slots__ = ("_core", "dtype", "rank", "_access", "_boundary", "_streaming", "_name")

    def __init__(self, core, dtype, rank, access, name, boundary=None, streaming=False):
        self._core, self.dtype, self.rank, self._access = core, dtype, rank, access
        self._name, self._boundary, self._streaming = name, boundary, streaming

    def _with(self, boundary=None, streaming=None):
        return TracedGrid(self._core, self.dtype, self.rank, self._access, self._name, boundary or self._boundary,
                          self._streaming if streaming is None else streaming)

    def clamped(self): return self._with("clamp")
    def periodic(self): return self._with("periodic")
    def zero(self): return self._with("zero")
    def unchecked(self): return self._with("unchecked")

    def streaming(self):
        """Accesses bypass the caches, for data that is used once."""
        return self._with(streaming=True)

    def size(self, axis):
        """Extent of an axis (slowest first), i32."""
        return Val(self._core.size(axis))

    @property
    def shape(self):
        return tuple(self.size(a) for a in range(self.rank))

    def _split(self, key):
        mark()
        key = key if isinstance(key, tuple) else (key,)
        if key and isinstance(key[-1], Point):
            return [_index(k) for k in key[:-1]], list(key[-1]._shifts())
        if self._boundary in (None, "unchecked"):
            return [_index(k) for k in key], None
        return [core_of("i32", k) if isinstance(k, Val) else number("i32", _whole(k, "a coordinate")) for k in key], None

    def __getitem__(self, key):
        if self._access == "write":
            raise InputError(f"a read of {self._name}, which is Out", caller(), "InOut, or Grid")
        lead, offsets = self._split(key)
        if offsets is None:
            return Val(self._core.load(lead, self._boundary or "", self._streaming))
        return Val(self._core.load_point(lead, offsets, self._boundary or "clamp", self._streaming))

    def __setitem__(self, key, value):
        if self._access == "read":
            raise InputError(f"a store into {self._name}, which is Grid", caller(), "Out or InOut")
        if self.dtype.name == "u8" and isinstance(value, int) and not 0 <= value < 256:
            raise InputError(f"{value} stored in {self._name}, of u8", caller(), "0 to 255: traced values are cut to 8 bits")
        core = core_of(_types.value_type(self.dtype).name, value)
        lead, offsets = self._split(key)
        if offsets is None:
            self._core.store(lead, core, self._streaming)
        else:
            self._core.store_point(lead, offsets, core, self._streaming)

    def atomic(self, op, key, value):
        """Atomic operation `op` (add, min, max, or, and, exchange) on i32 and u32; returns the old value."""
        key = key if isinstance(key, tuple) else (key,)
        core = core_of(_types.value_type(self.dtype).name, value)
        return Val(self._core.atomic(op, [_index(k) for k in key], core))

    def atomic_add(self, key, value):
        return self.atomic("add", key, value)

    def unordered_atomic_add(self, key, value):
        """Adds to f32 or f64 in arbitrary order: the last bits of the sum differ from run to run."""
        self.atomic("unordered_add", key, value)


class Var(Val):
    """A mutable variable of one lane, changed by `v.set(x)` or `v += x`. It can be used like any value; +v is a copy of its
    current value."""

    __slots__ = ("_var",)

    def __init__(self, initial, dtype=None):
        if dtype is None and not isinstance(initial, Val):
            dtype = {bool: _types.boolean, int: _types.i32, float: _types.f32}.get(type(initial))
            if dtype is None:
                raise InputError(f"a variable of {type(initial).__name__}", caller(), "a number or a traced value")
        if dtype is not None:
            dtype = _types.of_values(dtype, caller()).name
            if isinstance(initial, Val) and initial.dtype.name != dtype:
                raise InputError(f"a variable of {dtype} that begins as {initial.dtype.name}", caller(), "lockstep.cast")
        self._var, self._scope = _core.Var(core_of(dtype, initial)), trace.scope[-1]

    def _core_value(self):
        return self._var.get()

    def set(self, value):
        _blocks.check_names(self)
        core = core_of(self._var.type, value)
        if core.type != self._var.type:
            raise InputError(f"a traced {core.type} for a variable of {self._var.type}", caller(), "lockstep.cast")
        self._var.set(core)

    def _assign(self, value):
        self.set(value)
        return self


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"):
    setattr(Var, f"__i{_name.rstrip('_')}__",
            lambda self, o, combine=getattr(operator, _name): self._assign(combine(self, o)))


def var(initial, dtype=None):
    """A variable that if_ and loops may change. Numbers become bool, i32 or f32 unless `dtype` specifies another
    type.
    """
    return Var(initial, dtype)


class _Array(_NoSequence):
    def __init__(self, core, dtype):
        self._core, self.dtype = core, dtype

    def __len__(self):
        return self._core.count

    def __getitem__(self, at):
        mark()
        return Val(self._core.load(_index(at, len(self))))

    def __setitem__(self, at, value):
        core = core_of(self.dtype.name, value)
        if core.type != self.dtype.name:
            raise InputError(f"a traced {core.type} stored in an array of {self.dtype.name}", caller(), "lockstep.cast")
        self._core.store(_index(at, len(self)), core)

    def atomic_add(self, at, value):
        """Adds to an element of a shared array of i32 or u32; returns the old value."""
        return Val(self._core.atomic_add(_index(at, len(self)), core_of(self.dtype.name, value)))


def local(dtype, count):
    """An array of one lane; its initial contents are undefined."""
    kind = _types.of_values(dtype, caller())
    mark()
    return _Array(_core.LocalArray(kind.name, _whole(count, "a local array of")), kind)


def shared(dtype, count):
    """An array shared by the lanes of a group; its initial contents are undefined. Groups kernels only."""
    kind = _types.of_values(dtype, caller())
    mark()
    return _Array(_core.SharedArray(kind.name, _whole(count, "a shared array of")), kind)


class if_(_blocks.Block):  # noqa: N801
    """with lockstep.if_(condition): …, optionally followed by `with lockstep.else_(): …`."""

    def __init__(self, condition):
        super().__init__("if_")
        if not isinstance(condition, Expr):
            raise InputError(f"if_({condition!r})", caller(), "a traced condition; Python's own if serves the rest")
        self._condition = condition_of(condition)

    def open(self):
        return _core.open_block()

    def close(self, block):
        trace.last_if = _core.close_if(self._condition, block)


class else_(_blocks.Block):  # noqa: N801
    """The alternative branch of the preceding if_."""

    def __init__(self):
        super().__init__("else_")

    def open(self):
        if trace.last_if is None:
            raise InputError("else_ without if_", caller(), "else_ directly after if_")
        return _core.open_else(trace.last_if)

    def close(self, block):
        _core.close_block(block)
        trace.last_if = None


class for_(_blocks.Statement):  # noqa: N801
    """A traced loop: for i in lockstep.for_(begin, end, step): … traces its body once; i is a traced i32.

    With one argument the loop counts from 0. The bounds are evaluated once. Leave the loop with `break_()`, not with
    Python's break.
    """

    def __init__(self, begin, end=None, step=1):
        super().__init__("for_")
        if end is None:
            begin, end = 0, begin
        self._step = _whole(step, "for_ by a step of")
        if isinstance(begin, Val) or isinstance(end, Val):
            self._first, self._last = lift((begin, end))
        else:
            self._first, self._last = number("i32", begin), number("i32", end)

    def __iter__(self):
        self.begun()
        _blocks.check_for_statement()
        return self._passes()

    def _passes(self):
        mark()
        block = _core.open_for(self._first, self._last, self._step)
        names = _blocks.Names()
        try:
            yield Val(_core.loop_index(self._first))
        except GeneratorExit:  # an error inside, or Python's break: the kernel's trace reports it
            trace.left_open.append((self.word, self.where))
            return
        names.check("for_")
        _core.close_for(self._first, self._last, self._step, block)


class while_(_blocks.Block):  # noqa: N801
    """with lockstep.while_(lambda: condition): … repeats its body while the condition, evaluated before each
    iteration, is true.
    """

    def __init__(self, condition):
        super().__init__("while_")
        if isinstance(condition, Expr) or not callable(condition):
            raise InputError("while_ of a value", caller(), "a function that is asked before every pass: lambda: x < 3")
        self._condition = condition

    def open(self):
        block = _core.open_block()
        asked = self._condition()
        if not isinstance(asked, Expr):
            raise InputError(f"while_ on {asked!r}", caller(), "a traced condition, or a bound of for_")
        stop = ~Val(condition_of(asked))
        inner = _core.open_block()
        _core.effect("break")
        _core.close_if(stop._core_value(), inner)
        return block

    def close(self, block):
        _core.close_loop(block)


def _effect(name, meaning):
    def statement():
        mark()
        _core.effect(name)

    statement.__doc__ = meaning
    return statement


break_ = _effect("break", "Ends the innermost traced loop.")
continue_ = _effect("continue", "Begins the next pass of the innermost traced loop.")
return_ = _effect("return", "Ends the lane.")
barrier = _effect("barrier", "Waits for all lanes of the group; memory written before is seen after.")


def group_sum(value):
    """Sum over the lanes of the group by a fixed tree, returned to all lanes."""
    return Val(_core.reduce("sum", *lift((value,))))


def group_min(value):
    """Minimum over the lanes of the group."""
    return Val(_core.reduce("min", *lift((value,))))


def group_max(value):
    """Maximum over the lanes of the group."""
    return Val(_core.reduce("max", *lift((value,))))
