"""Densities as files for a linker: what there is without a C compiler; what is refused, and why."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad.constraints import lower, real
from jitad.errors import SignatureError, UnsupportedOperationError
from jitad.integrations.bridgestan import export


def test_without_a_compiler_there_are_a_header_and_an_object_file(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    compiled = jitad.value_and_grad(lambda theta: -theta @ theta).compile(np.zeros(3))
    files = compiled.export(tmp_path / "alone.so")
    assert files.library is None and files.object.stat().st_size > 500
    assert "int64_t alone_density(const double *free" in files.header.read_text()
    factors = jitad.value_and_grad(lambda u: -np.sum(np.linalg.solve(np.cosh(u[0]) * np.eye(40) + 0.1, np.ones(40))))
    with pytest.raises(UnsupportedOperationError, match=r"calls jitad_dgetrf.*without a C compiler"):
        factors.compile(np.zeros(1)).export(tmp_path / "factors")


@pytest.mark.parametrize(("function", "words"), [
    (lambda p: -p["x"] ** 2 if p["x"] > 0 else -2 * p["x"] ** 2, r"different ways through its code \(at .*test_lib"),
    (lambda p: -np.sum(np.linalg.eigvalsh(np.cosh(p["x"]) * np.eye(40) + 0.1) ** 2), "calls jitad_dsyevd, which"),
])
def test_what_a_library_cannot_have(function, words, tmp_path):
    with pytest.raises(UnsupportedOperationError, match=words):
        export(jitad.posterior(function, {"x": real()}), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_what_is_no_density_of_a_vector(tmp_path):
    with pytest.raises(SignatureError, match="one float64 vector"):
        jitad.value_and_grad(lambda a: a * a).compile(1.0).export(tmp_path / "model")
    post = jitad.posterior(lambda p: -p["x"], {"x": lower(0)}, generated=lambda p: {"word": np.array(["a"])})
    with pytest.raises(SignatureError, match="'word' is no array of numbers"):
        export(post, tmp_path / "model")
