"""Losses of lockstep.pde as functions of JAX arrays, under `jit`, `grad` and `vmap`.

The loss is a custom_vjp whose values come from the engine by the XLA FFI: a compiled program calls it without Python, on
its own memory, on the CPU or on CUDA (in the order of XLA's stream; nothing waits for the device). With `device` given, or
where this JAX has no `jax.ffi`, the call goes through the host by `jax.pure_callback`.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np

from . import _core
from ._errors import InputError

_FFI = getattr(jax, "ffi", None)
_NAME = "lockstep_pde_loss"


@functools.cache
def _register():
    for platform in ("cpu", "CUDA"):
        _FFI.register_ffi_target(_NAME, _core.xla_target(platform), platform=platform)


def pde_loss(loss, *arrays, parameters=None, mask=None, device=None):
    """The loss of a lockstep.pde.Loss as a scalar with exact gradients by every array.

    arrays: for each field of the system, in the order in which they were made, its levels -1, 0, +1 (shapes as
    lockstep.pde tells; None for a level that no residual mentions), of f32, f64, f16 or bf16. mask: a NumPy array
    (nz, ny, nx). device: a name ("interp", "webgpu"): the engine then computes there, through the host.
    """
    names = list(loss.system.fields)
    if len(arrays) != 3 * len(names):
        raise InputError(f"{len(arrays)} arrays", "lockstep.jax.pde_loss",
                         f"{3 * len(names)}: levels -1, 0, +1 of {', '.join(names)}")
    present = "".join("0" if a is None else "1" for a in arrays)
    given = tuple(jnp.asarray(a) for a in arrays if a is not None)
    _check(loss, names, present, given)
    made = _compiled if _FFI is not None and device is None else _called_back
    return made(loss, present, tuple(sorted((parameters or {}).items())), None if mask is None else _Held(mask),
                device)(*given)


def _check(loss, names, present, given):
    kinds = {a.dtype for a in given}
    if len(kinds) != 1 or next(iter(kinds)).name not in ("float32", "float64", "float16", "bfloat16"):
        raise InputError(f"arrays of {', '.join(sorted(k.name for k in kinds))}", "lockstep.jax.pde_loss",
                         "one type: float32, float64, float16 or bfloat16")
    slots = [k for k, one in enumerate(present) if one == "1"]
    for slot, array in zip(slots, given):
        name = names[slot // 3]
        shape = loss._shape(name)
        if array.size != np.prod(shape) or [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
            raise InputError(f"shape {array.shape}", f"field {name}, level {slot % 3 - 1:+d}", f"{shape}")


class _Held:
    """An array as part of a key: by identity."""

    def __init__(self, value):
        self.value = np.asarray(value)


def _value_type(dtype):
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def _with_gradients(value, value_and_gradients):
    """A custom_vjp of a function that gives the loss, and one that gives it with all gradients."""
    @jax.custom_vjp
    def function(*arrays):
        return value(*arrays)

    def forward(*arrays):
        found = value_and_gradients(*arrays)
        return found[0], found[1:]

    def backward(gradients, seed):
        return tuple((g * seed).astype(g.dtype) for g in gradients)

    function.defvjp(forward, backward)
    return function


@functools.lru_cache(maxsize=64)
def _compiled(loss, present, parameters, mask, _):
    _register()
    fields = [(name, loss.system._core.components(name)) for name in loss.system.fields]
    used = "".join("1" if one else "0" for name in loss.system.fields for one in loss.system._core.used(name))
    held = None if mask is None else np.ascontiguousarray(np.broadcast_to(mask.value, loss.mesh.shape))
    numbers = {}  # a mask has the type of the fields

    def number_of(dtype):
        if dtype not in numbers:
            own = None if held is None else held.astype(np.float64 if dtype == np.float64 else np.float32)
            numbers[dtype] = _core.xla_loss(loss._core, fields, present, used, dict(parameters), own)
        return np.int64(numbers[dtype])

    def call(arrays, shapes):
        made = _FFI.ffi_call(_NAME, shapes, vmap_method="broadcast_all")
        return made(*arrays, number=number_of(arrays[0].dtype))

    def scalar(arrays):
        return jax.ShapeDtypeStruct((), _value_type(arrays[0].dtype))

    def value(*arrays):
        return call(arrays, (scalar(arrays),))[0]

    def value_and_gradients(*arrays):
        return call(arrays, (scalar(arrays), *[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]))

    return _with_gradients(value, value_and_gradients)


@functools.lru_cache(maxsize=64)
def _called_back(loss, present, parameters, mask, device):
    names = list(loss.system.fields)
    options = dict(parameters=dict(parameters), mask=None if mask is None else mask.value, device=device or "cpu")

    def fields_of(arrays):
        given = iter(np.ascontiguousarray(a) for a in arrays)
        slots = [next(given) if one == "1" else None for one in present]
        return {name: tuple(slots[3 * k:3 * k + 3]) for k, name in enumerate(names)}

    def value(*arrays):
        return np.asarray(loss(fields_of(arrays), **options), _value_type(arrays[0].dtype))

    def value_and_gradients(*arrays):
        found, gradients = loss.value_and_gradients(fields_of(arrays), **options)
        flat = [g for k, g in enumerate(g for name in names for g in gradients[name]) if present[k] == "1"]
        return (np.asarray(found, _value_type(arrays[0].dtype)),
                *[np.zeros_like(a) if g is None else g.numpy().reshape(a.shape) for g, a in zip(flat, arrays)])

    def scalar(arrays):
        return jax.ShapeDtypeStruct((), _value_type(arrays[0].dtype))

    def call(work, shapes, arrays):
        return jax.pure_callback(work, shapes, *arrays, vmap_method="sequential")

    return _with_gradients(
        lambda *arrays: call(value, scalar(arrays), arrays),
        lambda *arrays: call(value_and_gradients,
                             (scalar(arrays), *[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]), arrays))
