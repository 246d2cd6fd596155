"""Machine code kept on disk by the text that it is made from.

For kernels whose tape is made anew in every process: those of bound data, the C functions of samplers, the interpreters
of the tape machine. Recording and lowering take place, LLVM's work does not; and nothing can be out of date, because
the text says all that the code does.
"""
from __future__ import annotations

import hashlib
import weakref
from collections.abc import Sequence
from functools import cache as once
from pathlib import Path

from jitad import cache
from jitad.cache.build import files_id
from jitad.compile.llvm.ir import Module
from jitad.compile.llvm.native import VECTOR_WIDTH, Native, compile_module, llvm, load_code, processor
from jitad.primitives.custom import has_code
from jitad.tape.types import Node
from jitad.version import __version__


@once
def build_id() -> str:
    """The id of the files that this process runs: other builds make other code."""
    return files_id(str(Path(__file__).parents[2]), *cache.__path__)


_living: weakref.WeakValueDictionary[str, Native] = weakref.WeakValueDictionary()


def compile_once(module: Module, name: str) -> Native:
    """`compile_cached` for code that several kernels of this process call, as long as one of them holds it."""
    text = str(module)
    found = _living.get(text)
    if found is None:
        found = _living[text] = compile_cached(module, name)
    return found


def compile_cached(module: Module, name: str, nodes: Sequence[Node] = ()) -> Native:
    """`compile_module`, or what it gave once before for the same text. `name` is what the list of the disk cache
    shows. Code for `nodes` that call Python has addresses of this process in it, and is not kept."""
    persistent = cache.persistent_store()
    if persistent is None or has_code(nodes):
        return compile_module(module)
    text = str(module)
    about = repr((__version__, build_id(), llvm(), processor(), VECTOR_WIDTH))
    key = hashlib.sha256(f"{about}\n{text}".encode()).hexdigest()
    code = persistent.disk.get(key)
    if code is not None:
        return load_code(code)
    native = compile_module(text)
    persistent.disk.put(key, native.code, {"function": name, "versions": __version__, "kind": "code"})
    return native
