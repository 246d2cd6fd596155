"""Differentiation, tape to tape."""
from jitad.passes.differentiate import custom

__all__ = ["custom"]
