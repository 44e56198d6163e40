"""Forecasts of training runs. lockstep.forecast.torch holds the predictive trainer for PyTorch, which is imported with it."""
import importlib as _importlib

_LAZY = ("torch",)


def __getattr__(name):
    if name in _LAZY:
        return _importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'lockstep.forecast' has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(_LAZY))
