"""Differentiation, tape to tape."""
from jitad.passes.differentiate import custom, solutions

__all__ = ["custom", "solutions"]
