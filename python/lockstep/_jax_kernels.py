"""Launches of kernels as functions of JAX arrays."""
import functools

import jax
import jax.numpy as jnp
import numpy as np

from ._array import asarray, zeros
from ._device import Device
from ._errors import InputError, UnsupportedError
from ._gradient import Derivatives


def launch(kernel, extent, *, shapes=None, device="cpu", **values):
    """Runs a kernel on JAX arrays, under `jit`, `grad` (any number of times) and `vmap`, and returns the arrays that
    it writes.

    values: arguments by name, except those that the kernel only writes; arrays that it reads and writes have their
    contents from before the launch. shapes: {name: shape} of written arrays, or {name: jax.ShapeDtypeStruct}; the
    default is the extent, with the type of the annotation or of the first array. The result is a tuple in the order
    of the parameters, or one array; elements that the kernel does not write are 0. Each call copies through the host,
    regardless of the device.

        @jax.jit
        def step(t, a):
            return ls.jax.launch(heat, t.shape, t=t, a=a)
    """
    written = [n for n, h in kernel._parameters if h.written]
    read = [n for n, h in kernel._parameters if h.access != "write"]
    values = {**kernel._defaults, **values}
    for name in values:
        if name not in read:
            raise InputError(f"argument {name}", f"lockstep.jax.launch, kernel {kernel.name}", ", ".join(read))
    for name in read:
        if name not in values:
            raise InputError(f"no argument {name}", f"lockstep.jax.launch, kernel {kernel.name}", ", ".join(read))
    arrays = [_as_array(kernel, n, values[n]) for n in read]
    sizes = (extent,) if isinstance(extent, (int, np.integer)) else tuple(extent)
    results = tuple(_result(kernel, n, (shapes or {}).get(n), sizes, dict(zip(read, arrays))) for n in written)
    found = _function(kernel, sizes, Device(device), tuple(read), tuple(written),
                      tuple((r.shape, r.dtype) for r in results))(*arrays)
    return found[0] if len(found) == 1 else found


def _as_array(kernel, name, value):
    hint = dict(kernel._parameters)[name]
    if hint.access != "number":
        return jnp.asarray(value)
    wanted = np.dtype(hint.numpy)
    if wanted.kind in "iu":
        _refuse_inexact(value, wanted, f"lockstep.jax.launch, kernel {kernel.name}, argument {name}")
    return jnp.asarray(value, wanted)


def _refuse_inexact(value, wanted, where):
    """Rejects what `wanted`, a type of whole numbers, does not hold; of a traced value, its type decides."""
    if isinstance(value, jax.core.Tracer):
        if not np.can_cast(value.dtype, wanted):
            raise InputError(f"a traced {value.dtype}", where, f"{wanted}, such as x.astype(jnp.{wanted})")
        return
    number, limits = np.asarray(value), np.iinfo(wanted)
    if not (np.isfinite(number) and number == np.floor(number) and limits.min <= number <= limits.max):
        raise InputError(f"{value}", where, f"a value that {wanted} holds")


def _result(kernel, name, wanted, extent, arrays):
    hint = dict(kernel._parameters)[name]
    if hint.access == "read_write":
        return jax.ShapeDtypeStruct(arrays[name].shape, arrays[name].dtype)
    if isinstance(wanted, jax.ShapeDtypeStruct):
        return wanted
    first = next((a.dtype for n, a in arrays.items() if dict(kernel._parameters)[n].access != "number"), np.float32)
    return jax.ShapeDtypeStruct(tuple(extent) if wanted is None else tuple(wanted),
                                np.dtype(hint.dtype.numpy) if hint.dtype else first)


def _is_float(dtype):
    return jnp.issubdtype(dtype, jnp.floating)


def _wide(dtype):
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def _on_device(kernel, names, arrays, device):
    """Arguments as a kernel takes them; memory of the host is used in place, but for what the kernel writes."""
    hints, given = dict(kernel._parameters), {}
    for name, value in zip(names, arrays):
        if hints[name].access == "number":
            given[name] = np.asarray(value).item()
        else:
            copy = hints[name].written or device.kind not in ("cpu", "interp")
            given[name] = asarray(np.ascontiguousarray(value), device, copy=copy)
    return given


def _call(work, shapes, *arrays):
    return jax.pure_callback(work, tuple(shapes), *arrays, vmap_method="sequential")


@functools.lru_cache(maxsize=256)
def _function(kernel, extent, device, read, written, results):
    def run(*arrays):
        given = _on_device(kernel, read, arrays, device)
        for name, (shape, dtype) in zip(written, results):
            if name not in given:
                given[name] = zeros(shape, np.dtype(dtype), device)  # where the kernel writes nothing
        kernel._launch(device, list(extent), [given[n] for n, _ in kernel._parameters])
        return tuple(np.array(given[n].numpy()) for n in written)

    @jax.custom_vjp
    def function(*arrays):
        return _call(run, (jax.ShapeDtypeStruct(*r) for r in results), *arrays)

    def backward(arrays, seeds):
        if not all(_is_float(dtype) for _, dtype in results):
            raise UnsupportedError("an output of whole numbers", f"kernel {kernel.name}", "kernels that write floats")
        floats = tuple(n for n, a in zip(read, arrays) if _is_float(a.dtype))
        return _spread(read, floats, _gradients(kernel, extent, device, read, floats, written)(arrays, tuple(seeds)), arrays)

    function.defvjp(lambda *arrays: (function(*arrays), arrays), backward)
    return function


def _spread(read, floats, found, arrays):
    rest = dict(zip(floats, found))
    return tuple(rest[n].astype(a.dtype) if n in rest else None for n, a in zip(read, arrays))


@functools.lru_cache(maxsize=256)
def _gradients(kernel, extent, device, read, floats, outputs):
    """The gradients by `floats` as a function of the arguments and of the seeds of `outputs`, differentiable again."""
    derivatives = Derivatives(kernel, device, extent)

    def shapes_of(arrays):
        return [jax.ShapeDtypeStruct(a.shape, _wide(a.dtype)) for n, a in zip(read, arrays) if n in floats]

    @jax.custom_vjp
    def gradients(arrays, seeds):
        def work(*flat):
            given = {n: asarray(np.ascontiguousarray(s, _wide(s.dtype)), device, copy=True)
                     for n, s in zip(outputs, flat[len(read):])}
            found = derivatives.reverse(_on_device(kernel, read, flat[:len(read)], device), given, floats)
            return tuple(np.array(found[n].numpy()).reshape(np.shape(a)) for n, a in zip(read, flat) if n in floats)

        return _call(work, shapes_of(arrays), *arrays, *seeds)

    def backward(kept, directions):
        arrays, seeds = kept
        forward = derivatives.forward(floats, outputs)
        own, along = dict(zip(read, arrays)), dict(zip(floats, directions))
        along.update((n, jnp.zeros_like(s)) for n, s in zip(outputs, seeds) if n in own and n not in along)
        own.update((n + forward._result, d) for n, d in along.items())
        names = tuple(n for n, h in forward._parameters if h.access != "write")
        arguments = tuple(own[n] for n in names)
        like = {forward._of_root(n): s for n, s in zip(outputs, seeds)}
        written, results = [], []
        for name, hint in forward._parameters:
            if hint.access == "write" or name in own and hint.access == "read_write":
                of = own.get(name, like[forward._of_root(name)])
                narrow = hint.access == "write" and hint.dtype is not None
                written.append(name)
                results.append((of.shape, np.dtype(hint.dtype.numpy) if narrow else of.dtype))
        ends = tuple(n + forward._result for n in outputs)
        found = _function(forward, extent, device, names, tuple(written), tuple(results))(*arguments)
        by_seeds = dict(zip(written, found))
        every = tuple(n for n, a in zip(read, arrays) if _is_float(a.dtype))  # the directions of an outer derivative, too
        by = _gradients(forward, extent, device, names, every, ends)(arguments, seeds)
        return _spread(read, every, by, arrays), tuple(by_seeds[n].astype(s.dtype) for n, s in zip(ends, seeds))

    gradients.defvjp(lambda arrays, seeds: (gradients(arrays, seeds), (arrays, seeds)), backward)
    return gradients
