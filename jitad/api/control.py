"""Control flow that says so: `scan`, `fori_loop`, `while_loop` and `cond`, with the signatures of JAX.

Inside a function that jitad records, the body is recorded once and becomes a loop of the compiled code, whatever
its length. Outside, it is an ordinary Python loop. Plain Python loops work too; these are for those who know that
theirs is one.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.errors import ConcretizationError
from jitad.primitives.core import select, zeros_like
from jitad.primitives.scan import loop, loop_in_chunks
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Value
from jitad.tape.evaluate import evaluate
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Aval, Node, builder_of
from jitad.trace.dispatch import plain
from jitad.trace.leaves import is_dynamic, refusal
from jitad.trace.loop_body import Body, fitted
from jitad.trace.pytree import TreeDef, flatten, leaves_of, unflatten
from jitad.trace.recorder import Recorder, current
from jitad.trace.where import user_line

__all__ = ["cond", "fori_loop", "scan", "while_loop"]

ENDLESS = 1 << 62        # steps that no loop makes
COUNTED = 100_000        # steps of a loop that are counted while it is recorded
CHEAP = 200              # cost up to which both branches are computed, if they cannot fail


def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None,
         reverse: bool = False, checkpoint: bool = False) -> tuple[Any, Any]:
    """Carry a value along the leading axis of arrays, and stack what each step gives.

    Parameters
    ----------
    f
        ``f(carry, x) -> (carry, y)``, called for each element `x` along the leading axis of `xs`.
    init
        The first carry: an array, a number, or a tree of them, whose structure and shapes stay.
    xs
        An array or a tree of arrays of equal length; None if there is nothing to walk.
    length
        The number of steps, needed if `xs` is None.
    reverse
        Walk from the last element to the first. Results are stacked in the places of their elements all the same.
    checkpoint
        Let derivatives save little of what the steps compute, and run them again: memory that grows with the
        logarithm of the length, for about twice the time.

    Returns
    -------
    carry, ys
        The carry after the last step, and the results stacked along a new leading axis (None where `f` gives None).

    Examples
    --------
    >>> import numpy as np
    >>> total, before = scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> float(total), before
    (6.0, array([0., 1., 3.]))
    """
    leaves, paths, tree = flatten(xs, "xs")
    steps = _length(leaves, paths, length)
    recorder = _recording(init, leaves)
    if recorder is None:
        return _run(f, init, leaves, tree, steps, reverse)
    walked = [None if x is None else _lifted(recorder, x, path) for x, path in zip(leaves, paths, strict=True)]

    def step(body: Body, carry: Any) -> tuple[Any, Any]:
        elements = [None if x is None else body.element(x, path) for x, path in zip(walked, paths, strict=True)]
        return _pair(f(carry, unflatten(tree, elements)))
    return _recorded(recorder, step, init, steps, reverse, checkpoint=checkpoint)


def fori_loop(lower: int, upper: int, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """``for i in range(lower, upper): val = body_fun(i, val)``; returns `val`.

    `i` may be used as an index: ``x[i - 1]`` walks along `x`.

    >>> fori_loop(1, 5, lambda i, value: value * i, 1.0)
    24.0
    """
    lower, upper = _bound(lower, "lower"), _bound(upper, "upper")
    recorder = _recording(init_val, [])
    if recorder is None:
        for i in range(lower, upper):
            init_val = body_fun(i, init_val)
        return init_val

    def step(body: Body, carry: Any) -> tuple[Any, Any]:
        i = body.count("i")
        return body_fun(i + lower if lower else i, carry), None
    return _recorded(recorder, step, init_val, max(upper - lower, 0), False)[0]


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """``while cond_fun(val): val = body_fun(val)``; returns `val`.

    How many steps there are may depend on the data. For derivatives in reverse there is memory for four times as many
    as the recorded call makes, or more; where a call needs more, it is compiled again. Beyond 100,000 steps, and in the
    body of another loop, derivatives are for forward mode (jvp), which `UnsupportedOperationError` says.

    >>> while_loop(lambda x: x < 100, lambda x: x * 2, 3)
    192
    """
    recorder = _recording(init_val, [])
    if recorder is None:
        while cond_fun(init_val):
            init_val = body_fun(init_val)
        return init_val

    def step(body: Body, carry: Any) -> tuple[Any, Any]:
        after = body_fun(carry[1])
        return (_truth(recorder, cond_fun(after)), after), None
    start = (_truth(recorder, cond_fun(init_val)), init_val)
    return _recorded(recorder, step, start, ENDLESS, False, until=True)[0][1]


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """``true_fun(*operands) if pred else false_fun(*operands)``.

    Inside of a recording only the branch that is taken is computed, unless both are cheap and cannot fail. The
    branches give results of one structure and of equal shapes.

    >>> cond(2 > 1, lambda x: x + 1, lambda x: x - 1, 10)
    11
    """
    if not isinstance(pred, Value):
        return true_fun(*operands) if pred else false_fun(*operands)
    recorder: Any = pred.builder
    since = len(recorder.nodes)
    with recorder.inside():                              # what a branch does may not happen
        branches = [leaves_of(f(*operands)) for f in (true_fun, false_fun)]
    tree = branches[0][1]
    if tree != branches[1][1]:
        raise TypeError("the branches of cond must give results of one structure")
    yes, no = ([_lifted(recorder, x, "a result of cond") for x in leaves] for leaves, _ in branches)
    with recorder.plain():
        go = _truth(recorder, pred)
        for a, b in zip(yes, no, strict=True):
            if a.shape != b.shape:
                raise TypeError(f"the branches of cond give results of shapes {a.shape} and {b.shape} (at "
                                f"{user_line()}); make them equal with np.broadcast_to")
        avals = [_settled(a.aval, b, "a result of cond") for a, b in zip(yes, no, strict=True)]
        yes, no = ([fitted(v, a, "a result of cond") for v, a in zip(vs, avals, strict=True)]      # type: ignore[arg-type]
                   for vs in (yes, no))
        if _cheap(recorder.nodes, since, [*yes, *no]):
            results = [select(broadcast_to(go, v.shape), v, w) for v, w in zip(yes, no, strict=True)]
        else:
            results = [zeros_like(v) for v in yes]
            for flag, values in ((go, yes), (TABLE["logical_not"](go), no)):
                body = Body(recorder, 1)
                for number, v in enumerate([flag, *values]):
                    body.carry(Aval(v.shape, v.dtype), f"result{number}")
                tape, invariants = body.close([body.carries[0], *values], since)
                results = loop(recorder, tape, [flag, *results], [], invariants, 1, until=True)[0][1:]
    return unflatten(tree, [_handed(recorder, v, a.weak)                                              # type: ignore[union-attr]
                            for v, a in zip(results, avals, strict=True)])


def _cheap(nodes: Sequence[Node], since: int, results: list[Value]) -> bool:
    """Whether what these need beyond the nodes before `since` costs little and cannot fail."""
    seen: set[int] = set()
    stack = [v.number for v in results]
    cost = 0
    while stack:
        number = stack.pop()
        if number < since or number in seen:
            continue
        seen.add(number)
        node = nodes[number]
        cost += node.prim.cost * node.aval.size
        if node.can_fail or cost > CHEAP:
            return False
        stack += node.inputs
    return True


def _truth(recorder: Recorder, value: Any) -> Value:
    value = _lifted(recorder, value, "a condition")
    if value.shape:
        raise TypeError(f"a condition must be a single truth value, not an array of shape {value.shape}")
    return value if value.dtype == bool else TABLE["ne"](value, 0)


def _bound(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except ConcretizationError as error:
        raise ConcretizationError(
            f"fori_loop needs its bound `{name}` before the compiled function runs; {error}") from None


# --- outside of a recording --------------------------------------------------------------------

def _recording(init: Any, leaves: Sequence[Any]) -> Recorder | None:
    recorder = current()
    if recorder is not None:
        return recorder
    traced = builder_of([*leaves_of(init)[0], *leaves])
    return traced if isinstance(traced, Recorder) else None


def _length(leaves: Sequence[Any], paths: Sequence[str], length: int | None) -> int:
    found = {} if length is None else {"length": operator.index(length)}
    for x, path in zip(leaves, paths, strict=True):
        if x is not None:
            if not np.ndim(x) if not isinstance(x, Value) else not x.ndim:
                raise ValueError(f"scan: {path} has no leading axis to walk")
            found[path] = np.shape(x)[0] if not isinstance(x, Value) else x.shape[0]
    if not found:
        raise ValueError("scan needs arrays to walk or a length")
    if len(set(found.values())) > 1:
        raise ValueError("scan: lengths differ: " + ", ".join(f"{k} has {v}" for k, v in found.items()))
    return next(iter(found.values()))


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"the function of a scan must return (carry, y), not {type(result).__name__}")
    return result


def _run(f: Callable[..., Any], init: Any, leaves: list[Any], tree: TreeDef, steps: int,
         reverse: bool) -> tuple[Any, Any]:
    rows: list[list[Any]] = []
    shape = None
    for t in reversed(range(steps)) if reverse else range(steps):
        init, y = _pair(f(init, unflatten(tree, [None if x is None else x[t] for x in leaves])))
        row, shape = leaves_of(y)
        rows.append(row)
    if shape is None:
        return init, _empty(f, init, leaves, tree)
    rows = rows[::-1] if reverse else rows
    columns = [None if column[0] is None else np.stack(column) for column in zip(*rows, strict=True)]
    return init, unflatten(shape, columns)


def _empty(f: Callable[..., Any], init: Any, leaves: list[Any], tree: TreeDef) -> Any:
    """What a loop of no step stacks: arrays of length zero, of the shapes that a step on zeros gives."""
    with np.errstate(all="ignore"):
        y = _pair(f(init, unflatten(tree, [None if x is None else np.zeros(x.shape[1:], x.dtype) for x in leaves])))[1]
    row, shape = leaves_of(y)
    return unflatten(shape, [None if x is None else np.zeros((0, *np.shape(x)), np.asarray(x).dtype) for x in row])


# --- inside ------------------------------------------------------------------------------------

def _lifted(recorder: Recorder, value: Any, path: str) -> Value:
    value = plain(value)
    if isinstance(value, Value):
        return recorder.lift(value)
    why = refusal(value) if is_dynamic(value) else f"is a {type(value).__name__}"
    if why is not None:
        raise TypeError(f"{path} {why}; a loop carries and walks numbers and arrays")
    return recorder.lift(value)


def _recorded(recorder: Recorder, step: Callable[[Body, Any], tuple[Any, Any]], init: Any, steps: int,
              reverse: bool, until: bool = False, checkpoint: bool = False) -> tuple[Any, Any]:
    """The loop on the tape. The body is recorded again where the first value of a carry must become another type."""
    leaves, paths, tree = flatten(init, "init")
    first = [None if x is None else _lifted(recorder, x, path) for x, path in zip(leaves, paths, strict=True)]
    avals = [None if v is None else v.aval for v in first]
    for _ in range(4):
        body = Body(recorder, steps)
        carry = [None if a is None else body.carry(a, path) for a, path in zip(avals, paths, strict=True)]
        with recorder.inside():
            after, y = step(body, unflatten(tree, carry))
        new = _same_structure(after, tree, paths, recorder)
        wanted = [_settled(a, v, path) for a, v, path in zip(avals, new, paths, strict=True)]
        if wanted == avals:
            break
        avals = wanted
    stacked, shape = leaves_of(y)
    rows = [None if v is None else _lifted(recorder, v, "y") for v in stacked]
    with recorder.plain():
        results = [fitted(v, a, path) for v, a, path in zip(new, avals, paths, strict=True) if v is not None and a]
        if until:
            results.append(body.carry(Aval((), np.dtype(np.int64)), "steps") + np.int64(1))
        tape, invariants = body.close([*results, *(v for v in rows if v is not None)])
        start = [fitted(v, a, path) for v, a, path in zip(first, avals, paths, strict=True) if v is not None and a]
        if until:
            start.append(recorder.const(np.int64(0)))
            steps = _room(recorder, tape, start, invariants)
        if checkpoint:
            finals, stacks = loop_in_chunks(recorder, tape, start, body.scanned, invariants, steps, reverse)
        else:
            finals, stacks = loop(recorder, tape, start, body.scanned, invariants, steps, body.position is not None,
                                  reverse, until)
        if steps < ENDLESS and until:
            recorder.guard(finals[0], False, user_line())
    final, stack = iter(finals), iter(stacks)
    ends = [None if a is None else _handed(recorder, next(final), a.weak) for a in avals]
    return (unflatten(tree, ends),
            unflatten(shape, [None if v is None else _handed(recorder, next(stack), False) for v in rows]))


def _room(recorder: Recorder, body: Tape, start: Sequence[Value], invariants: Sequence[Value]) -> int:
    """Steps for which a loop that ends by a value has memory: a power of two, four times as many as it makes now."""
    if not all(recorder.knows(v.number) for v in (*start, *invariants)):
        return ENDLESS
    state, rest = ([recorder.concrete(v.number) for v in part] for part in (start, invariants))
    with np.errstate(all="ignore"):
        while state[0]:
            if state[-1] >= COUNTED:
                return ENDLESS
            state = evaluate(body, *state, *rest)
    return max(1024, 1 << (4 * int(state[-1]) - 1).bit_length())


def _handed(recorder: Recorder, value: Value, weak: bool) -> Any:
    traced: Any = recorder.value(value.number)
    traced.weak = weak
    return traced


def _same_structure(after: Any, tree: TreeDef, paths: Sequence[str], recorder: Recorder) -> list[Value | None]:
    leaves, structure = leaves_of(after)
    if structure != tree:
        raise TypeError("the body of a loop must return a carry of the structure that it gets: "
                        f"{len(leaves)} values came back for {len(paths)}, or in other containers")
    return [None if x is None else _lifted(recorder, x, path) for x, path in zip(leaves, paths, strict=True)]


def _settled(before: Aval | None, after: Value | None, path: str) -> Aval | None:
    """The type of a carry that starts as `before` and becomes `after`."""
    if before is None or after is None:
        if before is not after:
            raise TypeError(f"{path} is None before the step or after it, but not both")
        return None
    weak = before.weak and after.aval.weak
    dtype = after.dtype if before.weak and not weak else np.result_type(before.dtype, after.dtype)
    if before.shape != after.shape:     # to begin with a broadcast value would be another: its sum, its length
        raise TypeError(f"{path} has shape {before.shape} before a step and {after.shape} after it; what a loop "
                        f"carries keeps its shape (at {user_line()}): start with an array of the shape that stays")
    return Aval(before.shape, dtype, weak)
