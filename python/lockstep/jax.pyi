"""Types of lockstep.jax."""
from collections.abc import Mapping
from typing import Any

import jax as _jax

from . import pde

def pde_loss(loss: pde.Loss, *arrays: Any, parameters: Mapping[str, float | _jax.Array] | None = ..., mask: Any = ...,
             device: str | None = ...) -> _jax.Array: ...
