"""Rules of the user's own that are wrong, and what cannot have rules."""
from __future__ import annotations

import types

import numpy as np
import pytest

import jitad
from jitad import (
    ArgumentTypeError,
    CaptureError,
    MutationError,
    OutputError,
    UnsupportedOperationError,
    checkpoint,
    custom_gradient,
    jit_grad,
    primitive,
    stop_gradient,
)
from tests.helpers.public import compiling, fresh, x3  # noqa: F401


@primitive(vjp=lambda ct, y, x: 10.0 * ct)
def tenfold(x):
    """Wrong by a factor of ten, so that the rule shows."""
    return np.sin(x)


@pytest.mark.parametrize(("rule", "kind", "message"), [
    (lambda ct, y, x, z: ct, OutputError,
     "vjp rule of `<lambda>`.*test_errors.py:.*one cotangent for each of 2"),
    (lambda ct, y, x, z: (ct, ct, ct), OutputError, "one cotangent for each of 2 inputs.*returned 3"),
    (lambda ct, y, x, z: (ct, ct), OutputError, r"shape \(3,\) for input 1.*shape \(\); sum over what was broadcast"),
    (lambda ct, y, x, z: (ct > 0, None), OutputError, "dtype bool for input 0.*float64 is wanted"),
    (lambda ct, y, x, z: ("a", None), OutputError, "returned a str for input 0"),
    (lambda ct, y, x, z: ((ct, ct), None), OutputError, "structure of input 0, of 1 leaves, and returned 2"),
])
def test_vjp_rules_are_checked(rule, kind, message):
    f = primitive(lambda x, z: x * z, vjp=rule)
    with pytest.raises(kind, match=message):
        jit_grad(lambda x: np.sum(f(x, 2.0)))(x3)


def test_jvp_rules_are_checked():
    wrong = primitive(lambda x: x * 2, jvp=lambda dots, y, x: np.sum(dots[0]))
    with pytest.raises(OutputError, match=r"jvp rule of `<lambda>`.*shape \(\) for the result, which has shape \(3,\)"):
        jit_grad(lambda x: np.sum(wrong(x)))(x3)
    wrong = primitive(lambda x: x * 2, jvp=lambda dots, y, x: (dots[0], x))
    with pytest.raises(OutputError, match=r"structure of the result, of 1 leaves, and returned 2"):
        jit_grad(lambda x: np.sum(wrong(x)))(x3)
    curved = primitive(lambda x: x * 2, jvp=lambda dots, y, x: dots[0] ** 2)
    with pytest.raises(UnsupportedOperationError, match=r"jvp rule of `<lambda>` is not linear in its tangents"):
        jit_grad(lambda x: np.sum(curved(x)))(x3)


def test_what_cannot_be_a_primitive():
    with pytest.raises(ArgumentTypeError, match=r"needs a vjp= or jvp= rule for `f`, or opaque=True"):
        @primitive
        def f(x):
            return x
    with pytest.raises(ArgumentTypeError, match=r"jitad.primitive needs a function, not a int"):
        primitive(3, vjp=lambda ct, y, x: ct)
    with pytest.raises(ArgumentTypeError, match=r"a rule of `<lambda>` must be a function, not a str"):
        primitive(lambda x: x, vjp="no")
    keyword = primitive(lambda x, *, k: x, vjp=lambda ct, y, x: ct)
    with pytest.raises(ArgumentTypeError, match=r"by position.*keyword-only `k`"):
        jit_grad(lambda x: keyword(x, k=1))(1.0)
    count = primitive(lambda x: 3, vjp=lambda ct, y, x: ct)
    with pytest.raises(OutputError, match=r"must return floats"):
        jit_grad(lambda x: x * count(x))(1.0)
    whole = primitive(lambda z: z * 2, vjp=lambda ct, y, z: ct)
    with pytest.raises(UnsupportedOperationError, match=r"complex number.*real and imaginary"):
        jit_grad(lambda x: np.abs(whole(x + 1j)))(1.0)
    twist = primitive(lambda x: x * 1j, vjp=lambda ct, y, x: x)
    with pytest.raises(OutputError, match=r"returned complex numbers"):
        jit_grad(lambda x: np.abs(twist(x)))(1.0)


def test_custom_gradient_needs_a_pair():
    for f in (custom_gradient(lambda x: x), custom_gradient(lambda x: (x, 3.0))):
        with pytest.raises(OutputError, match=r"test_errors.py:.*must return \(y, pullback\)"):
            jit_grad(f)(1.0)
        with pytest.raises(OutputError, match=r"must return \(y, pullback\)"):
            f(1.0)
    wrong = custom_gradient(lambda x: (x * 2, lambda ct: np.ones(4)))
    with pytest.raises(OutputError, match=r"the pullback of `<lambda>`.*shape \(4,\) for input 0"):
        jit_grad(lambda x: np.sum(wrong(x)))(x3)


def test_inputs_are_not_written():
    def writes(x):
        x[0] = 0.0
        return x
    f = primitive(writes, vjp=lambda ct, y, x: ct)
    with pytest.raises(MutationError, match=r"argument"):
        jit_grad(lambda x: np.sum(f(x * 2)))(x3)
    with pytest.raises(MutationError, match=r"argument"):
        jit_grad(lambda x: np.sum(checkpoint(writes)(x * 2)))(x3)


def test_a_result_that_is_the_input_is_not_written_either():
    """In NumPy that would change the input."""
    clipped = primitive(lambda x: x[::-1], vjp=lambda ct, y, x: ct)
    called = primitive(lambda x: x, opaque=True, vjp=lambda ct, y, x: ct)
    for f in (clipped, called, checkpoint(lambda x: x), stop_gradient):
        def writes(x, f=f):
            a = x * 2
            b = f(a)
            b[0] = 5.0
            return np.sum(a * b)
        with pytest.raises(MutationError, match="argument"):
            jit_grad(writes)(x3)
    def fresh_result(x):
        b = tenfold(x)
        b[0] = 5.0
        return np.sum(b)
    np.testing.assert_array_equal(jit_grad(fresh_result)(x3), [0.0, 10.0, 10.0])


def test_rules_may_branch_on_inputs_alone():
    f = primitive(lambda x: x * 1.0, vjp=lambda ct, y, x: ct if x > 0 else -ct)
    g = jit_grad(f)
    assert [g(1.0), g(-1.0), g(2.0)] == [1.0, -1.0, 1.0]
    on_result = primitive(lambda x: x * 1.0, vjp=lambda ct, y, x: ct if y > 0 else -ct)
    with pytest.raises(jitad.ConcretizationError, match=r"rule's cotangent and result; use np.where"):
        jit_grad(on_result)(1.0)


def test_a_primitive_from_nowhere_is_refused():
    box, fixed = [tenfold], types.SimpleNamespace(inner=tenfold)
    def f(x):
        return min([box[0]], key=callable)(x)
    def hidden(x):
        return fixed.inner(x)
    assert jit_grad(f)(1.0) == 10.0
    with pytest.raises(CaptureError, match=r"way that cannot be followed"):
        jit_grad(hidden, static=("fixed",))(1.0)
