"""`Portions` in LLVM: the body as a function, what it is given in a block of words, and the call of the pool."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import INT64, RAW, Module
from jitad.compile.loops import Buffer, Portions, Program
from jitad.compile.parallel.names import free_names
from jitad.compile.parallel.pool import run_in

Emit = Callable[[Program, Module, str], ir.IRFunction]


def emit_parts(builder: IRBuilder, s: Portions, buffers: Mapping[str, Buffer],
               arguments: Callable[[Any], Sequence[Any]], emit: Emit) -> Any:
    """The status of all parts. ``arguments(parameter)`` are the values for a parameter of the body's function, which
    `emit` writes."""
    module = builder.module
    scalars, names = free_names(s)
    parameters: list[Buffer | tuple[str, str]] = [(s.variable, "i8"), *scalars.items(), *(
        buffers[name] for name in names if buffers[name].kind != "constant")]
    program = Program(tuple(parameters), (), s.own, s.body, (), {})
    body = emit(program, module, module.unique("jitad_part"))
    given = [value for p in parameters[1:] for value in arguments(p)]
    words = builder.slot(ir.array(INT64, max(len(given), 1)))
    for place, value in enumerate(given):
        builder.store(value, _word(builder, words, place, value.type))
    assert isinstance(s.stop, int)
    return run_in(builder, _part(module, body, [x.type for x in given]), words, s.stop)


def _part(module: Module, body: ir.IRFunction, kinds: Sequence[ir.Type]) -> ir.IRFunction:
    """The function that the pool calls: it takes the words to `body`."""
    function = ir.IRFunction(module, INT64, [RAW, INT64], module.unique("jitad_numbered"), "internal", "nounwind")
    context, number = function.args
    builder = IRBuilder(function, function.append_basic_block("entry"))
    words = builder.bitcast(context, ir.array(INT64, max(len(kinds), 1)).as_pointer())
    values = [builder.load(_word(builder, words, place, kind)) for place, kind in enumerate(kinds)]
    builder.ret(builder.call(body, [number, *values]))
    return function


def _word(builder: IRBuilder, words: Any, place: int, kind: ir.Type) -> Any:
    return builder.bitcast(builder.gep(words, [INT64(0), INT64(place)]), kind.as_pointer())
