"""The table of primitives: importing this package fills `core.TABLE`."""
from jitad.primitives import core, elementwise, index, linalg, order, reduce, scan, special, special_gamma, view

__all__ = ["core", "elementwise", "index", "linalg", "order", "reduce", "scan", "special", "special_gamma", "view"]
