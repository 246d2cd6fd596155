"""What cannot work: the words that its message must hold."""
from __future__ import annotations

import decimal
import fractions
import json
import random
import struct
import time

import numpy as np
from scipy import linalg

from jitad.errors import ArgumentTypeError, CaptureError, ConcretizationError, MutationError, UnsupportedOperationError
from tests.programs.table import X3, Table

rows = Table()
generator = np.random.default_rng(0)
legacy = np.random.RandomState(0)
data = np.array([1.0, 2.0, 3.0])
items = [1.0, 2.0]
config = {"scale": 2.0}
count = 0


class Frame:
    """As a data frame of pandas, for what is told of its module."""

    def __init__(self, values):
        self.values = values


Frame.__module__, Frame.__name__, Frame.__qualname__ = "pandas.core.frame", "DataFrame", "DataFrame"
Array = type("DataArray", (), {"__module__": "xarray.core.dataarray"})
Jax = type("ArrayImpl", (), {"__module__": "jaxlib._jax"})
Polars = type("Series", (), {"__module__": "polars.series.series"})
frame, array, jax, polars = Frame(data), Array(), Jax(), Polars()


class Holder:
    total = 0

    def __init__(self):
        self.value = 1.0

    def add(self, x):
        self.value = x
        return x

    def tally(self, x):
        type(self).total += 1
        return x


holder = Holder()


def counted(x):
    global count
    y = np.sum(x)
    count += 1
    return y


def rebinding(x):
    total = [0.0]

    def inner():
        items[0] = x[0]
        return total
    return inner()[0] + np.sum(x)


here = "refusals.py"
rows.refused("a frame captured", lambda x: np.sum(x * frame), says=("`frame`", ".to_numpy()", here), raises=CaptureError)
rows.refused("an xarray captured", lambda x: np.sum(x * array), says=("`array`", ".to_numpy()", here), raises=CaptureError)
rows.refused("a jax array captured", lambda x: np.sum(x * jax), says=("`jax`", "np.asarray", here), raises=CaptureError)
rows.refused("a polars series captured", lambda x: np.sum(x * polars), says=("`polars`", ".to_numpy()", here), raises=CaptureError)
for _thing, _cure in ((frame, ".to_numpy()"), (array, ".to_numpy()"), (jax, "np.asarray"), (polars, ".to_numpy()"),
                      (generator, "draw outside"), (legacy, "draw outside")):
    rows.refused(f"{type(_thing).__name__} as an argument", lambda x, d: np.sum(x), X3, _thing, says=("`d`", _cure), raises=ArgumentTypeError)
rows.refused("a generator", lambda x: np.sum(x * generator.normal(size=3)), says=("draws random numbers", here, "pass the value in"))
rows.refused("np.random", lambda x: np.sum(x * np.random.rand(3)), says=("draws random numbers", here))
rows.refused("random", lambda x: x[0] * random.random(), says=("draws random numbers", here))
rows.refused("the clock", lambda x: x[0] * time.time(), says=("reads the clock", here))
rows.refused("a file", lambda x: x[0] * open("f").seek(0), says=("outside", here))
rows.refused("a global counter", counted, says=("global `count`", "counted", here, "return the new value"), raises=MutationError)
rows.refused("an item of a captured list", rebinding, says=("list `items`", "rebinding", "return the new value"), raises=MutationError)
rows.refused("append to a captured list", lambda x: (items.append(x[0]), np.sum(x))[1], says=("list `items`",), raises=MutationError)
rows.refused("an item of a captured dict", lambda x: (config.update(scale=1.0), np.sum(x))[1], says=("dict `config`", here), raises=MutationError)
rows.refused("an attribute of a captured object set", lambda x: np.sum(holder.add(x)), says=("value", here, "return the new value"), raises=MutationError)
rows.refused("an attribute of a class", lambda x: np.sum(Holder().tally(x)), says=("attribute `total`", "Holder", here), raises=MutationError)
rows.refused("a captured array written", lambda x: (data.__setitem__(0, x[0]), np.sum(x))[1], says=("captured array `data`", here, "copy"), raises=MutationError)
rows.refused("an argument written", lambda x: (x.__setitem__(0, 1.0), np.sum(x))[1], says=("argument `x`", here, "copy"), raises=MutationError)
rows.refused("out= of a captured array", lambda x: np.sum(np.exp(x, out=data)), says=("captured array `data`", here), raises=MutationError)
rows.refused("a traced key", lambda x: {x[0]: 1.0}[x[0]] * x[1], says=("hash()", "f'{x:.3f}'", here), raises=ConcretizationError)
rows.refused("an option that is not there", lambda x: np.sum(x, axi=0), says=("numpy.sum", "axi", here), raises=TypeError)
rows.refused("spacing", lambda x: np.sum(np.spacing(x)), says=("numpy.spacing", here), raises=UnsupportedOperationError)
rows.refused("the memory of a value", lambda x: x.tobytes(), says=(".tobytes()", here))
rows.refused("eval", lambda x: eval("x[0]"), says=("eval", here))
rows.refused("a longer double", lambda x: np.sum(x * np.longdouble(2)), says=("float128", here))
for _name, _function in (
        ("json", lambda x: json.dumps(x[0])), ("struct", lambda x: struct.pack("d", x[0])), ("a fraction", lambda x: fractions.Fraction(x[0])),
        ("a decimal", lambda x: decimal.Decimal(x[0])), ("memory", lambda x: memoryview(x)[0]),
        ("bytes", lambda x: bytes(x)[0] * x[0]), ("a byte array", lambda x: bytearray(x)[0] * x[0]), ("the buffer of an array", lambda x: x.__array_interface__)):
    rows.refused(f"{_name} that takes plain numbers", _function, says=("takes plain numbers", here, "np.sum(x)"), raises=ConcretizationError)
rows.refused("what NumPy refuses too", lambda x: x + "a", says=("did not contain a loop", here), raises=TypeError)
rows.refused("a triangular form", lambda x: linalg.schur(np.outer(x, x))[0].sum(), says=("scipy.linalg.schur", here, "np.linalg.eigvals"))
