"""Types of lockstep.flow."""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from . import Array, Device
from ._typing import ArrayLike, PathLike

def initial_field(n: int | Sequence[int], initial: str = ..., seed: int = ..., *,
                  box: float | Sequence[float] | None = ...) -> npt.NDArray[np.float64]: ...

class Simulation:
    device: Device
    members: int
    def __init__(self, n: int | Sequence[int], *, box: float | Sequence[float] | None = ..., members: int = ...,
                 precision: str = ..., device: str | Device | None = ...,
        # options of flow.simulation
        viscosity: float = 0.0001,
        closure: Literal["none", "smagorinsky", "leith", "dynamic-smagorinsky", "dynamic-leith"] = "none",
        constant: float | None = None,
        closure_form: Literal["divergence", "simple"] = "divergence",
        averaging: Literal["global", "local"] = "global",
        advection: Literal["stress", "flux"] = "stress",
        forcing: Literal["none", "kolmogorov", "stochastic"] = "none",
        forcing_wavenumber: float = 4.0,
        forcing_amount: float = 0.0,
        forcing_seed: int = 0,
        drag: float = 0.0,
        beta: float = 0.0,
        hyper_viscosity: float = 0.0,
        hyper_power: int = 4,
        hypo_viscosity: float = 0.0,
        hypo_power: int = 1,
        dealias: Literal["two-thirds", "padded", "filter", "none"] = "two-thirds",
        integrator: Literal["rk2", "ssprk3", "rk4", "ab3", "etdrk4"] = "rk4",
        dt: float = 0.001,
        cfl: float | None = None,
        # end of options
                 ) -> None: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...
    def set_vorticity(self, vorticity: ArrayLike) -> Simulation: ...
    def advance(self, steps: int) -> Simulation: ...
    def set_end(self, time: float) -> Simulation: ...
    @overload
    def vorticity(self, out: None = ...) -> npt.NDArray[Any]: ...
    @overload
    def vorticity(self, out: Array | Literal[True]) -> Array: ...
    def last_sound_vorticity(self) -> npt.NDArray[Any]: ...
    def budget(self) -> list[dict[str, float]]: ...
    def spectra(self) -> list[dict[str, npt.NDArray[np.float64]]]: ...
    @property
    def times(self) -> list[float]: ...
    @property
    def steps(self) -> list[int]: ...
    @property
    def smallest_dt(self) -> list[float]: ...
    @property
    def courant(self) -> list[float]: ...
    def blown_up(self) -> list[tuple[int, int]]: ...
    def state_dict(self) -> dict[str, npt.NDArray[Any]]: ...
    def load_state_dict(self, state: Mapping[str, ArrayLike]) -> None: ...

class Encoded:
    device: str | Device | None
    def __init__(self, core: Any, device: str | Device | None) -> None: ...
    @property
    def frames(self) -> int: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...
    @property
    def max_error(self) -> float | None: ...
    def latents(self, *, device: str | Device | None = ...) -> npt.NDArray[np.float32]: ...
    def decode(self, *, decoder: str = ..., device: str | Device | None = ...) -> npt.NDArray[np.float32]: ...
    def write(self, path: PathLike) -> int: ...

def read(path: PathLike, *, device: str | Device | None = ...) -> Encoded: ...
@overload
def encode(fields: PathLike, out: PathLike, *, max_error: float | None = ..., time: None = ..., box: None = ...,
           device: str | Device | None = ...,
        # options of flow.encode
        codec: Literal["classic", "v2"] = "v2",
        share: float = 0.99,
        cut: float | None = None,
        low: float = 8.0,
        middle: float = 12.0,
        threshold: float = 0.35,
        box_points: int = 11,
        anchor_count: int = 128,
        anchors: Literal["published", "used"] = "published",
        codec_seed: int = 0,
        # end of options
        ) -> dict[str, Any]: ...
@overload
def encode(fields: ArrayLike, out: None = ..., *, max_error: float | None = ..., time: Sequence[float] | None = ...,
           box: float | Sequence[float] | None = ..., device: str | Device | None = ...,
        # options of flow.encode
        codec: Literal["classic", "v2"] = "v2",
        share: float = 0.99,
        cut: float | None = None,
        low: float = 8.0,
        middle: float = 12.0,
        threshold: float = 0.35,
        box_points: int = 11,
        anchor_count: int = 128,
        anchors: Literal["published", "used"] = "published",
        codec_seed: int = 0,
        # end of options
        ) -> Encoded: ...
@overload
def decode(encoded: Encoded, out: None = ..., *, decoder: str = ..., original: None = ...,
           device: str | Device | None = ...) -> npt.NDArray[np.float32]: ...
@overload
def decode(encoded: PathLike, out: PathLike, *, decoder: str = ..., original: PathLike | None = ...,
           device: str | Device | None = ...) -> dict[str, Any]: ...

class Surrogate:
    def __init__(self, core: Any) -> None: ...
    latent_size: int
    rank: int
    delays: int
    train_frames: int
    basis: npt.NDArray[np.float64]
    step: npt.NDArray[np.float64]
    climatology: npt.NDArray[np.float64]
    last: npt.NDArray[np.float64]
    def eigenvalues(self) -> npt.NDArray[np.complex128]: ...
    def rollout(self, steps: int, start: ArrayLike | None = ..., *, mode: str = ..., precision: str = ...,
                device: str | Device | None = ...) -> npt.NDArray[Any]: ...
    def state_dict(self) -> dict[str, Any]: ...
    @classmethod
    def from_state_dict(cls, arrays: Mapping[str, ArrayLike]) -> Surrogate: ...

@overload
def learn(latents: PathLike, out: PathLike, *, device: str | Device | None = ...,
        # options of flow.learn
        method: Literal["ridge", "dmd"] = "ridge",
        train_share: float = 0.5,
        delays: int = 1,
        vectors: int | None = None,
        vector_share: float = 1.0,
        ridge: float = 0.001,
        rollout: Literal["steps", "doubling"] = "doubling",
        # end of options
        ) -> dict[str, Any]: ...
@overload
def learn(latents: Encoded | ArrayLike, out: None = ..., *, device: str | Device | None = ...,
        # options of flow.learn
        method: Literal["ridge", "dmd"] = "ridge",
        train_share: float = 0.5,
        delays: int = 1,
        vectors: int | None = None,
        vector_share: float = 1.0,
        ridge: float = 0.001,
        rollout: Literal["steps", "doubling"] = "doubling",
        # end of options
        ) -> Surrogate: ...
@overload
def rollout(model: Surrogate, steps: int, out: None = ..., *, start: ArrayLike | None = ...,
            device: str | Device | None = ..., **options: Any) -> npt.NDArray[Any]: ...
@overload
def rollout(model: PathLike, steps: int, out: PathLike, *, start: None = ..., device: str | Device | None = ...,
            **options: Any) -> dict[str, Any]: ...
def run(out: PathLike, *, n: int | Sequence[int] | None = ..., box: float | Sequence[float] | None = ...,
        progress: Callable[[int, int], object] | None = ..., device: str | Device | None = ...,
        # options of flow.run
        viscosity: float = 0.0001,
        closure: Literal["none", "smagorinsky", "leith", "dynamic-smagorinsky", "dynamic-leith"] = "none",
        constant: float | None = None,
        closure_form: Literal["divergence", "simple"] = "divergence",
        averaging: Literal["global", "local"] = "global",
        advection: Literal["stress", "flux"] = "stress",
        forcing: Literal["none", "kolmogorov", "stochastic"] = "none",
        forcing_wavenumber: float = 4.0,
        forcing_amount: float = 0.0,
        drag: float = 0.0,
        beta: float = 0.0,
        hyper_viscosity: float = 0.0,
        hyper_power: int = 4,
        hypo_viscosity: float = 0.0,
        hypo_power: int = 1,
        dealias: Literal["two-thirds", "padded", "filter", "none"] = "two-thirds",
        integrator: Literal["rk2", "ssprk3", "rk4", "ab3", "etdrk4"] = "rk4",
        dt: float = 0.001,
        cfl: float | None = None,
        precision: Literal["f32", "f64"] = "f32",
        members: int = 1,
        initial: PathLike = "mcwilliams",
        seed: int = 0,
        forcing_seed: int | None = None,
        steps: int = 1000,
        time: float | None = None,
        save_every: int | None = None,
        history_every: int | None = None,
        pictures: bool = False,
        video: PathLike | None = None,
        checkpoint: PathLike | None = None,
        format: Literal["nc", "npz"] = "nc",
        # end of options
        ) -> dict[str, Any]: ...
def pipeline(out: PathLike, *, n: int | Sequence[int] | None = ..., box: float | Sequence[float] | None = ...,
             device: str | Device | None = ...,
        # options of flow.pipeline
        viscosity: float = 0.0001,
        closure: Literal["none", "smagorinsky", "leith", "dynamic-smagorinsky", "dynamic-leith"] = "none",
        constant: float | None = None,
        closure_form: Literal["divergence", "simple"] = "divergence",
        averaging: Literal["global", "local"] = "global",
        advection: Literal["stress", "flux"] = "stress",
        forcing: Literal["none", "kolmogorov", "stochastic"] = "none",
        forcing_wavenumber: float = 4.0,
        forcing_amount: float = 0.0,
        drag: float = 0.0,
        beta: float = 0.0,
        hyper_viscosity: float = 0.0,
        hyper_power: int = 4,
        hypo_viscosity: float = 0.0,
        hypo_power: int = 1,
        dealias: Literal["two-thirds", "padded", "filter", "none"] = "two-thirds",
        integrator: Literal["rk2", "ssprk3", "rk4", "ab3", "etdrk4"] = "rk4",
        dt: float = 0.001,
        precision: Literal["f32", "f64"] = "f32",
        initial: PathLike = "mcwilliams",
        seed: int = 0,
        forcing_seed: int | None = None,
        steps: int = 1000,
        pictures: bool = False,
        video: PathLike | None = None,
        stride: int = 10,
        codec: Literal["classic", "v2"] = "v2",
        share: float = 0.99,
        cut: float | None = None,
        low: float = 8.0,
        middle: float = 12.0,
        threshold: float = 0.35,
        box_points: int = 11,
        anchor_count: int = 128,
        anchors: Literal["published", "used"] = "published",
        codec_seed: int = 0,
        max_error: float | None = None,
        decoder: Literal["mean", "stochastic"] = "mean",
        method: Literal["ridge", "dmd"] = "ridge",
        train_share: float = 0.5,
        delays: int = 1,
        vectors: int | None = None,
        vector_share: float = 1.0,
        ridge: float = 0.001,
        rollout: Literal["steps", "doubling"] = "doubling",
        place: Literal["device", "mixed", "cpu"] = "device",
        overlap: Literal["auto", "on", "off"] = "auto",
        sizes: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        precisions: Sequence[Literal["f32", "f64"]] | None = None,
        places: Sequence[Literal["device", "mixed", "cpu"]] | None = None,
        log_metrics: PathLike | None = None,
        # end of options
        ) -> dict[str, Any]: ...
def compare(a: PathLike, b: PathLike) -> dict[str, Any]: ...
