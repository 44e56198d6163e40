"""Types of lockstep.jax."""
from collections.abc import Mapping, Sequence
from typing import Any

import jax as _jax

from . import Device, Kernel, pde

def pde_loss(loss: pde.Loss, *arrays: Any, parameters: Mapping[str, float | _jax.Array] | None = ..., mask: Any = ...,
             device: str | None = ...) -> _jax.Array: ...

def launch(kernel: Kernel, extent: int | Sequence[int], *, shapes: Mapping[str, Any] | None = ..., device: str | Device = ...,
           **values: Any) -> Any: ...
