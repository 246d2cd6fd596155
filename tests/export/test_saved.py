"""Tapes in files: the same results, another process, and files that are not what they should be."""
from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import jitad
from benchmarks.models.table import MODELS
from jitad import SignatureError, TapeFileError
from jitad.export.data import tape_data, tape_of
from jitad.tape.builder import Builder
from jitad.tape.types import TABLE, Aval


@dataclass
class Point:
    x: np.ndarray
    scale: float


@pytest.mark.filterwarnings("error")
def test_every_row_goes_through_a_file():
    rng = np.random.default_rng(0)
    seen = 0
    for prim in TABLE.values():
        for inputs, params in prim.samples(rng) if prim.samples and not prim.trusts else ():
            builder = Builder()
            values = [builder.input(Aval(np.shape(x), np.asarray(x).dtype), f"x{i}") for i, x in enumerate(inputs)]
            tape = builder.finish([builder.value(builder.apply(prim, [v.number for v in values], params))])
            arrays: list[np.ndarray] = []
            assert tape_of(json.loads(json.dumps(tape_data(tape, arrays))), arrays) == tape, prim
            seen += 1
    assert seen > 150


@pytest.mark.parametrize("name", ["eight_schools", "varying_intercepts"])
def test_a_model_comes_back(name, tmp_path):
    theta, data = MODELS[name].problem()
    compiled = jitad.value_and_grad(MODELS[name].logp).compile(theta, *data)
    compiled.save(tmp_path / "model.tape")
    loaded = jitad.load(tmp_path / "model.tape")
    assert loaded.tape == compiled.tape
    value, gradient = loaded(theta + 0.1, *data)
    expected_value, expected = compiled(theta + 0.1, *data)
    assert isinstance(value, float) and value == expected_value
    np.testing.assert_array_equal(gradient, expected)


def test_trees_numbers_and_captures(tmp_path):
    weights = np.array([1.0, 2.0, 3.0])

    def f(p, n, mode):
        return np.sum(weights * p["at"].x ** 2) * p["at"].scale * n if mode == "full" else 0.0

    gradient = jitad.jit_grad(f)
    argument = {"at": Point(np.arange(3.0), 2.0)}
    gradient.compile(argument, 2, "full").save(tmp_path / "f.tape")
    loaded = jitad.load(str(tmp_path / "f.tape"))
    expected = gradient(argument, 3, "full")["at"]
    for same in (argument, {"at": {"x": np.arange(3.0), "scale": 2.0}}):
        found = loaded(same, n=3, mode="full")["at"]
        np.testing.assert_array_equal(found["x"], expected.x)
        assert found["scale"] == expected.scale and type(found["scale"]) is float
    weights[:] = 0                                     # captured values are those of the day
    assert loaded(argument, 3, "full")["at"]["x"][1] == expected.x[1]
    assert list(loaded.captured) == ["weights"]
    loaded.save(tmp_path / "again.tape")
    assert jitad.load(tmp_path / "again.tape").tape == loaded.tape
    with pytest.raises(SignatureError, match=r"`mode` was saved as 'full', and cannot be 'none' \(called at "):
        loaded(argument, 3, "none")
    with pytest.raises(SignatureError, match=r"`p` has another structure"):
        loaded({"other": 1.0}, 3, "full")


def test_another_process_needs_nothing_of_the_function(tmp_path):
    def f(x):
        total = 0.0
        for t in range(100):
            total = total + np.sin(x[t % 3]) * t
        return total

    jitad.value_and_grad(f).compile(np.ones(3)).save(tmp_path / "f.tape")
    code = ("import sys, numpy as np, jitad; v, g = jitad.load(sys.argv[1])(np.array([1.0, 2.0, 3.0])); "
            "print(repr((v, g.tolist())))")
    out = subprocess.run([sys.executable, "-c", code, str(tmp_path / "f.tape")], capture_output=True, text=True,
                         check=True).stdout
    value, gradient = jitad.value_and_grad(f)(np.array([1.0, 2.0, 3.0]))
    assert out.strip() == repr((value, gradient.tolist()))


def test_calls_that_it_cannot_serve(tmp_path):
    def f(x):
        if x[0] > 0:
            return np.sum(x)
        return np.sum(x * x)

    jitad.jit_grad(f).compile(np.ones(2)).save(tmp_path / "f.tape")
    loaded = jitad.load(tmp_path / "f.tape")
    np.testing.assert_array_equal(loaded(np.array([3.0, -1.0])), [1.0, 1.0])
    np.testing.assert_array_equal(loaded(np.array([3, -1])), [1.0, 1.0])           # integers are floats here
    with pytest.raises(SignatureError, match=r"one way through its branches.*test_saved.py:\d+ \(called at"):
        loaded(-np.ones(2))
    for wrong in (np.ones(3), np.ones(2, "f4"), "x", 1.0):
        with pytest.raises(SignatureError, match=r"argument `x` must be float64 of shape \(2,\), not"):
            loaded(wrong)
    for args, kwargs in (((), {}), ((np.ones(2), 1), {}), ((np.ones(2),), {"x": np.ones(2)}), ((), {"y": 1})):
        with pytest.raises(SignatureError, match=r"`.*f` takes the arguments x"):
            loaded(*args, **kwargs)


def test_what_cannot_be_saved(tmp_path):
    compiled = jitad.jit_grad(lambda x: np.sum(x[1.5])).compile({1.5: np.ones(2)})
    with pytest.raises(TapeFileError, match="cannot be in a file; use text as keys"):
        compiled.save(tmp_path / "f.tape")
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError):
        jitad.jit_grad(lambda x: x * x).compile(1.0).save(tmp_path / "nowhere" / "f.tape")


def test_sparse_products_stay_out_of_files(tmp_path):
    matrix = scipy.sparse.csr_array(np.eye(3))
    compiled = jitad.jit(lambda x: matrix @ x).compile(np.ones(3))
    with pytest.raises(TapeFileError, match=r"`sparse_rows` at .*test_saved.py:\d+ is a product with a sparse matrix"):
        compiled.save(tmp_path / "f.tape")
    node = {"op": "sparse_rows", "in": [0, 1, 2, 3]}
    with pytest.raises(TapeFileError, match="sparse matrix"):
        tape_of({"nodes": [node], "inputs": [], "names": [], "outputs": [0], "labels": [], "guards": []}, [])


# --- files that are not what they should be ------------------------------------------------------

@pytest.fixture
def saved(tmp_path):
    """A file, and a function that writes it changed and loads that."""
    def f(x, i):
        return np.sum(np.cumsum(x[1:4])[::-1] * x[i]) + np.linalg.det(np.reshape(x[:4], (2, 2)))

    path = tmp_path / "f.tape"
    jitad.value_and_grad(f).compile(np.arange(5.0), np.array([0, 2, 4])).save(path)

    def changed(change):
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        data = json.loads(members["tape.json"])
        members["tape.json"] = json.dumps(change(data) or data).encode()
        with zipfile.ZipFile(tmp_path / "changed.tape", "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return jitad.load(tmp_path / "changed.tape")
    assert changed(lambda data: None).tape
    return changed


def _hostile_values(value):
    """Values to put in the place of `value`."""
    yield from (None, -1, 10**6, 2**70, "../../etc/passwd", [], {}, [[-1]], {"float": "nan"}, True)
    if isinstance(value, int):
        yield from (value + 1, value - 1)


def _places(data, path=()):
    """The paths of all parts of nested lists and dicts."""
    yield path
    for key in (data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()):
        yield from _places(data[key], (*path, key))


def test_no_change_of_a_file_is_run_unchecked(saved):
    """Whatever part of the file is replaced: an error, or a tape that the interpreter and the kernel agree on."""
    original = {}
    saved(lambda data: original.update(data))
    places = [p for p in _places(original) if p and p[-1] not in ("at", "line") and "at" not in p]
    rng = np.random.default_rng(0)
    refused = ran = 0
    right = saved(lambda data: None)
    for place in [places[i] for i in rng.permutation(len(places))[:60]]:
        for value in _hostile_values(None):
            def change(data, place=place, value=value):
                part = data
                for key in place[:-1]:
                    part = part[key]
                part[place[-1]] = value
            try:
                loaded = saved(change)
            except TapeFileError as error:
                assert "save it again" in str(error)
                refused += 1
                continue
            assert loaded.tape.check()
            if loaded.tape != right.tape and ran < 15:
                ran += 1
                _runs_as_interpreted(loaded)
    assert refused > 200 and ran


def _runs_as_interpreted(loaded):
    args = np.linspace(0.5, 2, 5), np.array([0, 2, 4])
    try:
        found = loaded(*args)
    except (SignatureError, IndexError):
        return
    expected = loaded._specialization.interpret(loaded._inputs(args, {}))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("op, param, value", [
    ("view", "index", [[100, [[0, 1]]]]), ("view", "index", [[-1, [[0, 1]]]]), ("view", "index", [[0, [[7, 1]]]]),
    ("view", "shape", [10**9]), ("cumsum", "axis", -1), ("cumsum", "axis", 3), ("gather", "axes", [4]),
    ("reduce_sum", "axes", [-1]),
])
def test_maps_and_axes_stay_within_their_arrays(saved, op, param, value):
    def change(data):
        node = next(n for n in data["tape"]["nodes"] if n["op"] == op)
        node["params"][param] = value
    with pytest.raises(TapeFileError):
        saved(change)


def test_each_axis_has_an_index(tmp_path):
    """NumPy would store whole rows where one of two indices is left out."""
    def f(x, i, j):
        a = np.zeros((3, 3))
        a[i, j] = x
        return np.sum(a * a)
    path = tmp_path / "f.tape"
    jitad.jit(f).compile(np.ones(2), np.array([0, 1]), np.array([1, 2])).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    data = json.loads(members["tape.json"])
    next(n for n in data["tape"]["nodes"] if n["op"] == "put")["in"].pop()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, "tape.json": json.dumps(data)}.items():
            archive.writestr(name, content)
    with pytest.raises(TapeFileError, match="`put` has not one index for each of its axes"):
        jitad.load(path)


def test_foreign_files(tmp_path):
    class Evil:
        def __reduce__(self):
            return exec, ("raise SystemExit('executed')",)

    array = io.BytesIO()
    np.save(array, np.array([Evil()], object), allow_pickle=True)
    for number, content in enumerate([b"", b"not a tape", pickle.dumps(Evil()), array.getvalue()]):
        path = tmp_path / f"{number}.tape"
        path.write_bytes(content)
        with pytest.raises(TapeFileError, match="holds no tape"):
            jitad.load(path)
    with zipfile.ZipFile(tmp_path / "zip.tape", "w") as archive:
        archive.writestr("tape.json", json.dumps({"format": "jitad tape", "version": 1}))
        archive.writestr("0.npy", array.getvalue())
    with pytest.raises(TapeFileError, match="allow_pickle=False"):
        jitad.load(tmp_path / "zip.tape")
    with pytest.raises(OSError):
        jitad.load(tmp_path / "absent.tape")


def test_a_later_version_says_so(saved):
    with pytest.raises(TapeFileError, match="version 99; known is version 1"):
        saved(lambda data: {**data, "version": 99})


def test_a_file_whose_directory_points_before_its_start_is_a_broken_file(tmp_path):
    path = tmp_path / "square.tape"
    jitad.jit_grad(lambda x: x * x).compile(1.0).save(path)
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    data[end + 12:end + 16] = (len(data) * 2).to_bytes(4, "little")          # the size of the directory
    path.write_bytes(bytes(data))
    with pytest.raises(TapeFileError, match="holds no tape"):
        jitad.load(path)
    with pytest.raises(FileNotFoundError):
        jitad.load(tmp_path / "none.tape")


def test_files_of_version_0_1_0_are_read():
    loaded = jitad.load(Path(__file__).parent / "version_0.1.0.tape")
    y = np.linspace(-1, 1, 20)
    value, gradient = loaded({"x": np.array([0.1, -0.2, 0.3]), "start": 0.5}, y)
    assert value == pytest.approx(24.018636573824455, rel=1e-14)
    assert gradient["start"] == pytest.approx(-2.0526357951934857, rel=1e-13)
    np.testing.assert_allclose(gradient["x"], [0.52497919, 0.80262468, 2.13284851], rtol=1e-8)
    with pytest.raises(SignatureError):
        loaded({"x": np.ones(3), "start": 0.5}, y[1:])


def test_a_small_file_does_not_unpack_to_a_large_one(tmp_path):
    """Zeros shrink a thousand times; arrays of that size are written as they are, and come back."""
    bomb, zeros = tmp_path / "bomb.tape", np.zeros(3 << 20)
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tape.json", b" " * (80 << 20))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(TapeFileError, match="more than a tape needs"):
        jitad.load(bomb)
    jitad.jit(lambda x: x + zeros[5] + np.sum(zeros)).compile(1.0).save(tmp_path / "zeros.tape")
    assert jitad.load(tmp_path / "zeros.tape")(2.0) == 2.0


@pytest.mark.parametrize(("op", "params", "shape"), [
    ("exp", {}, [10**5, 10**5]), ("contract", {"spec": "ij,jk->ik"}, [20_000, 20_000]),
    ("cholesky", {}, [30_000, 30_000]), ("cumsum", {"axis": 0, "reverse": False}, [10**9]),
    ("view", {"shape": [10**5, 10**5], "index": [[0, []], [0, []]]}, [1, 1]), ("positions", {"count": 10**9}, [10**10]),
    ("scatter", {"axes": [0], "shape": [10**10]}, [3])])
def test_arrays_that_a_file_declares_are_not_made(op, params, shape):
    """All of these would need gigabytes, or minutes: they are checked by their shapes."""
    count = {"contract": 2, "scatter": 2}.get(op, 1)
    dtype = "bool" if op == "positions" else "float64"
    nodes = [{"op": "input", "type": [dtype, shape]} for _ in range(count)]
    if op == "scatter":
        nodes[1]["type"] = ["int64", shape]
    data = {"nodes": [*nodes, {"op": op, "in": list(range(count)), "params": params}], "inputs": list(range(count)),
            "names": list("xy"[:count]), "outputs": [count], "labels": [], "guards": []}
    tracemalloc.start()
    try:
        assert tape_of(data, []).nodes[count].prim.name == op
        assert tracemalloc.get_traced_memory()[1] < 1e7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("op", "params", "types"), [
    ("select", {}, [("float64", [3])] * 3), ("cholesky", {}, [("int64", [3, 3])]),
    ("gather", {"axes": [0]}, [("float64", [3]), ("float64", [2])]), ("reduce_max", {}, [("float64", [3])]),
    ("reduce_any", {"axes": [0]}, [("float64", [3])]), ("searchsorted", {"side": 1}, [("float64", [3])] * 2),
    ("concatenate", {"axis": 0}, [("float64", [3]), ("int64", [3])]),
    ("reshape", {"shape": [10**6]}, [("float64", [3])]),
    ("scatter", {"axes": [0], "shape": [10**10]}, [("float64", [3]), ("int64", [2])]),
    ("tril", {"k": 2**70}, [("float64", [3, 3])]), ("exp", {}, [("float64", [2**40, 2**40])]),
    ("custom", {}, [("float64", [3])]), ("pick", {"index": 0, "shape": [3], "dtype": "float64"}, [("float64", [3])])])
def test_operands_and_params_are_those_that_rows_have_code_for(op, params, types):
    nodes = [{"op": "input", "type": [dtype, shape]} for dtype, shape in types]
    places = list(range(len(types)))
    data = {"nodes": [*nodes, {"op": op, "in": places, "params": params}], "inputs": places,
            "names": list("xyz"[:len(types)]), "outputs": [len(types)], "labels": [], "guards": []}
    with pytest.raises(TapeFileError):
        tape_of(data, [])


def test_an_array_is_as_long_as_its_header_says(tmp_path):
    jitad.jit(lambda x: x * np.arange(3.0)).compile(np.ones(3)).save(tmp_path / "f.tape")
    with zipfile.ZipFile(tmp_path / "f.tape") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    longer = io.BytesIO()
    np.lib.format.write_array_header_1_0(longer, {"descr": "<f8", "fortran_order": False, "shape": (10**10,)})
    members["0.npy"] = longer.getvalue() + bytes(24)
    with zipfile.ZipFile(tmp_path / "g.tape", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(TapeFileError, match="an array of float64"):
        jitad.load(tmp_path / "g.tape")


def test_the_order_of_loose_keywords_is_that_of_the_file(tmp_path):
    def f(x, **weights):
        return sum((i + 1) * np.sum(x * w) for i, w in enumerate(weights.values()))
    x = np.array([1.0, 2.0])
    jitad.jit(f).compile(x, a=2.0, b=3.0).save(tmp_path / "tape")
    loaded = jitad.load(tmp_path / "tape")
    assert loaded(x, a=2.0, b=3.0) == f(x, a=2.0, b=3.0) != f(x, b=3.0, a=2.0)
    with pytest.raises(jitad.SignatureError, match="keywords a, b in this order"):
        loaded(x, b=3.0, a=2.0)
