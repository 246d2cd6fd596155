"""Classes of SciPy's that have rules: what recorded code gets in the place of their instances.

`CLASSES` maps the name of a class to how a stand-in is made: by a rule, where the constructor gets traced values, or
of an instance, made inside of the function from plain values or captured. What the instance holds is taken apart by
its attributes, arrays as inputs of the tape, settings as guards, so that a stand-in sees what is written into them.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from jitad.tape.builder import Value
from jitad.tape.types import TABLE
from jitad.trace.dispatch import as_value, noted_line, plain, refused
from jitad.trace.recorder import Recorder, current

__all__ = ["CLASSES", "StandIn", "held", "lifted", "made", "method", "name_of_class", "of_instance", "require",
           "scipy_class", "stands_for", "this_recorder"]


@dataclass(frozen=True)
class ClassRule:
    """`make(*args, **kwargs)` is the constructor; `of(kind, *held)` takes what an instance has under the names `holds`,
    which may be paths of attributes, or, with `whole`, `of(instance)` the instance itself. With `stays`, what recorded
    code makes of plain values is SciPy's; with `always`, it is the rule's."""

    make: Callable[..., Any]
    of: Callable[..., Any]
    holds: tuple[str, ...]
    whole: bool = False
    stays: bool = False
    always: bool = False


CLASSES: dict[str, ClassRule] = {}


def stands_for(name: str, of: Callable[..., Any], holds: str, stays: bool = False,
               always: bool = False) -> Callable[..., Any]:
    """Enter the decorated function as the rule of the class with this name."""
    def enter(make: Callable[..., Any]) -> Callable[..., Any]:
        CLASSES[name] = ClassRule(make, of, tuple(holds.split()), stays=stays, always=always)
        return make
    return enter


def name_of_class(cls: type) -> str:
    """``scipy.interpolate.CubicSpline``."""
    return f"{cls.__module__.partition('._')[0]}.{cls.__name__}"


def of_instance(rule: ClassRule, value: Any, take: Callable[[tuple[str, ...]], Any]) -> Any:
    """The stand-in for an instance; `take` says what is in the place of the attribute at a path."""
    return rule.of(type(value), *(take(tuple(name.split("."))) for name in rule.holds))


def scipy_class(name: str) -> Any:
    """A class of scipy.interpolate's."""
    from scipy import interpolate

    return getattr(interpolate, name)


def held(value: Any, path: tuple[str, ...]) -> Any:
    """The attribute at a path; None where an instance has no such one."""
    for name in path:
        value = getattr(value, name, None)
    return value


def made(cls: type, rule: ClassRule, args: tuple[Any, ...], kwargs: dict[str, Any], traced: bool) -> Any:
    """What recorded code gets that makes an instance."""
    if traced or rule.always:
        with noted_line(this_recorder()):
            return rule.make(*plain(args), **plain(kwargs))
    real = cls(*args, **kwargs)
    if rule.stays:
        return real
    if rule.whole:
        return rule.of(real)
    return of_instance(rule, real, lambda path: held(real, path))


def this_recorder() -> Recorder:
    """The recording under way."""
    recorder = current()
    assert recorder is not None
    return recorder


class StandIn:
    """An instance of a class of SciPy's in recorded code."""

    __slots__ = ("jitad_kind",)

    def __init__(self, kind: type) -> None:
        self.jitad_kind = kind

    @property                                                       # type: ignore[misc]
    def __class__(self) -> type:                                    # type: ignore[override]
        return self.jitad_kind

    @property
    def jitad_holds(self) -> tuple[Any, ...]:
        """What may be traced of it."""
        return tuple(getattr(self, name) for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ())
                     if name != "jitad_kind")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.jitad_kind, name):
            raise AttributeError(f"{self.jitad_kind.__name__!r} object has no attribute {name!r}")
        raise refused(this_recorder(), f"{name_of_class(self.jitad_kind)}.{name}")

    def __repr__(self) -> str:
        return f"<traced {self.jitad_kind.__name__}>"


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that recorded code calls."""
    @wraps(function)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        with noted_line(this_recorder()):
            return function(self, *plain(args), **plain(kwargs))
    return called


def lifted(value: Any) -> Any:
    """A value of the recording under way."""
    return as_value(this_recorder(), value)


def require(condition: Value, error: Exception) -> None:
    """`error`, unless the condition holds for all elements: a guard, where it is known that it does; in the step of a
    loop, which can not raise, what the step gives is NaN where it does not hold."""
    recorder: Any = condition.builder
    if not hasattr(recorder, "knows"):
        return                                           # a rule that is applied to a tape: it was asked before
    whole: Any = condition
    with recorder.plain():
        if condition.ndim:
            whole = TABLE["reduce_all"](Value(recorder, condition.number), axes=tuple(range(condition.ndim)))
        known = recorder.knows(condition.number)
        if not known:
            for number, flag in recorder.explorer.taken if recorder.explorer is not None else ():
                asked = Value(recorder, number)
                whole = TABLE["logical_or"](whole, TABLE["logical_not"](asked) if flag else asked)
            recorder.unmet.append((whole.number, error))
    if known and not recorder.decide(whole):
        raise error
