"""Every derivative beyond the gradient, as users call them: Jacobians, Hessians, derivatives of one number."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitad.api.linear_operators import LazyHessian, LazyJacobian
from jitad.api.transforms import transform
from jitad.call.sparse import SparseFunction
from jitad.call.transformed import Transformed
from jitad.errors import ArgumentTypeError
from jitad.trace.where import user_line

__all__ = ["derivative", "hessian", "hvp", "jacobian", "second_derivative", "value_and_derivative",
           "value_and_jacobian", "value_derivative_and_second_derivative", "value_gradient_and_hessian"]

Function = Callable[..., Any] | None


def jacobian(f: Function = None, argnums: int | Sequence[int] = 0, *, mode: str = "auto", lazy: bool = False,
             sparse: bool = False, on_mismatch: str | None = None, static: Sequence[str] = (),
             parallel: bool | None = None) -> Any:
    """The compiled Jacobian of a function that returns arrays; a decorator with or without arguments.

    Parameters
    ----------
    f
        Plain NumPy code that returns floats: a number, an array, or a tree of them.
    argnums
        Which positional arguments to differentiate: an int, or a tuple, for which the Jacobian has a tuple.
    mode
        ``"forward"``: one tangent for each number that is differentiated. ``"reverse"``: one cotangent for each number
        that is returned. ``"auto"``: forward, unless fewer numbers are returned than differentiated. All of them go
        through one kernel together, and what does not depend on the direction is computed once.
    lazy
        Compute nothing yet: ``g(*args)`` is a `scipy.sparse.linalg.LinearOperator` of shape (numbers returned, numbers
        differentiated) over flattened results and arguments, whose products are one call of a kernel each.
    sparse
        ``g(*args)`` is a `scipy.sparse.csr_array` of shape (numbers returned, numbers differentiated) over flattened
        results and arguments, in the dtype of the arguments. Where it may have elements that are not zero is read off
        the tape, and columns (or rows, in reverse) that share no row are computed together: the Jacobian of a chain
        costs three directions however long it is. Elements that happen to be zero are stored; ``g.pattern(*args)`` says
        which are. What is picked by integer arrays that do not depend on the differentiated arguments (``mu[group]``)
        is known to be where they point: other values of them warn and compile again. Where they do depend on them
        (sorting), and in linear algebra, everything may depend on everything.
    on_mismatch, static, parallel
        As for `jit_grad`.

    Returns
    -------
    g
        ``g(*args)`` has, at each leaf of the result of `f`, the structure of the differentiated argument; where the
        result has shape s and the argument shape t, a block of shape ``s + t``, in the dtype of the argument:
        ``J[i, j] = d f(x)[i] / d x[j]``. By a complex argument the block has shape ``s + t + (2,)``: the derivatives by
        its real and its imaginary part (``J[..., 0]`` is the complex derivative of a holomorphic function). It is
        complex where the result is.
        `value`, `compile`, `tape`, `source` and ``out=`` as for `jit_grad`, but not with `lazy`.

    Raises
    ------
    OutputError
        On the first call, if `f` returns integers or booleans.
    ArgumentTypeError
        For a mode there is not, or `lazy` and `sparse` together; on a call, for an argument that cannot be
        differentiated.
    UnsupportedOperationError
        On the first call, if an operation has no derivative, or none in this mode; for a `lazy` or `sparse` one that is
        called in a function that is recorded.

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> jacobian(lambda x: x[:-1] * x[1:], lazy=True)(np.array([1.0, 2.0, 3.0])) @ np.ones(3)
    array([3., 5.])
    >>> J = jacobian(lambda x: x[1:] - x[:-1] ** 2, sparse=True)(np.array([1.0, 2.0, 3.0]))
    >>> J.toarray()
    array([[-2.,  1.,  0.],
           [ 0., -4.,  1.]])
    """
    _check_mode(mode)
    return transform(f, "sparse_jacobian" if sparse else "jacobian", argnums, on_mismatch, static, mode,
                     parallel=parallel, make=_made(lazy, LazyJacobian, sparse))


def value_and_jacobian(f: Function = None, argnums: int | Sequence[int] = 0, *, mode: str = "auto",
                       sparse: bool = False, on_mismatch: str | None = None, static: Sequence[str] = (),
                       parallel: bool | None = None) -> Any:
    """The value and the Jacobian from one kernel: ``(value, jacobian)``. As `jacobian` otherwise.

    >>> import numpy as np
    >>> value_and_jacobian(lambda x: x * x)(np.array([1.0, 3.0]))
    (array([1., 9.]), array([[2., 0.],
           [0., 6.]]))
    """
    _check_mode(mode)
    return transform(f, "value_and_sparse_jacobian" if sparse else "value_and_jacobian", argnums, on_mismatch, static,
                     mode, parallel=parallel, make=_made(False, LazyJacobian, sparse))


def _check_mode(mode: str) -> None:
    if mode not in ("auto", "forward", "reverse"):
        raise ArgumentTypeError(f'mode must be "auto", "forward" or "reverse", not {mode!r} (at {user_line()})')


def _made(lazy: bool, operator: Any, sparse: bool) -> Any:
    """What stands for the function; raises `ArgumentTypeError` for options that exclude each other."""
    if lazy and sparse:
        raise ArgumentTypeError(f"lazy=True and sparse=True exclude each other (at {user_line()}): an operator that "
                                "computes products, or a matrix of the elements that are not zero")
    return operator if lazy else SparseFunction if sparse else Transformed


def hessian(f: Function = None, argnums: int | Sequence[int] = 0, *, lazy: bool = False, sparse: bool = False,
            on_mismatch: str | None = None, static: Sequence[str] = (), parallel: bool | None = None) -> Any:
    """The compiled Hessian of a scalar function; a decorator with or without arguments.

    All columns go through one kernel together, forward over reverse: what does not depend on the direction, which
    is the function and its gradient, is computed once.

    Parameters
    ----------
    f
        Plain NumPy code that returns one real scalar.
    argnums
        Which positional arguments to differentiate: an int, or a tuple.
    lazy
        Compute nothing yet: ``g(*args)`` is a `scipy.sparse.linalg.LinearOperator` over the flattened arguments, whose
        products are Hessian-vector products, one call of a kernel each.
    sparse
        ``g(*args)`` is a symmetric `scipy.sparse.csr_array` over the flattened arguments. Columns are computed together
        as far as every element can still be read off, in its own row or in that of its mirror image: a model of
        thousands of effects and a few parameters that all of them share costs a few Hessian-vector products.
        Patterns, and what else there is to say, as for `jacobian`.
    on_mismatch, static, parallel
        As for `jit_grad`.

    Returns
    -------
    g
        ``g(*args)`` has, at each leaf of the differentiated argument (or tuple of arguments), that structure again: for
        leaves of shapes s and t a block of shape ``s + t``, ``H[i, j] = d² f / d x[i] d x[j]``, exactly symmetric. A
        complex leaf counts as its real and imaginary parts along a further dimension: its shape is ``t + (2,)``.
        `value`, `value_and_grad`, `compile`, `tape`, `source` and ``out=`` as for `jit_grad`, but not with `lazy`.

    Raises
    ------
    OutputError
        On the first call, if `f` returns anything but one real scalar.
    ArgumentTypeError, UnsupportedOperationError
        As for `jacobian`.

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    >>> hessian(lambda x: np.sum((x[1:] - x[:-1]) ** 2), sparse=True)(np.zeros(3)).toarray()
    array([[ 2., -2.,  0.],
           [-2.,  4., -2.],
           [ 0., -2.,  2.]])
    """
    return transform(f, "sparse_hessian" if sparse else "hessian", argnums, on_mismatch, static,
                     parallel=parallel, make=_made(lazy, LazyHessian, sparse))


def value_gradient_and_hessian(f: Function = None, argnums: int | Sequence[int] = 0, *, sparse: bool = False,
                               on_mismatch: str | None = None, static: Sequence[str] = (),
                               parallel: bool | None = None) -> Any:
    """Value, gradient and Hessian from one kernel: ``(value, gradient, hessian)``. As `hessian` otherwise.

    >>> import numpy as np
    >>> value_gradient_and_hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    (9.0, array([ 3., 12.]), array([[ 6.,  0.],
           [ 0., 12.]]))
    """
    return transform(f, "value_gradient_and_sparse_hessian" if sparse else "value_gradient_and_hessian", argnums,
                     on_mismatch, static, parallel=parallel, make=_made(False, LazyHessian, sparse))


def hvp(f: Function = None, argnums: int | Sequence[int] = 0, *, on_mismatch: str | None = None,
        static: Sequence[str] = (), parallel: bool | None = None) -> Any:
    """The compiled product of the Hessian with a vector: ``hvp(f)(x, v)``, and ``hvp(f)(*args, v)`` in general.

    `v` comes last among the positional arguments and has the structure, shapes and dtypes of the differentiated
    argument, or is a tuple of such for a tuple of `argnums`; so has the product. It costs a small multiple of
    a gradient, whatever the number of parameters. `on_mismatch`, `static`, `parallel` and errors as for `hessian`;
    `ArgumentTypeError` for a `v` of another structure, shape or dtype.

    >>> import numpy as np
    >>> hvp(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([4., 2.])
    """
    return transform(f, "hvp", argnums, on_mismatch, static, parallel=parallel)


def derivative(f: Function = None, argnums: int = 0, *, on_mismatch: str | None = None,
               static: Sequence[str] = (), parallel: bool | None = None) -> Any:
    """The compiled derivative with respect to one number of a function that returns anything made of floats.

    The derivative has the structure and shapes of what `f` returns. Options as for `jit_grad`.

    Raises
    ------
    ArgumentTypeError
        On a call, if the argument is not one number.
    OutputError
        On the first call, if `f` returns integers or booleans.

    Examples
    --------
    >>> import numpy as np
    >>> derivative(lambda t: {"position": np.array([t, t**2])})(3.0)
    {'position': array([1., 6.])}
    """
    return transform(f, "derivative", _one(argnums), on_mismatch, static, parallel=parallel)


def value_and_derivative(f: Function = None, argnums: int = 0, *, on_mismatch: str | None = None,
                         static: Sequence[str] = (), parallel: bool | None = None) -> Any:
    """The value and the derivative from one kernel: ``(value, derivative)``. As `derivative` otherwise.

    >>> value_and_derivative(lambda t: t**3)(2.0)
    (8.0, 12.0)
    """
    return transform(f, "value_and_derivative", _one(argnums), on_mismatch, static, parallel=parallel)


def second_derivative(f: Function = None, argnums: int = 0, *, on_mismatch: str | None = None,
                      static: Sequence[str] = (), parallel: bool | None = None) -> Any:
    """The compiled second derivative with respect to one number. As `derivative` otherwise.

    >>> second_derivative(lambda t: t**3)(2.0)
    12.0
    """
    return transform(f, "second_derivative", _one(argnums), on_mismatch, static, parallel=parallel)


def value_derivative_and_second_derivative(f: Function = None, argnums: int = 0, *, on_mismatch: str | None = None,
                                           static: Sequence[str] = (), parallel: bool | None = None) -> Any:
    """All three from one kernel. As `derivative` otherwise.

    >>> value_derivative_and_second_derivative(lambda t: t**3)(2.0)
    (8.0, 12.0, 12.0)
    """
    return transform(f, "value_derivative_and_second_derivative", _one(argnums), on_mismatch, static, parallel=parallel)


def _one(argnums: Any) -> int:
    if isinstance(argnums, (tuple, list)):
        raise ArgumentTypeError(f"a derivative is with respect to one number: argnums must be an int, not {argnums!r} "
                                f"(at {user_line()}); use jacobian for several")
    return argnums
