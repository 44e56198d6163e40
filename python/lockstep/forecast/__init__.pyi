"""Types of lockstep.forecast."""
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy.typing as npt

from .. import Array, Device
from .._typing import PathLike
from . import torch as torch

SIGNALS: dict[str, Any]
FEATURES: dict[str, Any]

def read_log(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]: ...
def curve(log: Any, losses: Any = ..., *, column: str | None = ...,
        # options of forecast.curve
        horizon: float | None = None,
        points: int = 50,
        coverage: float = 0.8,
        target: float | None = None,
        least_gain: float | None = None,
        out: PathLike | None = None,
        # end of options
        ) -> dict[str, Any]: ...
def sweep(steps: npt.ArrayLike, losses: Any, *,
        # options of forecast.compute_sweep
        check_every: float = 0.05,
        first_check: float = 0.1,
        # end of options
        ) -> dict[str, Any]: ...
def rollout(model: Any = ..., *, device: str | Device | None = ...,
        # options of forecast.rollout
        hidden: int = 256,
        members: int = 5,
        features: int = 64,
        precision: Literal["f32", "f64"] = "f32",
        seed: int = 0,
        weights: Literal["f32", "bf16", "fp8"] = "f32",
        steps: int = 50,
        gru: Literal["reset-before", "reset-after"] = "reset-before",
        heads: Literal["classic", "two-hot"] = "classic",
        batch: int = 0,
        plot: PathLike | None = None,
        # end of options
        ) -> dict[str, Any]: ...
def train(task: PathLike, *, out: PathLike | None = ..., device: str | Device | None = ...,
          progress: Callable[[int, int], object] | None = ...,
        # options of forecast.train
        data: PathLike | None = None,
        model: str | None = None,
        seeds: int = 1,
        seed: int = 1,
        steps: int | None = None,
        batch: int | None = None,
        evaluate_every: int | None = None,
        rate: float | None = None,
        schedule: Literal["constant", "cosine", "linear"] | None = None,
        target_loss: float | None = None,
        precision: Literal["f32", "f64"] = "f32",
        checkpoint: PathLike | None = None,
        trainer: Literal["plain", "predictive"] = "plain",
        control: Literal["none", "zero", "random", "lr", "ema", "lawa"] = "none",
        moments: Literal["keep", "decay", "reset"] = "keep",
        horizons: Sequence[float] = "10,20,40,80",
        spacing: int = 10,
        warm_up: int = 100,
        correct: int = 10,
        directions: Literal["ridge", "mlp"] = "ridge",
        network_units: int = 8,
        network_samples: int = 512,
        rate_factor: float = 2.0,
        ema_decay: float = 0.99,
        snapshots: int = 5,
        order: int = 2,
        ridge: float = 0.0001,
        max_growth: float = 1.0,
        exploration: float = 0.5,
        growth_of_doubt: float = 1.0,
        moment_decay: float = 0.5,
        norm_every: int = 10,
        max_rollbacks: int = 5,
        control_seed: int = 0,
        # end of options
        ) -> dict[str, Any]: ...
def encode(log: Any, *, column: str | None = ..., device: str | Device | None = ...,
        # options of forecast.compute_encode
        history: int = 1000,
        precision: Literal["f32", "f64"] = "f32",
        # end of options
        ) -> Any: ...

class StateEncoder:
    device: Device
    def __init__(self, history: int = ..., *, precision: str = ..., device: str | Device | None = ...) -> None: ...
    def push(self, signals: Any) -> StateEncoder: ...
    def features(self) -> Array: ...
    def normalised(self) -> Array: ...
