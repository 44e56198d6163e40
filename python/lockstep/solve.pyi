"""Types of lockstep.solve."""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import Device
from ._typing import Expr, PathLike

class BlockSet:
    name: str
    size: int
    def __init__(self, number: int, name: str, size: int, owner: Any = ...) -> None: ...

class TermSet:
    name: str
    data: int
    def __init__(self, number: int, name: str, data: npt.ArrayLike | None, owner: Any = ...) -> None: ...

class Problem:
    def __init__(self, *, _core_problem: Any = ...) -> None: ...
    def add_blocks(self, name: str, values: npt.ArrayLike, manifold: str = ...) -> BlockSet: ...
    def add_terms(self, name: str, residual: Callable[..., Expr | Sequence[Expr]], blocks: Sequence[BlockSet], indices: npt.ArrayLike,
                  data: npt.ArrayLike | None = ..., *, loss: str | Callable[[Expr], Expr] = ..., energy: bool = ...) -> TermSet: ...
    def append_blocks(self, blocks: BlockSet, values: npt.ArrayLike) -> int: ...
    def set_data(self, terms: TermSet, data: npt.ArrayLike, first: int = ...) -> None: ...
    def enable(self, terms: TermSet, instances: npt.ArrayLike | None = ..., enabled: bool = ...) -> None: ...
    def enabled(self, terms: TermSet, instance: int) -> bool: ...
    def weigh(self, terms: TermSet, weights: npt.ArrayLike) -> None: ...
    def remove(self, terms: TermSet) -> None: ...
    def instance_count(self, terms: TermSet) -> int: ...
    def fix(self, blocks: BlockSet, block: int, fixed: bool = ...) -> None: ...
    def fix_coordinates(self, blocks: BlockSet, block: int, coordinates: Sequence[int]) -> None: ...
    def column(self, blocks: BlockSet, block: int) -> int: ...
    def bound(self, blocks: BlockSet, block: int, component: int, lower: float = ..., upper: float = ...) -> None: ...
    def values(self, blocks: BlockSet) -> npt.NDArray[np.float64]: ...
    def set_values(self, blocks: BlockSet, values: npt.ArrayLike) -> None: ...
    @property
    def residual_count(self) -> int: ...
    @property
    def variable_count(self) -> int: ...
    def minimize(self, *, device: str | Device | None = ..., callback: Callable[[dict[str, Any]], bool | None] | None = ...,
        # options of solve.minimize
        method: Literal["lm", "gn", "dogleg", "lbfgs", "newton", "sgd", "adam", "adamw"] = "lm",
        linear: Literal["auto", "dense", "dense-qr", "cholesky", "pcg", "schur-pcg", "dense-schur", "device-cholesky"] = "auto",
        max_iterations: int = 100,
        function_tolerance: float = 1e-09,
        gradient_tolerance: float = 1e-12,
        parameter_tolerance: float = 1e-12,
        precision: Literal["f64", "f32", "mixed"] = "f64",
        backend: Literal["auto", "cpu", "gpu"] = "gpu",
        threshold: int | None = None,
        max_linear_iterations: int = 500,
        initial_damping: float = 0.0001,
        damping: Literal["diag", "identity"] = "diag",
        batch_size: int = 0,
        learning_rate: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        time_limit: float = 0.0,
        initial_radius: float = 10000.0,
        forcing: float = 0.1,
        lbfgs_history: int = 10,
        update_values: bool = False,
        graduation: float = 0.0,
        graduation_iterations: int = 5,
        checkpoint: PathLike | None = None,
        # end of options
        ) -> Summary: ...
    def evaluate(self, *, apply_loss: bool = ..., normal: bool = ..., device: str | Device | None = ...) -> Summary: ...
    def instances(self, *, device: str | Device | None = ...) -> list[dict[str, Any]]: ...
    def covariance(self, blocks: Sequence[tuple[BlockSet, int]], *, free_gauge: bool = ...,
                   device: str | Device | None = ...) -> npt.NDArray[np.float64]: ...
    def marginals(self, blocks: BlockSet, *, free_gauge: bool = ...,
                  device: str | Device | None = ...) -> npt.NDArray[np.float64]: ...

class Summary(dict[str, Any]):
    def __getattr__(self, name: str) -> Any: ...

class Result(Summary): ...

def least_squares(fun: Callable[..., Expr | Sequence[Expr]], x0: npt.ArrayLike, args: Sequence[npt.ArrayLike] = ..., *,
                  kwargs: Mapping[str, Any] | None = ..., jac: str = ..., bounds: Any = ..., method: str = ...,
                  ftol: float | None = ..., xtol: float | None = ..., gtol: float | None = ...,
                  x_scale: str | float | None = ..., loss: str = ..., f_scale: float = ..., max_nfev: int | None = ...,
                  verbose: int = ..., device: str | Device | None = ...,
                  callback: Callable[[dict[str, Any]], bool | None] | None = ..., **unknown: Any) -> Result: ...
def read_g2o(file: PathLike, *, loss: str = ...) -> tuple[Problem, BlockSet, BlockSet | None]: ...
def read_bal(file: PathLike, *, loss: str = ...) -> tuple[Problem, BlockSet, BlockSet]: ...
def read_colmap(folder: PathLike, *,
                loss: str = ...) -> tuple[Problem, BlockSet, BlockSet, list[BlockSet]]: ...
def read_tum(file: PathLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
def write_tum(file: PathLike, seconds: Sequence[float], poses: npt.ArrayLike) -> None: ...
def fit(file: PathLike, *, model: str, y: str, device: str | Device | None = ...,
        callback: Callable[[dict[str, Any]], bool | None] | None = ...,
        # options of solve.fit
        x: Sequence[str] | None = None,
        sigma: str | None = None,
        initial: str | Sequence[Any] | Mapping[str, Any] | None = None,
        bounds: str | Sequence[Any] | Mapping[str, Any] | None = None,
        out: PathLike | None = None,
        picture: PathLike | None = None,
        method: Literal["lm", "gn", "dogleg", "lbfgs", "newton", "sgd", "adam", "adamw"] = "lm",
        linear: Literal["auto", "dense", "dense-qr", "cholesky", "pcg", "schur-pcg", "dense-schur", "device-cholesky"] = "auto",
        max_iterations: int = 100,
        function_tolerance: float = 1e-09,
        gradient_tolerance: float = 1e-12,
        parameter_tolerance: float = 1e-12,
        precision: Literal["f64", "f32", "mixed"] = "f64",
        backend: Literal["auto", "cpu", "gpu"] = "gpu",
        threshold: int | None = None,
        max_linear_iterations: int = 500,
        initial_damping: float = 0.0001,
        damping: Literal["diag", "identity"] = "diag",
        batch_size: int = 0,
        learning_rate: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        time_limit: float = 0.0,
        initial_radius: float = 10000.0,
        forcing: float = 0.1,
        lbfgs_history: int = 10,
        update_values: bool = False,
        graduation: float = 0.0,
        graduation_iterations: int = 5,
        checkpoint: PathLike | None = None,
        loss: str | Sequence[Any] | Mapping[str, Any] = "none",
        plot: PathLike | None = None,
        # end of options
        ) -> Summary: ...
def posegraph(file: PathLike, *, device: str | Device | None = ...,
        callback: Callable[[dict[str, Any]], bool | None] | None = ...,
        # options of solve.posegraph
        start: Literal["file", "tree", "chordal"] = "file",
        out: PathLike | None = None,
        residuals: PathLike | None = None,
        method: Literal["lm", "gn", "dogleg", "lbfgs", "newton", "sgd", "adam", "adamw"] = "lm",
        linear: Literal["auto", "dense", "dense-qr", "cholesky", "pcg", "schur-pcg", "dense-schur", "device-cholesky"] = "auto",
        max_iterations: int = 500,
        function_tolerance: float = 1e-09,
        gradient_tolerance: float = 1e-12,
        parameter_tolerance: float = 1e-12,
        precision: Literal["f64", "f32", "mixed"] = "f64",
        backend: Literal["auto", "cpu", "gpu"] = "gpu",
        threshold: int | None = None,
        max_linear_iterations: int = 500,
        initial_damping: float = 0.0001,
        damping: Literal["diag", "identity"] = "diag",
        batch_size: int = 0,
        learning_rate: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        time_limit: float = 0.0,
        initial_radius: float = 10000.0,
        forcing: float = 0.1,
        lbfgs_history: int = 10,
        update_values: bool = False,
        graduation: float = 0.0,
        graduation_iterations: int = 5,
        checkpoint: PathLike | None = None,
        loss: str | Sequence[Any] | Mapping[str, Any] = "none",
        plot: PathLike | None = None,
        # end of options
        ) -> Summary: ...
def bundle(file: PathLike | None = ..., *, device: str | Device | None = ...,
        callback: Callable[[dict[str, Any]], bool | None] | None = ...,
        # options of solve.bundle
        cameras: int | None = None,
        observations: int | None = None,
        seed: int = 1,
        noise: float = 0.5,
        disturbance: float = 1.0,
        out: PathLike | None = None,
        ply: PathLike | None = None,
        residuals: PathLike | None = None,
        method: Literal["lm", "gn", "dogleg", "lbfgs", "newton", "sgd", "adam", "adamw"] = "lm",
        linear: Literal["auto", "dense", "dense-qr", "cholesky", "pcg", "schur-pcg", "dense-schur", "device-cholesky"] = "auto",
        max_iterations: int = 100,
        function_tolerance: float = 1e-06,
        gradient_tolerance: float = 1e-12,
        parameter_tolerance: float = 1e-12,
        precision: Literal["f64", "f32", "mixed"] = "f64",
        backend: Literal["auto", "cpu", "gpu"] = "gpu",
        threshold: int | None = None,
        max_linear_iterations: int = 500,
        initial_damping: float = 0.0001,
        damping: Literal["diag", "identity"] = "diag",
        batch_size: int = 0,
        learning_rate: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        time_limit: float = 0.0,
        initial_radius: float = 10000.0,
        forcing: float = 0.1,
        lbfgs_history: int = 10,
        update_values: bool = False,
        graduation: float = 0.0,
        graduation_iterations: int = 5,
        checkpoint: PathLike | None = None,
        loss: str | Sequence[Any] | Mapping[str, Any] = "none",
        plot: PathLike | None = None,
        # end of options
        ) -> Summary: ...
def sketch(file: PathLike, *, device: str | Device | None = ...,
        callback: Callable[[dict[str, Any]], bool | None] | None = ...,
        # options of solve.sketch
        out: PathLike | None = None,
        allow_conflicts: bool = False,
        method: Literal["lm", "gn", "dogleg", "lbfgs", "newton", "sgd", "adam", "adamw"] = "lm",
        linear: Literal["auto", "dense", "dense-qr", "cholesky", "pcg", "schur-pcg", "dense-schur", "device-cholesky"] = "auto",
        max_iterations: int = 100,
        function_tolerance: float = 1e-12,
        gradient_tolerance: float = 1e-12,
        parameter_tolerance: float = 1e-12,
        precision: Literal["f64", "f32", "mixed"] = "f64",
        backend: Literal["auto", "cpu", "gpu"] = "gpu",
        threshold: int | None = None,
        max_linear_iterations: int = 500,
        initial_damping: float = 0.0001,
        damping: Literal["diag", "identity"] = "diag",
        batch_size: int = 0,
        learning_rate: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        time_limit: float = 0.0,
        initial_radius: float = 10000.0,
        forcing: float = 0.1,
        lbfgs_history: int = 10,
        update_values: bool = False,
        graduation: float = 0.0,
        graduation_iterations: int = 5,
        checkpoint: PathLike | None = None,
        loss: str | Sequence[Any] | Mapping[str, Any] = "none",
        plot: PathLike | None = None,
        # end of options
        ) -> Summary: ...
def mesh_energies() -> list[str]: ...
def mesh(shape: PathLike | tuple[npt.ArrayLike, npt.ArrayLike], *, energy: str,
         handles: str | Mapping[int, Sequence[float]] | None = ..., device: str | Device | None = ...,
        callback: Callable[[dict[str, Any]], bool | None] | None = ...,
        # options of solve.mesh
        fix: str | Sequence[Any] | Mapping[str, Any] | None = None,
        handles_file: PathLike | None = None,
        attach: float | None = None,
        stiffness: float | None = None,
        bend: float | None = None,
        gravity: float | None = None,
        rest_scale: float | None = None,
        method: Literal["lm", "gn", "dogleg", "lbfgs", "newton", "sgd", "adam", "adamw"] | None = None,
        iterations: int | None = None,
        seed: int | None = None,
        repair: bool = False,
        out: PathLike | None = None,
        picture: PathLike | None = None,
        color: Literal["plain", "displacement", "curvature"] = "plain",
        view: str | Sequence[Any] | Mapping[str, Any] | None = None,
        up: Literal["x", "y", "z"] = "z",
        width: int = 900,
        edges: bool = False,
        smooth: bool = False,
        compare: bool = False,
        linear: Literal["auto", "dense", "dense-qr", "cholesky", "pcg", "schur-pcg", "dense-schur", "device-cholesky"] = "auto",
        max_iterations: int = 100,
        function_tolerance: float = 1e-09,
        gradient_tolerance: float = 1e-12,
        parameter_tolerance: float = 1e-12,
        precision: Literal["f64", "f32", "mixed"] = "f64",
        backend: Literal["auto", "cpu", "gpu"] = "gpu",
        threshold: int | None = None,
        max_linear_iterations: int = 500,
        initial_damping: float = 0.0001,
        damping: Literal["diag", "identity"] = "diag",
        batch_size: int = 0,
        learning_rate: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        time_limit: float = 0.0,
        initial_radius: float = 10000.0,
        forcing: float = 0.1,
        lbfgs_history: int = 10,
        update_values: bool = False,
        graduation: float = 0.0,
        graduation_iterations: int = 5,
        checkpoint: PathLike | None = None,
        loss: str | Sequence[Any] | Mapping[str, Any] = "none",
        plot: PathLike | None = None,
        # end of options
        ) -> Summary: ...
def read_mesh(file: PathLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]: ...
read_obj = read_mesh
