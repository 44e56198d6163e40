"""Buffers of kernels for type checkers: Grid[lockstep.f32, 3] is a traced f32 with its rank."""
from typing import Annotated as Grid, Annotated as InOut, Annotated as Out

__all__ = ["Grid", "InOut", "Out"]
