"""Losses of lockstep.pde as functions of JAX arrays, under `jit` and `grad`.

The loss is a custom_vjp whose values come from the engine on the host through `jax.pure_callback`: arrays of an
accelerator are copied to the host and back at each call.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np

from ._errors import InputError


def pde_loss(loss, *arrays, parameters=None, mask=None, device="cpu"):
    """The loss of a lockstep.pde.Loss as a scalar with exact gradients by every array.

    arrays: for each field of the system, in the order in which they were made, its levels -1, 0, +1, of f32 or f64 (shapes
    as lockstep.pde tells). mask: a NumPy array (nz, ny, nx). device: where the engine computes.
    """
    names = list(loss.system.fields)
    if len(arrays) != 3 * len(names):
        raise InputError(f"{len(arrays)} arrays", "lockstep.jax.pde_loss",
                         f"{3 * len(names)}: levels -1, 0, +1 of {', '.join(names)}")
    arrays = tuple(jnp.asarray(a) for a in arrays)
    return _function(loss, tuple(names), _frozen(parameters), mask if mask is None else _Held(mask), device)(*arrays)


class _Held:
    """An array as part of a key: by identity."""

    def __init__(self, value):
        self.value = np.asarray(value)


def _frozen(parameters):
    return tuple(sorted((parameters or {}).items()))


@functools.lru_cache(maxsize=64)
def _function(loss, names, parameters, mask, device):
    given = dict(parameters=dict(parameters), mask=None if mask is None else mask.value, device=device)

    def fields_of(arrays):
        arrays = [np.ascontiguousarray(a) for a in arrays]
        return {name: tuple(arrays[3 * k:3 * k + 3]) for k, name in enumerate(names)}

    def value(*arrays):
        return np.asarray(loss(fields_of(arrays), **given), arrays[0].dtype)

    def value_and_gradients(*arrays):
        found, gradients = loss.value_and_gradients(fields_of(arrays), **given)
        flat = [g for name in names for g in gradients[name]]
        return (np.asarray(found, arrays[0].dtype),
                *[np.zeros_like(a) if g is None else g.numpy().reshape(a.shape) for g, a in zip(flat, arrays)])

    def scalar(arrays):
        return jax.ShapeDtypeStruct((), arrays[0].dtype)

    @jax.custom_vjp
    def function(*arrays):
        return jax.pure_callback(value, scalar(arrays), *arrays)

    def forward(*arrays):
        shapes = (scalar(arrays), *[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays])
        found = jax.pure_callback(value_and_gradients, shapes, *arrays)
        return found[0], found[1:]

    def backward(gradients, seed):
        return tuple(g * seed for g in gradients)

    function.defvjp(forward, backward)
    return function
