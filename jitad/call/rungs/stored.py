"""Specializations on disk: machine code and what it takes to call it, without tape, recording or LLVM's optimiser.

A payload is a header (what the results are made of, the kinds of arguments) and an
object file. The tape is not stored: the few things that need one record it again.
"""
from __future__ import annotations

from functools import cache as once
from pathlib import Path
from typing import Any

from jitad import cache
from jitad.cache.keys.captures import Plan
from jitad.cache.keys.fingerprint import Unstorable, dumps, fingerprint, loads, python_tag, register
from jitad.cache.keys.identity import Target, code_key
from jitad.call.build.specialization import Specialization
from jitad.call.request.request import Arguments, Request
from jitad.call.request.results import Result
from jitad.call.request.sameness import unlike
from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.layout import UnknownLayout, layout
from jitad.compile.entry.stored_kernel import StoredKernel
from jitad.compile.llvm.native import llvm, processor
from jitad.compile.llvm.object_cache import build_id
from jitad.trace.leaves import packed_all
from jitad.trace.pytree import TreeDef
from jitad.trace.steps.known import frozen, thawed
from jitad.version import __version__

register(TreeDef, "tree", lambda tree: (tree.spec, tree.inner, tree.keys), TreeDef)


@once
def _build() -> tuple[str, ...]:
    """What compiled code depends on besides the function: versions, our own files, the processor."""
    import numpy
    import optree
    import scipy

    return (__version__, build_id(), numpy.__version__, scipy.__version__, optree.__version__,
            *_numba(), python_tag(), str(layout()), *llvm(), *processor())


def _numba() -> list[str]:
    """The installed version of numba, which is not imported, by the name of its folder beside NumPy's."""
    import numpy

    return sorted(path.name for path in Path(numpy.__file__).parent.parent.glob("numba-*.dist-info"))


def first_key(target: Target, request: Request, arguments: Arguments) -> str | None:
    """The key under which the plans of a call lie, or None if the call means nothing in another process."""
    try:
        return fingerprint((code_key(target.function), target.shape, request.what, request.argnums, request.mode,
                            request.parallel, repr(request.batch), arguments.signature, *_build()))
    except (Unstorable, UnknownLayout):
        return None


def save(specialization: Specialization, target: Target, arguments: Arguments, kernel: Any) -> None:
    """Store what `kernel` is made of, if it can be of use to another process."""
    disk = cache.persistent_store()
    key = first_key(target, specialization.request, arguments) if disk is not None and kernel.exact else None
    if disk is None or key is None:
        return
    result = specialization.result
    header = (tuple(map(tuple, kernel.kinds)), result.forms, result.frame, specialization.guarded, kernel.routines,
              frozen(specialization.loops), specialization.asked)
    try:
        text = dumps(header)
    except Unstorable:
        return
    variant = f"{tuple(map(tuple, kernel.kinds))} {specialization.way}"
    disk.store(key, specialization.plan, len(text).to_bytes(8, "little") + text + kernel.native.code,
               {"function": specialization.name, "versions": _build()[0]}, variant=variant)


def load(target: Target, request: Request, arguments: Arguments) -> Specialization | None:
    """A specialization from the disk that serves this call, with its kernel; None if there is none."""
    disk = cache.persistent_store()
    key = first_key(target, request, arguments) if disk is not None and request.tier != "machine" else None
    if disk is None or key is None:
        return None
    for plan, payload in disk.matches(key, target):
        try:
            size = int.from_bytes(payload[:8], "little")
            kinds, forms, frame, guarded, routines, loops, asked = loads(payload[8:8 + size])
        except (Unstorable, ValueError, LookupError, TypeError):
            continue
        inputs = [*arguments.inputs, *_captured(plan, target)]
        if tuple(tuple(argument_type(x)) for x in inputs) != kinds or unlike(asked, arguments, plan, target):
            continue
        found = Specialization.of(target.function.__qualname__, request, arguments, None, plan, Result(forms, frame),
                                  guarded=guarded, loaded=True, loops=thawed(loops), asked=asked)
        if _add_kernel(found, payload[8 + size:], routines, inputs) and found.missed(inputs) is None:
            return found
    return None


def load_kernels(specialization: Specialization, target: Target, arguments: Arguments) -> None:
    """Give `specialization`, which serves this call, the kernel on the disk for the layout of its arguments."""
    found = load(target, specialization.request, arguments)
    if found is not None:
        specialization.kernels.update(found.kernels)


def _captured(plan: Plan, target: Target) -> tuple[Any, ...]:
    return tuple(packed_all(plan.values(target) or ()))


def _add_kernel(specialization: Specialization, code: bytes, routines: bool, inputs: list[Any]) -> bool:
    """Link the object file; what does not link is as good as absent."""
    kinds = tuple(map(argument_type, inputs))
    try:
        specialization.kernels[kinds] = StoredKernel(code, kinds, routines)
    except (RuntimeError, KeyError, OSError):
        return False
    return True
