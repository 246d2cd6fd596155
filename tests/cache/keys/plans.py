"""Modules, functions, helpers and objects to capture, and plans of what they capture."""
import dataclasses
import types

import numpy as np

from jitad.cache.keys.captures import Path, Plan

X = np.arange(3.0)


def module(source, **names):
    """Run source as a module of its own, so that its globals can be changed freely."""
    namespace = {"np": np, **names}
    exec(source, namespace)
    return types.SimpleNamespace(**{"globals": namespace}), namespace


def plan_of(*reads, code=None):
    plan = Plan(code)
    for steps, kind, value in reads:
        plan.add(Path.of(*steps), kind, value)
    return plan


def glob(name, *more):
    return (("global", name), *more)


def make(array, scale):
    def f(x):
        return x @ array * scale

    return f


def cell(name, f):
    return (("cell", f.__code__.co_freevars.index(name), name),)


class Model:
    def __init__(self):
        self.w, self.mode = X, "a"

    def method(self, x):
        return x * self.w

    def __call__(self, x):
        return x * self.w

    @property
    def broken(self):
        raise ZeroDivisionError


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int


HELPER = """
def make_helper(scale):
    def helper(x): return x * scale * shift
    return helper
helper = make_helper(2.0)
shift = 1.0
def f(x): return helper(x)
"""


def helper_plan(names):
    helper = names["helper"]
    return plan_of(
        (glob("helper"), "guard", helper),
        (glob("helper", ("cell", 0, "scale")), "input", 2.0),
        (glob("helper", ("global", "shift")), "input", 1.0),
    )
