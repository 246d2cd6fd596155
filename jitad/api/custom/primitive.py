"""Derivative rules of the user's own: `primitive`, `custom_gradient`, `stop_gradient`, `checkpoint`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.api.custom.calls import (
    CustomCall,
    Recordable,
    as_it_is,
    copied,
    handed,
    is_number,
    like,
    line_of_code,
    shares,
)
from jitad.api.custom.opaque import call_opaque
from jitad.api.custom.rules import CustomRules, Outcome, with_rules
from jitad.call.pickling import restores
from jitad.errors import ArgumentTypeError, OutputError
from jitad.primitives.core import zeros_like
from jitad.primitives.scan import loop
from jitad.tape.builder import Value
from jitad.tape.types import Aval
from jitad.trace.dispatch import plain
from jitad.trace.loop_body import Body
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.recorder import Recorder, as_output
from jitad.trace.where import user_line

__all__ = ["checkpoint", "custom_gradient", "primitive", "stop_gradient"]


def primitive(f: Callable[..., Any] | None = None, *, vjp: Callable[..., Any] | None = None,
              jvp: Callable[..., Any] | None = None, opaque: bool = False) -> Any:
    """A function with derivative rules of your own; a decorator with or without arguments.

    Outside of compiled code it is the function itself. In compiled code its operations are recorded and fused like
    any others, and derivatives with respect to its inputs come from the rules, which are plain NumPy too: they are
    recorded, fused and differentiated again, to any order. One rule is enough for both modes.

    Parameters
    ----------
    f
        Takes its inputs by position: arrays, numbers, trees of them, or anything else, which is data. Returns an array
        or a number, or a tuple (any tree) of them. What it captures besides, it is differentiated by as ever.
    vjp
        ``vjp(ct, y, *inputs)``: from `ct`, the cotangent of the result `y` (of its structure; None in the place of
        what is no float), the cotangent of each input, of its shape, in a tuple; a single one for one input. None
        stands for zero. It may be nonlinear in `ct`, as for clipped gradients, if it need serve reverse mode only.
    jvp
        ``jvp(tangents, y, *inputs)``: the tangent of `y`, from a tuple with the tangent of each input, of its shape.
        It is zero for an input that does not change, None for what is no float. Must be linear in the tangents.
    opaque
        The function is not recorded but called, by compiled code too: a solver, a table, anything in Python. It gets
        copies of its inputs, which cannot be written, and the GIL for as long as it runs. The structure, shapes and
        dtypes of its result must always be what they were at the first call. What it raises comes out of the gradient.
        It must be pure: how often it is called is not defined. Code with opaque functions is not kept on the disk.
        CustomRules are recorded all the same; a rule that is itself to be called is an opaque primitive as well:
        ``vjp=jitad.primitive(rule, opaque=True)``.

    Raises
    ------
    ArgumentTypeError
        If neither a rule nor ``opaque=True`` is given.
    OutputError
        When a rule returns cotangents of the wrong number or shape, or an opaque function a result of another shape
        than at first.
    UnsupportedOperationError
        When a derivative is asked of an opaque function without rules, or in forward mode of a `vjp` that is not
        linear.

    Examples
    --------
    >>> import numpy as np
    >>> from jitad import jit_grad, primitive
    >>> @primitive(vjp=lambda ct, y, x: ct * (1 - np.exp(-y)))
    ... def softplus(x):
    ...     return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)
    >>> jit_grad(lambda x: np.sum(softplus(x)))(np.array([0.0, 800.0]))
    array([0.5, 1. ])

    A table, looked up by Python:

    >>> grid = np.linspace(0.0, 3.0, 301)
    >>> @primitive(opaque=True, vjp=lambda ct, y, x: ct * np.cos(x))
    ... def table(x):
    ...     return np.interp(x, grid, np.sin(grid))
    >>> round(jit_grad(lambda x: table(x) ** 2)(1.0), 3)
    0.909
    """
    if f is None:
        return lambda function: Custom(function, vjp, jvp, opaque)
    return Custom(f, vjp, jvp, opaque)


@restores("primitive")
class Custom(Recordable):
    """A function with rules; made by `primitive`."""

    def __init__(self, function: Callable[..., Any], vjp: Callable[..., Any] | None, jvp: Callable[..., Any] | None,
                 opaque: bool) -> None:
        super().__init__(function, "primitive")
        if vjp is None and jvp is None and not opaque:
            raise ArgumentTypeError(f"jitad.primitive needs a vjp= or jvp= rule for `{self.__name__}`, or opaque=True "
                                    f"(at {user_line()})")
        for rule in (vjp, jvp):
            if rule is not None and not callable(rule):
                raise ArgumentTypeError(f"a rule of `{self.__name__}` must be a function, not a "
                                        f"{type(rule).__name__} (at {user_line()})")
        self.vjp, self.jvp, self.opaque = vjp, jvp, bool(opaque)
        self.__jitad_transform__ = ("primitive", vjp is not None, jvp is not None, self.opaque)

    @property
    def settings(self) -> tuple[Any, ...]:
        return self.vjp, self.jvp, self.opaque

    def on_tape(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = self.__wrapped__
        function = as_it_is(view, function, "__wrapped__") if self.opaque else view.copy_of(function, "__wrapped__")
        call = CustomCall.of(view.recorder, function, args, kwargs, self.__name__)
        ruled = self.vjp is not None or self.jvp is not None
        if not call.places or (not self.opaque and not call.moving):
            return function(*call.inputs())
        if not ruled or not call.moving:
            return call_opaque(call, function, stop=False)
        if self.opaque:
            result = call_opaque(call, function, stop=True)
        else:
            result = function(*call.inputs(call.stopped()))
        rules = CustomRules(call, Outcome(call.recorder, result))
        inputs = call.inputs(call.protected())
        if self.vjp is not None:
            vjp = view.copy_of(self.vjp, "vjp")
            rules.record_vjp(lambda ct, y: vjp(ct, y, *inputs), f"the vjp rule of `{self.__name__}`",
                             line_of_code(self.vjp))
        if self.jvp is not None:
            jvp = view.copy_of(self.jvp, "jvp")
            rules.record_jvp(lambda dots, y: jvp(dots, y, *inputs), f"the jvp rule of `{self.__name__}`",
                             line_of_code(self.jvp))
        return with_rules(rules)


def custom_gradient(f: Callable[..., Any]) -> Any:
    """A function that brings its own pullback: ``f(*inputs)`` returns ``(y, pullback)``.

    ``pullback(ct)`` gives the cotangent of each input, as a rule ``vjp(ct, y, *inputs)`` of `primitive` does, and may
    use what `f` has computed. Outside of compiled code the function gives `y` alone.

    Raises
    ------
    OutputError
        If `f` returns no such pair, or the pullback not one cotangent for each input.

    Examples
    --------
    >>> import numpy as np
    >>> from jitad import custom_gradient, jit_grad
    >>> @custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(x)
    ...     return np.log1p(e), lambda ct: ct * (1 - 1 / (1 + e))
    >>> jit_grad(log1pexp)(100.0)
    1.0
    """
    return CustomGradient(f, "custom_gradient")


@restores("custom_gradient")
class CustomGradient(Recordable):
    """A function with its pullback; made by `custom_gradient`."""

    def plainly(self, *args: Any, **kwargs: Any) -> Any:
        return self._pair(self.__wrapped__(*args, **kwargs))[0]

    def _pair(self, result: Any) -> tuple[Any, Any]:
        if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
            raise OutputError(f"`{self.__name__}` ({line_of_code(self.__wrapped__)}) must return (y, pullback) for "
                              "jitad.custom_gradient")
        return result

    def on_tape(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function, recorder = view.copy_of(self.__wrapped__, "__wrapped__"), view.recorder
        call = CustomCall.of(recorder, function, args, kwargs, self.__name__)
        given = {i: copied(recorder, call.leaves[i], slot=-2) for i in call.moving}
        result, pullback = self._pair(function(*call.inputs(given)))
        if not given:
            return result
        leaves, tree = leaves_of(result)
        leaves = [_without(recorder, plain(x), given) for x in leaves]
        rules = CustomRules(call, Outcome(recorder, unflatten(tree, leaves)))
        rules.record_vjp(lambda ct, y: pullback(ct), f"the pullback of `{self.__name__}`",
                         line_of_code(pullback))
        return with_rules(rules)


def _without(recorder: Recorder, value: Any, inputs: dict[int, Any]) -> Any:
    """The same value, computed of inputs that stop derivatives."""
    if not isinstance(value, Value):
        return value
    nodes, done = recorder.nodes, dict[int, int]()
    for x in inputs.values():
        done[x.number] = copied(recorder, Value(recorder, nodes[x.number].inputs[0]), stop=True).number
    depends, last = set(done), value.number
    for n in range(min(done), last + 1):
        if not depends.isdisjoint(nodes[n].inputs):
            depends.add(n)
    needed, stack = set(done), [last]
    while stack:
        n = stack.pop()
        if n in depends and n not in needed:
            needed.add(n)
            stack += nodes[n].inputs
    for n in sorted(needed - set(done)):
        node = nodes[n]
        done[n] = recorder.apply(node.prim, [done.get(i, i) for i in node.inputs], node.params, node.where)
    return like(recorder.value(done.get(last, last)), value)


def stop_gradient(x: Any) -> Any:
    """The same value, a constant to derivatives; of an array, a number, or a tree of them.

    Outside of compiled code this is `x` itself.

    >>> from jitad import jit_grad, stop_gradient
    >>> jit_grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    leaves, tree = leaves_of(x)
    given = [plain(leaf) for leaf in leaves]
    if not any(isinstance(leaf, Value) for leaf in given):
        return x
    return unflatten(tree, [copied(leaf.builder, leaf, stop=True) if isinstance(leaf, Value) else old   # type: ignore[arg-type]
                            for leaf, old in zip(given, leaves, strict=True)])


def checkpoint(f: Callable[..., Any]) -> Any:
    """The function with less memory in reverse: its intermediate values are not kept but computed again.

    Of a chain of such functions, a gradient keeps what they give to each other. It costs about one more run of `f`.
    In forward mode, and outside of compiled code, it changes nothing.

    >>> import numpy as np
    >>> from jitad import checkpoint, jit_grad
    >>> layer = checkpoint(lambda x: np.sin(np.exp(x)))
    >>> jit_grad(lambda x: np.sum(layer(layer(x))))(np.zeros(2)).round(3)
    array([-0.853, -0.853])
    """
    return Checkpoint(f, "checkpoint")


@restores("checkpoint")
class Checkpoint(Recordable):
    """A function that is computed again in reverse; made by `checkpoint`.

    On the tape it is a loop of one step, which optimisation takes for one that might do none, as `jitad.cond` makes
    them, and that saves nothing but what it reads.
    """

    def on_tape(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function, recorder = view.copy_of(self.__wrapped__, "__wrapped__"), view.recorder
        call = CustomCall.of(recorder, function, args, kwargs, self.__name__)
        fresh = {i: copied(recorder, call.leaves[i], slot=-3) for i in call.moving}
        since = len(recorder.nodes)
        leaves, tree = leaves_of(function(*call.inputs(fresh)))
        given = [plain(x) for x in leaves]
        places = [i for i, x in enumerate(given) if is_number(x)]
        values = [as_output(recorder, given[i], "result", user_line()) for i in places]
        with recorder.plain():
            values = [Value(recorder, v.number) for v in values]
            flag = recorder.lift(True)
            body = Body(recorder, 1)
            for v in (flag, *values):
                body.carry(Aval(v.shape, v.dtype), "result")
            tape, reads = body.close([body.carries[0], *values], since)
            starts = [flag, *(zeros_like(v) for v in values)]
            found = loop(recorder, tape, starts, [], reads, 1, until=True, recompute=True)[0][1:]
        for i, old, v in zip(places, values, found, strict=True):
            leaves[i] = copied(recorder, v) if shares(old) else handed(recorder, v, getattr(given[i], "weak", False))
        return unflatten(tree, leaves)
