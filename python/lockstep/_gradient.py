"""Derivatives of kernels by the names of their parameters: reverse mode by `grad`, forward mode by `tangent`."""
from . import _core, _types
from ._array import asarray, empty, zeros
from ._device import chosen
from ._errors import InputError
from ._language import BufferType

_ENDINGS = ("_gradient", "_cotangent", "_tangent")
FLOATS = ("f16", "bf16", "f32", "f64")


def names_of(kernel):
    """The core's names of a kernel's parameters: b0, b1 … for buffers and p0, p1 … for numbers."""
    names, buffers, numbers = {}, 0, 0
    for name, hint in kernel._parameters:
        if hint.access != "number":
            names[name], buffers = f"b{buffers}", buffers + 1
        else:
            names[name], numbers = f"p{numbers}", numbers + 1
    return names


def wide(dtype):
    """The type of derivatives by an element type, which may be open."""
    return dtype and (_types.f64 if dtype.name == "f64" else _types.f32)


class _Bound:
    __slots__ = ("_derivative", "_device", "_extent")

    def __init__(self, derivative, device, extent):
        self._derivative, self._device, self._extent = derivative, device, extent

    def __call__(self, **named):
        return self._derivative._run(self._device, self._extent, named)


class _Derivative:
    """A derivative of a kernel as launches with arguments by name.

    Names are a parameter's and, behind it, what they hold: x, x_tangent, x_gradient, x_tangent_cotangent. What a launch
    writes and was not given is made here and, but for the kernel's own outputs, is the result. The kernel may be a
    Tangent; `_root` is the kernel that was written.
    """

    _what, _result = "derivative", "_gradient"

    def __init__(self, kernel, inputs=None, outputs=None, memory_bytes=0):
        self.kernel, self._inputs, self._outputs = kernel, inputs, outputs
        self._root, self._names = (kernel._root, kernel._own_names) if isinstance(kernel, Tangent) else (kernel, names_of(kernel))
        self._root_names = {name for name, _ in self._root._parameters}
        self._memory_bytes, self._made, self._overwrites = int(memory_bytes), {}, {}
        for what, chosen_names in (("input", inputs), ("output", outputs)):
            for name in chosen_names or ():
                if name not in self._names:
                    raise InputError(f"{what} {name}", f"kernel {kernel.name}", ", ".join(self._names))

    def __getitem__(self, key):
        bound = self._root[key]
        return _Bound(self, bound._device, bound._extent)

    def _of(self, names):
        return [self._names[n] for n in names or ()]

    def _core_of(self, traced):
        found = self._made.get(id(traced))
        if found is None:
            core, names = self._make(traced._core), list(self._names)
            arguments = sorted((self._argument(*p) for p in core.parameters), key=lambda a: names.index(a[1]))
            found = self._made[id(traced)] = (traced, core, arguments)
        return found

    def _argument(self, parameter, dtype, written):
        """What a parameter of the core holds: (it, the kernel's parameter, what of that, its type, whether it is written)."""
        own = parameter
        if own not in self._names.values():
            own = parameter[:parameter.rindex("_")]
        name = next(n for n, o in self._names.items() if o == own)
        return parameter, name, parameter[len(own):], getattr(_types, dtype), written

    def _base(self, name):
        """(parameter, what the argument holds of it)."""
        base, _, ending = name.rpartition("_")
        return (base, "_" + ending) if name not in self._names and base in self._names else (name, "")

    def _of_root(self, name):
        """The parameter of the kernel that was written which an argument belongs to."""
        while name not in self._root_names and "_" in name:
            name = name[:name.rindex("_")]
        return name

    def _kind(self, name, hint, arrays):
        """What the kernel is traced with for a parameter: that of its argument, or of a derivative by it."""
        if hint.access == "number":
            return ("scalar", hint.name, 0)
        array = self._like(name, arrays)
        kind, rank = hint.dtype.name if hint.dtype else None, hint.rank
        if array is not None:
            kind, rank = kind or array.dtype.name, rank or array.ndim
        if kind is None or rank is None:
            raise InputError(f"no argument {name}", self._where, f"{name}, or {name}_cotangent")
        return (hint.access, kind, rank)

    def _like(self, name, arrays):
        """The array of a parameter, else one of a derivative by it, else None."""
        root = self._of_root(name)
        if root in arrays:
            return arrays[root]
        return next((a for n, a in arrays.items() if self._of_root(n) == root), None)

    @property
    def _where(self):
        return f"{self._what} of kernel {self.kernel.name}"

    def _run(self, device, extent, named):
        values, arrays = {**self._root._defaults, **named}, {}
        for name, value in values.items():
            base, ending = self._base(name)
            if base not in self._names or (ending and not ending.startswith(_ENDINGS)):
                raise InputError(f"argument {name}", self._where, ", ".join(self._names))
            if self._names[base][0] == "b" or ending == "_gradient":
                arrays[name] = asarray(value, device, copy=False, name=f"{self._where}, argument {name}")
                device = device or arrays[name].device
        device = chosen(device)
        kinds = tuple(self._kind(n, hint, arrays) for n, hint in self._root._parameters)
        _, core, parameters = self._core_of(self.kernel._traced(len(extent), kinds))
        given, results, fresh = {}, {}, []
        for parameter, name, ending, dtype, written in parameters:
            full = name + ending
            if full in values and full not in arrays:
                given[parameter] = self._number(full, values[full])
                continue
            array = arrays[full] if full in arrays else self._missing(name, ending, dtype, written, arrays, device)
            given[parameter] = 0.0 if array is None else array._buffer
            if written:
                fresh.append(array)
                if ending == self._result:
                    results[full.removesuffix(self._result)] = array
        core.launch(device._core, extent, given, self._memory_bytes)
        for array in fresh:
            array._note_write()
        return results

    def _missing(self, name, ending, dtype, written, arrays, device):
        """Memory for what a launch writes; a tangent that was not given is zero, that of a number None."""
        like, buffer = self._like(name, arrays), self._names[name][0] == "b"
        tangent = ending == self._result != "_gradient"
        if tangent and not buffer:
            return None
        if not (written or tangent) or (like is None and buffer):
            raise InputError(f"no argument {name}{ending}", self._where,
                             "the derivative of the loss by it" if ending else f"{name}, as it was before the kernel ran")
        return (zeros if tangent else empty)(like.shape if buffer else (1,), dtype, device)

    def _number(self, name, value):
        if hasattr(value, "item") and getattr(value, "shape", None) in ((), (1,)):
            value = value.item()
        if not isinstance(value, (bool, int, float)):
            raise InputError(f"{type(value).__name__} {value!r}", f"{self._where}, argument {name}", "a number")
        return value


class Gradient(_Derivative):
    """Gradients of the outputs of a kernel with respect to its inputs. Created by `lockstep.grad`.

    gradient[device, extent](x=…, a=…, y_cotangent=…) takes the arguments of the kernel by name, except outputs that
    it only writes, and NAME_cotangent for each output: the derivative of a loss with respect to it. Arguments that
    the kernel reads and writes have the contents from before the launch. Returns {input: gradient}, arrays of f32 or
    f64; the gradient of a number has one element. NAME_gradient=array provides memory for a result.
    """

    _what = "gradient"

    def _make(self, core):
        return _core.differentiate(core, self._of(self._inputs), self._of(self._outputs))


class Tangent(_Derivative):
    """Derivatives of the outputs of a kernel along a direction. Created by `lockstep.tangent`.

    tangent[device, extent](x=…, a=…, y=…, x_tangent=…) takes the arguments of the kernel by name and NAME_tangent of
    inputs: the direction, 0 by default. It writes what the kernel writes and returns {output: tangent}.

    Higher derivatives: `lockstep.grad` and `lockstep.tangent` also take a Tangent. The tangents of a Tangent are
    named NAME_tangent2, and so on.
    """

    _what = "tangent"

    def __init__(self, kernel, inputs=None, outputs=None):
        self._order = kernel._order + 1 if isinstance(kernel, Tangent) else 1
        self._result = "_tangent" + (str(self._order) if self._order > 1 else "")
        super().__init__(kernel, inputs, outputs)
        self.name, self._forms = f"{kernel.name}.tangent", {}
        self._defaults, self._parameters, self._own_names = kernel._defaults, list(kernel._parameters), dict(self._names)
        for name, hint in kernel._parameters:
            if self._takes_part(name, hint):
                self._parameters.append((name + self._result, BufferType(hint.access, wide(hint.dtype), hint.rank)
                                         if isinstance(hint, BufferType) else hint))
                self._own_names[name + self._result] = self._names[name] + self._result

    def _takes_part(self, name, hint):
        of_floats = (hint.dtype or _types.f32 if isinstance(hint, BufferType) else hint).name in FLOATS
        as_input = hint.access != "write" and (self._inputs is None or name in self._inputs)
        as_output = hint.written and (self._outputs is None or name in self._outputs)
        return of_floats and (as_input or as_output)

    def _make(self, core):
        return _core.tangent(core, self._of(self._inputs), self._of(self._outputs))

    # ── as a kernel ──

    def _traced(self, rank, kinds):
        traced = self.kernel._traced(rank, kinds)
        if id(traced) not in self._forms:
            self._forms[id(traced)] = _Form(self._core_of(traced)[1])
        return self._forms[id(traced)]

    def _launch(self, device, extent, arguments):
        self._run(device, extent, {n: a for (n, _), a in zip(self._parameters, arguments)})

    def _as_launched(self):
        return self


class _Form:
    """A traced tangent as a kernel of the core."""

    __slots__ = ("_core", "_made_of")

    def __init__(self, tangent):
        self._core, self._made_of = tangent.kernels[0], tangent


class Derivatives:
    """Derivatives of the launches of a kernel, for functions of other libraries.

    values: {parameter: argument} but for those that are only written; seeds: {output: cotangent}. empty(name, like) makes
    an array like the argument of a parameter: of one element for a number; without it, one of ours on the device.
    """

    def __init__(self, kernel, device, extent, empty=None, memory_bytes=0):
        self.kernel, self.device, self.extent = kernel, device, tuple(extent)
        self.empty, self.memory_bytes = empty or self._own_empty, memory_bytes

    def _own_empty(self, name, like):
        hint = dict(self.kernel._parameters)[name]
        if hint.access == "number":
            return empty((1,), hint, self.device)
        return empty(like.shape, wide(like.dtype), self.device)

    def _kept(self, kind, *key):
        """One derivative for all launches."""
        made = self.kernel.__dict__.setdefault("_derivatives", {})
        if (kind, *key) not in made:
            made[(kind, *key)] = kind(self.kernel, *key)
        return made[(kind, *key)]

    def reverse(self, values, seeds, by):
        """{name: gradient by it}."""
        results = {n: self.empty(n, values.get(n)) for n in by}
        gradient = self._kept(Gradient, tuple(by), tuple(seeds), self.memory_bytes)
        gradient[self.device, self.extent](**values, **{n + "_gradient": r for n, r in results.items()},
                                           **{n + "_cotangent": s for n, s in seeds.items()})
        return results

    def overwrites(self, name, arrays):
        """Whether a launch leaves nothing of the old contents of an output; `arrays`: the arguments that are arrays."""
        if self.extent != tuple(arrays[name].shape):
            return False
        gradient = self._kept(Gradient, (), (), self.memory_bytes)
        kinds = tuple(gradient._kind(n, hint, arrays) for n, hint in gradient._root._parameters)
        traced = self.kernel._traced(len(self.extent), kinds)
        if (traced, name) not in gradient._overwrites:
            gradient._overwrites[traced, name] = _core.overwrites(traced._core, gradient._names[name])
        return gradient._overwrites[traced, name]

    def forward(self, inputs, outputs):
        """The kernel in forward mode. The gradient of a sum of directions times gradients, weighted by seeds, is the
        gradient of its tangents, weighted by seeds; by the seeds it is those tangents.
        """
        return self._kept(Tangent, tuple(inputs), tuple(outputs))


def grad(kernel, inputs=None, outputs=None, *, memory_bytes=0):
    """Reverse mode of a kernel: a `Gradient`. inputs, outputs: names of parameters; None selects all floats that the
    kernel reads, and all that it writes. memory_bytes limits temporary memory (0: half of the free memory of the
    device).

        slope = ls.grad(heat, inputs=("t", "a"))
        by = slope[device, (64, 64, 64)](t=now, a=0.1, out_cotangent=seed)
        by["t"], by["a"]
    """
    return Gradient(kernel, inputs, outputs, memory_bytes)


def tangent(kernel, inputs=None, outputs=None):
    """Forward mode of a kernel: a `Tangent`. inputs, outputs: as in `grad`.

        along = ls.tangent(heat, inputs=("t",))
        change = along[device, (64, 64, 64)](t=now, a=0.1, out=next, t_tangent=direction)["out"]
    """
    return Tangent(kernel, inputs, outputs)
