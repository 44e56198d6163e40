"""Kernels written in Python: traced once per argument types, launched on any device."""
import copy
import inspect
import operator
import os
import threading
import time

from . import _blocks, _captured, _core, _language, _types
from ._array import Array, asarray, empty
from ._device import Device, chosen
from ._errors import InputError, text
from ._expr import Val
from ._numpy import np


class _Tapes(threading.local):
    """Those that keep the launches of this thread now, the innermost last."""

    def __init__(self):
        self.open = []


tapes = _Tapes()
_NUMBERS = (bool, int, float, _core.PerReplay)


def _extent_of(extent, where):
    sizes = (extent,) if isinstance(extent, (int, np.integer)) else tuple(extent)
    if not 1 <= len(sizes) <= 3:
        raise InputError(f"extent {extent}", where, "1 to 3 axes, slowest first")
    try:
        return [operator.index(s) for s in sizes]
    except TypeError:
        raise InputError(f"extent {extent}", where, "whole numbers") from None


class TracedKernel:
    """One trace of a kernel: for fixed argument types."""

    __slots__ = ("_core", "parameters", "domain", "rank")

    def __init__(self, core, parameters, domain, rank):
        self._core, self.parameters, self.domain, self.rank = core, parameters, domain, rank


class Bound:
    """A kernel with its device and extent: `kernel[device, extent](*arguments)`."""

    __slots__ = ("_kernel", "_device", "_extent")

    def __init__(self, kernel, device, extent):
        self._kernel, self._device, self._extent = kernel, device, extent

    def __call__(self, *arguments, **named):
        if named or len(arguments) != len(self._kernel._parameters):
            arguments = self._kernel._complete(arguments, named)
        if tapes.open:
            return tapes.open[-1]._launch(self._kernel, self._device, self._extent, arguments)
        if self._kernel.differentiable and any(getattr(a, "requires_grad", False) for a in arguments):
            from . import _torch_kernels
            return _torch_kernels.launch(self._kernel, self._device, self._extent, arguments)
        self._kernel._launch(self._device, self._extent, arguments)


class Kernel:
    """A function of the kernel language. Created by `lockstep.kernel`.

    kernel[device, extent](*arguments) launches it; kernel[extent](…) uses the device of the arguments. The extent is
    the number of points (or groups) along each axis, slowest axis first. Arguments are lockstep.Array or arrays of
    other libraries, which are used in place, and numbers. They may be passed by keyword, and numbers may have
    defaults. Numbers and small tables that the function reads from its module are constants of a trace; if they have
    changed, the next launch traces again.
    """

    def __init__(self, function, domain=None, group=None, min_blocks=0, contract=True, differentiable=False):
        self.differentiable = bool(differentiable)
        self._function = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.name = function.__name__
        names = list(inspect.signature(function).parameters.values())
        if not names:
            raise InputError(f"kernel {self.name} without parameters", "lockstep.kernel", "a place first: at or group")
        hints = _annotations(function)
        place = hints.get(names[0].name)
        self._rank = place.rank if isinstance(place, _language._Domain) else None
        kind = place.kind if isinstance(place, _language._Domain) else place
        groups = kind is _language.Group or domain == "groups" or (kind is None and group is not None)
        self._domain = "groups" if groups else "points"
        self._group = (tuple(group) + (1, 1, 1))[:3] if group else (0, 0, 0)
        if self._domain == "groups" and not group:
            raise InputError(f"groups kernel {self.name}", "lockstep.kernel", "group=(lanes along x[, y, z])")
        self._min_blocks, self._contract = min_blocks, contract
        for p in names:
            if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                raise InputError(f"parameter {p}", f"kernel {self.name}", "parameters by name, each with an annotation")
        self._defaults = {p.name: p.default for p in names[1:] if p.default is not p.empty}
        self._parameters = [(p.name, self._parameter(p.name, hints)) for p in names[1:]]
        self._written = [k for k, (_, hint) in enumerate(self._parameters)
                         if hint.written]
        for name, hint in self._parameters:
            if name in self._defaults and isinstance(hint, _language.BufferType):
                raise InputError(f"a default of {name}", f"kernel {self.name}", "defaults of numbers alone")
        self._captured = None  # of the last trace
        self._traces, self._kept = {}, {}
        self._ready = {}  # launches that were checked, by the kinds of their arguments

    def _parameter(self, name, hints):
        if name not in hints:
            raise InputError(f"parameter {name} without an annotation", f"kernel {self.name}",
                             "lockstep.Grid, Out or InOut (with [dtype, rank]), or an element type")
        hint = hints[name]
        if isinstance(hint, _language.BufferType):
            return hint
        return _types.of_values(hint, f"kernel {self.name}, parameter {name}")

    def __getitem__(self, key):
        device = None
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], (Device, str, type(None))):
            device, key = key
        elif isinstance(key, (Device, str)):
            raise InputError("no extent", f"kernel {self.name}", "kernel[device, extent]")
        return Bound(self, None if device is None else Device(device), _extent_of(key, f"kernel {self.name}"))

    # ── tracing ──

    def _types_of(self, arguments):
        """Type and rank of each argument; refuses what does not fit, by the parameter's name."""
        if len(arguments) != len(self._parameters):
            raise InputError(f"{len(arguments)} arguments", f"kernel {self.name}",
                             ", ".join(f"{n}: {t!r}" for n, t in self._parameters))
        found = []
        for (name, hint), value in zip(self._parameters, arguments):
            if not isinstance(hint, _language.BufferType):
                found.append(("scalar", hint.name, 0))
                continue
            kind = hint.dtype.name if hint.dtype else None
            rank = hint.rank
            if isinstance(value, Array):
                if kind not in (None, value.dtype.name) or rank not in (None, value.ndim):
                    raise InputError(f"an array of {value.dtype.name}, rank {value.ndim}",
                                     f"kernel {self.name}, argument {name}", f"{hint!r}")
                kind, rank = value.dtype.name, value.ndim
            if kind is None or rank is None:
                raise InputError(f"{name} of open type", f"kernel {self.name}", "a launch, or arguments, to trace from")
            found.append((hint.access, kind, rank))
        return tuple(found)

    def _complete(self, arguments, named):
        """All arguments in their order, with those by keyword and the defaults."""
        names = [n for n, _ in self._parameters]
        values = dict(zip(names, arguments))
        for name in named:
            if name not in names or name in values:
                raise InputError(f"argument {name}" + (" twice" if name in values else ""), f"kernel {self.name}",
                                 ", ".join(f"{n}: {t!r}" for n, t in self._parameters))
        values = {**self._defaults, **values, **named}
        if len(arguments) > len(names) or len(values) < len(names):
            self._types_of(arguments + tuple(named.values()))
        return tuple(values[n] for n in names)

    def _look_again(self):
        """Forgets launches that were checked where what the function reads of the host has changed."""
        if self._kept is not None and (self._captured is None or self._captured.has_changed()):
            self._captured = _captured.Captured(self._function)
            self._ready.clear()

    def _as_launched(self):
        """This kernel with what the last launch has read of the host, for derivatives that are computed later."""
        if self._kept is None:
            return self
        found = self._kept.get(self._captured.state)
        if found is None:
            found = self._kept[self._captured.state] = copy.copy(self)
            found._kept, found._ready = None, {}
            found.__dict__.pop("_derivatives", None)
        return found

    def _traced(self, rank, kinds):
        if self._rank not in (None, rank):
            raise InputError(f"an extent of rank {rank}", f"kernel {self.name}", f"rank {self._rank}")
        self._look_again()
        key = (rank, kinds, self._captured.state)
        found = self._traces.get(key)
        if found is None:
            found = self._traces[key] = TracedKernel(self._trace(rank, kinds), kinds, self._domain, rank)
        return found

    def _trace(self, rank, kinds):
        code = self._function.__code__

        def body(handles):
            arguments = []
            for handle, (access, kind, axes), (name, _) in zip(handles, kinds, self._parameters):
                if access == "scalar":
                    arguments.append(Val(handle))
                else:
                    arguments.append(_language.TracedGrid(handle, _types.BY_NAME[kind], axes, access, name))
            with _blocks.traced():
                place = _language.Group(rank) if self._domain == "groups" else _language.At(rank)
                result = self._function(place, *arguments)
            if result is not None:
                raise InputError("a kernel that returns a value",
                                 f"kernel {self.name}, {os.path.basename(code.co_filename)}:{code.co_firstlineno}",
                                 "stores into Out or InOut")

        return _core.trace(self.name, self._domain, rank, self._group, self._min_blocks, self._contract,
                           (code.co_filename, code.co_firstlineno), list(kinds), body)

    def trace(self, *arguments, extent=None):
        """The traced kernel for these arguments, which are not needed if annotations contain dtype and rank."""
        if not arguments:
            arguments = [None if isinstance(t, _language.BufferType) else 0 for _, t in self._parameters]
        kinds = self._types_of(arguments)
        rank = self._rank or (len(_extent_of(extent, self.name)) if extent is not None else None)
        if rank is None:
            rank = next((k[2] for k in kinds if k[0] in ("write", "read_write")), 1)
        return self._traced(min(rank, 3), kinds)._core

    def source(self, target="ir", *arguments, extent=None, numerics="exact", arch=""):
        """The generated code: "ir", "llvm", "asm", "cuda" or "wgsl"."""
        text(target, "a target", f"kernel {self.name}", "ir, llvm, asm, cuda or wgsl")
        text(numerics, "numerics", f"kernel {self.name}", "exact or fast")
        return self.trace(*arguments, extent=extent).source(target, numerics == "fast", arch)

    def fingerprint(self, *arguments, extent=None):
        """Hash of the traced IR, 32 hexadecimal digits."""
        return self.trace(*arguments, extent=extent).fingerprint

    # ── launching ──

    def _bind(self, device, arguments):
        """Arrays on one device, in place; numbers as they are."""
        bound = []
        for (name, hint), value in zip(self._parameters, arguments):
            where = f"kernel {self.name}, argument {name}"
            if isinstance(hint, _language.BufferType):
                array = asarray(value, device, copy=False, name=where)
                if device is None:
                    device = array.device
                if hint.written and array.readonly:
                    raise InputError("a read-only array", where, "memory that can be written")
                bound.append(array)
            else:
                if hasattr(value, "item") and getattr(value, "shape", None) == ():
                    value = value.item()
                if not isinstance(value, _NUMBERS):
                    raise InputError(f"{type(value).__name__} {value!r}", where, f"a number for {hint.name}")
                bound.append(value)
        return chosen(device), bound

    def _launch(self, device, extent, arguments):
        kinds, values = [device, len(extent)], []
        for value in arguments:
            if type(value) is Array:
                kinds.append(value._kind)
                values.append(value._buffer)
            else:
                kinds.append(type(value))
                values.append(value)
        kinds = tuple(kinds)
        if self._captured and self._captured.has_changed():
            self._look_again()
        ready = self._ready.get(kinds)
        if ready is None:
            ready = self._checked(device, extent, arguments, kinds)
            if ready is None:
                return
        ready[0](ready[1], extent, values)
        for k in self._written:
            arguments[k]._note_write()

    def _checked(self, device, extent, arguments, kinds):
        """(launch, kernel) of arguments that are arrays and numbers of ours; others are brought in and launched here."""
        if len(arguments) != len(self._parameters):
            self._types_of(arguments)
        device, bound = self._bind(device, arguments)
        traced = self._traced(len(extent), self._types_of(bound))
        types = [type(a) for a in arguments]
        if Array in types and set(types) <= {Array, *_NUMBERS}:
            found = self._ready[kinds] = (device._core.launch, traced._core)
            return found
        device._core.launch(traced._core, extent, [a._buffer if isinstance(a, Array) else a for a in bound])
        for k in self._written:
            bound[k]._note_write()
        return None

    def __repr__(self):
        return f"<lockstep kernel {self.name}({', '.join(f'{n}: {t!r}' for n, t in self._parameters)})>"


def _annotations(function):
    """Annotations as objects, also under `from __future__ import annotations`."""
    hints = dict(function.__annotations__)
    if any(isinstance(h, str) for h in hints.values()):
        scope = dict(function.__globals__)
        scope.update(inspect.getclosurevars(function).nonlocals)
        hints = {n: eval(h, scope) if isinstance(h, str) else h for n, h in hints.items()}  # noqa: S307
    return hints


def kernel(function=None, *, domain=None, group=None, min_blocks=0, contract=True, differentiable=False):
    """Makes a kernel from a function. Its first parameter is the position: `at` (one lane per point) or, with
    group=(lanes…), a Group. The others are annotated: Grid, Out or InOut with [dtype, rank] (without brackets both
    are taken from the arguments), or an element type for a number. contract=False prevents the contraction of
    products into fma. With differentiable=True, launches with PyTorch tensors that require gradients take part in
    torch.autograd.

        @lockstep.kernel
        def heat(at, t: ls.Grid[ls.f32, 3], out: ls.Out[ls.f32, 3], a: ls.f32):
            out[at] = ls.fma(a, t[at.x(+1)] + t[at.x(-1)] - 2 * t[at], t[at])

        heat[device, (64, 64, 64)](now, next, 0.1)
    """
    if function is None:
        return lambda f: Kernel(f, domain, group, min_blocks, contract, differentiable)
    return Kernel(function, domain, group, min_blocks, contract, differentiable)


class Comparison(dict):
    """Differences between the results on two devices, argument by argument; true if all bits are equal (NaN equals
    NaN).
    """

    def __bool__(self):
        return all(row["differing_bits"] == 0 for row in self.values())


def _copies(kernel, device, arguments):
    copies = []
    for (_, hint), value in zip(kernel._parameters, arguments):
        if isinstance(hint, _language.BufferType):
            host = value.numpy() if isinstance(value, Array) else np.asarray(value)
            value = asarray(np.ascontiguousarray(host), device, copy=True)
        copies.append(value)
    return copies


def cases():
    """Names of the cases of verify and bench, as listed by `lockstep verify`."""
    return _core.case_names()


def _verify_cases(prefix, against, sizes, seed, device):
    device = chosen(device)
    against = against or ("interp" if device.kind == "cpu" else "cpu")
    if against not in ("cpu", "interp", "reference"):
        raise InputError(f"against {against!r}", "lockstep.verify", "cpu, interp or reference")
    other = device if against == "reference" else Device(against)
    return CaseRows(_core.verify_cases(device._core, prefix, against, other._core, list(sizes or ()), int(seed)))


class CaseRows(list):
    """Rows of cases; true if at least one ran and all passed."""

    def __bool__(self):
        ran = [row for row in self if not row["skipped"]]
        return bool(ran) and all(row["pass"] for row in ran)


def verify(kernel, arguments=None, against=None, *, extent=None, device=None, sizes=None, seed=1):
    """Runs a kernel on `device` and on `against` (default "cpu") with copies of the same arguments and compares the
    results.

    Returns {argument: {elements, differing_bits, differing_elements, max_abs, rel_l2}}; true if all bits agree. With
    the name or prefix of cases instead of a kernel ("engine.copy", "pde") it returns the rows of `lockstep verify`,
    against "cpu", "interp" or "reference", for the small sizes of the cases or for `sizes`; true if all pass.
    """
    if isinstance(kernel, str):
        return _verify_cases(kernel, against, sizes, seed, device)
    against = against or "cpu"
    device, other = chosen(device), Device(against)
    if extent is None:
        extent = next(np.shape(a) for (_, h), a in zip(kernel._parameters, arguments)
                      if h.written)
    results = []
    for where in (device, other):
        own = _copies(kernel, where, arguments)
        kernel[where, extent](*own)
        results.append([a.numpy().copy() if isinstance(a, Array) else a for a in own])
    rows = Comparison()
    for (name, hint), got, expected in zip(kernel._parameters, *results):
        if hint.written:
            rows[name] = _compare(got, expected)
    return rows


def _compare(got, expected):
    words = np.dtype(f"u{got.dtype.itemsize}")
    both_nan = np.zeros(got.shape, bool)
    if got.dtype.kind == "f":
        both_nan = np.isnan(got) & np.isnan(expected)
    unlike = (got.view(words) != expected.view(words)) & ~both_nan
    bits = np.bitwise_xor(got.view(words), expected.view(words))[unlike]
    a, b = (np.nan_to_num(x.astype(np.float64)) for x in (got, expected))
    norm = float(np.sqrt((b * b).sum()))
    return {
        "elements": int(got.size),
        "differing_bits": sum(int(word).bit_count() for word in bits),
        "differing_elements": int(unlike.sum()),
        "max_abs": float(np.abs(a - b).max(initial=0.0)),
        "rel_l2": float(np.sqrt(((a - b) ** 2).sum()) / norm) if norm else 0.0,
    }


def bench(kernel, arguments=None, *, extent=None, device=None, iterations=0, warmup=0, sizes=None):
    """Device times of a kernel on resident copies of its arguments: median, p95, mean and min in milliseconds, and
    GB/s of the bytes of its arguments, each counted once. With the name or prefix of cases it returns the rows of
    `lockstep bench`, for the sizes of the cases or for `sizes`.
    """
    if isinstance(kernel, str):
        return _core.bench_cases(chosen(device)._core, kernel, list(sizes or ()), int(iterations), int(warmup))
    if extent is None:
        raise InputError("no extent", "lockstep.bench", "extent=(…), slowest axis first")
    device = chosen(device)
    own = _copies(kernel, device, arguments)
    extent = _extent_of(extent, f"kernel {kernel.name}")
    traced = kernel._traced(len(extent), kernel._types_of(own))._core
    core = [a._buffer if isinstance(a, Array) else a for a in own]
    begin, done = time.perf_counter(), 0
    while done < warmup or not warmup and (done < 2 or time.perf_counter() - begin < 0.1):
        device._core.seconds(traced, extent, core, 1)
        done += 1
    times, begin = [], time.perf_counter()
    while len(times) < (iterations or 200):
        times.append(1e3 * device._core.seconds(traced, extent, core, 1))
        if not iterations and len(times) >= 5 and time.perf_counter() - begin > 1:
            break
    import statistics
    times.sort()
    size = sum(a.nbytes for a in own if isinstance(a, Array))
    median = statistics.median(times)
    return {
        "device": device.name, "kernel": kernel.name, "iterations": len(times), "bytes": size,
        "median_ms": median, "p95_ms": times[min(len(times) - 1, int(0.95 * len(times)))],
        "mean_ms": statistics.fmean(times), "min_ms": times[0],
        "gbps": size / median * 1e-6 if median else float("inf"),
    }


__all__ = ["Kernel", "bench", "cases", "empty", "kernel", "verify"]
