"""No function of SciPy's without a rule is recorded through: neither of traced arguments nor of functions."""
from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import differentiate, integrate, interpolate, ndimage, optimize, signal
from scipy.sparse import linalg as sparse_linalg
from scipy.spatial import distance
from scipy.spatial.transform import Rotation

from jitad import jit, value_and_grad
from jitad.errors import UnsupportedOperationError
from jitad.trace import reasons
from jitad.trace.captures import policy
from jitad.trace.captures.libraries.functions import guarded
from jitad.trace.captures.libraries.guards import ClassOfSciPy
from jitad.trace.substitutes import SUBSTITUTES
from tests.helpers.cases.functions import traced

NAMESPACES = """cluster.hierarchy cluster.vq differentiate fft integrate interpolate linalg ndimage optimize signal
signal.windows sparse sparse.csgraph sparse.linalg spatial spatial.distance spatial.transform special stats""".split()


def names_of(space):
    module = import_module(f"scipy.{space}")
    return module, [n for n in getattr(module, "__all__", dir(module)) if not n.startswith("_")]


@pytest.mark.parametrize("space", NAMESPACES)
def test_what_has_no_rule_takes_no_traced_argument(space):
    """Every public function and class: a rule, a formula of the allow-list, or a refusal under its name."""
    module, names = names_of(space)
    x, = traced(np.ones(3))
    refused = 0
    for name in names:
        value = getattr(module, name)
        if not callable(value) or isinstance(value, np.ufunc) or not getattr(value, "__name__", ""):
            continue                                     # rows of the table, distributions, constants
        if isinstance(value, type) and issubclass(value, BaseException):
            continue
        home = next(m for m in (value.__module__, getattr(type(value), "__module__", "")) if m)
        if home.partition(".")[0] != "scipy" or policy.substitute(value) is not None:
            continue
        if name in reasons.THROUGH.get(f"scipy.{space}", "").split():
            continue
        with pytest.raises(UnsupportedOperationError, match=rf"scipy\.[\w.]*{value.__name__}\b.* at .*model.py:7"):
            guarded(value)(x)
        refused += 1
    assert refused


def test_the_allow_list_names_functions_that_exist():
    for module, names in reasons.THROUGH.items():
        for name in names.split():
            value = getattr(import_module(module), name)
            assert SUBSTITUTES.get(value) is None and guarded(value) is not None


X = np.arange(4.0)
METHODS = ("Nelder-Mead Powell CG BFGS Newton-CG L-BFGS-B TNC COBYLA COBYQA SLSQP trust-constr dogleg trust-ncg "
           "trust-krylov trust-exact").split()
# What is called back gives a traced value; all else is plain.
CALLS = {
    "optimize.golden": lambda f: optimize.golden(f), "optimize.brent": lambda f: optimize.brent(f),
    "optimize.bracket": lambda f: optimize.bracket(f), "optimize.fminbound": lambda f: optimize.fminbound(f, 0, 2),
    "optimize.newton": lambda f: optimize.newton(f, 1.0), "optimize.bisect": lambda f: optimize.bisect(f, 0.0, 9.0),
    "optimize.ridder": lambda f: optimize.ridder(f, 0.0, 9.0), "optimize.brenth": lambda f: optimize.brenth(f, 0, 9.0),
    "optimize.brentq": lambda f: optimize.brentq(f, 0.0, 9.0), "optimize.toms748": lambda f: optimize.toms748(f, 0, 9),
    "optimize.root_scalar": lambda f: optimize.root_scalar(f, x0=1.0),
    "optimize.fsolve": lambda f: optimize.fsolve(f, 1.0),
    "optimize.fixed_point": lambda f: optimize.fixed_point(f, 1.0),
    "optimize.minimize_scalar": lambda f: optimize.minimize_scalar(f, bounds=(0, 2)),
    "optimize.fmin": lambda f: optimize.fmin(f, 1.0), "optimize.fmin_bfgs": lambda f: optimize.fmin_bfgs(f, 1.0),
    "optimize.leastsq": lambda f: optimize.leastsq(f, [1.0]), "optimize.brute": lambda f: optimize.brute(f, ((0, 2),)),
    "optimize.least_squares": lambda f: optimize.least_squares(f, [1.0]),
    "optimize.curve_fit": lambda f: optimize.curve_fit(lambda x, b: b * f(x), X, X),
    "optimize.basinhopping": lambda f: optimize.basinhopping(f, [1.0]),
    "optimize.differential_evolution": lambda f: optimize.differential_evolution(f, [(0, 2)]),
    "optimize.dual_annealing": lambda f: optimize.dual_annealing(f, [(0, 2)]),
    "optimize.shgo": lambda f: optimize.shgo(f, [(0, 2)]), "optimize.direct": lambda f: optimize.direct(f, [(0, 2)]),
    "optimize.approx_fprime": lambda f: optimize.approx_fprime(np.ones(1), f),
    "optimize.root": lambda f: optimize.root(f, [1.0]), "integrate.quad": lambda f: integrate.quad(f, 0, 1),
    "integrate.dblquad": lambda f: integrate.dblquad(lambda y, x: f(x), 0, 1, 0, 1),
    "integrate.tplquad": lambda f: integrate.tplquad(lambda z, y, x: f(x), 0, 1, 0, 1, 0, 1),
    "integrate.nquad": lambda f: integrate.nquad(f, [(0, 1)]),
    "integrate.quad_vec": lambda f: integrate.quad_vec(f, 0, 1),
    "integrate.tanhsinh": lambda f: integrate.tanhsinh(f, 0, 1), "integrate.nsum": lambda f: integrate.nsum(f, 0, 9),
    "integrate.cubature": lambda f: integrate.cubature(f, [0.0], [1.0]),
    "integrate.solve_ivp": lambda f: integrate.solve_ivp(lambda t, y: f(y), (0, 1), [1.0]),
    "integrate.odeint": lambda f: integrate.odeint(lambda y, t: f(y), 1.0, X),
    "integrate.RK45": lambda f: integrate.RK45(lambda t, y: f(y), 0.0, [1.0], 1.0).step(),
    "integrate.solve_bvp": lambda f: integrate.solve_bvp(lambda x, y: f(y), lambda a, b: a, X, np.ones((1, 4))),
    "differentiate.derivative": lambda f: differentiate.derivative(f, 1.0),
    "differentiate.jacobian": lambda f: differentiate.jacobian(f, np.ones(2)),
    "interpolate.approximate_taylor_polynomial":
        lambda f: interpolate.approximate_taylor_polynomial(f, 0.0, 2, 1.0),
    "ndimage.generic_filter": lambda f: ndimage.generic_filter(X, lambda w: f(w[0]), 3),
    "ndimage.geometric_transform": lambda f: ndimage.geometric_transform(X, lambda at: (f(at[0]),)),
    "spatial.distance.cdist": lambda f: distance.cdist(X[:, None], X[:, None], lambda u, v: f(u[0])),
    **{f"optimize.minimize {m}": lambda f, m=m: optimize.minimize(
        f, [1.0], method=m, jac=lambda x: 2 * x, hess=lambda x: np.eye(1)) for m in METHODS},
    **{f"optimize.root {m}": lambda f, m=m: optimize.root(f, [1.0], method=m) for m in (
        "hybr lm broyden1 broyden2 anderson linearmixing diagbroyden excitingmixing krylov df-sane").split()},
}


def has_rule(name):
    module, _, short = name.partition(" ")[0].rpartition(".")
    return SUBSTITUTES.get(getattr(import_module(f"scipy.{module}"), short)) is not None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in CALLS if not has_rule(name)])
def test_no_traced_value_comes_back_from_a_function(name, capfd):
    """Also when all arguments are plain, and whether Python or compiled code calls."""
    def density(a):
        found = CALLS[name](lambda x: (x - a) ** 2)
        return a + (found if isinstance(found, float) else 0.0)

    short = name.partition(" ")[0]
    with pytest.raises(UnsupportedOperationError, match=rf"scipy\.{short}.* at .*test_guards\.py:\d+"):
        value_and_grad(density)(1.25)


def test_a_refusal_that_is_caught_is_raised_at_the_end():
    def density(a):
        try:
            return optimize.shgo(lambda x: (x[0] - a) ** 2, [(0, 2)]).fun
        except UnsupportedOperationError:
            return a

    with pytest.raises(UnsupportedOperationError, match=r"scipy\.optimize\.shgo"):
        jit(density)(1.0)


def test_what_meets_nothing_traced_runs_as_it_is():
    found = value_and_grad(lambda a: a * optimize.direct(lambda x: (x[0] - 2.0) ** 2, [(0.0, 3.0)]).x[0])(3.0)
    np.testing.assert_allclose(found, (6.0, 2.0), rtol=1e-3)


def test_a_branch_in_a_function_that_is_called_back_is_guarded():
    def density(a):
        return a * optimize.shgo(lambda x: (x[0] - (2.0 if a > 0 else 1.0)) ** 2, [(0.0, 3.0)]).x[0]

    for _ in range(2):
        np.testing.assert_allclose(value_and_grad(density)(3.0), (6.0, 2.0), rtol=1e-4)
        np.testing.assert_allclose(value_and_grad(density)(-3.0), (-3.0, 1.0), rtol=1e-4)


def test_classes_stand_for_themselves():
    """Questions about types, class methods, and a class as an argument of SciPy's."""
    matrix = sp.csr_matrix(np.eye(2))

    def density(a):
        assert isinstance(matrix, sp.csr_matrix) and issubclass(sp.csr_matrix, sp.spmatrix)
        assert isinstance(sp.csr_matrix([[1.0]]), sp.csr_matrix) and sp.issparse(matrix)
        turned = Rotation.from_euler("z", 0.5).as_matrix()
        return a * turned[0, 0]

    np.testing.assert_allclose(value_and_grad(density)(2.0), (2 * np.cos(0.5), np.cos(0.5)))
    assert guarded(sp.csr_matrix) == sp.csr_matrix and hash(guarded(sp.csr_matrix)) == hash(sp.csr_matrix)
    assert isinstance(guarded(sp.csr_matrix), ClassOfSciPy)
    with pytest.raises(UnsupportedOperationError, match=r"scipy\.spatial\.transform\.Rotation\.from_euler at "):
        jit(lambda a: Rotation.from_euler("z", a).as_matrix())(0.5)


def test_sparse_matrices_of_traced_entries_are_seen():
    matrix = sp.csr_matrix(np.eye(3))
    with pytest.raises(UnsupportedOperationError, match=r"scipy\.sparse\.linalg\.svds with which=.* at .*test_guards"):
        jit(lambda a: sparse_linalg.svds(matrix * a, k=1, which="SM")[1])(2.0)


def test_formulas_of_the_allow_list():
    t = np.linspace(-0.1, 0.1, 7)
    value, slope = value_and_grad(lambda a: np.sum(signal.gausspulse(a * t, fc=5)))(1.1)
    expected = lambda a: np.sum(signal.gausspulse(a * t, fc=5))
    np.testing.assert_allclose(value, expected(1.1))
    np.testing.assert_allclose(slope, (expected(1.1 + 1e-6) - expected(1.1 - 1e-6)) / 2e-6, rtol=1e-6)
