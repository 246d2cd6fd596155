"""A posterior as a shared library with BridgeStan's C interface.

>>> import numpy as np, jitad
>>> from jitad.constraints import positive, real
>>> from jitad.integrations.bridgestan import export
>>> def logp(mu, tau, y):
...     return -0.5 * np.sum(((y - mu) / tau) ** 2) - y.size * np.log(tau) - tau
>>> post = jitad.posterior(logp, dict(mu=real(), tau=positive()), data=(np.array([1.2, 0.7, 2.1]),))
>>> import tempfile, pathlib
>>> folder = tempfile.TemporaryDirectory()
>>> files = export(post, pathlib.Path(folder.name, "model"))
>>> files.header.name, files.object.name
('model.h', 'model.o')
>>> folder.cleanup()
"""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from jitad.api.transforms import jit
from jitad.call.bound import tape_and_inputs
from jitad.constraints.joint import flat_group, free_of
from jitad.errors import SignatureError
from jitad.export.library import Exportable, Exported
from jitad.export.library import export as write
from jitad.inference.density import Density
from jitad.inference.model import Posterior


def export(post: Posterior, path: str | os.PathLike[str]) -> Exported:
    """Write a posterior as ``path.h`` and ``path.o``, a C header and an object file for this processor, and, where a
    C compiler is at hand (``$CC``, ``cc``), as ``path.so``, which ``bridgestan.StanModel("path.so")`` and BridgeStan's
    clients for R, Julia and Rust take.

    The parameters have BridgeStan's names and order, ``L.2.1``; what `generated` gives are generated quantities; the
    data are part of the library, which is given none. `propto` makes no difference: the density is as it was written.

    Parameters
    ----------
    post
        A posterior of `jitad.posterior`.
    path
        Where to write, with or without an ending.

    Returns
    -------
    Exported
        The paths: `header`, `object`, and `library`, which is None without a C compiler.

    Raises
    ------
    UnsupportedOperationError
        Where the density or what is generated takes different ways through its branches; where they call Python,
        SciPy or parts of LAPACK.
    SignatureError
        For generated quantities that are no numbers.
    """
    u = np.full(post.dim, 0.1)
    shapes: dict[str, dict[str, tuple[int, ...]]] = {"posterior": {}, "generated": {}}
    with np.errstate(all="ignore"):
        for group, values in post.stored(u).items():
            if group in shapes:
                shapes[group] = {name: np.shape(x) for name, x in values.items()}
                _require_numbers(values)
    data, blocks = post.observed.values, post.free.blocks
    stored = post.stored_function

    def vector(groups: tuple[str, ...]) -> Any:
        return tape_and_inputs(jit(flat_group(stored, groups), on_mismatch="silent").bind(*data), u)
    flat = np.concatenate([np.ravel(np.asarray(x, dtype=np.float64)) for x in post.constrain(u).values()])
    free = tape_and_inputs(jit(free_of(blocks), on_mismatch="silent").bind(), flat)
    likelihood = Density(post.likelihood, blocks, data)
    name = getattr(post.given[0], "__name__", "density")
    return write(Exportable(
        name, tape_and_inputs(post.density.bound, u), tape_and_inputs(likelihood.bound, u), vector(("posterior",)),
        vector(("posterior", "generated")), free, shapes["posterior"], shapes["generated"], post.names), path)


def _require_numbers(values: Any) -> None:
    for name, x in values.items():
        if np.asarray(x).dtype.kind not in "biuf":
            raise SignatureError(f"{name!r} is no array of numbers; a library gives numbers alone")
