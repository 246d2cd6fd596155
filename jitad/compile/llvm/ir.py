"""A writer of LLVM assembly: types, constants, functions, and a builder that appends a line for each instruction.

It is as small as the emitters need it, and checks what LLVM's parser cannot: that sees no more of a pointer than
``ptr``, so here a pointer's type knows what lies there, and loads, stores and calls are held to it. A pointer to
something else is the same text: `Builder.bitcast` of one writes nothing.
"""
from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

KERNEL = "jitad_"             # functions of such names are kernels: `compile_module` says what their attributes are
PLAIN = re.compile(r"[A-Za-z$._-][\w$.-]*", re.ASCII)


# --- types ---------------------------------------------------------------------------------------
class Type:
    """A type; called with a Python value it makes a constant. Those of numbers exist once; others are the same if they
    read the same."""

    __slots__ = ("text", "_pointer")

    def __init__(self, text: str):
        self.text = text
        self._pointer: Pointer | None = None

    def as_pointer(self) -> Pointer:
        if self._pointer is None:
            self._pointer = Pointer(self)
        return self._pointer

    def literal(self, value: Any) -> str:
        raise TypeError(f"no constants of the type {self.text}")

    def __call__(self, value: Any) -> IRConstant:
        return IRConstant(self, self.literal(value), value)

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Type) and repr(self) == repr(other))

    def __hash__(self) -> int:
        return hash(self.text)


class Integer(Type):
    __slots__ = ("width",)

    def __init__(self, width: int):
        super().__init__(f"i{width}")
        self.width = width

    def literal(self, value: Any) -> str:
        return str(int(value))


class Float(Type):
    __slots__ = ()

    def literal(self, value: Any) -> str:
        """The bits of the double with this value: exact, with the payload of a NaN."""
        return "0x" + struct.pack(">d", value if self is DOUBLE else ctypes.c_float(float(value)).value).hex()


class Pointer(Type):
    __slots__ = ("pointee",)

    def __init__(self, pointee: Type):
        super().__init__("ptr")
        self.pointee = pointee

    def literal(self, value: Any) -> str:
        if value is not None:
            raise TypeError("no constants of pointers but None")
        return "null"

    def __repr__(self) -> str:
        return f"{self.pointee!r}*"


class Several(Type):
    """An array, or a vector."""

    __slots__ = ("element", "count", "brackets")

    def __init__(self, element: Type, number: int, brackets: str):
        super().__init__(f"{brackets[0]}{number} x {element.text}{brackets[1]}")
        self.element, self.count, self.brackets = element, number, brackets

    def literal(self, value: Any) -> str:
        if len(value) != self.count:
            raise TypeError(f"{len(value)} elements for {self.text}")
        if isinstance(value, bytes) and value:
            return 'c"\\' + value.hex("\\") + '"'
        kind, literal = self.element.text, self.element.literal
        return self.brackets[0] + ", ".join([f"{kind} {literal(v)}" for v in value]) + self.brackets[1]


class FunctionType(Type):
    """The type of a function."""

    __slots__ = ("result", "kinds")

    def __init__(self, result: Type, kinds: Sequence[Type]):
        super().__init__(f"{result.text} ({', '.join([k.text for k in kinds])})")
        self.result, self.kinds = result, list(kinds)


VOID, FLOAT, DOUBLE = Type("void"), Float("float"), Float("double")
BOOL, INT8, INT16, INT32, INT64 = (Integer(width) for width in (1, 8, 16, 32, 64))
RAW = INT8.as_pointer()                 # to anything


def array(element: Type, number: int) -> Several:
    return Several(element, number, "[]")


@cache
def vector(element: Type, lanes: int) -> Several:
    return Several(element, lanes, "<>")


# --- values --------------------------------------------------------------------------------------
class IRValue:
    """What an instruction reads: a type, and how it is called."""

    __slots__ = ("type", "text")

    def __init__(self, kind: Any, text: str):
        self.type, self.text = kind, text


class Product(IRValue):
    """The result of `fmul`."""

    __slots__ = ()


class IRConstant(IRValue):
    __slots__ = ("constant",)

    def __init__(self, kind: Any, text: str, constant: Any):
        self.type, self.text, self.constant = kind, text, constant


class Global(IRValue):
    """The address of something in a module, and the lines that make it."""

    __slots__ = ("name", "lines")

    def __init__(self, kind: Type, name: str, lines: str):
        super().__init__(kind.as_pointer(), "@" + (name if PLAIN.fullmatch(name) else _quoted(name)))
        self.name, self.lines = name, lines

    def written(self) -> str:
        return self.lines

    def finished(self) -> Global:
        """The same for any module."""
        return Global(self.type.pointee, self.name, self.written())


def function_at(address: int, kind: FunctionType) -> IRValue:
    """A function of this process."""
    return IRValue(kind.as_pointer(), f"inttoptr (i64 {address} to ptr)")


class Phi(IRValue):
    """One value for each block from which another one is entered."""

    __slots__ = ("incoming",)

    def __init__(self, kind: Type, text: str):
        super().__init__(kind, text)
        self.incoming: list[str] = []

    def add_incoming(self, value: IRValue, block: BasicBlock) -> None:
        self.incoming.append(f"[{value.text}, %{block.name}]")

    def __str__(self) -> str:
        return f"{self.text} = phi {self.type.text} {', '.join(self.incoming)}"


def _quoted(text: str) -> str:
    """`text` in quotes, as LLVM reads it."""
    return '"' + "".join([chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02x}" for b in text.encode()]) + '"'


# --- modules -------------------------------------------------------------------------------------
class Module:
    """Functions and constants by name, and hints. `str` of it is what LLVM parses."""

    def __init__(self) -> None:
        self.globals: dict[str, Global] = {}
        self.metadata: list[str] = []
        self.held: list[Any] = []               # what has the code that is called by address

    def __str__(self) -> str:
        notes = [f"!{number} = {text}" for number, text in enumerate(self.metadata)]
        return "\n".join([*[g.written() for g in self.globals.values()], *notes, ""])

    def add(self, known: Global) -> Global:
        if known.name in self.globals:
            raise ValueError(f"the module has a {known.name!r}")
        self.globals[known.name] = known
        return known

    def unique(self, name: str) -> str:
        """`name`, or one like it that is free."""
        return name if name not in self.globals else f"{name}.{len(self.globals)}"

    def constant(self, name: str, value: IRConstant, align: int = 0) -> Global:
        """Memory with a content that nobody changes."""
        known = self.add(Global(value.type, name, ""))
        known.lines = f"{known.text} = internal constant {value.type.text} {value.text}" + aligned(align)
        return known

    def declare(self, name: str, result: Type, kinds: Sequence[Type], before: str = "", after: str = "") -> Global:
        """A function from elsewhere, with the attributes of its result and its own."""
        known = self.globals.get(name)
        if known is None:
            kind = FunctionType(result, kinds)
            known = self.add(Global(kind, name, ""))
            listed = ", ".join([k.text for k in kinds])
            known.lines = f"declare {before} {result.text} {known.text}({listed}) {after}"
        return known

    def intrinsic(self, name: str, kind: Type, arity: int = 1) -> Global:
        """``llvm.<name>`` of values of one type, which is that of the result."""
        full = f"llvm.{name}.{_SUFFIX[kind]}"
        return self.globals.get(full) or self.declare(full, kind, [kind] * arity)

    def note(self, *operands: IRConstant | str | int) -> int:
        """The number of a node of metadata, of constants, strings and numbers of nodes."""
        self.metadata.append(f"!{{{', '.join(map(_operand, operands))}}}")
        return len(self.metadata) - 1

    def loop_hints(self, *hints: Sequence[IRConstant | str]) -> str:
        """Hints for LLVM at the branch that closes a loop, each a name and perhaps a value; see `Builder.branch`."""
        listed = [self.note(*hint) for hint in hints]
        own = len(self.metadata)                                   # a loop's node names itself
        self.metadata.append(f"distinct !{{{', '.join(map(_operand, [own, *listed]))}}}")
        return f", !llvm.loop !{own}"


_SUFFIX: dict[Type, str] = {DOUBLE: "f64", FLOAT: "f32"}


def _operand(operand: IRConstant | str | int) -> str:
    if isinstance(operand, IRConstant):
        return f"{operand.type.text} {operand.text}"
    return f"!{_quoted(operand)}" if isinstance(operand, str) else f"!{operand}"


def aligned(align: int) -> str:
    return f", align {align}" if align else ""


class BasicBlock:
    __slots__ = ("name", "lines", "begun")

    def __init__(self, name: str):
        self.name, self.begun = name, False
        self.lines: list[Any] = []              # phis have no text before their incoming values are known


class IRFunction(Global):
    """A function while it is written. With `apart` its pointers do not overlap."""

    __slots__ = ("module", "linkage", "attributes", "apart", "args", "blocks", "numbers", "names")

    def __init__(self, module: Module, result: Type, kinds: Sequence[Type], name: str, linkage: str = "",
                 attributes: str = "", apart: bool = False):
        super().__init__(FunctionType(result, kinds), name, "")
        self.module, self.linkage, self.attributes, self.apart = module, linkage, attributes, apart
        self.numbers, self.names = count(), count()
        self.args = [IRValue(kind, f"%{next(self.numbers)}") for kind in kinds]
        self.blocks: list[BasicBlock] = []           # in the order in which they are begun
        module.add(self)

    def append_basic_block(self, name: str = "block") -> BasicBlock:
        return BasicBlock(f"{name}{next(self.names)}")

    def begin(self, block: BasicBlock) -> None:
        """The block comes next, unless it has begun already."""
        if not block.begun:
            block.begun = True
            self.blocks.append(block)

    def name_in(self, block: BasicBlock) -> str:
        """For the next value. LLVM reads numbers in a third less time than names, but wants them in order: only the
        last block can have more of them."""
        return f"%{next(self.numbers)}" if block is self.blocks[-1] else f"%v{next(self.names)}"

    def written(self) -> str:
        signature, noalias = self.type.pointee, (" noalias" if self.apart else "")
        listed = ", ".join([f"{a.type.text}{noalias if isinstance(a.type, Pointer) else ''} {a.text}"
                            for a in self.args])
        group = "#0 " if self.name.startswith(KERNEL) else ""
        lines = [f"define {self.linkage} {signature.result.text} {self.text}({listed}) {self.attributes} {group}{{"]
        for block in self.blocks:
            lines.append(f"{block.name}:")
            lines += map(str, block.lines)
        lines.append("}")
        return "\n".join(lines)
