"""What a function must return for what is asked of it."""
from __future__ import annotations

from collections.abc import Sequence

from jitad.errors import OutputError
from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.pytree import TreeDef, bare, flatten, unflatten
from jitad.trace.values.pairs import is_packed
from jitad.trace.where import user_line


def computed_at(outputs: Sequence[Value]) -> str:
    where = next((n.where for v in reversed(outputs) if (n := v.node).where), None)
    return f" (last computed at {where})" if where else f" (called at {user_line()})"


def scalar_output(outputs: Sequence[Value], structure: TreeDef, name: str, word: str = "gradient") -> Value:
    """The one real scalar that a function must return for its `word`, the derivative that is asked for.

    Raises `OutputError` for anything else.
    """
    at = computed_at(outputs)
    if len(outputs) != 1 or not bare(structure):
        raise OutputError(f"`{name}` returned {len(outputs)} values in a container{at}; a {word} needs one real "
                          "scalar: return the sum of what you want to differentiate")
    (y,) = outputs
    if is_packed(y):
        raise OutputError(f"`{name}` returned a complex value{at}; a {word} needs one real scalar: return its .real, "
                          ".imag or np.abs, or a sum of such")
    if y.shape != ():
        raise OutputError(f"`{name}` returned an array of shape {y.shape}{at}; a {word} needs one real scalar: "
                          "return its sum (np.sum) or one element")
    if y.dtype.kind == "b":
        raise OutputError(f"`{name}` returned a boolean{at}; a {word} needs a real scalar")
    return cast(y, "float64") if y.dtype.kind in "iu" else y


def pair_of(outputs: Sequence[Value], structure: TreeDef, name: str) -> tuple[TreeDef, TreeDef]:
    """The structures of the two things that a function returns for ``has_aux=True``: what is differentiated, and what
    comes with it.

    Raises `OutputError` for anything else than a pair.
    """
    returned = unflatten(structure, outputs)
    if type(returned) is not tuple or len(returned) != 2:
        raise OutputError(f"`{name}` returned no pair{computed_at(outputs)}; with has_aux=True it must return "
                          "(value, aux): the real scalar to differentiate, and what else is wanted")
    return flatten(returned[0], "")[2], flatten(returned[1], "")[2]
