"""`CompiledTape`: one signature of one function, held in the hand."""
from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from jitad.call.build.specialization import Specialization
from jitad.call.build.specialize import complete
from jitad.call.family import FunctionFamily
from jitad.call.pickling import restored, restores
from jitad.call.request.request import Arguments
from jitad.errors import SignatureError, UnsupportedOperationError
from jitad.tape.display import Text
from jitad.tape.tape import Tape
from jitad.trace.leaves import is_complex

# How a tape leaves the process: what `jitad.export` does for "graph", "library", "save" and "onnx".
EXPORTS: dict[str, Callable[..., Any]] = {}


class CompiledTape:
    """The tape and machine code for one signature. Made by ``g.compile(*args)``.

    A call with other shapes, dtypes or captured values warns with `TapeMismatchWarning`, compiles,
    and keeps the new tape beside the old one in the cache. For another function of the same signature there is only
    `compile` again: a `CompiledTape` is bound to its own.

    It pickles as the function together with the arguments that it was made for, since which way the code takes may
    depend on their values; where it is read, it is compiled again, or found on the disk.

    >>> import numpy as np, jitad
    >>> compiled = jitad.jit_grad(lambda x: np.sum(x * x)).compile(np.zeros(2))
    >>> x = np.array([1.0, 2.0])
    >>> compiled(x), compiled.step(x), compiled.interpret(x)           # as it is, as plain Python, by NumPy
    (array([2., 4.]), array([2., 4.]), array([2., 4.]))
    >>> compiled.tier, compiled.tape.names, compiled.source_file.suffix, len(compiled.signature.leaves)
    ('kernel', ('x',), '.py', 1)
    >>> compiled.kernel(x)                                             # with shapes and types checked, and no more
    array([2., 4.])
    >>> "grad_x[i] = x[i] * 2.0" in compiled.source, compiled.graph().dot[:7]
    (True, 'digraph')
    >>> compiled.cfunc.address > 0                                     # a C function of x alone
    True
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "squares")
    ...     compiled.save(path)
    ...     compiled.to_onnx(path.with_suffix(".onnx"))
    ...     jitad.load(path)(x), compiled.export(path).header.name     # `export` is for programs in C
    (array([2., 4.]), 'squares.h')
    """

    def __init__(self, transformed: FunctionFamily, specialization: Specialization, arguments: Arguments):
        self.function, self._specialization, self._arguments = transformed, specialization, arguments
        self.__wrapped__, self.__jitad_transform__ = transformed.__wrapped__, transformed.__jitad_transform__
        self.kernel                                       # noqa: B018  compiles

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __jitad_nested__(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by recorded code: as the function that it was made from."""
        return self.function.__jitad_nested__(view, args, kwargs)

    @property
    def tape(self) -> Tape:
        """The optimised tape. What runs on the tape machine has none until it is asked for, which takes its time."""
        complete(self._specialization, self.function.subject.target, self._arguments)
        return self._specialization.tape

    @property
    def tier(self) -> str:
        """What runs: ``"kernel"``, compiled code, or ``"machine"``, an interpreter of op-codes for what is too long and
        too irregular to compile."""
        return self._kernel.tier

    @property
    def signature(self) -> Any:
        """What of the arguments the tape depends on."""
        return self._specialization.signature

    @property
    def source(self) -> Text:
        """The generated code as Python source; of what runs on the tape machine, a list of its op-codes."""
        return Text(self._kernel.source if self.tier == "machine" else self._printable.source)

    @property
    def source_file(self) -> Path:
        """The generated code in a file of its own, which lives as long as the process.

        Raises `UnsupportedOperationError` for what runs on the tape machine, as `step` does.
        """
        from jitad.compile.emit.source import write

        self._require_kernel()
        return write(self._printable.source)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """What a call gives, by the generated code run as plain Python: set a breakpoint in `source_file`.

        Raises `SignatureError` for arguments of another signature, and where the kernel would stop.
        """
        from jitad.compile.emit.source import run

        self._require_kernel()
        inputs = self._inputs_like(args, kwargs)
        status, outputs = run(self.source_file, self._printable.program, self.tape, inputs)
        if status:
            raise SignatureError(
                f"the generated code stopped with status {status}: these arguments are not served by it")
        return self._specialization.result.build(outputs[0] if len(outputs) == 1 else outputs)

    def _inputs_like(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The flat inputs for arguments of the tape's own signature."""
        arguments = self.function._arguments(args, kwargs)
        if arguments.signature != self._specialization.signature:
            raise SignatureError("the arguments have another signature than the compiled tape")
        return [*arguments.inputs, *self._inputs()[len(self._arguments.inputs):]]

    def _inputs(self) -> list[Any]:
        captured = self._specialization.captured(self.function.subject.target)
        if captured is None:
            raise SignatureError(f"what `{self.function.__name__}` captures has changed; compile again")
        return [*self._arguments.inputs, *captured]

    @cached_property
    def _kernel(self) -> Any:
        return self._specialization.kernel(self._inputs(), quick=False)

    @cached_property
    def _printable(self) -> Any:
        """The kernel with its program, which one from the disk does not have."""
        from jitad.compile.entry.kernel import Kernel

        return self._kernel if isinstance(self._kernel, Kernel) else Kernel(
            self.tape, self._kernel.kinds, parallel=self._specialization.request.parallel)

    @property
    def kernel(self) -> Any:
        """The bare compiled function over the flat inputs: no checks but shapes and types."""
        return self._kernel.call

    def interpret(self, *args: Any, **kwargs: Any) -> Any:
        """What a call gives, by the reference interpreter: the same tape, one NumPy call for each node.

        Raises `SignatureError` for arguments of another signature.
        """
        inputs = self._inputs_like(args, kwargs)
        complete(self._specialization, self.function.subject.target, self._arguments)
        return self._specialization.interpret(inputs)

    def _require_kernel(self) -> None:
        if self.tier == "machine":
            raise UnsupportedOperationError(
                f"`{self.function.__name__}` runs on the tape machine and has no generated code; "
                'compile it with g.compile(*args, tier="kernel")')

    @cached_property
    def cfunc(self) -> Any:
        """The value and gradient as a C function for samplers, everything but the vector bound.

        ``.address`` of ``int64 f(uint64 dim, double* x, double* grad, double* logp, void* data)`` and
        ``.data``, the pointer to pass as `data`. Status 0: fine; 1: value or gradient not finite, a
        failed factorization, or the function raised `ValueError` or `ArithmeticError` at this point; -1: `dim`
        is not the vector's length; -2: it raised another error, which is printed. Bound arrays and captured values are
        copied as they are now, and what depends on them alone is computed once: later changes are not seen. The
        object keeps alive what the function needs. It may run in several threads at once and takes no lock and no
        GIL, but for points that take another way through the user's branches: those go through Python, as all points
        do for what runs on the tape machine (there the sweeps run without the GIL).

        Of a `batch`, `x` and `grad` are the whole arrays, `dim` their size, and `logp` has a value for each example;
        status 1 says that something of it is not finite.

        Raises `SignatureError` unless the differentiated argument is one float64 vector, and the value a float64.
        """
        from jitad.call.bound import c_function

        return c_function(self.function, self._arguments)

    def graph(self) -> Any:
        """The tape as a `TapeGraph`: ``.dot`` for Graphviz, ``.svg``; a notebook draws it."""
        return EXPORTS["graph"](self.tape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tape to a file, from which `jitad.load` makes it callable again, also on another machine.

        The file is data alone: JSON, with the constants and the captured values as arrays. It does not have the
        function: what takes another way through its branches cannot be served by it.

        Raises `TapeFileError` for what cannot be in a file (Python code that the tape calls, containers of other
        kinds than dicts, lists and tuples, named tuples and dataclasses), `OSError` where it cannot be written.
        """
        EXPORTS["save"](self, path)

    def export(self, path: str | os.PathLike[str]) -> Any:
        """Write a density of one float64 vector, everything else bound as for `cfunc`, as ``path.h`` and ``path.o``, a
        C header and an object file for this processor; where a C compiler is at hand (``$CC``, ``cc``), also
        ``path.so``, with BridgeStan's C interface: ``bridgestan.StanModel("path.so")`` needs neither jitad nor Stan.
        Returns the three paths as `header`, `object` and `library`.

        For a posterior with constraints there is `jitad.integrations.bridgestan`.

        Raises `SignatureError` where `cfunc` does, `UnsupportedOperationError` for what takes different ways through
        its branches, and what calls Python, SciPy or parts of LAPACK.
        """
        from jitad.call.bound import bound_density, tape_and_inputs

        bound, vector = bound_density(self.function, self._arguments)
        place: Any = self.function.subject.request.argnums
        name = self.function.subject.parameters.names(len(self._arguments.args))[place]
        return EXPORTS["library"](self.function.__name__, tape_and_inputs(bound, vector), name, path)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the tape, forward and reverse, as an ONNX model, whose outputs are ``value`` and ``gradient``.

        A gradient with several leaves has an output for each, ``gradient_p_beta``; other results have the labels of
        the tape. Inputs have the names of the arguments' leaves; captured values are constants, as they are now.
        Where the inputs take another way through the function's branches than the tape, the outputs are NaN.

        Needs the package onnx. Raises `UnsupportedOperationError` for an operation that ONNX has no counterpart of.
        """
        if any(map(is_complex, self._arguments.leaves)) or any(
                form.startswith("complex") for form, _ in self._specialization.result.forms):
            raise UnsupportedOperationError(f"`{self.function.__name__}` has complex arguments or results, which a "
                                            "model cannot have; pass and return real and imaginary parts")
        if self.function.subject.request.without_value:
            with_value = self.function.value_and_grad
            return with_value.compile(*self._arguments.args, **self._arguments.kwargs).to_onnx(path)
        bound = dict(enumerate(self._inputs()[len(self._arguments.inputs):], len(self._arguments.inputs)))
        EXPORTS["onnx"](self.tape, self.function.__name__, bound, path)

    def __reduce__(self) -> Any:
        return restored, ("compiled", self.function, self._arguments.args, self._arguments.kwargs)

    def __repr__(self) -> str:
        leaves = zip(self._specialization.names, self.signature.leaves, strict=True)
        names = ", ".join(f"{name}: {leaf}" for name, leaf in leaves)
        size = f"{self._kernel.operations} operations on the tape machine" if self.tier == "machine" else (
            f"{len(self.tape)} nodes")
        return f"<CompiledTape of {self.function.__name__} ({names}), {size}>"


@restores("compiled")
def compiled_for(transformed: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CompiledTape:
    """What a pickled `CompiledTape` becomes."""
    return transformed.compile(*args, **kwargs)
