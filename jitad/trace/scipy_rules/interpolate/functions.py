"""All of scipy.interpolate that has a rule: importing this module fills `CLASSES` and `SUBSTITUTES`."""
from jitad.trace.scipy_rules.interpolate import bsplines, cubic, grids, pieces, scattered, surfaces

__all__ = ["bsplines", "cubic", "grids", "pieces", "scattered", "surfaces"]
