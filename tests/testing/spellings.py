"""The same call written in other ways: by an imported name, an alias, a method, and with options at their defaults."""
from __future__ import annotations

import inspect

import numpy as np

from jitad.cache.keys.identity import unwrap
from jitad.trace.record import record
from tests.testing.examples import EXAMPLES
from tests.testing.walk import PATTERNS, call_of, function_of, outcome_of, plain_error, quiet

# Methods that take other arguments, work in place, or give the array itself.
OTHERWISE = {"astype", "compress", "sort", "conj", "conjugate"}


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
