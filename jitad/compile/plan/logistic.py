"""The logistic pair ``log1p(exp(x))`` and its slope, written out by the user: both from one ``exp(-|x|)``.

Written as they stand they need ``exp``, a full ``log1p`` and a division. What comes instead has the same value to
rounding, and is infinite or NaN where the user's form is.
"""
from __future__ import annotations

from jitad.tape.expr import Expr, call


def logistic_form(op: str, operands: list[Expr]) -> Expr | None:
    """``op(*operands)`` if it is one of the pair, a multiple of the slope included."""
    if op not in ("log1p", "div", "mul") or any(e.dtype != "f8" for e in operands):
        return None
    if op == "log1p" and operands[0].op == "exp":
        return call("log1p_exp", operands[0].args[0])
    if op == "div":
        return _slope(*operands)
    if op == "mul":
        for e, other in (operands, operands[::-1]):
            if e.op == "exp":
                found = _times_quotient(e, other)
                if found is not None:
                    return found
    return None


def _times_quotient(e: Expr, other: Expr) -> Expr | None:
    """``e * (a / (1 + e))`` and ``e * (a * (1 / (1 + e)))``."""
    if other.op == "div":
        slope = _slope(e, other.args[1])
        return None if slope is None else slope if _is_one(other.args[0]) else other.args[0] * slope
    if other.op == "mul":
        for a, quotient in (other.args, other.args[::-1]):
            if quotient.op == "div" and _is_one(quotient.args[0]):
                slope = _slope(e, quotient.args[1])
                if slope is not None:
                    return a * slope
    return None


def _slope(e: Expr, bottom: Expr) -> Expr | None:
    """``e / (1 + e)`` for an exponential e."""
    if e.op == "exp" and bottom.op == "add" and any(
            a is e and _is_one(b) for a, b in (bottom.args, bottom.args[::-1])):
        return call("exp_share", e.args[0])
    return None


def _is_one(e: Expr) -> bool:
    return e.op == "const" and e.args[0] == 1.0
