"""What ``jacobian(f, sparse=True)`` and ``hessian(f, sparse=True)`` return."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.call.family import restored_as
from jitad.call.request.sparse import Matrix
from jitad.call.transformed import Transformed
from jitad.errors import UnsupportedOperationError
from jitad.trace.where import user_line


class SparseFunction(Transformed):
    """A function together with its sparse Jacobian or Hessian, which is a `scipy.sparse.csr_array`."""

    def pattern(self, /, *args: Any, **kwargs: Any) -> Any:
        """Where the matrix may have elements that are not zero, for arguments like these: a boolean
        `scipy.sparse.csr_array`, True at every element that is stored. Computes no derivative.

        Raises what a call would raise.
        """
        specialization = self.with_tape(self.subject.arguments(args, kwargs))
        return _matrix(specialization.result.frame).pattern()

    def _on_tape(self, recorder: Any, function: Callable[..., Any], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        if self.subject.request.sparse:
            raise UnsupportedOperationError(
                f"a sparse matrix of derivatives of `{self.__name__}` cannot be computed while a function is recorded "
                f"(at {user_line()}); leave out sparse=True there, or use jvp, vjp or hvp")
        return super()._on_tape(recorder, function, args, kwargs)


def _matrix(frame: Any) -> Matrix:
    """The last part of a result, which is the matrix."""
    tree, below = frame
    return tree if isinstance(tree, Matrix) else _matrix(below[-1])


restored_as("sparse", SparseFunction)
