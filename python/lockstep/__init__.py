"""Lockstep: scientific GPU kernels, written once, with bit-identical results on the CPU and CUDA.

This module contains arrays, devices and kernels. The applications are lockstep.urban, pde, solve, flow and forecast.
lockstep.torch and lockstep.jax connect to these frameworks, which they import. docs/python.md is the guide.
"""
import importlib as _importlib

from ._array import Array, asarray, empty, zeros
from ._device import Device, Graph, check, default_device, devices, fallbacks, per_replay
from ._errors import CheckError, DeviceError, Error, FallbackWarning, InputError, UnsupportedError
from ._expr import (WORDS as _WORDS, Vec, bitcast, cast, clamp, cross, dot, norm, round, rounded, rounded_product,
                    safe_norm, safe_sqrt, stop_gradient, uniform, where, with_derivative)
from ._gradient import Gradient, Tangent, grad, tangent
from ._kernel import Kernel, bench, cases, kernel, verify
from ._language import (At, Grid, Group, InOut, Out, barrier, break_, continue_, else_, for_, group_max, group_min,
                        group_sum, if_, local, return_, shared, var, while_)
from ._options import options
from ._records import compare, reproduce
from ._tape import Tape
from ._types import bf16, boolean, f16, f32, f64, i32, i64, u8, u32, u64

globals().update(_WORDS)  # abs, min, max, fma, sqrt, exp, sin …

__version__ = "0.1.0"
_LAZY = ("urban", "pde", "solve", "flow", "forecast", "parallel", "torch", "jax")


def __getattr__(name):
    if name in _LAZY:
        return _importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'lockstep' has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(_LAZY))
