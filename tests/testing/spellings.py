"""The same call written in other ways: by an imported name, an alias, a method, with options at their defaults and at
other values."""
from __future__ import annotations

import functools
import inspect
import re

import numpy as np

from jitad import jit
from jitad.cache.keys.identity import unwrap
from jitad.errors import InternalError, JitadError
from jitad.trace.record import record
from tests.programs.table import interpreted
from tests.testing.examples import EXAMPLES
from tests.testing.walk import PATTERNS, call_of, function_of, outcome_of, plain_error, quiet

# Methods that take other arguments, work in place, or give the array itself.
OTHERWISE = {"astype", "compress", "sort", "conj", "conjugate"}


@functools.cache
def good_call(module, name):
    """A call through which a derivative flows: expression and arguments; None if there is none among ours."""
    known = EXAMPLES.get(module, {}).get(name)
    for expression, args in ([known] if known else [(call_of(module, name, len(args)), args) for args in PATTERNS]):
        found = outcome_of(expression, args)
        if found.error is None and any(d.kind == "f" for d in found.dependent):
            return expression, args
    return None


def nodes_of(function, args):
    """What comes out of a call, and what it computes, without its inputs; or the class of what it raises."""
    with quiet():
        try:
            recording = record(unwrap(function), args)
        except Exception as error:
            return type(error).__name__
        rows = [(node.prim.name, node.aval) for node in recording.builder.nodes]
        return [o.aval for o in recording.outputs], [row for row in rows if row[0] not in ("input", "view", "const")]


def spelled(module, name, expression, value, count):
    """The function with the call in three other spellings, by what each is."""
    whole = f"{module.replace('numpy', 'np', 1)}.{name}"
    names = "xyzw"[:count]
    imported = function_of(expression.replace(whole, name), count)
    imported.__globals__[name] = value
    space = {**imported.__globals__}
    exec(compile(f"def f({', '.join(names)}):\n    alias = {whole}\n    return {expression.replace(whole, 'alias')}\n",
                 "/home/user/model.py", "exec"), space)
    found = {"imported": imported, "alias": space["f"]}
    plainly = name not in OTHERWISE and expression == f"{whole}({', '.join(names)})"
    if module == "numpy" and plainly and callable(getattr(np.ndarray, name, None)):
        found["method"] = function_of(f"x.{name}({', '.join(names[1:])})", count)
    return found


def with_defaults(value, expression, count):
    """The expression with each option of a plain call passed by keyword as what it is when left out."""
    try:
        parameters = [*inspect.signature(value).parameters.values()]
    except (TypeError, ValueError):
        return {}
    return {p.name: f"{expression[:-1]}, {p.name}={p.default!r})" for p in parameters[count:]
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            and (p.default is None or isinstance(p.default, (bool, int, float, str)))}


# Options whose results SciPy leaves open: the other triangle of a factor, signs of vectors, how near is near enough.
OPEN = {"cho_factor", "eigh", "lambertw", "odeint"}
# Steps of another method, to the same tolerances (README); memory as it was found.
OTHERS = ("method='BDF'", "method='LSODA'", "mode='empty'")


def texts_of(value, parameter):
    """The texts that the documentation of a function names where it tells of an option."""
    lines, told, inside = (inspect.getdoc(value) or "").split("\n"), "", False
    for line in lines:
        head = line.split(":")[0]
        if line[:1].strip():
            inside = parameter.name in [word.strip("* ") for word in head.split(",")]
        told += line + "\n" if inside else ""
    found = dict.fromkeys(re.findall(r"['\"‘`]([A-Za-z][A-Za-z_-]*)['\"’`]", told))
    named = isinstance(parameter.default, str) or "{'" in told or "'" in told.split("\n")[0]
    return [text for text in found if named and text != parameter.default]


def with_option(expression, whole, option):
    """The expression with an option in its call of the function; None if there is no such call."""
    start = expression.find(whole + "(")
    depth, at = 0, start + len(whole)
    while start >= 0 and at < len(expression):
        depth += (expression[at] in "([{") - (expression[at] in ")]}")
        if not depth:
            return f"{expression[:at]}, {option}{expression[at:]}"
        at += 1
    return None


def with_others(value, expression, whole):
    """The expression with each option as another than what it is when left out: numbers, flags and axes, and all texts
    that are documented."""
    if isinstance(value, np.ufunc) and value not in (np.exp, np.add):      # one rule takes the options of all ufuncs
        return []
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    found = []
    for p in parameters:
        if p.name == "where" or p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            continue
        others = texts_of(value, p)
        if p.name == "axis":
            others += [0, -1]
        elif isinstance(p.default, (bool, int, float)):
            others += [not p.default if isinstance(p.default, bool) else p.default + (
                1 if isinstance(p.default, int) else 0.5)]
        found += [with_option(expression, whole, f"{p.name}={other!r}") for other in others]
    return [text for text in found if text is not None]


def values_of(result):
    return [v for r in result for v in values_of(r)] if isinstance(result, (list, tuple)) else [result]


def wrong_with(text, args):
    """What is wrong with a call with an option, or None: its values are NumPy's, or it is refused by a clear error."""
    function = function_of(text, len(args))
    with quiet():
        expected = values_of(function(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in args)))
        try:
            found = values_of(interpreted(jit(function), args))
        except InternalError as error:
            return str(error)
        except JitadError:
            return None
    if len(found) != len(expected):
        return "another structure"
    near = (np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-7, atol=1e-9, equal_nan=True)
            for a, b in zip(found, expected, strict=True))
    return None if all(near) else f"{found} is not {expected}"


def differing_options(module, name, value):
    """The calls with other options that are wrong, and how many were tried."""
    call = None if name in OPEN else good_call(module, name)
    if call is None:
        return [], 0
    whole = f"{module.replace('numpy', 'np', 1)}.{name}"
    texts = [text for text in with_others(value, call[0], whole)
             if not any(other in text for other in OTHERS) and plain_error(text, call[1]) is None]
    wrong = [(text, wrong_with(text, call[1])) for text in texts]
    return [f"{text}: {what}" for text, what in wrong if what is not None], len(texts)


def differing(module, name, value):
    """The spellings that record something else than the call itself, and how many were tried."""
    call = good_call(module, name)
    if call is None:
        return [], 0
    expression, args = call
    usual = nodes_of(function_of(expression, len(args)), args)
    ways = spelled(module, name, expression, value, len(args))
    if expression == call_of(module, name, len(args)):
        ways.update({option: function_of(text, len(args)) for option, text in with_defaults(
            value, expression, len(args)).items() if plain_error(text, args) is None})
    wrong = []
    for way, function in ways.items():
        found = nodes_of(function, args)
        if found != usual and (way != "imported" or isinstance(found, str) or found[0] != usual[0]):
            wrong.append(f"{module}.{name}, {way}: {found if isinstance(found, str) else 'another tape'}")
    return wrong, len(ways)
