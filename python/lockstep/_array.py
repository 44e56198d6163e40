"""Arrays on devices, and their exchange with other libraries."""
import sys

from . import _core, _types
from ._device import Device, chosen
from ._errors import InputError, whole
from ._numpy import np

_WHERE = "lockstep.asarray"
_DL_CPU, _DL_CUDA, _DL_CUDA_HOST, _DL_CUDA_MANAGED = 1, 2, 3, 13
_HOST_KINDS = ("cpu", "interp")


class _HostView:
    """The interface through which NumPy accesses the memory of an array, and the owner of that memory."""

    __slots__ = ("__array_interface__", "_keep")

    def __init__(self, array, typestr):
        size = array.dtype.itemsize
        self.__array_interface__ = {
            "version": 3,
            "typestr": typestr,
            "shape": array.shape,
            "strides": tuple(s * size for s in array.strides),
            "data": (array._buffer.native, array.readonly),
        }
        self._keep = array._buffer


class Array:
    """An array of 1 to 4 axes on a device, slowest axis first. The last axis has stride 1.

    Created by `asarray`, `empty` and `zeros`. On the CPU and the interpreter, `numpy()` shares the memory. On CUDA,
    PyTorch, JAX and CuPy share it through DLPack or `__cuda_array_interface__`.
    """

    __slots__ = ("_buffer", "_shape", "_dtype", "_kind", "_tensor", "device", "readonly", "__weakref__")

    def __init__(self, buffer, device, readonly=False, tensor=None):
        self._buffer, self.device, self.readonly = buffer, device, readonly
        self._tensor = tensor  # of torch, whose memory it is
        self._shape = tuple(buffer.shape)
        name = buffer.dtype
        self._dtype = _types.BY_NAME[name]
        self._kind = (device, name, len(self._shape), readonly)  # all that a launch asks of an argument

    def __reduce__(self):
        """Pickles the elements through the host, for a device of the same name; the copy is writable."""
        return _restored, (self._dtype.name, self._shape, self._bytes(), self.device)

    def __copy__(self):
        return _restored(*self.__reduce__()[1])

    def __deepcopy__(self, memo):
        return self.__copy__()

    def _bytes(self):
        host = np.empty(self._shape, self._dtype.numpy)
        if self.size:
            source = self if self._buffer.contiguous else asarray(self, self.device, copy=True)
            source.device._core.read(source._buffer, host.ctypes.data, host.nbytes)
        return host.tobytes()

    def _note_write(self):
        """Notifies torch's autograd that its tensor's memory changes, as an operation in place would."""
        if self._tensor is not None:
            self._tensor.detach().as_strided((0,), (1,)).zero_()

    @property
    def shape(self):
        return self._shape

    @property
    def dtype(self):
        return self._dtype

    @property
    def strides(self):
        """Strides in elements."""
        return tuple(self._buffer.strides)

    @property
    def ndim(self):
        return len(self._shape)

    @property
    def size(self):
        return int(np.prod(self._shape, dtype=np.int64))

    @property
    def nbytes(self):
        return self._buffer.bytes

    def __len__(self):
        return self._shape[0]

    def __repr__(self):
        return f"lockstep.Array(shape={self.shape}, dtype={self.dtype.name}, device={self.device.name!r})"

    def numpy(self):
        """The elements as a NumPy array: the same memory on the CPU and the interpreter, a copy elsewhere.

        bf16 is returned as ml_dtypes.bfloat16 if that is installed, otherwise as a copy in float32.
        """
        host = self.device.kind in _HOST_KINDS
        if self.size == 0:
            found = np.empty(self._shape, self._dtype.numpy)
        elif host:
            found = np.asarray(_HostView(self, self._dtype.numpy.str))
        else:
            found = np.empty(self._shape, self._dtype.numpy)
            self.device._core.read(self._buffer, found.ctypes.data, found.nbytes)
        if self._dtype.name != "bf16":
            return found
        try:
            import ml_dtypes
        except ImportError:
            return (found.astype(np.uint32) << 16).view(np.float32)
        return found.view(ml_dtypes.bfloat16)

    def __array__(self, dtype=None, copy=None):
        if copy is False and self.device.kind not in _HOST_KINDS:
            raise InputError(f"memory of {self.device.name} as NumPy's without a copy", "lockstep.Array", "copy=None")
        found = self.numpy()
        if dtype is not None and found.dtype != dtype:
            found = found.astype(dtype)
        elif copy:
            found = found.copy()
        return found

    def __dlpack_device__(self):
        if self.device.kind in _HOST_KINDS:
            return (_DL_CPU, 0)
        if self.device.kind == "cuda":
            return (_DL_CUDA, int(self.device.name.partition(":")[2] or 0))
        raise BufferError(f"memory of {self.device.name} is not reachable by DLPack; numpy() copies it")

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        where = self.__dlpack_device__()
        if self.readonly:
            raise BufferError("a read-only array has no DLPack capsule; numpy() shows it")
        if copy:
            raise BufferError("copy=True is not done here; lockstep.asarray(x, copy=True) first")
        if where[0] == _DL_CUDA and stream != -1:
            # 1 and None: the legacy default stream, whose handle is 0.
            self.device._core.end_before(0 if stream in (None, 1) else int(stream))
        return _core.to_dlpack(self._buffer, *where)

    @property
    def __cuda_array_interface__(self):
        if self.device.kind != "cuda":
            raise AttributeError(f"an array on {self.device.name} has no __cuda_array_interface__")
        if self._dtype.name == "bf16":
            raise AttributeError("__cuda_array_interface__ has no bf16; DLPack has")
        self.device._core.end_before(0)
        size = self._dtype.itemsize
        return {
            "version": 3,
            "typestr": self._dtype.numpy.str,
            "shape": self._shape,
            "strides": tuple(s * size for s in self.strides),
            "data": (self._buffer.native, self.readonly),
            "stream": 1,
        }

    def copy(self):
        """A copy on the same device."""
        out = empty(self._shape, self._dtype, self.device)
        if self._buffer.contiguous:
            self.device._core.copy(self._buffer, out._buffer)
        else:
            host = np.ascontiguousarray(self.numpy())
            self.device._core.write(out._buffer, host.ctypes.data, host.nbytes)
        return out

    def to(self, device):
        """A copy on another device, through the host."""
        device = Device(device)
        return self if device is self.device else asarray(self.numpy(), device, copy=True)


def empty(shape, dtype=_types.f32, device=None):
    """An uninitialised array. Raises DeviceError if memory is insufficient."""
    device = chosen(device)
    sizes = (shape,) if hasattr(shape, "__index__") else shape
    if isinstance(sizes, (str, bytes)) or not hasattr(sizes, "__iter__"):
        raise InputError(f"shape {shape!r}", "lockstep.empty", "whole numbers, slowest axis first")
    sizes = [whole(n, "an axis of", "lockstep.empty", 0, 2**63 - 1) for n in sizes]
    return Array(device._core.allocate(_types.dtype(dtype, "lockstep.empty").name, sizes), device)


def zeros(shape, dtype=_types.f32, device=None):
    """An array of zeros."""
    out = empty(shape, dtype, device)
    out.device._core.clear(out._buffer)
    return out


class _Memory:
    """Memory of another library: its address and its layout."""

    __slots__ = ("address", "dtype", "shape", "strides", "device", "readonly", "owner", "stream")

    def __init__(self, address, dtype, shape, strides, device, readonly, owner, stream=None):
        self.address, self.dtype, self.shape, self.strides = address, dtype, tuple(shape), strides
        self.device, self.readonly, self.owner, self.stream = device, readonly, owner, stream


def _refuse_masked(x, name):
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise InputError("an array with masked elements", name, "x.filled(value), or x.data and x.mask")


def _from_numpy(x, name):
    kind = _types.dtype(x.dtype, name)
    _refuse_masked(x, name)
    address, readonly = x.__array_interface__["data"]
    strides = None
    if not x.flags.c_contiguous:
        if any(s % x.itemsize for s in x.strides):
            raise InputError(f"strides {x.strides} in bytes", name, f"multiples of {x.itemsize} (copy=True)")
        strides = tuple(s // x.itemsize for s in x.strides)
    return _Memory(address, kind, x.shape, strides, "cpu", readonly, x)


def _package(x):
    return type(x).__module__.partition(".")[0]


def _framework_stream(x):
    """The stream that a framework works on now, as CUDA's handle; 0, the legacy default stream, where unknown."""
    package = _package(x)
    module = sys.modules.get(package)
    if package == "torch" and module is not None:
        return module.cuda.current_stream(x.device).cuda_stream
    if package == "cupy" and module is not None:
        return module.cuda.get_current_stream().ptr
    return None


def _from_dlpack(x, name):
    kind, number = x.__dlpack_device__()
    kind = int(kind)
    stream = None
    if kind in (_DL_CUDA, _DL_CUDA_MANAGED):
        stream = _framework_stream(x)
        # -1: the producer does not order; begin_after on its own stream does. Else it orders the default stream.
        capsule = x.__dlpack__(stream=-1 if stream is not None else 1)
        stream = stream or 0
    else:
        try:
            capsule = x.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = x.__dlpack__()
    address, dtype, shape, strides, _, _, readonly, owner = _core.from_dlpack(capsule)
    readonly = readonly or _package(x) in ("jax", "jaxlib")  # programs count on the elements of arrays of JAX
    if dtype not in _types.BY_NAME or dtype == "bool":
        raise InputError(f"elements of {dtype}", name, "f32, f64, i32, u32, i64, u64, f16, bf16 or u8")
    if kind in (_DL_CPU, _DL_CUDA_HOST):
        device = "cpu"
    elif kind in (_DL_CUDA, _DL_CUDA_MANAGED):
        device = f"cuda:{number}"
    else:
        raise InputError(f"memory of DLPack device {kind}", name, "memory of the host or of CUDA")
    return _Memory(address, _types.BY_NAME[dtype], shape, strides, device, readonly, owner, stream)


def _from_cuda_interface(x, name):
    view = x.__cuda_array_interface__
    kind = _types.dtype(np.dtype(view["typestr"]), name)
    strides = view.get("strides")
    if strides is not None:
        strides = tuple(s // kind.itemsize for s in strides)
    stream = view.get("stream")
    handle = 0 if stream in (None, 1) else int(stream)
    address, readonly = view["data"]
    device = f"cuda:{_core.cuda_number(address) if address else 0}"
    return _Memory(address, kind, view["shape"], strides, device, readonly, x, handle)


def _memory_of(x, name):
    if getattr(x, "requires_grad", False):
        raise InputError("a tensor that requires grad", name, "x.detach(), or a loss of lockstep.torch")
    if isinstance(x, np.ndarray):
        return _from_numpy(x, name)
    if hasattr(x, "__dlpack__"):
        return _from_dlpack(x, name)
    if hasattr(x, "__cuda_array_interface__"):
        return _from_cuda_interface(x, name)
    if hasattr(x, "__array_interface__"):
        return _from_numpy(np.asarray(x), name)
    return None


def _check_layout(memory, name):
    """Why memory cannot be wrapped as it is laid out, or None."""
    if len(memory.shape) > 4:
        raise InputError(f"{len(memory.shape)} axes", name, "at most 4")
    if memory.strides is None:
        return None
    strides = [s for s, n in zip(memory.strides, memory.shape) if n > 1]
    if any(s < 0 for s in strides):
        return f"strides {tuple(memory.strides)}: negative ones"
    if memory.shape and memory.shape[-1] > 1 and memory.strides[-1] != 1:
        return f"strides {tuple(memory.strides)}: the last axis is not contiguous"
    return None


def asarray(x, device=None, *, copy=None, name=_WHERE):
    """`x` on a device, without a copy if the device can access its memory.

    x: a lockstep.Array, a NumPy array, or an object with DLPack or `__cuda_array_interface__` (PyTorch, JAX, CuPy).
    Work on the array starts after the work that the framework of x has submitted to its current stream. device: None
    selects the device of the memory: the CPU, or that CUDA device. copy: True copies; False and None raise an error
    with the reason if a copy would be necessary. Lists and numbers are copied unless copy is False.
    """
    if isinstance(x, Array):
        wanted = x.device if device is None else Device(device)
        if wanted is x.device:
            return x.copy() if copy else x
        if not copy:
            copied = "copy=True" if name == _WHERE else f"its .to({wanted.name!r})"
            raise InputError(f"an array of {x.device.name}", name, f"one of {wanted.name}, or {copied}")
        return x.to(wanted)
    memory = _memory_of(x, name)
    if memory is None:
        host = np.asarray(x)
        if host.dtype == object or copy is False:
            raise InputError(f"an object of type {type(x).__name__}", name,
                             "an array with DLPack, __cuda_array_interface__ or NumPy's memory")
        if host.dtype == np.float64 and not isinstance(x, np.generic):
            if (np.isfinite(host) & (np.abs(host) > np.finfo(np.float32).max)).any():
                raise InputError("numbers beyond the range of f32", name, "np.asarray(…, dtype=np.float64), or numbers of f32")
            host = host.astype(np.float32)
        if host.dtype == np.int64 and not isinstance(x, np.generic):
            if host.size and not -2**31 <= host.min() <= host.max() < 2**31:
                raise InputError("whole numbers of more than 32 bits", name, "np.asarray(…, dtype=np.int64), or numbers of i32")
            host = host.astype(np.int32)
        return _upload(np.ascontiguousarray(host), chosen(device), name)
    if device is None:
        target = Device("cpu") if memory.device == "cpu" else Device(memory.device)
    else:
        target = Device(device)
    reachable = target.kind in _HOST_KINDS if memory.device == "cpu" else target.name == memory.device
    reason = _check_layout(memory, name)
    if not reachable:
        reason = f"memory of {memory.device}, which {target.name} does not reach"
    if copy or (reason and not memory.shape):
        return _upload(_on_host(x, memory), target, name, memory.dtype)
    if reason:
        copied = "copy=True" if name == _WHERE else f"lockstep.asarray(x, {target.name!r}, copy=True)"
        raise InputError(reason, name, f"{copied}, or memory that kernels can use as it is")
    shape = list(memory.shape) or [1]
    strides = [] if memory.strides is None else list(memory.strides)
    for axis, n in enumerate(shape if strides else []):
        if n == 1:  # the stride of a single element means nothing
            strides[axis] = max(strides[axis], 1)
    buffer = target._core.wrap(memory.dtype.name, shape, memory.address, strides, memory.owner, memory.stream)
    return Array(buffer, target, memory.readonly, x if _package(x) == "torch" else None)


def _on_host(x, memory):
    """The elements as a C-contiguous NumPy array; bf16 as its 16-bit words."""
    if memory.device == "cpu":
        return np.ascontiguousarray(np.asarray(_ForeignView(memory)))
    if hasattr(x, "cpu"):
        host = x.detach().cpu()
        return _on_host(host, _memory_of(host, _WHERE))
    if hasattr(x, "get"):
        return np.ascontiguousarray(x.get())
    return np.ascontiguousarray(np.asarray(x))


def real_numbers(x, name, dtype=None):
    """NumPy's array of x, of a type if given. Rejects what is no number, and what NumPy would convert with a loss: masked
    elements, complex numbers, dates."""
    if isinstance(x, Array):
        x = x.numpy()
    _refuse_masked(x, name)
    try:
        found = np.asarray(x)
        if found.dtype.kind in "cmM":
            raise InputError("complex numbers" if found.dtype.kind == "c" else f"elements of {found.dtype}", name, "real numbers")
        return found if dtype is None else found.astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{type(x).__name__} ({error})", name, "numbers") from None


class _ForeignView:
    """Foreign host memory as NumPy sees it."""

    def __init__(self, memory):
        size = memory.dtype.itemsize
        self.__array_interface__ = {
            "version": 3,
            "typestr": memory.dtype.numpy.str,
            "shape": memory.shape,
            "strides": None if memory.strides is None else tuple(s * size for s in memory.strides),
            "data": (memory.address, True),
        }
        self._keep = memory.owner


def _upload(host, device, name, kind=None):
    kind = kind or _types.dtype(host.dtype, name)
    shape = list(host.shape) or [1]
    if len(shape) > 4:
        raise InputError(f"{len(shape)} axes", name, "at most 4")
    out = Array(device._core.allocate(kind.name, shape), device)
    if host.nbytes:
        device._core.write(out._buffer, host.ctypes.data, host.nbytes)
    return out


def _restored(dtype, shape, content, device):
    kind = _types.BY_NAME[dtype]
    return _upload(np.frombuffer(content, kind.numpy).reshape(shape), device, "lockstep.Array", kind)
