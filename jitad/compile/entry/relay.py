"""What Python code that a kernel calls has raised comes out of the call of the kernel."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.compile.entry.kernel_errors import StatusMiss, marked
from jitad.compile.routines.opaque import taken
from jitad.tape.tape import Tape


def relaying(call: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    """The kernel of `tape`, which is kept alive, such that exceptions of the Python code come out of it."""
    def relay(*values: Any) -> Any:
        keep = tape                                                # noqa: F841  as long as the call lasts
        try:
            return call(*values)
        except StatusMiss:
            error = taken()
            if error is None:
                raise
        raise marked(error)
    return relay


def raising(otherwise: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    """`otherwise`, to which a kernel of `tape` turns when it stops, such that it raises what Python code has raised."""
    def relay(*args: Any, **kwargs: Any) -> Any:
        keep = tape                                                # noqa: F841
        error = taken()
        if error is not None:
            raise marked(error)
        return otherwise(*args, **kwargs)
    return relay
