"""What statements name: the variables and arrays that they read and write."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitad.compile.loops import (
    Accumulator,
    Assign,
    CallRoutine,
    Calls,
    Combine,
    Let,
    Loop,
    Portions,
    Statement,
    Transpose,
)
from jitad.tape.expr import Expr

EXPRESSIONS = ("expr", "first", "condition", "start", "stop", "source_start", "target_start")


def inside(body: Sequence[Statement]) -> Iterator[Statement]:
    """All statements, those of loops included."""
    for s in body:
        yield s
        if isinstance(s, Loop):
            yield from inside(s.body)


def expressions(s: Statement) -> list[Expr]:
    """The expressions of a statement, not those of statements in it."""
    found = [getattr(s, name, None) for name in EXPRESSIONS]
    further = [first for first, _ in s.pieces] if isinstance(s, CallRoutine) else getattr(s, "index", ())
    return [e for e in (*found, *further) if isinstance(e, Expr)]


def below(e: Expr) -> list[Expr]:
    """An expression and all that it is made of."""
    found, seen = [e], {id(e)}
    for x in found:
        further = [a for a in x.args if isinstance(a, Expr) and id(a) not in seen]
        seen |= set(map(id, further))
        found += further
    return found


def buffers_in(body: Sequence[Statement]) -> set[str]:
    """The arrays that statements read or write."""
    found: set[str] = set()
    for s in inside(body):
        found |= {x.args[0] for e in expressions(s) for x in below(e) if x.op == "load"}
        if hasattr(s, "buffer"):
            found.add(s.buffer)
        elif isinstance(s, CallRoutine):
            found |= set(s.buffers)
        elif isinstance(s, Transpose):
            found |= {s.source, s.target}
        elif isinstance(s, Calls):
            found |= {a[0] for _, given in s.rows for a in given if isinstance(a, tuple)}
    return found


def free_names(parts: Portions) -> tuple[dict[str, str], list[str]]:
    """What the body takes from outside: variables with their dtypes, and arrays."""
    statements = list(inside(parts.body))
    own = {parts.variable, *(s.variable for s in statements if isinstance(s, Loop)), *(
        s.name for s in statements if isinstance(s, (Let, Accumulator)))}
    taken = {x.args[0]: x.dtype for s in statements for e in expressions(s) for x in below(e) if x.op == "var"}
    assert not any(isinstance(s, (Combine, Assign)) and s.name not in own for s in statements)
    return ({name: dtype for name, dtype in taken.items() if name not in own},
            sorted(buffers_in(parts.body) - {b.name for b in parts.own}))
