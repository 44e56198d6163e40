"""Element types: f32, f64, i32, u32, i64, u64, f16, bf16, u8 and bool."""
from ._errors import InputError
from ._numpy import np


class DType:
    """An element type. It equals its NumPy type and its name; bf16 has no NumPy type."""

    __slots__ = ("name", "_numpy", "itemsize")
    access, written = "number", False  # as a parameter of a kernel, like BufferType's

    def __init__(self, name, numpy, itemsize):
        self.name, self._numpy, self.itemsize = name, numpy, itemsize

    @property
    def numpy(self):
        """The NumPy type; uint16 for bf16."""
        return np.dtype(self._numpy)

    def __repr__(self):
        return f"lockstep.{self.name if self.name != 'bool' else 'boolean'}"

    def __eq__(self, other):
        if isinstance(other, DType):
            return self.name == other.name
        if isinstance(other, str):
            return self.name == other
        try:
            return self.name != "bf16" and np.dtype(other) == self.numpy
        except TypeError:
            return False

    def __hash__(self):
        return hash(self.name)


f32 = DType("f32", "float32", 4)
f64 = DType("f64", "float64", 8)
i32 = DType("i32", "int32", 4)
u32 = DType("u32", "uint32", 4)
i64 = DType("i64", "int64", 8)
u64 = DType("u64", "uint64", 8)
f16 = DType("f16", "float16", 2)
bf16 = DType("bf16", "uint16", 2)
u8 = DType("u8", "uint8", 1)
boolean = DType("bool", "bool", 1)

BY_NAME = {t.name: t for t in (f32, f64, i32, u32, i64, u64, f16, bf16, u8, boolean)}
_BY_NUMPY = {t._numpy: t for t in (f32, f64, i32, u32, i64, u64, f16, u8)}


def value_type(dtype):
    """The type of a loaded element: f32 for f16 and bf16, u32 for u8."""
    return {"f16": f32, "bf16": f32, "u8": u32}.get(dtype.name, dtype)


def dtype(of, where="lockstep"):
    """The element type for a name, a NumPy type or a DType."""
    if isinstance(of, DType):
        return of
    if isinstance(of, str) and of in BY_NAME:
        return BY_NAME[of]
    if of is float:
        return f32
    if of is int:
        return i32
    if of is bool:
        return boolean
    try:
        known = np.dtype(of)
    except TypeError:
        known = None
    if known is not None and known.name == "bfloat16":
        return bf16
    if known is not None and known.name in _BY_NUMPY and known.isnative:
        return _BY_NUMPY[known.name]
    raise InputError(f"element type {of}", where, "f32, f64, i32, u32, i64, u64, f16, bf16 or u8 in native byte order")


def of_values(of, where):
    """The type that a name stands for, of numbers, variables and arrays of kernels."""
    found = dtype(of, where)
    if value_type(found) is not found:
        raise InputError(f"a value of {found.name}", where, f"{value_type(found).name}: {found.name} is for elements of buffers")
    return found
