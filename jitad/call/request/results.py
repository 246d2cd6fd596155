"""How the outputs of a kernel become what the caller gets."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jitad.call.request.sparse import Matrix
from jitad.errors import SignatureError
from jitad.tape.builder import Value
from jitad.trace.leaves import is_complex
from jitad.trace.pytree import TreeDef, bare, count_leaves, leaves_of, unflatten
from jitad.trace.values.pairs import form_of, is_packed
from jitad.trace.where import user_line

Form = tuple[str, str]
Frame = tuple[TreeDef | Matrix | None, tuple[Any, ...]] | None


@dataclass(frozen=True)
class Result:
    """A form for each output of the kernel, and the frame that the outputs are put into.

    Forms: ``array`` (as it comes), ``number`` (a Python number), ``scalar`` (a NumPy scalar of `dtype`), ``array0d``,
    ``complex`` and ``complex number`` (packed, of complex `dtype`). A frame is None for one output, or a structure
    (None: a tuple) with a frame for each of its leaves.
    """

    forms: tuple[Form, ...]
    frame: Frame

    @cached_property
    def plain(self) -> bool:
        """Whether a kernel's outputs are the result as they are: one, or a tuple."""
        flat = self.frame is None or (self.frame[0] is None and len(self.forms) > 1
                                      and all(f is None for f in self.frame[1]))
        return flat and all(form in ("array", "number") for form, _ in self.forms)

    @cached_property
    def _complex(self) -> np.dtype[Any] | None:
        """The dtype, if the result is one complex array."""
        return np.dtype(self.forms[0][1]) if self.frame is None and self.forms[0][0] == "complex" else None

    def build(self, outputs: Any) -> Any:
        if self._complex is not None and outputs.flags.c_contiguous:
            return outputs.view(self._complex)[..., 0]
        if len(self.forms) == 1:
            outputs = (outputs,)
        return framed(self.frame, [_formed(x, form, dtype) for x, (form, dtype) in zip(
            outputs, self.forms, strict=True)])


def framed(frame: Frame, leaves: Sequence[Any]) -> Any:
    """The leaves in their frame."""
    return _framed(frame, iter(leaves))


def _framed(frame: Frame, leaves: Iterator[Any]) -> Any:
    if frame is None:
        return next(leaves)
    parts = [_framed(below, leaves) for below in frame[1]]
    if isinstance(frame[0], Matrix):
        return frame[0].build(parts)
    return tuple(parts) if frame[0] is None else unflatten(frame[0], parts)


def frame_of(tree: TreeDef, below: Frame = None) -> Frame:
    """The frame of a structure, with the same frame in the place of each leaf."""
    return below if bare(tree) else (tree, (below,) * count_leaves(tree))


def _formed(x: Any, form: str, dtype: str) -> Any:
    if form == "scalar":
        return np.dtype(dtype).type(x)
    if form.startswith("complex"):
        return _complex(np.ascontiguousarray(x), form, dtype)
    return np.asarray(x, dtype) if form == "array0d" else x


def _complex(x: np.ndarray, form: str, dtype: str) -> Any:
    """The complex array or number that is packed in a real one."""
    z = x.view(dtype)[..., 0]
    return z if form == "complex" else z.item() if dtype == "complex128" else z[()]


def value_form(value: Value, weak: bool = False) -> Form:
    """The form of a value that the function returns; `weak` for a Python number."""
    if is_packed(value):
        return form_of(value)
    if value.ndim:
        return ("array", "")
    return ("number", "") if weak or value.dtype == np.float64 else ("scalar", value.dtype.name)


def gradient_form(leaf: Any) -> Form:
    """The form of a derivative that is like the argument `leaf`."""
    if is_complex(leaf):
        number = not isinstance(leaf, np.ndarray)
        return "complex number" if number else "complex", np.asarray(leaf).dtype.name
    if isinstance(leaf, np.ndarray):
        return ("array", "") if leaf.ndim else ("array0d", leaf.dtype.name)
    return ("number", "") if type(leaf) is float else ("scalar", leaf.dtype.name)


def block_form(shape: tuple[int, ...], leaf: Any) -> Form:
    """The form of a block of a Jacobian or Hessian, of `shape`, with respect to the argument `leaf`."""
    return ("array", "") if shape else gradient_form(leaf)


# --- out= ------------------------------------------------------------------------------------------

def write_out(result: Any, out: Any, position: int | None, name: str) -> Any:
    """Copy the arrays of `result` into those of `out`, which has the derivative's structure: that of the part of
    `result` at `position`, if there is one. Returns the result with `out` in its place; without one, as it is.

    Raises `SignatureError`, before anything is written, for another structure, shape or dtype, and for arrays that are
    read-only.
    """
    derivative = result if position is None else result[position]
    if derivative.__class__ is out.__class__ is np.ndarray and (
            derivative.dtype is out.dtype and derivative.shape == out.shape and out.flags.writeable):
        out[...] = derivative
        return _with(result, position, out)
    if out is None:
        return result
    if hasattr(derivative, "indptr"):
        raise SignatureError(f"out= of `{name}` cannot take a sparse matrix (called at {user_line()}); use what it "
                             "returns")
    leaves, buffers = _matched(derivative, out, name)
    for buffer, leaf in zip(buffers, leaves, strict=True):
        buffer[...] = leaf
    return _with(result, position, out)


def _with(result: Any, position: int | None, out: Any) -> Any:
    if position is None:
        return out
    if len(result) == 2:                                             # most often, and in less time
        return (result[0], out) if position else (out, result[1])
    return (*result[:position], out, *result[position + 1:])


def _matched(derivative: Any, out: Any, name: str) -> tuple[list[Any], list[Any]]:
    leaves, tree = leaves_of(derivative)
    buffers, out_tree = leaves_of(out)
    if tree != out_tree:
        raise SignatureError(f"out= of `{name}` has another structure than the result (called at {user_line()})")
    for buffer, leaf in zip(buffers, leaves, strict=True):
        if not isinstance(buffer, np.ndarray) or buffer.shape != np.shape(leaf) or buffer.dtype != np.asarray(
                leaf).dtype or not buffer.flags.writeable:
            raise SignatureError(
                f"out= of `{name}` must be a writeable array of shape {np.shape(leaf)} and dtype "
                f"{np.asarray(leaf).dtype}, not {_shown(buffer)} (called at {user_line()})")
    return leaves, buffers


def _shown(buffer: Any) -> str:
    if isinstance(buffer, np.ndarray):
        return f"a {'' if buffer.flags.writeable else 'read-only '}{buffer.dtype} array of shape {buffer.shape}"
    return f"a {type(buffer).__name__}"
