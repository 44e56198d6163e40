"""Buffers of kernels as a checker of types reads them: Grid[lockstep.f32, 3] is a traced f32 with its rank beside."""
from typing import Annotated as Grid, Annotated as InOut, Annotated as Out

__all__ = ["Grid", "InOut", "Out"]
