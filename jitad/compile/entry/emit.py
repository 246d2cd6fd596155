"""The way from Python into a kernel: a built-in function in the kernel's own module.

``PyObject* jitad_entry(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names)`` looks at the guards
and the arguments, allocates the results, calls the sweep and packs what it found. `self` is the `Holder` of the table
of addresses; it also says what is called instead where the kernel does not serve, if that is not to be an exception.
Every reference is owned by one place: arrays by this function until they are returned or in the tuple, which then owns
them.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from jitad.compile.duration import estimated_time
from jitad.compile.emit.llvm import MEMORY
from jitad.compile.entry.arguments import ALIGNED, C_ORDER, F_ORDER, ArgumentType
from jitad.compile.entry.call import ENTRY
from jitad.compile.entry.layout import CELLS, WORD, Layout
from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import INT32, INT64, RAW
from jitad.compile.loops import DTYPE_TAGS, Buffer, Program
from jitad.tape.expr import Expr

WORTH_RELEASING = 5000.0       # ns of work from which the GIL is released around the sweep
POINTER = RAW
NULL = POINTER(None)
_NAMES = {tag: name for name, tag in DTYPE_TAGS.items()}


def emit_entry(program: Program, kinds: Sequence[ArgumentType], outputs: Sequence[bool], sweep: ir.IRFunction,
               at: Layout) -> ir.IRFunction:
    """Build the entry beside `sweep`. `outputs` says of each output, in order, whether it is an array.

    Raises `TypeError` if the kinds are not those of the program.
    """
    function = declare_entry(sweep.module)
    EntryWriter(program, function, sweep, at).run(kinds, outputs)
    return function


def declare_entry(module: ir.Module) -> ir.IRFunction:
    function = ir.IRFunction(module, POINTER, [POINTER, POINTER.as_pointer(), INT64, POINTER], ENTRY,
                           attributes="nounwind noinline optnone")    # optimising it would take 5 ms and save 5 ns
    return function


class EntryWriter:
    def __init__(self, program: Program, function: ir.IRFunction, sweep: ir.IRFunction, at: Layout):
        self.program, self.function, self.sweep, self.at = program, function, sweep, at
        self.holder, self.args, self.count, self.names = function.args
        self.builder = IRBuilder(function, function.append_basic_block("entry"))
        self.miss = function.append_basic_block("miss")
        self.nothing = self.failed = function.append_basic_block("failed")    # where to go with an exception set
        self.dtypes = {name: (mask, values) for name, mask, values in at.dtypes}

    def run(self, kinds: Sequence[ArgumentType], outputs: Sequence[bool]) -> None:
        """Write the whole function."""
        slots = [self.builder.alloca(MEMORY[r.dtype]) for r in self.program.results]
        self.reason = self.builder.alloca(POINTER)
        self.builder.store(NULL, self.reason)
        self.guards()
        raw = self.arguments(kinds)
        arrays = [self.new_array(b) for b in self.program.outputs]
        raw += [self.load(array, self.at.data, MEMORY[b.dtype].as_pointer())
                for array, b in zip(arrays, self.program.outputs, strict=True)]
        status = self.call_sweep([*raw, *slots])
        stopped = self.function.append_basic_block("stopped")
        self.unless(self.builder.icmp_signed("==", status, INT64(0)), stopped)
        with self.builder.goto_block(stopped):
            self.builder.store(self.object("StatusMiss"), self.reason)
            self.builder.branch(self.failed)                    # where the arrays are given back
        self.give(arrays, slots, outputs)
        self.leave()

    def leave(self) -> None:
        """Write the ways out without a result: with an exception that is set, or for what the kernel does not serve."""
        further, fail = (self.function.append_basic_block(name) for name in ("further", "fail"))
        self.builder.position_at_end(self.nothing)
        missed = self.builder.icmp_unsigned("!=", self.builder.load(self.reason), NULL)
        self.builder.cbranch(missed, further, fail)
        self.builder.position_at_end(self.miss)
        self.builder.store(self.object("SignatureMiss"), self.reason)
        self.builder.branch(further)
        self.builder.position_at_end(further)
        otherwise, refuse = self.object("otherwise"), self.function.append_basic_block("refuse")
        self.unless(self.builder.icmp_unsigned("!=", otherwise, NULL), refuse)
        self.builder.ret(self.call("PyObject_Vectorcall", POINTER, otherwise, self.args, self.count, self.names))
        self.builder.position_at_end(refuse)
        self.call("PyErr_SetNone", ir.VOID, self.builder.load(self.reason))
        self.builder.branch(fail)
        self.builder.position_at_end(fail)
        self.builder.ret(NULL)

    def guards(self) -> None:
        """Go on if each `Place` (see `call`) still has its object."""
        row, found = self.builder.alloca(POINTER), self.builder.alloca(POINTER)
        self.builder.store(self.object("guards"), row)
        look, more, item, gone, word, compare, other, done = (self.function.append_basic_block(name) for name in (
            "guard", "more", "item", "gone", "word", "compare", "other", "guarded"))
        self.builder.branch(look)
        self.builder.position_at_end(look)
        here = self.builder.load(row)
        self.builder.cbranch(self.builder.icmp_unsigned("==", here, self.object("guards_end")), done, more)
        self.builder.position_at_end(more)
        home, key = self.load(here, 0, POINTER), self.load(here, WORD, POINTER)
        self.builder.cbranch(self.builder.icmp_unsigned("!=", key, NULL), item, word)
        self.builder.position_at_end(item)
        value = self.call("PyDict_GetItemWithError", POINTER, home, key)
        self.builder.store(value, found)
        self.builder.cbranch(self.builder.icmp_unsigned("!=", value, NULL), compare, gone)
        self.builder.position_at_end(gone)                # or there is a key of the dict that could not be compared
        error = self.call("PyErr_Occurred", POINTER)
        self.builder.cbranch(self.builder.icmp_unsigned("==", error, NULL), compare, other)
        self.builder.position_at_end(word)
        self.builder.store(self.load(home, 0, POINTER), found)
        self.builder.branch(compare)
        self.builder.position_at_end(compare)
        self.builder.store(self.builder.gep(here, [INT64(3 * WORD)]), row)
        same = self.builder.icmp_unsigned("==", self.builder.load(found), self.load(here, 2 * WORD, POINTER))
        self.builder.cbranch(same, look, other)
        self.builder.position_at_end(other)
        self.call("PyErr_Clear", ir.VOID)                 # Python finds out for itself
        self.builder.branch(self.miss)
        self.builder.position_at_end(done)

    def arguments(self, kinds: Sequence[ArgumentType]) -> list[Any]:
        """What the sweep gets of the arguments, after a look at each."""
        self.counted(len(kinds))
        raw: list[Any] = []
        for number, (p, kind) in enumerate(zip(self.program.parameters, kinds, strict=True)):
            value = self.builder.load(self.builder.gep(self.args, [INT64(number)]))
            raw += self.array(value, kind, p) if isinstance(p, Buffer) else [self.number(value, kind, p[1])]
        return raw

    def counted(self, number: int) -> None:
        """Go on with so many positional arguments, and none by name."""
        self.require(self.builder.icmp_unsigned("==", self.names, NULL))
        self.require(self.builder.icmp_signed("==", self.count, INT64(number)))

    # --- memory and calls --------------------------------------------------------------------
    def load(self, base: Any, offset: int, kind: ir.Type) -> Any:
        address = self.builder.gep(base, [INT64(offset)])
        return self.builder.load(self.builder.bitcast(address, kind.as_pointer()))

    def object(self, name: str) -> Any:
        """An entry of the table."""
        return self.load(self.holder, self.at.table + WORD * CELLS[name], POINTER)

    def call(self, name: str, result: ir.Type, *arguments: Any) -> Any:
        """Call a function of the table."""
        kind = ir.FunctionType(result, [a.type for a in arguments])
        function = self.load(self.holder, self.at.table + WORD * CELLS[name], kind.as_pointer())
        return self.builder.call(function, arguments)

    def unless(self, condition: Any, leave: ir.BasicBlock) -> None:
        following = self.function.append_basic_block()
        self.builder.cbranch(condition, following, leave)
        self.builder.position_at_end(following)

    def require(self, condition: Any) -> None:
        self.unless(condition, self.miss)

    def made(self, value: Any) -> Any:
        """An object that Python has made, or leave with its exception."""
        self.unless(self.builder.icmp_unsigned("!=", value, NULL), self.failed)
        return value

    def all(self, conditions: Iterable[Any]) -> Any:
        return reduce(self.builder.and_, conditions)

    def any(self, conditions: Iterable[Any]) -> Any:
        return reduce(self.builder.or_, conditions)

    # --- arguments ---------------------------------------------------------------------------
    def of_class(self, value: Any, *names: str) -> None:
        """Go on if `value` is of one of the classes, and of none below."""
        kind = self.load(value, self.at.type, POINTER)
        classes = [self.object(name) for name in dict.fromkeys(names)]
        self.require(self.any(self.builder.icmp_unsigned("==", kind, c) for c in classes))

    def array(self, value: Any, kind: ArgumentType, b: Buffer) -> list[Any]:
        """The data pointer, and the strides where the sweep wants them."""
        if (kind.kind, DTYPE_TAGS.get(kind.dtype), kind.ndim, kind.order) != ("array", b.dtype, len(b.shape), b.order):
            raise TypeError(f"{b.name} is {b.dtype}{list(b.shape)} in order {b.order}, but the kernel is for {kind}")
        self.of_class(value, "ndarray")
        mask, words = self.dtypes[kind.dtype]
        told = self.builder.and_(self.load(self.load(value, self.at.descriptor, POINTER), self.at.signature, INT64),
                                 INT64(mask))
        dtype = self.any(self.builder.icmp_unsigned("==", told, INT64(word)) for word in words)
        wanted = {"C": C_ORDER, "F": F_ORDER, "A": 0}[kind.order] | (ALIGNED if kind.aligned else 0)
        looked_at = ALIGNED | C_ORDER | (0 if kind.order == "C" else F_ORDER)
        flags = self.builder.and_(self.load(value, self.at.flags, INT32), INT32(looked_at))
        ndim = self.load(value, self.at.ndim, INT32)
        self.require(self.all([dtype, self.builder.icmp_signed("==", ndim, INT32(kind.ndim)),
                               self.builder.icmp_signed("==", flags, INT32(wanted))]))
        if kind.ndim:
            shape = self.load(value, self.at.shape, POINTER)
            self.require(self.all(self.builder.icmp_signed("==", self.load(shape, WORD * d, INT64), INT64(n))
                                  for d, n in enumerate(b.shape)))
        raw = [self.load(value, self.at.data, MEMORY[b.dtype].as_pointer())]
        if b.order == "A":
            strides = self.load(value, self.at.strides, POINTER)
            raw += [self.load(strides, WORD * d, INT64) for d in range(kind.ndim)]
        return raw

    def number(self, value: Any, kind: ArgumentType, dtype: str) -> Any:
        if kind.kind == "array" or DTYPE_TAGS.get(kind.dtype) != dtype:
            raise TypeError(f"a number of dtype {dtype} is wanted, but the kernel is for {kind}")
        if kind.kind == "scalar":
            self.of_class(value, f"{kind.dtype}.type", f"{kind.dtype}.alias")
            return self.load(value, self.at.number, MEMORY[dtype])
        self.of_class(value, kind.kind)
        if kind.kind == "float":
            return self.load(value, self.at.number, MEMORY[dtype])
        if kind.kind == "bool":
            return self.builder.zext(self.builder.icmp_unsigned("==", value, self.object("True")), MEMORY[dtype])
        slot = self.builder.slot(INT32)
        found = self.call("PyLong_AsLongLongAndOverflow", INT64, value, slot)
        self.require(self.builder.icmp_signed("==", self.builder.load(slot), INT32(0)))
        return found

    # --- the sweep ---------------------------------------------------------------------------
    def new_array(self, b: Buffer) -> Any:
        """An array; from here on, failures give it back."""
        module = self.function.module
        shape = module.constant(module.unique("shape"), ir.array(INT64, len(b.shape))(b.shape))
        dtype = self.object(f"{_NAMES[b.dtype]}.dtype")
        self.call("Py_IncRef", ir.VOID, dtype)                # the call below takes it
        array = self.made(self.call(
            "new_array", POINTER, self.object("ndarray"), dtype, INT32(len(b.shape)),
            self.builder.bitcast(shape, POINTER), NULL, NULL, INT32(0), NULL))
        self.owns(array)
        return array

    def owns(self, value: Any) -> None:
        before, here = self.failed, self.builder.block
        self.failed = self.function.append_basic_block("failed")
        self.builder.position_at_end(self.failed)
        self.call("Py_DecRef", ir.VOID, value)
        self.builder.branch(before)
        self.builder.position_at_end(here)

    def call_sweep(self, arguments: Sequence[Any]) -> Any:
        if estimated_time(self.program) < WORTH_RELEASING:
            return self.builder.call(self.sweep, arguments)
        thread = self.call("PyEval_SaveThread", POINTER)
        status = self.builder.call(self.sweep, arguments)
        self.call("PyEval_RestoreThread", ir.VOID, thread)
        return status

    # --- results -----------------------------------------------------------------------------
    def give(self, arrays: Sequence[Any], slots: Sequence[Any], outputs: Sequence[bool]) -> None:
        remaining, numbers = iter(arrays), iter(zip(slots, self.program.results, strict=True))
        if len(outputs) == 1:
            self.done(arrays[0] if outputs[0] else self.made(self.object_of(*next(numbers))))
        else:
            result = self.made(self.call("PyTuple_New", POINTER, INT64(len(outputs))))
            for place, is_array in enumerate(outputs):
                if is_array:
                    self.put(result, place, next(remaining))
            self.failed = self.nothing
            self.owns(result)
            for place, is_array in enumerate(outputs):
                if not is_array:
                    self.put(result, place, self.made(self.object_of(*next(numbers))))
            self.done(result)

    def done(self, result: Any) -> None:
        """Count a hit and return."""
        hits = self.load(self.holder, self.at.table + WORD * CELLS["hits"], INT64.as_pointer())
        self.builder.store(self.builder.add(self.builder.load(hits), INT64(1)), hits)
        self.builder.ret(result)

    def put(self, result: Any, place: int, value: Any) -> None:
        self.call("PyTuple_SetItem", INT32, result, INT64(place), value)

    def object_of(self, slot: Any, result: Expr) -> Any:
        """A number as Python's, or null."""
        value, dtype = self.builder.load(slot), result.dtype
        if dtype in ("f8", "f4"):
            wide = value if dtype == "f8" else self.builder.fpext(value, MEMORY["f8"])
            return self.call("PyFloat_FromDouble", POINTER, wide)
        if dtype == "b1":
            truth = self.builder.icmp_unsigned("!=", value, value.type(0))
            return self.call("PyBool_FromLong", POINTER, self.builder.zext(truth, INT64))
        signed = dtype[0] == "i"
        if value.type != INT64:
            value = self.builder.sext(value, INT64) if signed else self.builder.zext(value, INT64)
        return self.call("PyLong_FromLongLong" if signed else "PyLong_FromUnsignedLongLong", POINTER, value)
