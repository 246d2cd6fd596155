"""What writes instructions: one line of LLVM assembly each, into a block of a function."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jitad.compile.llvm.ir import (
    BOOL,
    INT32,
    VOID,
    BasicBlock,
    IRFunction,
    IRValue,
    Phi,
    Pointer,
    Product,
    Type,
    aligned,
    vector,
)

CONTRACT = "contract"
FREE_ORDER = "reassoc contract"           # of the terms of a sum
_EQUAL = {"==": "eq", "!=": "ne"}
_ORDERS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_SIGNED = {**_EQUAL, **{symbol: f"s{name}" for symbol, name in _ORDERS.items()}}
_UNSIGNED = {**_EQUAL, **{symbol: f"u{name}" for symbol, name in _ORDERS.items()}}
_OF_FLOATS = {**_EQUAL, **_ORDERS}


class IRBuilder:
    """Writes at the end of a block. Whether operands have the types that they should is for LLVM to check, but for
    those of memory and of calls."""

    __slots__ = ("function", "module", "block", "lines")

    def __init__(self, function: IRFunction, block: BasicBlock):
        self.function, self.module = function, function.module
        self.position_at_end(block)

    def position_at_end(self, block: BasicBlock) -> None:
        self.block, self.lines = block, block.lines
        self.function.begin(block)

    @contextmanager
    def goto_block(self, block: BasicBlock) -> Iterator[None]:
        before = self.block
        self.position_at_end(block)
        yield
        self.position_at_end(before)

    def append_basic_block(self, name: str = "block") -> BasicBlock:
        return self.function.append_basic_block(name)

    def value(self, kind: Type, line: str) -> IRValue:
        """The result of an instruction."""
        name = self.function.name_in(self.block)
        self.lines.append(f"{name} = {line}")
        return IRValue(kind, name)

    # --- arithmetic --------------------------------------------------------------------------
    def binary(self, op: str, a: IRValue, b: IRValue, flags: str = "") -> IRValue:
        name = self.function.name_in(self.block)
        self.lines.append(f"{name} = {op} {flags} {a.type.text} {a.text}, {b.text}")
        return IRValue(a.type, name)

    def fadd(self, a: IRValue, b: IRValue, flags: str = "") -> IRValue:
        return self.binary("fadd", a, b, flags)

    def fsub(self, a: IRValue, b: IRValue, flags: str = "") -> IRValue:
        return self.binary("fsub", a, b, flags)

    def fmul(self, a: IRValue, b: IRValue, flags: str = "") -> Product:
        return Product(a.type, self.binary("fmul", a, b, flags).text)

    def fdiv(self, a: IRValue, b: IRValue, flags: str = "") -> IRValue:
        return self.binary("fdiv", a, b, flags)

    def fneg(self, a: IRValue) -> IRValue:
        return self.value(a.type, f"fneg {a.type.text} {a.text}")

    def add(self, a: IRValue, b: IRValue, flags: str = "") -> IRValue:
        return self.binary("add", a, b, flags)

    def sub(self, a: IRValue, b: IRValue, flags: str = "") -> IRValue:
        return self.binary("sub", a, b, flags)

    def mul(self, a: IRValue, b: IRValue, flags: str = "") -> IRValue:
        return self.binary("mul", a, b, flags)

    def udiv(self, a: IRValue, b: IRValue) -> IRValue:
        return self.binary("udiv", a, b)

    def urem(self, a: IRValue, b: IRValue) -> IRValue:
        return self.binary("urem", a, b)

    def and_(self, a: IRValue, b: IRValue) -> IRValue:
        return self.binary("and", a, b)

    def or_(self, a: IRValue, b: IRValue) -> IRValue:
        return self.binary("or", a, b)

    def xor(self, a: IRValue, b: IRValue) -> IRValue:
        return self.binary("xor", a, b)

    def shl(self, a: IRValue, b: IRValue) -> IRValue:
        return self.binary("shl", a, b)

    def ashr(self, a: IRValue, b: IRValue) -> IRValue:
        return self.binary("ashr", a, b)

    def lshr(self, a: IRValue, b: IRValue) -> IRValue:
        return self.binary("lshr", a, b)

    def neg(self, a: IRValue) -> IRValue:
        return self.binary("sub", a.type(0), a)

    def not_(self, a: IRValue) -> IRValue:
        return self.binary("xor", a, a.type(-1))

    # --- choices -----------------------------------------------------------------------------
    def _compared(self, op: str, a: IRValue, b: IRValue) -> IRValue:
        return self.value(BOOL, f"{op} {a.type.text} {a.text}, {b.text}")

    def icmp_signed(self, symbol: str, a: IRValue, b: IRValue) -> IRValue:
        return self._compared(f"icmp {_SIGNED[symbol]}", a, b)

    def icmp_unsigned(self, symbol: str, a: IRValue, b: IRValue) -> IRValue:
        return self._compared(f"icmp {_UNSIGNED[symbol]}", a, b)

    def fcmp_ordered(self, symbol: str, a: IRValue, b: IRValue) -> IRValue:
        return self._compared(f"fcmp o{_OF_FLOATS[symbol]}", a, b)

    def fcmp_unordered(self, symbol: str, a: IRValue, b: IRValue) -> IRValue:
        return self._compared(f"fcmp u{_OF_FLOATS[symbol]}", a, b)

    def select(self, condition: IRValue, a: IRValue, b: IRValue, hint: str = "") -> IRValue:
        return self.value(a.type, f"select i1 {condition.text}, {a.type.text} {a.text}, {b.type.text} {b.text}{hint}")

    # --- conversions -------------------------------------------------------------------------
    def convert(self, op: str, a: IRValue, kind: Type) -> IRValue:
        return a if a.type is kind else self.value(kind, f"{op} {a.type.text} {a.text} to {kind.text}")

    def bitcast(self, a: IRValue, kind: Type) -> IRValue:
        return IRValue(kind, a.text) if isinstance(kind, Pointer) else self.convert("bitcast", a, kind)

    def trunc(self, a: IRValue, kind: Type) -> IRValue:
        return self.convert("trunc", a, kind)

    def zext(self, a: IRValue, kind: Type) -> IRValue:
        return self.convert("zext", a, kind)

    def sext(self, a: IRValue, kind: Type) -> IRValue:
        return self.convert("sext", a, kind)

    def fptrunc(self, a: IRValue, kind: Type) -> IRValue:
        return self.convert("fptrunc", a, kind)

    def fpext(self, a: IRValue, kind: Type) -> IRValue:
        return self.convert("fpext", a, kind)

    def fptosi(self, a: IRValue, kind: Type) -> IRValue:
        return self.convert("fptosi", a, kind)

    def sitofp(self, a: IRValue, kind: Type) -> IRValue:
        return self.convert("sitofp", a, kind)

    def inttoptr(self, a: IRValue, kind: Pointer) -> IRValue:
        return self.convert("inttoptr", a, kind)

    # --- vectors -----------------------------------------------------------------------------
    def shuffle_vector(self, a: IRValue, b: IRValue, places: Sequence[int]) -> IRValue:
        """The elements of `a` and then `b` at these places."""
        mask = vector(INT32, len(places))(places)
        return self.value(vector(a.type.element, len(places)),
                          f"shufflevector {a.type.text} {a.text}, {b.type.text} {b.text}, {mask.type.text} {mask.text}")

    def splat(self, a: IRValue, lanes: int) -> IRValue:
        """A vector of the same number in all lanes."""
        kind = vector(a.type, lanes)
        one = self.value(kind, f"insertelement {kind.text} undef, {a.type.text} {a.text}, i32 0")
        return self.shuffle_vector(one, one, [0] * lanes)

    # --- memory ------------------------------------------------------------------------------
    def alloca(self, kind: Type, align: int = 0) -> IRValue:
        return self.value(kind.as_pointer(), f"alloca {kind.text}{aligned(align)}")

    def slot(self, kind: Type) -> IRValue:
        """Memory on the stack from the start of the function on."""
        name = f"%v{next(self.function.names)}"
        self.function.blocks[0].lines.insert(0, f"{name} = alloca {kind.text}")
        return IRValue(kind.as_pointer(), name)

    def gep(self, base: IRValue, indices: Sequence[IRValue], inbounds: bool = False) -> IRValue:
        """The address of an element; the indices after the first one lead into an array."""
        kind = base.type.pointee
        line = f"getelementptr {'inbounds ' if inbounds else ''}{kind.text}, ptr {base.text}"
        for index in indices:
            line += f", {index.type.text} {index.text}"
        for _ in indices[1:]:
            kind = kind.element
        return self.value(kind.as_pointer(), line)

    def load(self, pointer: IRValue, align: int = 0) -> IRValue:
        kind = pointer.type.pointee
        return self.value(kind, f"load {kind.text}, ptr {pointer.text}{aligned(align)}")

    def store(self, value: IRValue, pointer: IRValue, align: int = 0) -> None:
        if pointer.type.pointee != value.type:
            raise TypeError(f"{value.type} stored to {pointer.type}")
        self.lines.append(f"store {value.type.text} {value.text}, ptr {pointer.text}{aligned(align)}")

    # --- control -----------------------------------------------------------------------------
    def phi(self, kind: Type) -> Phi:
        found = Phi(kind, self.function.name_in(self.block))
        self.lines.append(found)
        return found

    def call(self, function: IRValue, arguments: Sequence[IRValue]) -> IRValue:
        signature = function.type.pointee
        if [a.type for a in arguments] != signature.kinds:
            raise TypeError(f"{[a.type for a in arguments]} given to {signature}")
        kind, listed = signature.result, ", ".join([f"{a.type.text} {a.text}" for a in arguments])
        line = f"call {kind.text} {function.text}({listed})"
        if kind is not VOID:
            return self.value(kind, line)
        self.lines.append(line)
        return IRValue(VOID, "")

    def branch(self, target: BasicBlock, hints: str = "") -> None:
        self.lines.append(f"br label %{target.name}{hints}")

    def cbranch(self, condition: IRValue, yes: BasicBlock, no: BasicBlock, hints: str = "") -> None:
        self.lines.append(f"br i1 {condition.text}, label %{yes.name}, label %{no.name}{hints}")

    def switch(self, value: IRValue, cases: Sequence[BasicBlock], otherwise: BasicBlock) -> None:
        """To the case of this number."""
        kind = value.type.text
        listed = " ".join([f"{kind} {number}, label %{block.name}" for number, block in enumerate(cases)])
        self.lines.append(f"switch {kind} {value.text}, label %{otherwise.name} [{listed}]")

    def ret(self, value: IRValue) -> None:
        self.lines.append(f"ret {value.type.text} {value.text}")

    def ret_void(self) -> None:
        self.lines.append("ret void")
