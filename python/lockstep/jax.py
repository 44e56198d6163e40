"""Losses of lockstep.pde and launches of kernels as functions of JAX arrays, under `jit`, `grad` and `vmap`.

The loss is a custom_vjp that calls the engine through the XLA FFI. A compiled program calls it without Python, on its
own memory, on the CPU or on CUDA (in the order of XLA's stream, without waiting for the device). If `device` is
given, or if this JAX has no `jax.ffi`, the call copies through the host by `jax.pure_callback`.
"""
import functools
import weakref

import jax
import jax.numpy as jnp
import numpy as np

from . import _core, pde
from ._errors import InputError, UnsupportedError
from ._jax_kernels import launch  # noqa: F401

_FFI = getattr(jax, "ffi", None)
_NAME = "lockstep_pde_loss"


@functools.cache
def _register():
    for platform in ("cpu", "CUDA"):
        _FFI.register_ffi_target(_NAME, _core.xla_target(platform), platform=platform)


def pde_loss(loss, *arrays, parameters=None, mask=None, device=None):
    """The loss of a lockstep.pde.Loss as a scalar, with exact gradients with respect to every array.

    arrays: for each field of the system, in the order of creation, its levels -1, 0, +1 (shapes as specified by
    lockstep.pde; None for a level that no residual uses), of f32, f64, f16 or bf16. mask: a NumPy array (nz, ny, nx).
    parameters: numbers, or arrays of one element, which receive gradients; they are read when the program runs, so
    one compiled program serves all values. device: a name ("interp", "webgpu") of the device that computes, through
    the host. The loss is kept as long as the programs that call it. Second derivatives raise an error.
    """
    names = list(loss.system.fields)
    if len(arrays) != 3 * len(names):
        raise InputError(f"{len(arrays)} arrays", "lockstep.jax.pde_loss",
                         f"{3 * len(names)}: levels -1, 0, +1 of {', '.join(names)}")
    present = "".join("0" if a is None else "1" for a in arrays)
    given = tuple(jnp.asarray(a) for a in arrays if a is not None)
    _check(loss, names, present, given)
    made = _compiled if _FFI is not None and device is None else _called_back
    fixed, names, numbers = _numbers_of(parameters, _value_type(given[0].dtype))
    return made(loss, present, fixed, names, None if mask is None else _Held(mask), device)(*given, *numbers)


def _numbers_of(parameters, kind):
    """Parameters that are Python's numbers as (name, value), names of those that are arrays, and one array of these."""
    fixed = {n: v for n, v in (parameters or {}).items() if not isinstance(v, jax.Array)}
    names = tuple(sorted(n for n in (parameters or {}) if n not in fixed))
    for name in names:
        value = parameters[name]
        if value.size != 1 or not jnp.issubdtype(value.dtype, jnp.number) or jnp.iscomplexobj(value):
            raise InputError(f"an array of {value.dtype} and shape {value.shape}", f"parameter {name}", "one number")
    numbers = [jnp.stack([parameters[n].reshape(()).astype(kind) for n in names])] if names else []
    return tuple(sorted(pde.numbers_of(fixed).items())), names, numbers


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


def _once_differentiable(function):
    """The function, whose own derivative is refused by name."""
    wrapped = jax.custom_jvp(function)

    @wrapped.defjvp
    def _(primals, tangents):
        raise UnsupportedError("a second derivative", "lockstep.jax.pde_loss",
                               "first derivatives; products with the Hessian are Loss.hessian_product, those with J and its transpose Loss.jvp and Loss.vjp")

    return wrapped


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

    value_and_gradients = _once_differentiable(value_and_gradients)

    function.defvjp(forward, backward)
    return function


@functools.lru_cache(maxsize=64)
def _compiled(loss, present, parameters, names, mask, _):
    _register()
    fields = [(name, loss.system._core.components(name)) for name in loss.system.fields]
    used = "".join("1" if one else "0" for name in loss.system.fields for one in loss.system._core.used(name))
    held = None if mask is None else np.ascontiguousarray(np.broadcast_to(mask.value, loss.mesh.shape))
    numbers = {}  # a mask has the type of the fields

    def number_of(dtype):
        if dtype not in numbers:
            own = None if held is None else held.astype(np.float64 if dtype == np.float64 else np.float32)
            numbers[dtype] = _core.xla_loss(loss._core, fields, present, used, dict(parameters), list(names), own)
            weakref.finalize(loss, _core.xla_forget, numbers[dtype])
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
def _called_back(loss, present, parameters, numbers, mask, device):
    names = list(loss.system.fields)
    options = dict(mask=None if mask is None else mask.value, device=device or "cpu")

    def given_of(arrays):
        """Fields and options of a call; parameters that are arrays come last."""
        given = [np.ascontiguousarray(a) for a in arrays]
        by_name = dict(parameters, **dict(zip(numbers, given.pop().tolist() if numbers else ())))
        rest = iter(given)
        slots = [next(rest) if one == "1" else None for one in present]
        return {name: tuple(slots[3 * k:3 * k + 3]) for k, name in enumerate(names)}, dict(options, parameters=by_name)

    def value(*arrays):
        fields, given = given_of(arrays)
        return np.asarray(loss(fields, **given), _value_type(arrays[0].dtype))

    def value_and_gradients(*arrays):
        fields, given = given_of(arrays)
        found, gradients = loss.value_and_gradients(fields, **given)
        flat = [g for k, g in enumerate(g for name in names for g in gradients[name]) if present[k] == "1"]
        slopes = loss.number_gradients(fields, **given)[0] if numbers else {}
        return (np.asarray(found, _value_type(arrays[0].dtype)),
                *[np.zeros_like(a) if g is None else g.numpy().reshape(a.shape) for g, a in zip(flat, arrays)],
                *[np.asarray([slopes[n] for n in numbers], a.dtype) for a in arrays[len(flat):]])

    def scalar(arrays):
        return jax.ShapeDtypeStruct((), _value_type(arrays[0].dtype))

    def call(work, shapes, arrays):
        return jax.pure_callback(work, shapes, *arrays, vmap_method="sequential")

    return _with_gradients(
        lambda *arrays: call(value, scalar(arrays), arrays),
        lambda *arrays: call(value_and_gradients,
                             (scalar(arrays), *[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]), arrays))
