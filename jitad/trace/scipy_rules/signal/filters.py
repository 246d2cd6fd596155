"""scipy.signal's linear filters: `lfilter`, `sosfilt`, their steady states, and forward and backward in turn.

A recursive filter is a loop of the compiled code, in the transposed direct form II that SciPy runs::

    y[n]    = z[0] + b[0] x[n]
    z[k]    = z[k + 1] + b[k + 1] x[n] - a[k + 1] y[n]

(Oppenheim and Schafer, Discrete-Time Signal Processing, section 6.3). Its derivatives are those of the loop: in reverse
the same recurrence, walked backwards. Coefficients, signal and first state may all be traced.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.scan import loop
from jitad.tape.builder import Value
from jitad.tape.types import Aval
from jitad.trace.dispatch import as_value, builder_in, refused
from jitad.trace.loop_body import Body, fitted
from jitad.trace.scipy_rules.classes import lifted, this_recorder
from jitad.trace.scipy_rules.signal.lines import along, extended, normalized_axis
from jitad.trace.substitutes import substitute

MODULE = "scipy.signal"

Section = tuple[Sequence[Any], Sequence[Any]]      # b and a, of one length, a[0] being 1


def _floating(name: str, *operands: Any) -> Any:
    """The dtype in which a filter works."""
    dtype = np.result_type(*(o.dtype for o in operands))
    if dtype.kind not in "f":
        raise refused(this_recorder(), f"{MODULE}.{name} of {dtype} numbers", "use floats")
    return dtype


def _lists(b: Any, a: Any) -> Section:
    """The coefficients one by one, of one length, divided by the first of `a`."""
    n = max(b.shape[0], a.shape[0])
    first = a[0]
    return tuple([c[i] / first if i < c.shape[0] else 0.0 for i in range(n)] for c in (b, a))   # type: ignore[return-value]


def _coefficients(values: Any, dtype: Any) -> Any:
    """Numbers as they are, on the tape only if they are traced."""
    if builder_in(values) is None:
        return np.asarray(values, dtype)
    return cast(lifted(values), dtype)


def cascade(sections: Sequence[Section], x: Any, states: Sequence[Sequence[Any]]) -> tuple[Any, list[list[Any]]]:
    """The filters of `sections` one after the other, on `x` of shape (times, ...): the result, and the last states."""
    recorder = this_recorder()
    aval = Aval(x.shape[1:], x.dtype)
    body = Body(recorder, x.shape[0])
    carried = [[body.carry(aval, f"z{s}_{k}") for k in range(len(z))] for s, z in enumerate(states)]
    y, after = body.element(Value(recorder, x.number), "x"), []
    with recorder.inside():
        for (b, a), z in zip(sections, carried, strict=True):
            now, old = y, [*z, 0.0]
            y = _plus(old[0], _times(b[0], now))
            after += [_plus(_plus(old[k], _times(b[k], now)), -_times(a[k], y)) for k in range(1, len(b))]
    first = [s for z in states for s in z]
    with recorder.plain():
        plain = [fitted(Value(recorder, lifted(v).number), aval, "the state") for v in (*after, y)]
        tape, reads = body.close(plain)
        init = [fitted(Value(recorder, lifted(v).number), aval, "the state") for v in first]
        finals, stacks = loop(recorder, tape, init, body.scanned, reads, x.shape[0])
    last = iter(recorder.value(v.number) for v in finals)
    return recorder.value(stacks[0].number), [[next(last) for _ in z] for z in states]


def _times(coefficient: Any, x: Any) -> Any:
    return np.asarray(coefficient, x.dtype) * x if builder_in(coefficient) is None else coefficient * x


def _plus(a: Any, b: Any) -> Any:
    return b if builder_in(a) is None and not np.any(a) else a + b


def _front(x: Any, axis: int, dtype: Any) -> Any:
    numbers: Any = cast(lifted(x), dtype)
    return lifted(np.moveaxis(numbers, axis, 0))


def _no_state(count: int, x: Any) -> list[Any]:
    return [np.zeros(x.shape[1:], x.dtype)] * count


# --- one filter --------------------------------------------------------------------------------------

@substitute(MODULE, "lfilter")
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    x = lifted(x)
    b, a = (np.atleast_1d(c if builder_in(c) is None else lifted(c)) for c in (b, a))
    for name, c in (("b", b), ("a", a)):
        if c.ndim != 1 or not c.shape[0]:
            raise ValueError(f"Parameter {name} is not a non-empty 1d array, since {name}.shape={c.shape}!")
    dtype = _floating("lfilter", b, a, x, *([] if zi is None else [lifted(zi)]))
    axis = normalized_axis(axis, x.ndim)
    b, a = _coefficients(b, dtype), _coefficients(a, dtype)
    count = max(b.shape[0], a.shape[0]) - 1
    state = None if zi is None else _first_state(lifted(zi), x, axis, count, dtype)
    front = _front(x, axis, dtype)
    if a.shape[0] == 1:
        y, last = _moving(b / a[0], front, state)
    else:
        rows = _no_state(count, front) if state is None else [state[k] for k in range(count)]
        y, (ends,) = cascade([_lists(b, a)], front, [rows])
        last = np.stack(ends) if ends else np.zeros((0, *front.shape[1:]), dtype)
    y = np.moveaxis(y, 0, axis)
    return y if zi is None else (y, np.moveaxis(last, 0, axis))


def _first_state(zi: Any, x: Any, axis: int, count: int, dtype: Any) -> Any:
    """`zi` of the shape that the signal asks for, the filter's axis first."""
    wanted = (*x.shape[:axis], count, *x.shape[axis + 1:])
    fits = zi.ndim == x.ndim and all(n == w or (n == 1 and k != axis) for k, (n, w) in enumerate(
        zip(zi.shape, wanted, strict=True)))
    if not fits:
        raise ValueError(f"Unexpected shape for parameter zi: expected {wanted}, found {zi.shape}.")
    numbers: Any = cast(zi, dtype)
    return np.moveaxis(np.broadcast_to(numbers, wanted), axis, 0)


def _moving(b: Any, x: Any, state: Any) -> tuple[Any, Any]:
    """The filter without feedback, on `x` of shape (times, ...): its result and its last state."""
    n, m = x.shape[0], b.shape[0]
    whole = along(x, b)
    if state is not None and m > 1:
        head = whole[:m - 1] + state
        whole = np.concatenate([head, whole[m - 1:]])
    return whole[:n], whole[n:]


@substitute(MODULE, "lfilter_zi")
def lfilter_zi(b: Any, a: Any) -> Any:
    b, a = (np.atleast_1d(lifted(c)) for c in (b, a))
    for name, c in (("Numerator b", b), ("Denominator a", a)):
        if c.ndim != 1:
            raise ValueError(f"{name} must be 1-D.")
    while a.shape[0] > 1 and a[0] == 0.0:                            # a recorded branch
        a = a[1:]
    b, a = b / a[0], a / a[0]
    n = max(a.shape[0], b.shape[0])
    b, a = (np.concatenate([c, np.zeros(n - c.shape[0], c.dtype)]) for c in (b, a))
    return _steady(b, a)


def _steady(b: Any, a: Any) -> Any:
    """The state z at rest under a signal of ones: z[k] = z[k + 1] + b[k + 1] - a[k + 1] y with y = z[0] + b[0], so
    that z[0] follows from the sums of all."""
    rest = b[1:] - a[1:] * b[0]
    if not rest.shape[0]:
        return rest
    # z[k] = sum of rest[k:] - z[0] sum of a[k + 1:]
    sums, shares = np.cumsum(rest[::-1])[::-1], np.cumsum(a[1:][::-1])[::-1]
    return sums - sums[0] / (1.0 + shares[0]) * shares


@substitute(MODULE, "lfiltic")
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    b, a, y = (np.atleast_1d(lifted(c)) for c in (b, a, y))
    if a.ndim > 1 or b.ndim > 1:
        raise ValueError(f"Filter coefficients `{'a' if a.ndim > 1 else 'b'}` must be 1-D.")
    n, m = a.shape[0] - 1, b.shape[0] - 1
    x = lifted(np.zeros(m) if x is None else x)
    x, y = (np.concatenate([v, np.zeros(max(k - v.shape[0], 0))]) for v, k in ((x, m), (y, n)))
    if a[0] == 0.0:                                                 # a recorded branch
        raise ValueError("First `a` filter coefficient must be non-zero.")
    zi: list[Any] = [0.0] * max(m, n)
    for k in range(m):
        zi[k] = zi[k] + np.sum(b[k + 1:] * x[:m - k])
    for k in range(n):
        zi[k] = zi[k] - np.sum(a[k + 1:] * y[:n - k])
    return np.stack([lifted(z) for z in zi]) / a[0] if zi else np.zeros(0)


@substitute(MODULE, "filtfilt")
def filtfilt(b: Any, a: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None, method: str = "pad",
             irlen: Any = None) -> Any:
    if method != "pad":
        if method != "gust":
            raise ValueError("method must be 'pad' or 'gust'.")
        raise refused(this_recorder(), f"{MODULE}.filtfilt with method='gust'", "use method='pad'")
    x = lifted(x)
    b, a = (np.atleast_1d(c if builder_in(c) is None else lifted(c)) for c in (b, a))
    axis = normalized_axis(axis, x.ndim)
    edge, front = _padded(x, axis, padtype, padlen, max(a.shape[0], b.shape[0]))
    zi = _zi(b, a).reshape((-1,) + (1,) * (x.ndim - 1))
    for _ in range(2):
        front = lfilter(b, a, front, 0, zi * front[:1])[0][::-1]
    return _unpadded(front, edge, axis)


def _zi(b: Any, a: Any) -> Any:
    from scipy import signal

    return signal.lfilter_zi(b, a) if builder_in(b, a) is None else lfilter_zi(b, a)


def _padded(x: Any, axis: int, padtype: Any, padlen: Any, taps: int) -> tuple[int, Any]:
    """How much the signal is extended at its ends, and the extended one, its axis first."""
    if padtype not in ("even", "odd", "constant", None):
        raise ValueError(f"Unknown value '{padtype}' given to padtype. padtype must be 'even', 'odd', 'constant', or "
                         "None.")
    edge = 0 if padtype is None else 3 * taps if padlen is None else int(padlen)
    if x.shape[axis] <= edge:
        raise ValueError(f"The length of the input vector x must be greater than padlen, which is {edge}.")
    return edge, extended(np.moveaxis(x, axis, 0), edge, padtype)


def _unpadded(front: Any, edge: int, axis: int) -> Any:
    return np.moveaxis(front[edge:front.shape[0] - edge], 0, axis)


# --- in sections of second order ------------------------------------------------------------------------

def _sections(sos: Any, dtype: Any) -> list[Section]:
    """The coefficients of each section, checked as SciPy does."""
    sos = _coefficients(sos, dtype)
    return [([sos[s, k] for k in range(3)], [1.0, sos[s, 4], sos[s, 5]]) for s in range(sos.shape[0])]


def _checked(sos: Any) -> Any:
    sos = np.atleast_2d(sos if builder_in(sos) is None else lifted(sos))
    if sos.ndim != 2:
        raise ValueError("sos array must be 2D")
    if sos.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    if not (sos[:, 3] == 1).all():                                  # a recorded branch
        raise ValueError("sos[:, 3] should be all ones")
    return sos


@substitute(MODULE, "sosfilt")
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    x, sos = lifted(x), _checked(sos)
    if not x.ndim:
        raise ValueError("x must be at least 1-D")
    dtype = _floating("sosfilt", sos, x, *([] if zi is None else [lifted(zi)]))
    axis = normalized_axis(axis, x.ndim)
    front, count = _front(x, axis, dtype), sos.shape[0]
    states = [_no_state(2, front)] * count
    if zi is not None:
        zi, wanted = cast(lifted(zi), dtype), (count, *x.shape[:axis], 2, *x.shape[axis + 1:])
        if zi.shape != wanted:
            raise ValueError(f"Invalid zi shape. With axis={axis}, an input with shape {x.shape}, and an sos array "
                             f"with {count} sections, zi must have shape {wanted}, got {zi.shape}.")
        rows = np.moveaxis(zi, axis + 1, 1)
        states = [[rows[s, k] for k in range(2)] for s in range(count)]
    y, last = cascade(_sections(sos, dtype), front, states)
    y = np.moveaxis(y, 0, axis)
    return y if zi is None else (y, np.moveaxis(np.stack([np.stack(z) for z in last]), 1, axis + 1))


@substitute(MODULE, "sosfilt_zi")
def sosfilt_zi(sos: Any) -> Any:
    sos = as_value(builder_in(sos), sos)
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ValueError("sos must be shape (n_sections, 6)")
    rows, scale = [], 1.0
    for s in range(sos.shape[0]):
        b, a = sos[s, :3], sos[s, 3:]
        rows.append(scale * lfilter_zi(b, a))
        scale = scale * np.sum(b) / np.sum(a)
    return np.stack(rows)


@substitute(MODULE, "sosfiltfilt")
def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    from scipy import signal

    x, sos = lifted(x), _checked(sos)
    axis = normalized_axis(axis, x.ndim)
    ends = [int(np.sum(sos[:, k] == 0)) for k in (2, 5)]              # of a traced one, a guard
    edge, front = _padded(x, axis, padtype, padlen, 2 * sos.shape[0] + 1 - min(ends))
    zi = (signal.sosfilt_zi(sos) if builder_in(sos) is None else sosfilt_zi(sos)).reshape((-1, 2) + (1,) * (x.ndim - 1))
    for _ in range(2):
        front = sosfilt(sos, front, 0, zi * front[:1])[0][::-1]
    return _unpadded(front, edge, axis)
