"""Forecasts of training runs: learning curves, rollouts of recurrent ensembles, state features, training.

    found = forecast.curve(steps, losses, horizon=20_000)
    found["prediction"][-1], found["advice"]

lockstep.forecast.torch contains the predictive trainer for PyTorch and imports PyTorch. Methods: docs/forecast.md.
"""
import importlib as _importlib
import os as _os
from collections.abc import Mapping as _Mapping

import numpy as _np

from .. import _core
from .._array import Array as _Array, real_numbers as _real_numbers
from .._device import chosen as _chosen, warn_fallbacks as _warn_fallbacks
from .._errors import InputError as _InputError, whole as _whole
from .._options import described as _described

_LOSSES = ("loss", "train_loss", "train/loss", "training_loss")


def read_log(path):
    """{column: (steps, values)} of a log in CSV, JSON lines or TensorBoard format. Unusable columns are left out."""
    return _core.forecast_read_log(_os.fsdecode(path))


def _series(values, name):
    """Numbers along one axis."""
    found = _real_numbers(values, f"argument {name}", float)
    if found.ndim != 1:
        raise _InputError(f"shape {found.shape}", f"argument {name}", "numbers along one axis")
    return found


def _logged(name, series):
    """(steps, values) of a column, as a log in a file may have them."""
    if not (isinstance(series, tuple) and len(series) == 2):
        series = (_np.arange(len(series)), series)
    return tuple(_series(part, name) for part in series)


def _column(log, column, where):
    """(steps, values) of a column; the usual name of a loss where none is requested."""
    name = column or next((n for n in _LOSSES if n in log), next(iter(log)) if len(log) == 1 else None)
    if name not in log:
        raise _InputError(f"column {column or 'loss'}", where, "one of " + ", ".join(log))
    return name, log[name]


@_described("forecast.curve")
def curve(log, losses=None, *, column=None, **options):
    """Forecasts the loss of a running training, with bands and advice.

    log: path of a log, or the increasing steps (0 or more) of `losses`. Returns prediction [{step, mean, low, high,
    …}], members, backtest, advice …
    """
    where = "loss"
    if losses is None:
        if not isinstance(log, (str, _os.PathLike)):
            raise _InputError("steps without losses", "lockstep.forecast.curve", "both, or a log's path")
        where = _os.fspath(log)
        name, (log, losses) = _column(read_log(log), column, where)
        where = f"{name} of {where}"
    return _core.forecast_curve(_series(log, "steps"), _series(losses, "losses"), where, options)


@_described("forecast.compute_sweep")
def sweep(steps, losses, **options):
    """Steps saved and loss added by policies that stop runs early, on finished runs with losses (runs, len(steps)):
    one row per policy.
    """
    return _core.forecast_sweep(_series(steps, "steps"), [_series(run, "losses") for run in losses], options)


@_described("forecast.rollout")
def rollout(model=None, *, device=None, **options):
    """Forecasts a loss with an ensemble of recurrent networks; one launch computes all steps.

    model: MODEL.npz, a dictionary of its arrays (W_z W_r W_h (M, D, I), U_… (M, D, D), b_… (M, D), w (D + S),
    features (I) or (B, I) [, h0 (M, D), rb_…, P, P_b, V, V_b]), or None for random weights. Returns trajectory,
    final, sigma, aleatoric, epistemic, entropy, confidence and members.
    """
    device = _chosen(device)
    arrays = {}
    if isinstance(model, dict):
        arrays = {name: _np.ascontiguousarray(_real_numbers(array, f"model, array {name}")) for name, array in model.items()}
    found = _core.forecast_rollout(device._core, arrays, options if isinstance(model, dict) else {**options, "model": model})
    _warn_fallbacks(device)
    return found


@_described("forecast.train")
def train(task, *, out=None, device=None, progress=None, **options):
    """Trains a network: xor, mnist, charlm or a TOML file with a task. out: folder for log.csv, log.jsonl and
    loss.png. progress: called with the completed and the total number of steps. Returns val_loss, accuracy, steps,
    seconds, runs …
    """
    device = _chosen(device)
    found = _core.forecast_train(device._core, {**options, "task": task, "out": out, "progress": progress})
    _warn_fallbacks(device)
    return found


@_described("forecast.compute_encode")
def encode(log, *, column=None, device=None, **options):
    """Computes 64 features of each state of a logged training: path of a log, or {column: (steps, values)} or
    {column: values}.

    Returns step (rows,), features and normalised (rows, 64) in the order of FEATURES, and filled: signals that the
    log lacks, with their replacements.
    """
    if isinstance(log, (str, _os.PathLike)):
        columns = read_log(log)
    elif not isinstance(log, _Mapping):
        raise _InputError(type(log).__name__, "lockstep.forecast.encode, argument log", "a path, or columns by name")
    else:
        columns = {name: _logged(name, series) for name, series in log.items()}
    name, _ = _column(columns, column, "lockstep.forecast.encode")
    device = _chosen(device)
    found = _core.forecast_encode(device._core, {n: (list(s), list(v)) for n, (s, v) in columns.items()}, name, options)
    _warn_fallbacks(device)
    return found


class StateEncoder:
    """Features of a running training, on the device.

        encoder.push({"step": 3, "loss": 0.7, "lr": 1e-3})
        encoder.features()                                   # lockstep.Array (1, 64)
    """

    def __init__(self, history=1000, *, precision="f32", device=None):
        self.device = _chosen(device)
        self._core = _core.StateEncoder(self.device._core, _whole(history, "history", "lockstep.forecast.StateEncoder", 1), precision)

    def push(self, signals):
        """Appends a row: numbers by name of SIGNALS (missing ones are 0), or all of them in order."""
        if isinstance(signals, dict):
            table = [row[0] for row in _core.forecast_signals()]
            unknown = sorted(set(signals) - set(table))
            if unknown:
                raise _InputError(f"signal {unknown[0]}", "StateEncoder.push", ", ".join(table))
            signals = [float(signals.get(name, 0.0)) for name in table]
        self._core.push([float(v) for v in signals])
        self._core.launch()
        return self

    def features(self):
        """(1, 64), in the order of FEATURES, on the device."""
        return _Array(self._core.features, self.device)

    def normalised(self):
        """(1, 64), the features normalised by their running mean and standard deviation, on the device."""
        return _Array(self._core.normalised, self.device)


_TABLES = {"SIGNALS": "forecast_signals", "FEATURES": "forecast_features"}


def __getattr__(name):
    if name == "torch":
        return _importlib.import_module("." + name, __name__)
    if name in _TABLES:
        globals()[name] = {row[0]: row[1] for row in getattr(_core, _TABLES[name])()}
        return globals()[name]
    raise AttributeError(f"module 'lockstep.forecast' has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | {"torch", *_TABLES})
