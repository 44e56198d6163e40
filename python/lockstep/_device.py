"""Devices: opened once per name and options, selected by `with`."""
import contextlib
import contextvars
import warnings

from . import _core
from ._errors import FallbackWarning, InputError, text, whole

_open = {}
_current = contextvars.ContextVar("lockstep.device", default=None)


class Device:
    """An open device: "auto", "cpu", "cuda[:N]", "webgpu[:N]" or "interp".

    numerics: "exact" (IEEE 754, bit-identical on CPU and CUDA) or "fast". threads: CPU threads, 0: all. fallback:
    with False, a failing stage raises DeviceError instead of running on the CPU. check: True, or N for every N-th
    launch, also runs launches on the interpreter, as lockstep.check() does for all devices. Equal arguments return
    the same device. `with Device(...):` makes it the default inside the block.
    """

    __slots__ = ("_core", "_info", "_tokens", "_options", "__weakref__")

    def __new__(cls, name="auto", *, numerics="exact", threads=0, fallback=True, check=False):
        if isinstance(name, Device):
            return name
        text(name, "a device", "lockstep.Device", "auto, cpu, cuda[:N], webgpu[:N] or interp")
        text(numerics, "numerics", "lockstep.Device", "exact or fast")
        threads = whole(threads, "threads", "lockstep.Device", 0)
        if not isinstance(fallback, bool):
            raise InputError(f"fallback={fallback!r}", "lockstep.Device", "True or False")
        key = (name, numerics, threads, fallback, every := _every(check))
        found = _open.get(key)
        if found is None:
            core = _core.Device(name, numerics, threads, fallback)
            info = core.info
            exact = (info["name"], numerics, threads, fallback, every)
            found = _open.get(exact)
            if found is None:
                core.check_launches(every)
                found = object.__new__(cls)
                found._core, found._info, found._tokens = core, info, []
                found._options = {"numerics": numerics, "threads": threads, "fallback": fallback, "check": every}
                _open[exact] = found
            _open[key] = found
        return found

    def __reduce__(self):
        return _opened, (self.name, self._options)

    def __deepcopy__(self, memo):
        return self  # handles of equal arguments are one device

    @property
    def info(self):
        """Name, kind, description, architecture, multiprocessors and limits."""
        return dict(self._info)

    @property
    def name(self):
        return self._info["name"]

    @property
    def kind(self):
        """"cpu", "cuda", "webgpu" or "interp"."""
        return self._info["kind"]

    @property
    def memory(self):
        """(total, free) bytes."""
        return self._core.memory()

    @property
    def counters(self):
        """Counts since the device was opened: launches, bytes copied, allocated and peak bytes, kernels."""
        return self._core.counters()

    @property
    def stages(self):
        """The stages that applications ran on this device, with seconds, bytes, launches and fallbacks."""
        return self._core.stages()

    def supports(self, kernel, *args, extent=None):
        """(True, "") or (False, reason)."""
        return self._core.supports(kernel.trace(*args, extent=extent))

    def record(self, work):
        """Records the launches of `work()` on this device in a Graph without running them. Arguments are arrays of
        lockstep, or host memory.
        """
        if not callable(work):
            raise InputError(f"work {work!r}", "lockstep.Device.record", "a function without arguments")
        with self:
            return Graph(self, self._core.record(work))

    def synchronize(self):
        """Waits until all work of this device is complete."""
        self._core.synchronize()

    def __enter__(self):
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *_):
        _current.reset(self._tokens.pop())

    def __repr__(self):
        return f"lockstep.Device({self.name!r})"


def _opened(name, options):
    return Device(name, **options)


def _every(check):
    if not isinstance(check, int) or not 0 <= check < 2**31:
        raise InputError(f"check={check!r}", "lockstep.check", "True, False or N, for every N-th launch")
    return int(check)


@contextlib.contextmanager
def check(every=1):
    """Inside the block, every N-th launch of all devices also runs on the interpreter, on copies of its inputs.

    Out-of-bounds accesses, races, reads of uninitialised memory, violated uniform() and differing bits raise
    CheckError with the file and line of the kernel. Graphs are checked if a CPU device records and replays them
    inside the block.
    """
    earlier = _core.checked_every()
    _core.check_launches(_every(every))
    try:
        yield
    finally:
        _core.check_launches(earlier)


class Graph:
    """Launches recorded by Device.record, which replay at low cost. Keeps their memory alive."""

    __slots__ = ("device", "_core")

    def __init__(self, device, core):
        self.device, self._core = device, core

    def replay(self, **numbers):
        """Replays the launches, with new values for numbers passed by lockstep.per_replay; a value persists until it is set
        again."""
        self.device._core.replay(self._core, numbers)

    def __repr__(self):
        return f"<lockstep graph of {self.device.name}>"


def per_replay(name, value):
    """A number of a launch that Graph.replay(name=…) may change. Outside Device.record it is just its value."""
    text(name, "a name", "lockstep.per_replay", "a string")
    if not (hasattr(value, "__index__") or hasattr(value, "__float__")):
        raise InputError(f"the value {value!r}", "lockstep.per_replay", "a number")
    return _core.per_replay(name, value)


def default_device():
    """The device of the innermost `with`, otherwise Device("auto")."""
    return _current.get() or Device("auto")


def chosen(device):
    return default_device() if device is None else Device(device)


def devices():
    """All back ends with their devices, as dictionaries with name, kind, available, reason, limits and memory."""
    return _core.list_devices()


def fallbacks():
    """Stages that fell back to the CPU since the program started, with their counts."""
    counts = {}
    for device in set(_open.values()):
        for stage, count in device._core.fallbacks().items():
            counts[stage] = counts.get(stage, 0) + count
    return counts


def warn_fallbacks(device, stacklevel=3):
    """Turns the fallback lines of a call into warnings."""
    for line in device._core.take_fallbacks():
        warnings.warn(line, FallbackWarning, stacklevel=stacklevel)
