"""The table of primitives: importing this package fills `core.TABLE`."""
from jitad.primitives import core, elementwise, index, linalg, reduce, special, view

__all__ = ["core", "elementwise", "index", "linalg", "reduce", "special", "view"]
