"""Subclasses of arrays and numbers: those that compute as their base does are data, the others are refused; and what
has been compiled for one class never serves another."""
from __future__ import annotations

import gc
import types
import weakref

import numpy as np
import pytest

import jitad
from jitad import batch, cache, jit, jit_grad, value_and_grad
from jitad.cache.keys.signature import describe
from jitad.compile.entry import kernel as runtime
from jitad.compile.entry.layout import UnknownLayout
from jitad.trace.leaves import altered, as_plain

pytestmark = [pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning"),
              pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")]                 # of np.matrix
x3, A33 = np.array([2.0, 1.0, 1.0]), np.arange(9.0).reshape(3, 3)


class Named(np.ndarray):
    """As NumPy's manual has it: an attribute of its own, and the operations of arrays."""

    __array_priority__ = 12

    def __new__(cls, array, name=""):
        made = np.asarray(array).view(cls)
        made.name = name
        return made

    def __array_finalize__(self, other):
        self.name = getattr(other, "name", "")

    def __repr__(self):
        return self.name

    def largest(self):
        return self.max()


class Thousand(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return 1000 * getattr(ufunc, method)(*map(np.asarray, inputs), **kwargs)


def own(name, base=np.ndarray):
    return type("Own", (base,), {name: lambda self, *rest: 1000.0})


class Operators(np.lib.mixins.NDArrayOperatorsMixin, Named):
    pass


OWN = [Thousand, Operators, np.matrix, np.ma.MaskedArray, type("Below", (Thousand,), {}),
       *map(own, ("__mul__ __rmul__ __imul__ __matmul__ __neg__ __lt__ __eq__ __getitem__ __iter__ __float__ "
                  "__array_function__ __array_wrap__ __array__ sum T shape").split()),
       own("__getitem__", np.memmap)]
MEANT = [np.ndarray, Named, np.memmap, np.recarray, type("File", (np.memmap,), {"note": ""}),
         type("Same", (np.ndarray,), {"__mul__": np.ndarray.__mul__}),
         type("Plain", (Named,), {"__slots__": (), "__str__": lambda self: "", "unit": property(lambda self: 1)})]


def of(cls, array):
    if issubclass(cls, np.ma.MaskedArray):
        return np.ma.masked_array(array)
    return array.view(np.ndarray) if cls is np.ndarray else np.ndarray.view(array, cls)


@pytest.mark.parametrize("cls", OWN, ids=lambda c: f"{c.__name__} {altered(c)}")
def test_operations_of_its_own_are_refused_everywhere(cls):
    data = of(cls, A33)
    g = value_and_grad(lambda x, A: np.sum(A * A) * x[0])
    captured = value_and_grad(lambda x: np.sum(data * data) * x[0])
    for error, call in (
            (jitad.ArgumentTypeError, lambda: g(x3, data)), (jitad.ArgumentTypeError, lambda: g(data, x3)),
            (jitad.ArgumentTypeError, lambda: g(x3, [data])), (jitad.ArgumentTypeError, lambda: g.bind(data)(x3)),
            (jitad.ArgumentTypeError, lambda: g.bind(A33)(data)), (jitad.CaptureError, lambda: captured(x3)),
            (jitad.ArgumentTypeError, lambda: batch(g, in_axes=(None, 0))(x3, data))):
        with pytest.raises(error, match=r"whose operations are not those of arrays .*np\.asarray"):
            call()
    assert g(x3, np.asarray(data))[0] == 408.0                # and after that warm calls refuse as well
    for _ in range(2):
        with pytest.raises(jitad.ArgumentTypeError, match=cls.__name__):
            g(x3, data)


@pytest.mark.parametrize("cls", MEANT, ids=lambda c: c.__name__)
def test_other_classes_are_arrays(cls):
    data = of(cls, A33.copy())
    assert not altered(cls)
    g = value_and_grad(lambda x, A: np.sum(A * A) * x[0] + np.sum(data))
    for _ in range(3):
        value, gradient = g(x3, data)
        assert value == 444.0 and type(gradient) is np.ndarray
    before = cache.info(g).misses
    assert g.bind(data)(x3)[0] == 444.0 and g(x3, A33)[0] == 444.0 and cache.info(g).misses == before


def test_numbers_of_a_class_with_operations_of_its_own():
    g = jit_grad(lambda x, q: np.sum(x * (q * 2.0)))
    for base, value in ((float, 3.0), (int, 3), (complex, 3j), (np.float64, 3.0), (np.float32, 3.0), (np.int64, 3)):
        kind, plain = own("__mul__", base), type("Kind", (base,), {})
        cure = base.__name__ if base.__module__ == "builtins" else "np.asarray"
        with pytest.raises(jitad.ArgumentTypeError, match=rf"`q` .*those of numbers .*pass {cure} of it"):
            g(x3, kind(value))
        if base is not complex:
            for _ in range(2):
                np.testing.assert_array_equal(g(x3, plain(value)), [6.0] * 3)
            with pytest.raises(jitad.ArgumentTypeError, match="those of numbers"):
                g(x3, kind(value))
    narrow, number = np.ones(3, "f4"), type("Kind", (float,), {})(2.0)
    assert jit(lambda x, q: x * q)(narrow, number).dtype == (narrow * number).dtype
    with pytest.raises(jitad.CaptureError, match="those of numbers"):
        captured = own("__mul__", np.float64)(3.0)
        jit(lambda x: x * (captured * 2.0))(x3)


# --- another class in the place of the one that was compiled ---------------------------------------

def layouts_unknown(monkeypatch):
    monkeypatch.setattr(runtime, "layout", lambda: (_ for _ in ()).throw(UnknownLayout("test")))


WAYS = {"kernel": {}, "machine": {"tier": "machine"}, "background": {"compile": "background"}, "numba": {}}
SOURCE = "def f(x): return np.sum({0} * {0}) * x[0]"
PLACES = {"A": lambda home, value: home.update(A=value),
          "o.A": lambda home, value: setattr(home["o"], "A", value),
          "d['A'][0]": lambda home, value: home["d"].update(A=[value])}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_a_captured_class_is_not_mistaken_for_another(tmp_path, monkeypatch, way, place):
    if way == "numba":
        layouts_unknown(monkeypatch)
    home = {"np": np, "o": types.SimpleNamespace(), "d": {}}
    exec(SOURCE.format(place), home)
    first = np.memmap(tmp_path / "m", float, "w+", shape=(3, 3))
    first[:] = A33
    for start in (first, A33, Named(A33)):
        put = lambda value: PLACES[place](home, value)
        put(start)
        g = value_and_grad(home["f"], **WAYS[way])
        assert [g(x3)[0] for _ in range(3)] == [408.0] * 3
        for other in (np.matrix(A33), np.ma.masked_array(A33), A33.view(Thousand)):
            put(other)
            for _ in range(2):
                with pytest.raises(jitad.CaptureError, match=type(other).__name__):
                    g(x3)
        for other in (Named(2 * A33), 2 * A33, start):
            put(other)
            assert [g(x3)[0] for _ in range(3)] == [4 * 408.0 if other is not start else 408.0] * 3


def test_closures_and_complex_data():
    def make(A):
        def put(value):
            nonlocal A
            A = value
        return value_and_grad(lambda x: np.sum((A * A).real) * x[0]), put
    for data in (A33, A33 + 0j):
        g, put = make(Named(data))
        assert [g(x3)[0] for _ in range(3)] == [408.0] * 3
        for other in (np.matrix(data), np.ma.masked_array(data), data.view(Thousand)):
            put(other)
            with pytest.raises(jitad.CaptureError, match=type(other).__name__):
                g(x3)
        put(data)
        assert g(x3)[0] == 408.0


def test_a_captured_number_is_not_mistaken_for_another():
    home = {"np": np}
    exec("def f(x): return np.sum(x * (q * 2.0))", home)
    g = jit(home["f"])
    for start in (np.float64(3.0), type("Kind", (np.float64,), {})(3.0)):
        home["q"] = start
        assert [g(x3) for _ in range(3)] == [24.0] * 3
        home["q"] = own("__mul__", np.float64)(3.0)
        with pytest.raises(jitad.CaptureError, match="those of numbers"):
            g(x3)
    assert describe(start) != describe(np.float64(3.0)) == describe(np.float64(4.0))


def test_code_from_the_disk_and_files_know_classes(tmp_path, monkeypatch):
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_persistent", None)
    home = {"np": np, "__name__": "cell", "A": np.memmap(tmp_path / "m", float, "w+", shape=(3, 3))}
    exec("def f(x): return np.sum(A * A) * x[0]", home)
    home["A"][:] = A33
    cache.configure(disk=True)
    try:
        for _ in range(2):                                       # stored, and then loaded
            cache.clear()
            cache._persistent = None
            g = value_and_grad(home["f"])
            assert [g(x3)[0] for _ in range(3)] == [408.0] * 3
        assert cache.info(g).compiles == 0
        for again in (False, True):
            if again:
                cache.clear()
            home["A"] = np.matrix(A33)
            with pytest.raises(jitad.CaptureError, match="matrix"):
                g(x3)
    finally:
        cache.configure(disk=False)
        cache.clear()
    jit(lambda x: np.sum(x * x)).compile(A33).save(tmp_path / "f")
    loaded = jitad.load(tmp_path / "f")
    assert loaded(Named(A33)) == 204.0
    with pytest.raises(jitad.SignatureError, match=r"Thousand.*np\.asarray"):
        loaded(A33.view(Thousand))


def test_opaque_functions_return_arrays():
    answers = [np.asmatrix(A33), A33, A33.view(Thousand)]
    f = jit(jitad.primitive(opaque=True, jvp=lambda primals, y, tangents: y)(lambda x: answers[0]))
    with pytest.raises(jitad.OutputError, match="matrix"):
        f(x3)
    del answers[0]
    f(x3)
    del answers[0]
    with pytest.raises(jitad.OutputError, match="Thousand"):
        f(x3)


def test_classes_are_looked_at_once_and_kept_weakly():
    made = own("__mul__")
    assert altered(made) == "__mul__" and altered(list) == "" and altered(type("Below", (made,), {})) == "__mul__"
    assert as_plain(x3) is x3 and type(as_plain(Named(x3))) is np.ndarray
    assert as_plain(Named(x3)).ctypes.data == x3.ctypes.data
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None
