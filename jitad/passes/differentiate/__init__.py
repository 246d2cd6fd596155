"""Differentiation, tape to tape."""
from jitad.passes.differentiate import custom, forwards, solutions

__all__ = ["custom", "forwards", "solutions"]
