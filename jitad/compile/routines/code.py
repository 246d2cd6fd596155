"""A small writer of LLVM functions for the routines: loops, matrices in memory, work memory, calls of LAPACK.

Sizes are known when code is written. An index is a Python integer or an LLVM value; arithmetic on integers is
done here, so that a loop that is unrolled leaves constants behind.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import CONTRACT, FREE_ORDER, IRBuilder
from jitad.compile.llvm.ir import BOOL, DOUBLE, INT8, INT32, INT64, RAW, VOID
from jitad.compile.llvm.workspace import given, taken
from jitad.compile.loops import STATUS_LINALG
from jitad.compile.scalar.expressions import call_by_name

STACK_BYTES = 8192              # work memory up to this size is on the stack
Index = Any                     # int or LLVM value
ROUTINES: dict[str, Callable[..., None]] = {}        # what writes the code of each routine, by the name of its row


def registered(write: Callable[..., None]) -> Callable[..., None]:
    """A decorator of what writes the routine of that name: ``write(code, *pointers, *numbers)``."""
    ROUTINES[write.__name__] = write
    return write


class RoutineCode:
    """One internal function ``(*pointers) -> status`` while it is written."""

    def __init__(self, module: ir.Module, name: str, kinds: list[ir.Pointer]):
        self.module = module
        self.function = ir.IRFunction(module, INT64, kinds, name, linkage="internal", apart=True)
        self.kind: Any = kinds[0].pointee                              # of numbers and work memory
        self.prefix = "d" if self.kind is DOUBLE else "s"
        self.slots = IRBuilder(self.function, self.function.append_basic_block("entry"))
        self.body = self.function.append_basic_block("body")
        self.builder = IRBuilder(self.function, self.body)
        self.leave = self.function.append_basic_block("leave")
        self.exits: list[tuple[Any, Any]] = []                         # status and block
        self.owned: list[Any] = []
        self.unrolled = False
        self._info: Any = None

    # --- integers ----------------------------------------------------------------------------
    @staticmethod
    def integer(index: Index) -> Any:
        return INT64(index) if isinstance(index, int) else index

    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return a if b == 0 else self.builder.add(self.integer(a), self.integer(b), flags="nsw")

    def sub(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return self.builder.sub(self.integer(a), self.integer(b), flags="nsw")

    def mul(self, a: Index, b: int) -> Index:
        return a * b if isinstance(a, int) else self.builder.mul(a, INT64(b), flags="nsw")

    def least(self, a: Index, b: int) -> Index:
        return min(a, b) if isinstance(a, int) else self.builder.select(
            self.builder.icmp_signed("<", a, INT64(b)), a, INT64(b))

    def greatest(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        a, b = self.integer(a), self.integer(b)
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    # --- floats ------------------------------------------------------------------------------
    def number(self, value: float) -> Any:
        return self.kind(value)

    def minus(self, total: Any, a: Any, b: Any) -> Any:
        """``total - a * b``."""
        return self.builder.fsub(total, self.builder.fmul(a, b, flags=CONTRACT), flags=CONTRACT)

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b)

    def over(self, a: Any, b: Any) -> Any:
        return self.builder.fdiv(a, b)

    def sqrt(self, x: Any) -> Any:
        return self._intrinsic("sqrt", x)

    def magnitude(self, x: Any) -> Any:
        return self._intrinsic("fabs", x)

    def _intrinsic(self, name: str, x: Any) -> Any:
        return self.builder.call(self.module.intrinsic(name, self.kind), [x])

    def math(self, name: str, x: Any) -> Any:
        """The math function `name` of a float64."""
        return call_by_name(self.builder, name, [x])

    def compute_in_double(self) -> None:
        self.compute_as(DOUBLE)

    def compute_as(self, kind: Any) -> None:
        """Numbers and work memory of another kind than the result's."""
        self.kind, self.prefix = kind, "d" if kind is DOUBLE else "s"

    @staticmethod
    def double(value: float) -> Any:
        return DOUBLE(value)

    @staticmethod
    def null() -> Any:
        """No pointer."""
        return RAW(None)

    def wide(self, x: Any) -> Any:
        return x if x.type is DOUBLE else self.builder.fpext(x, DOUBLE)

    def narrow(self, x: Any) -> Any:
        return x if self.kind is DOUBLE else self.builder.fptrunc(x, self.kind)

    # --- memory ------------------------------------------------------------------------------
    def at(self, pointer: Any, index: Index) -> Any:
        return pointer if isinstance(index, int) and index == 0 else self.builder.gep(
            pointer, [self.integer(index)], inbounds=True)

    def load(self, pointer: Any, index: Index = 0) -> Any:
        return self.builder.load(self.at(pointer, index))

    def store(self, value: Any, pointer: Any, index: Index = 0) -> None:
        self.builder.store(value, self.at(pointer, index))

    def slot(self, kind: ir.Type) -> Any:
        return self.slots.alloca(kind)

    def work(self, count: int, kind: ir.Type | None = None) -> Any:
        """Memory for `count` elements until the function returns; asked for before any branch."""
        kind = kind or self.kind
        if count * 8 <= STACK_BYTES:
            slot = self.slots.alloca(ir.array(kind, max(count, 1)), align=64)
            return self.slots.bitcast(slot, kind.as_pointer())
        memory = taken(self.slots, count * 8)
        self.owned.append(memory)
        return self.slots.bitcast(memory, kind.as_pointer())

    # --- control -----------------------------------------------------------------------------
    def loop(self, start: Index, stop: Index, body: Callable[[Index], None], step: int = 1) -> None:
        """``for index in range(start, stop, step): body(index)``."""
        def stepped(index: Index, state: Any) -> Any:
            body(index)
            return None
        self._iterate(start, stop, None, stepped, step)

    def folded(self, start: Index, stop: Index, first: Any, body: Callable[[Index, Any], Any]) -> Any:
        """`first`, then ``body(index, value so far)`` for each index."""
        return self._iterate(start, stop, first, body, 1)

    def dot(self, start: Index, stop: Index, factors: Callable[[Index], tuple[Any, Any]]) -> Any:
        """The sum of products, in any order."""
        def body(index: Index, total: Any) -> Any:
            a, b = factors(index)
            product = self.builder.fmul(a, b, flags=FREE_ORDER)
            return self.builder.fadd(total, product, flags=FREE_ORDER)
        return self.folded(start, stop, self.number(0.0), body)

    def _iterate(self, start: Index, stop: Index, state: Any, body: Callable[[Index, Any], Any], step: int) -> Any:
        if self.unrolled and isinstance(start, int) and isinstance(stop, int):
            for i in range(start, stop, step):
                state = body(i, state)
            return state
        before = self.builder.block
        head, inside, done = (self.function.append_basic_block(n) for n in ("loop", "inside", "done"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        index = self.builder.phi(INT64)
        index.add_incoming(self.integer(start), before)
        value = None
        if state is not None:
            value = self.builder.phi(state.type)
            value.add_incoming(state, before)
        self.builder.cbranch(self.builder.icmp_signed("<", index, self.integer(stop)), inside, done)
        self.builder.position_at_end(inside)
        following = body(index, value)
        after = self.builder.add(index, INT64(step), flags="nsw")
        index.add_incoming(after, self.builder.block)
        if value is not None:
            value.add_incoming(following, self.builder.block)
        self.builder.branch(head)
        self.builder.position_at_end(done)
        return value

    def rolled(self, start: Index, stop: Index, body: Callable[[Index], None]) -> None:
        """A loop that is not unrolled here, whatever is inside."""
        unrolled, self.unrolled = self.unrolled, False

        def inside(index: Index) -> None:
            self.unrolled = unrolled
            body(index)
            self.unrolled = False
        self.loop(start, stop, inside)
        self.unrolled = unrolled

    def branch(self, condition: Any, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
        yes, no, after = (self.function.append_basic_block(n) for n in ("yes", "no", "after"))
        self.builder.cbranch(condition, yes, no)
        for block, body in ((yes, then), (no, otherwise)):
            self.builder.position_at_end(block)
            if body is not None:
                body()
            self.builder.branch(after)
        self.builder.position_at_end(after)

    def require(self, condition: Any, status: int = STATUS_LINALG) -> None:
        """Return `status` unless `condition` holds."""
        fine = self.function.append_basic_block("fine")
        self.exits.append((INT64(status), self.builder.block))
        self.builder.cbranch(condition, fine, self.leave)
        self.builder.position_at_end(fine)

    def finish(self) -> ir.IRFunction:
        self.exits.append((INT64(0), self.builder.block))
        self.builder.branch(self.leave)
        self.builder.position_at_end(self.leave)
        status = self.builder.phi(INT64)
        for value, block in self.exits:
            status.add_incoming(value, block)
        for memory in self.owned:
            given(self.builder, memory)
        self.builder.ret(status)
        self.slots.branch(self.body)
        return self.function

    # --- LAPACK ------------------------------------------------------------------------------
    @property
    def info(self) -> Any:
        """Where LAPACK puts its status."""
        if self._info is None:
            self._info = self.slot(INT32)
        return self._info

    def succeeded(self) -> Any:
        return self.builder.icmp_signed("==", self.builder.load(self.info), INT32(0))

    def lapack(self, name: str, *arguments: Any, pairs: bool = False) -> None:
        """Call a routine of BLAS or LAPACK of the element type, or with `pairs` of complex numbers made of it;
        integers, flags and numbers are passed by pointer."""
        pointers = [self._by_pointer(a) for a in arguments]
        prefix = {"d": "z", "s": "c"}[self.prefix] if pairs else self.prefix
        function = self.module.declare(f"jitad_{prefix}{name}", VOID, [RAW] * len(pointers))
        self.builder.call(function, pointers)

    def _by_pointer(self, value: Any) -> Any:
        if isinstance(value, str):
            value, name = INT8(ord(value)), f"jitad.flag.{value}"
        elif isinstance(value, int):
            value, name = INT32(value), f"jitad.int.{value}"
        elif isinstance(value, float):
            value, name = self.number(value), f"jitad.{self.prefix}.{value:g}"
        else:
            return self.builder.bitcast(value, RAW)
        return self.builder.bitcast(self.module.globals.get(name) or self.module.constant(name, value), RAW)

    # --- matrices ----------------------------------------------------------------------------
    def copy(self, target: Any, source: Any, count: int) -> None:
        self.loop(0, count, lambda i: self.store(self.load(source, i), target, i))

    def fill(self, target: Any, count: int, value: float) -> None:
        self.loop(0, count, lambda i: self.store(self.number(value), target, i))

    def transposed(self, target: Any, source: Any, rows: int, columns: int) -> None:
        """``target[j, i] = source[i, j]``, eight rows at a time, which fill a line of the cache."""
        if min(rows, columns) == 1:
            return self.copy(target, source, rows * columns)
        return self.loop(0, rows, lambda first: self._transposed(target, source, rows, columns, first), step=8)

    def _transposed(self, target: Any, source: Any, rows: int, columns: int, first: Index) -> None:
        end = self.least(self.add(first, 8), rows)

        def column(j: Index) -> None:
            def element(i: Index) -> None:
                value = self.load(source, self.add(self.mul(i, columns), j))
                self.store(value, target, self.add(i, self.mul(j, rows)))
            self.loop(first, end, element)
        self.loop(0, columns, column)

    def transposed_pairs(self, target: Any, source: Any, rows: int, columns: int) -> None:
        """`transposed` of packed complex numbers."""
        def element(i: Index, j: Index, part: int) -> None:
            value = self.load(source, self.add(self.mul(self.add(self.mul(i, columns), j), 2), part))
            self.store(value, target, self.add(self.mul(self.add(self.mul(j, rows), i), 2), part))
        self.loop(0, rows, lambda i: self.loop(0, columns, lambda j: self.loop(0, 2, lambda c: element(i, j, c))))


__all__ = ["BOOL", "RoutineCode", "INT32", "Index"]
