"""The table of primitives: importing this package fills `core.TABLE`."""
from jitad.primitives import core, elementwise, index, linalg, reduce, scan, special, view

__all__ = ["core", "elementwise", "index", "linalg", "reduce", "scan", "special", "view"]
