"""What a piece of compiled code holds, and that it is given back."""
from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from jitad.compile.llvm.native import compile_module, load_code

TEXT = "define i64 @jitad_answer() { ret i64 42 }"

HELD = """
import resource
from jitad.compile.llvm.native import compile_module, load_code

def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

code = compile_module("define i64 @jitad_answer() { ret i64 42 }").code
load_code(code)
before = resident()
kept = [load_code(code) for _ in range(300)]
print((resident() - before) // 300)
"""


def test_code_is_called_and_loaded_again() -> None:
    native = compile_module(TEXT)
    assert native.function("jitad_answer")() == 42
    assert load_code(native.code).function("jitad_answer")() == 42
    with pytest.raises(KeyError, match="no_such"):
        native.address("no_such")


def test_two_pieces_of_code_may_have_the_same_names() -> None:
    first = compile_module("define i64 @jitad_answer() { ret i64 1 }")
    second = compile_module("define i64 @jitad_answer() { ret i64 2 }")
    assert (first.function("jitad_answer")(), second.function("jitad_answer")()) == (1, 2)
    again = first.function("jitad_answer")
    del second
    gc.collect()
    assert again() == 1


def test_a_piece_of_code_holds_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100_000
