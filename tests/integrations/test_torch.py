"""The bridge to PyTorch: values and derivatives of any order by autograd."""
from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

from jitad.errors import ArgumentTypeError
from jitad.integrations.torch import to_torch

X = np.random.default_rng(0).normal(size=(6, 2))
Y = np.arange(6.0)


def logp(b, s, x, y):
    return -0.5 * np.sum((x @ b - y) ** 2) / s**2 - y.size * np.log(s)


def expected(b, s):
    return -0.5 * torch.sum((torch.from_numpy(X) @ b - torch.from_numpy(Y)) ** 2) / s**2 - 6 * torch.log(s)


def leaf(*values, dtype=torch.float64):
    return torch.tensor(values if len(values) > 1 else values[0], dtype=dtype, requires_grad=True)


def test_value_and_derivatives_of_both_orders():
    density, b, s = to_torch(logp), leaf(0.3, -0.7), leaf(1.5)
    value = density(b, s, X, Y)
    assert value.shape == () and value.item() == pytest.approx(expected(b, s).item())
    for found, wanted in zip(torch.autograd.grad(density(b, s, X, Y), (b, s)),
                             torch.autograd.grad(expected(b, s), (b, s)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert torch.autograd.gradcheck(lambda b, s: density(b, s, X, Y), (b, s))
    assert torch.autograd.gradgradcheck(lambda b, s: density(b, s, X, Y), (b, s))
    hessian = torch.autograd.functional.hessian(lambda b: density(b, 1.5, X, Y), b)
    np.testing.assert_allclose(hessian, -X.T @ X / 1.5**2, rtol=1e-12)


def test_in_a_graph_with_tensors_and_arrays():
    """A vector as result, other tensors around it, and integers as data."""
    table, groups = leaf(1.0, 2.0, 3.0), torch.tensor([0, 2, 2, 1])
    picked = to_torch(lambda t, g: np.exp(t[g]))
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    (picked(table * 2, groups) * weights).sum().backward()
    np.testing.assert_allclose(table.grad, 2 * np.exp([2.0, 4.0, 6.0]) * [1.0, 4.0, 5.0], rtol=1e-12)
    assert not picked(table.detach(), groups).requires_grad
    assert torch.autograd.gradgradcheck(picked, (leaf(0.1, 0.2, 0.3), groups))


def test_an_optimiser_of_torch_finds_the_maximum():
    density, b = to_torch(logp), leaf(0.0, 0.0)
    optimiser = torch.optim.LBFGS([b], max_iter=100, tolerance_grad=1e-9, tolerance_change=1e-14,
                                  line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        loss = -density(b, 1.0, X, Y)
        loss.backward()
        return loss
    optimiser.step(closure)
    np.testing.assert_allclose(b.detach(), np.linalg.lstsq(X, Y, rcond=None)[0], rtol=1e-6)


def test_dtypes_shapes_and_what_is_not_taken():
    square = to_torch(lambda x: np.sum(x**2))
    x = leaf(1.0, 2.0, dtype=torch.float32)
    value = square(x)
    value.backward()
    assert value.dtype == x.grad.dtype == torch.float32 and x.grad.tolist() == [2.0, 4.0]
    assert square(leaf(1.0, 2.0, 3.0)).item() == 14.0
    for wrong, words in ((x.half(), "dtype torch.float16"), (x.to(torch.complex64), "dtype torch.complex64"),
                         (torch.zeros(2, device="meta"), "is on meta")):
        with pytest.raises(ArgumentTypeError, match=words):
            square(wrong)
    with pytest.raises(ValueError, match="no such place"):
        to_torch(refusing)(leaf(-1.0))


def refusing(x):
    if x < 0:
        raise ValueError("no such place")
    return x * x


def test_a_decorator_of_the_user_is_part_of_the_function():
    def doubled(f):
        return functools.wraps(f)(lambda x: 2.0 * f(x))
    assert to_torch(doubled(refusing))(leaf(3.0)).item() == 18.0
