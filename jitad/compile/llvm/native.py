"""Machine code of an LLVM module, by LLVM alone."""
from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import llvmlite
from llvmlite import binding

from jitad.compile.llvm.cython_special import register_named
from jitad.compile.llvm.ir import Module
from jitad.compile.llvm.symbols import named_in

VECTOR_WIDTH = 512             # bits to prefer where the processor has them (LLVM alone takes 256); 0: LLVM's choice

# Gathers of single loads: on AMD's processors, and on Intel's with the cure for Downfall, the instruction is slower.
NO_GATHER = ",+prefer-no-gather"

LINKED = 24 << 10              # bytes of pages that are not full, and of the linker's own tables, as measured

_T = TypeVar("_T")
_numbers = itertools.count()   # of libraries, whose names are never used twice


@dataclass(frozen=True)
class Native:
    """Compiled code; it lives as long as this handle. `seconds`: parsing, optimising, generating code.
    `code` is the object file, which `load_code` takes in another process; `held` has other code that it calls."""

    library: Any
    seconds: tuple[float, float, float]
    code: bytes = b""
    held: tuple[Any, ...] = ()
    _found: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def address(self, name: str) -> int:
        """Where the function `name` begins; `KeyError` if there is none."""
        found = self._found.get(name)
        if found is None:
            try:
                found = self._found[name] = _linker().lookup(self.library.name, name)
            except RuntimeError:
                raise KeyError(name) from None
        return int(found[name])

    @property
    def nbytes(self) -> int:
        """What is held: the object file, its code in memory, and what the linker keeps of a library. Not what is
        `held` besides, which others call too."""
        return 2 * len(self.code) + LINKED

    def function(self, name: str, *kinds: Any) -> Any:
        """`name` as a function of ctypes that returns an int64; it runs without the GIL."""
        return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(self.address(name))


@cache
def processor() -> tuple[str, str]:
    """The processor of this machine and its features, as LLVM names them."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def llvm() -> tuple[str, ...]:
    """The versions of LLVM and of its binding."""
    return llvmlite.__version__, *map(str, binding.llvm_version_info)


def target_machine() -> Any:
    """The machine of this process. One for each module: they are not to be shared between threads."""
    cpu, features = processor()
    if "+avx2" in features:
        features += NO_GATHER
    return binding.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def optimise(module: Any, machine: Any, level: int = 2) -> None:
    """LLVM's default pipeline, with loop vectorisation. Not with packing of single operations into vectors (SLP): that
    of LLVM 22 drops lanes where many are transposed, for AVX-512, and what it gains elsewhere is within noise."""
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = level > 1
    options.slp_vectorization = False
    options.loop_interleaving = options.loop_unrolling = level > 0
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _parsed(text: str, machine: Any) -> Any:
    module = binding.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    return module


def compile_module(source: str | Module, level: int = 2, vector_width: int = VECTOR_WIDTH,
                   shown: list[str] | None = None) -> Native:
    """Compile for this processor. Symbols outside of the module are looked up in the process. What code is made of, in
    LLVM's language, is appended to `shown`."""
    start = time.perf_counter()
    machine = target_machine()
    text = str(source)
    if vector_width and "+avx512f" in processor()[1]:
        text += preferring(vector_width)
    module = _parsed(text, machine)
    parsed = time.perf_counter()
    optimise(module, machine, level)
    if shown is not None:
        shown.append(str(module))
    optimised = time.perf_counter()
    code = machine.emit_object(module)
    return Native(_linked(code), (parsed - start, optimised - parsed, time.perf_counter() - optimised), code,
                  tuple(source.held) if isinstance(source, Module) else ())


def object_file(source: Module, others: Mapping[str, str]) -> bytes:
    """An object file for this processor that any program may be linked with: its code may lie at any place. What the
    module calls of the `others`, functions by name in LLVM's language, is in it, for nobody else."""
    cpu, features = processor()
    machine = binding.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic")
    module = _parsed(str(source) + preferring(VECTOR_WIDTH), machine)
    if others.keys() & source.globals.keys():
        for text in set(others.values()):
            module.link_in(_parsed(text, machine))
        for name in others:
            module.get_function(name).linkage = "internal"
    optimise(module, machine)
    return bytes(machine.emit_object(module))


def once(make: Callable[[], _T]) -> Callable[[], _T]:
    """`make`, whose result there is one of in the process, also where several threads ask first at the same time."""
    made: dict[None, _T] = {}

    def get() -> _T:
        return made[None] if made else made.setdefault(None, make())
    return get


@once
def _linker() -> Any:
    """One for the process. Each object file is a library of its own in it and is unloaded with its handle; an engine
    for each would hold a machine with tables of 0.9 MB."""
    return binding.create_lljit_compiler(target_machine(), suppress_errors=True)


def _linked(code: bytes) -> Any:
    """The library that an object file becomes in this process."""
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name, address in named_in(code).items():
        builder.import_symbol(name, address)
    return builder.link(_linker(), f"kernel {next(_numbers)}")


def load_code(code: bytes) -> Native:
    """The object file of a `Native`, linked into this process, which must have the same processor. What the code
    calls by name (libm, and the routines after `register_symbols`) must be there; SciPy's functions are looked up."""
    start = time.perf_counter()
    register_named(code)
    library = _linked(code)
    return Native(library, (0.0, 0.0, time.perf_counter() - start), code)


def preferring(bits: int) -> str:
    """The attributes of kernels: vectors of `bits` are preferred, on a stack where each lies in one cache line. Else
    what does not fit into registers is read twice as slowly, depending on the caller. Not of the routines
    (``jitad.solve...``): their transposes take seconds to compile for wide vectors."""
    return f'\nattributes #0 = {{ "prefer-vector-width"="{bits}" "stackrealign" }}\n'
