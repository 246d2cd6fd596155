"""Where a value that is not finite comes from: the nodes of the tape, one by one, from the result back to the first.

The tape is recorded and differentiated as for a call, but not optimised, so that every node has its line. From an
element of the result that is not finite the way back goes, in each node, to an operand without whose NaN or infinity
the result would have been finite. It ends at a node that makes such a number of finite ones, at an argument or a
capture that had it from the start, or at a constant. A NaN in a branch that is not taken, or an infinity of which
``exp`` makes zero, is never on the way.
"""
from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitad.cache.keys.identity import Target
from jitad.call.build.batch import example_of
from jitad.call.build.specialize import recorded, requested, rerolled
from jitad.call.family import FunctionFamily
from jitad.call.request.request import WORDS, Arguments, Request
from jitad.call.request.sparse import elements
from jitad.compile.llvm.fork_guard import gate
from jitad.errors import NonFiniteError
from jitad.primitives.scan import Form
from jitad.tape.evaluate import evaluate, evaluate_node
from jitad.tape.types import Node, Where
from jitad.trace.pytree import leaves_of

STAND_INS = ((0.5, 0.9), (1.1, 2.3))     # numbers in whose place a node that still fails is at fault itself


class Origin(Where):
    """The line of a node that knows the node and its number: what the reverse sweep makes for it bears the same."""

    node: Node
    number: int

    @classmethod
    def of(cls, node: Node, number: int) -> Origin:
        origin = cls(*(node.where or ("", 0, "")))
        origin.node, origin.number = node, number
        return origin

    def derived(self) -> Where:
        return self


@dataclass(frozen=True)
class Culprit:
    """A node that made a number that is not finite, of operands that `finite` says are, or an input or constant.

    `steps` has the positions in the loops around it, and their lines, the outermost first.
    """

    node: Node
    number: int
    operands: tuple[Any, ...]
    value: Any
    element: int
    where: Where | None
    steps: tuple[tuple[int, Where | None], ...] = ()
    backward: bool = False


class Frame:
    """Nodes, and their values as far as they are asked for. `forward`: how many nodes there were before the reverse
    sweep."""

    def __init__(self, nodes: Sequence[Node], known: Mapping[int, Any], forward: int):
        self.nodes, self.known, self.forward = nodes, dict(known), forward

    def value(self, number: int) -> Any:
        pending, known = [number], self.known
        while pending:
            n = pending[-1]
            missing = [i for i in self.nodes[n].inputs if i not in known]
            if n in known or not missing:
                if n not in known:
                    known[n] = evaluate_node(self.nodes[n], [known[i] for i in self.nodes[n].inputs])
                pending.pop()
            else:
                pending += missing
        return known[number]

    def origin(self, number: int, element: int) -> Culprit | tuple[int, int]:
        """What made an element of a node not finite: a culprit, or an input's number and element."""
        where = None
        while True:
            node = self.nodes[number]
            where = node.where if node.where is not None and node.where.filename else where
            if node.is_input:
                return number, element
            found = self._into_loop(node, element) if node.picks is not None else self._cause(node, element)
            if found is None:
                return Culprit(node, number, tuple(self.value(i) for i in node.inputs), self.value(number), element,
                               where, backward=number >= self.forward)
            if isinstance(found, Culprit):
                return found
            number, element = found

    def _cause(self, node: Node, element: int) -> tuple[int, int] | None:
        """The operand, and an element of it, without which this element would be finite; None if there is none."""
        bad = {i: ~np.isfinite(x) for i in sorted({*node.inputs}) if (x := self.value(i)).dtype.kind == "f"}
        bad = {i: mask for i, mask in bad.items() if mask.any()}
        spans = [span for span in STAND_INS if bad and not self._fails(node, element, bad, span)]
        if not spans:
            return None

        def still(i: int, kept: Any) -> bool:
            mask = bad[i].copy()
            mask.ravel()[kept] = False
            return self._fails(node, element, {**bad, i: mask}, spans[0])
        everything = {i: np.flatnonzero(mask) for i, mask in bad.items()}
        guilty = next((i for i, places in everything.items() if still(i, places)), next(iter(bad)))
        places = everything[guilty]
        while len(places) > 1:
            half = len(places) // 2
            if still(guilty, places[:half]):
                places = places[:half]
            elif still(guilty, places[half:]):
                places = places[half:]
            else:
                break
        return guilty, int(places[0])

    def _fails(self, node: Node, element: int, replaced: Mapping[int, Any], span: tuple[float, float]) -> bool:
        """Whether the element is not finite with ordinary numbers in place of those that `replaced` marks."""
        operands = []
        for i in node.inputs:
            x = self.value(i)
            if i in replaced:
                x = np.where(replaced[i], np.linspace(*span, x.size).reshape(x.shape), x).astype(x.dtype)
            operands.append(x)
        try:
            return not np.isfinite(evaluate_node(node, operands).flat[element])
        except (np.linalg.LinAlgError, ValueError):     # of a matrix of such numbers: says nothing
            return False

    # --- loops -----------------------------------------------------------------------------------
    def _into_loop(self, node: Node, element: int) -> Culprit | tuple[int, int]:
        """The same within the body of a scan, from the last step that matters back to the first."""
        bundle = self.nodes[node.inputs[0]]
        form, index = Form.of(bundle), node.params["index"]
        operands = [self.value(i) for i in bundle.inputs]
        order, states = form.walk(operands), [operands[:form.carries]]
        for t in order:
            if form.until and not states[-1][0]:
                break
            with np.errstate(all="ignore"):
                states.append(evaluate(form.body, *self._at(form, operands, states[-1], t))[:form.carries])
        k = len(states) - 2
        if index >= form.carries:
            t, element = divmod(element, form.body.nodes[form.body.outputs[index]].aval.size)
            k = order.index(t)
        while k >= 0:
            t = order[k]
            inside = self._at(form, operands, states[k], t)
            frame = Frame(form.body.nodes, dict(zip(form.body.inputs, inside, strict=True)), len(form.body.nodes))
            found = frame.origin(form.body.outputs[index], element)
            if isinstance(found, Culprit):
                inherited = isinstance(found.where, Origin) and found.where.node.prim != found.node.prim
                return replace(found, steps=((t, bundle.where), *found.steps),
                               backward=node.inputs[0] >= self.forward or inherited)
            number, element = found
            index = form.body.inputs.index(number)
            if index >= form.carries:
                if index < form.fixed:
                    offset, step = form.scanned[index - form.carries]
                    element += (offset + step * t) * form.input(index).size
                break
            k -= 1
        return bundle.inputs[index], element

    @staticmethod
    def _at(form: Form, operands: Sequence[Any], state: Sequence[Any], t: int) -> list[Any]:
        """The inputs of the body at position `t`."""
        rows = [np.asarray(a[o + s * t]) for a, (o, s) in zip(
            operands[form.carries:form.fixed], form.scanned, strict=True)]
        return [*state, *rows, *operands[form.fixed:], *([np.asarray(t, np.int64)] if form.counter else [])]


# --- the whole call ------------------------------------------------------------------------------

def require_finite(function: FunctionFamily, result: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise `NonFiniteError` if the result of a call has a float that is NaN or infinite."""
    if all(np.isfinite(x).all() for x in map(elements, leaves_of(result)[0]) if x.dtype.kind == "f"):
        return
    subject = function.subject
    if not subject.own_out:
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    raise diagnosis(subject.target, subject.request, subject.arguments(tuple(args), dict(kwargs)), function.__name__)


def diagnosis(target: Target, request: Request, arguments: Arguments, name: str) -> NonFiniteError:
    """The error that says which part of the result of this call is not finite, and where that arose."""
    if request.without_value:
        request = replace(request, what=f"value_and_{request.what}")
    text = _found(target, request, arguments, name)
    return NonFiniteError(text or (
        f"the compiled code of `{name}` gave a number that is not finite, and the same operations one by one did not: "
        "an intermediate result is close to the largest float; rescale the data"))


def _found(target: Target, request: Request, arguments: Arguments, name: str) -> str:
    """What the error says; empty if all is finite. Of a batch the first example that is not."""
    if request.batch:
        axes, *rest = request.batch
        places, length = axes.of_call(arguments.args, arguments.kwargs, arguments.positional, name)
        single = replace(request, batch=tuple(rest))
        texts = (_found(target, single, example_of(arguments, places, i), name) for i in range(length))
        return next((f"example {i} of a batch: {text}" for i, text in enumerate(texts) if text), "")
    with gate:
        recording = rerolled(recorded(target, request, arguments))
        builder = recording.builder
        builder.nodes[:] = _marked(builder.nodes)
        forward = len(builder.nodes)
        outputs, labels, _ = requested(recording, request, arguments, name)
        inputs = [v.number for v in (*recording.argument_inputs, *recording.captured_inputs)]
        frame = Frame(builder.nodes, {n: np.asarray(x, builder.nodes[n].aval.dtype) for n, x in zip(
            inputs, [*arguments.inputs, *recording.captured], strict=True)}, forward)
        for output, label in zip(outputs, labels, strict=True):
            value = frame.value(output.number)
            bad = np.flatnonzero(~np.isfinite(value)).tolist() if value.dtype.kind == "f" else []
            if bad:
                code = inspect.unwrap(target.function).__code__
                defined = Where(code.co_filename, code.co_firstlineno, code.co_name)
                what = f"{_words(label)} of `{name}` ({defined}) is {_at(value, bad[0], len(bad))}"
                found = frame.origin(output.number, bad[0])
                if isinstance(found, Culprit):
                    return f"{what}. {_blame(found, frame)}"
                names = dict(zip(builder.inputs, builder.names, strict=True))
                kind = "Argument" if found[0] in inputs[:len(arguments.inputs)] else "The captured"
                return (f"{what}. {kind} `{names[found[0]]}` is itself {_at(frame.value(found[0]), found[1])}; pass "
                        "finite values")
    return ""


def _marked(nodes: Sequence[Node]) -> list[Node]:
    """The nodes with their `Origin` for a line, in the bodies of loops too."""
    marked = []
    for number, node in enumerate(nodes):
        params = node.params
        if node.body is not None:
            params = {**params, "body": replace(node.body, nodes=tuple(_marked(node.body.nodes)))}
        marked.append(replace(node, params=params, where=Origin.of(node, number)))
    return marked


# --- words ---------------------------------------------------------------------------------------

# What the labels of outputs begin with (see `jitad.call.build.derive`), in words.
KINDS = {"value_": "part {} of the value", "grad_": "the gradient with respect to `{}`", "ct_": "the cotangent of `{}`",
         "tangent_": "the tangent of `{}`", "hvp_": "the product with the Hessian for `{}`",
         "jacobian_": "the block `{}` of the Jacobian", "hessian_": "the block `{}` of the Hessian",
         "derivative_": "the derivative of `{}`", "second_derivative_": "the second derivative of `{}`"}


def _words(label: str) -> str:
    for start, words in KINDS.items():
        if label.startswith(start):
            return words.format(label.removeprefix(start))
    return f"the {WORDS.get(label, label)}"


def _at(value: Any, element: int, count: int = 1) -> str:
    """The element, and which one it is."""
    where = f" at [{', '.join(map(str, np.unravel_index(element, value.shape)))}]" if value.ndim else ""
    return f"{value.flat[element]}{where}" + (f", the first of {count} such elements" if count > 1 else "")


def _shown(x: Any, like: Any, element: int) -> str:
    """An operand: the element that matters, if it has the shape of the result, else a few of its elements."""
    if x.shape == like.shape:
        return str(x.flat[element])
    text = np.array2string(x, threshold=6, edgeitems=2, precision=6, separator=", ")
    return f"{' '.join(text.split())} of shape {x.shape}" if x.size > 4 else " ".join(text.split())


def _blame(found: Culprit, frame: Frame) -> str:
    where, node = found.where, found.node
    line = f" at {where}" if where is not None and where.filename else ""
    loops = "".join(f", in step {t} (counted from 0) of the loop at {at}" for t, at in found.steps)
    if node.constant is not None:
        return f"It is a constant of the code{f', used{line}' if line else ''}{loops}; use a finite number instead"
    made = _call(node, found.operands, found.value, found.element)
    if found.backward:
        return _blame_backward(found, frame, line, loops, made)
    advice = ("rescale, or use a form that does not overflow (np.logaddexp, scipy.special.logsumexp, np.log1p)"
              if np.isinf(found.value.flat[found.element]) and node.prim.overflows else
              "bound what goes in (np.clip, np.maximum), or choose another value there by np.where: the branch that is "
              "not taken reaches neither value nor gradient")
    return f"It arises in `{node.prim}`{line}{loops}: {made}; {advice}"


def _blame_backward(found: Culprit, frame: Frame, line: str, loops: str, made: str) -> str:
    prim = found.node.prim
    if isinstance(found.where, Origin):
        before = found.where.node
        prim = before.prim
        if not found.steps:
            value = frame.value(found.where.number)
            element = found.element if value.shape == found.value.shape else 0
            operands = tuple(frame.value(i) for i in before.inputs)
            made = f"{_call(before, operands, value, element)}, and its derivative there takes {made}"
    return (f"It arises in the gradient of `{prim}`{line}{loops}: {made}; keep away from that point, or choose another "
            "branch there by np.where: one that is not taken does not reach the gradient")


def _call(node: Node, operands: Sequence[Any], value: Any, element: int) -> str:
    shown = ", ".join(_shown(x, value, element) for x in operands)
    return f"{node.prim}({shown}) = {_at(value, element)}"
