"""Types of lockstep.torch."""
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch as _torch

from . import Array, Device, pde

def pde_loss(loss: pde.Loss, *tensors: _torch.Tensor | None, parameters: Mapping[str, float | _torch.Tensor] | None = ...,
             mask: _torch.Tensor | None = ..., path: str = ..., gradient_scale: float = ...) -> _torch.Tensor: ...
def transport_loss(*, spacing: Sequence[float] = ..., dt: float = ..., boundary: str = ..., order: int = ...,
                   weights: tuple[float, float] = ..., mask: _torch.Tensor | None = ..., path: str = ...,
                   **options: Any) -> Callable[..., _torch.Tensor]: ...
def from_lockstep(array: Array) -> _torch.Tensor: ...
def to_lockstep(tensor: _torch.Tensor, device: str | Device | None = ...) -> Array: ...
