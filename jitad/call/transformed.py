"""What the decorators return: a callable that compiles on the first call and remembers."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from jitad.call.build.specialization import Specialization
from jitad.call.build.specialize import complete
from jitad.call.compiled import CompiledTape
from jitad.call.family import FunctionFamily, restored_as
from jitad.call.nonfinite import require_finite
from jitad.call.pickling import restores
from jitad.call.request.request import Arguments, Request, checked_tier
from jitad.compile.llvm.fork_guard import gate
from jitad.tape.display import Text


class Transformed(FunctionFamily):
    """A function together with what is asked of it. Made by `jit_grad`, `jit`, `jacobian`, `hessian` and their like.

    Calling it gives that; `value` and `value_and_grad` ask for more of the same function. What a call goes through is
    told in `jitad.call.ladder`.

    >>> import numpy as np, jitad
    >>> g = jitad.jit_grad(lambda x, y: np.sum((x - y) ** 2))
    >>> x, y = np.array([1.0, 2.0]), np.array([0.5, 0.0])
    >>> g(x, y), g.value(x, y), g.value_and_grad(x, y)
    (array([1., 4.]), 4.25, (4.25, array([1., 4.])))
    >>> bound = g.bind(y)
    >>> bound(x)
    array([1., 4.])
    >>> "grad_x[i] = (x[i] - y[i]) * 2.0" in g.source(x, y)
    True
    >>> g.compile(x, y).tier
    'kernel'
    """

    def asked(self, request: Request) -> Transformed:
        """Something of what this gives: a derivative of the derivative."""
        known = self.siblings.get(request)
        return known or self.siblings.setdefault(                            # type: ignore[return-value]
            request, Transformed(self, request, self.subject.settings))

    def compile(self, /, *args: Any, **kwargs: Any) -> CompiledTape:
        """The `CompiledTape` for arguments like these; on another tier with ``tier="kernel"`` or ``tier="machine"``
        (unless the function itself has a parameter of that name).

        Raises what a call would raise; `ArgumentTypeError` for another tier. Computes nothing. Where a call is served
        before its kernel is there, this waits for the kernel.
        """
        if "tier" in kwargs and "tier" not in self.subject.parameters.signature.parameters:
            return self._on_tier(kwargs.pop("tier")).compile(*args, **kwargs)
        arguments = self.subject.arguments(args, kwargs)
        with gate:
            specialization = self.specialized(arguments)
            if specialization.machine is None:
                complete(specialization, self.subject.target, arguments)
        return CompiledTape(self, specialization, arguments)

    def _on_tier(self, tier: str | None) -> Any:
        """The same on a tier."""
        asked = self.subject.request
        request = replace(asked, tier=checked_tier(tier))
        return self if request == asked else self.related(request.tier, request)

    def bind(self, /, *args: Any, **kwargs: Any) -> Any:
        """The function of its differentiated arguments alone (for `jit`, of the first), with these for the others.

        A `BoundFunction`, which is called at the cost of the bare kernel. The data are copied; what depends on them
        alone is computed once.
        """
        from jitad.call.bound import bind

        return bind(self, args, kwargs)

    def tape(self, /, *args: Any, **kwargs: Any) -> Text:
        """The optimised tape for arguments like these, as text, which a notebook shows in colours.

        >>> import numpy as np, jitad
        >>> jitad.jit_grad(lambda x: np.sum(x * x)).tape(np.zeros(2))
        %0 : f8[2] = input x ...
        ...
        return grad_x=%3
        """
        return self.with_tape(self.subject.arguments(args, kwargs)).tape.page()

    def source(self, /, *args: Any, **kwargs: Any) -> Text:
        """The generated code for arguments like these, as Python source."""
        return self.compile(*args, **kwargs).source

    def profile(self, /, *args: Any, **kwargs: Any) -> Any:
        """Where the time of a call with these arguments goes: a `Profile`, which shows itself as tables, and in a
        notebook as your code, each line coloured by its time and its arrays in the forward and the reverse sweep.

        The function is compiled once more, with a clock between the parts of its kernel, for one core, and run for a
        third of a second; what calls use is not touched. Raises what a call raises, and `UnsupportedOperationError`
        for what runs on the tape machine.

        >>> import numpy as np, jitad
        >>> found = jitad.jit_grad(lambda x: np.sum(np.exp(x) * x)).profile(np.zeros(1000))
        >>> found
        <lambda>: ... in the kernel, ... a call from Python (... runs on one core)
        ...
        >>> [part.kind for part in found.parts], found.seconds == sum(part.seconds for part in found.parts)
        (['loop'], True)
        """
        from jitad.call.profile.run import profile

        return profile(self, args, kwargs)

    def check_finite(self, /, *args: Any, **kwargs: Any) -> None:
        """Raise `NonFiniteError` if value or gradient for these arguments has a NaN or an infinity.

        The error names the first operation that made one of finite numbers, with your line, or the argument that had
        it from the start. See `jitad.debug_nonfinite`.

        >>> import numpy as np, jitad
        >>> try:
        ...     jitad.jit_grad(lambda x: np.sum(np.log(x))).check_finite(np.array([1.0, np.inf]))
        ... except jitad.NonFiniteError as error:
        ...     print(error)
        the value of ... Argument `x` is itself inf at [1]; pass finite values
        """
        asked = self.value_and_grad if self.subject.request.without_value else self
        require_finite(asked, asked(*args, **kwargs), args, kwargs)

    def with_tape(self, arguments: Arguments) -> Specialization:
        """The specialization for these arguments, with its tape."""
        with gate:
            specialization = self.specialized(arguments)
            complete(specialization, self.subject.target, arguments)
        return specialization

    def __repr__(self) -> str:
        return f"<jitad {self.subject.request.what} of {self.__qualname__}>"


restored_as("function", Transformed)
restores("tier")(Transformed._on_tier)


@restores("bound")
def _bound(*parts: Any) -> Any:
    from jitad.call.bound import BoundFunction

    return BoundFunction(*parts)
